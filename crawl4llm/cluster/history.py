"""The history of a crawl, read back from its storage in crawl order: iteration by iteration, or commit by commit."""

from __future__ import annotations

import heapq
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple

from crawl4llm.base.crawl_log import FailureLine
from crawl4llm.base.errors import InputError
from crawl4llm.base.stats import PREFIX
from crawl4llm.cluster import journal, objects, shapes
from crawl4llm.cluster.archive import Pages
from crawl4llm.cluster.objects import Exchange, Iteration, Plan
from crawl4llm.cluster.storage import Storage, unpacked
from crawl4llm.cluster.stores import Change, records
from crawl4llm.crawl import CRAWL, MAX_PAGES
from crawl4llm.frontier import FRONTIER_STATE


class Figures:
    """Sums of the partitions' states, as of their newest commits."""

    def __init__(self) -> None:
        self._states: dict[int, dict[bytes, Any]] = defaultdict(dict)
        self._stored: dict[tuple[int, bytes], bytes] = {}

    def take(self, partition: int, commit: journal.Commit) -> list[Change]:
        """Note the state in a partition's next commit, and return its changes. Raises ValueError if they do not go with
        those before."""
        changes = list(records(unpacked(commit.changes)))
        for table, key, value in changes:
            if table == "state" and key in (CRAWL, FRONTIER_STATE) and value is not None:
                before = self._stored.get((partition, key), b"")
                self._stored[partition, key] = new = value if isinstance(value, bytes) else value.applied_to(before)
                self._states[partition][key] = json.loads(new)
        return changes

    def counts(self, partition: int) -> dict[str, int]:
        """Return the figures of a partition that are counted."""
        counts: Counter[str] = Counter(self._states[partition][CRAWL]["crawl"]["counts"])
        for outcome, reason, count in self._states[partition][FRONTIER_STATE]["outcomes"]:
            counts[f"{outcome}/{reason}"] += count
        return counts

    def queued(self, partition: int) -> int:
        """Return how many documents a partition has queued."""
        state = self._states[partition].get(FRONTIER_STATE)
        return int(state["queued"]) if state else 0

    def all(self, visited: int) -> dict[str, Any]:
        """Return the figures of the crawl, with the prefix that stats have."""
        counts: Counter[str] = Counter()
        influence, rated = 0.0, 0
        for partition, state in self._states.items():
            counts.update(self.counts(partition))
            counts["frontier/queued"] += self.queued(partition)
            some, pages = state[CRAWL]["crawl"]["influence"]
            influence, rated = influence + some, rated + pages
        mean = influence / rated if rated else None
        figures: dict[str, Any] = {**counts, "pages/visited": visited, "influence/mean": mean}
        return dict(sorted({PREFIX + key: value for key, value in figures.items()}.items()))


class Batch(NamedTuple):
    """An iteration that all partitions have ended."""

    number: int
    plan: Plan
    exchanges: Sequence[Exchange]
    after: Sequence[Mapping[str, Any]]
    """The partitions' next offers, with the results of this iteration's links; none after the last."""

    def rows(self) -> list[tuple[int, Sequence[Any]]]:
        """Return the partition and the row of each document, by place."""
        found = [(number, row) for number, exchange in enumerate(self.exchanges) for row in exchange.rows]
        return sorted(found, key=lambda one: one[1][0])


class Ended(NamedTuple):
    """A document that ended when it was found; sorted, they are in the order of their lines in one slice."""

    is_scored: bool
    """True if it has no score; False if it was dropped before."""
    place: int
    """That of the page."""
    number: int
    """That of the link."""
    line: FailureLine


class News(NamedTuple):
    """The results of the links of a batch, or of the seeds."""

    visited: Mapping[int, tuple[int, int]]
    """New documents, and those of them that may be crawled, by the place of the page."""
    failures: Mapping[int, Sequence[Ended]]
    """Those that ended at once, by slice of the batch."""
    counts: Counter[str]


class History:
    """Reads a storage. Raises InputError if it holds no crawl, or is damaged."""

    def __init__(self, url: str) -> None:
        self.storage = Storage(url)
        crawl = objects.read_crawl(self.storage)
        if crawl is None:
            raise InputError(f"STORAGE {url} holds no crawl")
        self.crawl = crawl
        self.partitions: int = crawl["identity"]["CRAWL_PARTITIONS"]
        self.pages = Pages(self.storage, self.partitions)
        self.max_pages: int = crawl["identity"]["CRAWL_MAX_PAGES"]
        self.end: dict[str, Any] | None = self.storage.read_if_there(objects.END, shapes.END)
        self.is_continuous = not self.crawl["identity"]["CRAWL_BATCH_SIZE"]
        """True in continuous order, which has journals instead of batches."""

    def commits(self) -> Iterator[tuple[int, journal.Commit]]:
        """Yield partition and commit of all journals, by turn and partition. Raises InputError if one is missing."""
        journals = (zip(repeat(partition), self.commits_of(partition)) for partition in range(self.partitions))
        return heapq.merge(*journals, key=lambda one: (one[1].head.turn, one[0]))

    def commits_of(self, partition: int, after: int = 0) -> Iterator[journal.Commit]:
        """Yield the commits of a partition, in order, those behind a number only. Raises InputError if one is
        missing."""
        newest = journal.newest(self.storage, partition)  # first: while the crawl goes on, more may come
        for commit in journal.commits(self.storage, partition, after):
            after = commit.number
            yield commit
        if after < newest:
            raise self.storage.damaged(journal.name(partition, journal.LOG, after + 1), "it is missing")

    def queued(self) -> list[int]:
        """Return how many documents each partition had queued at its newest commit."""
        figures = Figures()
        for partition, commit in self.commits():
            figures.take(partition, commit)
        return [figures.queued(partition) for partition in range(self.partitions)]

    def state(self) -> list[int]:
        """Return numbers that grow as the crawl goes on."""
        if self.is_continuous:
            return [journal.newest(self.storage, partition) for partition in range(self.partitions)]
        last = self.last_iteration()
        if last is None:
            return []
        return [last, bool(self.iteration(last).offers())]  # by all, so that the batch before has ended

    def last_iteration(self) -> int | None:
        """Return the number of the newest iteration that was begun; None before the first."""
        numbers = [name.strip("/").rpartition("/")[2] for name in self.storage.folders("i")]
        return max((int(number) for number in numbers if number.isdecimal()), default=None)

    def ended_iterations(self) -> int:
        """Return how many iterations all partitions have ended, by the end that was noted, or by the newest that was
        begun."""
        if self.end is not None:
            return int(self.end["iteration"] + (self.end["reason"] == MAX_PAGES))
        return self.last_iteration() or 0

    def iteration(self, number: int) -> Iteration:
        """Return the objects of an iteration."""
        iteration = Iteration(self.storage, self.partitions, number)
        iteration.look()
        return iteration

    def batches(self) -> Iterator[Batch]:
        """Yield the iterations that all partitions have ended, with the results of their links."""
        number = 0
        while (exchanges := (of := self.iteration(number)).exchanges()) and (plan := of.plan()) is not None:
            is_last = self.end is not None and self.end["iteration"] == number
            after = self.iteration(number + 1).offers()
            if not after and not is_last:  # a next look may see more
                return
            yield Batch(number, plan, exchanges, after)
            number += 1


def news_of(offers: Sequence[Mapping[str, Any]]) -> News:
    """Return the results of the iteration before, from offers."""
    visited: dict[int, tuple[int, int]] = {}
    failures: dict[int, list[Ended]] = {}
    counts: Counter[str] = Counter()
    for offer in offers:
        counts.update(offer["counts"])
        for place, new, wanted in offer["news"]:
            known = visited.get(place, (0, 0))
            visited[place] = known[0] + new, known[1] + wanted
        for of_slice, is_scored, place, number, line in offer["failures"]:
            failures.setdefault(of_slice, []).append(Ended(is_scored, place, number, line))
    return News(visited, failures, counts)
