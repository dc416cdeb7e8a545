"""The frontier with MIXTURE: documents wait by class too, and the class furthest below its share is served next.

A *cell* is a combination of classes, one of each classifier, as a number from 1 on; a document waits in the cell that
it is predicted to be in. Seeds are in cell 0, of which nothing is known, and come first. Which cell is served depends
on the classes that the pages crawled have, and on the cells of what is on lease: so it is decided anew for each
document, and all it takes is the best document of each cell. Nothing is ranked anew.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, UserDict
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from operator import itemgetter
from typing import Any, Final

from crawl4llm.base.domains import owner_of
from crawl4llm.frontier import IMPATIENT, NO_CAPS, SCORE_BYTES, Caps, Entry, Patience
from crawl4llm.frontier.memory import unpack
from crawl4llm.frontier.memory_owned import MemoryOwnerFrontier
from crawl4llm.frontier.owners import READY, Owner, OwnerIndex

MOST_CELLS: Final = 1000
_DIGIT: Final = 64
"""A queue's name ends with its cell in two characters; the first of them is below a blank, as in no owner's name."""
_SPARE: Final = 1000
"""Stale places in a heap that are no reason to build it anew."""


class Shares:
    """How many of the pages crawled have each class, and by how much that is too few."""

    def __init__(self, targets: Sequence[Sequence[float]]) -> None:
        """``targets``: by classifier, the share wanted of each class; they sum to 1."""
        self.targets = targets
        self.crawled = [[0] * len(shares) for shares in targets]
        """Pages crawled, by classifier and class."""
        self._counts = [[0] * len(shares) for shares in targets]
        self._pages = 0
        """The same with what is on lease; and all of it."""
        self._cells = list(product(*(range(len(shares)) for shares in targets)))
        self._numbers = {classes: cell for cell, classes in enumerate(self._cells, 1)}

    def cell_of(self, classes: Sequence[int]) -> int:
        """Return the cell of some classes."""
        return self._numbers[tuple(classes)]

    def count(self, classes: Sequence[int]) -> None:
        """Count a page crawled."""
        self._add(classes, 1)
        for counts, number in zip(self.crawled, classes, strict=True):
            counts[number] += 1

    def load(self, crawled: Sequence[Sequence[int]]) -> None:
        """Count pages that were crawled by another process; none were yet by this one."""
        self._pages += sum(crawled[0])
        for kept, counts, found in zip(self.crawled, self._counts, crawled, strict=True):
            for number, pages in enumerate(found):
                kept[number] += pages
                counts[number] += pages

    def lease(self, cell: int, leases: int) -> None:
        """Count so many more leases, or fewer, in a cell."""
        if cell:
            self._add(self._cells[cell - 1], leases)

    def lack(self, cell: int) -> float:
        """Return how many pages too few there are of a cell's classes, added up over the classifiers."""
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


class Leases(UserDict[int, Entry]):
    """Documents on lease, by token, which are counted in their cells."""

    def __init__(self, shares: Shares, leases: Mapping[int, Entry]) -> None:
        self._shares = shares
        super().__init__(leases)

    def __setitem__(self, token: int, entry: Entry) -> None:
        super().__setitem__(token, entry)
        self._shares.lease(entry.cell, 1)

    def __delitem__(self, token: int) -> None:
        self._shares.lease(self[token].cell, -1)
        super().__delitem__(token)


def queue_of(entry: Entry, *, by_owners: bool) -> str:
    """Return the name under which the index has a document: its owner, if owners count, and its cell."""
    owner = owner_of(entry.url or entry.key) if by_owners else ""
    return f"{owner}{chr(1 + entry.cell // _DIGIT)}{chr(entry.cell % _DIGIT)}"


def _parts(queue: str) -> tuple[str, int | None]:
    """Return owner and cell of a queue's name; an owner's own name has no cell."""
    if len(queue) < 2 or queue[-2] >= " ":
        return queue, None
    return queue[:-2], (ord(queue[-2]) - 1) * _DIGIT + ord(queue[-1])


class MixedIndex(OwnerIndex[bytes]):
    """An owner index that knows the best document of each owner and cell.

    The frontier calls it with names of queues (:func:`queue_of`) where it calls an owner index with names of owners.
    Each cell has a heap of ready owners, with stale places as in the heap of all.
    """

    def __init__(self, shares: Shares, *args: Any) -> None:
        self._shares = shares
        self._bests: dict[str, dict[int, bytes]] = {}
        """By owner and cell."""
        self._counts: Counter[str] = Counter()
        """Documents by queue."""
        self._heaps: dict[int, list[tuple[bytes, Owner[bytes]]]] = {}
        super().__init__(*args)

    def add(self, name: str, document: bytes) -> bytes | None:
        owner, cell = _parts(name)
        assert cell is not None
        bests = self._bests.setdefault(owner, {})
        before = bests.get(cell)
        self._counts[name] += 1
        if before is not None and before <= document:
            super().add(owner, document)
            return document
        bests[cell] = document
        was_ready = self._is_ready(owner)
        super().add(owner, document)
        if was_ready:
            self._offer(self._owners[owner], cell)
        return before

    def remove(self, name: str, document: bytes, successor: Callable[[str], bytes | None]) -> None:
        owner, cell = _parts(name)
        assert cell is not None
        self._counts[name] -= 1
        bests = self._bests[owner]
        if bests[cell] == document:
            if (best := successor(name)) is not None:
                bests[cell] = best
                if self._is_ready(owner):
                    self._offer(self._owners[owner], cell)
            else:
                del bests[cell], self._counts[name]
                if not bests:
                    del self._bests[owner]
        super().remove(owner, document, lambda _: min(bests.values(), default=None))

    def load(self, name: str, best: bytes, queued: int) -> None:
        self.add(name, best)
        owner = self._owners[_parts(name)[0]]
        owner.queued += queued - 1
        self._documents[owner.state] += queued - 1
        self._counts[name] += queued - 1

    def take(self) -> tuple[str, bytes] | None:
        if self.now < self._gate or not self._has_ready():
            return None
        for cell in sorted(self._heaps, key=lambda one: (-self._shares.lack(one), one)):
            if (owner := self._first(cell)) is not None:
                best, _ = heapq.heappop(self._heaps[cell])
                if owner.name:
                    owner.busy = True
                    self._put(owner)
                return owner.name, best
        return None

    def best(self, name: str) -> bytes | None:
        owner, cell = _parts(name)
        return super().best(owner) if cell is None else self._bests.get(owner, {}).get(cell)

    def queued_of(self, name: str) -> int:
        owner, cell = _parts(name)
        return super().queued_of(owner) if cell is None else self._counts[name]

    # -- its parts ------------------------------------------------------------------------------------------------

    def _is_ready(self, name: str) -> bool:
        owner = self._owners.get(name)
        return owner is not None and owner.state == READY

    def _put(self, owner: Owner[bytes], *, moved: bool = False) -> None:
        before = owner.state
        super()._put(owner, moved=moved)
        if owner.state == READY != before:
            for cell in self._bests[owner.name]:
                self._offer(owner, cell)

    def _offer(self, owner: Owner[bytes], cell: int) -> None:
        """Put a ready owner into the heap of a cell; build that anew where it is mostly stale."""
        heap = self._heaps.setdefault(cell, [])
        heapq.heappush(heap, (self._bests[owner.name][cell], owner))
        if len(heap) > 2 * self._numbers[READY] + _SPARE:
            heap[:] = [
                (bests[cell], self._owners[name])
                for name, bests in self._bests.items()
                if cell in bests and self._is_ready(name)
            ]
            heapq.heapify(heap)

    def _first(self, cell: int) -> Owner[bytes] | None:
        """Return the owner that stands first in the heap of a cell when what is stale is gone."""
        heap = self._heaps[cell]
        while heap:
            best, owner = heap[0]
            if owner.state == READY and self._bests.get(owner.name, {}).get(cell) == best:
                return owner
            heapq.heappop(heap)
        del self._heaps[cell]
        return None


class MemoryMixedFrontier(MemoryOwnerFrontier):
    """Implements :class:`crawl4llm.frontier.OwnerFrontier`, with MIXTURE; ends with the process. Not ``by_owners``: no
    document has an owner, and it is a plain frontier."""

    def __init__(
        self, shares: Shares, caps: Caps = NO_CAPS, patience: Patience = IMPATIENT, *, by_owners: bool
    ) -> None:
        super().__init__(caps, patience)
        self._by_owners = by_owners
        self.owners = MixedIndex(shares, patience, itemgetter(slice(SCORE_BYTES)))
        self._leases = Leases(shares, {})

    def _queue(self, entry: Entry) -> str:
        return queue_of(entry, by_owners=self._by_owners)

    def _queue_of(self, key: str, document: bytes) -> str:
        return self._queue(unpack(document))
