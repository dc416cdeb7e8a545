"""What a frontier is: documents, leases, outcomes, and the protocols of its kinds."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

MOST_HOPS: Final = 5
"""Redirects to other owners, one after the other, that are followed."""


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
    """Redirects from one owner to another that led to it, one after the other; MOST_HOPS at most."""
    cell: int = 0
    """MIXTURE: the classes it is predicted to have, as a number (:mod:`crawl4llm.frontier.mixed`); 0 for none."""


class Lease(NamedTuple):
    """The right to crawl one document. It ends when it is settled or given back."""

    entry: Entry
    token: int
    """Fencing token, ascending in the order of leases: what is said for a token that has ended is ignored."""


class Outcome(enum.Enum):
    """The ends that a document can come to. Each comes to exactly one."""

    ARCHIVED = "archived"
    FAILED = "failed"
    """It could not be had, after all attempts; the reason says why."""
    DROPPED = "dropped"
    """It was not wanted; the reason says why."""
    REDIRECTED = "redirected"
    """It led to another owner's document; the reason says what became of that."""


class Caps(NamedTuple):
    """The most documents that may be queued at once; None: any number. Those on lease do not count."""

    total: int | None = None
    per_host: int | None = None
    """Documents without a host (seeds known by their key alone) are not held to it."""


NO_CAPS = Caps()


class Patience(NamedTuple):
    """What is not leased although its owner may be asked, because owners that wait have better documents."""

    quantile: float = 0.0
    """From 0 to 1. While owners wait, a document is not leased if its score is below this quantile of the scores of the
    best documents queued, one of each owner that is not parked; 0: it always is."""
    longest: float = math.inf
    """Seconds. Where no owner's wait ends so soon, the best document is leased, whatever its score."""


IMPATIENT = Patience()


class Evicted(NamedTuple):
    """A document that had to leave the frontier because others are better."""

    entry: Entry
    reason: str
    """FRONTIER_FULL or HOST_FULL."""


class Frontier(Protocol):
    """A priority queue with leases. All stores pass one contract test suite, and give the same order."""

    def push(self, entries: Iterable[Entry]) -> list[Evicted]:
        """Queue documents that were never pushed before. Return those beyond the caps, counted as dropped. First the
        worst of each host that has too many leave, then the worst of all."""

    def rerank(self, scores: Iterable[tuple[str, float]]) -> int:
        """Give queued documents new scores, by key; return how many have another than before. Documents that are not
        queued are left alone. Of several scores for one document the last one counts."""

    def lease(self, n: int) -> list[Lease]:
        """Take the ``n`` best documents (fewer where there are no more), best first."""

    def settle(self, lease: Lease, outcome: Outcome, reason: str | None = None) -> bool:
        """End a document for good; ``reason`` is counted unless it was archived. False: the lease had ended before."""

    def give_back(self, lease: Lease, *, attempted: bool) -> bool:
        """Queue a leased document again, at its score; ``attempted``: this lease counts. False as for settle."""

    def withdraw(self, lease: Lease) -> Entry | None:
        """Let a document leave the frontier without an end, and return it; the lease does not count. None: it had ended
        before."""

    def __len__(self) -> int:
        """Return the number of documents queued, without those on lease."""

    @property
    def leased(self) -> int:
        """Documents on lease."""

    @property
    def outcomes(self) -> Mapping[tuple[Outcome, str | None], int]:
        """Numbers of documents that ended, by outcome and reason."""


class OwnerCounts(NamedTuple):
    """A number by the state that owners are in."""

    ready: int
    """May be asked now."""
    waiting: int
    """May be asked later, at a time that is known."""
    busy: int
    """An exchange with them has not ended yet."""
    parked: int
    """May not be asked until they are unparked, whether or not an exchange with them has ended."""


class Owners(Protocol):
    """Who may be asked now. An owner (:func:`crawl4llm.base.domains.owner_of`) has at most one exchange at a time.

    Times are seconds on a clock of the caller's, monotonic or virtual; what it shows is told by :meth:`tick`. An owner
    that nothing was said of may be asked at once. Documents without an owner (the empty name) never wait.
    """

    @property
    def now(self) -> float:
        """The time that was told last; before that, minus infinity."""

    def tick(self, now: float) -> None:
        """Let time pass. An earlier time than before is ignored."""

    def occupy(self, owner: str) -> bool:
        """Begin an exchange that is for no document, such as for robots.txt; False: the owner may not be asked now."""

    def release(self, owner: str, ready_at: float) -> bool:
        """End the exchange with an owner, who may be asked again from ``ready_at``. False: there was none."""

    def hold(self, owner: str, until: float, *, force: bool = False, failures: int | None = None) -> bool:
        """Do not ask an owner before a time. Of several times the latest holds, unless one comes with ``force``.
        ``failures``: what :meth:`failures` returns from now on. A durable store keeps both at once, without a commit.
        False: the time is as it was."""

    def failures(self, owner: str) -> int:
        """Return the failures in a row that were noted of an owner, or of another name; they are forgotten after a
        day."""

    def slow(self, owner: str, times: int) -> None:
        """Note how many times the delay of an owner is doubled from now on; kept as hold is, for a day."""

    def slowed(self, owner: str) -> int:
        """Return how many times the delay of an owner is doubled."""

    def hold_all(self, until: float) -> None:
        """Ask no owner before a time, neither those known nor those to come; the latest of several times holds."""

    def park(self, owner: str, delay: float = 0.0) -> bool:
        """Do not ask an owner until it is unparked; kept as hold is, with the ``delay``, in seconds, that it asks for,
        if it is parked for that. False: it was parked."""

    def unpark(self, owner: str) -> bool:
        """Let a parked owner be asked again, from when it may be. False: it was not parked."""

    def is_parked(self, owner: str) -> bool:
        """Return whether an owner is parked."""

    def ready_at(self, owner: str) -> float:
        """Return the time from which an owner may be asked, which may have passed; infinity while it is busy or
        parked."""

    def next_ready(self) -> float | None:
        """Return when the next document can be leased: now, or, as far as is known now, when the first wait of an owner
        with documents ends. None: not before a release, an unpark or a push."""

    def queued_of(self, owner: str) -> int:
        """Return the number of documents that an owner has in the frontier, without those on lease."""

    @property
    def names(self) -> list[str]:
        """The names of all owners with documents in the frontier, and perhaps of some others."""

    @property
    def counts(self) -> OwnerCounts:
        """Numbers of owners. Those that are ready or wait are counted where documents of theirs are queued."""

    @property
    def documents(self) -> OwnerCounts:
        """Numbers of documents queued, by the state of their owners."""


class OwnerFrontier(Frontier, Protocol):
    """A frontier that hands out only what may be asked for now. All its stores pass one contract test suite.

    :meth:`lease` takes the ``n`` best documents of owners who may be asked now, one of each at most, best first: with
    it an exchange with the owner begins, which lasts until ``owners.release()``, whether or not the lease has ended by
    then. What must wait is queued, and counted, as all else. After a store was opened no owner is busy. It is made with
    a :class:`Patience`, none by default.
    """

    @property
    def owners(self) -> Owners:
        """Who may be asked now."""

    def drop_owner(self, owner: str, outcome: Outcome, reason: str, most: int) -> list[Entry]:
        """End the best ``most`` documents that an owner has queued, and return them; to be called until none are left.
        Those on lease stay."""
