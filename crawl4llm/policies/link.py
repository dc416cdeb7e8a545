"""A model that learns, from each page crawled, to predict the influence of those not fetched yet."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from crawl4llm.base.shapes import is_of, whole
from crawl4llm.policies import _learning as learning
from crawl4llm.policies._learner import NUMBERS, Floats, probability_of
from crawl4llm.policies._means import MEAN_OF_SHARES, RunningMean, shrunken
from crawl4llm.policies._policy import Candidate, CrawledPage, Pieces, saved_state
from crawl4llm.policies._seen_links import PageByPagePolicy

if TYPE_CHECKING:
    from crawl4llm.base.pages import Link
    from crawl4llm.frontier import Entry

# docs/policy-measurements.md says how these were chosen, and on what.
_STATE: Final = {
    "taught": (whole(), [learning.PAGE]),
    "all": MEAN_OF_SHARES,
    "places": learning.sums_by({int}),
    "siblings": learning.sums_by({str}),
    "waiting": {...: learning.WAITING},
    "leased": {...: learning.WAITING},
    "pages": whole(),
    "linked": [{str}],
}
_HOST_PRIOR: Final = 5.0
"""Number of a host's pages that weigh as much as the mean of all pages."""
_FOLDER_PRIOR: Final = 3.0
"""The same for a folder and the one above it, or the host."""
_PARENTS_PRIOR: Final = 1.0
"""The same for pages that link to a document, and its host."""
_SIBLINGS_PRIOR: Final = 2.0
"""The same for pages first seen on the same page, and those that link to the document."""
_PLACE_WEIGHT: Final = 0.5
"""Of the place in the prior; the rest is the parents'."""
_EXPLORATION: Final = 1.0
"""Log-odds that a document in a folder of which nothing is known gets on top."""
_INTERVAL: Final = 40
"""Documents are ranked again after so many pages."""
_REFRESHED: Final = 200
"""Documents ranked again besides those with new links: those that were ranked longest ago."""
_MOST_BEST: Final = 2_000
"""Documents that a new learner ranks at once, at most: the best half of those waiting. Others follow later."""
_SCALE: Final = 0.225
"""Weight of a document's numeric facts; a word has weight 1."""


class _Place(NamedTuple):
    """The expectation for documents of a place, the same for all that wait there until a page is crawled."""

    of_host: float
    """Mean target on its host."""
    mean: float
    """Mean target in the place."""
    bonus: float
    """For a place little known."""


class Policy(PageByPagePolicy):
    """Predicts a document's rank among the pages crawled, between 0 and 1, to the power of 4.

    The prediction starts from a prior in log-odds. One half is the mean of the pages in its folder, shrunken towards
    the means of the folders above, of its host, and of all pages. The other half is the mean of the pages that link to
    it. A linear model adds what it has learnt from the words of URL and anchors, from the folder, and from the pages
    that link to the document or its siblings. The model is empty at first, so a young crawl uses the prior alone.
    Folders with few pages get a bonus, which falls with the root of their pages. Each time that the pages crawled have
    grown by a quarter, a new model learns all of them by their ranks, and ranks the best waiting documents again.

    Only the order of influence scores counts. A page without one counts as the mean of those before it.
    """

    name = "link"
    reranks = True
    most = 50_000
    """The limit of its memory, in a crawl of any length. It holds for documents that are ranked again (the worst above
    it keep their score), for pages that are learnt again, and for parents of siblings; four times as many folders are
    kept. With so many of each it takes about 120 MB."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._lessons = learning.Lessons(self.most)
        self._all = RunningMean()
        self._places: learning.RunningMeans[int] = learning.RunningMeans(4 * self.most)
        self._siblings: learning.RunningMeans[str] = learning.RunningMeans(self.most)
        """Of pages first seen on the same page, by its key: as many as documents that wait can have."""
        self._waiting: dict[str, learning.Waiting] = {}
        """In the order in which they were ranked last."""
        self._waiting_turns: learning.InTurn[str] = learning.InTurn()
        self._leased: dict[str, learning.Waiting] = {}
        self._leased_turns: learning.InTurn[str] = learning.InTurn()
        self._pages = 0
        self._linked: dict[str, None] = {}
        """Documents to which links were seen since they were ranked."""
        self._changed: dict[str, None] = {}
        self._known_places: dict[int, _Place] = {}
        """By the hash of the innermost folder, the values computed since a page was crawled."""

    def keep_in(self, pieces: Pieces) -> None:
        """Keep the facts of documents, folders and siblings in pieces; all of them are in memory too."""
        is_mean = is_of(learning.turn_of(MEAN_OF_SHARES))
        self._lessons.keep_in(pieces.mapping("taught", is_of(learning.turn_of(learning.PAGE)), seldom_read=True))
        self._places.keep_in(pieces.mapping("places", is_mean, seldom_read=True), int)
        self._siblings.keep_in(pieces.mapping("siblings", is_mean, seldom_read=True), str)
        for name, known, turns in self._known():
            of_documents = name == "waiting"
            kept = pieces.mapping(
                name, is_of(learning.turn_of(learning.WAITING)), of_documents=of_documents, seldom_read=True
            )
            known.update((key, learning.Waiting.load(value)) for key, value in turns.keep_in(kept))

    def _known(self) -> tuple[tuple[str, dict[str, learning.Waiting], learning.InTurn[str]], ...]:
        return ("waiting", self._waiting, self._waiting_turns), ("leased", self._leased, self._leased_turns)

    def _take(self, page: CrawledPage, found: Sequence[Candidate]) -> Mapping[str, float]:
        target = self._learn(page)
        self._waiting.update({one.key: learning.Waiting(one.url, one.depth, one.parent) for one in found})
        self._see_links(page.links, target)
        self._rank(one.key for one in found)
        scores = {one.key: self._waiting[one.key].score for one in found}
        self._pages += 1
        if self._pages % _INTERVAL == 0:
            self._forget_worst()
            linked = [key for key in self._linked if key in self._waiting]
            self._linked.clear()
            self._rank_anew(dict.fromkeys([*linked, *islice(self._waiting, _REFRESHED)]))
        return scores

    def reranked(self) -> Iterable[tuple[str, float]]:
        changed, self._changed = self._changed, {}
        return [(key, self._waiting[key].score) for key in changed if key in self._waiting]

    def dequeued(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self._linked.pop(entry.key, None)
            if waiting := self._waiting.pop(entry.key, None):
                self._leased[entry.key] = waiting
                self._waiting_turns.moved(entry.key)
                self._leased_turns.moved(entry.key)
        most = max(self.most // 5, len(entries))  # those that failed stay, until others take their place
        for key in list(islice(self._leased, max(0, len(self._leased) - most))):
            del self._leased[key]
            self._leased_turns.moved(key)

    def save(self) -> bytes:
        state: dict[str, Any] = {
            "taught": self._lessons.save(),
            "all": [self._all.total, self._all.count],
            "places": self._places.save(),
            "siblings": self._siblings.save(),
            "pages": self._pages,
            "linked": list(self._linked),
        }
        for name, known, turns in self._known():
            kept = turns.save(known, learning.Waiting.save)
            state[name] = {} if kept else {key: waiting.save() for key, waiting in known.items()}
        return json.dumps(state).encode()

    def load(self, state: bytes) -> None:
        saved = saved_state(state, _STATE)
        self._lessons.load(*saved["taught"])
        self._all.total, self._all.count = saved["all"]
        self._places.load(saved["places"])
        self._siblings.load(saved["siblings"])
        for name, known, turns in self._known():
            for key, waiting in saved[name].items():
                known[key] = learning.Waiting.load(waiting)
                turns.moved(key)
        self._pages = saved["pages"]
        self._linked = dict.fromkeys(saved["linked"])

    # -- learning -------------------------------------------------------------------------------------------------

    def _learn(self, page: CrawledPage) -> float:
        """Learn from a page and return its target, or the average target if its influence is unknown."""
        known = self._leased.pop(page.entry.key, None) or learning.Waiting(page.entry.url, page.entry.depth)
        self._leased_turns.moved(page.entry.key)
        if page.influence is None:
            return self._all.value
        numbers = self._numbers([known], [self._place(known)])
        target = self._lessons.add(numbers.tobytes() + known.features, page.influence)
        self._known_places.clear()
        self._all.known_or_mean(target)
        for place in known.places:
            self._places.add(place, target)
        if known.parent is not None:
            self._siblings.add(known.parent, target)
        if self._lessons.is_new:
            self._rank_anew(self._best())
        return target

    def _see_links(self, links: Iterable[Link], target: float) -> None:
        """Note a page's links to documents that wait; several to one document count as the first of them."""
        seen = set()
        for link in links:
            key = link.key
            if key in self._waiting and key not in seen:
                seen.add(key)
                self._waiting[key].linked(target, link.anchor, boilerplate=link.boilerplate)
                self._linked[key] = None
                self._waiting_turns.changed(key)

    # -- predicting -----------------------------------------------------------------------------------------------

    def _forget_worst(self) -> None:
        for key in learning.worst_of(self._waiting, self.most, attrgetter("score")):
            del self._waiting[key]
            self._waiting_turns.moved(key)

    def _best(self) -> list[str]:
        """Return the best half of the waiting documents, or as many as are ranked at once."""
        most = min(len(self._waiting) // 2, _MOST_BEST)
        return sorted(self._waiting, key=lambda key: self._waiting[key].score, reverse=True)[:most]

    def _rank_anew(self, keys: Collection[str]) -> None:
        self._rank(keys)
        self._changed.update(dict.fromkeys(keys))

    def _rank(self, keys: Iterable[str]) -> None:
        """Predict for documents that wait, which are then the ones ranked last."""
        ranked = [(key, self._waiting.pop(key)) for key in keys]
        if not ranked:
            return
        documents = [waiting for _, waiting in ranked]
        places = list(map(self._place, documents))
        log_odds = self._lessons.predict(self._numbers(documents, places), [one.features for one in documents])
        for (key, waiting), place, predicted in zip(ranked, places, log_odds.tolist(), strict=True):
            waiting.score = probability_of(predicted + place.bonus)
            self._waiting[key] = waiting
            self._waiting_turns.moved(key)

    def _numbers(self, documents: Sequence[learning.Waiting], places: Sequence[_Place]) -> Floats:
        """Return a row for each document: its prior, a constant, means, the number of its links, its URL's shape."""
        means: list[float] = []
        for known, place in zip(documents, places, strict=True):
            of_parents = shrunken(known.total, known.links, place.of_host, _PARENTS_PRIOR)
            siblings = self._siblings.shrunken(known.parent or "", of_parents, _SIBLINGS_PRIOR)
            of_links = (known.first, known.least, known.most) if known.links else _NO_LINKS
            means += (place.of_host, place.mean, of_parents, siblings, *of_links)
        log_odds = _log_odds(np.array(means).reshape(len(documents), -1))
        numbers = np.empty((len(documents), 1 + NUMBERS), np.float32)
        numbers[:, 0] = _PLACE_WEIGHT * log_odds[:, 1] + (1 - _PLACE_WEIGHT) * log_odds[:, 2]
        numbers[:, 1] = 1
        numbers[:, 2:9] = log_odds * _SCALE
        numbers[:, 9] = [math.log1p(one.links) * _SCALE for one in documents]
        shapes = np.frombuffer(b"".join([one.shape for one in documents]), np.float32)
        numbers[:, 10:] = shapes.reshape(len(documents), -1) * np.float32(_SCALE)
        return numbers

    def _place(self, known: learning.Waiting) -> _Place:
        """Return the expectation for a document's place."""
        innermost = known.places[-1]
        if (place := self._known_places.get(innermost)) is None:
            host, *folders = known.places
            of_host = of_place = self._places.shrunken(host, self._all.value, _HOST_PRIOR)
            for folder in folders:
                of_place = self._places.shrunken(folder, of_place, _FOLDER_PRIOR)
            bonus = _EXPLORATION / math.sqrt(self._places.count(innermost) + 1)
            place = self._known_places[innermost] = _Place(of_host, of_place, bonus)
        return place


_NO_LINKS: Final = (probability_of(-1.0),) * 3
"""Replaces the first, least and greatest target of the pages that link to a document, if there are none."""


def _log_odds(probabilities: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the log-odds of probabilities, which are kept from 0 and 1, to some thousandths."""
    return _LOG_ODDS.take((probabilities * _STEPS).astype(np.intp))


_STEPS: Final = 1 << 14
_KEPT: Final = [min(max(step / _STEPS, 0.01), 0.99) for step in range(_STEPS + 1)]
_LOG_ODDS: Final = np.array([math.log(one / (1 - one)) for one in _KEPT])
"""By probability. NumPy's own logarithms differ in the last bit from one processor to the next; a crawl should not."""
