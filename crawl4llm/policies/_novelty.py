"""Novelty of texts: under any policy, hosts and folders whose pages have known texts lose score."""

from __future__ import annotations

import json
from collections.abc import Iterable, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from crawl4llm.base.shapes import NUMBER, Where, is_of
from crawl4llm.policies._features import places_of
from crawl4llm.policies._learning import worst_of
from crawl4llm.policies._means import MEAN, RunningMean
from crawl4llm.policies._new_shares import STATE, NewShares, is_due
from crawl4llm.policies._policy import Candidate, CrawledPage, Pieces, Policy, Rating, Wrapper, saved_state

if TYPE_CHECKING:
    from crawl4llm.frontier import Entry

_MOST_PLACES: Final = 200_000
"""Hosts and folders of which something is known, the last ones."""
_ROUNDING: Final = 1e-9
"""By this part equal scores may be below their mean."""
_MOST_WAITING: Final = 50_000
"""Documents that are ranked again; the worst above that number keep their score."""


_WAITING: Final = (Where([{int}], len), NUMBER, Where(NUMBER, lambda share: 0 < share <= 1))
"""The shape of a :class:`_Waiting`."""


class _Waiting(NamedTuple):
    """A document in the frontier."""

    places: tuple[int, ...]
    """Its host, then the folders of its path."""
    score: float
    """By the policy inside."""
    share: float
    """The factor, as it was estimated last."""


class Novelty(Wrapper):
    """Multiplies a document's score by how likely its text is new; a negative score is divided by it.

    The factor is the expected share of new texts in the document's folder as a multiple of half of the web's, at most 1
    (:class:`~crawl4llm.policies._new_shares.NewShares`). It is exactly 1, so that the scores are those of the policy
    inside, until there is evidence that hosts or folders differ. Pages below the mean influence are no evidence.
    Lists and stubs are nearly equal to each other, so more of them are known than of good pages.

    Documents are ranked again after further pages of their host or folder: each of the first 15, then 8 to 16 times
    until the pages have doubled. All documents are ranked again when the pages so far speak for
    another prior, or for another share of the web.
    """

    def __init__(self, inner: Policy) -> None:
        super().__init__(inner, "novelty")
        self.name = inner.name
        """The policy's own: the value of a page is another, but the policy's inputs are not."""
        self.reranks = True
        self._shares = NewShares(_MOST_PLACES)
        self._influence = RunningMean()
        """Of pages with a text."""
        self._waiting: dict[str, _Waiting] = {}
        self._of_host: dict[int, dict[str, None]] = {}
        """Keys of waiting documents, by host."""
        self._stored: MutableMapping[str, Any] | None = None
        """Waiting documents, in the form of pieces."""
        self._crawled: list[CrawledPage] = []
        """Pages of which nothing was learnt yet."""
        self._changed: dict[str, None] = {}

    def crawled(self, page: CrawledPage) -> None:
        super().crawled(page)
        self._crawled.append(page)

    async def score(self, candidates: Sequence[Candidate]) -> list[Rating]:
        """Score page by page, so that no document's score depends on how many pages come at once."""
        ratings = await self._inner.score(candidates)
        found: dict[str | None, list[tuple[Candidate, float]]] = {}
        for candidate, rated in zip(candidates, ratings, strict=True):
            if rated.score is not None:
                found.setdefault(candidate.parent, []).append((candidate, rated.score))
        self._queue(found.get(None, ()))
        for page in self._crawled:
            self._learn(page)
            self._queue(found.get(page.entry.key, ()))
        self._crawled.clear()
        scored = self._outer(candidates, ratings)
        self._forget_worst()
        return scored

    def reranked(self) -> Iterable[tuple[str, float]]:
        scores = {}
        for key, score in self._inner.reranked():
            if known := self._waiting.get(key):
                self._put(key, known._replace(score=score))
                self._changed[key] = None
            elif self._shares.are_alike:
                scores[key] = score
        changed, self._changed = self._changed, {}
        return [*scores.items(), *((key, _worth(self._waiting[key])) for key in changed if key in self._waiting)]

    def dequeued(self, entries: Sequence[Entry]) -> None:
        super().dequeued(entries)
        for entry in entries:
            self._forget(entry.key)

    def keep_in(self, pieces: Pieces) -> None:
        super().keep_in(pieces)
        self._shares.keep_in(pieces, "novelty places")
        self._stored = pieces.mapping("novelty waiting", is_of(_WAITING), of_documents=True, seldom_read=True)
        for key, (places, score, share) in self._stored.items():
            self._take_in(key, _Waiting(tuple(places), score, share))

    def save(self) -> bytes:
        """Return one line of its own, then the saved lines of the policy inside."""
        waiting = self._waiting if self._stored is None else {}
        influence = [self._influence.total, self._influence.count]
        own = json.dumps([influence, self._shares.save(), waiting])
        return own.encode() + b"\n" + super().save()

    def load(self, state: bytes) -> None:
        own, _, inner = state.partition(b"\n")
        influence, shares, waiting = saved_state(own, (MEAN, STATE, {...: _WAITING}))
        self._influence.total, self._influence.count = influence
        self._shares.load(shares)
        for key, (places, score, share) in waiting.items():
            self._put(key, _Waiting(tuple(places), score, share))
        super().load(inner)

    def _outer_score(self, key: str, score: float) -> float:
        known = self._waiting.get(key)
        return score if known is None else _worth(known)

    def _inner_score(self, key: str, score: float) -> float:
        known = self._waiting.get(key)
        return score if known is None else known.score

    # -- learning -------------------------------------------------------------------------------------------------

    def _learn(self, page: CrawledPage) -> None:
        """Count a page at its host and folders; rank the documents that wait there again, or all, if that is due."""
        if page.novel is None or page.influence is None:
            return
        self._influence.known_or_mean(page.influence)
        mean = self._influence.value
        if page.influence < mean - _ROUNDING * abs(mean):
            return
        places = places_of(page.entry.url)
        if self._shares.add(places, is_new=page.novel):
            for host in self._of_host:
                self._rank_again(host, host)
        elif not self._shares.are_alike:
            due = next((place for place in places if is_due(self._shares.count(place))), None)
            if due is not None:
                self._rank_again(places[0], due)

    def _rank_again(self, host: int, place: int) -> None:
        """Renew the factors of the documents that wait in a place of a host."""
        if self._shares.are_new(host):  # so they were before, and the share was 1
            return
        shares: dict[tuple[int, ...], float] = {}
        for key in self._of_host.get(host, ()):
            known = self._waiting[key]
            if place not in known.places:
                continue
            if (share := shares.get(known.places)) is None:
                share = shares[known.places] = self._shares.factor(known.places)
            if share != known.share:
                self._put(key, known._replace(share=share))
                self._changed[key] = None

    # -- documents that wait --------------------------------------------------------------------------------------

    def _queue(self, found: Iterable[tuple[Candidate, float]]) -> None:
        for candidate, score in found:
            places = tuple(places_of(candidate.url))
            self._put(candidate.key, _Waiting(places, score, self._shares.factor(places)))

    def _put(self, key: str, known: _Waiting) -> None:
        self._take_in(key, known)
        if self._stored is not None:
            self._stored[key] = [list(known.places), known.score, known.share]

    def _take_in(self, key: str, known: _Waiting) -> None:
        self._waiting[key] = known
        self._of_host.setdefault(known.places[0], {})[key] = None

    def _forget(self, key: str) -> None:
        known = self._waiting.pop(key, None)
        if known is None:
            return
        keys = self._of_host[known.places[0]]
        del keys[key]
        if not keys:
            del self._of_host[known.places[0]]
        if self._stored is not None:
            self._stored.pop(key, None)

    def _forget_worst(self) -> None:
        """If there are too many documents, forget those of the lowest scores, down to nine tenths."""
        for key in worst_of(self._waiting, _MOST_WAITING, _worth):
            self._forget(key)


def _worth(known: _Waiting) -> float:
    return known.score * known.share if known.score > 0 else known.score / known.share
