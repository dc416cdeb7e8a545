"""The models of Cho et al. 1998: how soon a run has the pages that are important by one metric or another."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from crawl4llm.frontier import Entry
from crawl4llm.options import read_options
from crawl4llm.policies import Candidate, CrawledPage, make_policy, targets_of
from crawl4llm.scoring import PageRater, PageWorkers, has_titles
from crawl4llm.tools.evaluate.coverage import best, curves, joined, longest
from crawl4llm.tools.evaluate.documents import Floats, Integers, Population, stored_values
from crawl4llm.tools.evaluate.figures import Figure, Series, Table, line
from crawl4llm.tools.evaluate.runs import Band, CrawledPages, Run
from crawl4llm.tools.evaluate.survey import Subject

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

IR_DAMPING = 0.9
"""d of IR (Cho et al. 1998, section 6)."""

_HOT_SHARE = 0.01
"""Share of hot pages for metrics without a natural goal; the paper's G = 100 made 0.8% of its pages hot."""
_LEAST_BACKLINKS = 5
"""Backlinks of a hot page under IS and IB together (section 7)."""
_BUFFERS = (0.01, 0.02, 0.05, *np.linspace(0.1, 1.0, 10).tolist())
"""Sizes of the buffer, as shares of the pages crawled."""
_REPLAYED = ("backlink", "pagerank", "parent_min", "parent_mean")
"""Policies whose scores follow from the crawl log and the links alone, and change after a page was crawled."""
_SETTINGS = ("URL_POLICY", "ORDER", "HOT_QUEUE_TOPIC", "CRAWL_BATCH_SIZE")
_PAGES_AT_ONCE = 256
"""Documents of a batch whose links a crawl follows at once (see crawl4llm.crawl.algorithm)."""


def sections(subject: Subject, topic: Sequence[str]) -> list[Figure | Table]:
    """Return the importance metrics, then the three models for each of them."""
    metrics = _metrics(subject, topic)
    buffers = {crawled.run.name: _buffers(subject, crawled) for crawled in subject.runs}
    found: list[Figure | Table] = [_goals(metrics)]
    for metric in metrics:
        models = _crawl_and_stop(subject, metric), _threshold(subject, metric)
        found += [*models, _limited_buffer(subject, metric, buffers)]
    return found


@dataclass(frozen=True)
class Importance:
    """I(P): a number for each page, the higher the more important."""

    id: str
    name: str
    definition: str
    of_document: Floats
    """By the document's number."""
    web: Population
    """The values of all pages of the web that counts."""
    goal: float
    """G: a page is hot, under Crawl & Stop with Threshold, from this value on."""


def shares_of_hot(crawls: Iterable[Floats], web: Population) -> Band:
    """Return P_CS of the first K pages crawled, or P_BC of a buffer of K pages; ``crawls`` have the importance of such
    pages.

    It is the share of pages as important as the K-th most important page of the web. Undefined (NaN) if that page has
    the lowest importance there is, since every page has that.
    """
    shares = []
    for pages in crawls:
        least = web.value_at(min(len(pages), web.size))
        known = least.value > web.lowest
        hot = [np.count_nonzero(pages >= bound) for bound in (least.value, least.high, least.low)]
        shares.append([count / len(pages) if known else np.nan for count in hot])
    return Band(*np.array(shares, dtype=np.float64).reshape(-1, 3).T)


def crawl_and_stop_with_threshold(crawled: Floats, web: Population, goal: float, at: Integers) -> Band:
    """Return P_ST: the share of all hot pages that are among the first K pages crawled."""
    found = np.cumsum(crawled >= goal)[at - 1]
    hot = web.count_from(goal)
    if not hot.low:
        return Band(*(np.full(len(at), np.nan),) * 3)
    return Band(*(np.minimum(found / count, 1.0) for count in (hot.value, hot.high, hot.low)))


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
    on_topic, if_linked = subject.survey.topic(subject.rater, topic)
    words = " or ".join(topic)
    title = "title"
    if not has_titles(subject.survey.corpus):
        title = "first line (the corpus has no HTML that would tell the title)"
    meaning = f"1 for pages on the topic: with {words} in their {title}, or more than 10 times in their text."
    metrics = [_metric(subject, "is", f"IS ({words})", meaning, stored_values(on_topic), 1.0)]
    if subject.backlinks is not None:
        hot = stored_values(if_linked & (subject.backlinks >= _LEAST_BACKLINKS))
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
    return Table(
        id="importance",
        title="Importance metrics",
        definition="Importance I(P) of a page (Cho et al. 1998, section 2). Goal: pages of at least this importance "
        "are hot under Crawl & Stop with Threshold. For influence it is the threshold of the oracle set; for IB and "
        "IR it is that of the best hundredth of all pages. The web consists of the pages that the runs' seeds can "
        "reach, as in the paper; of the whole corpus, if only a sample of it was surveyed.",
        columns=["Metric", "Meaning", "Goal", "Share of hot pages", "Pages of the web"],
        rows=[[m.name, m.definition, m.goal, m.web.count_from(m.goal).value / m.web.size, m.web.size] for m in metrics],
    )


# -- the models -------------------------------------------------------------------------------------------------------


def _crawl_and_stop(subject: Subject, metric: Importance) -> Figure:
    def achieved(crawled: CrawledPages, at: Integers) -> Band:
        importance = metric.of_document[crawled.numbers]
        return shares_of_hot((importance[:pages] for pages in at), metric.web)

    return Figure(
        id=f"crawl-and-stop-{metric.id}",
        title=f"Crawl & Stop: {metric.name}",
        definition="Of the first K pages crawled, the share that are at least as important as the K-th most important "
        "page of the web (Cho et al. 1998, section 3). An ideal crawler has 1; a crawler in random order has K/T, "
        "with T the pages of the web. The curve ends at the K whose page has the least importance of all. "
        + metric.definition,
        x_label="K, pages crawled",
        y_label="P_CS",
        series=[*curves(subject, achieved), _random(subject, metric)],
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
        hot = [
            shares_of_hot((metric.of_document[crawled.numbers[left]] for left in buffers[crawled.run.name]), metric.web)
            for crawled in group.runs
        ]
        sizes = np.array([len(left) for left in buffers[group.runs[0].run.name]])
        series.append(joined(subject, group, sizes, hot))
    return Figure(
        id=f"limited-buffer-{metric.id}",
        title=f"Limited Buffer Crawl: {metric.name}",
        definition="The crawler keeps B pages. When the buffer is full it loses the page with the lowest URL score at "
        "that moment, including later changes of the score by the policy (backlink, pagerank, parent_min, "
        "parent_mean). Of the pages kept at the end of the run, the share that are at least as important as the B-th "
        "most important page of the web (Cho et al. 1998, section 3). " + metric.definition,
        x_label="B, pages kept",
        y_label="P_BC",
        series=[*series, _random(subject, metric)],
    )


def _random(subject: Subject, metric: Importance) -> Series:
    at = longest(subject)
    return line("random order", at, np.minimum(at / metric.web.size, 1.0), "dashed", -1)


# -- Limited Buffer Crawl (section 3): the crawler has room for B pages and must guess which to keep -------------------


class Change(NamedTuple):
    """A new estimate of a page that was crawled before."""

    crawled: int
    """Pages crawled when it was made."""
    place: int
    """The page's place in the crawl."""
    estimate: float


def later_estimates(run: Run, rater: PageRater) -> Iterator[Change]:
    """Yield the URL scores that the run's policy would have given to pages after their crawl, in crawl order.

    The crawl log and the corpus's links drive the policy as the crawl did. No page leaves its frontier, so it keeps
    scoring all of them. Behind a hot queue it yields nothing, because the log does not say which pages were hot.
    """
    recorded = {name: run.facts["settings"].get(name) for name in _SETTINGS}
    options = read_options(cast("BaseSettings", recorded))
    if options.url_policy not in _REPLAYED or options.hot_queue_topic:
        return
    policy = make_policy(PageWorkers(rater, 0), options)
    keys = list(run.pages.keys())
    places = {key: place for place, key in enumerate(keys)}
    parents = dict(zip(keys, run.parents(), strict=True))
    found = [Candidate(key, "", 0, None) for key in run.seeds]
    with closing(asyncio.new_event_loop()) as loop:
        for begin, end in _slices(run, options.crawl_batch_size):
            loop.run_until_complete(policy.score(found))
            yield from (
                Change(begin, places[key], score) for key, score in policy.reranked() if places.get(key, begin) < begin
            )
            found = []
            for place in range(begin, end):
                key, influence = keys[place], float(run.influence[place])
                links = rater.corpus.outlinks(key)
                page = Entry(key, "", 0.0, 0, None)
                policy.crawled(CrawledPage(page, None if np.isnan(influence) else influence, links))
                found += [Candidate(new, "", 0, key) for new in targets_of(links) if parents.get(new) == key]


def _slices(run: Run, batch_size: int) -> Iterator[tuple[int, int]]:
    """Yield, as places in the crawl, the pages whose links the crawl has followed together: a batch, or part of one."""
    starts = [0, *(np.flatnonzero(np.diff(run.iterations)) + 1).tolist()]  # NaN differs from NaN
    answers, size = 0, len(run.seeds)
    for begin, end in zip(starts, [*starts[1:], len(run)], strict=True):
        taken = run.fetched[begin:end] - 1
        answers = min(answers, int(taken[0]))  # there were fewer where the frontier had too few for a batch
        cuts = begin + 1 + np.flatnonzero(np.diff((taken - answers) // _PAGES_AT_ONCE))
        if end == len(run) >= run.wanted:
            cuts = cuts[:0]  # the links of pages that may be the last are not followed
        yield from pairwise([begin, *cuts.tolist(), end])
        answers, size = answers + size, batch_size


def kept(estimates: Floats, sizes: Sequence[int], changes: Iterable[Change] = ()) -> list[Integers]:
    """Return, for buffers of several sizes, the places in the crawl of the pages that are left in them at the end.

    ``estimates`` are those under which the pages left the frontier, in crawl order. When a buffer overflows, the page
    with the lowest estimate at that moment is lost; of equal ones, the last crawled.
    """
    pending = iter(changes)
    first = next(pending, None)
    if first is None:
        return [best(estimates, len(estimates), size) for size in sizes]
    buffers = [_Buffer(size) for size in sizes]
    arrivals = (Change(place, place, estimate) for place, estimate in enumerate(estimates.tolist()))
    for change in heapq.merge(chain([first], pending), arrivals, key=attrgetter("crawled")):
        for buffer in buffers:
            buffer.put(*change)
    return [np.array(sorted(buffer.pages), dtype=np.int64) for buffer in buffers]


class _Buffer:
    """Pages, by their place in the crawl, with their estimates."""

    def __init__(self, size: int) -> None:
        self.pages: dict[int, float] = {}
        self._size = size
        self._heap: list[tuple[float, int]] = []
        """Lowest estimate first, with the negative place; of those that have changed since, the old ones too."""

    def put(self, crawled: int, place: int, estimate: float) -> None:
        """Add a page, or give one that is kept another estimate. If there is one too many, lose the lowest."""
        if place < crawled and place not in self.pages:
            return
        self.pages[place] = estimate
        heapq.heappush(self._heap, (estimate, -place))
        if len(self._heap) > 2 * len(self.pages) + _PAGES_AT_ONCE:
            self._heap = [(known, -page) for page, known in self.pages.items()]
            heapq.heapify(self._heap)
        while len(self.pages) > self._size:
            estimate, negative = heapq.heappop(self._heap)
            if self.pages.get(-negative) == estimate:
                del self.pages[-negative]
