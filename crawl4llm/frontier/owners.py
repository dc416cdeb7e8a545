"""The owner index: which owner may be asked now, and which document of it is the best.

An owner is in one state at a time: ready (documents are queued, and it may be asked), waiting (the same, but not before
a time), busy (an exchange goes on), parked, or idle (nothing is queued). Ready owners are in a heap by their best
document, waiting ones in a heap by time; the others are in neither, so they cost nothing but their memory. A place in a
heap whose owner has moved on is stale, and passed over when it comes up; a heap that is mostly stale is built anew.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from operator import itemgetter
from typing import Any, Generic

from crawl4llm.frontier import IMPATIENT, OwnerCounts, Patience
from crawl4llm.frontier.holds import FAILURES_KEPT
from crawl4llm.frontier.ranks import P, Ranks

_IDLE, READY, _WAITING, _BUSY, _PARKED = range(5)
_COUNTED = (READY, _WAITING, _BUSY)
"""States of owners whose best documents others are measured by, where the frontier is patient."""
_SPARE = 1000
"""Stale places, or owners to forget, that are no reason to look through all."""
_IDLE_SHARE = 8
"""Idle owners are looked through when they are one of so many."""


class Owner(Generic[P]):
    """What is known of one owner; 80 to 96 bytes."""

    __slots__ = ("best", "busy", "name", "parked", "queued", "state", "until")

    def __init__(self, name: str) -> None:
        self.name = name
        self.best: P | None = None
        self.queued = 0
        self.until = -math.inf
        self.busy = self.parked = False
        self.state = _IDLE

    def __lt__(self, other: object) -> bool:
        """Let heaps hold owners whose waits end together, in any order: they become ready together."""
        return False


class OwnerIndex(Generic[P]):
    """Implements :class:`crawl4llm.frontier.Owners`; the frontier tells it what is queued.

    An owner is forgotten when it has nothing queued and may be asked: at once, or soon after its wait has ended.
    """

    def __init__(self, patience: Patience = IMPATIENT, score: Callable[[P], Any] = itemgetter(0)) -> None:
        """``score`` returns of what stands for a document that part which sorts by score alone."""
        self._patience = patience
        self._score: Callable[[P], Any] = score
        self._ranks: Ranks[P] = Ranks()
        """The best documents of owners that are not parked; none without patience."""
        self.now = -math.inf
        self._gate = -math.inf
        """Nobody is asked before this time."""
        self.alarm = math.inf
        """A time from which the frontier may have something else to lease, of whatever owner."""
        self._owners: dict[str, Owner[P]] = {}
        self._ready: list[tuple[P, Owner[P]]] = []
        self._waiting: list[tuple[float, Owner[P]]] = []
        self._numbers, self._documents = [0] * 5, [0] * 5
        """Owners, and their queued documents, by state."""
        self._most_idle = _SPARE
        self._failures: dict[str, tuple[int, float]] = {}
        """Numbers by name, and when they were noted."""
        self._most_failures = self._most_slowed = _SPARE
        self._slowed: dict[str, tuple[int, float]] = {}
        """By owner, the number of times that its delay is doubled, and when that was noted."""

    # -- for the frontier -----------------------------------------------------------------------------------------

    def add(self, name: str, document: P) -> P | None:
        """Note that a document is queued. Return what is not the best of its owner: the one that was, or this one; None
        where it is alone."""
        owner = self._owners.get(name) or self._new(name)
        owner.queued += 1
        self._documents[owner.state] += 1
        best = owner.best
        if best is not None and best <= document:
            return document
        self._set_best(owner, document)
        self._put(owner, moved=owner.state == READY)
        return best

    def remove(self, name: str, document: P, successor: Callable[[str], P | None]) -> None:
        """Note that a document is no longer queued; ``successor`` is asked for the best of the others, if need be."""
        owner = self._owners[name]
        owner.queued -= 1
        self._documents[owner.state] -= 1
        if owner.best == document:
            self._set_best(owner, successor(name))
            self._put(owner, moved=owner.state == READY)

    def load(self, name: str, best: P, queued: int) -> None:
        """Note the documents of an owner that has none yet."""
        self.add(name, best)
        owner = self._owners[name]
        owner.queued += queued - 1
        self._documents[owner.state] += queued - 1

    def take(self) -> tuple[str, P] | None:
        """Begin an exchange for the best document of all ready owners, which the frontier then removes. None:
        no owner is ready, or better documents are waited for."""
        if self.first() is None:
            return None
        best, owner = heapq.heappop(self._ready)
        if owner.name:
            owner.busy = True
            self._put(owner)
        return owner.name, best

    def first(self) -> P | None:
        """Return the document that :meth:`take` would, if any."""
        return self._ready[0][0] if self.now >= self._gate and self._has_ready() else None

    def best(self, name: str) -> P | None:
        """Return the best document that an owner has queued."""
        owner = self._owners.get(name)
        return None if owner is None else owner.best

    # -- the protocol ---------------------------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        if now <= self.now:
            return
        self.now = now
        while self._waiting and self._waiting[0][0] <= now:
            until, owner = heapq.heappop(self._waiting)
            if owner.state == _WAITING and owner.until == until:
                self._put(owner)

    def occupy(self, name: str) -> bool:
        if self.ready_at(name) > self.now:
            return False
        if name:
            owner = self._owners.get(name) or self._new(name)
            owner.busy = True
            self._put(owner)
        return True

    def release(self, name: str, ready_at: float) -> bool:
        owner = self._owners.get(name)
        if owner is None or not owner.busy:
            return False
        owner.busy = False
        owner.until = max(owner.until, ready_at)
        self._put(owner)
        return True

    def hold(self, name: str, until: float, *, force: bool = False, failures: int | None = None) -> bool:
        if failures is not None:
            self._note_failures(name, failures, self.now)
        owner = self._owners.get(name)
        before, until = (
            time if time > self.now else -math.inf for time in (-math.inf if owner is None else owner.until, until)
        )
        if not name or until == before or (until < before and not force):
            return False
        owner = owner or self._new(name)
        owner.until = until
        self._put(owner, moved=owner.state == _WAITING)
        return True

    def hold_all(self, until: float) -> None:
        self._gate = max(self._gate, until)

    def failures(self, name: str) -> int:
        number, noted = self._failures.get(name, (0, 0.0))
        return number if self.now - noted < FAILURES_KEPT else 0

    def slow(self, name: str, times: int) -> None:
        self._note_slowed(name, times, self.now)

    def slowed(self, name: str) -> int:
        times, noted = self._slowed.get(name, (0, 0.0))
        return times if self.now - noted < FAILURES_KEPT else 0

    def park(self, name: str, delay: float = 0.0) -> bool:
        if not name or self.is_parked(name):
            return False
        owner = self._owners.get(name) or self._new(name)
        owner.parked = True
        self._put(owner)
        return True

    def unpark(self, name: str) -> bool:
        owner = self._owners.get(name)
        if owner is None or not owner.parked:
            return False
        owner.parked = False
        self._put(owner)
        return True

    def is_parked(self, name: str) -> bool:
        owner = self._owners.get(name)
        return owner is not None and owner.parked

    def ready_at(self, name: str) -> float:
        owner = self._owners.get(name)
        if owner is None:
            return self._gate
        return math.inf if owner.busy or owner.parked else max(owner.until, self._gate)

    def next_ready(self) -> float | None:
        if self._has_ready():
            return max(self.now, self._gate)
        until = min(self.alarm, math.inf if (first := self._first_wait()) is None else first)
        return None if until == math.inf else max(until, self._gate)

    def queued_of(self, name: str) -> int:
        owner = self._owners.get(name)
        return 0 if owner is None else owner.queued

    @property
    def names(self) -> list[str]:
        return [name for name in self._owners if "://" not in name]  # sites wait by their names too

    @property
    def counts(self) -> OwnerCounts:
        return self._by_state(self._numbers)

    @property
    def documents(self) -> OwnerCounts:
        return self._by_state(self._documents)

    def _by_state(self, numbers: list[int]) -> OwnerCounts:
        _, ready, waiting, busy, parked = numbers
        if self.now < self._gate:
            ready, waiting = 0, ready + waiting
        return OwnerCounts(ready, waiting, busy, parked)

    # -- its parts ------------------------------------------------------------------------------------------------

    def _has_ready(self) -> bool:
        """Return whether the best document of all ready owners, which is then the first in its heap, is to be leased
        before any of an owner that waits."""
        while self._ready:
            best, owner = self._ready[0]
            if owner.state == READY and owner.best == best:
                return self._is_good(best)
            heapq.heappop(self._ready)
        return False

    def _is_good(self, document: P) -> bool:
        """Return whether the score of a document is no reason to wait for others."""
        quantile, longest = self._patience
        if not quantile or (until := self._first_wait()) is None or until > self.now + longest:
            return True
        better = len(self._ranks) - math.ceil(quantile * len(self._ranks))
        return bool(self._score(document) <= self._score(self._ranks.at(better)))

    def _first_wait(self) -> float | None:
        """Return when the first wait ends of the owners that wait."""
        while self._waiting:
            until, owner = self._waiting[0]
            if owner.state == _WAITING and owner.until == until:
                return until
            heapq.heappop(self._waiting)
        return None

    def _note_failures(self, name: str, number: int, noted: float) -> None:
        """Note failures, and forget old ones where they are many."""
        self._failures.pop(name, None)
        if number:
            self._failures[name] = number, noted
        if len(self._failures) > self._most_failures:
            self._failures = {one: kept for one, kept in self._failures.items() if self.failures(one)}
            self._most_failures = max(_SPARE, 2 * len(self._failures))

    def _note_slowed(self, name: str, times: int, noted: float) -> None:
        """Note how many times a delay is doubled; if too many are noted, forget old ones."""
        self._slowed.pop(name, None)
        if times:
            self._slowed[name] = times, noted
        if len(self._slowed) > self._most_slowed:
            self._slowed = {one: kept for one, kept in self._slowed.items() if self.slowed(one)}
            self._most_slowed = max(_SPARE, 2 * len(self._slowed))

    def _new(self, name: str) -> Owner[P]:
        owner = self._owners[name] = Owner(name)
        self._numbers[_IDLE] += 1
        return owner

    def _set_best(self, owner: Owner[P], best: P | None) -> None:
        if owner.state in _COUNTED:
            self._rank(owner.best, best)
        owner.best = best

    def _rank(self, before: P | None, after: P | None) -> None:
        """Note what the best document of an owner was, and is, as far as it counts."""
        if self._patience.quantile:
            if before is not None:
                self._ranks.remove(before)
            if after is not None:
                self._ranks.add(after)

    def _put(self, owner: Owner[P], *, moved: bool = False) -> None:
        """Put an owner into the state that it is in now, and into its heap; ``moved``: also where only its place there
        has changed."""
        state = self._state_of(owner)
        if state != owner.state:
            for numbers, number in ((self._numbers, 1), (self._documents, owner.queued)):
                numbers[owner.state] -= number
                numbers[state] += number
            if (owner.state in _COUNTED) != (state in _COUNTED):
                self._rank(*((None, owner.best) if state in _COUNTED else (owner.best, None)))
            owner.state = state
        elif not moved and state != _IDLE:
            return
        if state == READY:
            assert owner.best is not None
            heapq.heappush(self._ready, (owner.best, owner))
        elif state == _WAITING:
            heapq.heappush(self._waiting, (owner.until, owner))
        elif state == _IDLE:
            self._forget(owner)
        self._sweep()

    def _state_of(self, owner: Owner[P]) -> int:
        if owner.parked:
            return _PARKED
        if owner.busy:
            return _BUSY
        if not owner.queued:
            return _IDLE
        return _WAITING if owner.until > self.now else READY

    def _forget(self, owner: Owner[P]) -> None:
        """Forget an idle owner that may be asked; look through all where many are idle."""
        if owner.until <= self.now:
            self._numbers[_IDLE] -= 1
            del self._owners[owner.name]
        elif self._numbers[_IDLE] > max(self._most_idle, len(self._owners) // _IDLE_SHARE):
            idle = [one for one in self._owners.values() if one.state == _IDLE and one.until <= self.now]
            for one in idle:
                del self._owners[one.name]
            self._numbers[_IDLE] -= len(idle)
            self._most_idle = max(_SPARE, 2 * self._numbers[_IDLE])

    def _sweep(self) -> None:
        """Build a heap anew that is mostly stale."""
        if len(self._ready) > 2 * self._numbers[READY] + _SPARE:
            self._ready = [
                (one.best, one) for one in self._owners.values() if one.state == READY and one.best is not None
            ]
            heapq.heapify(self._ready)
        if len(self._waiting) > 2 * self._numbers[_WAITING] + _SPARE:
            self._waiting = [(one.until, one) for one in self._owners.values() if one.state == _WAITING]
            heapq.heapify(self._waiting)
