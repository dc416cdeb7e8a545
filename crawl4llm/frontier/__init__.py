"""The frontier: documents discovered and not yet crawled, best score first, and the leases on those being crawled.

This module says what a frontier is. ``memory`` holds one that ends with its process; ``durable`` one on disk, and
``indexed`` that one with an index by document and host; ``runs`` are the sorted runs in which it lies. ``visited`` is
the set of all documents ever discovered, in memory or on disk, there with ``bloom`` (the filter that knows most of what
is new) and ``fingerprints`` (the sorted runs of keys). ``store`` is the file that everything durable is committed to.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol


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


class Caps(NamedTuple):
    """The most documents that may be queued at once; None: any number. Those on lease do not count."""

    total: int | None = None
    per_host: int | None = None
    """Documents without a host (seeds known by their key alone) are not held to it."""


NO_CAPS = Caps()


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

    def __len__(self) -> int:
        """Return the number of documents queued, without those on lease."""

    @property
    def leased(self) -> int:
        """Documents on lease."""

    @property
    def outcomes(self) -> Mapping[tuple[Outcome, str | None], int]:
        """Numbers of documents that ended, by outcome and reason."""

    def close(self) -> None:
        """Release what the store holds."""
