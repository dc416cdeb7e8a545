"""The mixture of a crawl (MIXTURE): which classes its pages have, how far each is from its share, and what that says of
documents found."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence

from crawl4llm.base.errors import InputError
from crawl4llm.frontier import Entry
from crawl4llm.frontier.mixed import MOST_CELLS, Shares
from crawl4llm.policies import Candidate, CrawledPage, Pieces
from crawl4llm.policies._classes import ClassGuesses
from crawl4llm.scoring.classifiers import Classifier


class Mixture:
    """What the parts of a crawl with MIXTURE share; the frontier has its ``shares``."""

    def __init__(self, classifiers: Sequence[Classifier]) -> None:
        """Raises InputError where classes make more combinations than a frontier takes."""
        self.classifiers = classifiers
        facts = [[one.name, one.digest, one.classes, one.shares] for one in classifiers]
        self.identity = f"sha256:{hashlib.sha256(json.dumps(facts).encode()).hexdigest()}"
        """Digest of what decides classes and the shares wanted."""
        sizes = [len(one.classes) for one in classifiers]
        if (cells := math.prod(sizes)) > MOST_CELLS:
            raise InputError(
                f"MIXTURE has {cells:,} combinations of classes; {MOST_CELLS:,} at most: name fewer labels"
            )
        self.shares = Shares([one.shares for one in classifiers])
        self._guesses = ClassGuesses(sizes)
        self._found: dict[str, int] = {}
        """Cells of documents that are to be queued next."""

    def crawled(self, classes: Sequence[int] | None) -> None:
        """Count a page crawled; None: it has no text, and no class."""
        if classes is not None:
            self.shares.count(classes)

    def found(self, page: CrawledPage, new: Sequence[Candidate]) -> None:
        """Learn of a page whose links are followed, and guess the classes of the documents first found on it."""
        if page.classes is not None:
            self._guesses.learn(page.entry.url, page.classes)
        for one in new:
            self._found[one.key] = self.shares.cell_of(self._guesses.guess(one.url or one.key, page.classes))

    def place(self, entries: Sequence[Entry]) -> None:
        """Give the documents that are queued the cells that were guessed."""
        for entry in entries:
            entry.cell = self._found.get(entry.key, entry.cell)
        self._found.clear()

    # -- what is told of it ---------------------------------------------------------------------------------------

    def named(self, classes: Sequence[int] | None) -> dict[str, str] | None:
        """Return a page's labels, by classifier."""
        if classes is None:
            return None
        return {one.name: one.classes[number] for one, number in zip(self.classifiers, classes, strict=True)}

    def figures(self) -> Iterator[tuple[str, str, float, float]]:
        """Yield each class: its classifier and label, its share of the pages that have classes, and the one wanted."""
        for one, crawled in zip(self.classifiers, self.shares.crawled, strict=True):
            pages = max(sum(crawled), 1)
            for label, count, wanted in zip(one.classes, crawled, one.shares, strict=True):
                yield one.name, label, count / pages, wanted

    def statistics(self) -> dict[str, float]:
        """Return figures of :mod:`crawl4llm.base.stats`."""
        figures = {}
        for name, label, share, wanted in self.figures():
            figures[f"mixture/share/{name}/{label}"] = share
            figures[f"mixture/wanted/{name}/{label}"] = wanted
        return figures

    # -- pause and resume -----------------------------------------------------------------------------------------

    def keep_in(self, pieces: Pieces) -> None:
        """Keep what is learnt there, and go on from what is. Raises StoreError."""
        self._guesses.keep_in(pieces)

    def save(self) -> list[list[int]]:
        """Return the rest of its state as JSON takes it."""
        return self.shares.crawled

    def load(self, state: Sequence[Sequence[int]]) -> None:
        """Go on from what :meth:`save` returned."""
        self.shares.load(state)
