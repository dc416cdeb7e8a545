"""Shares of new texts by host and folder: a beta-binomial estimate whose prior is learnt from the crawl itself."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any, Final, NamedTuple

from crawl4llm.base.shapes import LARGEST_WHOLE, NUMBER, Where, is_of, whole
from crawl4llm.policies._learning import RunningMeans, turn_of
from crawl4llm.policies._means import MEAN, shrunken
from crawl4llm.policies._policy import Pieces

# docs/policy-measurements.md says how these were chosen, and on what.
_ALIKE: Final = math.inf
"""The strength of a prior by which no place differs from the one above it."""
_HOST_STRENGTHS: Final = (_ALIKE, 10.0, 1.0, 0.1)
"""Number of a host's pages that may weigh as much as the web's share."""
_FOLDER_STRENGTHS: Final = (_ALIKE, 3.0, 0.3)
"""The same for a folder and the share of the folder above it, or of its host."""
_DOUBT: Final = 3.0
"""Log-odds against hosts that differ, before there is evidence; the same against folders that do."""
_UNSEEN: Final = 0.1
"""Number of new texts, and of known ones, that the web is assumed to have besides those of the crawled pages."""
_LEAST_MOVE: Final = 0.05
"""Smallest relative change of the web's share for which documents are ranked again."""

_LOSING: Final = 0.5
"""Places lose whose share is less than this part of the web's. Smaller differences are often real, since pages of a
host are alike, but acting on them disturbs the crawl's order and brings nothing."""
_LEAST_SHARE: Final = 1e-20
"""The web's is above it in any crawl."""


class _Prior(NamedTuple):
    """An assumption of how far places differ: strengths of the two beta distributions."""

    number: int
    """Place of the host's strength in _HOST_STRENGTHS."""
    of_host: float
    of_folder: float

    @property
    def odds(self) -> float:
        """Log-odds before there is evidence."""
        return -_DOUBT * ((self.of_host < _ALIKE) + (self.of_folder < _ALIKE))


_PRIORS: Final = tuple(
    _Prior(number, of_host, of_folder)
    for (number, of_host), of_folder in product(enumerate(_HOST_STRENGTHS), _FOLDER_STRENGTHS)
)
_COUNTS: Final = Where(MEAN, lambda counts: 0 <= counts[0] <= counts[1])
_AMOUNT: Final = Where(NUMBER, lambda amount: 0 <= amount <= LARGEST_WHOLE)
STATE: Final = (
    [Where(({int}, *MEAN), lambda counts: 0 <= counts[1] <= counts[2])],
    Where([(_AMOUNT, _AMOUNT)], lambda web: len(web) == len(_HOST_STRENGTHS)),
    Where([NUMBER], lambda odds: len(odds) == len(_PRIORS)),
    whole(),
    whole(0, len(_PRIORS) - 1),
    Where(NUMBER, lambda share: _LEAST_SHARE <= share <= 1),
)
"""The shape of the result of :meth:`NewShares.save`."""


class NewShares:
    """Estimates the share of new texts in a place, relative to the whole web's.

    The model: a host's share is drawn from a beta distribution around the web's share, and a folder's from one around
    that of the folder above it. The strength of a distribution, in pages, says how far places differ: with 0.1 a host
    is nearly all new or nearly all known; without end all hosts are alike. Of some strengths, that pair is used which
    predicted the crawled pages best, each from the pages before it. The ratio of such predictions is the Bayes factor
    of two priors (Dawid 1984, "The prequential approach"). Before there is evidence, all places count as alike.
    """

    def __init__(self, most: int) -> None:
        """``most``: hosts and folders that are kept, those that were last added to."""
        self._places: RunningMeans[int] = RunningMeans(most)
        self._pages = 0
        self._web = [(0.0, 0.0)] * len(_HOST_STRENGTHS)
        """New and known texts by the strength of hosts: the more hosts differ, the less their pages weigh."""
        self._odds = [prior.odds for prior in _PRIORS]
        """Log-odds of each prior against the first, by which all places are alike."""
        self._prior = 0
        """Number of the one in use."""
        self._of_web = 1.0
        """The web's share that is in use."""

    @property
    def are_alike(self) -> bool:
        """True while all factors are 1."""
        return self._prior == 0

    def count(self, place: int) -> int:
        """Return how many pages of a place were counted."""
        return self._places.count(place)

    def are_new(self, place: int) -> bool:
        """Return whether all pages of a place were new, so that its factor is 1 and those of its folders are."""
        total, count = self._places.sums(place)
        return total == count

    def add(self, places: Sequence[int], *, is_new: bool) -> bool:
        """Count a page of a host and its folders; returns whether the factors of all places may have changed."""
        counts = [self._places.sums(place) for place in places]
        self._weigh(counts, is_new=is_new)
        self._add_to_web(*counts[0], is_new=is_new)
        for place in places:
            self._places.add(place, float(is_new))
        self._pages += 1
        return is_due(self._pages) and self._choose()

    def factor(self, places: Sequence[int]) -> float:
        """Return the expected share of new texts in a place as a multiple of half of the web's, at most 1."""
        prior = _PRIORS[self._prior]
        host, *folders = map(self._places.sums, places)
        share = _shrunken(folders, _shrunken([host], self._of_web, prior.of_host), prior.of_folder)
        return min(share / (_LOSING * self._of_web), 1.0)

    def keep_in(self, pieces: Pieces, name: str) -> None:
        """Keep the counts of places in pieces of some name."""
        self._places.keep_in(pieces.mapping(name, is_of(turn_of(_COUNTS)), seldom_read=True), int)

    def save(self) -> list[Any]:
        """Return everything that :meth:`load` takes, as JSON has it."""
        web = [list(amounts) for amounts in self._web]
        return [self._places.save(), web, self._odds, self._pages, self._prior, self._of_web]

    def load(self, saved: Sequence[Any]) -> None:
        """Restore from the result of :meth:`save`, which has the shape STATE."""
        places, web, self._odds, self._pages, self._prior, self._of_web = saved
        self._web = [(new, known) for new, known in web]
        self._places.load(places)

    def _weigh(self, counts: Sequence[tuple[float, int]], *, is_new: bool) -> None:
        """Compare how probable each prior made what a page is, by the pages before it."""
        web = self._web
        if not is_new:  # their shares are those of known texts: 1 minus a share could be rounded to 0
            web = [(known, new) for new, known in web]
            counts = [(count - new, count) for new, count in counts]
        host, *folders = counts
        logs = []
        for amounts, of_host in zip(web, _HOST_STRENGTHS, strict=True):
            share = _shrunken([host], _share(*amounts), of_host)
            logs += [math.log(_shrunken(folders, share, of_folder)) for of_folder in _FOLDER_STRENGTHS]
        self._odds = [odds + log - logs[0] for odds, log in zip(self._odds, logs, strict=True)]

    def _add_to_web(self, new: float, count: int, *, is_new: bool) -> None:
        """Count a page of a host that had ``new`` new texts among ``count`` pages."""
        for number, strength in enumerate(_HOST_STRENGTHS):
            before, after = _weight(count, strength), _weight(count + 1, strength)
            of_new, of_known = self._web[number]
            of_new += (new + is_new) * after - new * before
            of_known += (count - new + (not is_new)) * after - (count - new) * before
            self._web[number] = max(of_new, 0.0), max(of_known, 0.0)

    def _choose(self) -> bool:
        """Use the prior of the highest odds, and the web's share as it is now, if either has changed enough."""
        before, best = self._prior, self._odds.index(max(self._odds))
        of_web = _share(*self._web[_PRIORS[best].number])
        if best == before and abs(of_web - self._of_web) <= _LEAST_MOVE * self._of_web:
            return False
        self._prior, self._of_web = best, of_web
        return (before, best) != (0, 0)


def _share(some: float, others: float) -> float:
    return (some + _UNSEEN) / (some + others + 2 * _UNSEEN)


def _weight(count: int, strength: float) -> float:
    """Return the weight of a page in the web's share, by the number of its host's pages. At a low strength all pages of
    a host together weigh about as much as one."""
    return 1.0 if strength == _ALIKE else (1 + strength) / (count + strength)


def _shrunken(counts: Iterable[tuple[float, int]], towards: float, strength: float) -> float:
    """Return the share in the innermost of some places, each shrunken towards the one before."""
    if strength == _ALIKE:
        return towards
    for total, count in counts:
        if count:  # else the share is exactly that before, without rounding
            towards = shrunken(total, count, towards, strength)
    return towards


def is_due(count: int) -> bool:
    """Return whether estimates are renewed after a number of pages: each of the first 15, then 8 to 16 times until the
    pages have doubled."""
    return count % (1 << max(count.bit_length() - 4, 0)) == 0
