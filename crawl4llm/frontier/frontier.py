"""Definition of a frontier: documents, leases, outcomes, and the protocols of its kinds."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

MOST_HOPS: Final = 5
"""Most redirects to other owners, one after the other, that are followed."""


UNREQUESTED: Final = 0x1FFF
"""Cell of a document that needs no request; in an order by owner it waits for no owner."""


@dataclass(slots=True)
class Entry:
    """A document in the frontier."""

    key: str
    url: str
    score: float
    """The policy's score; compared bit for bit, ties broken by key, ascending."""
    depth: int
    parent: str | None
    """Key of the page it was first seen on; None for a seed."""
    attempts: int = 0
    """Leases so far."""
    hops: int = 0
    """Consecutive redirects between owners that led to it, at most MOST_HOPS."""
    cell: int = 0
    """MIXTURE: number of its predicted combination of classes (:mod:`crawl4llm.frontier.mixed`); 0 for none. Without
    MIXTURE it may be UNREQUESTED."""


class Lease(NamedTuple):
    """The right to crawl one document, until it is settled or given back."""

    entry: Entry
    token: int
    """Fencing token, ascending in the order of leases. Calls with a token that has ended are ignored."""


class Outcome(enum.Enum):
    """How a document ends; each ends in exactly one way."""

    ARCHIVED = "archived"
    FAILED = "failed"
    """All attempts failed, for the given reason."""
    DROPPED = "dropped"
    """It was dropped, for the given reason."""
    REDIRECTED = "redirected"
    """It redirected to another owner's document; the reason tells what happened to that."""


class Caps(NamedTuple):
    """The most documents that may be queued at once, without those on lease; None: any number."""

    total: int | None = None
    per_host: int | None = None
    """Does not apply to documents without a host (seeds known by their key alone)."""


NO_CAPS = Caps()


class Patience(NamedTuple):
    """Limits on holding documents back for better ones of owners that still have to wait."""

    quantile: float = 0.0
    """From 0 to 1. Compares a document with the best queued document of each owner that is not parked. While owners
    wait, it is not leased if its score is below this quantile of theirs; 0: it always is."""
    longest: float = math.inf
    """Seconds. If no owner's wait ends within them, the best document is leased, whatever its score."""


IMPATIENT = Patience()


class Evicted(NamedTuple):
    """A document that left the frontier because others are better."""

    entry: Entry
    reason: str
    """FRONTIER_FULL or HOST_FULL."""


class Frontier(Protocol):
    """A priority queue with leases. All implementations pass one contract test suite, and give the same order."""

    def push(self, entries: Iterable[Entry]) -> list[Evicted]:
        """Queue documents that were never pushed before. Return those beyond the caps, counted as dropped. First the
        worst documents of hosts above their cap leave, then the worst of all."""

    def rerank(self, scores: Iterable[tuple[str, float]]) -> int:
        """Give queued documents new scores, by key; return how many scores changed. Other documents are ignored. Of
        several scores for one document the last one counts."""

    def lease(self, n: int) -> list[Lease]:
        """Take the ``n`` best documents (or all, if there are fewer), best first."""

    def settle(self, lease: Lease, outcome: Outcome, reason: str | None = None) -> bool:
        """End a document for good; ``reason`` is counted unless it was archived. False if the lease had ended
        before."""

    def give_back(self, lease: Lease, *, attempted: bool) -> bool:
        """Queue a leased document again, with its score; ``attempted``: this lease counts as an attempt. False if the
        lease had ended before."""

    def withdraw(self, lease: Lease) -> Entry | None:
        """Remove a leased document without an outcome, and return it; the lease does not count. None if the lease had
        ended before."""

    def __len__(self) -> int:
        """Return the number of documents queued, without those on lease."""

    @property
    def leased(self) -> int:
        """Documents on lease."""

    @property
    def outcomes(self) -> Mapping[tuple[Outcome, str | None], int]:
        """Numbers of documents that ended, by outcome and reason."""


class OwnerCounts(NamedTuple):
    """Numbers by the state of owners."""

    ready: int
    """They may be asked now."""
    waiting: int
    """They may be asked later, at a known time."""
    busy: int
    """An exchange with them has not ended."""
    parked: int
    """They may not be asked until they are unparked, even if an exchange with them goes on."""


class Owners(Protocol):
    """The owners that may be asked now. An owner (:func:`crawl4llm.base.domains.owner_of`) has at most one exchange at
    a time.

    Times are seconds of the caller's clock, monotonic or virtual, which :meth:`tick` reports. An unknown owner may be
    asked at once. Documents without an owner (the empty name) never wait.
    """

    @property
    def now(self) -> float:
        """The last reported time; minus infinity before the first."""

    def tick(self, now: float) -> None:
        """Report the time. A time before the last one is ignored."""

    def occupy(self, owner: str) -> bool:
        """Begin an exchange without a document, for example for robots.txt. False if the owner may not be asked now."""

    def release(self, owner: str, ready_at: float) -> bool:
        """End the exchange with an owner, who may be asked again from ``ready_at``. False if there was no exchange."""

    def hold(self, owner: str, until: float, *, force: bool = False, failures: int | None = None) -> bool:
        """Do not ask an owner before a time. Of several times the latest counts, unless one comes with ``force``.
        ``failures`` is the later result of :meth:`failures`. A durable store keeps both at once, without a commit.
        False if the time has not changed."""

    def failures(self, owner: str) -> int:
        """Return the noted number of consecutive failures of an owner, or of another name; it is forgotten after a
        day."""

    def slow(self, owner: str, times: int) -> None:
        """Set how many times the delay of an owner is doubled from now on; kept like a hold, for a day."""

    def slowed(self, owner: str) -> int:
        """Return how many times the delay of an owner is doubled."""

    def hold_all(self, until: float) -> None:
        """Ask no owner before a time, known or new; of several times the latest counts."""

    def park(self, owner: str, delay: float = 0.0) -> bool:
        """Do not ask an owner until it is unparked. Kept like a hold, with the ``delay`` in seconds that it asks for,
        if that is why it is parked. False if it was parked."""

    def ready_at(self, owner: str) -> float:
        """Return the time from which an owner may be asked, which may be past; infinity while it is busy or parked."""

    def next_ready(self) -> float | None:
        """Return when the next document can be leased: now, or at the end of the first known wait of an owner with
        documents. None: not before a release, an unpark or a push."""

    def queued_of(self, owner: str) -> int:
        """Return the number of queued documents of an owner, without those on lease."""

    @property
    def counts(self) -> OwnerCounts:
        """Numbers of owners by state; ready and waiting ones count if they have queued documents."""

    @property
    def documents(self) -> OwnerCounts:
        """Numbers of queued documents, by the state of their owners."""


class FrontierOwners(Owners, Protocol):
    """Owners as the frontier has them that queues their documents."""

    def unpark(self, owner: str) -> bool:
        """Allow a parked owner to be asked again, once its wait has ended. False if it was not parked."""

    def is_parked(self, owner: str) -> bool:
        """Return whether an owner is parked."""

    @property
    def names(self) -> list[str]:
        """The names of all owners with documents in the frontier, and perhaps of others."""


class OwnerFrontier(Frontier, Protocol):
    """A frontier that leases only documents whose owners may be asked now. All implementations pass one contract test
    suite.

    :meth:`lease` takes the ``n`` best documents of owners that may be asked now, at most one for each, best first. It
    begins an exchange with each owner, which lasts until ``owners.release()``, even after the lease ends. Documents
    that must wait are queued and counted like all others. After a store was opened no owner is busy. It is made with a
    :class:`Patience`, by default zero.
    """

    @property
    def owners(self) -> FrontierOwners:
        """The owners, and whether they may be asked now."""

    def drop_owner(self, owner: str, outcome: Outcome, reason: str, most: int) -> list[Entry]:
        """End the best ``most`` queued documents of an owner, and return them; repeat until the result is empty.
        Documents on lease stay."""
