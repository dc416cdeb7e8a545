"""``crawl4llm simulate``: a whole simulation by one command, in a folder without a project."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
from crawl_helpers import Web, begin, crawl_log, error_of, scrapy, stats

ONE = ("-s", "SCORING_WORKERS=1", "-s", "SCORE_CACHE=")


def simulate(folder: Path, *args: object) -> subprocess.CompletedProcess[str]:
    return scrapy("simulate", *map(str, args), *ONE, cwd=folder)


def test_policies_get_folders_of_their_own_and_more_pages_go_on(demo_web: Web, tmp_path: Path) -> None:
    given = (demo_web.corpus, "--scorer", demo_web.model)
    name = demo_web.corpus.name
    first = simulate(tmp_path, *given, "--pages", 40)
    assert first.returncode == 0, first.stderr
    assert "Crawled 40 of 40 pages by influence" in first.stdout
    assert f" simulate {demo_web.corpus} -s " in first.stdout  # the command for another policy
    random = simulate(tmp_path, *given, "--pages", 40, "--policy", "random")
    assert "times that of influence" in random.stdout, random.stderr
    assert {path.name for path in (tmp_path / "crawls").iterdir()} == {f"{name}-influence", f"{name}-random"}

    more = simulate(tmp_path, *given, "--pages", 60)
    assert "Crawled 60 of 60 pages by influence" in more.stdout, more.stderr
    output = tmp_path / f"crawls/{name}-influence"
    assert len({line["id"] for line in crawl_log(output)}) == 60
    assert stats(output)["pages/crawled"] == 60
    again = simulate(tmp_path, *given, "--pages", 60)
    assert (again.returncode, "This crawl is finished" in again.stdout) == (0, True)


def test_seeds_and_out(demo_web: Web, tmp_path: Path) -> None:
    given = (demo_web.corpus, "--scorer", demo_web.model, "--pages", 10, "--out", "a folder")
    ids = [str(line["id"]) for line in _crawled(demo_web, tmp_path / "before")][:3]
    (tmp_path / "seeds.txt").write_text("\n".join(ids))
    done = simulate(tmp_path, *given, "--seeds", "seeds.txt")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a folder/seeds.txt").read_text().split() == ids
    assert json.loads((tmp_path / "a folder/settings.json").read_text())["policy"] == "influence"
    other = error_of(simulate(tmp_path, *given))
    assert "JOBDIR a folder/job was begun with other settings: seeds was" in other


def test_a_crawl_that_is_stopped_goes_on_by_the_same_command(demo_web: Web, tmp_path: Path) -> None:
    """Through Ctrl-C, SIGTERM and kill -9, to the same crawl log; tests/crawl/test_resume.py has other batches."""
    given = [
        str(demo_web.corpus),
        "--scorer",
        str(demo_web.model),
        "--pages",
        "300",
        *ONE,
        "-s",
        "CRAWL_BATCH_SIZE=50",
    ]
    given += ["-s", "COMMIT_INTERVAL_PAGES=20"]
    whole = scrapy("simulate", *given, "--out", "whole", cwd=tmp_path)
    assert whole.returncode == 0, whole.stderr
    log, statuses = tmp_path / "stopped/crawl.jsonl", []
    for stop in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        before = _size(log)
        process = begin(["simulate", *given, "--out", "stopped"], cwd=tmp_path)
        while process.poll() is None and _size(log) == before:
            time.sleep(0.01)
        process.send_signal(stop)
        _, err = process.communicate()
        assert "Traceback" not in err
        statuses.append(process.returncode)
    assert set(statuses) <= {0, 130, -signal.SIGKILL}
    assert statuses[0] == 130
    ended = scrapy("simulate", *given, "--out", "stopped", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert log.read_bytes() == (tmp_path / "whole/crawl.jsonl").read_bytes()


def _size(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


def _crawled(web: Web, folder: Path) -> list[dict[str, object]]:
    folder.mkdir()
    done = simulate(folder, web.corpus, "--scorer", web.model, "--pages", 10, "--out", "out")
    assert done.returncode == 0, done.stderr
    return crawl_log(folder / "out")


def test_all_that_is_wrong_is_said_at_once(demo_web: Web, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/crawl.jsonl").touch()
    before = sorted(tmp_path.rglob("*"))
    args = ("--policy", "best", "--scorer", "none.bin", "--seeds", "none.txt", "--out", "out", "-s", "CRAWL_SEED=x")
    refused = simulate(tmp_path, demo_web.corpus, *args, "-s", "OUTPUT_DIR=x", "-s", "STORAGE=file:///nowhere")
    assert (refused.returncode, refused.stdout) == (1, "")
    named = [
        "-s OUTPUT_DIR=",
        "URL_POLICY = 'best'",
        "CRAWL_SEED = 'x'",
        "SCORER_MODEL none.bin",
        "seeds file none.txt",
    ]
    named += ["STORAGE and CLUSTER are for crawls by several workers", "--out out holds another crawl"]
    lines = [line.removeprefix("crawl4llm: error: ") for line in refused.stderr.splitlines()]
    assert all(any(line.startswith(name) for line in lines) for name in named), refused.stderr
    assert len(lines) == len(named), refused.stderr
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("corpus", "said"),
    [("none", "none"), ("no.such.Corpus", "CORPUS no.such.Corpus: no file or class has this name")],
)
def test_a_corpus_that_is_none(corpus: str, said: str, demo_web: Web, tmp_path: Path) -> None:
    line = error_of(simulate(tmp_path, corpus, "--scorer", demo_web.model))
    assert said in line
    assert not (tmp_path / "crawls").exists()


def test_usage(tmp_path: Path) -> None:
    for args in ([], ["demo", "more"], ["demo", "--paegs", "3"], ["demo", "--pages", "-3"]):
        refused = scrapy("simulate", *args, cwd=tmp_path)
        assert (refused.returncode, "Traceback" in refused.stderr) == (2, False), refused.stderr


def test_it_is_a_simulation_in_the_live_profile_too(demo_web: Web, tmp_path: Path) -> None:
    args = ("simulate", str(demo_web.corpus), "--scorer", str(demo_web.model), "--pages", "5", *ONE)
    done = scrapy(*args, cwd=tmp_path, env={"SCRAPY_SETTINGS_MODULE": "settings.live"})
    assert done.returncode == 0, done.stderr
    assert (
        json.loads((tmp_path / f"crawls/{demo_web.corpus.name}-influence/settings.json").read_text())["text"]
        == "corpus"
    )


def test_the_help_of_the_spider() -> None:
    told = scrapy("crawl", "influence", "--help").stdout
    assert "-a seeds=FILE" in told
    part = told.partition("the ten settings that matter")[2].partition("examples:")[0]
    assert part.count("=") == 11  # ten, and one in the heading
    assert "scrapy crawl influence -s CORPUS=demo" in told
