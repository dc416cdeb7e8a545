"""Crawl-then-select, and what it takes to match a run (Craw4LLM, section 3, table 1 and figure 3)."""

from __future__ import annotations

import numpy as np

from crawl4llm.tools.evaluate.figures import Cell, Figure, Table, line, number
from crawl4llm.tools.evaluate.measures import (
    best,
    mean_of_best,
    oracle_hits,
    oracle_share,
    pages_to_find,
    points_along,
    pool_to_match,
)
from crawl4llm.tools.evaluate.survey import CrawledPages, Subject

_POOLS = (1, 2, 4)
_POINTS = 60
_LEVELS = (0.25, 0.5, 1.0)
"""Shares of a run that others are to match: the whole of it can often not be matched by a run of the same length."""


def sections(subject: Subject) -> list[Figure | Table]:
    """Figure and tables, in the order of the report."""
    n = _selected(subject)
    found: list[Figure | Table] = [_pools(subject, n), _table(subject, n)]
    return [*found, _match(subject)] if len(subject.runs) > 1 else found


def _selected(subject: Subject) -> int:
    """N, for all runs: what leaves room for the largest pool in some run at least."""
    pages = [len(crawled) for crawled in subject.runs]
    shortest = min(pages)
    return shortest if max(pages) >= 2 * shortest else max(1, shortest // max(_POOLS))


def _pools(subject: Subject, n: int) -> Figure:
    series = []
    for crawled in subject.runs:
        pools = n - 1 + points_along(len(crawled) - n + 1, _POINTS)
        means = np.array([mean_of_best(crawled.influence, int(pool), n) for pool in pools])
        series.append(line(crawled.name, pools, means))
    return Figure(
        id="crawl-then-select",
        title=f"The best {n:,} pages of a larger crawl",
        definition=f"Mean influence of the {n:,} pages with the highest influence among the pages crawled so far: the "
        "crawl-then-select setting (Craw4LLM, section 3 and figure 3a, where models trained on them are compared). "
        "The number is that of the shortest run; a quarter of it where no run is twice as long.",
        x_label="pages crawled",
        y_label=f"mean influence of the best {n:,}",
        series=series,
    )


def _table(subject: Subject, n: int) -> Table:
    rows: list[list[Cell]] = []
    for crawled in subject.runs:
        rows += [_row(subject, crawled, n, k) for k in _POOLS if k * n <= len(crawled)]
    return Table(
        id="selected",
        title=f"Crawl-then-select of {n:,} pages",
        definition=f"From the first k x {n:,} pages of a run, the {n:,} with the highest influence. Tokens a page "
        "fetched: tokens of the pages selected, divided by the pages fetched up to then.",
        columns=[
            *("Run", "k", "Pool", "Fetched", "Mean influence", "Precision", "Recall", "Tokens", "Tokens a page fetched")
        ],
        rows=rows,
    )


def _row(subject: Subject, crawled: CrawledPages, n: int, k: int) -> list[Cell]:
    pool = k * n
    chosen = best(crawled.influence, pool, n)
    fetched = int(crawled.run.fetched[pool - 1])
    tokens = int(crawled.tokens[chosen].sum())
    share = oracle_share(crawled.influence, chosen, subject.oracle)
    return [
        *(crawled.name, k, pool, fetched, mean_of_best(crawled.influence, pool, n), share),
        *(number(share * n / subject.oracle.size.value), tokens, tokens / fetched),
    ]


def _match(subject: Subject) -> Table:
    rows: list[list[Cell]] = []
    for given in subject.runs:
        for level in _LEVELS:
            pages = max(1, int(level * len(given)))
            rows += [_match_row(subject, given, pages, other) for other in subject.runs if other is not given]
    return Table(
        id="match",
        title="Pages needed to match a run",
        definition="How many pages another run must crawl (Craw4LLM, figure 3) until its best pages have the mean "
        "influence of the given run's first pages, as many of them; and until it has found as many oracle pages. "
        "Empty where all that it crawled is not enough.",
        columns=[
            *("Run", "Pages", "Matched by", "Pages, by mean influence", "Times"),
            *("Pages, by oracle recall", "Times", "Fetched by the run", "Fetched, by oracle recall"),
        ],
        rows=rows,
    )


def _match_row(subject: Subject, given: CrawledPages, pages: int, other: CrawledPages) -> list[Cell]:
    by_mean = pool_to_match(other.influence, pages, mean_of_best(given.influence, pages, pages))
    wanted = int(oracle_hits(given.influence, subject.oracle)[pages - 1])
    by_recall = pages_to_find(oracle_hits(other.influence, subject.oracle), wanted)
    return [
        *(given.name, pages, other.name),
        *(by_mean, by_mean and by_mean / pages, by_recall, by_recall and by_recall / pages),
        *(int(given.run.fetched[pages - 1]), by_recall and int(other.run.fetched[by_recall - 1])),
    ]
