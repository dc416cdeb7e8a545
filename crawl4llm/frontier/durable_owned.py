"""The frontier on disk that hands out only what its owner may be asked for now."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import islice
from operator import itemgetter

from crawl4llm.base.domains import OWNER_RULES, owner_of
from crawl4llm.base.received import FRONTIER
from crawl4llm.frontier import IMPATIENT, NO_CAPS, SCORE_BYTES, Caps, Entry, Lease, Outcome, Patience
from crawl4llm.frontier.durable import STATE, DurableFrontier
from crawl4llm.frontier.holds import NAME, Holds, OwnerHolds
from crawl4llm.frontier.indexed import (
    CURRENT,
    IndexedFrontier,
    decode_stored,
    fingerprint,
    record_of,
)
from crawl4llm.frontier.owners import OwnerIndex
from crawl4llm.frontier.runs import Record
from crawl4llm.frontier.store import Store

_OWNED, _OWNERS = "owned", "owners"
MIXED, MIXED_OWNERS = "classes", f"classes, {OWNER_RULES}"
"""The rules where documents have classes: without owners, and with them."""
_COUNT_BYTES = 8
_WHOLE_BYTES = 495
"""Keys of owned documents that are no longer than this hold the whole sort key; of others so much, and a fingerprint,
which together is as much as LMDB allows."""
_MOST_TIES = 10_000
"""Documents of one owner, with one score and long keys that begin alike, among which the best is looked for."""


class LastingOwners(OwnerIndex[bytes]):
    """The owner index whose holds outlive the process: what holds and parks is written to the holds file at once."""

    def __init__(
        self, holds: OwnerHolds, clock: Callable[[], float], wall: Callable[[], float], patience: Patience = IMPATIENT
    ) -> None:
        """Take up what is in force. ``clock``: the caller's clock, on which all times are; ``wall``: seconds since
        1970."""
        super().__init__(patience, itemgetter(slice(SCORE_BYTES)))
        self._holds, self._clock, self._wall = holds, clock, wall
        self.tick(clock())
        for name, hold in holds.items():
            super().hold(name, self.now + min(hold.until - wall(), hold.wait))
            if hold.parked:
                super().park(name)
            if hold.failures:
                self._note_failures(name, hold.failures, self.now - max(wall() - hold.failed, 0.0))
            if hold.slowed:
                self._note_slowed(name, hold.slowed, self.now - max(wall() - hold.slowed_at, 0.0))

    def hold(self, name: str, until: float, *, force: bool = False, failures: int | None = None) -> bool:
        """Raises InputError where the file cannot be written; the hold is in force nevertheless."""
        changed = super().hold(name, until, force=force, failures=failures)
        wait = max(until - self._clock(), 0.0)
        before = hold = self._holds.get(name)
        if force or (wait and self._wall() + wait > before.until):
            hold = hold._replace(until=self._wall() + wait, wait=wait)
        if failures is not None:
            hold = hold._replace(failures=failures, failed=self._wall())
        if name and hold != before:
            self._holds.set(name, hold)
        return changed

    def slow(self, name: str, times: int) -> None:
        """Raises InputError as hold does."""
        super().slow(name, times)
        self._holds.set(name, self._holds.get(name)._replace(slowed=times, slowed_at=self._wall() if times else 0.0))

    def park(self, name: str, delay: float = 0.0) -> bool:
        """Raises InputError as hold does."""
        return super().park(name) and self._write_parked(name, parked=True, delay=delay)

    def unpark(self, name: str) -> bool:
        """Raises InputError as hold does."""
        return super().unpark(name) and self._write_parked(name, parked=False)

    def unpark_within(self, delay: float) -> int:
        """Unpark the owners that are parked for a delay of so many seconds at most, and return how many they are."""
        return sum(self.unpark(name) for name, asked_for in list(self.parked()) if 0 < asked_for <= delay)

    def parked(self) -> Iterator[tuple[str, float]]:
        """Yield the owners that are parked, with the delays for which they are (0: not for a delay)."""
        return ((name, hold.delay) for name, hold in self._holds.items() if hold.parked)

    def _write_parked(self, name: str, *, parked: bool, delay: float = 0.0) -> bool:
        self._holds.set(name, self._holds.get(name)._replace(parked=parked, delay=delay))
        return True


class DurableOwnerFrontier(IndexedFrontier):
    """Implements :class:`crawl4llm.frontier.OwnerFrontier` in a store.

    Documents lie by owner and score in one more B-tree. In memory is what the index holds: of each owner that has
    documents queued, the best one's key and their number, which :meth:`save` writes down too. Holds and parking outlive
    the process; exchanges, and waits since the last one, do not, so whoever opens a stored frontier calls
    ``owners.hold_all()``. A lease that is taken up does not make its owner busy.
    """

    owned = OWNER_RULES

    def __init__(
        self,
        store: Store,
        caps: Caps = NO_CAPS,
        patience: Patience = IMPATIENT,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Take up what the store holds; its documents are indexed again if their owners were found by other rules.
        Clocks: see LastingOwners. Raises StoreError where it is damaged, InputError where the holds file cannot be
        read."""
        holds = Holds(store.path.with_name(NAME), fsync=store.fsync, wall=wall)
        self.owners = self._index(holds, clock, wall, patience)
        self._changed: set[str] = set()
        """Owners of which the store does not have the present state."""
        super().__init__(store, caps)
        state = store.stated(STATE, FRONTIER) or {"owned": self.owned}
        if state.get("owned") == self.owned:
            self._load()
        else:
            self._index_anew()

    def _index(
        self, holds: OwnerHolds, clock: Callable[[], float], wall: Callable[[], float], patience: Patience
    ) -> LastingOwners:
        return LastingOwners(holds, clock, wall, patience)

    def _queue(self, entry: Entry) -> str:
        """Return the name under which the index has a document: its owner."""
        return owner_of(entry.url or entry.key)

    def lease(self, n: int) -> list[Lease]:
        leases: list[Lease] = []
        while len(leases) < n and (taken := self.owners.take()) is not None:
            entry = self._take_out(taken[1])
            entry.attempts += 1
            self._last_token += 1
            self._leases[self._last_token] = entry
            leases.append(Lease(entry, self._last_token))
        return leases

    def first(self) -> bytes | None:
        return self.owners.first()

    def drop_owner(self, owner: str, outcome: Outcome, reason: str, most: int) -> list[Entry]:
        ended: list[Entry] = []
        while len(ended) < most and (best := self.owners.best(owner)) is not None:
            ended.append(self._take_out(best))
        if ended:
            self._outcomes[outcome, reason] += len(ended)
        return ended

    def save(self) -> None:
        for name in self._changed:
            key, best = _owner_prefix(name), self.owners.best(name)
            if best is None:
                self._store.delete(_OWNERS, key)
            else:
                self._store.put(_OWNERS, key, self.owners.queued_of(name).to_bytes(_COUNT_BYTES, "big") + best)
        self._changed.clear()
        super().save()

    def verify(self) -> None:
        super().verify()
        found: dict[str, tuple[bytes, int]] = {}
        for stored in self._documents():
            entry = decode_stored(stored)
            sort_key, name = record_of(stored)[0], self._queue(entry)
            if self._store.get(_OWNED, _owned_key(name, sort_key)) is None:
                raise self._store.damaged(f"the index of owners lacks a document of {name!r}")
            best, queued = found.get(name, (sort_key, 0))
            found[name] = min(best, sort_key), queued + 1
        wrong = [name for name in found if (self.owners.best(name), self.owners.queued_of(name)) != found[name]]
        if wrong or self._store.count(_OWNED) != len(self) or self._store.count(_OWNERS) != len(found):
            raise self._store.damaged(f"the index of owners is not that of the documents queued {wrong[:1]}")

    # -- documents by owner ---------------------------------------------------------------------------------------

    def _record(self, entry: Entry) -> Record:
        record = super()._record(entry)
        self._add_to_owner(entry, record[0])
        return record

    def _leave_indexes(self, entry: Entry, sort_key: bytes) -> None:
        super()._leave_indexes(entry, sort_key)
        name = self._queue(entry)
        self._store.delete(_OWNED, _owned_key(name, sort_key))
        self._changed.add(name)
        self.owners.remove(name, sort_key, self._best_stored)

    def _add_to_owner(self, entry: Entry, sort_key: bytes) -> None:
        name = self._queue(entry)
        key = _owned_key(name, sort_key)
        self._store.put(_OWNED, key, self._place(entry.key) if len(key) > _WHOLE_BYTES else b"")
        self._changed.add(name)
        self.owners.add(name, sort_key)

    def _take_out(self, sort_key: bytes) -> Entry:
        """Take the document out that an owner's best one is."""
        entry = decode_stored(self._stored(self._place(sort_key[SCORE_BYTES:])))
        self._forget(entry, sort_key)
        self._queued -= 1
        return entry

    def _best_stored(self, name: str) -> bytes | None:
        """Return the sort key of the best document that the store has of an owner."""
        start = owner = _owner_prefix(name)
        found: list[bytes] = []
        for key, place in islice(self._store.items(_OWNED, start), _MOST_TIES):
            if not key.startswith(start):
                break
            if len(key) <= _WHOLE_BYTES:
                return key[len(owner) :]
            start = key[:_WHOLE_BYTES]
            found.append(record_of(self._stored(place))[0])
        return min(found, default=None)

    def _stored(self, place: bytes) -> bytes:
        stored = self._store.get(CURRENT, place)
        if stored is None:
            raise self._store.damaged("the index of owners names a document that is not queued")
        return stored

    def _load(self) -> None:
        for key, value in self._store.items(_OWNERS):
            queued, best = int.from_bytes(value[:_COUNT_BYTES], "big"), value[_COUNT_BYTES:]
            self.owners.load(str(key[1:], "ascii"), best, queued)
        if (queued := sum(self.owners.documents)) != self._queued:
            raise self._store.damaged(f"its owners have {queued:,} documents queued of {self._queued:,}")

    def _index_anew(self) -> None:
        """Find the owners of all documents."""
        self._store.clear(_OWNED)
        self._store.clear(_OWNERS)
        for stored in self._documents():
            self._add_to_owner(decode_stored(stored), record_of(stored)[0])


def stored_frontier(store: Store) -> DurableFrontier:
    """Return the frontier that a store holds, of whichever kind; without an index of owners where that is one by other
    rules, and cannot be made anew because the store is only read. Raises StoreError."""
    state = store.stated(STATE, FRONTIER)
    rules = state.get("owned") or ""
    if rules.startswith(MIXED) and (rules in {MIXED, MIXED_OWNERS} or not store.readonly):
        from crawl4llm.frontier.durable_mixed import DurableMixedFrontier

        return DurableMixedFrontier(store, by_owners=rules != MIXED)
    if state.get("owned") and (state["owned"] == DurableOwnerFrontier.owned or not store.readonly):
        return DurableOwnerFrontier(store)
    return (IndexedFrontier if state.get("indexed", False) else DurableFrontier)(store)


def _owner_prefix(name: str) -> bytes:
    """Return the key of an owner's count and best document, with which the keys of its documents begin: its name, with
    the length before it, so that no such key begins with another."""
    return bytes((len(name),)) + name.encode("ascii")


def _owned_key(name: str, sort_key: bytes) -> bytes:
    """Return a key that sorts as the sort key does among those of an owner; long ones that begin alike, anyhow."""
    key = _owner_prefix(name) + sort_key
    return key if len(key) <= _WHOLE_BYTES else key[:_WHOLE_BYTES] + fingerprint(key)
