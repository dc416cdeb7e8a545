"""Limited Buffer Crawl (Cho et al. 1998, section 3): the crawler has room for B pages and must guess which to keep."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from crawl4llm.base.crawl_log import ESTIMATES, read_log
from crawl4llm.base.errors import InputError
from crawl4llm.tools.evaluate.arrays import Floats, Integers
from crawl4llm.tools.evaluate.runs import Run


class Change(NamedTuple):
    """A new estimate of a page that was crawled before."""

    crawled: int
    """Pages crawled when it was made."""
    place: int
    """The page's place in the crawl."""
    estimate: float


def read_changes(run: Run) -> list[Change]:
    """The new estimates that the run has logged, in their order; none where it has not. Raises InputError."""
    path = run.path / ESTIMATES
    if not path.exists():
        return []
    places = {key: place for place, key in enumerate(run.keys)}
    changes = []
    for number, line in enumerate(read_log(path), 1):
        try:
            for key, estimate in line["scores"].items():
                if places.get(key, line["crawled"]) < line["crawled"]:
                    changes.append(Change(line["crawled"], places[key], float(estimate)))
        except (LookupError, TypeError, ValueError, AttributeError):
            raise InputError(f"{path} is damaged: line {number} is not one of estimates") from None
    return changes


def kept(estimates: Floats, size: int, changes: Sequence[Change] = ()) -> Integers:
    """Places in the crawl of the pages that are left in a buffer of ``size`` pages at the end.

    ``estimates`` are those under which the pages left the frontier, in crawl order. When the buffer overflows, the page
    with the lowest estimate at that moment is lost; of equal ones, the last crawled.
    """
    if not changes:
        order = np.lexsort((np.arange(len(estimates)), -estimates))
        return np.sort(order[:size]).astype(np.int64)
    current = estimates.tolist()
    buffer: dict[int, float] = {}
    heap: list[tuple[float, int]] = []
    pending = iter((*changes, Change(len(current) + 1, -1, 0.0)))
    change = next(pending)
    for place, estimate in enumerate(current):
        while change.crawled <= place:
            if change.place in buffer:
                _put(buffer, heap, change.place, change.estimate)
            change = next(pending)
        _put(buffer, heap, place, estimate)
        if len(buffer) > size:
            _drop_lowest(buffer, heap)
    return np.array(sorted(buffer), dtype=np.int64)


def _put(buffer: dict[int, float], heap: list[tuple[float, int]], place: int, estimate: float) -> None:
    buffer[place] = estimate
    heapq.heappush(heap, (estimate, -place))


def _drop_lowest(buffer: dict[int, float], heap: list[tuple[float, int]]) -> None:
    """Entries of the heap whose estimate has changed since are passed over."""
    while True:
        estimate, negative = heapq.heappop(heap)
        if buffer.get(-negative) == estimate:
            del buffer[-negative]
            return
