"""A frontier: documents in an order, and the table of leases. :mod:`~crawl4llm.frontier.opening` composes it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from crawl4llm.base.reasons import FRONTIER_FULL, HOST_FULL
from crawl4llm.base.urls import host_of
from crawl4llm.frontier.frontier import Caps, Entry, Evicted, Lease, Outcome
from crawl4llm.frontier.mixed import Shares
from crawl4llm.frontier.orders import Order, Ranked
from crawl4llm.frontier.owners import OwnerIndex
from crawl4llm.frontier.plain import PlainDocuments
from crawl4llm.frontier.runs import encode, entry_in, pack
from crawl4llm.frontier.store import Store
from crawl4llm.frontier.stored import StoredDocuments

FRONTIER_STATE: Final = b"frontier"
"""Key of the frontier's state in a store."""
LEASES: Final = "leases"
"""The table of a store with documents on lease, by token."""
OWNERS: Final = "owners"
"""Part of the name of each order by owner."""


class Ledger:
    """The table of leases, which it begins and ends. A document on lease is here and nowhere else in the frontier."""

    def __init__(self, shares: Shares | None = None) -> None:
        """``shares`` count the documents on lease by class."""
        self._shares = shares
        self._entries: dict[int, Entry] = {}
        """By token."""
        self._stored: set[int] = set()
        """Tokens of the leases that the store has."""
        self._last_token = 0
        self._archived = 0
        self._outcomes: Counter[tuple[Outcome, str | None]] = Counter()

    def begin(self, entries: Iterable[Entry]) -> list[Lease]:
        """Lease documents, in this order."""
        leases = [Lease(entry, token) for token, entry in enumerate(entries, self._last_token + 1)]
        for entry, token in leases:
            entry.attempts += 1
            self._entries[token] = entry
            if self._shares is not None:
                self._shares.lease(entry.cell, 1)
        self._last_token += len(leases)
        return leases

    def end(self, lease: Lease, *, attempted: bool = True) -> Entry | None:
        """End a lease and return its document, whose attempt is counted unless it was not ``attempted``. None if the
        lease had ended before."""
        entry = self._entries.pop(lease.token, None)
        if entry is not None:
            if not attempted:
                entry.attempts -= 1
            if self._shares is not None:
                self._shares.lease(entry.cell, -1)
        return entry

    def count(self, outcome: Outcome, reason: str | None, documents: int = 1) -> None:
        """Count documents that ended."""
        if outcome is Outcome.ARCHIVED:  # most are, and hashing an enum is slow
            self._archived += documents
        elif documents:
            self._outcomes[outcome, reason] += documents

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def outcomes(self) -> Mapping[tuple[Outcome, str | None], int]:
        """Numbers of documents that ended, by outcome and reason."""
        return {**({(Outcome.ARCHIVED, None): self._archived} if self._archived else {}), **self._outcomes}

    def leases(self) -> list[Lease]:
        """Return the leases, in the order of tokens."""
        return [Lease(entry, token) for token, entry in sorted(self._entries.items())]

    # -- durability -----------------------------------------------------------------------------------------------

    def load(self, store: Store, state: Mapping[str, Any]) -> None:
        """Restore the leases in a store and the result of :meth:`save`. Raises StoreError."""
        self._last_token = state.get("last_token", 0)
        self._archived = state.get("archived", 0)
        self._outcomes.update({(Outcome(outcome), why): n for outcome, why, n in state.get("outcomes", [])})
        for key, value in store.items(LEASES):
            self._entries[int.from_bytes(key, "big")] = entry = entry_in(store, value)
            if self._shares is not None:
                self._shares.lease(entry.cell, 1)
        self._stored = set(self._entries)

    def save(self, store: Store) -> dict[str, Any]:
        """Write changes to a store; return the rest of the state, as JSON."""
        for token in self._stored - self._entries.keys():
            store.delete(LEASES, token.to_bytes(8, "big"))
        for token in self._entries.keys() - self._stored:
            store.put(LEASES, token.to_bytes(8, "big"), pack([encode(self._entries[token])]))
        self._stored = set(self._entries)
        outcomes = [[outcome.value, reason, count] for (outcome, reason), count in self._outcomes.items()]
        return {"last_token": self._last_token, "archived": self._archived, "outcomes": outcomes}


class ComposedFrontier:
    """Implements :class:`crawl4llm.frontier.Frontier`, and for an order by owner
    :class:`crawl4llm.frontier.OwnerFrontier`."""

    owners: OwnerIndex
    """Only for an order by owner or class."""

    def __init__(
        self, documents: Ranked, order: Order, ledger: Ledger, caps: Caps, owners: OwnerIndex | None = None
    ) -> None:
        """``order`` of the ``documents``, by ``owners`` if there are any."""
        self._documents, self._order, self._ledger, self._caps = documents, order, ledger, caps
        if owners is not None:
            self.owners = owners

    def push(self, entries: Iterable[Entry]) -> list[Evicted]:
        total, per_host = self._caps
        if per_host is not None:
            entries = list(entries)
        add = self._order.add
        for entry in entries:
            add(entry)
        evicted: list[Evicted] = []
        if per_host is not None:
            for host in sorted({host_of(entry.url) for entry in entries} - {""}):
                evicted += self._evict(self._documents.worst_of(host, per_host), HOST_FULL)
        if total is not None and (surplus := len(self._documents) - total) > 0:
            evicted += self._evict(self._documents.worst(surplus), FRONTIER_FULL)
        return evicted

    def rerank(self, scores: Iterable[tuple[str, float]]) -> int:
        return self._order.rerank(scores)

    def lease(self, n: int) -> list[Lease]:
        leases: list[Lease] = []
        while len(leases) < n and (taken := self._order.take(n - len(leases))):
            leases += self._ledger.begin(taken)
        return leases

    def first(self) -> bytes | None:
        """Return the sort bytes of the document that would be leased next, its score first; None if no document is
        left."""
        return self._order.first()

    def settle(self, lease: Lease, outcome: Outcome, reason: str | None = None) -> bool:
        if self._ledger.end(lease) is None:
            return False
        self._ledger.count(outcome, reason)
        return True

    def give_back(self, lease: Lease, *, attempted: bool) -> bool:
        if (entry := self._ledger.end(lease, attempted=attempted)) is None:
            return False
        self._order.add(entry)
        return True

    def withdraw(self, lease: Lease) -> Entry | None:
        return self._ledger.end(lease, attempted=False)

    def drop_owner(self, owner: str, outcome: Outcome, reason: str, most: int) -> list[Entry]:
        """See :class:`crawl4llm.frontier.OwnerFrontier`."""
        ended: list[Entry] = []
        while len(ended) < most and (best := self.owners.best(owner)) is not None:
            ended.append(self._order.leave(best))
        self._ledger.count(outcome, reason, len(ended))
        return ended

    def __len__(self) -> int:
        return len(self._documents)

    @property
    def leased(self) -> int:
        return len(self._ledger)

    @property
    def outcomes(self) -> Mapping[tuple[Outcome, str | None], int]:
        return self._ledger.outcomes

    def leases(self) -> list[Lease]:
        """Return the leases, in the order of tokens."""
        return self._ledger.leases()

    def _evict(self, handles: Sequence[Any], reason: str) -> list[Evicted]:
        self._ledger.count(Outcome.DROPPED, reason, len(handles))
        return [Evicted(self._order.leave(handle), reason) for handle in handles]


class StoredFrontier(ComposedFrontier):
    """A frontier in a store. :meth:`save` writes all of it, and a commit of the store makes it durable. A new frontier
    on the store then has the same documents in the same order, and the same leases with their tokens.

    Holds and parking of owners outlive the process without a commit. Exchanges, and waits since the last one, do not,
    so the process that opens it must call ``owners.hold_all()``. A restored lease does not make its owner busy.
    """

    _documents: PlainDocuments | StoredDocuments

    def __init__(self, store: Store, name: str, *parts: Any) -> None:
        """``name``: of the order, as in the store; for the others see the base class."""
        super().__init__(*parts)
        self._store, self._name = store, name
        self.by_owners = OWNERS in name and hasattr(self, "owners")
        """True for an order by owner."""

    def save(self) -> None:
        """Write changes to the store. Raises StoreError."""
        state = {"order": self._name, **self._documents.state(), **self._ledger.save(self._store)}
        self._store.put("state", FRONTIER_STATE, json.dumps({**state, "queued": len(self)}).encode())

    def __iter__(self) -> Iterator[Entry]:
        """Yield all documents queued at the last save, in no meaningful order."""
        return iter(self._documents)

    def best(self, most: int | None = None) -> Iterator[Entry]:
        """Yield the best of the documents queued at the last save, best first; ``most`` None: all."""
        return self._documents.best(most)

    def rewrite(self, unwanted: Callable[[Entry], bool]) -> Iterator[list[Entry]]:
        """Remove ``unwanted`` documents; yield those of each piece, to be saved and committed. Sorted runs become one.

        Nothing else may be done before the end. The state saved after a piece can be restored and rewritten again.
        """
        self.save()
        return self._documents.rewrite(unwanted, self._order.leave)

    def count_dropped(self, reason: str, documents: int) -> None:
        """Count documents that :meth:`rewrite` removed."""
        self._ledger.count(Outcome.DROPPED, reason, documents)

    def verify(self) -> None:
        """Raise StoreError unless everything of the frontier is there, once and in order."""
        self._documents.verify()
