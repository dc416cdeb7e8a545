"""Along the crawl: how much of the oracle set each run has found, and at what cost (Craw4LLM, figures 3b and 4)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crawl4llm.tools.evaluate.documents import Floats, Integers
from crawl4llm.tools.evaluate.figures import Figure, Series, band, line
from crawl4llm.tools.evaluate.measures import Band, harvest_rate, mean_so_far, points_along, precision, recall
from crawl4llm.tools.evaluate.survey import CrawledPages, Subject

CRAWLED, FETCHED = "pages crawled", "pages fetched"


def figures(subject: Subject) -> list[Figure]:
    """The figures, in the order of the report."""
    return [
        _precision(subject),
        _recall(subject),
        _recall_by_fetched(subject),
        _harvest(subject),
        _counts(subject),
        _mean_influence(subject),
        _domains(subject),
    ]


def _curves(subject: Subject, of_run: Callable[[CrawledPages, Integers], Band]) -> list[Series]:
    """One curve a run over the pages crawled."""
    curves = []
    for crawled in subject.runs:
        at = points_along(len(crawled))
        curves.append(band(crawled.name, at, of_run(crawled, at), subject.survey.sampled))
    return curves


def _bounds(subject: Subject, share: Callable[[Integers], Floats | float]) -> list[Series]:
    """What no crawl can exceed: crawling oracle pages only, from anywhere or as far as the seeds can reach them.

    ``share`` gives what the oracle pages found are divided by.
    """
    at = points_along(max(len(crawled) for crawled in subject.runs))
    size = subject.oracle.size.value
    bounds = [line("upper bound", at, np.minimum(at, size) / share(at), "dashed")]
    if subject.web is not None:
        oracle = subject.scores.influence >= subject.oracle.threshold.value
        reachable = np.count_nonzero(oracle & subject.web)
        bounds.append(line("upper bound from the seeds", at, np.minimum(at, reachable) / share(at), "dashed"))
    return bounds


def _precision(subject: Subject) -> Figure:
    curves = _curves(subject, lambda crawled, at: precision(crawled.influence, subject.oracle, at))
    return Figure(
        id="precision",
        title="Precision of the oracle set",
        definition="The share of oracle pages among the pages crawled so far (Craw4LLM, figure 4, left). The upper "
        "bound crawls oracle pages as long as there are any; the one from the seeds, those that the seeds can reach.",
        x_label=CRAWLED,
        y_label="precision",
        series=[*curves, *_bounds(subject, lambda at: at.astype(np.float64))],
    )


def _recall(subject: Subject) -> Figure:
    curves = _curves(subject, lambda crawled, at: recall(crawled.influence, subject.oracle, at))
    return Figure(
        id="recall",
        title="Recall of the oracle set",
        definition="The share of the oracle set that has been crawled (Craw4LLM, figure 4, right). Upper bounds as for "
        "precision.",
        x_label=CRAWLED,
        y_label="recall",
        series=[*curves, *_bounds(subject, lambda _: subject.oracle.size.value)],
    )


def _recall_by_fetched(subject: Subject) -> Figure:
    series = []
    for crawled in subject.runs:
        at = points_along(len(crawled))
        found = recall(crawled.influence, subject.oracle, at)
        series.append(band(crawled.name, crawled.run.fetched[at - 1], found, subject.survey.sampled))
    return Figure(
        id="recall-by-fetched",
        title="Recall of the oracle set by pages fetched",
        definition="The same recall against what it took: a policy that looks ahead, such as influence, fetches every "
        "document that it visits, the others only what they crawl.",
        x_label=FETCHED,
        y_label="recall",
        series=series,
    )


def _harvest(subject: Subject) -> Figure:
    curves = _curves(
        subject, lambda crawled, at: harvest_rate(crawled.influence, subject.oracle, crawled.run.fetched, at)
    )
    return Figure(
        id="harvest-rate",
        title="Harvest rate",
        definition="Oracle pages crawled so far for each page fetched so far.",
        x_label=CRAWLED,
        y_label="oracle pages a page fetched",
        series=curves,
    )


def _counts(subject: Subject) -> Figure:
    series = []
    for crawled in subject.runs:
        at = points_along(len(crawled))
        series.append(line(f"{crawled.name}: visited", at, crawled.run.visited[at - 1].astype(np.float64)))
        series.append(line(f"{crawled.name}: fetched", at, crawled.run.fetched[at - 1].astype(np.float64), "dashed"))
    return Figure(
        id="visited",
        title="Crawled, visited and fetched",
        definition="Documents visited (V of Algorithm 1) and fetched by the time so many pages (P) were crawled "
        "(Craw4LLM, figure 3b).",
        x_label=CRAWLED,
        y_label="documents",
        series=series,
    )


def _mean_influence(subject: Subject) -> Figure:
    series = []
    for crawled in subject.runs:
        at = points_along(len(crawled))
        series.append(line(crawled.name, at, mean_so_far(crawled.influence, at)))
    return Figure(
        id="mean-influence",
        title="Mean influence",
        definition="Mean influence score of the pages crawled so far; pages without a score are left out.",
        x_label=CRAWLED,
        y_label="mean influence",
        series=series,
    )


def _domains(subject: Subject) -> Figure:
    series = []
    for crawled in subject.runs:
        at = points_along(len(crawled))
        series.append(line(crawled.name, at, crawled.run.domains[at - 1].astype(np.float64)))
    return Figure(
        id="domains",
        title="Registrable domains covered",
        definition="Registrable domains of which a page has been crawled (Public Suffix List with its private part).",
        x_label=CRAWLED,
        y_label="domains",
        series=series,
    )
