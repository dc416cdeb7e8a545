"""The demo web: what it holds and what it is like."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest
from demo_helpers import gain
from demo_traits import (
    Graph,
    Traits,
    planned_graph,
    read_graph,
    share_between,
    spearman,
    tail_exponent,
    traits_of,
)
from lxml import html as lxml_html

from crawl4llm.base.pages import PageRecord
from crawl4llm.scoring.fasttext_scorer import FastTextScorer
from crawl4llm.scoring.text import EXTRACTORS, extract_text
from simulate import demo
from simulate.clueweb22.corpus import ClueWeb22Corpus
from simulate.demo import DemoPaths, build_demo, train_model
from simulate.demo.web import Web

pytestmark = pytest.mark.slow
PAGES, HOSTS = 3000, 100


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> DemoPaths:
    return build_demo(tmp_path_factory.mktemp("demo"), pages=PAGES, hosts=HOSTS, seed=3, progress=False)


@pytest.fixture(scope="module")
def corpus(paths: DemoPaths) -> ClueWeb22Corpus:
    return ClueWeb22Corpus(paths.corpus)


@pytest.fixture(scope="module")
def pages(corpus: ClueWeb22Corpus) -> dict[str, PageRecord]:
    """All pages by key."""
    return {key: corpus.page(key) for key in list(corpus.keys())}


@pytest.fixture(scope="module")
def graph(paths: DemoPaths, corpus: ClueWeb22Corpus) -> Graph:
    return read_graph(corpus, FastTextScorer(paths.model, "__label__hq"))


@pytest.fixture(scope="module")
def traits(graph: Graph) -> Traits:
    return traits_of(graph)


# -- what it holds ----------------------------------------------------------------------------------------------------


def test_all_kinds_are_held_of_all_pages(corpus: ClueWeb22Corpus, pages: dict[str, PageRecord]) -> None:
    corpus.check()
    corpus.require("text", "html", "outlinks", "inlinks")
    assert len(pages) == PAGES
    assert {key[10:12] for key in pages} == {"en", "de"}


def test_every_page_has_a_url_of_its_own_on_a_reserved_name(pages: dict[str, PageRecord]) -> None:
    assert len({page.url for page in pages.values()}) == PAGES
    hosts = {urlsplit(page.url).hostname or "" for page in pages.values()}
    assert len(hosts) == HOSTS
    assert all(re.fullmatch(r"([a-z0-9-]+\.)+(example|test)", host) for host in hosts)


def test_language_of_page_and_id_agree(pages: dict[str, PageRecord]) -> None:
    for key, page in pages.items():
        assert page.language == key[10:12]
        assert f'<html lang="{page.language}">'.encode() in (page.html or b"")


def test_links_of_the_html_are_those_of_the_record(corpus: ClueWeb22Corpus, pages: dict[str, PageRecord]) -> None:
    for key in corpus.sample(300, seed=1):
        page = pages[key]
        tree = lxml_html.document_fromstring((page.html or b"").decode())
        found = [
            (urljoin(page.url, a.get("href")), a.text_content(), bool(a.xpath("ancestor::header|ancestor::footer")))
            for a in tree.iter("a")
        ]
        assert found == [(link.url, link.anchor, link.boilerplate) for link in page.outlinks or []]
        assert len({link.url for link in page.outlinks or []}) == len(found)


def test_inlinks_are_the_outlinks_turned_round(corpus: ClueWeb22Corpus, pages: dict[str, PageRecord]) -> None:
    outward, inward = Counter[tuple[str | None, ...]](), Counter[tuple[str | None, ...]]()
    for key, page in pages.items():
        outward.update((key, link.key, link.anchor) for link in page.outlinks or [] if link.key)
        inward.update((link.key, key, link.anchor) for link in corpus.inlinks(key))
    assert outward == inward


def test_link_targets_have_the_url_of_their_page(pages: dict[str, PageRecord]) -> None:
    urls = {page.url for page in pages.values()}
    for page in pages.values():
        for link in page.outlinks or []:
            assert link.url == pages[link.key].url if link.key else link.url not in urls


def test_text_is_what_trafilatura_finds(corpus: ClueWeb22Corpus) -> None:
    overlaps = []
    for key in corpus.sample(300, seed=2):
        extracted = _words(extract_text(corpus.html(key), EXTRACTORS["trafilatura"]))
        held = _words(corpus.text(key))
        total = sum(extracted.values()) + sum(held.values())
        overlaps.append(2 * sum((extracted & held).values()) / total if total else 1)
    assert sum(overlap > 0.99 for overlap in overlaps) > 0.85 * len(overlaps)
    assert sum(overlaps) > 0.95 * len(overlaps)


def _words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text.lower()))


def test_pages_of_every_sort(corpus: ClueWeb22Corpus, pages: dict[str, PageRecord]) -> None:
    assert sum("/calendar/" in page.url for page in pages.values()) > 10
    words = [len(corpus.text(key).split()) for key in pages]
    assert 100 < sum(words) / PAGES < 500
    assert sum(count < 40 for count in words) > 0.02 * PAGES, "thin pages"
    hosts = {urlsplit(page.url).hostname for page in pages.values()}
    dead = [link.url for page in pages.values() for link in page.outlinks or [] if link.key is None]
    within = sum(urlsplit(url).hostname in hosts for url in dead)
    assert 0.1 * len(dead) < within < 0.5 * len(dead), "dead links are within the web's hosts, and beyond"


def test_months_are_a_chain(pages: dict[str, PageRecord]) -> None:
    months = {key: page for key, page in pages.items() if "/calendar/" in page.url}
    within = [[link for link in page.outlinks or [] if link.key in months] for page in months.values()]
    assert {len(links) for links in within} <= {1, 2, 3}, "the one before, the next and, in the menu, the newest"
    assert any(len(links) == 2 for links in within)


# -- what it is like --------------------------------------------------------------------------------------------------


def test_traits(traits: Traits) -> None:
    check_traits(traits)
    assert (traits["pages"], traits["hosts"]) == (PAGES, HOSTS)


def check_traits(traits: Traits, tolerance: float = 0.09) -> None:
    """What holds for a web of any seed."""
    figures = {name: value for name, value in traits.items() if value is not None}
    assert len(figures) == len(traits)
    pages = figures["pages"]
    assert figures["pages in en"] > 0.8 * pages
    assert figures["pages in de"] > 0.03 * pages
    assert figures["pages with the text of another"] > 0.01 * pages
    assert 0 < figures["pages without text"] < 0.02 * pages
    assert 0.05 < figures["dead links"] / figures["links"] < 0.2
    assert 0.1 < figures["mean influence"] < 0.3
    assert 0.15 < figures["its variance between hosts, share"] < 0.5
    assert 1.8 < figures["in-degree exponent"] < 3.2
    assert figures["largest in-degree"] > 10 * figures["mean in-degree"]
    assert figures["influence ~ in-degree, Spearman"] == pytest.approx(-0.1, abs=tolerance)
    assert figures["influence ~ mean of outlinks', Spearman"] == pytest.approx(0.6, abs=tolerance)


def test_most_pages_are_in_reach(graph: Graph) -> None:
    found = set(range(0, PAGES, PAGES // 100))
    ahead = list(found)
    while ahead:
        new = set(graph.outlinks[ahead.pop()]) - found
        found |= new
        ahead += new
    assert len(found) > 0.85 * PAGES


def test_near_duplicates(corpus: ClueWeb22Corpus) -> None:
    """Copies that differ in their last paragraph."""
    texts = {corpus.text(key) for key in corpus.keys()}
    cut = Counter(text.rpartition("\n")[0] for text in texts if text.count("\n") > 2)
    assert sum(count - 1 for count in cut.values()) > 0.005 * PAGES


def test_scores_are_spread(graph: Graph) -> None:
    tenths = Counter(min(int(score * 10), 9) for score in graph.influence)
    assert all(tenths[tenth] > 0.01 * PAGES for tenth in range(10))


@pytest.mark.parametrize("seed", [0, 1])
def test_a_crawl_by_influence_beats_a_random_one(graph: Graph, seed: int) -> None:
    assert gain(graph, seed) > 2.0


def test_a_web_is_as_it_was_planned(paths: DemoPaths, traits: Traits) -> None:
    planned = planned_graph(Web(PAGES, HOSTS, 3), FastTextScorer(paths.model, "__label__hq"))
    assert traits_of(planned) == pytest.approx(traits)


def test_traits_at_full_size(tmp_path: Path) -> None:
    """Planned, and not written to files."""
    train_model(tmp_path / "model.bin", 0)
    graph = planned_graph(Web(demo.PAGES, demo.HOSTS, 0), FastTextScorer(tmp_path / "model.bin", "__label__hq"))
    check_traits(traits_of(graph), tolerance=0.07)
    assert min(gain(graph, number) for number in range(3)) > 2.2


# -- figures ----------------------------------------------------------------------------------------------------------


def test_spearman() -> None:
    assert spearman([1, 2, 3, 4], [10, 20, 30, 400]) == pytest.approx(1)
    assert spearman([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1)
    assert spearman([1, 2, 2, 3], [1, 3, 2, 4]) == pytest.approx(0.9486832980505138), "as scipy.stats.spearmanr has it"
    assert spearman([1, 1, 1], [1, 2, 3]) is None


def test_tail_exponent() -> None:
    degrees = [int(0.5 + 9.5 * (1 - (i + 0.5) / 1000) ** (-1 / 1.5)) for i in range(1000)]
    assert tail_exponent([*degrees, *[1] * 4000]) == pytest.approx(2.5, abs=0.05)
    assert tail_exponent([3] * 100) is None


def test_share_between() -> None:
    assert share_between("aabb", [1, 1, 3, 3]) == 1
    assert share_between("abab", [1, 1, 3, 3]) == 0
    assert share_between("ab", [1, 1]) is None
