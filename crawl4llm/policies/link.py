"""A model that learns, from each page crawled, to predict the influence of those not fetched yet."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from crawl4llm.policies import Candidate, CrawledPage, Pieces
from crawl4llm.policies._learning import InTurn, Learner, RecentRanks, RunningMeans, Waiting, worst_of
from crawl4llm.policies._means import RunningMean, shrunken
from crawl4llm.policies._seen_links import PageByPagePolicy

if TYPE_CHECKING:
    from crawl4llm.base.pages import Link
    from crawl4llm.frontier import Entry

# docs/policies.md says how these were chosen, and on what.
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
_REFRESHED: Final = 10 * _INTERVAL
"""Those that are ranked anew besides the ones to which links were seen: the ones ranked longest ago."""
_MOST_WAITING: Final = 50_000
"""Documents that are ranked anew, and known by more than their URL; the worst above that keep their score."""
_MOST_MEANS: Final = 200_000


class Policy(PageByPagePolicy):
    """Predicts a document's rank among the last 1,000 pages crawled, between 0 and 1, to the power of 4.

    The prediction starts from a prior in log-odds: half from the mean of the pages in its folder, shrunken towards
    those of the folders above, of its host, and of all pages; half from the mean of the pages that link to it. To that
    a linear model adds what it has learnt of the words of URL and anchors, of the folder, and of what is known of
    parents and siblings. It has learnt nothing at first, so that a young crawl goes by the prior. A bonus for folders
    of which little is known falls with the root of their pages.

    Of influence scores only the order counts. A page without one counts as the mean of those before it.
    """

    name = "link"
    reranks = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._learner = Learner()
        self._ranks = RecentRanks()
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

    def keep_in(self, pieces: Pieces) -> None:
        """Keep what it knows of documents, folders and siblings in pieces; all of it is in memory too."""
        self._places.keep_in(pieces.mapping("places", RunningMeans.is_valid), int)
        self._siblings.keep_in(pieces.mapping("siblings", RunningMeans.is_valid), str)
        for name, known, turns in self._known():
            stored = turns.keep_in(pieces.mapping(name, Waiting.is_valid))
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
            "model": base64.b64encode(self._learner.save()).decode(),
            "ranks": self._ranks.save(),
            "all": [self._all.total, self._all.count],
            "places": self._places.save(),
            "siblings": self._siblings.save(),
            "pages": self._pages,
            "linked": list(self._linked),
        }
        for name, known, turns in self._known():
            kept = turns.save(known, Waiting.save)
            state[name] = {} if kept else {key: waiting.save() for key, waiting in known.items()}
        return json.dumps(state).encode()

    def load(self, state: bytes) -> None:
        saved = json.loads(state)
        self._learner.load(base64.b64decode(saved["model"]))
        self._ranks.load(saved["ranks"])
        self._all.total, self._all.count = saved["all"]
        self._places.load(saved["places"])
        self._siblings.load(saved["siblings"])
        for name, known, turns in self._known():
            for key, waiting in saved[name].items():
                known[key] = Waiting.load(waiting)
                turns.moved(key)
        self._pages = saved["pages"]
        self._linked = dict.fromkeys(saved["linked"])

    # -- learning -------------------------------------------------------------------------------------------------

    def _learn(self, page: CrawledPage) -> float:
        """Learn from a page and return its target, or that of pages on average where its influence is not known."""
        known = self._leased.pop(page.entry.key, None) or Waiting(page.entry.url, page.entry.depth)
        self._leased_turns.moved(page.entry.key)
        if page.influence is None:
            return self._all.value
        target = self._ranks.add(page.influence)
        prior, facts = self._described(known)
        self._learner.learn(prior, known.features, facts, target)
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
        keys = dict.fromkeys([*linked, *islice(self._waiting, _REFRESHED)])
        self._linked.clear()
        self._rank(keys)
        self._changed.update(keys)

    def _rank(self, keys: Iterable[str]) -> None:
        """Predict for documents that wait, which are then the ones ranked last."""
        for key in keys:
            waiting = self._waiting.pop(key)
            prior, facts = self._described(waiting)
            bonus = _EXPLORATION / math.sqrt(self._places.count(waiting.places[-1]) + 1)
            log_odds = self._learner.predict(prior, waiting.features, facts) + bonus
            waiting.score = 1 / (1 + math.exp(-log_odds))
            self._waiting[key] = waiting
            self._waiting_turns.moved(key)

    def _described(self, known: Waiting) -> tuple[float, list[float]]:
        """Return the prior of a document in log-odds, and facts for the model to weigh."""
        host, *folders = known.places
        of_host = of_place = self._places.shrunken(host, self._all.value, _HOST_PRIOR)
        for folder in folders:
            of_place = self._places.shrunken(folder, of_place, _FOLDER_PRIOR)
        of_parents = shrunken(known.total, known.links, of_host, _PARENTS_PRIOR)
        of_siblings = self._siblings.shrunken(known.parent or "", of_parents, _SIBLINGS_PRIOR)
        means = [_log_odds(of_host), _log_odds(of_place), _log_odds(of_parents), _log_odds(of_siblings)]
        if known.links:
            means += _log_odds(known.first), _log_odds(known.least), _log_odds(known.most)
        else:
            means += _NO_PARENTS
        prior = _PLACE_WEIGHT * means[1] + (1 - _PLACE_WEIGHT) * means[2]
        return prior, [1.0, *[mean / 2 for mean in means], math.log1p(known.links) / 2]


_NO_PARENTS: Final = (-1.0, -1.0, -1.0)


def _log_odds(probability: float) -> float:
    """Return the log-odds of a probability that is kept from 0 and 1."""
    bounded = 0.01 if probability < 0.01 else min(probability, 0.99)
    return math.log(bounded / (1 - bounded))
