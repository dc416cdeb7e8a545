"""Frontiers of all combinations of medium and order, for the tests that each must pass."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from crawl4llm.base.domains import owner_of
from crawl4llm.frontier import IMPATIENT, Caps, Entry, Evicted, Lease, Outcome, Patience
from crawl4llm.frontier.composed import ComposedFrontier, StoredFrontier
from crawl4llm.frontier.frontier import NO_CAPS
from crawl4llm.frontier.mixed import Shares
from crawl4llm.frontier.opening import memory_frontier, open_frontier
from crawl4llm.frontier.owners import OwnerIndex
from crawl4llm.frontier.store import Store

KEYS_IN_ORDER = sorted(
    [
        "",
        "\0",
        "\0\0",
        " ",
        "a",
        "a\0",
        "a\0b",
        "a ",
        "a" * 600,
        "a" * 600 + "b",
        "a" * 5000,
        "aa",
        "b",
        "http://example.org/" + "x" * 3000,
        "z",
        "\x7f",
        "\x80",
        "é",
        "\ud7ff",
        "\uffff",
        "\U00010000",
        "\U0010ffff",
    ]
)
"""Ascending by code point: longer than a disk store's keys may be, prefixes of each other, of all widths in UTF-8."""
SCORES_IN_ORDER = [
    1.7976931348623157e308,
    1e300,
    2.0**53,
    1.0000000000000002,
    1.0,
    0.9999999999999999,
    0.1 + 0.2,
    0.3,
    1e-300,
    5e-324,
    0.0,
    -5e-324,
    -0.3,
    -1.0,
    -1e300,
    -1.7976931348623157e308,
]
"""Descending, some of them one bit apart."""
TARGETS = ((0.5, 0.25, 0.25), (0.75, 0.25))
"""Shares wanted of the classes of two classifiers; exact in binary."""
CELLS = 1 + len(TARGETS[0]) * len(TARGETS[1])
WALL = 1e9
"""Wall time when a clock shows 0."""


def entry(key: str, score: float, depth: int = 0, parent: str | None = None, host: str = "example.org") -> Entry:
    """An entry that was never leased."""
    return Entry(key, f"http://{host}/{key}" if host else f"urn:{key}", score, depth, parent)


def keys_of(leases: Iterable[Lease]) -> list[str]:
    """Keys of leased documents."""
    return [lease.entry.key for lease in leases]


def owner(one: Entry) -> str:
    """The owner of an entry."""
    return owner_of(one.url or one.key)


class Kind(NamedTuple):
    """A combination of medium and order."""

    name: str
    stored: bool = False
    by_owners: bool = False
    by_classes: bool = False
    reranks: bool = True

    def open(
        self,
        caps: Caps = NO_CAPS,
        patience: Patience = IMPATIENT,
        *,
        targets: Any = ((1.0,),),
        every: int | None = None,
        time: float = -math.inf,
        folder: Path | None = None,
    ) -> Opened:
        """Return a frontier, empty but for what a ``folder`` has; ``every``: it is opened anew before each so manieth
        call."""
        return Opened(self, caps, patience, targets, every, time, folder)


KINDS = [
    Kind("memory by score"),
    Kind("memory by owner", by_owners=True),
    Kind("memory by class", by_classes=True),
    Kind("memory by owner and class", by_owners=True, by_classes=True),
    Kind("store by score", stored=True, reranks=False),
    Kind("store by score, indexed", stored=True),
    Kind("store by owner", stored=True, by_owners=True),
    Kind("store by class", stored=True, by_classes=True),
    Kind("store by owner and class", stored=True, by_owners=True, by_classes=True),
]


class Opened:
    """A frontier of a kind, with clocks that stand still. One in a store is saved, committed and opened anew on the
    way, as by another process; and what owners do, which ends with a process, begins anew then."""

    def __init__(
        self,
        kind: Kind,
        caps: Caps,
        patience: Patience,
        targets: Any,
        every: int | None,
        time: float,
        folder: Path | None,
    ) -> None:
        self.kind, self.caps, self.patience, self.every, self.time = kind, caps, patience, every, time
        self.wall = WALL
        self.shares = Shares(targets)
        self._calls = count(1)
        self._temporary = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # goes with this object
        self.path = (folder or Path(self._temporary.name)) / "store.mdb"
        self.store: Any = None
        self.frontier: ComposedFrontier
        self.open()

    def open(self) -> None:
        shares = self.shares if self.kind.by_classes else None
        chosen: dict[str, Any] = {"by_owners": self.kind.by_owners, "shares": shares, "patience": self.patience}
        if not self.kind.stored:
            self.frontier = memory_frontier(self.caps, **chosen)
            if self.kind.by_owners:
                self.tick(self.time)
            return
        self.store = Store(self.path, fsync=False)
        clocks: dict[str, Callable[[], float]] = {
            "clock": lambda: self.time,
            "wall": lambda: self.wall + (self.time if self.time > -math.inf else 0.0),
        }
        self.frontier = open_frontier(self.store, self.caps, reranks=self.kind.reranks, **chosen, **clocks)

    @property
    def stored(self) -> StoredFrontier:
        assert isinstance(self.frontier, StoredFrontier)
        return self.frontier

    def commit(self) -> None:
        self.stored.save()
        self.store.commit()

    def reopen(self, *, commit: bool = True) -> StoredFrontier:
        """Open it anew; without a commit, as after a kill."""
        if commit:
            self.commit()
        self.store.close()
        crawled, self.shares = self.shares.crawled, Shares(self.shares.targets)
        self.shares.load(crawled)
        self.open()
        return self.stored

    def tick(self, time: float) -> None:
        self.time = time
        self.frontier.owners.tick(time)

    def _reopened(self) -> ComposedFrontier:
        if self.kind.stored and self.every and next(self._calls) % self.every == 0:
            self.reopen()
        return self.frontier

    # -- the frontier's protocol ----------------------------------------------------------------------------------

    def push(self, entries: Iterable[Entry]) -> list[Evicted]:
        return self._reopened().push(entries)

    def rerank(self, scores: Iterable[tuple[str, float]]) -> int:
        return self._reopened().rerank(scores)

    def lease(self, n: int) -> list[Lease]:
        return self._reopened().lease(n)

    def lease_any(self, n: int) -> list[Lease]:
        """Lease the best documents, though they may be of one owner."""
        frontier, leases = self._reopened(), list[Lease]()
        if not self.kind.by_owners:
            return frontier.lease(n)
        while len(leases) < n and (one := frontier.lease(1)):
            leases += one
            frontier.owners.release(owner(one[0].entry), -math.inf)
        return leases

    def settle(self, lease: Lease, outcome: Outcome, reason: str | None = None) -> bool:
        return self._reopened().settle(lease, outcome, reason)

    def give_back(self, lease: Lease, *, attempted: bool) -> bool:
        return self._reopened().give_back(lease, attempted=attempted)

    def withdraw(self, lease: Lease) -> Entry | None:
        return self._reopened().withdraw(lease)

    def drop_owner(self, owner: str, outcome: Outcome, reason: str, most: int) -> list[Entry]:
        return self._reopened().drop_owner(owner, outcome, reason, most)

    def first(self) -> bytes | None:
        return self.frontier.first()

    def __len__(self) -> int:
        return len(self.frontier)

    @property
    def leased(self) -> int:
        return self.frontier.leased

    @property
    def outcomes(self) -> Mapping[tuple[Outcome, str | None], int]:
        return self.frontier.outcomes

    @property
    def owners(self) -> OwnerIndex:
        return self.frontier.owners

    def close(self) -> None:
        """Close it; what a store holds is sound."""
        if self.kind.stored:
            self.reopen().verify()
        if self.store is not None:
            self.store.close()
        self._temporary.cleanup()
