"""The frontier with MIXTURE: documents wait by class too, and the class furthest below its share is served next.

A *cell* is a combination of classes, one of each classifier, as a number from 1 on; a document waits in its predicted
cell. Seeds are in cell 0, without a prediction, and come first. The choice of a cell depends on the classes of the
crawled pages and on the cells of the documents on lease, so it is made for each document. It needs only the best
document of each cell; documents are not ranked again.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product
from typing import Final

from crawl4llm.base.domains import owner_of
from crawl4llm.frontier.owners import READY, Owner, OwnerIndex

MOST_CELLS: Final = 1000
_DIGIT: Final = 64
"""A queue's name ends with its cell in two characters; the first of them is below a blank, as in no owner's name."""
_SPARE: Final = 1000
"""Stale places up to which a heap is not rebuilt."""


class Shares:
    """The number of crawled pages of each class, and by how much that is too few."""

    def __init__(self, targets: Sequence[Sequence[float]]) -> None:
        """``targets``: by classifier, the wanted share of each class; they sum to 1."""
        self.targets = targets
        self.crawled = [[0] * len(shares) for shares in targets]
        """Pages crawled, by classifier and class."""
        self._counts = [[0] * len(shares) for shares in targets]
        self._pages = 0
        """The same counts with documents on lease, and their total."""
        self._cells = list(product(*(range(len(shares)) for shares in targets)))
        self._numbers = {classes: cell for cell, classes in enumerate(self._cells, 1)}

    def cell_of(self, classes: Sequence[int]) -> int:
        """Return the cell of a combination of classes."""
        return self._numbers[tuple(classes)]

    def count(self, classes: Sequence[int]) -> None:
        """Count a crawled page."""
        self._add(classes, 1)
        for counts, number in zip(self.crawled, classes, strict=True):
            counts[number] += 1

    def load(self, crawled: Sequence[Sequence[int]]) -> None:
        """Restore the counts of another process; this one must not have counted yet."""
        self._pages += sum(crawled[0])
        for kept, counts, found in zip(self.crawled, self._counts, crawled, strict=True):
            for number, pages in enumerate(found):
                kept[number] += pages
                counts[number] += pages

    def lease(self, cell: int, leases: int) -> None:
        """Change the number of leases in a cell by ``leases``."""
        if cell:
            self._add(self._cells[cell - 1], leases)

    def lack(self, cell: int) -> float:
        """Return how many pages of a cell's classes are missing, added up over the classifiers."""
        if not cell:
            return math.inf
        return sum(
            targets[number] * self._pages - counts[number]
            for targets, counts, number in zip(self.targets, self._counts, self._cells[cell - 1], strict=True)
        )

    def _add(self, classes: Sequence[int], pages: int) -> None:
        self._pages += pages
        for counts, number in zip(self._counts, classes, strict=True):
            counts[number] += pages


def queue_of(url: str, cell: int, *, by_owners: bool) -> str:
    """Return the name of the queue in which a document waits: its cell, with its owner for an order ``by_owners``."""
    return f"{owner_of(url) if by_owners else ''}{_ending(cell)}"


def _ending(cell: int) -> str:
    return chr(1 + cell // _DIGIT) + chr(cell % _DIGIT)


def _parts(queue: str) -> tuple[str, int]:
    """Return owner and cell of a queue's name."""
    return queue[:-2], (ord(queue[-2]) - 1) * _DIGIT + ord(queue[-1])


class ClassIndex:
    """Implements :class:`crawl4llm.frontier.orders.Index` of queues by owner and cell, over an index of the owners.

    Each cell has a heap of ready owners, with stale places as in the heap of all.
    """

    def __init__(self, shares: Shares, owners: OwnerIndex) -> None:
        self._shares, self._owners = shares, owners
        self._bests: dict[str, dict[int, bytes]] = {}
        """Best documents by owner and cell."""
        self._counts: Counter[str] = Counter()
        """Documents by queue."""
        self._heaps: dict[int, list[tuple[bytes, Owner]]] = {}
        owners.on_ready = self._offer_all

    def add(self, name: str, document: bytes) -> bytes | None:
        owner, cell = _parts(name)
        bests = self._bests.setdefault(owner, {})
        before = bests.get(cell)
        self._counts[name] += 1
        if before is not None and before <= document:
            self._owners.add(owner, document)
            return document
        bests[cell] = document
        was_ready = self._owners.ready(owner)
        self._owners.add(owner, document)
        if was_ready is not None:
            self._offer(was_ready, cell)
        return before

    def remove(self, name: str, document: bytes, successor: Callable[[str], bytes | None]) -> None:
        owner, cell = _parts(name)
        self._counts[name] -= 1
        bests = self._bests[owner]
        if bests[cell] == document:
            if (best := successor(name)) is not None:
                bests[cell] = best
                if (ready := self._owners.ready(owner)) is not None:
                    self._offer(ready, cell)
            else:
                del bests[cell], self._counts[name]
                if not bests:
                    del self._bests[owner]
        self._owners.remove(owner, document, lambda _: min(bests.values(), default=None))

    def take(self) -> tuple[str, bytes] | None:
        if (found := self._next()) is None:
            return None
        cell, owner = found
        best, _ = heapq.heappop(self._heaps[cell])
        self._owners.begin(owner)
        return f"{owner.name}{_ending(cell)}", best

    def first(self) -> bytes | None:
        if (found := self._next()) is None:
            return None
        cell, owner = found
        return self._bests[owner.name][cell]

    def best(self, name: str) -> bytes | None:
        owner, cell = _parts(name)
        return self._bests.get(owner, {}).get(cell)

    def queued_of(self, name: str) -> int:
        return self._counts[name]

    # -- its parts ------------------------------------------------------------------------------------------------

    def _next(self) -> tuple[int, Owner] | None:
        """Return the cell to serve next, and the owner of its best document."""
        if self._owners.first() is None:
            return None
        for cell in sorted(self._heaps, key=lambda one: (-self._shares.lack(one), one)):
            if (owner := self._first(cell)) is not None:
                return cell, owner
        return None

    def _offer_all(self, owner: Owner) -> None:
        """Put an owner that has become ready into the heaps of all cells of its documents."""
        for cell in self._bests[owner.name]:
            self._offer(owner, cell)

    def _offer(self, owner: Owner, cell: int) -> None:
        """Put a ready owner into the heap of a cell; rebuild the heap if it is mostly stale."""
        heap = self._heaps.setdefault(cell, [])
        heapq.heappush(heap, (self._bests[owner.name][cell], owner))
        if len(heap) > 2 * self._owners.numbers[READY] + _SPARE:
            heap[:] = [
                (bests[cell], ready)
                for name, bests in self._bests.items()
                if cell in bests and (ready := self._owners.ready(name)) is not None
            ]
            heapq.heapify(heap)

    def _first(self, cell: int) -> Owner | None:
        """Return the first owner in the heap of a cell, without stale places."""
        heap = self._heaps[cell]
        while heap:
            best, owner = heap[0]
            if owner.state == READY and self._bests.get(owner.name, {}).get(cell) == best:
                return owner
            heapq.heappop(heap)
        del self._heaps[cell]
        return None
