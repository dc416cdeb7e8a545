"""The link graph as far as a crawl has seen it: which crawled page links to which document."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from crawl4llm.base.shapes import whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers: TypeAlias = NDArray[np.int64]


DUMPED: Final = ([{str}], [whole()], [whole()], [whole()])
"""The shape of a graph in JSON: keys, and numbers of pages, ends of their targets, and targets."""


class SeenGraph:
    """Documents have numbers in the order in which they were seen; a link between two of them counts once.

    8 bytes a link, besides the keys.
    """

    def __init__(self) -> None:
        self._keys: list[str] = []
        self._numbers: dict[str, int] = {}
        self.pages = array("q")
        """The pages crawled, in crawl order."""
        self._ends = array("q")
        """For each of them, where its targets end in ``_targets``."""
        self._targets = array("q")
        self._places: dict[int, int] = {}
        """The place of a page in ``pages``."""

    def __len__(self) -> int:
        """Return the number of documents seen."""
        return len(self._keys)

    def number(self, key: str) -> int:
        """Return the number of a document; a new one if it was not seen before."""
        number = self._numbers.setdefault(key, len(self._keys))
        if number == len(self._keys):
            self._keys.append(key)
        return number

    def key(self, number: int) -> str:
        """Return the key of a document."""
        return self._keys[number]

    def add(self, key: str, targets: Iterable[str]) -> int:
        """Add a crawled page and the documents that it links to, each given once; return the page's number."""
        page = self.number(key)
        self._places[page] = len(self.pages)
        self.pages.append(page)
        self._targets.extend(map(self.number, targets))
        self._ends.append(len(self._targets))
        return page

    def targets(self, page: int) -> Sequence[int]:
        """Return the targets of a page; nothing for one that was not crawled."""
        place = self._places.get(page)
        if place is None:
            return ()
        return self._targets[self._ends[place - 1] if place else 0 : self._ends[place]]

    def links(self) -> tuple[Numbers, Numbers]:
        """Return sources and targets of all links."""
        import numpy as np  # slow to import: 80 ms, and the hot queue does without

        ends = np.array([0, *self._ends], dtype=np.int64)
        sources = np.repeat(np.array(self.pages, dtype=np.int64), ends[1:] - ends[:-1])
        return sources, np.array(self._targets, dtype=np.int64)

    def dump(self) -> list[Any]:
        """Return all of it, as JSON has it."""
        return [self._keys, self.pages.tolist(), self._ends.tolist(), self._targets.tolist()]

    @classmethod
    def restored(cls, dumped: Sequence[Any]) -> SeenGraph:
        """Return a graph that was dumped, of the shape DUMPED. Raises ValueError if its parts do not fit."""
        graph = cls()
        keys, pages, ends, targets = dumped
        if len(ends) != len(pages) or ends != sorted(ends) or (ends[-1] if ends else 0) != len(targets):
            raise ValueError("pages without their targets")
        if max(pages + targets, default=-1) >= len(keys) or len(set(keys)) < len(keys):
            raise ValueError("documents without keys")
        graph._keys = list(keys)
        graph._numbers = {key: number for number, key in enumerate(graph._keys)}
        graph.pages, graph._ends, graph._targets = array("q", pages), array("q", ends), array("q", targets)
        graph._places = {page: place for place, page in enumerate(graph.pages)}
        return graph
