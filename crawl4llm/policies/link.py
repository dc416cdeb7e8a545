"""A model that learns, from each page crawled, to predict the influence of those not fetched yet."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from crawl4llm.base.shapes import is_of, whole
from crawl4llm.policies import _learning as learning
from crawl4llm.policies._learner import probability_of
from crawl4llm.policies._means import MEAN_OF_SHARES, RunningMean
from crawl4llm.policies._policy import Candidate, CrawledPage, Pieces, saved_state
from crawl4llm.policies._seen_links import PageByPagePolicy

if TYPE_CHECKING:
    from crawl4llm.base.pages import Link
    from crawl4llm.frontier import Entry

# docs/policy-measurements.md says how these were chosen, and on what.
_STATE: Final = {
    "taught": (whole(), [learning.PAGE]),
    "all": MEAN_OF_SHARES,
    "found": learning.sums_by({int}),
    "waiting": {...: learning.WAITING},
    "leased": {...: learning.WAITING},
    "pages": whole(),
    "linked": [{str}],
}
_EXPLORATION: Final = 1.0
"""Log-odds that the first document found in a folder gets on top."""
_INTERVAL: Final = 40
"""Documents are ranked again after so many pages."""
_REFRESHED: Final = 200
"""Documents ranked again besides those with new links: those that were ranked longest ago."""
_MOST_BEST: Final = 2_000
"""Documents that a new learner ranks at once, at most: the best half of those waiting. Others follow later."""


class Policy(PageByPagePolicy):
    """Predicts a document's rank among the pages crawled, between 0 and 1, to the power of 4.

    A linear model learns it from the words of URL and anchors, from host and folders, and from the targets of the pages
    that link to the document. The first documents found in a folder get a bonus, which falls with the root of their
    number. So the crawl tries a few of each folder before it takes the many. Each time that the pages
    crawled have grown by a quarter, a new model learns all of them by their ranks, and ranks the best waiting documents
    again.

    Only the order of influence scores counts. A page without one counts as the mean of those before it.
    """

    name = "link"
    reranks = True
    most = 50_000
    """The limit of its memory, in a crawl of any length. It holds for documents that are ranked again (the worst above
    it keep their score) and for pages that are learnt again; four times as many folders are kept."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._lessons = learning.Lessons(self.most)
        self._all = RunningMean()
        self._found: learning.RunningMeans[int] = learning.RunningMeans(4 * self.most)
        """By the hash of a folder, documents found in it; only their number is used."""
        self._waiting: dict[str, learning.Waiting] = {}
        """In the order in which they were ranked last."""
        self._waiting_turns: learning.InTurn[str] = learning.InTurn()
        self._leased: dict[str, learning.Waiting] = {}
        self._leased_turns: learning.InTurn[str] = learning.InTurn()
        self._pages = 0
        self._linked: dict[str, None] = {}
        """Documents to which links were seen since they were ranked."""
        self._changed: dict[str, None] = {}

    def keep_in(self, pieces: Pieces) -> None:
        """Keep the facts of documents and folders in pieces; all of them are in memory too."""
        is_mean = is_of(learning.turn_of(MEAN_OF_SHARES))
        self._lessons.keep_in(pieces.mapping("taught", is_of(learning.turn_of(learning.PAGE)), seldom_read=True))
        self._found.keep_in(pieces.mapping("found", is_mean, seldom_read=True), int)
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
        for one in found:
            waiting = self._waiting[one.key] = learning.Waiting(one.url, one.depth)
            waiting.order = self._found.count(waiting.place)
            self._found.add(waiting.place, 0.0)
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
            "found": self._found.save(),
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
        self._found.load(saved["found"])
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
        target = self._lessons.add(known.features, page.influence)
        self._all.known_or_mean(target)
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
        log_odds = self._lessons.predict([waiting.features for _, waiting in ranked])
        for (key, waiting), predicted in zip(ranked, log_odds, strict=True):
            waiting.score = probability_of(predicted + _EXPLORATION / math.sqrt(1 + waiting.order))
            self._waiting[key] = waiting
            self._waiting_turns.moved(key)
