"""Owners and visited documents of a worker, each asked of the partition that it belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from crawl4llm.cluster.continuous_partition import ContinuousPartition
from crawl4llm.frontier import OwnerCounts, OwnerIndex, Owners

_LATER: Final = 1.0
"""Seconds after which is asked again whether a partition may be worked on."""


class RoutedOwners:
    """Implements :class:`crawl4llm.frontier.Owners` for the partitions of a worker.

    An owner of another worker's partition is asked for nothing but a robots.txt to which one of ours redirects, and
    waits by a clock of its own here.
    """

    def __init__(self, of: Callable[[str], int], workable: Callable[[], Iterable[ContinuousPartition]]) -> None:
        """``of`` returns the partition of a URL, ``workable`` the partitions that may be worked on now."""
        self.own: dict[int, ContinuousPartition] = {}
        """The partitions of this worker, which it adds and takes away."""
        self._of, self._workable = of, workable
        self._others = OwnerIndex()

    def is_own(self, url: str) -> bool:
        """Return whether a URL's owner is in a partition of this worker."""
        return self._of(url) in self.own

    def may_work(self, url: str) -> bool:
        """Return whether it is in one that may be worked on now."""
        number = self._of(url)
        return any(partition.number == number for partition in self._workable())

    @property
    def now(self) -> float:
        return self._others.now

    def tick(self, now: float) -> None:
        for owners in self._all():
            owners.tick(now)

    def occupy(self, owner: str) -> bool:
        return self.ready_at(owner) <= self.now and self._owners(owner).occupy(owner)

    def release(self, owner: str, ready_at: float) -> bool:
        """A wait is stored if it is longer than the wait of a worker that takes over."""
        released = self._others.release(owner, ready_at)  # perhaps its partition was not ours yet when it was occupied
        partition = self.own.get(self._of(_url(owner)))
        if partition is None or partition.crawl.owners is None:
            return released
        if ready_at - self.now > partition.longest:
            partition.crawl.owners.hold(owner, ready_at)
        return partition.crawl.owners.release(owner, ready_at)

    def hold(self, owner: str, until: float, *, force: bool = False, failures: int | None = None) -> bool:
        return self._owners(owner).hold(owner, until, force=force, failures=failures)

    def failures(self, owner: str) -> int:
        return self._owners(owner).failures(owner)

    def slow(self, owner: str, times: int) -> None:
        self._owners(owner).slow(owner, times)

    def slowed(self, owner: str) -> int:
        return self._owners(owner).slowed(owner)

    def hold_all(self, until: float) -> None:
        for owners in self._all():
            owners.hold_all(until)

    def park(self, owner: str, delay: float = 0.0) -> bool:
        return self._owners(owner).park(owner, delay)

    def ready_at(self, owner: str) -> float:
        url = _url(owner)
        at = self._owners(owner).ready_at(owner)
        return max(at, self.now + _LATER) if self.is_own(url) and not self.may_work(url) else at

    def next_ready(self) -> float | None:
        """Return when the next document can be leased of the partitions that may be worked on."""
        owners = (one.crawl.owners for one in self._workable() if one.crawl.missing > 0)
        times = [of.next_ready() for of in owners if of is not None]
        return min((time for time in times if time is not None), default=None)

    def queued_of(self, owner: str) -> int:
        return self._owners(owner).queued_of(owner)

    @property
    def counts(self) -> OwnerCounts:
        return OwnerCounts(*map(sum, zip(*(owners.counts for owners in self._all()), strict=True)))

    @property
    def documents(self) -> OwnerCounts:
        return OwnerCounts(*map(sum, zip(*(owners.documents for owners in self._all()), strict=True)))

    def _owners(self, name: str) -> Owners:
        partition = self.own.get(self._of(_url(name)))
        return self._others if partition is None or partition.crawl.owners is None else partition.crawl.owners

    def _all(self) -> list[Owners]:
        return [self._others, *(one.crawl.owners for one in self.own.values() if one.crawl.owners is not None)]


class RoutedVisited:
    """Implements :class:`crawl4llm.frontier.visited.VisitedSet` for the partitions of a worker, to be asked only."""

    def __init__(self, of: Callable[[str], int], own: Mapping[int, ContinuousPartition]) -> None:
        """See :class:`RoutedOwners`."""
        self._of, self._own = of, own

    def add(self, keys: Iterable[str]) -> list[str]:
        """Refuse: each partition adds its own."""
        raise NotImplementedError

    def __contains__(self, key: object) -> bool:
        partition = self._own.get(self._of(str(key)))
        return partition is not None and key in partition.crawl.visited

    def __len__(self) -> int:
        return 0


def _url(name: str) -> str:
    """Return a URL of an owner, a site or, with a dot at its end, a host: names under which waits are kept."""
    if "://" in name:
        return f"{name}/"
    host = name.rstrip(".")
    return f"http://[{host}]/" if ":" in host else f"http://{host}/"
