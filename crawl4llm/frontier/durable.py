"""The frontier on disk, for crawls that outlive their process and outgrow its memory."""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping

from crawl4llm.base.reasons import FRONTIER_FULL
from crawl4llm.base.received import FRONTIER
from crawl4llm.frontier import NO_CAPS, Caps, Entry, Evicted, Lease, Outcome
from crawl4llm.frontier.runs import Record, SortedRuns, decode, encode, pack, unpack
from crawl4llm.frontier.store import Store

STATE, LEASES = b"frontier", "leases"
_MOST_FRESH = 65_536
"""Records in memory, about 25 MB, where there is one frontier."""
_BYTES_IN_MEMORY = 400
"""Of such a record."""
_MANY = 2048
"""Leases at once for which many records are taken together."""


class DurableFrontier:
    """Implements :class:`crawl4llm.frontier.Frontier` in a store.

    What was pushed since the last save is a heap in memory, the rest lies in sorted runs. :meth:`save` writes all of it
    to the store, whose commit makes it last: a new frontier on the store then has the same documents in the same order,
    and the same leases, with their tokens. Only the total cap is heeded; see :class:`IndexedFrontier`.
    """

    indexed = False
    owned = ""
    """The rules by which documents have owners, where there is an index of owners."""

    def __init__(self, store: Store, caps: Caps = NO_CAPS) -> None:
        """Take up what the store holds. Raises StoreError where that is damaged."""
        self._store = store
        self._caps = caps
        self.most_fresh = _MOST_FRESH
        """Records in memory at most."""
        state = store.stated(STATE, FRONTIER)
        self._runs = SortedRuns(store, state.get("runs"), keep=self._keep())
        self._fresh: list[Record] = []
        self._queued: int = state.get("queued", 0)
        self._last_token: int = state.get("last_token", 0)
        self._archived: int = state.get("archived", 0)
        self._outcomes = Counter({(Outcome(outcome), why): n for outcome, why, n in state.get("outcomes", [])})
        self._leases: MutableMapping[int, Entry] = {
            int.from_bytes(key, "big"): self._stored_lease(value) for key, value in store.items(LEASES)
        }
        self._stored_leases = set(self._leases)

    # -- the frontier's protocol ----------------------------------------------------------------------------------

    def push(self, entries: Iterable[Entry]) -> list[Evicted]:
        self._enter(entries)
        evicted = []
        while self._caps.total is not None and self._queued > self._caps.total:
            if (entry := self._leave(self._pop_worst())) is not None:
                evicted.append(self._evict(entry, FRONTIER_FULL))
        return evicted

    def rerank(self, scores: Iterable[tuple[str, float]]) -> int:
        """See :meth:`IndexedFrontier.rerank`; this store could not find the documents."""
        if any(True for _ in scores):
            raise TypeError("documents are reranked in an IndexedFrontier only")
        return 0

    def lease(self, n: int) -> list[Lease]:
        if n >= _MANY:
            self._store_fresh()
        leases: list[Lease] = []
        while len(leases) < n and self._queued:
            entries = filter(None, map(self._leave, self._next_best(n - len(leases))))
            new = [Lease(entry, token) for token, entry in enumerate(entries, self._last_token + 1)]
            for entry, token in new:
                entry.attempts += 1
                self._leases[token] = entry
            self._last_token += len(new)
            self._queued -= len(new)
            leases += new
        return leases

    def first(self) -> bytes | None:
        """Return by what the document sorts that would be leased next; None where there is none."""
        while self._queued:
            (record,) = self._next_best(1)
            if self._look_up(record) is not None:
                heapq.heappush(self._fresh, record)
                return record[0]
        return None

    def settle(self, lease: Lease, outcome: Outcome, reason: str | None = None) -> bool:
        if self._leases.pop(lease.token, None) is None:
            return False
        if outcome is Outcome.ARCHIVED:  # most are, and hashing an enum is slow
            self._archived += 1
        else:
            self._outcomes[outcome, reason] += 1
        return True

    def give_back(self, lease: Lease, *, attempted: bool) -> bool:
        entry = self._leases.pop(lease.token, None)
        if entry is None:
            return False
        if not attempted:
            entry.attempts -= 1
        self._enter([entry])
        return True

    def withdraw(self, lease: Lease) -> Entry | None:
        entry = self._leases.pop(lease.token, None)
        if entry is not None:
            entry.attempts -= 1
        return entry

    def __len__(self) -> int:
        return self._queued

    @property
    def leased(self) -> int:
        return len(self._leases)

    @property
    def outcomes(self) -> Mapping[tuple[Outcome, str | None], int]:
        archived = {(Outcome.ARCHIVED, None): self._archived} if self._archived else {}
        return {**archived, **self._outcomes}

    def close(self) -> None:
        """Do nothing: the store is closed by whoever opened it."""

    # -- durability -----------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Write to the store what it does not hold yet. Raises StoreError."""
        self._store_fresh()
        for token in self._stored_leases - self._leases.keys():
            self._store.delete(LEASES, token.to_bytes(8, "big"))
        for token in self._leases.keys() - self._stored_leases:
            self._store.put(LEASES, token.to_bytes(8, "big"), pack([encode(self._leases[token])]))
        self._stored_leases = set(self._leases)
        state = {
            "indexed": self.indexed,
            "owned": self.owned,
            "runs": self._runs.state(),
            "queued": self._queued,
            "last_token": self._last_token,
            "archived": self._archived,
            "outcomes": [[outcome.value, reason, count] for (outcome, reason), count in self._outcomes.items()],
        }
        self._store.put("state", STATE, json.dumps(state).encode())

    def leases(self) -> list[Lease]:
        """Return what is on lease, in the order of tokens."""
        return [Lease(entry, token) for token, entry in sorted(self._leases.items())]

    def __iter__(self) -> Iterator[Entry]:
        """Yield all documents queued at the last save, best first."""
        return (entry for record in self._runs if (entry := self._look_up(record)) is not None)

    def rewrite(self, unwanted: Callable[[Entry], bool]) -> Iterator[list[Entry]]:
        """Merge all runs into one, without some documents; yield those left out of each piece, to be saved, committed.

        Nothing else may be done until it is through; what was saved after a piece can be taken up and rewritten again.
        """
        self.save()
        self._runs.start_over()
        more = True
        while more:
            gone: list[Entry] = []

            def keep(record: Record, gone: list[Entry] = gone) -> bool:
                entry = self._look_up(record)
                if entry is None or not unwanted(entry):
                    return entry is not None
                self._leave(record)
                gone.append(entry)
                return False

            more = self._runs.go_on(_MOST_FRESH, keep)
            self._queued -= len(gone)
            yield gone

    def count_dropped(self, reason: str, documents: int) -> None:
        """Count documents that :meth:`rewrite` left out."""
        if documents:
            self._outcomes[Outcome.DROPPED, reason] += documents

    def verify(self) -> None:
        """Raise StoreError unless everything of the frontier is there, once and in order."""
        self._runs.verify()
        if (count := sum(1 for _ in self)) != self._queued:
            raise self._store.damaged(f"{count:,} documents are queued of {self._queued:,}")

    # -- its parts ------------------------------------------------------------------------------------------------

    def _enter(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            heapq.heappush(self._fresh, self._record(entry))
            self._queued += 1
            if len(self._fresh) >= self.most_fresh:
                self._store_fresh()

    def _store_fresh(self) -> None:
        self._runs.add(sorted(self._fresh))
        self._fresh = []

    def _next_best(self, most: int) -> list[Record]:
        """Take the best records, in order; at least one."""
        if most >= _MANY and not self._fresh and (many := self._runs.pop_many(most)):
            return many
        stored = self._runs.first()
        if stored is None or (self._fresh and self._fresh[0][0] < stored):
            return [heapq.heappop(self._fresh)]
        return [self._runs.pop()]

    def _pop_worst(self) -> Record:
        stored = self._runs.last()
        self._fresh.sort()  # which leaves it a heap, and costs next to nothing the second time
        if stored is None or (self._fresh and self._fresh[-1][0] > stored):
            return self._fresh.pop()
        return self._runs.pop_last()

    def _evict(self, entry: Entry, reason: str) -> Evicted:
        self._queued -= 1
        self._outcomes[Outcome.DROPPED, reason] += 1
        return Evicted(entry, reason)

    def _record(self, entry: Entry) -> Record:
        """Return the record that is queued for a document."""
        return encode(entry)

    def _look_up(self, record: Record) -> Entry | None:
        """Return the document that a record was queued for, unless it has left the frontier."""
        return decode(record)

    def _leave(self, record: Record) -> Entry | None:
        """Return the same document and take it out of the frontier."""
        return self._look_up(record)

    def _keep(self) -> Callable[[Record], bool] | None:
        """Return a test for records whose documents have not left the frontier; None: all are such."""
        return None

    def _stored_lease(self, value: bytes) -> Entry:
        try:
            (record,) = unpack(value)
        except ValueError as error:
            raise self._store.damaged(f"a lease: {error}") from None
        return decode(record)


def expected_memory(documents: int) -> int:
    """Return the bytes that a frontier of so many documents takes."""
    return min(documents, _MOST_FRESH) * _BYTES_IN_MEMORY
