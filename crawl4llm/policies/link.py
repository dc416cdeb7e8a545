"""A model that learns, from each page crawled, to predict the influence of those not fetched yet."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from crawl4llm.policies import Candidate, CrawledPage, Pieces
from crawl4llm.policies._learning import InTurn, Lessons, RunningMeans, Waiting, worst_of
from crawl4llm.policies._means import RunningMean, shrunken
from crawl4llm.policies._seen_links import PageByPagePolicy

if TYPE_CHECKING:
    from crawl4llm.base.pages import Link
    from crawl4llm.frontier import Entry

# docs/policy-measurements.md says how these were chosen, and on what.
_HOST_PRIOR: Final = 5.0
"""How many pages of a host weigh as much as what is known of all pages."""
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
_INTERVAL: Final = 20
"""Pages after which documents are ranked anew."""
_REFRESHED: Final = 200
"""Those that are ranked anew besides the ones to which links were seen: the ones ranked longest ago."""
_MOST_REFRESHED: Final = 2_000
"""The same where a new learner has not ranked all of them yet, so that none waits long for its answer."""
_HASTE: Final = 16
"""A new learner has ranked all documents by a sixteenth more pages than it was taught, if they are not too many."""
_MOST_WAITING: Final = 50_000
"""Documents that are ranked anew, and known by more than their URL; the worst above that keep their score."""
_MOST_MEANS: Final = 200_000


class _Place(NamedTuple):
    """What is expected of pages in a place, the same for all that wait there until a page is crawled."""

    of_host: float
    """Mean target on its host."""
    host: float
    """The same in log-odds."""
    log_odds: float
    """Mean target in the place."""
    bonus: float
    """For a place little known."""


class Policy(PageByPagePolicy):
    """Predicts a document's rank among the pages crawled, between 0 and 1, to the power of 4.

    The prediction starts from a prior in log-odds: half from the mean of the pages in its folder, shrunken towards
    those of the folders above, of its host, and of all pages; half from the mean of the pages that link to it. To that
    a linear model adds what it has learnt of the words of URL and anchors, of the folder, and of what is known of
    parents and siblings. It has learnt nothing at first, so that a young crawl goes by the prior. A bonus for folders
    of which little is known falls with the root of their pages. Each time that the pages crawled have grown by a
    quarter, a new model learns them all, by their ranks among all, and all that waits is ranked anew, spread over the
    pages that follow.

    Of influence scores only the order counts. A page without one counts as the mean of those before it.
    """

    name = "link"
    reranks = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._lessons = Lessons()
        self._all = RunningMean()
        self._places: RunningMeans[int] = RunningMeans(_MOST_MEANS)
        self._siblings: RunningMeans[str] = RunningMeans(_MOST_WAITING)
        """Of pages first seen on the same page, by its key: as many as documents that wait can have."""
        self._waiting: dict[str, Waiting] = {}
        """In the order in which they were ranked last."""
        self._waiting_turns: InTurn[str] = InTurn()
        self._leased: dict[str, Waiting] = {}
        self._leased_turns: InTurn[str] = InTurn()
        self._pages = 0
        self._linked: dict[str, None] = {}
        """Documents to which links were seen since they were ranked."""
        self._changed: dict[str, None] = {}
        self._stale = 0
        """How many were ranked by the learner before, at most; they are the ones ranked longest ago."""
        self._known_places: dict[int, _Place] = {}
        """By the hash of the innermost folder, what was computed since a page was crawled."""

    def keep_in(self, pieces: Pieces) -> None:
        """Keep what it knows of documents, folders and siblings in pieces; all of it is in memory too."""
        self._lessons.keep_in(pieces.mapping("lessons", Lessons.is_valid, seldom_read=True))
        self._places.keep_in(pieces.mapping("places", RunningMeans.is_valid, seldom_read=True), int)
        self._siblings.keep_in(pieces.mapping("siblings", RunningMeans.is_valid, seldom_read=True), str)
        for name, known, turns in self._known():
            of_documents = name == "waiting"
            kept = pieces.mapping(name, Waiting.is_valid, of_documents=of_documents, seldom_read=True)
            stored = turns.keep_in(kept)
            known.update((key, Waiting.load(value)) for key, value in stored)

    def _known(self) -> tuple[tuple[str, dict[str, Waiting], InTurn[str]], ...]:
        return ("waiting", self._waiting, self._waiting_turns), ("leased", self._leased, self._leased_turns)

    def _take(self, page: CrawledPage, found: Sequence[Candidate]) -> Mapping[str, float]:
        target = self._learn(page)
        self._waiting.update({one.key: Waiting(one.url, one.depth, one.parent) for one in found})
        self._see_links(page.links, target)
        self._rank(one.key for one in found)
        scores = {one.key: self._waiting[one.key].score for one in found}
        self._pages += 1
        if self._pages % _INTERVAL == 0:
            self._rank_anew()
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
        for key in list(islice(self._leased, max(0, len(self._leased) - _MOST_WAITING))):
            del self._leased[key]
            self._leased_turns.moved(key)

    def save(self) -> bytes:
        state: dict[str, Any] = {
            "lessons": self._lessons.save(),
            "all": [self._all.total, self._all.count],
            "places": self._places.save(),
            "siblings": self._siblings.save(),
            "pages": self._pages,
            "linked": list(self._linked),
            "stale": self._stale,
        }
        for name, known, turns in self._known():
            kept = turns.save(known, Waiting.save)
            state[name] = {} if kept else {key: waiting.save() for key, waiting in known.items()}
        return json.dumps(state).encode()

    def load(self, state: bytes) -> None:
        saved = json.loads(state)
        self._lessons.load(*saved.get("lessons", (0, ())))  # earlier versions kept no lessons: it learns anew
        self._all.total, self._all.count = saved["all"]
        self._places.load(saved["places"])
        self._siblings.load(saved["siblings"])
        for name, known, turns in self._known():
            for key, waiting in saved[name].items():
                known[key] = Waiting.load(waiting)
                turns.moved(key)
        self._pages = saved["pages"]
        self._linked = dict.fromkeys(saved["linked"])
        self._stale = saved.get("stale", 0)

    # -- learning -------------------------------------------------------------------------------------------------

    def _learn(self, page: CrawledPage) -> float:
        """Learn from a page and return its target, or that of pages on average where its influence is not known."""
        known = self._leased.pop(page.entry.key, None) or Waiting(page.entry.url, page.entry.depth)
        self._leased_turns.moved(page.entry.key)
        if page.influence is None:
            return self._all.value
        target = self._lessons.add(self._described(known), page.influence)
        if self._lessons.is_new:
            self._stale = len(self._waiting)
        self._known_places.clear()
        self._all.known_or_mean(target)
        for place in known.places:
            self._places.add(place, target)
        if known.parent is not None:
            self._siblings.add(known.parent, target)
        return target

    def _see_links(self, links: Iterable[Link], target: float) -> None:
        """Note a page's links to documents that wait; several to one document count as the first of them."""
        seen = set()
        for link in links:
            if link.key in self._waiting and link.key not in seen:
                seen.add(link.key)
                self._waiting[link.key].linked(target, link.anchor, boilerplate=link.boilerplate)
                self._linked[link.key] = None
                self._waiting_turns.changed(link.key)

    # -- predicting -----------------------------------------------------------------------------------------------

    def _rank_anew(self) -> None:
        for key in worst_of(self._waiting, _MOST_WAITING):
            del self._waiting[key]
            self._waiting_turns.moved(key)
        linked = [key for key in self._linked if key in self._waiting]
        refreshed = self._refreshed()
        self._stale = max(0, self._stale - refreshed)
        keys = dict.fromkeys([*linked, *islice(self._waiting, refreshed)])
        self._linked.clear()
        self._rank(keys)
        self._changed.update(keys)

    def _refreshed(self) -> int:
        """Return how many are ranked anew: more of them where a new learner has not ranked all yet."""
        if not self._stale:
            return _REFRESHED
        return min(max(_REFRESHED, _HASTE * _INTERVAL * len(self._waiting) // len(self._lessons)), _MOST_REFRESHED)

    def _rank(self, keys: Iterable[str]) -> None:
        """Predict for documents that wait, which are then the ones ranked last."""
        for key in keys:
            waiting = self._waiting.pop(key)
            log_odds = self._lessons.predict(self._described(waiting)) + self._place(waiting).bonus
            waiting.score = 1 / (1 + math.exp(-log_odds))
            self._waiting[key] = waiting
            self._waiting_turns.moved(key)

    def _described(self, known: Waiting) -> str:
        """Return a document as a learner takes it: its prior, what is known of it, its features."""
        place, links = self._place(known), known.links
        of_parents = shrunken(known.total, links, place.of_host, _PARENTS_PRIOR)
        siblings = _log_odds(self._siblings.shrunken(known.parent or "", of_parents, _SIBLINGS_PRIOR))
        parents = _log_odds(of_parents)
        first = least = most = _log_odds(known.first) if links else _NO_PARENTS
        if links > 1:
            least, most = _log_odds(known.least), _log_odds(known.most)
        means = (place.host, place.log_odds, parents, siblings, first, least, most)
        prior = _PLACE_WEIGHT * place.log_odds + (1 - _PLACE_WEIGHT) * parents
        return _DOCUMENT % (prior, *[mean / 2 for mean in means], math.log1p(links) / 2, known.features)

    def _place(self, known: Waiting) -> _Place:
        """Return what is expected of where a document lies."""
        host, *folders = known.places
        if (place := self._known_places.get(known.places[-1])) is None:
            of_host = of_place = self._places.shrunken(host, self._all.value, _HOST_PRIOR)
            for folder in folders:
                of_place = self._places.shrunken(folder, of_place, _FOLDER_PRIOR)
            bonus = _EXPLORATION / math.sqrt(self._places.count(known.places[-1]) + 1)
            place = _Place(of_host, _log_odds(of_host), _log_odds(of_place), bonus)
            self._known_places[known.places[-1]] = place
        return place


_NO_PARENTS: Final = -1.0
_DOCUMENT: Final = "%.6f |d 0:1 1:%.4f 2:%.4f 3:%.4f 4:%.4f 5:%.4f 6:%.4f 7:%.4f 8:%.4f %s"


def _log_odds(probability: float) -> float:
    """Return the log-odds of a probability that is kept from 0 and 1."""
    bounded = 0.01 if probability < 0.01 else min(probability, 0.99)
    return math.log(bounded / (1 - bounded))
