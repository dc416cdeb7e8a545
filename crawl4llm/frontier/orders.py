"""The parts of a frontier: a medium that holds the documents, and an order in which they are leased.

Media are memory (:mod:`~crawl4llm.frontier.memory`) and the store (:mod:`~crawl4llm.frontier.stored`); both have the
order by score. :mod:`~crawl4llm.frontier.plain` is a third medium, with the order by score only.

This module has the order in which each document waits in a queue, with others of its owner, its class, or both. The
medium keeps the queues, and an index in memory knows the best document of each.

A document has a *handle*: bytes that sort in the order of the frontier, and begin with its score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from crawl4llm.frontier.frontier import Entry

NameOf = Callable[[str, int], str]
"""Returns the name of a document's queue, by its URL and cell."""


Move = tuple[str, bytes, bytes]
"""A new score of a document: the name of its queue, empty if there is one order for all; its handles before and after.
"""


class Order(Protocol):
    """Documents in the order in which they are leased."""

    def add(self, entry: Entry) -> object:
        """Queue a document."""

    def take(self, most: int) -> Sequence[Entry]:
        """Take the best documents, best first: at most ``most``, and at least one if any may be leased now."""

    def first(self) -> bytes | None:
        """Return the handle of the document that would be taken next."""

    def leave(self, handle: Any) -> Entry:
        """Remove a document."""

    def rerank(self, scores: Iterable[tuple[str, float]]) -> int:
        """See :meth:`crawl4llm.frontier.Frontier.rerank`."""


class Ranked(Protocol):
    """Documents whose worst can be found."""

    def worst(self, surplus: int) -> Sequence[Any]:
        """Return the handles of the ``surplus`` worst documents, worst first."""

    def worst_of(self, host: str, most: int) -> Sequence[Any]:
        """Return the handles of a host's documents beyond the best ``most``, worst first."""

    def __len__(self) -> int:
        """Return the number of documents."""


class Medium(Ranked, Protocol):
    """Documents by key."""

    def add(self, entry: Entry) -> bytes:
        """Keep a document; return its handle."""

    def remove(self, handle: bytes) -> Entry:
        """Remove a document that is there."""

    def rescore(self, key: str, score: float) -> Move | None:
        """Give a document another score. None if it is not there, or has that score."""


class Index(Protocol):
    """Knows the best document of each queue, and the queue that comes next: :mod:`~crawl4llm.frontier.owners`."""

    def add(self, name: str, document: bytes) -> bytes | None:
        """Note that a document is queued. Return the document that is not the best of its queue: the former best, or
        this one; None if it is alone."""

    def remove(self, name: str, document: bytes, successor: Callable[[str], bytes | None]) -> None:
        """Note that a document is no longer queued; ``successor`` is called for the best of the others, if it is
        needed."""

    def take(self) -> tuple[str, bytes] | None:
        """Return the queue that comes next, and its best document, which is then removed; None if none may be leased
        now."""

    def first(self) -> bytes | None:
        """Return the document that :meth:`take` would return."""

    def best(self, name: str) -> bytes | None:
        """Return the best document of a queue."""

    def queued_of(self, name: str) -> int:
        """Return the number of documents in a queue."""


class Queues(Protocol):
    """The documents of each queue in order, in a medium."""

    def add(self, name: str, handle: bytes, worse: bytes | None) -> None:
        """Add a document; ``worse``: the one that the index does not hold as the best of the queue, perhaps another
        one."""

    def drop(self, name: str, handle: bytes) -> None:
        """Remove a document."""

    def move(self, name: str, before: bytes, after: bytes) -> None:
        """Move a document that is not the best, and does not become it."""

    def next(self, name: str) -> bytes | None:
        """Return the best document, after the former best was dropped."""

    def sweep(self) -> None:
        """Clear away stale entries of moves."""


class ByQueues:
    """Implements :class:`Order`: the index decides which queue comes next."""

    def __init__(self, documents: Medium, queues: Queues, index: Index, name_of: NameOf) -> None:
        self._documents, self._queues, self._index, self._name_of = documents, queues, index, name_of

    def add(self, entry: Entry) -> None:
        handle = self._documents.add(entry)
        name = self._name_of(entry.url or entry.key, entry.cell)
        self._queues.add(name, handle, self._index.add(name, handle))

    def take(self, most: int) -> Sequence[Entry]:
        if (taken := self._index.take()) is None:
            return ()
        name, handle = taken
        entry = self._documents.remove(handle)
        self._remove(name, handle)
        return (entry,)

    def first(self) -> bytes | None:
        return self._index.first()

    def leave(self, handle: bytes) -> Entry:
        entry = self._documents.remove(handle)
        self._remove(self._name_of(entry.url or entry.key, entry.cell), handle)
        return entry

    def rerank(self, scores: Iterable[tuple[str, float]]) -> int:
        changed = 0
        rescore, best_of = self._documents.rescore, self._index.best
        for key, score in dict(scores).items():
            if (move := rescore(key, score)) is None:
                continue
            changed += 1
            name, before, after = move
            best = best_of(name)
            if best is not None and before != best < after:
                self._queues.move(name, before, after)
            else:
                self._remove(name, before)
                self._queues.add(name, after, self._index.add(name, after))
        self._queues.sweep()
        return changed

    def _remove(self, name: str, handle: bytes) -> None:
        self._queues.drop(name, handle)
        self._index.remove(name, handle, self._queues.next)
