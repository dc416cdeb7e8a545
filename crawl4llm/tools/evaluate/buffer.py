"""Limited Buffer Crawl (Cho et al. 1998, section 3): the crawler has room for B pages and must guess which to keep."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from crawl4llm.frontier import Entry
from crawl4llm.options import read_options
from crawl4llm.policies import Candidate, CrawledPage, make_policy, targets_of
from crawl4llm.scoring import PageRater, PageWorkers
from crawl4llm.tools.evaluate.documents import Floats, Integers
from crawl4llm.tools.evaluate.runs import Run

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_REPLAYED = ("backlink", "pagerank", "parent_min", "parent_mean")
"""Policies whose scores follow from the crawl log and the links alone, and change after a page was crawled."""
_SETTINGS = ("URL_POLICY", "ORDER", "HOT_QUEUE_TOPIC", "CRAWL_BATCH_SIZE")
_PAGES_AT_ONCE = 256
"""Documents of a batch whose links a crawl follows at once (see crawl4llm.crawl.algorithm)."""


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
    places = {key: place for place, key in enumerate(run.keys)}
    parents = dict(zip(run.keys, run.parents, strict=True))
    found = [Candidate(key, "", 0, None) for key in run.seeds]
    with closing(asyncio.new_event_loop()) as loop:
        for begin, end in _slices(run, options.crawl_batch_size):
            loop.run_until_complete(policy.score(found))
            yield from (
                Change(begin, places[key], score) for key, score in policy.reranked() if places.get(key, begin) < begin
            )
            found = []
            for place in range(begin, end):
                key, influence = run.keys[place], float(run.influence[place])
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
    change = next(pending, None)
    if change is None:
        order = np.lexsort((np.arange(len(estimates)), -estimates))
        return [np.sort(order[:size]).astype(np.int64) for size in sizes]
    buffers = [_Buffer(size) for size in sizes]
    for place, estimate in enumerate(estimates.tolist()):
        while change is not None and change.crawled <= place:
            for buffer in buffers:
                if change.place in buffer.pages:
                    buffer.put(change.place, change.estimate)
            change = next(pending, None)
        for buffer in buffers:
            buffer.put(place, estimate)
            buffer.fit()
    return [np.array(sorted(buffer.pages), dtype=np.int64) for buffer in buffers]


class _Buffer:
    """Pages, by their place in the crawl, with their estimates."""

    def __init__(self, size: int) -> None:
        self.pages: dict[int, float] = {}
        self._size = size
        self._heap: list[tuple[float, int]] = []
        """Lowest estimate first, with the negative place; of those that have changed since, the old ones too."""

    def put(self, place: int, estimate: float) -> None:
        """Add a page, or give it another estimate."""
        self.pages[place] = estimate
        heapq.heappush(self._heap, (estimate, -place))
        if len(self._heap) > 2 * len(self.pages) + _PAGES_AT_ONCE:
            self._heap = [(known, -page) for page, known in self.pages.items()]
            heapq.heapify(self._heap)

    def fit(self) -> None:
        """Lose the lowest page if there is one too many."""
        while len(self.pages) > self._size:
            estimate, negative = heapq.heappop(self._heap)
            if self.pages.get(-negative) == estimate:
                del self.pages[-negative]
