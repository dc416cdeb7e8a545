"""The models of Cho et al. 1998: how soon a run has the pages that are important by one metric or another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from crawl4llm.scoring import has_titles
from crawl4llm.tools.evaluate.buffer import kept, later_estimates
from crawl4llm.tools.evaluate.columns import slices, stored
from crawl4llm.tools.evaluate.coverage import curves, joined, longest
from crawl4llm.tools.evaluate.documents import Floats, Integers
from crawl4llm.tools.evaluate.figures import Cell, Figure, Series, Table, line, number
from crawl4llm.tools.evaluate.measures import (
    Band,
    Importance,
    crawl_and_stop,
    crawl_and_stop_with_threshold,
    share_of_hot,
)
from crawl4llm.tools.evaluate.survey import CrawledPages, Subject

IR_DAMPING = 0.9
"""d of IR (Cho et al. 1998, section 6)."""

_HOT_SHARE = 0.01
"""Share of hot pages for metrics without a natural goal; the paper's G = 100 made 0.8% of its pages hot."""
_LEAST_BACKLINKS = 5
"""Backlinks of a hot page under IS and IB together (section 7)."""
_BUFFERS = (0.01, 0.02, 0.05, *np.linspace(0.1, 1.0, 10).tolist())
"""Sizes of the buffer, as shares of the pages crawled."""


def sections(subject: Subject, topic: Sequence[str]) -> list[Figure | Table]:
    """Return the importance metrics, then the three models for each of them."""
    metrics = _metrics(subject, topic)
    buffers = {crawled.name: _buffers(subject, crawled) for crawled in subject.runs}
    found: list[Figure | Table] = [_goals(metrics)]
    for metric in metrics:
        found += [
            _crawl_and_stop(subject, metric),
            _threshold(subject, metric),
            _limited_buffer(subject, metric, buffers),
        ]
    return found


# -- the metrics ------------------------------------------------------------------------------------------------------


def _metrics(subject: Subject, topic: Sequence[str]) -> list[Importance]:
    oracle = subject.oracle.threshold.value
    influence = subject.scores.influence
    metrics = [_metric(subject, "influence", "influence", "The influence score.", influence, oracle)]
    if subject.backlinks is not None:
        metrics.append(_metric(subject, "ib", "IB", "Backlinks: links to the page in the corpus.", subject.backlinks))
    if subject.graph is not None:
        rank = subject.graph.pagerank(IR_DAMPING)
        meaning = f"PageRank as the paper has it: with d = {IR_DAMPING}, not normalised (its mean is 1)."
        metrics.append(_metric(subject, "ir", "IR", meaning, rank))
    return [*metrics, *_topic_metrics(subject, topic)] if topic else metrics


def _topic_metrics(subject: Subject, topic: Sequence[str]) -> list[Importance]:
    pages = subject.survey.topic(subject.rater, topic)
    words = " or ".join(topic)
    title = (
        "title"
        if has_titles(subject.survey.corpus)
        else "first line (the corpus has no HTML that would tell the title)"
    )
    meaning = f"1 for pages on the topic: with {words} in their {title}, or more than 10 times in their text."
    parts = list(slices(len(pages.hot)))
    (hot,) = stored(((pages.hot[part],) for part in parts), np.float64)
    metrics = [_metric(subject, "is", f"IS ({words})", meaning, hot, 1.0)]
    linked = subject.backlinks
    if linked is not None:
        both = ((pages.hot_if_linked[part] & (linked[part] >= _LEAST_BACKLINKS),) for part in parts)
        (hot,) = stored(both, np.float64)
        meaning = (
            f"1 for pages on the topic, with {words} in their {title} or 10 times or more in their text, that have "
            f"{_LEAST_BACKLINKS} or more backlinks too."
        )
        metrics.append(_metric(subject, "is-ib", f"IS ({words}) and IB", meaning, hot, 1.0))
    return metrics


def _metric(
    subject: Subject, metric_id: str, name: str, definition: str, of_document: Floats, goal: float | None = None
) -> Importance:
    web = subject.population(of_document, subject.web)
    if goal is None:
        goal = web.value_at(max(1, round(_HOT_SHARE * web.size))).value
    return Importance(metric_id, name, definition, of_document, web, goal)


def _goals(metrics: Sequence[Importance]) -> Table:
    rows: list[list[Cell]] = [
        [metric.name, metric.definition, number(metric.goal), metric.goal_share, metric.web.size] for metric in metrics
    ]
    return Table(
        id="importance",
        title="Importance metrics",
        definition="Importance I(P) of a page (Cho et al. 1998, section 2). Goal: pages of at least this importance "
        "are hot under Crawl & Stop with Threshold. For influence it is the threshold of the oracle set; for IB and "
        "IR it is that of the best hundredth of all pages. The web consists of the pages that the runs' seeds can "
        "reach, as in the paper; of the whole corpus, if only a sample of it was surveyed.",
        columns=["Metric", "Meaning", "Goal", "Share of hot pages", "Pages of the web"],
        rows=rows,
    )


# -- the models -------------------------------------------------------------------------------------------------------


def _crawl_and_stop(subject: Subject, metric: Importance) -> Figure:
    return Figure(
        id=f"crawl-and-stop-{metric.id}",
        title=f"Crawl & Stop: {metric.name}",
        definition="Of the first K pages crawled, the share that are at least as important as the K-th most important "
        "page of the web (Cho et al. 1998, section 3). An ideal crawler has 1; a crawler in random order has K/T, "
        "with T the pages of the web. The curve ends at the K whose page has the least importance of all. "
        "" + metric.definition,
        x_label="K, pages crawled",
        y_label="P_CS",
        settles=True,
        series=[
            *curves(subject, lambda crawled, at: crawl_and_stop(metric.of_document[crawled.numbers], metric.web, at)),
            _random(subject, metric),
        ],
    )


def _threshold(subject: Subject, metric: Importance) -> Figure:
    def achieved(crawled: CrawledPages, at: Integers) -> Band:
        return crawl_and_stop_with_threshold(metric.of_document[crawled.numbers], metric.web, metric.goal, at)

    hot = metric.web.count_from(metric.goal).value
    at = longest(subject)
    ideal = [line("ideal", at, np.minimum(at / hot, 1.0), "dashed", -2)] if hot else []
    return Figure(
        id=f"threshold-{metric.id}",
        title=f"Crawl & Stop with Threshold: {metric.name}",
        definition=f"The share of all hot pages, those with I(P) of {metric.goal:.6g} or more, that are among the "
        "first K pages crawled (Cho et al. 1998, section 3). " + metric.definition,
        x_label="K, pages crawled",
        y_label="P_ST",
        series=[*curves(subject, achieved), *ideal, _random(subject, metric)],
    )


def _buffers(subject: Subject, crawled: CrawledPages) -> list[Integers]:
    """Return the places in the crawl of the pages that are left at the end in buffers of several sizes."""
    (group,) = (group for group in subject.groups if group.name == crawled.run.group)
    sizes = np.unique(np.maximum(np.round(np.array(_BUFFERS) * group.pages), 1).astype(np.int64))
    estimates = np.nan_to_num(crawled.run.priority, nan=-np.inf)
    return kept(estimates, sizes.tolist(), later_estimates(crawled.run, subject.rater))


def _limited_buffer(subject: Subject, metric: Importance, buffers: Mapping[str, Sequence[Integers]]) -> Figure:
    series = []
    for group in subject.groups:
        hot = []
        for crawled in group.runs:
            importance = metric.of_document[crawled.numbers]
            shares = [share_of_hot(importance[left], metric.web) for left in buffers[crawled.name]]
            hot.append(Band(*np.array(shares, dtype=np.float64).T))
        sizes = np.array([len(left) for left in buffers[group.runs[0].name]])
        series.append(joined(subject, group, sizes, hot))
    return Figure(
        id=f"limited-buffer-{metric.id}",
        title=f"Limited Buffer Crawl: {metric.name}",
        definition="The crawler keeps B pages. When the buffer is full it loses the page with the lowest URL score at "
        "that moment, including later changes of the score by the policy (backlink, pagerank, parent_min, "
        "parent_mean). Of the pages kept at the end of the run, the share that are at "
        "least as important as the B-th most important page of the web (Cho et al. 1998, section 3). "
        + metric.definition,
        x_label="B, pages kept",
        y_label="P_BC",
        series=[*series, _random(subject, metric)],
    )


def _random(subject: Subject, metric: Importance) -> Series:
    at = longest(subject)
    return line("random order", at, np.minimum(at / metric.web.size, 1.0), "dashed", -1)
