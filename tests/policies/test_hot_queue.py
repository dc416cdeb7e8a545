"""The hot queue of Cho et al., around any policy; and scores of two classes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from driven_crawl import Driven
from graph_corpus import GraphCorpus
from hypothesis import given, strategies as st
from policy_helpers import Web, new_crawl

from crawl4llm.policies._ordering import kept, lifted, original

ON_TOPIC = "0.5" + " cheese" * 10
OFF_TOPIC = "0.5" + " cheese" * 9


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[Path]:
    """Folders that are not there yet."""
    return (tmp_path / str(number) for number in range(99))


def crawl(
    corpus: GraphCorpus, folder: Path, *seeds: str, policy: str = "breadth_first", topic: tuple[str, ...] = ("cheese",)
) -> Driven:
    """A crawl in batches of one page."""
    driven = new_crawl(corpus, folder, url_policy=policy, hot_queue_topic=topic, crawl_batch_size=1).run(*seeds)
    driven.close()
    return driven


def test_documents_within_three_links_of_a_page_on_the_topic_come_first(folders: Iterator[Path]) -> None:
    links = {"s": ["x", "t", "y"], "t": ["a"], "a": ["b"], "b": ["c", "y"], "c": ["d"], "d": ["e"]}
    links |= {key: [] for key in "xye"}
    web = GraphCorpus(links, dict.fromkeys(links, OFF_TOPIC) | {"t": ON_TOPIC})
    assert crawl(web, next(folders), "s").ids == [*"sxt", *"abc", *"yde"]
    assert crawl(web, next(folders), "s", topic=("wine",)).ids == [*"sxtyabcde"]


def test_a_word_of_the_topic_in_the_title_is_enough(folders: Iterator[Path]) -> None:
    web = GraphCorpus({"s": ["x", "a"], "x": [], "a": []}, {"s": "0.5 bread"})
    html = {"s": b"<html><head><title>Bread &amp; Cheese</title></head><body>bread</body>"}
    web._html = lambda key: html.get(key, b"")  # type: ignore[method-assign]
    driven = crawl(web, next(folders), "s")
    assert [line["priority"] > 2.0**128 for line in driven.lines] == [False, True, True]


def test_documents_whose_url_or_anchor_names_the_topic_come_first(folders: Iterator[Path]) -> None:
    links: dict[str, list[str | None]] = {
        "s.example": ["b.example/x", "a.example/old_cheese%20shop", "c.example/Cheese", "d.example/cheeses"],
    }
    links |= {str(key): [] for key in links["s.example"]}
    web = Web(links, dict.fromkeys(links, OFF_TOPIC))
    ids = crawl(web, next(folders), "s.example").ids
    assert [key[0] for key in ids] == ["s", "a", "c", "b", "d"], "whole words, in whatever case"
    ids = crawl(web, next(folders), "s.example", topic=("cheese shop", "link 3 of s.example")).ids
    assert [key[0] for key in ids] == ["s", "a", "d", "b", "c"], "phrases, in URL or anchor"


def test_each_class_is_ordered_by_the_policy(folders: Iterator[Path]) -> None:
    scores = {"s": 0.5, "cold": 0.9, "colder": 0.8, "t": 0.3, "hot1": 0.1, "hot2": 0.2}
    links: dict[str, list[str]] = {key: [] for key in scores} | {"s": ["cold", "colder", "t"], "t": ["hot1", "hot2"]}
    texts = {key: f"{score}" for key, score in scores.items()} | {"t": f"0.3{' cheese' * 10}"}
    web = GraphCorpus(links, texts)
    assert crawl(web, next(folders), "s", "t", policy="influence").ids == ["s", "t", "hot2", "hot1", "cold", "colder"]
    driven = crawl(web, next(folders), "s", "t", policy="influence")
    assert [line["influence"] for line in driven.lines] == [scores[key] for key in driven.ids], "not the lifted score"


def test_the_class_is_decided_when_a_document_is_discovered(folders: Iterator[Path]) -> None:
    """As in the paper's algorithm: that a page on the topic links to a queued document too does not make it hot."""
    links: dict[str, list[str]] = {"s": ["y", "x", "t"], "t": ["x", "a"], "x": [], "y": [], "a": []}
    web = GraphCorpus(links, dict.fromkeys(links, OFF_TOPIC) | {"t": ON_TOPIC})
    assert crawl(web, next(folders), "s", "t").ids == ["s", "t", "a", "y", "x"]


def test_distance_follows_links_that_were_seen_before(folders: Iterator[Path]) -> None:
    """A page on the topic that links to a page crawled before brings what that links to nearer."""
    links: dict[str, list[str]] = {
        "s": ["p", "t"],
        "p": ["q"],
        "t": ["p"],
        "q": ["r", "x"],
        "r": ["z"],
        "x": [],
        "z": [],
    }
    web = GraphCorpus(links, dict.fromkeys(links, OFF_TOPIC) | {"t": ON_TOPIC})
    driven = crawl(web, next(folders), "s")
    hot = [line["id"] for line in driven.lines if line["priority"] > 2.0**128]
    assert hot == ["r", "x"], "t links to p, which links to q, which links to them"


def test_new_scores_stay_in_their_class(folders: Iterator[Path]) -> None:
    links: dict[str, list[str]] = {"s": ["a", "b", "t"], "t": ["h", "i"], "u": ["i", "b"], "v": ["b"], "a": [], "b": []}
    links |= {"h": [], "i": []}
    web = GraphCorpus(links, dict.fromkeys(links, OFF_TOPIC) | {"t": ON_TOPIC})
    assert crawl(web, next(folders), "s", "t", "u", "v", policy="backlink").ids == [*"stuv", *"ih", *"ba"]


finite = st.floats(allow_nan=False, allow_infinity=False)
usual = st.one_of(
    st.just(0.0),
    st.floats(2.0**-128, 2.0**128, exclude_min=True),
    st.floats(-(2.0**128), -(2.0**-128), exclude_max=True),
)


@given(finite, finite)
def test_lifted_scores_are_above_all_others(one: float, other: float) -> None:
    assert lifted(one) > kept(other)
    assert lifted(one) < float("inf")


@given(usual, usual)
def test_scores_keep_order_and_bits(one: float, other: float) -> None:
    assert kept(one) == original(kept(one)) == one
    assert original(lifted(one)) == one
    assert (lifted(one) < lifted(other)) == (one < other)


@given(finite, finite)
def test_scores_beyond_the_bounds_are_not_put_in_a_wrong_order(one: float, other: float) -> None:
    one, other = min(one, other), max(one, other)
    assert lifted(one) <= lifted(other)
    assert kept(one) <= kept(other)


def test_neighbouring_scores_stay_apart() -> None:
    assert lifted(0.1) < lifted(0.1 + 2**-56)
    assert lifted(-0.0) == lifted(0.0)


@pytest.mark.parametrize("score", [float("inf"), float("-inf"), float("nan")])
def test_what_is_no_score_stays_none(score: float) -> None:
    assert str(lifted(score)) == str(kept(score)) == str(score)
