"""Good real pages that the rules of SITE_RULES would lose, rule by rule.

    python -m benchmarks.site_rules [--out DIR]

All pages of ../shared/corpora/real-web are read as a crawl reads them, so that each site is recognised by its own
pages. Then each rule is asked of the URLs of all pages, and of the links of all pages to others that are not held. A
page is good if ../shared/scorers/prose.bin scores the text that ../shared/clueweb22-real has of it above 0.5. It has a
text of its own if more than half of its runs of five words are on no other page of its host.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.corpora import SHARED, HtmlPart, html_parts, model
from benchmarks.results import Figure, Result, Table, add_output, publish
from crawl4llm.base.html_tree import HtmlTree, html_links
from crawl4llm.base.jobs import Told, run_jobs
from crawl4llm.base.page_heads import page_head
from crawl4llm.base.processes import cores
from crawl4llm.base.software_marks import SOFTWARE, Mark
from crawl4llm.base.urls import host_of, normalise_url
from crawl4llm.parts.site_rules import LISTS
from crawl4llm.parts.site_rules.work import RulesOfSites, software_of
from crawl4llm.scoring import PageRater, influence
from crawl4llm.scoring.fasttext_scorer import FastTextScorer
from simulate.clueweb22.corpus import ClueWeb22Corpus

GOOD = 0.5
LABEL = "__label__hq"
MOST_LOST, MOST_NEW_LOST = 0.015, 0.002
"""Good pages lost of all good pages, at most, and of those that have a text of their own."""
RUN = 5
"""Words of a run, by which texts are compared."""


class Seen(NamedTuple):
    """What is read of a page."""

    url: str
    marks: tuple[Mark, ...]
    links: tuple[str, ...]


def read(part: HtmlPart) -> list[Seen]:
    """Return what is read of some pages."""
    return list(_seen(part))


def _seen(part: HtmlPart) -> Iterator[Seen]:
    for page in part.pages():
        tree, url = HtmlTree(page.html or b""), normalise_url(page.url)
        yield Seen(url, page_head(tree, url).marks, tuple(link.url for link in html_links(tree, url)))


class Texts:
    """The texts of the real pages, by URL."""

    def __init__(self) -> None:
        self._corpus = ClueWeb22Corpus(SHARED / "clueweb22-real")
        self._rater = PageRater(self._corpus, FastTextScorer(model(), LABEL), None)
        self._keys = {normalise_url(self._corpus.page(key).url): key for key in self._corpus.keys()}

    def good(self) -> set[str]:
        """Return the URLs of good pages."""
        scores = {url: influence(self._rater, key).score for url, key in self._keys.items()}
        return {url for url, score in scores.items() if score is not None and score > GOOD}

    def runs(self, url: str) -> set[int]:
        """Return hashes of the runs of five words of a page's text."""
        words = self._rater.text(self._keys[url]).split()
        return {hash(tuple(words[place : place + RUN])) for place in range(max(len(words) - RUN + 1, 1))}


def new_texts(texts: Texts, dropped: set[str], held: set[str]) -> set[str]:
    """Return the dropped pages most of whose text is on no page of their host that is not dropped."""
    by_host: dict[str, set[int]] = {host_of(url): set() for url in dropped}
    for url in held - dropped:
        if (runs := by_host.get(host_of(url))) is not None:
            runs.update(texts.runs(url))
    return {url for url in dropped if len((own := texts.runs(url)) - by_host[host_of(url)]) > len(own) / 2}


def measure() -> Result:
    """Return what is lost to each rule."""
    told = Told(" parts", label="reading")
    pages = [seen for _, some in run_jobs(read, html_parts(cores()), cores(), told) for seen in some]
    rules = RulesOfSites(software_of(LISTS))
    for page in sorted(pages):
        rules.sites.learn(page.url, page.marks)
    texts, held = Texts(), {page.url for page in pages}
    good = texts.good() & held
    links = {link for page in pages for link in page.links} - held
    on_sites = Counter(name for url in held for name, _ in rules.sites.software_of(url))
    good_on = Counter(name for url in good for name, _ in rules.sites.software_of(url))
    lost = {url: rule for url in held if (rule := rules.rule_of(url)) is not None}
    good_lost = Counter(rule for url, rule in lost.items() if url in good)
    new = Counter(lost[url] for url in new_texts(texts, good & lost.keys(), held))
    dropped = Counter(rule for url in links if (rule := rules.rule_of(url)) is not None)
    software: list[list[str | float | None]] = [["all", len(held), len(good)]]
    software += [[name, on_sites[name], good_on[name]] for name in SOFTWARE if on_sites[name]]
    of_pages = Counter(lost.values())
    counts = (of_pages, good_lost, new, dropped)
    by_rule: list[list[str | float | None]] = [["all", *(count.total() for count in counts)]]
    by_rule += [[rule, *(count[rule] for count in counts)] for rule in sorted(of_pages | dropped)]
    return Result(
        "site_rules",
        [f"{len(held):,} real pages (../shared/corpora/real-web), {len(good):,} good; {len(links):,} links"],
        [
            Table("Pages, and those on recognised sites", ["software", "pages", "good"], software),
            Table("Dropped by rule", ["rule", "pages", "good", "with a text of their own", "other links"], by_rule),
        ],
        [
            Figure("good pages lost, of all good pages", good_lost.total() / len(good), MOST_LOST),
            Figure("those with a text of their own", new.total() / len(good), MOST_NEW_LOST),
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_output(parser)
    publish(measure(), parser.parse_args())


if __name__ == "__main__":
    main()
