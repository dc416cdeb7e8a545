"""What a crawl tells its policy, and what it does with the new scores that the policy gives."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from driven_crawl import Driven, pages_at_once, scored
from graph_corpus import URL, GraphCorpus
from policy_helpers import Web

from crawl4llm.base.errors import InputError
from crawl4llm.base.pages import Link
from crawl4llm.frontier import Entry
from crawl4llm.policies import BasePolicy, Candidate, CrawledPage, Rating

NewCrawl = Callable[..., Driven]


class Backlinks(BasePolicy):
    """Scores by links seen so far, and notes the calls in their order."""

    name = "backlinks"
    reranks = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.calls: list[str] = []
        self.pages: list[CrawledPage] = []
        self._links: dict[str, int] = {}

    def crawled(self, page: CrawledPage) -> None:
        self.calls.append(f"crawled {page.entry.key}")
        self.pages.append(page)
        for link in page.links:
            if link.key is not None:
                self._links[link.key] = self._links.get(link.key, 0) + 1

    async def score(self, candidates: Sequence[Candidate]) -> list[Rating]:
        self.calls.append(f"score {' '.join(candidate.key for candidate in candidates)}".rstrip())
        return [Rating(float(self._links.get(candidate.key, 0))) for candidate in candidates]

    def reranked(self) -> Iterable[tuple[str, float]]:
        self.calls.append("reranked")
        return [(key, float(count)) for key, count in self._links.items()]

    def dequeued(self, entries: Sequence[Entry]) -> None:
        if entries:
            self.calls.append(f"dequeued {' '.join(entry.key for entry in entries)}")


class Ahead(Backlinks):
    """Counts as fetched what it scores."""

    looks_ahead = True


class NoNumber(Backlinks):
    """Its new scores are none."""

    def reranked(self) -> Iterable[tuple[str, float]]:
        return [(key, float("nan")) for key in self._links]


BACKLINKS = f"{__name__}.Backlinks"
WEB = scored(
    {"1": ["4", "3", None, "4"], "2": ["5", "1"], "3": ["5", "6"], "4": ["6", "gone"], "5": [], "6": ["7"], "7": []}
)


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


def policy_of(driven: Driven) -> Backlinks:
    assert isinstance(driven.crawl.policy, Backlinks)
    return driven.crawl.policy


def test_calls_come_in_the_order_of_the_crawl(new_crawl: NewCrawl) -> None:
    driven = new_crawl(WEB, crawl_batch_size=2, url_policy=BACKLINKS)
    driven.start("1", "2")
    driven.batch()
    driven.batch()
    assert policy_of(driven).calls == [
        *("score 1 2", "reranked", "dequeued 1 2"),
        *("crawled 1", "crawled 2", "score 4 3 5", "reranked", "dequeued 4 3"),
        *("crawled 4", "crawled 3", "score 6 gone", "reranked"),
    ]


def test_a_page_comes_with_all_that_is_known_of_it(new_crawl: NewCrawl) -> None:
    driven = new_crawl(WEB, crawl_batch_size=1, url_policy=BACKLINKS)
    driven.start("1")
    driven.batch()
    driven.batch()
    seed, four = policy_of(driven).pages
    assert seed.entry == Entry("1", f"{URL}1", 0.0, 0, None, attempts=1), "its URL is the page's own"
    assert four.entry == Entry("4", f"{URL}4", 2.0, 1, "1", attempts=1)
    assert (seed.influence, four.influence) == (0.1, 0.4)
    assert seed.links == [
        Link(f"{URL}{key}", key, f"link {number} of 1", False) for number, key in enumerate(["4", "3", None, "4"])
    ]


def test_influence_is_none_where_it_is_not_known(new_crawl: NewCrawl) -> None:
    driven = new_crawl(GraphCorpus({"a": ["b"], "b": []}, {"a": "no number", "b": "0.5"}), url_policy=BACKLINKS)
    driven.start("a")
    driven.batch()
    assert [page.influence for page in policy_of(driven).pages] == [None]


def test_a_policy_that_looks_ahead_is_told_too(new_crawl: NewCrawl) -> None:
    driven = new_crawl(WEB, crawl_batch_size=1, url_policy=f"{__name__}.Ahead").run("1")
    assert driven.crawl.policy.looks_ahead
    assert [page.entry.key for page in driven.crawl.policy.pages] == driven.ids
    assert [page.influence for page in driven.crawl.policy.pages] == [int(key) / 10 for key in driven.ids]
    assert [line["influence"] for line in driven.lines] == [int(key) / 10 for key in driven.ids], "not its own score"


def test_new_scores_change_the_order(new_crawl: NewCrawl) -> None:
    web = scored({"1": ["4", "3"], "2": ["5"], "3": ["6"], "4": ["6", "5"], "5": ["6"], "6": ["7"], "7": []})
    driven = new_crawl(web, crawl_batch_size=1, url_policy=BACKLINKS).run("1", "2")
    assert driven.ids == ["1", "2", "3", "4", "5", "6", "7"]
    assert [line["priority"] for line in driven.lines] == [0, 0, 1, 1, 2, 3, 1]
    assert driven.figures["frontier/reranked"] == 3


@pytest.mark.parametrize("batch_size", [0, 1, 3])
@pytest.mark.parametrize("slices", [1, 2, 100])
def test_slices_leave_no_mark(new_crawl: NewCrawl, batch_size: int, slices: int) -> None:
    whole = new_crawl(WEB, crawl_batch_size=batch_size, url_policy=BACKLINKS).run("1", "2")
    with pages_at_once(slices):
        again = new_crawl(WEB, crawl_batch_size=batch_size, url_policy=BACKLINKS).run("1", "2", shuffled_by=slices)
    assert again.lines == whole.lines


def test_pages_that_are_held_back_are_told_when_their_links_are_followed(new_crawl: NewCrawl) -> None:
    driven = new_crawl(WEB, crawl_max_pages=3, url_policy=BACKLINKS)
    driven.start("1", "2", "3")
    one, two, three = driven.dequeue()
    policy = policy_of(driven)
    policy.calls.clear()
    driven.fetch(one)
    driven.fetch(two)
    with pages_at_once(2):
        driven.advance()
        assert policy.calls == ["score", "reranked"]
        driven.crawl.failed(three, "timeout")
        driven.advance()
    assert policy.calls == ["score", "reranked", "crawled 1", "crawled 2", "score 4 5", "reranked"]


def test_pages_that_end_the_crawl_are_not_told(new_crawl: NewCrawl) -> None:
    driven = new_crawl(WEB, crawl_max_pages=3, crawl_batch_size=2, url_policy=BACKLINKS).run("1")
    assert driven.ids == ["1", "4", "3"]
    assert [page.entry.key for page in policy_of(driven).pages] == ["1"]


# -- scope ------------------------------------------------------------------------------------------------------------


SITES: dict[str, list[str | None]] = {
    "a.one.example/1": ["b.one.example/2", "two.example/1", None, "two.example/9", "gone.one.example/"],
    "b.one.example/2": ["one.example/3", "two.example/1"],
    "one.example/3": ["a.one.example/1"],
    "two.example/1": ["two.example/2", "one.example/3"],
    "two.example/2": [],
    "two.example/9": [],
}


def test_links_within_the_domain_of_their_page_are_followed(new_crawl: NewCrawl) -> None:
    web = Web(SITES, dict.fromkeys(SITES, "0.5"))
    driven = new_crawl(web, url_policy=BACKLINKS, crawl_scope="domain").run("a.one.example/1")
    assert driven.ids == ["a.one.example/1", "b.one.example/2", "one.example/3"]
    figures = driven.figures
    assert {key: count for key, count in figures.items() if key.startswith("links/")} == {
        "links/seen": 8,
        "links/new": 3,
        "links/without_key": 1,
        "links/off_scope": 3,
    }
    assert not any(key.startswith("two.example") for key in SITES if key in driven.crawl.visited)
    assert len(policy_of(driven).pages[0].links) == 5, "a policy is told of all links"


def test_each_seed_stays_in_its_own_domain(new_crawl: NewCrawl) -> None:
    web = Web(SITES, dict.fromkeys(SITES, "0.5"))
    driven = new_crawl(web, url_policy=BACKLINKS, crawl_scope="domain").run("a.one.example/1", "two.example/1")
    assert set(driven.ids) == SITES.keys() - {"two.example/9"}


def test_without_a_scope_the_whole_web_is_crawled(new_crawl: NewCrawl) -> None:
    driven = new_crawl(Web(SITES, dict.fromkeys(SITES, "0.5")), url_policy=BACKLINKS).run("a.one.example/1")
    assert set(driven.ids) == SITES.keys()
    assert "links/off_scope" not in driven.figures


# -- scores -----------------------------------------------------------------------------------------------------------


def test_a_new_score_that_is_no_number_stops_the_crawl(new_crawl: NewCrawl) -> None:
    driven = new_crawl(WEB, url_policy=f"{__name__}.NoNumber")
    driven.start("1")
    with pytest.raises(InputError, match=r"^URL_POLICY backlinks gave 4 the score nan$"):
        driven.batch()
