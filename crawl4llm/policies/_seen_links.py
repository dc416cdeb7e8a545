"""Bases of policies that learn from pages and from the links seen so far."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from crawl4llm.base.shapes import Maybe, is_of
from crawl4llm.policies._means import MEAN, RunningMean
from crawl4llm.policies._policy import BasePolicy, Candidate, CrawledPage, Pieces, Rating, not_kept, saved_state

if TYPE_CHECKING:
    from crawl4llm.base.pages import Link
    from crawl4llm.frontier import Entry


SEED_SCORE = 1.0
"""A seed's score if influence is predicted: as good as a page can be, since somebody chose it."""

S = TypeVar("S")
"""Type of the stored facts about the links to one document, as JSON has it."""
_NOT_QUEUED: Any = object()


def targets_of(links: Sequence[Link]) -> list[str]:
    """Return the keys of the documents that a page links to, each once, in page order."""
    return list(dict.fromkeys(link.key for link in links if link.key is not None))


class SeenLinksPolicy(BasePolicy, Generic[S]):
    """Scores a queued document by the pages that link to it, again after each further link.

    A page that links to a document several times counts once. The facts are forgotten when the document leaves the
    frontier; a requeued document keeps its score.
    """

    reranks = True
    seed_score: ClassVar[float]
    _shape: ClassVar[Any]
    """The shape of an S."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._queued: MutableMapping[str, S | None] = {}
        """By key, the facts of the links to it; None for a seed without a seen link."""
        self._found: dict[str, S] = {}
        """The same for documents that may be new; those that are come as candidates next."""
        self._changed: dict[str, None] = {}
        self._mean = RunningMean()

    def keep_in(self, pieces: Pieces) -> None:
        self._queued = pieces.mapping("queued", is_of(Maybe(self._shape)), of_documents=True)

    @abstractmethod
    def _seen(self, known: S | None, influence: float) -> S:
        """Return the facts of a document after a link from a page of some influence."""

    @abstractmethod
    def _score(self, known: S) -> float:
        """Return its score."""

    def crawled(self, page: CrawledPage) -> None:
        influence = self._mean.known_or_mean(page.influence)
        for key in targets_of(page.links):
            if (known := self._queued.get(key, _NOT_QUEUED)) is not _NOT_QUEUED:
                self._queued[key] = self._seen(known, influence)
                self._changed[key] = None
            else:
                self._found[key] = self._seen(self._found.get(key), influence)

    async def score(self, candidates: Sequence[Candidate]) -> list[Rating]:
        for candidate in candidates:
            self._queued[candidate.key] = self._found.get(candidate.key)
        self._found.clear()
        return [Rating(self._score_of(candidate.key)) for candidate in candidates]

    def reranked(self) -> Iterable[tuple[str, float]]:
        changed, self._changed = self._changed, {}
        return [(key, self._score_of(key)) for key in changed]

    def dequeued(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self._queued.pop(entry.key, None)

    def save(self) -> bytes:
        return json.dumps([self._mean.total, self._mean.count, not_kept(self._queued)]).encode()

    def load(self, state: bytes) -> None:
        total, count, queued = saved_state(state, (*MEAN, {...: Maybe(self._shape)}))
        self._mean.total, self._mean.count = total, count
        self._queued.update(queued)

    def _score_of(self, key: str) -> float:
        known = self._queued[key]
        return self.seed_score if known is None else self._score(known)


class PageByPagePolicy(BasePolicy):
    """Takes pages one by one, so that no document's score depends on how many pages come at once."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._crawled: list[CrawledPage] = []
        """Pages of which nothing was learnt yet."""

    @abstractmethod
    def _take(self, page: CrawledPage, found: Sequence[Candidate]) -> Mapping[str, float]:
        """Learn from a page; return the scores of the documents first found on it, by key."""

    def crawled(self, page: CrawledPage) -> None:
        self._crawled.append(page)

    async def score(self, candidates: Sequence[Candidate]) -> list[Rating]:
        found: dict[str | None, list[Candidate]] = {}
        for candidate in candidates:
            found.setdefault(candidate.parent, []).append(candidate)
        scores = {candidate.key: SEED_SCORE for candidate in found.get(None, ())}
        for page in self._crawled:
            scores.update(self._take(page, found.get(page.entry.key, ())))
        self._crawled.clear()
        return [Rating(scores[candidate.key]) for candidate in candidates]
