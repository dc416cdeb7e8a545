"""Classes of the pages of a crawl, their distance from the wanted shares (MIXTURE), and guesses for found documents.

The class of a found document is guessed from crawled pages in its folder and host, and from the page that links to it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any, Final

from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import given_path
from crawl4llm.base.shapes import Where, is_of, whole
from crawl4llm.base.terminal import harmless
from crawl4llm.frontier import MOST_CELLS, Entry, Shares
from crawl4llm.parts.mixture import Settings
from crawl4llm.parts.part import Needs, Part, Rated
from crawl4llm.policies import Candidate, CrawledPage, Pieces, places_of
from crawl4llm.scoring import Classifier, read_classifiers

# docs/mixture.md says how these were chosen, and on what.
_PARENT: Final = 0.8
"""The weight of the page that links to a document; the rest is that of all crawled pages."""
_PRIOR: Final = 1.0
"""Pages of a host that weigh as much as those, and pages of a folder that weigh as much as the folder above."""
_EVERYWHERE: Final = "all"


class ClassGuesses:
    """The classes of crawled pages, by folder and host, from which others are guessed.

    The guess is the likeliest class by the shares of classes in the document's folder. These are shrunken towards those
    of the folders above, of its host, and of all pages together with the page that links to it.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        """``sizes``: the number of classes of each classifier."""
        self._sizes = sizes
        self._pages: MutableMapping[str, list[int]] = {}
        """By place, the number of pages of each class, for all classifiers one after the other."""
        self._known: dict[tuple[object, ...], tuple[int, ...]] = {}
        """Guesses since the last learnt page, by place and the parent's classes."""

    def keep_in(self, pieces: Pieces) -> None:
        """Restore learnt classes from ``pieces``, and keep them there. Raises StoreError."""
        classes = sum(self._sizes)
        self._pages = pieces.mapping("classes", is_of(Where([whole()], lambda counts: len(counts) == classes)))

    def learn(self, url: str, classes: Sequence[int]) -> None:
        """Count a crawled page."""
        for place in (_EVERYWHERE, *map(str, places_of(url))):
            counts = list(self._pages.get(place) or [0] * sum(self._sizes))
            start = 0
            for number, size in zip(classes, self._sizes, strict=True):
                counts[start + number] += 1
                start += size
            self._pages[place] = counts
        self._known.clear()

    def guess(self, url: str, parent: Sequence[int] | None) -> tuple[int, ...]:
        """Return the guessed classes of a document on a page of these classes; None for a page without text."""
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


class Mixture(Part):
    """See the module; the frontier has its ``shares``."""

    name = "mixture"

    shares: Shares

    def __init__(self, options: Settings, classifiers: Sequence[Classifier] | None = None) -> None:
        """``classifiers``: replace those that the settings name. Raises InputError, also if their classes have more
        combinations than a frontier allows."""
        super().__init__(options)
        if classifiers is None:
            classifiers = read_classifiers(given_path(str(options.mixture)))
        self.classifiers = classifiers
        facts = [[one.name, one.digest, one.classes, one.shares] for one in classifiers]
        self._digest = f"sha256:{hashlib.sha256(json.dumps(facts).encode()).hexdigest()}"
        """Digest of the values that decide classes and wanted shares."""
        sizes = [len(one.classes) for one in classifiers]
        if (cells := math.prod(sizes)) > MOST_CELLS:
            raise InputError(
                f"MIXTURE has {cells:,} combinations of classes; {MOST_CELLS:,} at most: name fewer labels"
            )
        self.shares = Shares([one.shares for one in classifiers])
        self._guesses = ClassGuesses(sizes)
        self._found: dict[str, int] = {}
        """Cells of documents that are queued next."""

    def needs(self) -> Needs:
        return Needs(classifiers=self.classifiers)

    def identity(self) -> Mapping[str, Any]:
        return {"mixture": self._digest}

    def rated(self, place: int, page: Rated) -> None:
        page.line["classes"] = self._named(page.classes)

    def crawled(self, entry: Entry, page: Rated) -> None:
        """A page without a text has no class."""
        if page.classes is not None and page.is_counted:
            self.shares.count(page.classes)

    def found(self, page: CrawledPage, new: Sequence[Candidate]) -> None:
        """Learn from a page whose links are followed, and guess the classes of the documents first found on it."""
        if page.classes is not None:
            self._guesses.learn(page.entry.url, page.classes)
        for one in new:
            self._found[one.key] = self.shares.cell_of(self._guesses.guess(one.url or one.key, page.classes))

    def place(self, entries: Sequence[Entry]) -> None:
        """Set the guessed cells of documents that are queued."""
        for entry in entries:
            entry.cell = self._found.get(entry.key, entry.cell)
        self._found.clear()

    # -- what is told of it ---------------------------------------------------------------------------------------

    def _named(self, classes: Sequence[int] | None) -> dict[str, str] | None:
        """Return a page's labels, by classifier."""
        if classes is None:
            return None
        return {one.name: one.classes[number] for one, number in zip(self.classifiers, classes, strict=True)}

    def classes(self) -> Iterator[tuple[str, str, float, float]]:
        """Yield each class: its classifier and label, its share of the pages with classes, and the wanted share."""
        for one, crawled in zip(self.classifiers, self.shares.crawled, strict=True):
            pages = max(sum(crawled), 1)
            for label, count, wanted in zip(one.classes, crawled, one.shares, strict=True):
                yield one.name, label, count / pages, wanted

    def figures(self, figures: Mapping[str, float | None]) -> Mapping[str, float | None]:
        found: dict[str, float | None] = {}
        for name, label, share, wanted in self.classes():
            found[f"mixture/share/{name}/{label}"] = share
            found[f"mixture/wanted/{name}/{label}"] = wanted
        return found

    def lines(self, figures: Mapping[str, float | None]) -> Iterator[str]:
        for place, (name, label, share, wanted) in enumerate(self.classes()):
            heading = "" if place else "mixture"
            yield harmless(f"  {heading:<17}{name} {label} {share:.1%} of the pages, {wanted:.1%} wanted")

    # -- pause and resume -----------------------------------------------------------------------------------------

    def keep_in(self, pieces: Pieces) -> None:
        """Restore learnt classes from ``pieces``, and keep them there. Raises StoreError."""
        self._guesses.keep_in(pieces)

    def save(self) -> list[list[int]]:
        """Return the rest of its state in JSON values."""
        return self.shares.crawled

    def load(self, state: Sequence[Sequence[int]]) -> None:
        """Restore the state that :meth:`save` returned."""
        self.shares.load(state)
