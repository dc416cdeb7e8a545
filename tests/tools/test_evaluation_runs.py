"""Reading runs: what is evaluated, what is refused, and in which words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evaluation_helpers import FACTS, line, write_run

from crawl4llm.base.errors import InputError
from crawl4llm.tools.evaluate.documents import Population, oracle_of
from crawl4llm.tools.evaluate.runs import CrawledPages, read_runs


def test_what_is_read(tmp_path: Path) -> None:
    lines = [
        line(0, url="http://a.blog.github.io/x", priority=1.5, influence=0.25, visited=10, fetched=4),
        line(1, url="http://www.example.co.uk/", influence=None, visited=12, fetched=6),
        line(2, url="http://example.co.uk/b", parent="key0", visited=12, fetched=7),
    ]
    (run,) = read_runs([write_run(tmp_path / "run", lines)])
    assert (run.name, list(run.pages.keys()), len(run), run.wanted) == ("influence", ["key0", "key1", "key2"], 3, 3)
    assert run.priority.tolist() == [1.5, 0.5, 0.5]
    assert np.array_equal(run.influence, [0.25, np.nan, 0.5], equal_nan=True)
    assert (run.visited.tolist(), run.fetched.tolist()) == ([10, 12, 12], [4, 6, 7])
    assert run.domains.tolist() == [1, 2, 2]
    assert (list(run.seeds), run.unfinished) == (["key0", "key1"], None)


def test_which_texts_are_new(tmp_path: Path) -> None:
    fields: list[dict[str, Any]] = [{}, {"near_duplicate_of": None}, {"near_duplicate_of": 0}, {"known_text": True}]
    lines = [line(order, **more) for order, more in enumerate([*fields, {"known_text": False}])]
    (run,) = read_runs([write_run(tmp_path / "run", lines, settings={"CRAWL_MAX_PAGES": 5, "QUALITY_THRESHOLD": 0.5})])
    assert run.is_new.tolist() == [True, True, False, False, True]
    assert run.quality_threshold == 0.5
    scores = np.array([0.9, 0.4, 0.9, 0.9, 0.9])
    pages = CrawledPages(run, np.arange(5), scores, np.zeros(5, dtype=np.int64), oracle_of(Population(scores, 5)))
    found = pages.new_quality(np.array([1, 3, 5]))
    assert found.tolist() == [1000, 1000 / 3, 400]


def test_seeds_that_were_not_crawled_are_known(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", [line(0)])
    (path / "seeds.txt").write_text("key9\nkey0\n")
    assert list(read_runs([path])[0].seeds) == ["key9", "key0"]


def test_runs_of_one_policy_have_different_names(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    paths = [write_run(tmp_path / name, [line(0)]) for name in ("one", "two", "more/one")]
    assert [run.name for run in read_runs(paths[:2])] == ["influence (one)", "influence (two)"]
    assert len({run.name for run in read_runs(paths)}) == 3


def test_a_run_counts_once(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", [line(0)])
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(InputError, match=f"{path} is given twice; give each run once"):
        read_runs([path, tmp_path / "link"])


def test_runs_that_differ_in_a_part_are_no_series(tmp_path: Path) -> None:
    facts: list[dict[str, Any]] = [
        {"seeds_digest": "a"},
        {"seeds_digest": "b", "random_seed": 7, "crawl_id": "other"},
        {"blocklists": ["1" * 64]},
        {"mixture": "sha256:1"},
        {"parts": ["own.Part"]},
    ]
    runs = read_runs([write_run(tmp_path / str(n), [line(0)], **one) for n, one in enumerate(facts)])
    assert runs[0].group == runs[1].group
    assert len({run.group for run in runs}) == 4


@pytest.mark.parametrize("what", ["corpus_digest", "model_digest", "label", "text", "extractor", "scorer"])
def test_runs_that_cannot_be_compared(what: str, tmp_path: Path) -> None:
    one = write_run(tmp_path / "one", [line(0)])
    two = write_run(tmp_path / "two", [line(0)], **{what: "another"})
    with pytest.raises(InputError) as error:
        read_runs([one, two])
    for named in (str(one), str(two), what, str(FACTS[what]), "another"):
        assert named in str(error.value)


@pytest.mark.parametrize(
    ("finished", "why"),
    [("shutdown", "ended by shutdown"), (None, "no stats.json"), ("max_pages", None), ("frontier_empty", None)],
)
def test_interrupted_runs(finished: str | None, why: str | None, tmp_path: Path) -> None:
    unfinished = read_runs([write_run(tmp_path / "run", [line(0)], finished=finished)])[0].unfinished
    assert unfinished is None if why is None else why in str(unfinished)


def test_a_line_that_is_still_being_written_is_left_out(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", [line(0), line(1)], finished=None)
    log = path / "crawl.jsonl"
    log.write_text(log.read_text()[:-20])
    assert list(read_runs([path])[0].pages.keys()) == ["key0"]


def test_an_empty_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no page was crawled"):
        read_runs([write_run(tmp_path / "run", [])])


def test_no_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"settings\.json is missing or damaged; give the OUTPUT_DIR of a crawl"):
        read_runs([tmp_path / "run"])
    path = write_run(tmp_path / "run", [line(0)])
    (path / "crawl.jsonl").unlink()
    with pytest.raises(InputError, match=r"crawl\.jsonl cannot be read: No such file"):
        read_runs([path])


def test_the_run_of_an_addon_has_no_corpus(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", [line(0)])
    (path / "settings.json").write_text('{"policy": "influence", "settings": {}}')
    with pytest.raises(InputError, match="names no corpus"):
        read_runs([path])
    for damaged, why in (
        ([], "its settings is"),
        ({"CRAWL_MAX_PAGES": "many"}, "CRAWL_MAX_PAGES"),
        ({}, "have no CRAWL"),
    ):
        (path / "settings.json").write_text(json.dumps(FACTS | {"settings": damaged}))
        with pytest.raises(InputError, match=f"is damaged: .*{why}"):
            read_runs([path])


def test_a_live_crawl_has_none_either(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", [line(0)], corpus="live")
    with pytest.raises(InputError, match=f"live crawl.*CORPUS={path}"):
        read_runs([path])


@pytest.mark.parametrize(
    "damage",
    [
        *("{\n", "[]\n", '{"id": "key1"}\n', '{"url": "https://a/", "id": "key1"}\n', "null\n", '"text"\n', "\xff\n"),
        *(
            f"{json.dumps(line(1, **wrong))}\n"
            for wrong in ({"id": 7}, {"parent": [0]}, {"visited": "1"}, {"fetched": 0})
        ),
    ],
)
def test_damaged_logs_are_named(damage: str, tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", [line(0)])
    log = path / "crawl.jsonl"
    log.write_bytes(log.read_bytes() + damage.encode("latin-1") + log.read_bytes())
    with pytest.raises(InputError, match=r"crawl\.jsonl is damaged: line 2 "):
        read_runs([path])
    (path / "settings.json").write_text(damage, encoding="latin-1")
    with pytest.raises(InputError, match=r"settings\.json"):
        read_runs([path])
