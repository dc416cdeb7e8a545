"""Policies that go by the links and pages seen so far, on crawls that can be followed by hand."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np
import pytest
from policy_helpers import Told, page

from crawl4llm.base.domains import domain_of, domain_of_url
from crawl4llm.base.urls import host_of
from crawl4llm.policies import host, pagerank
from crawl4llm.policies._seen_graph import SeenGraph
from crawl4llm.policies.pagerank import Policy as PageRank

# -- breadth_first, backlink ------------------------------------------------------------------------------------------


def test_breadth_first_is_the_order_of_discovery() -> None:
    told = Told(url_policy="breadth_first")
    told.seeds("s", "t")
    told.pages(page("s", 0.5, "c", "a"), page("t", 0.5, "b", "c"))
    told.pages(page("c", 0.9, "d"))
    assert sorted(told.scores, key=lambda key: -told.scores[key]) == ["a", "b", "d"]


def test_backlink_counts_the_pages_that_link() -> None:
    told = Told(url_policy="backlink")
    told.seeds("s", "t", "u")
    told.pages(page("s", 0.5, "a", "b", "a", "a"))
    assert told.scores == {"a": 1, "b": 1, "t": 0, "u": 0}
    told.pages(page("t", 0.5, "b", "c", "u", "s"), scope=["s"])
    assert told.scores == {"a": 1, "b": 2, "c": 1, "u": 1}


def test_links_to_a_document_that_has_left_the_frontier_say_nothing() -> None:
    told = Told(url_policy="backlink")
    told.seeds("s")
    told.pages(page("s", 0.5, "a", "b"))
    told.pages(page("a", 0.5, "s", "a", "b"), scope=["s"])
    assert told.scores == {"b": 2}
    assert b'"s"' not in told.policy.save()


# -- parents ----------------------------------------------------------------------------------------------------------


def parents(policy: str) -> Told:
    told = Told(url_policy=policy)
    told.seeds("s", "t", "u")
    told.pages(page("s", 0.5, "a", "b"), page("t", 0.75, "a", "c", "u"))
    return told


def test_parent_first_is_the_influence_of_the_first_page() -> None:
    told = parents("parent_first")
    assert told.scores == {"a": 0.5, "b": 0.5, "c": 0.75, "u": 1.0}
    told.pages(page("b", 0.125, "a", "c", "d"))
    assert told.scores == {"a": 0.5, "c": 0.75, "d": 0.125, "u": 1.0}


def test_parent_min_is_that_of_the_least_page() -> None:
    told = parents("parent_min")
    assert told.scores == {"a": 0.5, "b": 0.5, "c": 0.75, "u": 0.75}
    told.pages(page("b", 0.125, "a", "c", "d"), page("u", 1.0, "d", "c"))
    assert told.scores == {"a": 0.125, "c": 0.125, "d": 0.125}


def test_parent_mean_is_that_of_all_pages() -> None:
    told = parents("parent_mean")
    assert told.scores == {"a": 0.625, "b": 0.5, "c": 0.75, "u": 0.75}
    told.pages(page("b", 0.25, "a", "c", "d"), page("u", 1.0, "d", "c"))
    assert told.scores == {"a": 0.5, "c": pytest.approx(2 / 3), "d": 0.625}


@pytest.mark.parametrize("policy", ["parent_first", "parent_min", "parent_mean"])
def test_a_parent_without_influence_counts_as_the_mean_of_those_before(policy: str) -> None:
    told = Told(url_policy=policy)
    told.seeds("r", "s", "t", "u")
    told.pages(page("r", None, "a"))
    assert told.scores["a"] == 0.5, "nothing is known yet"
    told.pages(page("s", 0.2, "b"), page("t", 0.4, "c"), page("u", None, "d"))
    assert told.scores["d"] == pytest.approx(0.3)


# -- pagerank ---------------------------------------------------------------------------------------------------------


def paper_ranks(links: Sequence[tuple[str, Sequence[str]]], documents: Sequence[str], d: float) -> dict[str, float]:
    """IR by the paper's equations, solved as one dense system; a crawled page without links links to all."""
    place = {key: number for number, key in enumerate(documents)}
    matrix = np.eye(len(documents))
    for source, targets in links:
        for target in targets or documents:
            matrix[place[target], place[source]] -= d / len(targets or documents)
    return dict(zip(documents, np.linalg.solve(matrix, np.full(len(documents), 1 - d)).tolist(), strict=True))


@pytest.mark.parametrize("damping", [0.0, 0.5, 0.9])
def test_pagerank_solves_the_equations_of_the_paper(damping: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pagerank, "DAMPING", damping)
    monkeypatch.setattr(pagerank, "INTERVAL", 5)
    draw = random.Random(3)
    keys = [f"{number}" for number in range(30)]
    links = [(key, draw.sample(keys, draw.choice([0, 1, 3, 8]))) for key in keys[:20]]
    told = Told(url_policy="pagerank")
    told.seeds(*keys)
    for key, targets in links:
        told.pages(page(key, None, *targets), scope=keys)
    expected = paper_ranks(links, keys, damping)
    assert told.scores == pytest.approx({key: expected[key] for key in keys[20:]}, rel=1e-6)


def test_pagerank_between_two_solutions() -> None:
    """A page passes its IR on when it is crawled: 0.1 of a seed, 0.9 of that to its links in equal parts."""
    told = Told(url_policy="pagerank")
    told.seeds("s")
    assert told.scores == {"s": pytest.approx(0.1)}
    told.pages(page("s", None, "a", "b"))
    assert told.scores == {"a": pytest.approx(0.145), "b": pytest.approx(0.145)}
    told.pages(page("a", None, "b", "c", "c"))
    assert told.scores == {"b": pytest.approx(0.145 + 0.06525), "c": pytest.approx(0.1 + 0.06525)}


def test_pagerank_ranks_all_anew_after_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pagerank, "INTERVAL", 3)
    told = Told(url_policy="pagerank")
    told.seeds("s", "t")
    links = [("s", ["a", "b"]), ("t", ["s"]), ("b", ["s"])]
    for key, targets in links:
        told.pages(page(key, None, *targets), scope=["s", "t"])
    assert told.scores == {"a": pytest.approx(paper_ranks(links, ["s", "t", "a", "b"], 0.9)["a"], rel=1e-6)}


def test_pagerank_of_documents_that_look_alike_is_the_same_to_the_last_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that their order is that of their keys."""
    monkeypatch.setattr(pagerank, "INTERVAL", 2)
    told = Told(url_policy="pagerank")
    told.seeds("s", "t")
    many = [f"{number}" for number in range(200)]
    told.pages(page("s", None, *many))
    told.pages(page("t", None, *reversed(many)))
    assert len(set(told.scores.values())) == 1


def test_pagerank_of_a_large_graph_adds_up() -> None:
    graph = SeenGraph()
    draw = random.Random(0)
    for number in range(5000):
        graph.add(str(number), {str(min(int(draw.paretovariate(0.5)), 20_000)) for _ in range(20)})
    told = Told(url_policy="pagerank")
    assert isinstance(told.policy, PageRank)
    told.policy._graph = graph
    told.policy._start_ranks()
    told.policy._solve()
    crawled = sum(told.policy._ranks[number] for number in graph.pages)
    assert sum(told.policy._ranks) == pytest.approx(0.1 * len(graph) + 0.9 * crawled), (
        "pages pass on 0.9 of what they have"
    )


# -- the graph that was seen ------------------------------------------------------------------------------------------


def test_the_seen_graph_knows_what_links_where() -> None:
    graph = SeenGraph()
    assert graph.add("b", ["c", "a"]) == 0
    assert graph.add("a", []) == 2
    assert graph.add("c", ["b"]) == 1
    assert [graph.key(number) for number in range(len(graph))] == ["b", "c", "a"]
    assert [list(graph.targets(number)) for number in range(3)] == [[1, 2], [0], []]
    assert [ends.tolist() for ends in graph.links()] == [[0, 0, 1], [1, 2, 0]]
    again = SeenGraph.restored(graph.dump())
    assert again.dump() == graph.dump()
    assert list(again.targets(again.number("c"))) == [0]
    assert [ends.tolist() for ends in SeenGraph().links()] == [[], []]


# -- host -------------------------------------------------------------------------------------------------------------


def shrunken(total: float, pages: int, towards: float) -> float:
    return (total + 5 * towards) / (pages + 5)


def test_a_host_shrinks_towards_its_domain_and_that_towards_all() -> None:
    told = Told(url_policy="host")
    told.seeds("a.site.example/s", "other.example/s")
    told.pages(page("a.site.example/s", 0.9, "a.site.example/1", "b.site.example/1", "new.example/1"))
    everything = shrunken(0.9, 1, 0.5)
    domain = shrunken(0.9, 1, everything)
    assert told.scores == pytest.approx(
        {
            "a.site.example/1": shrunken(0.9, 1, domain) + 0.2 / math.sqrt(2),
            "b.site.example/1": domain + 0.2,
            "new.example/1": everything + 0.2,
            "other.example/s": 1.0,
        }
    )


def test_a_hosts_documents_are_ranked_anew_when_its_score_has_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "EXPLORATION", 0.0)
    told = Told(url_policy="host")
    told.seeds("one.example/s", "two.example/s", "two.example/t")
    told.pages(page("one.example/s", 0.5, "one.example/a", "two.example/a"))
    assert told.scores["one.example/a"] == told.scores["two.example/a"] == pytest.approx(0.5)
    told.pages(page("two.example/s", 0.509, "two.example/b"))
    assert told.scores["two.example/a"] == told.scores["two.example/b"] == pytest.approx(0.5), "it has hardly moved"
    told.pages(page("two.example/t", 1.0, "one.example/b"))
    assert told.scores["two.example/a"] == told.scores["two.example/b"] > 0.6
    assert told.scores["one.example/a"] == told.scores["one.example/b"] == pytest.approx(0.5), "not looked at"


def test_documents_that_left_are_forgotten_by_their_host() -> None:
    told = Told(url_policy="host")
    told.seeds("one.example/s")
    told.pages(page("one.example/s", 0.9, *(f"one.example/{number}" for number in range(9))))
    for number in range(9):
        told.pages(page(f"one.example/{number}", 0.1), scope=["one.example/s"])
    assert b"one.example/" not in told.policy.save()


def test_a_page_without_influence_says_nothing_of_its_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "EXPLORATION", 0.0)
    told = Told(url_policy="host")
    told.seeds("one.example/s")
    told.pages(page("one.example/s", None, "one.example/a"))
    assert told.scores == {"one.example/a": 0.5}


# -- hosts and domains ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "host", "domain"),
    [
        ("http://www.news.example.co.uk/a", "www.news.example.co.uk", "example.co.uk"),
        ("https://ann.github.io/x", "ann.github.io", "ann.github.io"),
        ("https://docs.ann.github.io:8080/x", "docs.ann.github.io", "ann.github.io"),
        ("https://github.io/", "github.io", "github.io"),
        ("http://USER:pw@Example.ORG", "example.org", "example.org"),
        ("http://10.0.0.1/x", "10.0.0.1", "10.0.0.1"),
        ("http://[::1]/x", "::1", "::1"),
        ("http://a.b.unlisted/x", "a.b.unlisted", "b.unlisted"),
        ("http://localhost/", "localhost", "localhost"),
        ("http://[broken/", "", ""),
        ("mailto:a@example.org", "", ""),
        ("", "", ""),
    ],
)
def test_hosts_and_domains(url: str, host: str, domain: str) -> None:
    assert host_of(url) == host
    assert domain_of(host) == domain_of_url(url) == domain
