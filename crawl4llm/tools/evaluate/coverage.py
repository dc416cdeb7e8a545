"""Report sections along the crawl: coverage of the oracle set and its cost (Craw4LLM, figures 3b and 4). Also
crawl-then-select: the pages needed to match a run (section 3, table 1 and figure 3)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter

import numpy as np

from crawl4llm.tools.evaluate.documents import Floats, Integers
from crawl4llm.tools.evaluate.figures import Cell, Figure, Series, Table, band, line
from crawl4llm.tools.evaluate.runs import INFLUENCE, PRECISION, RECALL, Band, CrawledPages, points_along
from crawl4llm.tools.evaluate.survey import Group, Subject

_along = partial(Figure, x_label="pages crawled")


def figures(subject: Subject) -> list[Figure]:
    """Return the figures along the crawl, in the order of the report."""
    by_fetched = [
        replace(
            curve, x=np.mean([one.run.fetched[points_along(group.pages) - 1] for one in group.runs], axis=0).tolist()
        )
        for group, curve in zip(subject.groups, curves(subject, CrawledPages.recall), strict=True)
    ]
    visited = curves(subject, lambda crawled, at: crawled.run.visited[at - 1])
    fetched = curves(subject, lambda crawled, at: crawled.run.fetched[at - 1])
    counts = [replace(curve, name=f"{curve.name}: visited") for curve in visited]
    counts += [replace(curve, name=f"{curve.name}: fetched", kind="dashed", low=None, high=None) for curve in fetched]
    return [
        _along(
            id="precision",
            title="Precision of the oracle set",
            definition="The share of oracle pages among the pages crawled so far (Craw4LLM, figure 4, left). The "
            "upper bound crawls oracle pages until all are crawled. The bound from the seeds crawls those that the "
            "seeds can reach.",
            y_label="precision",
            series=[*curves(subject, CrawledPages.precision), *_bounds(subject, lambda at: at)],
        ),
        _along(
            id="recall",
            title="Recall of the oracle set",
            definition="The share of the oracle set that has been crawled (Craw4LLM, figure 4, right). Upper bounds as "
            "for precision.",
            y_label="recall",
            series=[*curves(subject, CrawledPages.recall), *_bounds(subject, lambda _: subject.oracle.size.value)],
        ),
        Figure(
            id="recall-by-fetched",
            title="Recall of the oracle set by pages fetched",
            definition="The same recall by documents fetched. A policy that looks ahead, such as influence, fetches "
            "every document that it visits; the others fetch only the pages that they crawl.",
            x_label="pages fetched",
            y_label="recall",
            series=by_fetched,
        ),
        _along(
            id="harvest-rate",
            title="Harvest rate",
            definition="Oracle pages crawled so far for each page fetched so far.",
            y_label="oracle pages a page fetched",
            series=curves(subject, CrawledPages.harvest_rate),
        ),
        _along(
            id="new-quality",
            title="New quality documents per 1,000 fetches",
            definition="New quality documents crawled so far, per 1,000 pages fetched so far. Such a page has an "
            "influence of the run's QUALITY_THRESHOLD or more; without that setting it is of the oracle set. Its text "
            "is new, as far as the run compared texts (KNOWN_TEXTS, NEAR_DUPLICATES).",
            y_label="documents per 1,000 fetches",
            series=curves(subject, CrawledPages.new_quality),
        ),
        _along(
            id="visited",
            title="Crawled, visited and fetched",
            definition="Documents visited (V of Algorithm 1) and documents fetched, by pages crawled (P) (Craw4LLM, "
            "figure 3b).",
            y_label="documents",
            series=sorted(counts, key=attrgetter("place")),
        ),
        _along(
            id="mean-influence",
            title="Mean influence",
            definition="Mean influence score of the pages crawled so far; pages without a score are left out.",
            y_label="mean influence",
            series=curves(subject, CrawledPages.mean_influence),
        ),
        _along(
            id="domains",
            title="Registrable domains covered",
            definition="Registrable domains of which a page has been crawled (Public Suffix List with its private "
            "part).",
            y_label="domains",
            series=curves(subject, lambda crawled, at: crawled.run.domains[at - 1]),
        ),
    ]


def curves(subject: Subject, of_run: Callable[[CrawledPages, Integers], Band | Floats | Integers]) -> list[Series]:
    """Return one curve a group of runs, over the pages crawled."""
    found = []
    for group in subject.groups:
        at = points_along(group.pages)
        found.append(joined(subject, group, at, [of_run(crawled, at) for crawled in group.runs]))
    return found


def joined(subject: Subject, group: Group, x: Floats | Integers, of_runs: Sequence[Band | Floats | Integers]) -> Series:
    """Return the curve of a group: the mean of its runs, with a band from the least to the greatest of them."""
    bands = [y for y in of_runs if isinstance(y, Band)]
    values = [np.asarray(y.value if isinstance(y, Band) else y, dtype=np.float64) for y in of_runs]
    if bands and subject.survey.sampled:
        low, high = [y.low for y in bands], [y.high for y in bands]
    elif len(of_runs) > 1:
        low = high = values
    else:
        return line(group.name, x, np.mean(values, axis=0), place=group.place)
    return band(group.name, x, Band(np.mean(values, axis=0), np.min(low, axis=0), np.max(high, axis=0)), group.place)


def longest(subject: Subject) -> Integers:
    """Return the points along the longest run."""
    return points_along(max(map(len, subject.runs)))


def _bounds(subject: Subject, share: Callable[[Integers], Integers | float]) -> list[Series]:
    """Return upper bounds of any crawl: crawling oracle pages only, from anywhere or as far as the seeds reach them.

    ``share`` gives what the oracle pages found are divided by.
    """
    at = longest(subject)
    bounds = [line("upper bound", at, np.minimum(at, subject.oracle.size.value) / share(at), "dashed", -1)]
    if subject.web is not None:
        oracle = subject.scores.influence >= subject.oracle.threshold.value
        reachable = np.count_nonzero(oracle & subject.web)
        bounds.append(line("upper bound from the seeds", at, np.minimum(at, reachable) / share(at), "dashed", -2))
    return bounds


# -- crawl-then-select: what the best pages of a larger crawl are worth (Craw4LLM, section 3 and figure 3) ------------

_POOLS = (1, 2, 4)
_POINTS = 60
_ROUNDING = 1e-12
"""Means of the same scores, summed in another order, may differ so much."""
_LEVELS = (0.25, 0.5, 1.0)
"""Shares of a run that others are to match: the whole of it can often not be matched by a run of the same length."""


def selections(subject: Subject) -> list[Figure | Table]:
    """Return figure and tables of crawl-then-select, in the order of the report."""
    n = _selected(subject)
    found: list[Figure | Table] = [_pools(subject, n), _table(subject, n)]
    return [*found, _match(subject)] if len(subject.groups) > 1 else found


def _selected(subject: Subject) -> int:
    """Return N, for all runs: the largest that leaves room for the largest pool in at least one run."""
    pages = [len(crawled) for crawled in subject.runs]
    shortest = min(pages)
    return shortest if max(pages) >= 2 * shortest else max(1, shortest // max(_POOLS))


def _pools(subject: Subject, n: int) -> Figure:
    series = []
    for group in subject.groups:
        pools = n - 1 + points_along(group.pages - n + 1, _POINTS)
        of_runs = [[mean_of_best(crawled.influence, int(pool), n) for pool in pools] for crawled in group.runs]
        series.append(joined(subject, group, pools, list(map(np.array, of_runs))))
    return _along(
        id="crawl-then-select",
        title=f"The best {n:,} pages of a larger crawl",
        definition=f"Mean influence of the {n:,} best pages among the pages crawled so far: the crawl-then-select "
        f"setting (Craw4LLM, section 3 and figure 3a, which compares models trained on them). The number is the "
        f"length of the shortest run, or a quarter of it if no run is twice as long.",
        y_label=f"mean influence of the best {n:,}",
        series=series,
    )


def _table(subject: Subject, n: int) -> Table:
    rows: list[list[Cell]] = []
    for crawled in subject.runs:
        rows += [_row(crawled, n, k) for k in _POOLS if k * n <= len(crawled)]
    return Table(
        id="selected",
        title=f"Crawl-then-select of {n:,} pages",
        definition=f"From the first k x {n:,} pages of a run, the {n:,} with the highest influence. Tokens a page "
        "fetched: tokens of the pages selected, divided by the pages fetched up to then.",
        columns=["Run", "k", "Pool", "Fetched", INFLUENCE, PRECISION, RECALL, "Tokens", "Tokens a page fetched"],
        rows=rows,
    )


def _row(crawled: CrawledPages, n: int, k: int) -> list[Cell]:
    pool = k * n
    chosen = best(crawled.influence, pool, n)
    fetched = int(crawled.run.fetched[pool - 1])
    tokens = int(crawled.tokens[chosen].sum())
    share = float(np.mean(crawled.influence[chosen] >= crawled.oracle.threshold.value))
    return [
        *(crawled.run.name, k, pool, fetched, mean_of_best(crawled.influence, pool, n), share),
        *(share * n / crawled.oracle.size.value, tokens, tokens / fetched),
    ]


def _match(subject: Subject) -> Table:
    rows: list[list[Cell]] = []
    for given in subject.runs:
        for level in _LEVELS:
            pages = max(1, int(level * len(given)))
            others = [other for other in subject.runs if other.run.group != given.run.group]
            same_seeds = [other for other in others if other.run.seeds == given.run.seeds]
            rows += [_match_row(given, pages, other) for other in same_seeds or others]
    return Table(
        id="match",
        title="Pages needed to match a run",
        definition="The pages that another run must crawl (Craw4LLM, figure 3). By mean influence: until its best "
        "pages match the mean influence of as many first pages of the given run. By oracle recall: until it has found "
        "as many oracle pages. Empty if its whole crawl is not enough. Only runs from the same seeds are compared, if "
        "there are any.",
        columns=[
            *("Run", "Pages", "Matched by", "Pages, by mean influence", "Times"),
            *("Pages, by oracle recall", "Times", "Fetched by the run", "Fetched, by oracle recall"),
        ],
        rows=rows,
    )


def _match_row(given: CrawledPages, pages: int, other: CrawledPages) -> list[Cell]:
    by_mean = pool_to_match(other.influence, pages, mean_of_best(given.influence, pages, pages))
    wanted = int(given.hits()[pages - 1])
    by_recall = pages_to_find(other.hits(), wanted)
    return [
        *(given.run.name, pages, other.run.name),
        *(by_mean, by_mean and by_mean / pages, by_recall, by_recall and by_recall / pages),
        *(int(given.run.fetched[pages - 1]), by_recall and int(other.run.fetched[by_recall - 1])),
    ]


def best(influence: Floats, pool: int, n: int) -> Integers:
    """Return the places in the crawl of the ``n`` pages with the highest influence among the first ``pool`` pages.

    Of equal ones the first crawled count; pages without a score come last.
    """
    scores = np.nan_to_num(influence[:pool], nan=-np.inf)
    return np.sort(np.argsort(-scores, kind="stable")[:n]).astype(np.int64)


def mean_of_best(influence: Floats, pool: int, n: int) -> float:
    """Return the mean influence of the pages that :func:`best` selects; a page without a score counts as 0."""
    return float(np.nan_to_num(influence[best(influence, pool, n)], nan=0.0).mean())


def pool_to_match(influence: Floats, n: int, mean: float) -> int | None:
    """Return how many pages must be crawled until the best ``n`` reach a mean influence; None if all do not.

    A larger pool is never worse, so that halving finds the smallest.
    """
    pools = range(n, len(influence) + 1)
    place = bisect_left(pools, mean - _ROUNDING, key=lambda pool: mean_of_best(influence, pool, n))
    return pools[place] if place < len(pools) else None


def pages_to_find(hits: Integers, wanted: int) -> int | None:
    """Return how many pages must be crawled until ``wanted`` oracle pages are found; None if all do not.

    ``hits`` are the oracle pages found so far, after each page.
    """
    if not wanted:
        return 0
    place = int(np.searchsorted(hits, wanted))
    return None if place == len(hits) else place + 1
