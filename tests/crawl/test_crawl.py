"""Algorithm 1 on graphs in memory, driven without Scrapy."""

from __future__ import annotations

import asyncio
import itertools
import resource
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from archive_helpers import INFO, index
from documented import is_documented
from driven_crawl import Driven, NotingPolicy, pages_at_once, scored
from graph_corpus import URL, GraphCorpus

from crawl4llm.base.errors import InputError
from crawl4llm.base.pages import Link, PageRecord
from crawl4llm.crawl import reorder_buffer
from crawl4llm.crawl.ends import FRONTIER_EMPTY, MAX_PAGES
from crawl4llm.policies import Candidate, Rating
from crawl4llm.warc import ArchiveWriter
from crawl4llm.warc.reader import read_record

NewCrawl = Callable[..., Driven]


@pytest.fixture
def new_crawl(tmp_path: Path) -> Iterator[NewCrawl]:
    """Makes crawls, each with a log of its own."""
    with ExitStack() as opened:
        numbers = itertools.count()

        def make(corpus: GraphCorpus, **options: Any) -> Driven:
            folder = tmp_path / str(next(numbers))
            folder.mkdir()
            driven = Driven(corpus, folder, **options)
            opened.callback(driven.close)
            return driven

        yield make


WEB = scored(
    {"1": ["5", "3", "8"], "2": ["5", "6"], "3": [], "5": ["9", "7"], "6": ["4"], "7": [], "8": [], "9": [], "4": []}
)


# -- order ------------------------------------------------------------------------------------------------------------


def test_batches_take_the_best_of_what_is_known(new_crawl: NewCrawl) -> None:
    driven = new_crawl(WEB, crawl_batch_size=2).run("1", "2")
    assert driven.batches == [["2", "1"], ["8", "6"], ["5", "4"], ["9", "7"], ["3"]]
    assert driven.crawl.finished == FRONTIER_EMPTY


def test_continuous_order_takes_the_best_document_next(new_crawl: NewCrawl) -> None:
    driven = new_crawl(WEB, crawl_batch_size=0).run("1", "2")
    assert driven.ids == ["2", "6", "5", "9", "7", "4", "1", "8", "3"]
    assert driven.crawl.finished == FRONTIER_EMPTY
    assert {line["iteration"] for line in driven.lines} == {None}


def test_all_seeds_form_the_first_batch(new_crawl: NewCrawl) -> None:
    seeds = ["1", "2", "3", "6", "5"]
    driven = new_crawl(WEB, crawl_batch_size=1).run(*seeds)
    assert driven.batches == [["6", "5", "3", "2", "1"], ["9"], ["8"], ["7"], ["4"]]
    assert driven.crawl.seeds == 5


def test_a_seed_given_twice_is_one_seed(new_crawl: NewCrawl) -> None:
    driven = new_crawl(WEB).run("7", "8", "7")
    assert driven.ids == ["8", "7"]
    assert driven.crawl.seeds == 2


@pytest.mark.parametrize("batch_size", [0, 1, 2, 3, 100])
@pytest.mark.parametrize("pages", [1, 2, 3, 4, 8, 9])
def test_it_ends_with_exactly_n_pages(new_crawl: NewCrawl, batch_size: int, pages: int) -> None:
    driven = new_crawl(WEB, crawl_batch_size=batch_size, crawl_max_pages=pages).run("1", "2")
    whole = new_crawl(WEB, crawl_batch_size=batch_size).run("1", "2")
    assert driven.crawl.finished == MAX_PAGES
    assert driven.dequeued == driven.ids == whole.ids[:pages]
    assert driven.crawl.crawled == pages


def test_the_first_batch_is_cut_too(new_crawl: NewCrawl) -> None:
    assert new_crawl(WEB, crawl_max_pages=2).run("1", "2", "3").ids == ["3", "2"]


def test_pages_that_fail_do_not_count_towards_n(new_crawl: NewCrawl) -> None:
    corpus = scored({"1": ["9", "8", "7", "6"], "9": [], "8": [], "7": [], "6": []})
    driven = new_crawl(corpus, crawl_batch_size=2, crawl_max_pages=3)
    driven.start("1")
    assert driven.batch() == ["1"]
    for lease in driven.dequeue():
        driven.crawl.failed(lease, "timeout")
    driven.advance()
    assert driven.batch() == ["7", "6"]
    assert driven.crawl.finished == MAX_PAGES
    assert driven.batches == [["1"], ["7", "6"]]
    assert [line["iteration"] for line in driven.lines] == [0, 2, 2]


@pytest.mark.parametrize("batch_size", [0, 1, 100])
def test_ties_break_by_key(new_crawl: NewCrawl, batch_size: int) -> None:
    corpus = scored({"1": ["5d", "5b", "5a", "5c", "6"], "6": [], "5a": [], "5b": [], "5c": [], "5d": []})
    assert new_crawl(corpus, crawl_batch_size=batch_size).run("1").ids == ["1", "6", "5a", "5b", "5c", "5d"]


@pytest.mark.parametrize("batch_size", [0, 1, 3])
def test_the_order_of_answers_leaves_no_mark(new_crawl: NewCrawl, batch_size: int) -> None:
    runs = [new_crawl(WEB, crawl_batch_size=batch_size).run("1", "2", shuffled_by=seed) for seed in range(5)]
    assert all(run.lines == runs[0].lines for run in runs)


# -- batches that are taken in slices ---------------------------------------------------------------------------------


def test_a_batch_is_taken_in_slices_from_its_front(new_crawl: NewCrawl) -> None:
    driven = new_crawl(scored({key: [] for key in "123456789"}))
    driven.start(*"123456789")
    nine, eight, *others, two, one = driven.dequeue()
    with pages_at_once(3):
        for lease in (nine, eight, *reversed(others[1:])):
            driven.fetch(lease)
        assert not driven.crawl.can_advance, "the third is in flight"
        driven.fetch(others[0])
        driven.advance()
        assert driven.ids == list("987654")
        assert driven.crawl.iteration == 0
        assert driven.dequeue() == []
        driven.fetch(one)
        assert not driven.crawl.can_advance
        driven.fetch(two)
        driven.advance()
    assert driven.ids == list("987654321")
    assert {line["iteration"] for line in driven.lines} == {0}
    assert driven.crawl.iteration == 1


@pytest.mark.parametrize("slices", [1, 2, 4, 100])
def test_slices_leave_no_mark(new_crawl: NewCrawl, slices: int) -> None:
    whole = new_crawl(WEB, crawl_batch_size=4).run("1", "2")
    with pages_at_once(slices):
        assert new_crawl(WEB, crawl_batch_size=4).run("1", "2", shuffled_by=1).batches == whole.batches


def test_answers_wait_in_bounded_number(new_crawl: NewCrawl) -> None:
    driven = new_crawl(scored({key: [] for key in "123456789"}))
    driven.start(*"123456789")
    slow, *others = driven.dequeue()
    with pages_at_once(3):
        for lease in others[:5]:
            driven.fetch(lease)
        assert not driven.crawl.must_wait
        driven.fetch(others[5])
        assert driven.crawl.must_wait
        driven.fetch(slow)
        driven.advance()
        assert not driven.crawl.must_wait


@pytest.mark.parametrize("large", ["html", "links"])
def test_answers_wait_in_bounded_memory(new_crawl: NewCrawl, monkeypatch: pytest.MonkeyPatch, large: str) -> None:
    monkeypatch.setattr(reorder_buffer, "_FULL", 50_000)
    driven = new_crawl(scored({key: [] for key in "1234"}))
    driven.start(*"1234")
    waits = []
    links = [Link(f"http://h.test/{'a' * 500}/{number}", None, "", False) for number in range(30)]
    more: dict[str, Any] = {"html": b"a" * 20_000} if large == "html" else {"outlinks": links}
    for lease in driven.dequeue():
        driven.crawl.fetched(lease, PageRecord(lease.entry.key, "", **more), 200)
        waits.append(driven.crawl.must_wait)
    assert waits == [False, False, True, True]
    driven.advance()
    assert not driven.crawl.must_wait
    assert len(driven.ids) == 4


@pytest.mark.parametrize("slices", [1, 2, 100])
def test_links_count_where_a_failure_keeps_a_batch_from_being_the_last(new_crawl: NewCrawl, slices: int) -> None:
    corpus = scored({"9": ["5", "4"], "8": [], "7": ["5", "3"], "5": [], "4": [], "3": []})
    driven = new_crawl(corpus, crawl_max_pages=3, crawl_batch_size=3)
    driven.start("9", "8", "7")
    nine, eight, seven = driven.dequeue()
    driven.fetch(nine)
    driven.crawl.failed(eight, "timeout")
    driven.fetch(seven)
    with pages_at_once(slices):
        driven.advance()
    assert driven.batch() == ["5"]
    assert driven.crawl.finished == MAX_PAGES
    assert [(line["id"], line["parent"]) for line in driven.lines] == [("9", None), ("7", None), ("5", "9")]
    assert all(key in driven.crawl.visited for key in "34")


# -- continuous order with several leases -----------------------------------------------------------------------------


def test_pages_are_logged_in_the_order_of_their_leases(new_crawl: NewCrawl) -> None:
    driven = new_crawl(WEB, crawl_batch_size=0, leases=2)
    driven.start("1", "2", "3")
    three, two = driven.dequeue()
    assert driven.dequeue() == []
    driven.fetch(two)
    assert not driven.crawl.can_advance
    assert driven.crawl.answered == 1
    (one,) = driven.dequeue()
    driven.fetch(one)
    assert not driven.crawl.can_advance
    assert driven.lines == []
    driven.fetch(three)
    assert driven.crawl.can_advance
    driven.advance()
    assert driven.ids == ["3", "2", "1"]
    assert driven.crawl.unanswered() == []


def test_a_slow_page_bounds_what_waits_for_it(new_crawl: NewCrawl) -> None:
    corpus = scored({f"{number}": [] for number in range(10, 100)})
    driven = new_crawl(corpus, crawl_batch_size=0, leases=3)
    driven.start(*(str(number) for number in range(10, 100)))
    slow, *others = driven.dequeue()
    while others:
        driven.fetch(others.pop())
        others += driven.dequeue()
        assert len(others) < 3
    waiting = driven.crawl.answered
    assert 3 <= waiting < 60
    driven.fetch(slow)
    driven.advance()
    assert len(driven.lines) == waiting + 1
    assert len(driven.dequeue()) == 3


# -- missing, failed, dropped and late --------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["influence", "indegree"])
@pytest.mark.parametrize("batch_size", [0, 1, 100])
def test_a_missing_document_is_asked_for_once(new_crawl: NewCrawl, policy: str, batch_size: int) -> None:
    corpus = scored({"1": ["gone", "2", "gone"], "2": ["gone", "3"], "3": ["gone", "lost"]})
    driven = new_crawl(corpus, crawl_batch_size=batch_size, url_policy=policy).run("1", "missing")
    asked = {key: count for (_, key), count in corpus.lookups.items() if key not in corpus}
    assert asked == {"gone": 1, "lost": 1, "missing": 1}
    assert driven.ids == ["1", "2", "3"]
    assert driven.figures["failed/http_404"] == 3
    assert driven.figures["pages/visited"] == 6


def test_a_page_is_looked_up_once_and_scored_once(new_crawl: NewCrawl) -> None:
    corpus = scored({"1": ["2", "3", "1"], "2": ["1", "3"], "3": ["3", "2"]})
    new_crawl(corpus, crawl_batch_size=1).run("1")
    assert corpus.lookups == {(part, key): 1 for part in ("text", "page") for key in "123"}


def test_failures_are_counted_by_reason(new_crawl: NewCrawl) -> None:
    corpus = scored({"1": ["2", "3", "4", "5", "gone"], "2": [], "3": [], "4": [], "5": []}, corrupt=["2"])
    driven = new_crawl(corpus)
    driven.start("1")
    driven.batch()
    five, four, three = driven.dequeue()
    driven.crawl.failed(five, "http_404")
    driven.crawl.failed(four, "timeout")
    driven.crawl.dropped(three, "ignored")
    driven.advance()
    assert driven.crawl.finished == FRONTIER_EMPTY
    figures = driven.figures
    assert {key: count for key, count in figures.items() if key.startswith(("failed/", "dropped/"))} == {
        "failed/corrupt_record": 1,
        "failed/http_404": 2,
        "failed/timeout": 1,
        "dropped/ignored": 1,
    }
    assert driven.ids == ["1"]


def test_a_damaged_page_fails_when_it_is_fetched(new_crawl: NewCrawl) -> None:
    corpus = scored({"1": ["2", "3"], "2": ["4"], "3": [], "4": []}, corrupt=["2"])
    driven = new_crawl(corpus, url_policy="indegree").run("1")
    assert driven.ids == ["1", "3"]
    assert driven.figures["failed/corrupt_record"] == 1


@pytest.mark.parametrize("batch_size", [0, 2])
@pytest.mark.parametrize("attempts", [1, 2, 3])
def test_a_document_is_tried_so_often(new_crawl: NewCrawl, batch_size: int, attempts: int) -> None:
    corpus = scored({"1": [], "2": []})
    driven = new_crawl(corpus, crawl_batch_size=batch_size, crawl_max_attempts=attempts)
    driven.start("2", "1")
    tried = []
    while not driven.crawl.finished:
        for lease in driven.dequeue():
            tried.append(lease.entry.key)
            if lease.entry.key == "2":
                driven.crawl.failed(lease, "error", final=False)
            else:
                driven.fetch(lease)
        driven.advance()
    assert tried.count("2") == attempts
    assert driven.ids == ["1"]
    assert driven.figures.get("frontier/retried", 0) == attempts - 1
    assert driven.figures["failed/error"] == 1


def test_a_document_may_succeed_at_its_last_attempt(new_crawl: NewCrawl) -> None:
    driven = new_crawl(scored({"2": ["3"], "3": []}), crawl_batch_size=1, crawl_max_attempts=3)
    driven.start("2")
    for _ in range(2):
        (lease,) = driven.dequeue()
        driven.crawl.failed(lease, "error", final=False)
        driven.advance()
    assert driven.batch() == ["2"]
    assert driven.batch() == ["3"]
    assert driven.ids == ["2", "3"]
    assert "failed/error" not in driven.figures


def test_a_final_failure_is_not_tried_again(new_crawl: NewCrawl) -> None:
    driven = new_crawl(scored({"2": []}), crawl_max_attempts=5)
    driven.start("2")
    driven.crawl.failed(driven.dequeue()[0], "http_404")
    driven.advance()
    assert driven.crawl.finished == FRONTIER_EMPTY


def test_late_answers_are_ignored(new_crawl: NewCrawl) -> None:
    driven = new_crawl(scored({"2": ["3"], "3": []}), crawl_batch_size=1)
    driven.start("2")
    (first,) = driven.dequeue()
    driven.crawl.failed(first, "timeout", final=False)
    driven.fetch(first)
    driven.advance()
    assert driven.lines == []
    (second,) = driven.dequeue()
    assert second.entry.key == "2"
    driven.crawl.failed(first, "timeout", final=False)
    driven.crawl.dropped(first, "ignored")
    assert driven.crawl.unanswered() == [second]
    driven.fetch(second)
    driven.fetch(second)
    driven.crawl.failed(second, "timeout")
    driven.advance()
    driven.crawl.failed(second, "timeout")
    assert driven.ids == ["2"]
    assert driven.figures["late"] == 6
    assert [key for key in driven.figures if key.startswith(("failed/", "dropped/"))] == []
    assert driven.batch() == ["3"]
    assert driven.crawl.finished == FRONTIER_EMPTY


@pytest.mark.parametrize("batch_size", [0, 2])
def test_what_was_never_asked_for_stays_in_the_frontier(new_crawl: NewCrawl, batch_size: int) -> None:
    driven = new_crawl(scored({"3": ["4"], "2": [], "4": []}), crawl_batch_size=batch_size, leases=2)
    driven.start("3", "2")
    three, two = driven.dequeue()
    driven.fetch(three)
    assert driven.crawl.unanswered() == [two]
    asyncio.run(driven.crawl.wind_up())
    assert driven.ids == ["3"]
    assert driven.figures["frontier/queued"] == 1
    assert "frontier/leased" not in driven.figures
    assert "4" not in driven.crawl.visited
    (again,) = driven.dequeue()
    assert (again.entry.key, again.entry.attempts) == ("2", 1)


def test_documents_without_a_page_are_listed(new_crawl: NewCrawl) -> None:
    corpus = scored({"1": ["9", "gone", "8", "7"], "9": [], "8": [], "7": []})
    driven = new_crawl(corpus)
    driven.start("1", "lost")
    driven.batch()
    nine, eight, seven = driven.dequeue()
    driven.crawl.failed(seven, "error", final=False)
    driven.crawl.dropped(eight, "ignored")
    driven.crawl.failed(nine, "timeout")
    driven.advance()
    seed = {"id": "lost", "url": "", "outcome": "failed", "reason": "http_404", "depth": 0, "parent": None}
    common = {"depth": 1, "parent": "1"}
    assert driven.failures == [
        seed,
        {**common, "id": "gone", "url": f"{URL}gone", "outcome": "failed", "reason": "http_404"},
        {**common, "id": "9", "url": f"{URL}9", "outcome": "failed", "reason": "timeout"},
        {**common, "id": "8", "url": f"{URL}8", "outcome": "dropped", "reason": "ignored"},
    ]


def test_unanticipated_errors_in_a_row_are_counted(new_crawl: NewCrawl) -> None:
    driven = new_crawl(scored({key: [] for key in "123456"}))
    driven.start(*"123456")
    one, two, three, four, five, six = driven.dequeue()
    driven.crawl.failed(one, "error")
    driven.crawl.failed(two, "error", final=False)
    assert driven.crawl.counters.errors_in_row == 2
    driven.fetch(three)
    assert driven.crawl.counters.errors_in_row == 0
    driven.crawl.failed(four, "error")
    driven.crawl.failed(five, "http_404")
    assert driven.crawl.counters.errors_in_row == 0
    driven.crawl.failed(six, "error")
    assert driven.crawl.counters.errors_in_row == 1
    driven.advance()
    assert driven.figures["errors"] == 4


def test_errors_in_scoring_are_unanticipated_too(new_crawl: NewCrawl) -> None:
    corpus = GraphCorpus({key: [] for key in "abcd"}, {"a": "0.5", "b": "no number", "c": "0.5", "d": "no number"})
    driven = new_crawl(corpus)
    driven.start("a", "b")
    assert (driven.crawl.counters.errors_in_row, driven.figures["errors"]) == (1, 1)
    assert driven.figures["failed/error"] == 1


# -- what a policy is told --------------------------------------------------------------------------------------------


def test_a_policy_sees_what_is_found_and_what_is_taken(new_crawl: NewCrawl) -> None:
    corpus = scored({"b": ["d", "a", None, "d"], "c": ["a", "e"], "a": [], "d": [], "e": []})
    driven = new_crawl(corpus, url_policy="driven_crawl.NotingPolicy", crawl_batch_size=2).run("c", "b")
    policy = driven.crawl.policy
    assert isinstance(policy, NotingPolicy)
    assert [taken for taken in policy.taken if taken] == [["b", "c"], ["a", "d"], ["e"]]
    assert [tuple(candidate) for candidate in policy.candidates] == [
        ("c", "", 0, None, ""),
        ("b", "", 0, None, ""),
        ("d", f"{URL}d", 1, "b", "link 0 of b"),
        ("a", f"{URL}a", 1, "b", "link 1 of b"),
        ("e", f"{URL}e", 1, "c", "link 1 of c"),
    ]


def test_what_was_never_asked_for_was_not_fetched(new_crawl: NewCrawl) -> None:
    driven = new_crawl(scored({"3": [], "2": []}), url_policy="indegree")
    driven.start("3", "2")
    first, second = driven.dequeue()
    driven.fetch(first)
    assert driven.crawl.unanswered() == [second]
    asyncio.run(driven.crawl.wind_up())
    assert driven.figures["pages/fetched"] == 1


# -- links ------------------------------------------------------------------------------------------------------------


def test_a_document_belongs_to_the_first_page_that_links_to_it(new_crawl: NewCrawl) -> None:
    corpus = scored({"9": ["9", None, "5", "5"], "8": ["5", "9", "6"], "5": ["7"], "6": [], "7": []})
    driven = new_crawl(corpus, crawl_batch_size=5).run("8", "9")
    found = {line["id"]: (line["parent"], line["depth"]) for line in driven.lines}
    assert found == {"9": (None, 0), "8": (None, 0), "5": ("9", 1), "6": ("8", 1), "7": ("5", 2)}
    assert driven.figures["links/seen"] == 4 + 3 + 1
    assert driven.figures["links/without_key"] == 1
    assert driven.figures["links/new"] == 3


def test_a_page_without_a_list_of_links_is_a_dead_end(new_crawl: NewCrawl) -> None:
    driven = new_crawl(scored({"9": ["8"], "8": []}))
    driven.start("9")
    (lease,) = driven.dequeue()
    page = driven.corpus.page("9")
    page.outlinks = None
    driven.crawl.fetched(lease, page, 200)
    driven.advance()
    assert driven.crawl.finished == FRONTIER_EMPTY


def test_no_outlinks_are_followed_once_n_is_reached(new_crawl: NewCrawl) -> None:
    corpus = scored({"9": ["8"], "8": ["7"], "7": []})
    driven = new_crawl(corpus, crawl_max_pages=2).run("9")
    assert "7" not in driven.crawl.visited
    assert ("text", "7") not in corpus.lookups


# -- what is written --------------------------------------------------------------------------------------------------


def test_lines_of_the_log(new_crawl: NewCrawl) -> None:
    corpus = GraphCorpus({"a": ["b", "gone"], "b": ["c"], "c": []}, {"a": "0.5 x", "b": "0.25 x", "c": " \n"})
    driven = new_crawl(corpus, crawl_batch_size=1).run("a")
    common = {"iteration": 0, "status": 200, "parent": None, "depth": 0}
    assert driven.lines == [
        {
            **common,
            "order": 0,
            "id": "a",
            "url": f"{URL}a",
            "priority": 0.5,
            "influence": 0.5,
            "visited": 3,
            "fetched": 3,
        },
        {
            **common,
            **{"order": 1, "iteration": 1, "id": "b", "url": f"{URL}b", "priority": 0.25, "influence": 0.25},
            **{"depth": 1, "parent": "a", "visited": 4, "fetched": 4},
        },
        {
            **common,
            **{"order": 2, "iteration": 2, "id": "c", "url": f"{URL}c", "priority": 0.0, "influence": 0.0},
            **{"depth": 2, "parent": "b", "visited": 4, "fetched": 4},
        },
    ]
    assert driven.crawl.counters.mean_influence == pytest.approx(0.25)
    assert driven.figures["pages/no_text"] == 1


def test_a_policy_that_does_not_look_ahead_fetches_what_it_crawls(new_crawl: NewCrawl) -> None:
    corpus = GraphCorpus({"a": ["b", "c", "b"], "b": ["c"], "c": [], "d": ["c", "a"]}, dict.fromkeys("abc", "0.5"))
    driven = new_crawl(corpus, crawl_batch_size=1, url_policy="indegree").run("a")
    seen = [(line["id"], line["priority"], line["influence"], line["fetched"]) for line in driven.lines]
    assert seen == [("a", 1.0, 0.5, 1), ("c", 3.0, 0.5, 2), ("b", 2.0, 0.5, 3)]


def test_a_page_whose_influence_cannot_be_computed_is_crawled_all_the_same(new_crawl: NewCrawl) -> None:
    corpus = GraphCorpus({"a": ["b"], "b": []}, {"a": "not a number", "b": "0.5"})
    driven = new_crawl(corpus, url_policy="indegree").run("a")
    assert [line["influence"] for line in driven.lines] == [None, 0.5]
    assert driven.crawl.counters.mean_influence == 0.5
    assert driven.figures["errors"] == driven.figures["pages/unrated"] == 1


def test_all_statistics_are_documented(new_crawl: NewCrawl) -> None:
    corpus = scored({"1": ["2", None, "3", "gone", "4"], "2": [], "3": [], "4": []}, corrupt=["3"])
    driven = new_crawl(corpus)
    driven.start("1")
    driven.batch()
    four, two = driven.dequeue()
    driven.crawl.failed(four, "error", final=False)
    driven.crawl.dropped(two, "ignored")
    driven.crawl.dropped(two, "ignored")
    driven.advance()
    driven.dequeue()
    figures = driven.crawl.statistics()
    assert [key for key in figures if not is_documented(key)] == []
    expected = {"pages/crawled": 1, "pages/visited": 5, "pages/fetched": 5, "frontier/leased": 1, "iterations": 2}
    assert {key: figures[key] for key in expected} == expected


class Unbounded(NotingPolicy):
    """A policy that divides by what there is none of."""

    name = "unbounded"

    async def score(self, candidates: Sequence[Candidate]) -> list[Rating]:
        return [Rating(0.5 if candidate.parent is None else float("inf")) for candidate in candidates]


@pytest.mark.parametrize(
    ("score", "policy", "giver"),
    [
        ("inf", "influence", "NumberScorer gave page"),
        ("nan", "influence", "NumberScorer gave page"),
        ("-inf", "influence", "NumberScorer gave page"),
        ("0.5", f"{__name__}.Unbounded", "URL_POLICY unbounded gave"),
    ],
)
def test_a_score_that_is_no_number_stops_the_crawl(new_crawl: NewCrawl, score: str, policy: str, giver: str) -> None:
    driven = new_crawl(GraphCorpus({"a": ["b"], "b": []}, {"a": "1", "b": score}), url_policy=policy)
    driven.start("a")
    with pytest.raises(InputError, match=rf"^{giver} b the score -?(inf|nan)"):
        driven.batch()
    assert driven.ids == ["a"]


@contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    """Let this process write no file beyond a size: a write that would fails, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def assert_log_and_archive_agree(driven: Driven, archive: Path) -> None:
    entries = index(archive)
    assert [entry.id for entry in entries] == driven.ids
    assert [read_record(archive, entry) for entry in entries] == [driven.corpus.html(key) for key in driven.ids]
    assert driven.crawl.crawled == len(driven.ids)


@pytest.mark.parametrize("batch_size", [0, 100])
def test_a_full_disk_in_the_middle_of_a_batch(new_crawl: NewCrawl, tmp_path: Path, batch_size: int) -> None:
    seeds = [str(number) for number in range(10, 40)]
    corpus = scored({key: [] for key in seeds}, size=20_000)
    archive = ArchiveWriter(tmp_path / "warc", INFO, 10**9)
    driven = new_crawl(corpus, archive=archive, crawl_batch_size=batch_size, leases=30)
    driven.start(*seeds)
    for lease in driven.dequeue():
        driven.fetch(lease)
    with files_no_larger_than(200_000), pytest.raises(InputError, match=r"^cannot write .*: File too large$"):
        driven.advance()
    archive.close()
    assert driven.ids == sorted(seeds, reverse=True)[: len(driven.ids)]
    assert 5 <= len(driven.ids) < 10
    assert_log_and_archive_agree(driven, tmp_path / "warc")


def test_a_file_that_cannot_be_finished(new_crawl: NewCrawl, tmp_path: Path) -> None:
    corpus = scored({"9": ["8"], "8": [], "7": []}, size=2000)
    archive = ArchiveWriter(tmp_path / "warc", INFO, max_bytes=1)
    driven = new_crawl(corpus, archive=archive, crawl_batch_size=1)
    driven.start("9")
    driven.batch()
    (tmp_path / "warc/crawl-00000.warc.gz/in the way").mkdir(parents=True)
    with pytest.raises(InputError, match=r"^cannot rename .*crawl-00000.warc.gz.open: "):
        driven.batch()
    assert [entry.id for entry in index(tmp_path / "warc")] == driven.ids == ["9", "8"]


def test_a_log_that_cannot_be_written(new_crawl: NewCrawl) -> None:
    driven = new_crawl(WEB)
    driven.start("1", "2")
    with files_no_larger_than(100), pytest.raises(InputError, match=r"^cannot write .*crawl.jsonl: File too large$"):
        driven.batch()
    assert driven.lines == []


def test_the_archive_is_told_what_the_log_says(new_crawl: NewCrawl, tmp_path: Path) -> None:
    archive = ArchiveWriter(tmp_path / "warc", INFO, 10**9)
    driven = new_crawl(WEB, archive=archive, crawl_batch_size=2, crawl_max_pages=4).run("1", "2")
    archive.close()
    assert_log_and_archive_agree(driven, tmp_path / "warc")
