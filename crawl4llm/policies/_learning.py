"""Learning, while a crawl runs, which links lead to pages of high influence (the policy ``link``)."""

from __future__ import annotations

from array import array
from base64 import b64decode, b64encode
from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from struct import Struct
from typing import Any, Final, Generic, TypeVar

from crawl4llm.base.shapes import NUMBER, Where, whole
from crawl4llm.policies._features import anchor_features, parents_features, url_features
from crawl4llm.policies._learner import Learner, is_document, packed
from crawl4llm.policies._means import MEAN, are_shares

K = TypeVar("K", int, str)
V = TypeVar("V")

_MOST_ANCHORS: Final = 6
"""Links to one document whose anchors are looked at."""


class Waiting:
    """A document of which nothing is known but its URL, until links to it are seen."""

    __slots__ = (
        *("url", "depth", "place", "order", "anchors", "links", "total", "most", "score"),
        *("_of_url", "_of_words"),
    )

    def __init__(self, url: str, depth: int = 0, order: int = 0) -> None:
        self.url = url
        self.depth = depth
        self.order = order
        """Number of documents of its folder that were found before it."""
        places, hashes = url_features(url, depth)
        self.place = places[-1]
        """Hash of its folder."""
        self._of_url = self._of_words = packed(hashes)
        """Features of its URL, and of the anchors of links to it, as a learner takes them; the former alone."""
        self.anchors = array("I")
        """Features of the anchors."""
        self.links, self.total, self.most = 0, 0.0, 0.0
        """Number of pages that link to it; sum and maximum of their targets of learning."""
        self.score = 0.0
        """The last prediction."""

    @property
    def features(self) -> bytes:
        """All that is known of it, as a learner takes it."""
        of_parents = packed(parents_features(self.total / self.links, self.most)) if self.links else b""
        return self._of_words + of_parents

    def linked(self, target: float, anchor: str, *, boilerplate: bool) -> None:
        """Count a link from a page whose own target of learning is ``target``."""
        self.links += 1
        self.total += target
        self.most = max(self.most, target)
        if self.links <= _MOST_ANCHORS:
            found = anchor_features(anchor, self.url, boilerplate=boilerplate)
            if not found.issubset(self.anchors):
                self._set_anchors(sorted(found.union(self.anchors)))

    def _set_anchors(self, features: list[int]) -> None:
        self.anchors = array("I", features)
        self._of_words = self._of_url + packed(features)

    def save(self) -> list[Any]:
        """Return everything that :meth:`load` takes, as JSON has it."""
        return [self.url, self.depth, self.order, self.anchors.tolist(), self.links, self.total, self.most, self.score]

    @classmethod
    def load(cls, saved: list[Any]) -> Waiting:
        """Return the object that :meth:`save` was called on."""
        waiting = cls(*saved[:3])
        waiting._set_anchors(saved[3])
        waiting.links, waiting.total, waiting.most, waiting.score = saved[4:]
        return waiting


WAITING: Final = Where(
    (
        *({str}, whole(), whole(), [whole(0, (1 << 32) - 1)], whole(), NUMBER),
        *(Where(NUMBER, lambda share: 0 <= share <= 1), NUMBER),
    ),
    lambda saved: are_shares(saved[5], saved[4]),
)
"""The shape of the result of :meth:`Waiting.save`."""


def worst_of(waiting: Mapping[str, V], most: int, score: Callable[[V], float]) -> list[str]:
    """Return the keys of the lowest scores if there are more than ``most``; nine tenths of ``most`` remain."""
    if len(waiting) <= most:
        return []
    return sorted(waiting, key=lambda key: (score(waiting[key]), key))[: len(waiting) - most * 9 // 10]


_FEWEST_LESSONS: Final = 16
"""Pages that the first new learner is taught."""
_GROWTH: Final = 1.25
_POWER: Final = 4
"""Stresses the top: a crawl wants the best pages, and a page in the middle is little better than the worst
(docs/policy-measurements.md has the figures)."""
_TIMES: Final = 3
"""Times that a new learner is taught all pages: once is too little while they are few."""
_TOGETHER: Final = 16
"""Pages at most that are learnt together."""
_BEFORE: Final = 256
"""Pages to be learnt per further page of a group: the weights that a group learns from should not be old."""
_AT_ONCE: Final = 1024
"""Pages that are made ready at once to be learnt again."""


class Lessons:
    """The pages that a learner was taught. Each time that they have grown by a quarter, a new learner is taught all of
    them, three times over.

    A page is taught by its rank among all of them, 0 to 1, to the power of 4, which is the same for any scorer with the
    same order. A crawl takes the best pages first, so the ranks of early pages rise later; therefore they are taught
    again. The last ``most`` pages are kept, and all pages since the learner was new.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._pages: list[bytes] = []
        """In crawl order: a page as :class:`Learner` takes it, with its influence score behind, in eight bytes."""
        self._oldest = 0
        """Number of the first of them."""
        self._pieces: MutableMapping[str, Any] | None = None
        """By number: a list of it and a list of document and score."""
        self._stored = range(0)
        """Numbers of the pages in pieces."""
        self._learner = Learner()
        self._begin(0)

    def __len__(self) -> int:
        return len(self._pages)

    @property
    def is_new(self) -> bool:
        """True if the last page made a new learner be taught all pages."""
        return self._first == len(self._pages)

    def add(self, document: bytes, score: float) -> float:
        """Teach a page; returns its target."""
        self._pages.append(document + _SCORE.pack(score))
        if len(self._pages) < max(_FEWEST_LESSONS, _GROWTH * self._first):
            return self._follow(document, score)
        dropped = max(0, len(self._pages) - self._most)
        del self._pages[:dropped]
        self._oldest += dropped
        self._begin(len(self._pages))
        return self._target(score)

    def predict(self, documents: Sequence[bytes]) -> list[float]:
        """Return the log-odds of documents."""
        return self._learner.predict(documents)

    def _begin(self, first: int) -> None:
        """Let the learner forget all, and teach it the first pages."""
        self._first = min(first, len(self._pages))
        self._ordered = array("d", sorted(_score_of(page) for page in self._pages[: self._first]))
        self._learner.forget()
        self._learnt = 0
        self._documents: list[bytes] = []
        """Pages, until they are enough to be learnt together."""
        self._targets: list[float] = []
        """The targets to learn."""
        for start in [*range(0, self._first, _AT_ONCE)] * _TIMES:
            pages = self._pages[start : min(start + _AT_ONCE, self._first)]
            self._teach([page[:-8] for page in pages], [self._target(_score_of(page)) for page in pages])

    def _follow(self, document: bytes, score: float) -> float:
        """Teach a page that came after them; returns its target."""
        insort(self._ordered, score)
        target = self._target(score)
        self._teach([document], [target])
        return target

    def _teach(self, documents: Sequence[bytes], targets: Sequence[float]) -> None:
        self._documents += documents
        self._targets += targets
        sizes: list[int] = []
        taught = 0
        while (size := 1 + min((self._learnt + taught) // _BEFORE, _TOGETHER - 1)) <= len(self._documents) - taught:
            sizes.append(size)
            taught += size
        if taught:
            self._learner.learn(self._documents[:taught], self._targets[:taught], sizes)
            self._learnt += taught
            del self._documents[:taught], self._targets[:taught]

    def _target(self, score: float) -> float:
        """Return the rank of a score; pages of equal score share the mean of theirs."""
        rank = (bisect_left(self._ordered, score) + bisect_right(self._ordered, score)) / 2
        return (rank / len(self._ordered)) ** _POWER

    def keep_in(self, pieces: MutableMapping[str, Any]) -> None:
        """Load the pieces, and write to them from now on."""
        stored = sorted(pieces.values())
        self._pages = [_from_json(page) for _, page in stored]
        self._oldest = stored[0][0] if stored else 0
        self._stored = range(self._oldest, self._oldest + len(stored))
        self._pieces = pieces

    def save(self) -> list[Any]:
        """Write changed pieces; return the argument of :meth:`load`, with all pages if there are no pieces."""
        if self._pieces is None:
            return [self._first, list(map(_as_json, self._pages))]
        held = range(self._oldest, self._oldest + len(self._pages))
        for number in range(self._stored.start, min(held.start, self._stored.stop)):
            self._pieces.pop(str(number), None)
        for number in range(max(held.start, self._stored.stop), held.stop):
            self._pieces[str(number)] = [number, _as_json(self._pages[number - held.start])]
        self._stored = held
        return [self._first, []]

    def load(self, first: int, pages: Sequence[tuple[str, float]]) -> None:
        """Restore from the result of :meth:`save`: teaches all pages again, in the same order."""
        self._pages += map(_from_json, pages)
        self._begin(first)
        for page in self._pages[first:]:
            self._follow(page[:-8], _score_of(page))


_SCORE: Final = Struct("<d")


def _score_of(page: bytes) -> float:
    return float(_SCORE.unpack_from(page, len(page) - 8)[0])


def _as_json(page: bytes) -> list[str | float]:
    return [b64encode(page[:-8]).decode(), _score_of(page)]


def _from_json(page: Sequence[Any]) -> bytes:
    document, score = page
    return b64decode(document) + _SCORE.pack(score)


def _is_packed(text: str) -> bool:
    try:
        return is_document(b64decode(text, validate=True))
    except ValueError:
        return False


PAGE: Final = (Where({str}, _is_packed), NUMBER)
"""The shape of a page in the result of :meth:`Lessons.save`."""


def turn_of(shape: Any) -> Any:
    """Return the shape of a piece that :class:`InTurn` writes, by that of its value."""
    return ({int}, shape)


class InTurn(Generic[K]):
    """Keeps the changes of a dict whose order matters in pieces: each has its turn, a number, before its value."""

    def __init__(self) -> None:
        self._pieces: MutableMapping[str, Any] | None = None
        self._next = 0
        self._changed: dict[K, bool] = {}
        """True if it moved to the end of the dict, in this order; False if it stays in its place."""

    def keep_in(self, pieces: MutableMapping[str, Any]) -> list[tuple[str, Any]]:
        """Return the items that pieces hold, in turn, and write there from now on."""
        stored = sorted((turn, name, value) for name, (turn, value) in pieces.items())
        self._pieces = pieces
        self._next = stored[-1][0] + 1 if stored else 0
        return [(name, value) for _, name, value in stored]

    def moved(self, key: K) -> None:
        """Note that an item is new, was taken to the end, or is there no more."""
        if self._pieces is not None:
            self._changed.pop(key, None)
            self._changed[key] = True

    def changed(self, key: K) -> None:
        """Note that an item has changed."""
        if self._pieces is not None:
            self._changed.setdefault(key, False)

    def save(self, items: Mapping[K, V], as_json: Callable[[V], Any]) -> bool:
        """Write items that have changed; one that is not there any more is removed. False: there are no pieces."""
        if self._pieces is None:
            return False
        for key, moved in self._changed.items():
            name = str(key)
            if key in items:
                self._pieces[name] = [self._next if moved else self._pieces[name][0], as_json(items[key])]
                self._next += moved
            else:
                self._pieces.pop(name, None)
        self._changed.clear()
        return True


def sums_by(key: Any) -> Any:
    """Return the shape of the result of :meth:`RunningMeans.save`, ``key`` being that of a key."""
    return [Where((key, *MEAN), lambda sums: are_shares(*sums[1:]))]


_NO_VALUES: Final = (0.0, 0)


class RunningMeans(Generic[K]):
    """Means by key, of the ``most`` keys that were last added to: memory stays bounded in a crawl of any length."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._sums: OrderedDict[K, tuple[float, int]] = OrderedDict()
        self._turns: InTurn[K] = InTurn()

    def add(self, key: K, value: float) -> None:
        """Count a value."""
        total, count = self._sums.pop(key, _NO_VALUES)
        self._sums[key] = total + value, count + 1
        self._turns.moved(key)
        if len(self._sums) > self._most:
            self._turns.moved(self._sums.popitem(last=False)[0])

    def sums(self, key: K) -> tuple[float, int]:
        """Return the sum and the number of a key's values."""
        return self._sums.get(key, _NO_VALUES)

    def count(self, key: K) -> int:
        """Return how many values a key has."""
        return self.sums(key)[1]

    def keep_in(self, pieces: MutableMapping[str, Any], key_of: Callable[[str], K]) -> None:
        """Load the pieces, and write to them from now on; ``key_of`` makes a key of its name."""
        self._sums = OrderedDict((key_of(name), (total, count)) for name, (total, count) in self._turns.keep_in(pieces))

    def save(self) -> list[tuple[K, float, int]]:
        """Write changed pieces; return all sums, in an order that matters, if no piece changed."""
        if self._turns.save(self._sums, list):
            return []
        return [(key, total, count) for key, (total, count) in self._sums.items()]

    def load(self, sums: Iterable[tuple[K, float, int]]) -> None:
        """Restore from the result of :meth:`save`."""
        for key, total, count in sums:
            self._sums[key] = total, count
            self._turns.moved(key)
