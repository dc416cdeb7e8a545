"""Owners and URL prefixes are fetched from as long as they have a budget."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from driven_crawl import Driven, JobCrawl
from graph_corpus import GraphCorpus
from hypothesis import given, strategies as st

from crawl4llm.base.domains import owner_of
from crawl4llm.base.pages import Link, PageRecord
from crawl4llm.base.reasons import NOT_HTML, OPT_OUT, ROBOTS
from crawl4llm.crawl.ends import FRONTIER_EMPTY
from crawl4llm.crawl.gate import Gate, layered
from crawl4llm.crawl.pieces import StoredPieces
from crawl4llm.frontier import Entry, Outcome, OwnerFrontier
from crawl4llm.frontier.aside import MemoryAside
from crawl4llm.frontier.opening import memory_frontier
from crawl4llm.frontier.store import Store
from crawl4llm.options import Options
from crawl4llm.parts import Parts, Rated
from crawl4llm.parts.budgets import BUDGETS_SPENT
from crawl4llm.parts.budgets.accounts import Account, Budgets, with_text
from crawl4llm.parts.budgets.linked_twice import LinkedTwice
from crawl4llm.parts.budgets.running_median import RunningMedian
from crawl4llm.parts.budgets.scopes import scopes_beside, scopes_of
from crawl4llm.parts.budgets.work import BudgetsPart
from crawl4llm.policies import Candidate, CrawledPage

SITE, MAZE = "http://site.example/", "http://maze.example/"


class Urls(GraphCorpus):
    """A graph whose keys are URLs."""

    def page(self, key: str) -> PageRecord:
        page = super().page(key)
        return replace(page, url=key, outlinks=[replace_url(link) for link in page.outlinks or ()])


def replace_url(link: Link) -> Link:
    return link._replace(url=link.key or "")


def web(pages: int = 60) -> GraphCorpus:
    """An honest site whose pages link to each other, one of which leads into an endless maze that scores as well; and a
    folder of the site that is worth nothing."""
    links: dict[str, list[str | None]] = {}
    texts: dict[str, str] = {}
    for number in range(pages):
        key = f"{SITE}{number}"
        links[key] = [f"{SITE}{(number + step) % pages}" for step in (1, 2, 3)]
        texts[key] = f"0.{50 + number % 7} text of {number}"
    links[f"{SITE}1"] += [MAZE, f"{SITE}poor/0"]
    for number in range(pages):
        links[f"{SITE}poor/{number}"] = [f"{SITE}poor/{other}" for other in range(pages)]
        texts[f"{SITE}poor/{number}"] = f"0.1 nothing {number}"
    for number in range(400):
        key = f"{MAZE}{number}/" if number else MAZE
        links[key] = [f"{MAZE}{child}/" for child in range(4 * number + 1, 4 * number + 5) if child < 400]
        texts[key] = f"0.{53 + number % 4} maze {number}"
    return Urls(links, texts)


def options(**others: Any) -> dict[str, Any]:
    return {"url_policy": "parent_first", "url_budget": 10, "crawl_batch_size": 0, **others}


def by_owner(ids: list[str]) -> dict[str, int]:
    """Pages crawled in the site, its poor folder, and the maze."""
    kinds = [key.rpartition("/")[0] if "poor" in key else owner_of(key) for key in ids]
    return {kind: kinds.count(kind) for kind in sorted(set(kinds))}


# -- accounts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "scopes"),
    [
        ("https://www.a.co.uk/", ["a.co.uk", "www.a.co.uk/"]),
        ("http://www.a.co.uk/x.html", ["a.co.uk", "www.a.co.uk/"]),
        ("http://a.example/x/y/", ["a.example", "a.example/", "a.example/x/", "a.example/x/y/"]),
        ("http://a.example/issue42", ["a.example", "a.example/", "a.example/issue#"]),
        (
            "http://a.example/forum/thread-5-page-2.html",
            ["a.example", "a.example/", "a.example/forum/", "a.example/forum/thread-#-page-#.html"],
        ),
        ("http://a.example/x/y/z/", ["a.example", "a.example/", "a.example/x/", "a.example/x/y/", "a.example/x/*/z"]),
        (
            "http://a.example//x/y/u7.html",
            ["a.example", "a.example/", "a.example//", "a.example//x/", "a.example/x/*/u#.html"],
        ),
        ("http://a.example/x/?page=2", ["a.example", "a.example/", "a.example/x/", "a.example/?page"]),
        ("http://a.example?page=/2/3/", ["a.example", "a.example/", "a.example/?page"]),
        ("http://a.example/x.php?b=1;a=2&b=3", ["a.example", "a.example/", "a.example/x.php?a&b"]),
        ("http://a.example/x.php/y?f[7]=1", ["a.example", "a.example/", "a.example/x.php/", "a.example/x.php?f[#]"]),
        ("http://a.example/x.html?print", ["a.example", "a.example/", "a.example/?"]),
        ("http://1.github.io:80/x/", ["1.github.io", "1.github.io:80/", "1.github.io:80/x/"]),
        ("clueweb22-en0000-00-00000", []),
    ],
)
def test_the_budgets_of_a_url(url: str, scopes: list[str]) -> None:
    assert scopes_of(url) == scopes


@given(st.lists(st.integers(0, 10**9), min_size=2, max_size=9, unique=True), st.sampled_from(["p", "replytocom", "t"]))
def test_the_query_of_each_post_is_no_budget_of_its_own(posts: list[int], name: str) -> None:
    by_value = {tuple(scopes_of(f"http://a.example/?{name}={post}")) for post in posts}
    by_path = {scopes_of(f"http://a.example/2031/{post}/title-{post}/?{name}={post}")[-1] for post in posts}
    assert len(by_value) == len(by_path) == 1
    assert {scopes_of(f"http://a.example/show.php?{name}={post}")[-1] for post in posts}.isdisjoint(by_path)
    assert len({scopes_of(f"http://a.example/shop/{post}/reviews/")[-1] for post in posts}) == 1


def test_a_form_has_a_bounded_name() -> None:
    query = "&".join(f"{'n' * 1000}{chr(97 + number)}{number}=1" for number in range(26))
    assert len(scopes_of(f"http://a.example/?{query}")[-1]) < 400
    assert len(scopes_of("http://a.example/?" + ";" * 100_000)[-1]) < 400


@pytest.mark.parametrize(
    ("page", "beside"),
    [
        ("http://a.example/?page=2", ["a.example/?page"]),
        ("http://b.a.example/x/y", ["b.a.example/", "b.a.example/x/"]),
        ("http://a.example/1/x", []),
        ("http://b.example/?page=2", []),
        (None, []),
    ],
)
def test_scopes_beside_are_of_the_same_owner(page: str | None, beside: list[str]) -> None:
    assert scopes_beside(scopes_of("http://a.example/1/2/3"), page) == beside
    assert scopes_beside([], page) == []


def spent(
    budgets: Budgets, scopes: list[str], *, good: str, linked: bool = False, new_text: bool = True, most: int = 200
) -> int:
    """Fetches until nothing is left; ``good``: the pages in their order, over and over, ``+`` if good."""
    for number in range(most):
        if budgets.exhausted(scopes):
            return number
        budgets.spend(scopes, seed=False)
        if linked:
            budgets.linked([str(number)])
        if new_text:
            budgets.earn(scopes, str(number), 0.9 if good[number % len(good)] == "+" else 0.1)
    return most


def test_what_is_earned() -> None:
    budgets = Budgets(10)
    for number in range(1000):
        budgets.earn([], str(number), 0.5)
    assert spent(budgets, ["poor"], good="-") == 10
    assert spent(budgets, ["a copy"], good="+", new_text=False) == 10
    assert spent(budgets, ["a maze"], good="+") == 60
    assert spent(budgets, ["poor, linked twice"], good="-", linked=True) == 10
    assert spent(budgets, ["a site"], good="+", linked=True) == 200
    budgets.spend(["a seed"], seed=True)
    assert spent(budgets, ["a seed"], good="+") == 200


def test_the_limit_grows_while_half_of_the_last_new_texts_are_good() -> None:
    budgets = Budgets(10)
    for number in range(1000):
        budgets.earn([], str(number), 0.5)
    assert spent(budgets, ["half of it good"], good="-+") == 60
    assert spent(budgets, ["good at first"], good="+" * 24 + "-" * 176) == 30
    assert spent(budgets, ["good, then not"], good="+" * 44 + "-" * 156) == 50
    assert spent(budgets, ["a third of it good"], good="--+") < 30


@pytest.mark.parametrize(("probabilities", "left"), [(False, 10), (True, 12)])
def test_a_probable_page_is_good_among_better_ones(probabilities: bool, left: int) -> None:
    budgets = Budgets(10, probabilities=probabilities)
    for number in range(100):
        budgets.earn([], str(number), 0.9)
    budgets.earn(["a.example"], "x", 0.51)
    assert budgets.left("a.example") == left
    budgets.earn(["b.example"], "x", 0.5)
    assert budgets.left("b.example") == 10


def test_a_list_earns_by_what_it_leads_to() -> None:
    budgets = Budgets(10)
    for number in range(100):
        budgets.earn([], str(number), 0.5)
    budgets.earn(["a.example", "a.example/1/"], "x", 0.9, ["a.example/?page"])
    budgets.earn(["a.example", "a.example/1/"], "y", 0.1, ["a.example/?page"])
    assert [budgets.left(scope) for scope in ("a.example", "a.example/1/", "a.example/?page")] == [12, 12, 12]


def test_a_good_prefix_outlives_bad_neighbours_and_they_do_not_live_on_it() -> None:
    budgets = Budgets(10)
    for number in range(1000):
        budgets.earn([], str(number), 0.5)
    good, bad = (scopes_of(f"http://a.example/{folder}/x/y") for folder in ("good", "bad"))
    assert spent(budgets, good, good="+-", most=2) == 2
    assert spent(budgets, bad, good="-") == 10
    assert spent(budgets, good, good="+", linked=True) == 200
    assert spent(budgets, bad, good="-") == 0
    assert spent(budgets, scopes_of("http://a.example/good/x/?print=1"), good="-") == 10


@given(st.lists(st.booleans(), max_size=40), st.integers(0, 3))
def test_an_account_knows_its_last_ten_texts(texts: list[bool], grown: int) -> None:
    account = Account(spent=30 + 10 * grown, grown=grown)
    for good in texts:
        account = account._replace(recent=with_text(account.recent, good=good))
    is_good = len(texts) >= 10 and sum(texts[-10:]) >= 5
    assert account.may_grow(10) == (is_good and grown < 3)
    assert not account._replace(spent=account.spent - 1).may_grow(10)
    assert not account._replace(trusted=True).may_grow(10)


@given(st.lists(st.sampled_from([-3.0, -0.0, 0.0, 0.25, 0.5, 0.75, 1.0, 7.0]), min_size=1))
def test_the_running_median_is_the_lower_median(numbers: list[float]) -> None:
    median, loaded = RunningMedian(), RunningMedian()
    for number in numbers:
        median.add(number)
    loaded.load(median.save())
    expected = statistics.median_low(numbers)
    for number in (-4.0, *numbers, 8.0):
        assert median.is_below(number) == loaded.is_below(number) == (number > expected)


def test_nothing_is_above_the_median_of_nothing() -> None:
    assert not RunningMedian().is_below(1.0)


def test_what_was_linked_to_twice_is_known_until_newer_ones_are_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawl4llm.parts.budgets.linked_twice._MOST", 500)
    keys = [f"http://a.example/{number}" for number in range(1700)]
    at_once = LinkedTwice()
    at_once.add(keys)
    kept: list[bool] = []
    for start in range(0, 1700, 170):  # each part by another process
        store = Store(tmp_path / "store", fsync=False)
        pieces = StoredPieces(store)
        known = LinkedTwice()
        known.keep_in(pieces)
        known.add(keys[start : start + 170])
        known.save()
        pieces.save()
        store.commit()
        store.close()
        kept = [key in known for key in keys]
    assert kept == [key in at_once for key in keys]
    assert sum(kept[:1000]) < 20
    assert all(kept[1000:])


# -- the frontier ---------------------------------------------------------------------------------------------------


class Budgeted(NamedTuple):
    """A frontier, and the part that says what is leased."""

    gate: Gate
    part: BudgetsPart
    budgets: Budgets
    owned: OwnerFrontier | None

    def lease_all(self) -> list[str]:
        """Take and archive one document after the other."""
        keys = []
        while leases := self.gate.lease(1):
            for lease in leases:
                keys.append(lease.entry.key)
                self.gate.settle(lease, Outcome.ARCHIVED)
                self.release(lease.entry)
        return keys

    def release(self, entry: Entry) -> None:
        if self.owned is not None:
            self.owned.owners.release(owner_of(entry.url), 0)


def budgeted(*, by_owners: bool) -> Budgeted:
    """Budgets of two fetches."""
    owned = memory_frontier(by_owners=True) if by_owners else None
    if owned is not None:
        owned.owners.tick(0)
    parts = Parts([BudgetsPart(Options(url_budget=2, crawl_batch_size=0))])
    gate = layered(memory_frontier() if owned is None else owned, owned, parts, MemoryAside(), sites=False).gate
    assert gate is not None
    parts = parts.begun(Counter(), gate)
    gate.ask(parts, lambda _entry, _refusal: None)
    (part,) = parts
    assert isinstance(part, BudgetsPart)
    return Budgeted(gate, part, part._budgets, owned)


@pytest.fixture(params=[False, True])
def frontier(request: pytest.FixtureRequest) -> Budgeted:
    return budgeted(by_owners=request.param)


def test_what_has_no_budget_is_set_aside_and_comes_back(frontier: Budgeted) -> None:
    keys = [f"http://a.example/x/{number}" for number in range(6)]
    frontier.gate.push(Entry(key, key, 0.9 - number / 10, 1, "p") for number, key in enumerate(keys))
    other = "http://b.example/"
    frontier.gate.push([Entry(other, other, 0.1, 1, "p")])
    assert frontier.lease_all() == [*keys[:2], other]
    assert (len(frontier.gate), frontier.gate.set_aside, frontier.gate.leased) == (0, 4, 0)
    for number in range(9):
        frontier.budgets.earn([], str(number), 0.5)
    frontier.part.crawled(Entry(keys[0], keys[0], 0.9, 1, "p", attempts=1), Rated(0.9))
    assert (len(frontier.gate), frontier.gate.set_aside) == (2, 2)
    assert frontier.lease_all() == keys[2:4]
    for worthless in (Rated(0.9, has_new_text=False), Rated(0.9, is_counted=False), Rated(None)):
        frontier.part.crawled(Entry(keys[1], keys[1], 0.9, 1, "p", attempts=1), worthless)
    assert frontier.lease_all() == []
    assert frontier.gate.set_aside == 2


def test_what_was_not_fetched_is_not_spent(frontier: Budgeted) -> None:
    keys = [f"http://a.example/x/{number}" for number in range(6)]
    frontier.gate.push(Entry(key, key, 0.9 - number / 10, 1, "p") for number, key in enumerate(keys))
    for reason, key in ((ROBOTS, keys[0]), (OPT_OUT, keys[1]), (NOT_HTML, keys[2])):
        (lease,) = frontier.gate.lease(1)
        assert lease.entry.key == key
        frontier.gate.settle(lease, Outcome.DROPPED, reason)
        frontier.release(lease.entry)
    (lease,) = frontier.gate.lease(1)
    assert frontier.gate.give_back(lease, attempted=True)
    frontier.release(lease.entry)
    (lease,) = frontier.gate.lease(1)
    assert (lease.entry.key, lease.entry.attempts) == (keys[3], 2)
    assert frontier.gate.lease(9) == []
    frontier.release(lease.entry)
    assert frontier.gate.lease(9) == []
    assert frontier.gate.set_aside == 2
    assert frontier.gate.give_back(lease, attempted=False)
    assert frontier.lease_all() == [keys[3]]
    assert frontier.gate.set_aside == 2


@pytest.mark.parametrize(
    ("source", "number", "fetched"), [("b.example", 5, 60), ("b.example", 4, 6), ("a.example", 9, 6)]
)
def test_what_a_page_elsewhere_lists_is_trusted(frontier: Budgeted, source: str, number: int, fetched: int) -> None:
    """Pages that are as good as they could be, none of them linked to twice."""
    for place in range(99):
        frontier.budgets.earn([], str(place), 0.5)
    urls = [f"http://a.example/{place}" for place in range(60)]
    page = f"http://{source}/list"
    new = [Candidate(url, url, 1, page) for url in urls[:number]]
    frontier.gate.push(Entry(url, url, 0.5, 1, page) for url in urls)
    found = 0
    for _ in range(60):
        for lease in frontier.gate.lease(1):
            found += 1
            frontier.gate.settle(lease, Outcome.ARCHIVED)
            frontier.release(lease.entry)
            frontier.part.crawled(lease.entry, Rated(0.9))
        if found == 6:  # by then all are set aside, and go on
            links = [Link(url, url, "", False) for url in urls]
            frontier.part.found(CrawledPage(Entry(page, page, 0.5, 0, None), 0.5, links[:number]), new)
    assert found == fetched


def test_an_owner_that_is_dropped_is_dropped_whole() -> None:
    frontier = budgeted(by_owners=True)
    keys = [f"http://a.example/x/{number}" for number in range(6)]
    frontier.gate.push(Entry(key, key, 0.9, 1, "p") for key in keys)
    assert frontier.lease_all() == keys[:2]
    frontier.gate.push([Entry("http://a.example/y", "http://a.example/y", 0.9, 1, "p")])
    dropped = frontier.gate.drop_owner("a.example", Outcome.DROPPED, OPT_OUT, 3)
    dropped += frontier.gate.drop_owner("a.example", Outcome.DROPPED, OPT_OUT, 3)
    assert sorted(entry.key for entry in dropped) == [*keys[2:], "http://a.example/y"]
    assert (len(frontier.gate), frontier.gate.set_aside) == (0, 0)
    assert frontier.gate.drop_owner("a.example", Outcome.DROPPED, OPT_OUT, 3) == []


# -- the crawl ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [0, 7])
def test_a_maze_starves_and_a_site_does_not(tmp_path: Path, batch_size: int) -> None:
    driven = Driven(web(), tmp_path, **options(crawl_batch_size=batch_size, crawl_max_pages=600)).run(f"{SITE}0")
    assert driven.crawl.finished == BUDGETS_SPENT
    crawled = by_owner(driven.ids)
    assert crawled == {"http://site.example/poor": 10, "maze.example": crawled["maze.example"], "site.example": 60}
    assert 30 < crawled["maze.example"] <= 60
    figures = driven.figures
    assert figures["parked/budget"] == figures["frontier/parked"] == driven.crawl.set_aside
    assert driven.crawl.balance.problem is None
    assert driven.crawl.balance.parked == driven.crawl.set_aside > 50
    without = tmp_path / "without"
    without.mkdir()
    plain = Driven(web(), without, **options(crawl_max_pages=600, url_budget=0)).run(f"{SITE}0")
    assert plain.crawl.finished == FRONTIER_EMPTY
    assert "parked/budget" not in plain.crawl.statistics()


@pytest.mark.parametrize("batch_size", [0, 7])
def test_a_crawl_that_is_killed_again_and_again_is_the_same(tmp_path: Path, batch_size: int) -> None:
    for name in ("whole", "parts"):
        (tmp_path / name).mkdir()
    kept = options(crawl_batch_size=batch_size, crawl_max_pages=600, commit_interval_pages=5, commit_fsync=False)
    whole = Driven(web(), tmp_path / "whole", **options(crawl_batch_size=batch_size, crawl_max_pages=600))
    whole.run(f"{SITE}0")
    parts = 0
    while parts < 100:
        parts += 1
        part = JobCrawl(web(), tmp_path / "parts", **kept)
        in_flight = part.crawl.unanswered() if part.job.state.crawl else []
        part.start(f"{SITE}0")
        for _ in range(19):  # the last ones are in no commit
            in_flight += part.dequeue()
            if in_flight:
                part.fetch(in_flight.pop(0))
            if part.crawl.can_advance:
                part.advance()
        assert part.crawl.balance.problem is None
        finished, lines, aside = part.crawl.finished, part.lines, part.crawl.set_aside
        part.close()
        if finished:
            break
    assert parts > 3
    assert finished == BUDGETS_SPENT
    assert lines == whole.lines
    assert aside == whole.crawl.set_aside
