"""The traits of the demo web: its figures, for tests of what it is like."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from statistics import correlation, fmean
from typing import NamedTuple
from urllib.parse import urlsplit

import numpy as np

from crawl4llm.scoring.fasttext_scorer import FastTextScorer
from simulate.clueweb22.corpus import ClueWeb22Corpus
from simulate.demo.text import clean_text
from simulate.demo.web import Web

Traits = dict[str, int | float | None]  # figures by their names; a correlation is None where it is undefined


class Graph(NamedTuple):
    """A web in memory, pages by number."""

    hosts: Sequence[str]
    languages: Sequence[str]
    texts: Sequence[str]
    influence: Sequence[float]
    outlinks: Sequence[Sequence[int]]  # those in the web
    dead_links: int  # links to pages that the web lacks


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
    return Graph(hosts, languages, texts, scorer.score(texts), outlinks, dead_links)


def planned_graph(web: Web, scorer: FastTextScorer) -> Graph:
    """Score the pages of a planned web, which need not be written to files."""
    sites = [web.sites[page.site] for page in web.pages]
    texts = [clean_text(web.blocks(page)) for page in web.pages]
    targets = [[link.target for link, _ in links.in_order()] for links in web.links]
    return Graph(
        [urlsplit(page.url).netloc for page in web.pages],
        [site.language for site in sites],
        texts,
        scorer.score(texts),
        [[target for target in found if target is not None] for found in targets],
        sum(found.count(None) for found in targets),
    )


def traits_of(graph: Graph) -> Traits:
    """Return the traits of a web that was read into memory."""
    pages, influence = len(graph.texts), graph.influence
    counts = Counter(target for targets in graph.outlinks for target in targets)
    indegrees = [counts[number] for number in range(pages)]
    linking = [number for number, targets in enumerate(graph.outlinks) if targets]
    linked = [fmean(influence[target] for target in graph.outlinks[number]) for number in linking]
    texts = list(filter(None, graph.texts))
    return {
        "pages": pages,
        "hosts": len(set(graph.hosts)),
        **{f"pages in {language}": count for language, count in Counter(graph.languages).most_common()},
        "pages without text": pages - len(texts),
        "pages with the text of another": len(texts) - len(set(texts)),
        "links": sum(indegrees) + graph.dead_links,
        "dead links": graph.dead_links,
        "mean influence": fmean(influence),
        "its variance between hosts, share": share_between(graph.hosts, influence),
        "mean in-degree": fmean(indegrees),
        "largest in-degree": max(indegrees),
        "in-degree exponent": tail_exponent(indegrees),
        "influence ~ in-degree, Spearman": spearman(influence, indegrees),
        "influence ~ mean of outlinks', Spearman": spearman([influence[number] for number in linking], linked),
    }


def spearman(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Return Spearman's rank correlation, ties having their mean rank; None where one side is constant."""
    if len(set(left)) < 2 or len(set(right)) < 2:
        return None
    return correlation(_ranks(left), _ranks(right))


def _ranks(values: Sequence[float]) -> list[int]:
    """Return twice the mean ranks."""
    ordered = sorted(values)
    return [bisect_left(ordered, value) + bisect_right(ordered, value) for value in values]


def tail_exponent(values: Sequence[int]) -> float | None:
    """Return the exponent of a power law in the tail of the values, by maximum likelihood.

    Source: Clauset, Shalizi and Newman 2009, Power-law distributions in empirical data, equation 3.7; the tail is the
    largest fifth of the values. None where it has no spread.
    """
    tail = sorted(values, reverse=True)[: len(values) // 5]
    if not tail or tail[0] == tail[-1]:
        return None
    return 1 + len(tail) / sum(math.log(value / (tail[-1] - 0.5)) for value in tail)


def share_between(groups: Sequence[Hashable], values: Sequence[float]) -> float | None:
    """Return the share of the values' variance that lies between groups; None where there is no variance."""
    members: defaultdict[Hashable, list[float]] = defaultdict(list)
    for group, value in zip(groups, values, strict=True):
        members[group].append(value)
    total, means = np.var(values), {group: fmean(inside) for group, inside in members.items()}
    return float(np.var([means[group] for group in groups]) / total) if total else None
