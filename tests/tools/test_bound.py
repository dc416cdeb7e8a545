"""The bound: what is learnt of a web, its file, and crawls by it."""

from __future__ import annotations

import gzip
import hashlib
import random
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import pytest
from crawl_helpers import Web, crawl, crawl_log, error_of, scrapy
from evaluation_helpers import evaluated, rows
from graph_corpus import GraphCorpus, NumberScorer
from policy_helpers import new_policy, rate
from scrapy.settings import Settings

pytest.importorskip("scipy", reason="needs the extra evaluate")

from crawl4llm.base.errors import InputError
from crawl4llm.base.pages import Link, PageRecord
from crawl4llm.options import Options
from crawl4llm.policies import Candidate, Policy, bound_text, make_policy
from crawl4llm.scoring import PageRater, PageWorkers
from crawl4llm.tools.evaluate.bound import BOUND, bound_of
from crawl4llm.tools.evaluate.contest.web import MemoryWeb, best_tenth

PAGES = 400
ODD = "http://a.example/\x00x\u2028__label__hq y/\ud800/</s>/z"
"""A URL whose parts fastText would take for other words, or refuse."""


def web(url: Callable[[int], str], anchor: Callable[[int], str] = str) -> MemoryWeb:
    """Pages of which each links to the next two."""
    keys = [f"k{number:03}" for number in range(PAGES)]
    pages, inlinks = {}, {key: list[Link]() for key in keys}
    for number, key in enumerate(keys):
        targets = [(number + step) % PAGES for step in (1, 2)]
        links = [Link(url(target), keys[target], anchor(target), False) for target in targets]
        pages[key] = PageRecord(key, url(number), text="", outlinks=links)
        for link in links:
            inlinks[str(link.key)].append(link._replace(url=url(number), key=key))
    return MemoryWeb("small", pages, inlinks, str)


def scores(good: Callable[[int], bool]) -> dict[str, float | None]:
    """A tenth of the pages is good."""
    draw = random.Random(1)
    return {f"k{number:03}": draw.uniform(0.8, 1) if good(number) else draw.random() / 2 for number in range(PAGES)}


def found_in_a_tenth(bound: dict[str, float], influence: dict[str, float | None]) -> float:
    oracle = best_tenth(influence)
    return len(set(sorted(bound, key=lambda key: (-bound[key], key))[: len(oracle)]) & oracle) / len(oracle)


@pytest.mark.parametrize("known_by", ["host", "folder", "anchor"])
def test_what_tells_good_pages_is_learnt(known_by: str) -> None:
    """On a web of one host too."""
    url: Callable[[int], str] = {
        "host": lambda number: f"http://h{number % 10}.example/{number}",
        "folder": lambda number: f"http://one.example/f{number % 10}/{number}",
        "anchor": lambda number: f"http://one.example/{number}",
    }[known_by]
    influence = scores(lambda number: number % 10 == 3)
    bound = bound_of(web(url, lambda number: f"kind {'abcdefghij'[number % 10] * 3}"), influence)
    assert bound.keys() == influence.keys()
    assert all(0 <= score <= 1 for score in bound.values())
    assert found_in_a_tenth(bound, influence) > 0.95


def test_a_page_is_not_scored_by_what_has_seen_it() -> None:
    """If nothing tells the good pages, the bound finds no more of them than chance does."""
    influence = scores(lambda number: hashlib.sha256(b"%d" % number).digest()[0] < 26)
    bound = bound_of(web(lambda number: f"http://h.example/{number}", lambda _: "next"), influence)
    assert found_in_a_tenth(bound, influence) < 0.3


def test_odd_urls_are_words_like_others() -> None:
    influence = scores(lambda number: number % 10 == 3)
    bound = bound_of(web(lambda number: ODD if number % 10 == 3 else f"http://[{number}"), influence)
    assert found_in_a_tenth(bound, influence) > 0.95


@pytest.mark.parametrize("score", [0.5, None])
def test_nothing_is_learnt_of_pages_that_are_alike(score: float | None) -> None:
    same = dict.fromkeys(scores(bool), score)
    alike = web(lambda number: f"http://h.example/{number}")
    with pytest.raises(InputError, match=r"^no bound can be learnt of small: all of its pages have the same influence"):
        bound_of(alike, same)
    with pytest.raises(InputError, match=r"^no bound can be learnt of small: it has 99 pages, fewer than 100$"):
        bound_of(alike, dict(list(scores(bool).items())[:99]))


# -- the file ---------------------------------------------------------------------------------------------------------

SCORES = {"a": 0.25, "b": 0.75, "http://example.org/ä": 1.0}


@pytest.fixture
def text() -> str:
    return bound_text(SCORES, GraphCorpus({}).identity(), NumberScorer.digest)


def policy(path: Path, corpus: GraphCorpus | None = None) -> Policy:
    rater = PageRater(corpus or GraphCorpus({}), NumberScorer(), extractor=None)
    return make_policy(PageWorkers(rater, 0), Options(url_policy="bound", bound_scores=str(path), corpus="my corpus"))


@pytest.mark.parametrize("compressed", [False, True])
def test_pages_have_the_scores_of_the_file(text: str, compressed: bool, tmp_path: Path) -> None:
    path = tmp_path / "bound"
    path.write_bytes(gzip.compress(text.encode()) if compressed else text.encode())
    assert [line.split("\t")[0] for line in text.splitlines()[1:]] == ["http://example.org/ä", "b", "a"]
    found = [Candidate(key, "http://a.example", 1, None) for key in (*SCORES, "c")]
    assert [rated.score for rated in rate(policy(path), found)] == [*SCORES.values(), 0.0]
    before = policy(path).identity()
    path.write_text(bound_text({**SCORES, "a": 0.26}, GraphCorpus({}).identity(), NumberScorer.digest))
    assert policy(path).identity() != before


AGAIN = "make it again: "


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda text: "", " is no file of this version's scrapy corpus bound; make one: "),
        (lambda text: "a\t0.5\n", " is no file of this version's scrapy corpus bound; make one: "),
        (lambda text: text.replace("\t1\t", "\t2\t", 1), " is no file of this version's scrapy corpus bound; "),
        (lambda text: text[: text.rindex("\n", 0, -1) + 1], f" was cut or changed (2 lines are left); {AGAIN}"),
        (lambda text: text[:-2], f" was cut or changed (3 lines are left); {AGAIN}"),
        (lambda text: text.replace("0.75", "0.76"), f" was cut or changed (3 lines are left); {AGAIN}"),
        (lambda text: text + "c\n", f", line 5, has no score from 0 to 1; {AGAIN}"),
        (lambda text: text + "c\tnan\n", f", line 5, has no score from 0 to 1; {AGAIN}"),
        (lambda text: text + "c\t1.5\n", f", line 5, has no score from 0 to 1; {AGAIN}"),
        (lambda text: text + "c\t0.5\t0.5\n", f", line 5, has no score from 0 to 1; {AGAIN}"),
        (lambda text: gzip.compress(text.encode())[:-9], " is damaged: "),
        (lambda text: text.encode() + b"\xff\t1\n", " is no text in UTF-8"),
    ],
)
def test_a_file_that_is_none_is_named(
    text: str, change: Callable[[str], str | bytes], fault: str, tmp_path: Path
) -> None:
    path, changed = tmp_path / "bound", change(text)
    path.write_bytes(changed.encode() if isinstance(changed, str) else changed)
    with pytest.raises(InputError) as error:
        policy(path)
    assert str(error.value).startswith(f"BOUND_SCORES {path}{fault}")
    assert "\n" not in str(error.value)


def test_a_file_of_another_corpus_or_scorer(text: str, tmp_path: Path) -> None:
    path = tmp_path / "bound"
    path.write_text(text)
    of_corpus = "was made of another corpus than this crawl's; make one of this corpus: .*corpus bound --out"
    with pytest.raises(InputError, match=of_corpus):
        policy(path, GraphCorpus({"a": []}))
    path.write_text(bound_text(SCORES, GraphCorpus({}).identity(), "1" * 64))
    with pytest.raises(InputError, match="was made of another scorer than this crawl's"):
        policy(path)
    with pytest.raises(InputError, match=r"^BOUND_SCORES .*/none cannot be read: No such file or directory"):
        policy(tmp_path / "none")
    with pytest.raises(InputError, match=r"^BOUND_SCORES is not set; give "):
        new_policy(GraphCorpus({}), url_policy="bound")


# -- of a corpus ------------------------------------------------------------------------------------------------------


def test_it_is_learnt_and_crawled_by(demo_web: Web, tmp_path: Path) -> None:
    """The same file each time, whatever the order of sets; what it finds is more than parent_mean does. The report has
    the share of that gap which another policy closes."""
    given = ("-s", f"CORPUS={demo_web.corpus}", "-s", f"SCORER_MODEL={demo_web.model}")
    paths = [tmp_path / "one.tsv", tmp_path / "two.tsv.gz"]
    environments: list[dict[str, str]] = [{}, {"PYTHONHASHSEED": "2"}]
    for env, path in zip(environments, paths, strict=True):
        done = scrapy("corpus", "bound", "--out", str(path), *given, env=env)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("pages  1,500\n")
        assert f"-s BOUND_SCORES={path}" in done.stdout
    assert paths[0].read_bytes() == gzip.decompress(paths[1].read_bytes())
    values = dict(line.split("\t") for line in paths[0].read_text().splitlines()[1:])
    assert len(values) == 1500
    assert list(map(float, values.values())) == sorted(map(float, values.values()), reverse=True)
    small = {"CRAWL_SEEDS": 20, "CRAWL_BATCH_SIZE": 20, "CRAWL_MAX_PAGES": 375, "WARC_ENABLED": 0}
    means = {}
    for name, more in (("bound", {"BOUND_SCORES": paths[1]}), ("parent_mean", {}), ("breadth_first", {})):
        result = crawl(demo_web, tmp_path / name, URL_POLICY=name, **small, **more)
        assert result.returncode == 0, result.stderr
        lines = crawl_log(tmp_path / name)
        assert len(lines) == 375
        means[name] = sum(line["influence"] or 0 for line in lines) / 375
        if name == "bound":
            assert [line["priority"] for line in lines] == [float(values[line["id"]]) for line in lines]
    assert means["bound"] > means["parent_mean"]
    (row,) = rows(evaluated(tmp_path, *(tmp_path / name for name in means)), "gap")
    assert row.pop("Policy") == "breadth_first"
    assert row.pop("Runs") == 1
    assert row.keys() == {"Closed at 10%", "Closed at 25%"}
    assert all(float(share) < 0 for share in row.values()), "parent_mean finds more"


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"SCORER": "evaluation_helpers.ConstantScorer"}, "all of its pages have the same influence score"),
        ({"SCORER_MODEL": ""}, "SCORER_MODEL is not set"),
    ],
    ids=["all equal", "no scores"],
)
def test_a_corpus_of_which_nothing_is_learnt(given: dict[str, str], fault: str, demo_web: Web, tmp_path: Path) -> None:
    settings = [part for name, value in given.items() for part in ("-s", f"{name}={value}")]
    out = str(tmp_path / "bound.tsv")
    refused = scrapy("corpus", "bound", "--out", out, "-s", f"CORPUS={demo_web.corpus}", *settings)
    assert fault in error_of(refused)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("out", "words"), [(None, "give the file to write: --out FILE"), ("mine", "exists already")])
def test_it_is_written_over_nothing(out: str | None, words: str, tmp_path: Path) -> None:
    """Told before the corpus is looked at, of which there is none."""
    (tmp_path / "mine").touch()
    arguments = Namespace(out=None if out is None else tmp_path / out)
    with pytest.raises(InputError, match=words):
        list(BOUND.run(Settings({"CORPUS": str(tmp_path / "none")}), arguments))
