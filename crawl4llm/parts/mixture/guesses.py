"""Which classes a page will have (MIXTURE), by those of the pages crawled where it lies, and of the page it is on."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Final

from crawl4llm.base.shapes import Where, is_of, whole
from crawl4llm.policies import Pieces, places_of

# docs/mixture.md says how these were chosen, and on what.
_PARENT: Final = 0.8
"""The weight of the page on which a document was found; the rest is that of all pages crawled."""
_PRIOR: Final = 1.0
"""How many pages of a host weigh as much as those, and pages of a folder as what is known of the one above."""
_EVERYWHERE: Final = "all"


class ClassGuesses:
    """The classes of the pages crawled, by folder and host, from which those of others are guessed.

    The guess is the likeliest class: by the shares of classes in the document's folder, shrunken towards those of the
    folders above, of its host, and of all pages together with the page on which it was found.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        """``sizes``: by classifier, how many classes it knows."""
        self._sizes = sizes
        self._pages: MutableMapping[str, list[int]] = {}
        """By place, pages by class, those of all classifiers one after the other."""
        self._known: dict[tuple[object, ...], tuple[int, ...]] = {}
        """Guesses since a page was learnt, by place and the parent's classes."""

    def keep_in(self, pieces: Pieces) -> None:
        """Keep what is learnt there, and go on from what is. Raises StoreError."""
        classes = sum(self._sizes)
        self._pages = pieces.mapping("classes", is_of(Where([whole()], lambda counts: len(counts) == classes)))

    def learn(self, url: str, classes: Sequence[int]) -> None:
        """Count a page crawled."""
        for place in (_EVERYWHERE, *map(str, places_of(url))):
            counts = list(self._pages.get(place) or [0] * sum(self._sizes))
            start = 0
            for number, size in zip(classes, self._sizes, strict=True):
                counts[start + number] += 1
                start += size
            self._pages[place] = counts
        self._known.clear()

    def guess(self, url: str, parent: Sequence[int] | None) -> tuple[int, ...]:
        """Return the classes of a document found on a page of some classes; None: that has no text."""
        places = places_of(url)
        key = places[-1], parent
        if (guessed := self._known.get(key)) is None:
            guessed = self._known[key] = self._guess([_EVERYWHERE, *map(str, places)], parent)
        return guessed

    def _guess(self, places: Sequence[str], parent: Sequence[int] | None) -> tuple[int, ...]:
        found = [counts for place in places if (counts := self._pages.get(place))]
        classes, start = [], 0
        for of_one, size in enumerate(self._sizes):
            everywhere, *of_places = [counts[start : start + size] for counts in found] or [[1] * size]
            shares = _shrunken(everywhere, [0.0] * size)
            if parent is not None:
                shares = [(1 - _PARENT) * share for share in shares]
                shares[parent[of_one]] += _PARENT
            for counts in of_places:
                shares = _shrunken(counts, shares)
            classes.append(max(range(size), key=shares.__getitem__))
            start += size
        return tuple(classes)


def _shrunken(counts: Sequence[int], towards: Sequence[float]) -> list[float]:
    """Return the shares of classes by their numbers of pages, shrunken."""
    total = sum(counts) + _PRIOR * sum(towards)
    return [(count + _PRIOR * share) / total for count, share in zip(counts, towards, strict=True)]
