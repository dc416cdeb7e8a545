"""Correlations over the pages of the corpus (Craw4LLM, figures 2 and 5)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from crawl4llm.base.reductions import reduced
from crawl4llm.tools.evaluate.documents import CONFIDENCE, Floats, Integers
from crawl4llm.tools.evaluate.figures import Cell, Figure, Series, Table, floats
from crawl4llm.tools.evaluate.survey import Subject


class Correlation(NamedTuple):
    """Spearman's rank correlation of ``pairs`` pairs with its 95% confidence interval.

    The interval is that of Bonett and Wright 2000, for a sample of a larger population.
    """

    value: float | None
    low: float | None
    high: float | None
    pairs: int
    undefined: str | None = None
    """Why there is no value."""


_SUMS = """
WITH known AS (SELECT x + 0 AS x, y + 0 AS y FROM given WHERE isfinite(x) AND isfinite(y)),
ranked AS (
    SELECT
        2 * rank() OVER of_x + count(*) OVER (of_x RANGE BETWEEN CURRENT ROW AND CURRENT ROW) - 1 AS x,
        2 * rank() OVER of_y + count(*) OVER (of_y RANGE BETWEEN CURRENT ROW AND CURRENT ROW) - 1 AS y
    FROM known WINDOW of_x AS (ORDER BY x), of_y AS (ORDER BY y)
)
SELECT count(*), sum(x::HUGEINT * x), sum(y::HUGEINT * y), sum(x::HUGEINT * y) FROM ranked
"""
"""Pairs, and sums over them of the products of twice their mid-ranks, which are whole numbers: no order of adding
changes them. x + 0 is 0 for -0."""


def rank_correlation(x: Floats, y: Floats) -> Correlation:
    """Return the correlation of the pairs in which both are numbers; they are ranked on disk."""
    ((pairs, xx, yy, xy),) = reduced(_SUMS, {"x": x, "y": y})
    if pairs < 3:
        return Correlation(None, None, None, pairs, "fewer than three pages have both")
    mean_part = pairs * (pairs + 1) ** 2
    x_spread, y_spread = xx - mean_part, yy - mean_part
    if not x_spread or not y_spread:
        return Correlation(None, None, None, pairs, "one of the two is the same for all pages")
    value = (xy - mean_part) / math.sqrt(x_spread * y_spread)
    if abs(value) >= 1 or pairs <= 3:
        return Correlation(value, None, None, pairs)
    reach = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * np.sqrt((1 + value**2 / 2) / (pairs - 3))
    low, high = np.tanh(np.arctanh(value) - reach), np.tanh(np.arctanh(value) + reach)
    return Correlation(value, float(low), float(high), pairs)


PAGERANK_DAMPING = 0.85
"""Damping of figure 2, which the paper does not give: the usual value (Page et al. 1999)."""

_POINTS = 3000
"""Pages shown in a plot."""
_SECOND_NEIGHBOURS = 50_000
"""Pages whose second neighbours are looked at; a random draw of larger corpora, as the paper has it."""


@dataclass(frozen=True)
class Pair:
    """Two numbers of each page, with the texts about their correlation."""

    id: str
    names: tuple[str, str]
    """Labels of the axes x and y."""
    values: tuple[Floats, Floats]
    source: str = ""
    """Whose figure it is."""
    published: float | None = None
    x_log: bool = False
    y_log: bool = False

    @cached_property
    def correlation(self) -> Correlation:
        """The correlation over the pages that have both."""
        return rank_correlation(*self.values)


def sections(subject: Subject, scorers: Sequence[tuple[str, Floats]]) -> list[Figure | Table]:
    """Return a table of all correlations, and a plot of each. ``scorers``: names and scores of two."""
    pairs = pairs_of(subject)
    if scorers:
        (x_name, x), (y_name, y) = scorers
        surveyed = subject.survey.surveyed
        pairs.append(Pair("scorers", (x_name, y_name), (x[:surveyed], y[:surveyed])))
    return [_table(pairs), *map(_plot, pairs)]


def pairs_of(subject: Subject) -> list[Pair]:
    """Return the pairs of numbers to correlate, as far as they are known."""
    surveyed, graph = subject.survey.surveyed, subject.graph
    if subject.backlinks is None:
        return []
    influence, indegree = subject.scores.influence[:surveyed], subject.backlinks[:surveyed]
    names, values = ("in-degree", "influence"), (indegree, influence)
    pairs = [Pair("influence-indegree", names, values, "Craw4LLM, figure 2a", -0.11, x_log=True)]
    if graph is None:
        return pairs
    rank = graph.pagerank(PAGERANK_DAMPING)
    drawn = _drawn(surveyed, _SECOND_NEIGHBOURS)
    first = influence, graph.mean_of_neighbours(influence)
    second = influence[drawn], graph.mean_of_second_neighbours(influence, drawn)
    names, values = ("in-degree", "PageRank"), (indegree, rank)
    hops = [("influence", f"mean influence of {n}-hop outlinks") for n in (1, 2)]
    return [
        *pairs,
        Pair("pagerank-indegree", names, values, "Craw4LLM, figure 2b", 0.88, x_log=True, y_log=True),
        Pair("influence-pagerank", ("PageRank", "influence"), (rank, influence), x_log=True),
        Pair("influence-1-hop", hops[0], first, "Craw4LLM, figure 5a", 0.61),
        Pair("influence-2-hop", hops[1], second, "Craw4LLM, figure 5b", 0.60),
    ]


def _drawn(count: int, most: int) -> Integers:
    """Return some places of ``count``, in order: all, or as many at random."""
    return np.sort(np.random.default_rng(0).choice(count, most, replace=False)) if count > most else np.arange(count)


def _table(pairs: Sequence[Pair]) -> Table:
    rows: list[list[Cell]] = []
    for pair in pairs:
        *numbers, why = pair.correlation
        rows.append([f"{pair.names[1]} with {pair.names[0]}", *numbers, pair.published, pair.source or None, why])
    return Table(
        id="correlations",
        title="Correlations",
        definition="Spearman's rank correlation over the pages that have both numbers. Its 95% interval (Bonett and "
        "Wright 2000) is that of a larger web of this kind. In-degree: links to a page that the corpus records, else "
        f"those between its documents. PageRank of the links between documents, damping {PAGERANK_DAMPING}. 1- and "
        "2-hop outlinks: documents one link away, and documents exactly two links away. Published: on ClueWeb22-B or "
        "-A.",
        columns=["Of", "Spearman", "Low", "High", "Pages", "Published", "Where", "Undefined because"],
        rows=rows,
    )


def _plot(pair: Pair) -> Figure:
    value, pairs = pair.correlation.value, pair.correlation.pairs
    drawn = _drawn(pairs, _POINTS)
    x, y = pair.values
    shown = np.flatnonzero(np.isfinite(x) & np.isfinite(y))[drawn]
    told = f"undefined: {pair.correlation.undefined}" if value is None else f"{value:.3f}"
    return Figure(
        id=f"correlation-{pair.id}",
        title=f"Correlation of {pair.names[1]} with {pair.names[0]}",
        definition=f"{pair.source}{'. ' if pair.source else ''}Each point is a page, {len(drawn):,} of {pairs:,}. "
        f"Spearman correlation {told}.",
        x_label=pair.names[0],
        y_label=pair.names[1],
        series=[Series("pages", floats(x[shown]), floats(y[shown]), kind="points")],
        x_log=pair.x_log,
        y_log=pair.y_log,
    )
