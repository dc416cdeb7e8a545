"""The virtual clock of a simulation in which owners wait between fetches; no time of the machine enters it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from crawl4llm.crawl import Turns, owner_of_lease
from crawl4llm.frontier import Lease, Owners


class VirtualClock:
    """Implements :class:`crawl4llm.crawl.turns.Clock` and :class:`crawl4llm.crawl.turns.Turns`.

    Fetches take no time, but slots on a time line, at least 1/``capacity`` seconds apart. The next fetch is in the
    first slot in which an owner is free; its owner then waits ``delay`` seconds. One document is on lease at a time, so
    the order does not depend on the machine. Failed documents take slots too.
    """

    most_leases: int | None = 1
    _owners: Owners

    def __init__(self, delay: float, capacity: float) -> None:
        """Begin at 0. ``capacity``: fetches a second; 0: any number."""
        self.delay = delay
        self._step = 1 / capacity if capacity else 0.0
        self._next_place = 0.0
        self._waits: deque[tuple[float, str]] = deque()
        """Ends of waits, and whose they are, in their order."""

    # -- the clock ------------------------------------------------------------------------------------------------

    def now(self) -> float:
        """Return the time of the next place, unless it must wait for an owner."""
        return self._next_place

    def turns(self, owners: Owners) -> Turns:
        self._owners = owners
        return self

    def tick(self, owners: Owners) -> None:
        owners.tick(self._next_place)
        while (ready := owners.next_ready()) is not None and ready > owners.now:
            owners.tick(ready)

    def seconds_until(self, moment: float) -> float:
        return 0.0

    def statistics(self) -> Mapping[str, float]:
        return {"simulation/seconds": self._next_place}

    def save(self) -> dict[str, Any]:
        """Return the time, and the owners that wait: no more of them than places fit into a delay."""
        self._forget_past()
        return {"next_place": self._next_place, "waits": list(self._waits)}

    def load(self, state: Mapping[str, Any] | None, owners: Owners) -> None:
        assert state is not None  # what save() has returned
        self._next_place = state["next_place"]
        owners.tick(self._next_place)
        for until, owner in state["waits"]:
            if owners.occupy(owner):
                self._release(owner, until)

    # -- turns ----------------------------------------------------------------------------------------------------

    def begin(self, lease: Lease) -> None:
        pass

    def end(self, lease: Lease, *, asked: bool = True) -> None:
        """Let the owner wait. A document that was not requested takes no slot: it is simply leased again."""
        now, owner = self._owners.now, owner_of_lease(lease)
        if not asked:
            self._owners.release(owner, now)
            return
        self._next_place = now + self._step
        self._forget_past()
        if owner:
            self._release(owner, now + self.delay)

    def _release(self, owner: str, until: float) -> None:
        self._owners.release(owner, until)
        self._waits.append((until, owner))

    def _forget_past(self) -> None:
        while self._waits and self._waits[0][0] <= self._next_place:
            self._waits.popleft()
