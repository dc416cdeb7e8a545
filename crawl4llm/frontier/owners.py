"""The owner index: which owners may be asked now, and the best document of each.

An owner is in one state at a time. It is ready (it has queued documents and may be asked), waiting (the same, but not
before a time), busy (an exchange goes on), parked, or idle (it has no queued documents). Ready owners are in a heap by
their best document, waiting ones in a heap by time; the others are in neither, so they cost only their memory. A place
of an owner that has changed its state is stale, and skipped when it comes up; a heap that is mostly stale is rebuilt.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from typing import Final

from crawl4llm.frontier.frontier import IMPATIENT, OwnerCounts, Patience
from crawl4llm.frontier.holds import FAILURES_KEPT, LastingWaits
from crawl4llm.frontier.memory import SCORE_BYTES
from crawl4llm.frontier.ranks import Ranks

_IDLE, READY, _WAITING, _BUSY, _PARKED = range(5)
_COUNTED = (READY, _WAITING, _BUSY)
"""States of owners whose best documents a patient frontier compares."""
_SPARE = 1000
"""Stale places, or owners to forget, up to which no search is worth while."""
_IDLE_SHARE = 8
"""Idle owners are searched when they are one in this many."""


class Owner:
    """State of one owner; 80 to 96 bytes."""

    __slots__ = ("best", "busy", "name", "parked", "queued", "state", "until")

    def __init__(self, name: str) -> None:
        self.name = name
        self.best: bytes | None = None
        self.queued = 0
        self.until = -math.inf
        self.busy = self.parked = False
        self.state = _IDLE

    def __lt__(self, other: object) -> bool:
        """Allow heaps to hold owners whose waits end together, in any order, because they become ready together."""
        return False


_NOBODY: Final = Owner("")
"""Stands for an unknown owner."""


class _Noted:
    """Numbers by name, which are forgotten after a day."""

    def __init__(self) -> None:
        self._numbers: dict[str, tuple[int, float]] = {}
        """Numbers with the times at which they were noted."""
        self._most = _SPARE

    def of(self, name: str, now: float) -> int:
        number, noted = self._numbers.get(name, (0, 0.0))
        return number if now - noted < FAILURES_KEPT else 0

    def note(self, name: str, number: int, noted: float, now: float) -> None:
        """Note a number, 0: none. If too many are noted, forget old ones."""
        self._numbers.pop(name, None)
        if number:
            self._numbers[name] = number, noted
        if len(self._numbers) > self._most:
            self._numbers = {one: kept for one, kept in self._numbers.items() if self.of(one, now)}
            self._most = max(_SPARE, 2 * len(self._numbers))


class OwnerIndex:
    """Implements :class:`crawl4llm.frontier.Owners`, and :class:`crawl4llm.frontier.orders.Index` of queues by owner;
    the order reports queued documents.

    An owner without queued documents that may be asked is forgotten: at once, or soon after its wait has ended.
    """

    def __init__(self, patience: Patience = IMPATIENT, waits: LastingWaits | None = None) -> None:
        """``waits``: holds that outlive the process are restored from it, and written to it at once."""
        self._patience = patience
        self._ranks = Ranks()
        """The best documents of owners that are not parked; empty without patience."""
        self.on_ready: Callable[[Owner], None] | None = None
        """Called for each owner that becomes ready."""
        self.now = -math.inf
        self._gate = -math.inf
        """No owner is asked before this time."""
        self.alarm = math.inf
        """A time from which the frontier may be able to lease something else, of any owner."""
        self._owners: dict[str, Owner] = {}
        self._ready: list[tuple[bytes, Owner]] = []
        self._waiting: list[tuple[float, Owner]] = []
        self.numbers, self._documents = [0] * 5, [0] * 5
        """Numbers of owners, and of their queued documents, by state."""
        self._most_idle = _SPARE
        self._failures, self._slowed = _Noted(), _Noted()
        """By name, consecutive failures; by owner, how many times its delay is doubled."""
        self._waits: LastingWaits | None = None
        if waits is not None:
            self._take_up(waits)

    # -- for the frontier -----------------------------------------------------------------------------------------

    def add(self, name: str, document: bytes) -> bytes | None:
        """Note that a document is queued. Return the document that is not the best of its owner: the former best, or
        this one; None if it is alone."""
        owner = self._owners.get(name) or self._new(name)
        owner.queued += 1
        self._documents[owner.state] += 1
        best = owner.best
        if best is not None and best <= document:
            return document
        self._set_best(owner, document)
        self._put(owner, moved=owner.state == READY)
        return best

    def remove(self, name: str, document: bytes, successor: Callable[[str], bytes | None]) -> None:
        """Note that a document is no longer queued; ``successor`` is called for the best of the others, if it is
        needed."""
        owner = self._owners[name]
        owner.queued -= 1
        self._documents[owner.state] -= 1
        if owner.best == document:
            self._set_best(owner, successor(name))
            self._put(owner, moved=owner.state == READY)

    def take(self) -> tuple[str, bytes] | None:
        """Begin an exchange for the best document of all ready owners, which the frontier then removes. None if no
        owner is ready, or better documents are waited for."""
        if self.first() is None:
            return None
        best, owner = heapq.heappop(self._ready)
        self.begin(owner)
        return owner.name, best

    def begin(self, owner: Owner) -> None:
        """Begin an exchange with a ready owner."""
        if owner.name:
            owner.busy = True
            self._put(owner)

    def ready(self, name: str) -> Owner | None:
        """Return an owner, if it is ready."""
        owner = self._owners.get(name, _NOBODY)
        return owner if owner.state == READY else None

    def first(self) -> bytes | None:
        """Return the document that :meth:`take` would return, if any."""
        return self._ready[0][0] if self.now >= self._gate and self._has_ready() else None

    def best(self, name: str) -> bytes | None:
        """Return the best queued document of an owner."""
        return self._owners.get(name, _NOBODY).best

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
        owner = self._owners.get(name, _NOBODY)
        if not owner.busy:
            return False
        owner.busy = False
        owner.until = max(owner.until, ready_at)
        self._put(owner)
        return True

    def hold(self, name: str, until: float, *, force: bool = False, failures: int | None = None) -> bool:
        """Raises InputError if the hold cannot be written; it applies nevertheless."""
        if failures is not None:
            self._failures.note(name, failures, self.now, self.now)
        owner = self._owners.get(name, _NOBODY)
        before, after = (time if time > self.now else -math.inf for time in (owner.until, until))
        if changed := bool(name) and after != before and (after > before or force):
            owner = self._owners.get(name) or self._new(name)
            owner.until = after
            self._put(owner, moved=owner.state == _WAITING)
        if self._waits is not None:
            self._waits.hold(name, until, force=force, failures=failures)
        return changed

    def hold_all(self, until: float) -> None:
        self._gate = max(self._gate, until)

    def failures(self, name: str) -> int:
        return self._failures.of(name, self.now)

    def slow(self, name: str, times: int) -> None:
        """Raises InputError like :meth:`hold`."""
        self._slowed.note(name, times, self.now, self.now)
        if self._waits is not None:
            self._waits.slow(name, times)

    def slowed(self, name: str) -> int:
        return self._slowed.of(name, self.now)

    def park(self, name: str, delay: float = 0.0) -> bool:
        """Raises InputError like :meth:`hold`."""
        return bool(name) and self._set_parked(name, parked=True, delay=delay)

    def unpark(self, name: str) -> bool:
        """Raises InputError like :meth:`hold`."""
        return self._set_parked(name, parked=False, delay=0.0)

    def _set_parked(self, name: str, *, parked: bool, delay: float) -> bool:
        if self.is_parked(name) == parked:
            return False
        owner = self._owners.get(name) or self._new(name)
        owner.parked = parked
        self._put(owner)
        if self._waits is not None:
            self._waits.park(name, parked=parked, delay=delay)
        return True

    def unpark_within(self, delay: float) -> int:
        """Unpark the owners that are parked for a delay of at most ``delay`` seconds, and return their number."""
        return sum(self.unpark(name) for name, asked_for in list(self.parked()) if 0 < asked_for <= delay)

    def parked(self) -> Iterator[tuple[str, float]]:
        """Yield the parked owners, with the delays for which they are parked (0: for another reason), if that is
        durable."""
        return iter(()) if self._waits is None else self._waits.parked()

    def is_parked(self, name: str) -> bool:
        return self._owners.get(name, _NOBODY).parked

    def ready_at(self, name: str) -> float:
        owner = self._owners.get(name, _NOBODY)
        return math.inf if owner.busy or owner.parked else max(owner.until, self._gate)

    def next_ready(self) -> float | None:
        if self._has_ready():
            return max(self.now, self._gate)
        until = min(self.alarm, math.inf if (first := self._first_wait()) is None else first)
        return None if until == math.inf else max(until, self._gate)

    def queued_of(self, name: str) -> int:
        return self._owners.get(name, _NOBODY).queued

    @property
    def names(self) -> list[str]:
        return [name for name in self._owners if "://" not in name]  # sites wait by their names too

    @property
    def counts(self) -> OwnerCounts:
        return self._by_state(self.numbers)

    @property
    def documents(self) -> OwnerCounts:
        return self._by_state(self._documents)

    def _by_state(self, numbers: list[int]) -> OwnerCounts:
        _, ready, waiting, busy, parked = numbers
        if self.now < self._gate:
            ready, waiting = 0, ready + waiting
        return OwnerCounts(ready, waiting, busy, parked)

    # -- its parts ------------------------------------------------------------------------------------------------

    def _take_up(self, waits: LastingWaits) -> None:
        """Restore the holds of another process, and write new ones from now on."""
        self.tick(waits.clock())
        for name, hold in waits.items():
            self.hold(name, self.now + hold.wait)
            if hold.parked:
                self.park(name)
            self._failures.note(name, hold.failures, self.now - hold.failed, self.now)
            self._slowed.note(name, hold.slowed, self.now - hold.slowed_at, self.now)
        self._waits = waits

    def _has_ready(self) -> bool:
        """Return whether the best document of all ready owners, then the first in its heap, is leased before those of
        waiting owners."""
        while self._ready:
            best, owner = self._ready[0]
            if owner.state == READY and owner.best == best:
                return self._is_good(best)
            heapq.heappop(self._ready)
        return False

    def _is_good(self, document: bytes) -> bool:
        """Return whether the score of a document is good enough not to wait for others."""
        quantile, longest = self._patience
        if not quantile or (until := self._first_wait()) is None or until > self.now + longest:
            return True
        better = len(self._ranks) - math.ceil(quantile * len(self._ranks))
        return document[:SCORE_BYTES] <= self._ranks.at(better)[:SCORE_BYTES]

    def _first_wait(self) -> float | None:
        """Return when the first wait of an owner ends."""
        while self._waiting:
            until, owner = self._waiting[0]
            if owner.state == _WAITING and owner.until == until:
                return until
            heapq.heappop(self._waiting)
        return None

    def _new(self, name: str) -> Owner:
        owner = self._owners[name] = Owner(name)
        self.numbers[_IDLE] += 1
        return owner

    def _set_best(self, owner: Owner, best: bytes | None) -> None:
        if owner.state in _COUNTED:
            self._rank(owner.best, best)
        owner.best = best

    def _rank(self, before: bytes | None, after: bytes | None) -> None:
        """Replace the best document of an owner in the ranks, if they are used."""
        if self._patience.quantile:
            if before is not None:
                self._ranks.remove(before)
            if after is not None:
                self._ranks.add(after)

    def _put(self, owner: Owner, *, moved: bool = False) -> None:
        """Put an owner into its present state, and into its heap; ``moved``: also if only its place there has
        changed."""
        before, state = owner.state, self._state_of(owner)
        if state != before:
            for numbers, number in ((self.numbers, 1), (self._documents, owner.queued)):
                numbers[before] -= number
                numbers[state] += number
            if (before in _COUNTED) != (state in _COUNTED):
                self._rank(*((None, owner.best) if state in _COUNTED else (owner.best, None)))
            owner.state = state
        elif not moved and state != _IDLE:
            return
        if state == READY:
            assert owner.best is not None
            heapq.heappush(self._ready, (owner.best, owner))
            if self.on_ready is not None and before != READY:
                self.on_ready(owner)
        elif state == _WAITING:
            heapq.heappush(self._waiting, (owner.until, owner))
        elif state == _IDLE:
            self._forget(owner)
        self._sweep()

    def _state_of(self, owner: Owner) -> int:
        if owner.parked:
            return _PARKED
        if owner.busy:
            return _BUSY
        if not owner.queued:
            return _IDLE
        return _WAITING if owner.until > self.now else READY

    def _forget(self, owner: Owner) -> None:
        """Forget an idle owner that may be asked; search all if many are idle."""
        if owner.until <= self.now:
            self.numbers[_IDLE] -= 1
            del self._owners[owner.name]
        elif self.numbers[_IDLE] > max(self._most_idle, len(self._owners) // _IDLE_SHARE):
            idle = [one for one in self._owners.values() if one.state == _IDLE and one.until <= self.now]
            for one in idle:
                del self._owners[one.name]
            self.numbers[_IDLE] -= len(idle)
            self._most_idle = max(_SPARE, 2 * self.numbers[_IDLE])

    def _sweep(self) -> None:
        """Rebuild a heap that is mostly stale."""
        if len(self._ready) > 2 * self.numbers[READY] + _SPARE:
            self._ready = [
                (one.best, one) for one in self._owners.values() if one.state == READY and one.best is not None
            ]
            heapq.heapify(self._ready)
        if len(self._waiting) > 2 * self.numbers[_WAITING] + _SPARE:
            self._waiting = [(one.until, one) for one in self._owners.values() if one.state == _WAITING]
            heapq.heapify(self._waiting)
