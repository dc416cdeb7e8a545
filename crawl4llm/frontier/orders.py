"""What a frontier is composed of: a medium that holds the documents, and an order in which they are leased.

Media are memory (:mod:`~crawl4llm.frontier.memory`) and the store (:mod:`~crawl4llm.frontier.stored`). Each keeps its
documents by score, if that is the order. Here is the order in which each document waits in a queue, with others of its
owner, its class, or both: the medium keeps the queues, and an index in memory knows the best document of each.
:mod:`~crawl4llm.frontier.plain` is the third medium, which has nothing but the order by score.

A document has a *handle*, bytes that sort as the frontier does, and begin with its score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from crawl4llm.frontier.frontier import Entry

NameOf = Callable[[str, int], str]
"""Returns the name of the queue in which a document waits, by its URL and cell."""


Move = tuple[str, bytes, bytes]
"""A new score of a document: the name of its queue, empty if there is one order for all; its handles before and after.
"""


class Order(Protocol):
    """Documents in the order in which they are leased."""

    def add(self, entry: Entry) -> object:
        """Queue a document."""

    def take(self, most: int) -> Sequence[Entry]:
        """Take the best documents, best first: ``most`` at most, and at least one unless none may be leased now."""

    def first(self) -> bytes | None:
        """Return the handle of the document that would be taken next."""

    def leave(self, handle: Any) -> Entry:
        """Take a document out."""

    def rerank(self, scores: Iterable[tuple[str, float]]) -> int:
        """See :meth:`crawl4llm.frontier.Frontier.rerank`."""


class Ranked(Protocol):
    """Documents of which the worst can be found."""

    def worst(self, surplus: int) -> Sequence[Any]:
        """Return the handles of so many documents, worst first."""

    def worst_of(self, host: str, most: int) -> Sequence[Any]:
        """Return the handles of the documents of a host beyond so many, worst first."""

    def __len__(self) -> int:
        """Return the number of documents."""


class Medium(Ranked, Protocol):
    """Documents by key."""

    def add(self, entry: Entry) -> bytes:
        """Keep a document; return its handle."""

    def remove(self, handle: bytes) -> Entry:
        """Take out a document that is there."""

    def rescore(self, key: str, score: float) -> Move | None:
        """Give a document another score. None: it is not there, or has that score."""


class Index(Protocol):
    """Knows the best document of each queue, and which queue's comes next: :mod:`~crawl4llm.frontier.owners`."""

    def add(self, name: str, document: bytes) -> bytes | None:
        """Note that a document is queued. Return what is not the best of its queue: the one that was, or this one; None
        if it is alone."""

    def remove(self, name: str, document: bytes, successor: Callable[[str], bytes | None]) -> None:
        """Note that a document is no longer queued; ``successor`` is asked for the best of the others, if need be."""

    def take(self) -> tuple[str, bytes] | None:
        """Return the queue that comes next, and its best document, which is to be removed; None if none may be leased
        now."""

    def first(self) -> bytes | None:
        """Return the document that :meth:`take` would."""

    def best(self, name: str) -> bytes | None:
        """Return the best document of a queue."""

    def queued_of(self, name: str) -> int:
        """Return the number of documents in a queue."""


class Queues(Protocol):
    """The documents of each queue in order, in a medium."""

    def add(self, name: str, handle: bytes, worse: bytes | None) -> None:
        """Put a document in; ``worse``: what the index has not as the best of the queue, which may be another one."""

    def drop(self, name: str, handle: bytes) -> None:
        """Take a document out."""

    def move(self, name: str, before: bytes, after: bytes) -> None:
        """Put a document that is not the best, and does not become it, in another place."""

    def next(self, name: str) -> bytes | None:
        """Return the best document, after the one before was dropped."""

    def sweep(self) -> None:
        """Clear away what moves have left."""


class ByQueues:
    """Implements :class:`Order`: the index says whose turn it is."""

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
