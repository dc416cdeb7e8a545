"""What links and pages say of themselves: SKIPPED_LINK_TYPES, NOINDEX, CRAWL_LANGUAGES."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from driven_crawl import Driven, JobCrawl, NotingPolicy, pages_at_once, scored
from graph_corpus import GraphCorpus
from said_web import RULES, said_web
from scrapy.settings import Settings

from crawl4llm.base.errors import InputError, Why
from crawl4llm.base.page_heads import PageHead
from crawl4llm.base.pages import Link, PageRecord
from crawl4llm.frontier import Entry
from crawl4llm.options import Options, read_options
from crawl4llm.parts import Parts, Rated, Refusal, open_parts
from crawl4llm.parts.budgets.work import BudgetsPart
from crawl4llm.policies import CrawledPage

PAGE = "https://www.site.example/page"
OTHER = "https://other.example/"


def parts_of(**settings: Any) -> Parts:
    return open_parts(Options(**settings)).begun(Counter())


def link(url: str, rel: str = "", language: str = "") -> Link:
    return Link(url, url, "", False, rel, language)


def leading(parts: Parts, page: Rated, links: Sequence[Link]) -> list[str]:
    for leads in parts.having("leads"):
        links = leads(page, links)
    return [one.url for one in links]


# -- link types ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rel", "url", "counted"),
    [
        ("", "https://site.example/a", None),
        ("nofollow", "https://docs.site.example/a", "links/nofollow_own"),
        ("nofollow", OTHER, None),
        ("nofollow ugc", OTHER, "links/ugc"),
        ("nofollow ugc", "https://site.example/a", "links/nofollow_own"),
        ("sponsored", "https://site.example/a", "links/sponsored"),
        ("sponsored", OTHER, "links/sponsored"),
    ],
)
def test_nofollow_holds_within_an_owner(rel: str, url: str, counted: str | None) -> None:
    parts = parts_of(skipped_link_types=("nofollow", "ugc", "sponsored"))
    assert leading(parts, Rated(0.5, key=PAGE, url=PAGE), [link(url, rel)]) == ([] if counted else [url])
    counts = next(iter(parts)).counts
    assert {key: count for key, count in counts.items() if count} == ({counted: 1} if counted else {})


def test_nofollow_elsewhere_is_a_type_of_its_own() -> None:
    parts = parts_of(skipped_link_types=("nofollow_elsewhere",))
    links = [link("https://site.example/a", "nofollow"), link(OTHER, "nofollow")]
    assert leading(parts, Rated(0.5, url=PAGE), links) == ["https://site.example/a"]


def test_types_that_are_not_known_are_refused() -> None:
    with pytest.raises(InputError, match=r"SKIPPED_LINK_TYPES .*known are: sponsored, ugc, nofollow"):
        read_options(Settings({"SKIPPED_LINK_TYPES": "ugc,nofolow"}))


# -- languages ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tag", "is_wanted"),
    [
        ("en", True),
        ("en-gb", True),
        ("en_us", True),
        ("de", False),
        ("de-en", False),
        ("eng", False),
        ("pt", False),
        ("pt-br", True),
        ("zh-hant-hk", False),
        ("x-default", True),
        ("", True),
        ("english", True),
        ("*", True),
    ],
)
def test_ranges_match_tags_by_basic_filtering(tag: str, is_wanted: bool) -> None:
    languages = read_options(Settings({"CRAWL_LANGUAGES": "EN, pt-BR"})).crawl_languages
    parts = parts_of(crawl_languages=languages)
    assert leading(parts, Rated(0.5, url=PAGE), [link(OTHER, language=tag)]) == [OTHER] * is_wanted


def test_a_head_tells_where_links_lead_that_say_nothing_themselves() -> None:
    urls = [f"https://site.example/{name}" for name in ("de/page", "en/page", "both", "page", "else")]
    head = PageHead(alternates=(*zip(("de", "en", "de", "x-default"), urls, strict=False), ("en", urls[2])))
    page = Rated(0.5, key=PAGE, url=PAGE, head=head)
    parts = parts_of(crawl_languages=("en",))
    assert leading(parts, page, [link(url, language="en") for url in urls]) == urls[1:]


@pytest.mark.parametrize("named_as", [PAGE, "https://www.site.example/canonical"])
def test_a_page_in_another_language_leads_to_its_translations_and_to_other_owners(named_as: str) -> None:
    english, german = "https://www.site.example/en/page", "https://www.site.example/de/other"
    head = PageHead(canonical="https://www.site.example/canonical", alternates=(("de", named_as), ("en", english)))
    parts = parts_of(crawl_languages=("en",))
    page = Rated(0.5, key=PAGE, url=PAGE, head=head)
    for see in parts.having("rated"):
        see(0, page)
    assert page.dropped is not None
    assert page.dropped == Refusal("language", Why("CRAWL_LANGUAGES en: hreflang de"))
    links = [link(german), link(english), link(OTHER), link(german + "2", language="en"), link(OTHER, language="fr")]
    assert leading(parts, page, links) == [english, OTHER, german + "2"]
    assert next(iter(parts)).counts["links/language"] == 2


def test_a_page_that_says_several_languages_of_itself_is_crawled() -> None:
    head = PageHead(alternates=(("de", PAGE), ("x-default", PAGE)))
    page = Rated(0.5, key=PAGE, url=PAGE, head=head)
    for see in parts_of(crawl_languages=("en",)).having("rated"):
        see(0, page)
    assert page.dropped is None


@pytest.mark.parametrize("given", ["e n", "en_GB", "englishlanguage", "*", "en-"])
def test_languages_that_are_none_are_refused(given: str) -> None:
    with pytest.raises(InputError, match=r"CRAWL_LANGUAGES .*a language must be written like en or pt-BR"):
        read_options(Settings({"CRAWL_LANGUAGES": given}))


# -- noindex ------------------------------------------------------------------------------------------------------


class Unindexed(GraphCorpus):
    """A graph in which documents whose key ends with ``n`` say noindex."""

    def page(self, key: str) -> PageRecord:
        return replace(super().page(key), noindex=key.endswith("n"))


def graph() -> Unindexed:
    """A seed, two pages that say noindex, what they alone lead to, and more."""
    links = {"5": ["9n", "8"], "9n": ["7", "8n"], "8n": ["6"], "8": ["4"], "7": [], "6": [], "4": ["3"], "3": []}
    return Unindexed(links, scored(links).texts)


class Hearing(NotingPolicy):
    """Notes what it hears of pages."""

    def crawled(self, page: CrawledPage) -> None:
        self.heard = {**getattr(self, "heard", {}), page.entry.key: page.influence}


@pytest.mark.parametrize(("noindex", "lines"), [("count", 6), ("archive", 8), ("drop", 6)])
def test_pages_with_noindex_do_not_count(noindex: str, lines: int, tmp_path: Path) -> None:
    driven = Driven(graph(), tmp_path, noindex=noindex, crawl_max_pages=6, crawl_batch_size=1)
    driven.take_policy(policy := Hearing(None, Options()))
    driven.run("5")
    assert len(driven.lines) == lines
    if noindex == "count":
        return
    indexed = [line["id"] for line in driven.lines if not line["id"].endswith("n")]
    assert sorted(indexed) == ["3", "4", "5", "6", "7", "8"], "links of the others are followed"
    assert [line["order"] for line in driven.lines] == list(range(lines))
    worth = {"5": 0.5, "9n": 0, "8": 0.8, "7": 0.7, "8n": 0, "4": 0.4, "6": 0.6, "3": 0.3}
    assert policy.heard == {key: worth[key] for key in worth if key != driven.ids[-1]}, "nobody hears of the last"
    figures = driven.figures
    assert figures["pages/crawled"] == lines
    if noindex == "archive":
        assert figures["pages/uncounted"] == 2
        assert {line["id"]: line["influence"] for line in driven.lines if line["noindex"]} == {"9n": 0.9, "8n": 0.8}
    else:
        assert figures["dropped/noindex"] == 2
        assert {(line["id"], line["rule"]) for line in driven.failures} == {
            ("9n", "NOINDEX drop"),
            ("8n", "NOINDEX drop"),
        }


def test_pages_with_noindex_earn_nothing() -> None:
    part = BudgetsPart(Options(url_budget=3))
    part.counts, part.shelf = Counter(), None  # type: ignore[assignment]
    part.begin()
    entry = Entry(PAGE, PAGE, 0.5, 1, "parent")
    for influence in (0.1, 0.1, 0.1):
        part.crawled(entry, Rated(influence))
    before = part.save(), part._budgets.left("site.example")
    part.crawled(entry, Rated(0.9, is_counted=False))
    assert (part.save(), part._budgets.left("site.example")) == before
    part.crawled(entry, Rated(0.9))
    assert part._budgets.left("site.example") > before[1]


@pytest.mark.parametrize("noindex", ["archive", "drop"])
def test_a_page_is_no_duplicate_of_one_that_does_not_count(noindex: str, tmp_path: Path) -> None:
    text = "0.5 " + " ".join(f"word{number}" for number in range(200))
    links = {"1": ["2n", "2", "3"], "2n": [], "2": [], "3": []}
    web = Unindexed(links, {"1": "0.5 the seed", "2n": text, "2": text, "3": text})
    given = {"noindex": noindex, "near_duplicates": "follow", "url_policy": "breadth_first"}
    driven = Driven(web, tmp_path, **given, crawl_batch_size=1).run("1")
    like = {line["id"]: line["near_duplicate_of"] for line in driven.lines}
    order = {line["id"]: line["order"] for line in driven.lines}
    assert like["2"] is None
    assert like["3"] == order["2"]


_FORMER = 25
"""N before it is raised by 35."""


def _without_visited(line: Mapping[str, Any]) -> dict[str, Any]:
    """A line without the number of documents visited by then."""
    return {name: value for name, value in line.items() if name != "visited"}


# -- stops --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "batch_size", "noindex"), [("link", 0, "archive"), ("link", 0, "drop"), ("parent_mean", 9, "drop")]
)
def test_a_crawl_that_is_killed_goes_on_as_if_it_was_not(
    policy: str, batch_size: int, noindex: str, tmp_path: Path
) -> None:
    """And one whose N is raised: in continuous order, whatever is dropped near the end."""
    web, draw = said_web(3, 200), random.Random(policy)
    seeds = web.sample(9, 3)
    options = {**RULES, "noindex": noindex, "url_policy": policy, "crawl_batch_size": batch_size}
    options |= {"crawl_max_pages": 60, "commit_interval_pages": 1, "commit_fsync": False}
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
    with pages_at_once(4), closing(JobCrawl(web, tmp_path / "whole", **options).run(*seeds)) as whole:
        expected, failures, figures = whole.lines, whole.failures, whole.figures
    finished, most = None, 60 if batch_size else _FORMER
    with pages_at_once(4):
        while most <= 60:
            given = {**options, "crawl_max_pages": most}
            with closing(JobCrawl(web, tmp_path / "killed", **given)) as driven:
                driven.start(*seeds)
                for lease in driven.crawl.unanswered():
                    driven.fetch(lease)
                if driven.crawl.can_advance:
                    driven.advance()
                for _ in range(draw.randrange(4 if batch_size else 12)):  # of the others a page is a batch
                    if not driven.crawl.finished:
                        driven.batch()
                finished = driven.crawl.finished
            most += 35 * bool(finished)
    assert driven.failures == failures
    assert driven.figures == figures
    assert list(map(_without_visited, driven.lines)) == list(map(_without_visited, expected))
    # No links were followed of the page that reached the former N when its line was written.
    counted = [line["order"] for line in expected if not line.get("noindex")]
    at_former = set() if batch_size else {counted[_FORMER - 1]}
    pairs = zip(driven.lines, expected, strict=True)
    assert {line["order"] for line, other in pairs if line["visited"] != other["visited"]} <= at_former
    assert sum(not line.get("noindex") for line in expected) == 60
    assert {line["reason"] for line in failures} >= {"language", *(["noindex"] if noindex == "drop" else [])}
