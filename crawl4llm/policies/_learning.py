"""Learning, while a crawl runs, which links lead to pages of high influence (the policy ``link``)."""

from __future__ import annotations

import re
import tempfile
from array import array
from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlsplit
from zlib import crc32

from crawl4llm.base.domains import domain_of
from crawl4llm.base.errors import InputError
from crawl4llm.base.urls import host_of
from crawl4llm.policies._means import shrunken

K = TypeVar("K", int, str)
V = TypeVar("V")

_NUMBER: Final = (int, float)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\x00-\x7f]+")
"""Words also end where a capital follows (``userGuide``), and where digits begin."""
_CASES = (re.compile("[a-z]+"), "a"), (re.compile("[A-Z]+"), "A"), (re.compile("[0-9]+"), "0")

_MOST_FOLDERS: Final = 8
_MOST_URL_WORDS: Final = 24
_MOST_ANCHOR_WORDS: Final = 16
_DEEPEST: Final = 9
"""Documents so many links from a seed, and more, are one."""


def places_of(url: str) -> list[int]:
    """Return where a page lies, from wide to narrow: its host, then each folder of its path."""
    host, folders, _ = _parts(url)
    return [*_hashes("host", [host]), *_hashes("folder", _paths(host, folders))]


def url_features(url: str, depth: int) -> list[int]:
    """Return features of a URL ``depth`` links from a seed: its host and domain, the folders of its path, the words of
    its path, file name and query."""
    host, folders, file = _parts(url)
    stem = file.rpartition(".")[0] if "." in file else file
    stem_words = _words(stem, _MOST_URL_WORDS)
    topic = [f"{host}/{'/'.join(folders)}/{stem_words[0]}"] if len(stem_words) > 1 else []
    return [
        *_host_features(host),
        *_hashes("folder", _paths(host, folders)),
        *_hashes("folder word", set(_words("/".join(folders), _MOST_URL_WORDS))),
        *_hashes("file word", set(stem_words)),
        *_hashes(f"file word {host}", set(stem_words)),
        *_hashes("file topic", topic),
        *_hashes(f"folders {host}", [str(len(folders))]),
        *_hashes("query word", set(_words(url.partition("?")[2], _MOST_URL_WORDS))),
        *_hashes("links from seed", [str(min(depth, _DEEPEST))]),
    ]


def anchor_features(anchor: str, url: str, *, boilerplate: bool) -> list[int]:
    """Return features of a link to ``url``: words and look of its anchor, and whether it is in a header or footer."""
    return _anchor_features(anchor, host_of(url), "boilerplate" if boilerplate else "content")


@lru_cache(maxsize=4096)
def _anchor_features(anchor: str, host: str, part: str) -> list[int]:
    words = set(_words(anchor, _MOST_ANCHOR_WORDS))
    return [
        *_hashes("anchor word", words),
        *_hashes(f"anchor word {host}", words),
        *_hashes("anchor length", [str(min(len(anchor.split()), 6))]),
        *_hashes("anchor look", [_look(anchor)]),
        *_hashes("part", [part, f"{host} {part}"]),
    ]


def _parts(url: str) -> tuple[str, list[str], str]:
    """Return host, folders and file name of a URL."""
    try:
        path = urlsplit(url).path
    except ValueError:
        path = ""
    *folders, file = path.removeprefix("/").split("/")
    return host_of(url), folders[:_MOST_FOLDERS], file


def _paths(host: str, folders: list[str]) -> list[str]:
    return [f"{host}/{'/'.join(folders[:depth])}" for depth in range(1, len(folders) + 1)]


def _words(text: str, most: int) -> list[str]:
    """Return words in lower case; numbers by their length only, since most occur once."""
    return [f"#{len(word)}" if word.isdigit() else word.lower() for word in _WORD.findall(text)[:most]]


def _look(text: str) -> str:
    """Return a text with its runs of letters and digits cut to one character each: ``std::sort()`` is ``a::a()``."""
    for run, character in _CASES:
        text = run.sub(character, text)
    return text[:16]


@lru_cache(maxsize=1024)
def _host_features(host: str) -> list[int]:
    return [*_hashes("host", [host]), *_hashes("domain", [domain_of(host)]), *_hashes("label", host.split("."))]


def _hashes(kind: str, values: Iterable[str]) -> list[int]:
    start = _start_of(kind)
    return [crc32(value.encode(errors="backslashreplace"), start) for value in values]


@lru_cache(maxsize=4096)
def _start_of(kind: str) -> int:
    return crc32(f"{kind}\t".encode(errors="backslashreplace"))


_WINDOW: Final = 1000
"""Pages that a page is compared to."""
_POWER: Final = 4
"""Stresses the top: what a crawl is after are its best pages, and a page in the middle is little better than the worst
(docs/policies.md has the figures)."""


class RecentRanks:
    """The rank of a score, 0 to 1, to the power of 4; the same for any scorer that puts pages in the same order."""

    def __init__(self) -> None:
        self._recent: deque[float] = deque()
        self._ordered: list[float] = []

    def add(self, score: float) -> float:
        """Count a page and return its target, 0 to 1. Pages of equal score share the mean of their ranks."""
        if len(self._recent) == _WINDOW:
            del self._ordered[bisect_left(self._ordered, self._recent.popleft())]
        self._recent.append(score)
        insort(self._ordered, score)
        rank = (bisect_left(self._ordered, score) + bisect_right(self._ordered, score)) / 2
        return (rank / len(self._ordered)) ** _POWER

    def save(self) -> list[float]:
        """Return the scores of the window, as :meth:`load` takes them."""
        return list(self._recent)

    def load(self, recent: list[float]) -> None:
        """Go on from what :meth:`save` gave."""
        self._recent, self._ordered = deque(recent), sorted(recent)


_MOST_ANCHORS: Final = 6
"""Links to one document whose anchors are looked at."""


class Waiting:
    """A document of which nothing is known but its URL, until links to it are seen."""

    __slots__ = (
        *("url", "depth", "parent", "places", "anchors", "features", "_words", "score"),
        *("links", "total", "first", "least", "most"),
    )

    def __init__(self, url: str, depth: int = 0, parent: str | None = None) -> None:
        self.url = url
        self.depth = depth
        self.parent = parent
        """Key of the page on which it was first seen."""
        self.places = array("I", places_of(url))
        self.features = self._words = as_text(sorted(set(url_features(url, depth))))
        """Features of its URL, and of the anchors of links to it; the former alone."""
        self.anchors = array("I")
        """Features of the anchors."""
        self.links, self.total, self.first, self.least, self.most = 0, 0.0, 0.0, 1.0, 0.0
        """Number of pages that link to it; sum, first, minimum and maximum of their targets of learning."""
        self.score = 0.0
        """The last prediction."""

    def linked(self, target: float, anchor: str, *, boilerplate: bool) -> None:
        """Count a link from a page whose own target of learning is ``target``."""
        if not self.links:
            self.first = target
        self.links += 1
        self.total += target
        self.least, self.most = min(self.least, target), max(self.most, target)
        if self.links <= _MOST_ANCHORS:
            found = anchor_features(anchor, self.url, boilerplate=boilerplate)
            self._set_anchors(sorted({*self.anchors, *found}))

    def _set_anchors(self, features: list[int]) -> None:
        self.anchors = array("I", features)
        self.features = f"{self._words} {as_text(features)}"

    def save(self) -> list[Any]:
        """Return everything that :meth:`load` takes, as JSON has it."""
        numbers = [self.links, self.total, self.first, self.least, self.most, self.score]
        return [self.url, self.depth, self.parent, self.anchors.tolist(), *numbers]

    @staticmethod
    def is_valid(piece: Any) -> bool:
        """Return whether a piece is a document's."""
        kinds = ((str,), (int,), (str, type(None)), (list,), (int,), *[_NUMBER] * 5)
        return is_turn_of(piece, *kinds) and all(type(one) is int and 0 <= one < 1 << 32 for one in piece[1][3])

    @classmethod
    def load(cls, saved: list[Any]) -> Waiting:
        """Return what :meth:`save` was called on."""
        waiting = cls(*saved[:3])
        waiting._set_anchors(saved[3])
        waiting.links, waiting.total, waiting.first, waiting.least, waiting.most, waiting.score = saved[4:]
        return waiting


def worst_of(waiting: Mapping[str, Waiting], most: int) -> list[str]:
    """Return, where there are more than ``most``, the keys of the lowest scores: but for them, nine tenths of it."""
    if len(waiting) <= most:
        return []
    return sorted(waiting, key=lambda key: (waiting[key].score, key))[: len(waiting) - most * 9 // 10]


try:
    from vowpalwabbit.pyvw import Workspace, pylibvw
except ImportError:
    Workspace = pylibvw = None

IS_INSTALLED: Final = Workspace is not None
HOW_TO_INSTALL: Final = "pip install vowpalwabbit"
_BITS: Final = 20
_MASK: Final = (1 << _BITS) - 1
_LOSS: Final = "--quiet --loss_function logistic"
_OPTIONS: Final = f"{_LOSS} --noconstant --bit_precision {_BITS} --learning_rate 1"
"""Vowpal Wabbit's own rule of learning: steps that are adaptive, normalised and safe for any importance weight
(Karampatziakis and Langford 2011; Ross et al. 2013)."""


class Learner:
    """Corrects prior log-odds by the sum of the weights of a document's features.

    All weights are 0 at first: what is predicted of a document is its prior until something was learnt of one of its
    features. The same calls give the same weights.

    Examples go to the library below Vowpal Wabbit's Python classes (``pylibvw``, as ``Workspace.learn`` and ``predict``
    do it), which take twice the time that it takes.
    """

    def __init__(self) -> None:
        if Workspace is None:
            raise InputError(f"URL_POLICY link needs Vowpal Wabbit: {HOW_TO_INSTALL}")
        self._model = Workspace(_OPTIONS)

    def predict(self, prior: float, features: str, facts: Sequence[float]) -> float:
        """Return the log-odds of a document with such features (see :func:`as_text`) and ``facts``, which are numbers
        in a fixed order."""
        (example,) = self._model._parse(f"1 1 {prior:.6f} {_described(features, facts)}")
        pylibvw.vw.predict(self._model, example)
        log_odds: float = example.get_simplelabel_prediction()
        pylibvw.vw._finish_example(self._model, example)
        return log_odds

    def learn(self, prior: float, features: str, facts: Sequence[float], target: float) -> None:
        """Learn that a document's probability was ``target``: as a positive and a negative example of that weight."""
        described = _described(features, facts)
        for label, weight in ((1, target), (-1, 1 - target)):
            if weight > 0:
                (example,) = self._model._parse(f"{label} {weight:.6f} {prior:.6f} {described}")
                pylibvw.vw.learn(self._model, example)
                pylibvw.vw._finish_example(self._model, example)

    def save(self) -> bytes:
        """Return the model in Vowpal Wabbit's format; equal models give equal bytes."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model")
            self._model.save(path)
            return path.read_bytes()

    def load(self, model: bytes) -> None:
        """Go on, to the last bit, from what :meth:`save` gave."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model")
            path.write_bytes(model)
            # A model knows neither its loss function nor how much it has learnt, unless it is told so.
            self._model = Workspace(f"{_LOSS} --preserve_performance_counters --initial_regressor {path}")


def as_text(features: Iterable[int]) -> str:
    """Return features in Vowpal Wabbit's text format, with the value 1; of each the bits that tell its weight."""
    return " ".join([str(feature & _MASK) for feature in features])


def _described(features: str, facts: Sequence[float]) -> str:
    """Return a document in Vowpal Wabbit's text format."""
    return f"|f {features} |d {_format_of(len(facts)) % (*facts,)}"


@cache
def _format_of(facts: int) -> str:
    return " ".join(f"{name}:%.4f" for name in range(facts))


def is_turn_of(piece: Any, *kinds: tuple[type, ...]) -> bool:
    """Return whether a piece was written by :class:`InTurn`, its value a list with values of these types."""
    if not isinstance(piece, list) or len(piece) != 2 or type(piece[0]) is not int or not isinstance(piece[1], list):
        return False
    return len(piece[1]) == len(kinds) and all(type(part) in kind for part, kind in zip(piece[1], kinds, strict=True))


class InTurn(Generic[K]):
    """Keeps in pieces what changes of a dict whose order matters: each has its turn, a number, before its value."""

    def __init__(self) -> None:
        self._pieces: MutableMapping[str, Any] | None = None
        self._next = 0
        self._changed: dict[K, bool] = {}
        """Whether it went to the end of the dict, in this order, or stays where it is."""

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

    def count(self, key: K) -> int:
        """Return how many values a key has."""
        return self._sums.get(key, _NO_VALUES)[1]

    def shrunken(self, key: K, towards: float, weight: float) -> float:
        """Return the mean of a key, shrunken."""
        total, count = self._sums.get(key, _NO_VALUES)
        return shrunken(total, count, towards, weight)

    @staticmethod
    def is_valid(piece: Any) -> bool:
        """Return whether a piece is a mean's."""
        return is_turn_of(piece, _NUMBER, (int,))

    def keep_in(self, pieces: MutableMapping[str, Any], key_of: Callable[[str], K]) -> None:
        """Take up what pieces hold, and write there from now on; ``key_of`` makes a key of its name."""
        self._sums = OrderedDict((key_of(name), (total, count)) for name, (total, count) in self._turns.keep_in(pieces))

    def save(self) -> list[tuple[K, float, int]]:
        """Write changed pieces; return all sums, in an order that matters, where there are none."""
        if self._turns.save(self._sums, list):
            return []
        return [(key, total, count) for key, (total, count) in self._sums.items()]

    def load(self, sums: Iterable[tuple[K, float, int]]) -> None:
        """Go on from what :meth:`save` gave."""
        for key, total, count in sums:
            self._sums[key] = total, count
            self._turns.moved(key)
