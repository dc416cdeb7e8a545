"""What a web is like: the figures that ``scrapy corpus demo --describe`` prints."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from statistics import fmean
from typing import Final
from urllib.parse import urlsplit

from crawl4llm.scoring.fasttext_scorer import FastTextScorer
from simulate.clueweb22.corpus import ClueWeb22Corpus
from simulate.demo.figures import share_between, spearman, tail_exponent
from simulate.demo.model import LABEL

SEEDS: Final = 100
_NEAR: Final = 0.8
_COMMON: Final = 5
"""A line that so many pages have says nothing about copies."""


@dataclass(frozen=True)
class Graph:
    """A web in memory, pages by number."""

    keys: Sequence[str]
    hosts: Sequence[str]
    languages: Sequence[str]
    texts: Sequence[str]
    influence: Sequence[float]
    outlinks: Sequence[Sequence[int]]
    """Those in the web."""
    dead_links: int
    """Links to pages that the web lacks."""

    def reachable(self, seeds: Iterable[int]) -> int:
        """How many pages can be reached by links from some, those included."""
        found = set(seeds)
        ahead = list(found)
        while ahead:
            for target in self.outlinks[ahead.pop()]:
                if target not in found:
                    found.add(target)
                    ahead.append(target)
        return len(found)


@dataclass(frozen=True)
class Traits:
    """Figures of a web. A correlation is None where it is undefined."""

    pages: int
    hosts: int
    languages: Mapping[str, int]
    links: int
    dead_links: int
    exact_duplicates: int
    near_duplicates: int
    without_text: int
    mean_influence: float
    above_half: float
    """Share of the pages with an influence score above 0.5."""
    host_share: float | None
    """Share of the variance of the influence scores that lies between hosts."""
    mean_indegree: float
    largest_indegree: int
    indegree_exponent: float | None
    influence_with_indegree: float | None
    """Spearman correlation, as the two below."""
    influence_with_outlinks: float | None
    """A page's influence with the mean influence of the pages it links to."""
    reachable: float
    """Share of the pages that can be reached from 100 random ones."""

    def lines(self) -> list[str]:
        """The figures, one a line."""
        languages = ", ".join(f"{language} {count:,}" for language, count in self.languages.items())
        rows = [
            ("pages", f"{self.pages:,}"),
            ("hosts", f"{self.hosts:,}"),
            ("languages", languages),
            ("links", f"{self.links:,} ({self.links / self.pages:.1f} a page)"),
            ("dead links", f"{self.dead_links:,} ({self.dead_links / max(self.links, 1):.1%})"),
            ("exact duplicates", f"{self.exact_duplicates:,} ({self.exact_duplicates / self.pages:.1%} of the pages)"),
            ("near duplicates", f"{self.near_duplicates:,} ({self.near_duplicates / self.pages:.1%} of the pages)"),
            ("pages without text", f"{self.without_text:,}"),
            ("mean influence", f"{self.mean_influence:.3f}"),
            ("influence above 0.5", f"{self.above_half:.1%} of the pages"),
            ("variance between hosts", f"{_figure(self.host_share)} of the variance of influence"),
            ("in-degree", f"{self.mean_indegree:.1f} on average, {self.largest_indegree:,} at most"),
            ("in-degree exponent", _figure(self.indegree_exponent)),
            ("influence ~ in-degree", f"{_figure(self.influence_with_indegree)} (Spearman)"),
            ("influence ~ outlinks'", f"{_figure(self.influence_with_outlinks)} (Spearman, with their mean)"),
            ("reachable", f"{self.reachable:.1%} of the pages from {SEEDS} random ones"),
        ]
        return [f"{name:<24}{value}" for name, value in rows]


def describe(root: Path, model: Path) -> Traits:
    """The traits of the web in a ClueWeb22 tree, influence being that of a fastText model.

    Works for any small tree: it is read into memory. Raises InputError for a tree or a model that cannot be used,
    PageError for a damaged record.
    """
    corpus = ClueWeb22Corpus(root)
    corpus.check()
    corpus.require("text", "outlinks")
    return traits_of(read_graph(corpus, FastTextScorer(model, LABEL)), corpus)


def traits_of(graph: Graph, corpus: ClueWeb22Corpus) -> Traits:
    """The traits of a web that was read into memory."""
    indegrees = _indegrees(graph)
    linking = [number for number, targets in enumerate(graph.outlinks) if targets]
    exact, near = _duplicates(graph.texts)
    links = sum(map(len, graph.outlinks)) + graph.dead_links
    numbers = {key: number for number, key in enumerate(graph.keys)}
    seeds = [numbers[key] for key in corpus.sample(min(SEEDS, len(corpus)), seed=0)]
    return Traits(
        pages=len(graph.keys),
        hosts=len(set(graph.hosts)),
        languages=dict(Counter(graph.languages).most_common()),
        links=links,
        dead_links=graph.dead_links,
        exact_duplicates=exact,
        near_duplicates=near,
        without_text=sum(not text for text in graph.texts),
        mean_influence=fmean(graph.influence),
        above_half=fmean(score > 0.5 for score in graph.influence),
        host_share=share_between(graph.hosts, graph.influence),
        mean_indegree=fmean(indegrees),
        largest_indegree=max(indegrees),
        indegree_exponent=tail_exponent(indegrees),
        influence_with_indegree=spearman(graph.influence, indegrees),
        influence_with_outlinks=spearman(
            [graph.influence[number] for number in linking],
            [fmean(graph.influence[target] for target in graph.outlinks[number]) for number in linking],
        ),
        reachable=graph.reachable(seeds) / len(graph.keys),
    )


def read_graph(corpus: ClueWeb22Corpus, scorer: FastTextScorer) -> Graph:
    """Read a web into memory and score its pages."""
    keys = list(corpus.keys())
    numbers = {key: number for number, key in enumerate(keys)}
    hosts, languages, texts, outlinks, dead_links = [], [], [], [], 0
    for key in keys:
        page = corpus.page(key)
        targets = [numbers.get(link.key or "") for link in page.outlinks or ()]
        hosts.append(urlsplit(page.url).netloc)
        languages.append(page.language or "")
        texts.append(corpus.text(key))
        outlinks.append([target for target in targets if target is not None])
        dead_links += targets.count(None)
    return Graph(keys, hosts, languages, texts, scorer.score(texts), outlinks, dead_links)


def _indegrees(graph: Graph) -> list[int]:
    counts = [0] * len(graph.keys)
    for targets in graph.outlinks:
        for target in targets:
            counts[target] += 1
    return counts


def _duplicates(texts: Sequence[str]) -> tuple[int, int]:
    """How many texts equal an earlier one, and how many others share most of their lines with an earlier one."""
    seen: set[bytes] = set()
    holders: defaultdict[bytes, list[int]] = defaultdict(list)
    exact = near = 0
    for number, text in enumerate(texts):
        if not text:
            continue
        digest = _digest(text)
        lines = {_digest(line) for line in text.splitlines()}
        if digest in seen:
            exact += 1
        else:
            seen.add(digest)
            shared = Counter(holder for line in lines if len(holders[line]) < _COMMON for holder in holders[line])
            near += any(count >= _NEAR * len(lines) for count in shared.values())
        for line in lines:
            holders[line].append(number)
    return exact, near


def _digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=8).digest()


def _figure(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.2f}"
