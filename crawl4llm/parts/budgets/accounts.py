"""Budgets: how many fetches owners and URL prefixes have left, and how they earn more.

Nothing but the URL of a document says which budgets it is of: those of its owner, its host, the first two folders of
its path, and, of a URL with a query, the path itself. Each starts with URL_BUDGET fetches (10). A page whose text is
new, and whose influence score is above the running median of the crawl, earns

- one fetch, for each of its budgets; up to three times URL_BUDGET in all;
- three times URL_BUDGET fetches, if another page than the one on which it was found links to it, and for budgets that
  are *trusted*: of a seed, or of documents that a page elsewhere lists, five or more at once. Trusted budgets, and
  those with four pages that earned so, may earn any number.

Pages that please the scorer can be made without end, and so can links; but a maze that never ends has always new
addresses, so that hardly any of its pages is linked to twice, whereas sites of people link to what they have.
"""

from __future__ import annotations

import struct
from base64 import b64decode, b64encode
from bisect import bisect_left, insort
from collections.abc import Iterable, MutableMapping, Sequence
from typing import Any, Final, NamedTuple
from zlib import crc32

from crawl4llm.base.domains import owner_of
from crawl4llm.policies import Pieces

_BITS: Final = 1 << 23
_PIECE_BYTES: Final = 1 << 10
_PIECE_SHIFT: Final = 13
"""Bits of a bit's number that say where in its piece it is."""
_MOST: Final = 400_000
"""Documents in a filter, at most: with two bits each, it then says yes to one in a hundred that it does not have."""
_MOST_RECENT: Final = 100_000
"""Keys that are known to have been added, so that links of every page of a site cost next to nothing."""


class LinkedTwice:
    """The last 400,000 to 800,000 documents that were added, in two filters of 1 MB: when the younger is full the older
    is forgotten. It may have a few more, never fewer. What it says depends on nothing but what was added, in its
    order."""

    def __init__(self) -> None:
        self._young, self._old = bytearray(_BITS // 8), bytearray(_BITS // 8)
        self._count = self._generation = 0
        """Documents in the younger filter, and how many filters came before it."""
        self._recent: set[str] = set()
        self._stored: MutableMapping[str, Any] = {}
        self._changed: set[int] = set()
        """Pieces of the younger filter that are not stored as they are."""

    def keep_in(self, pieces: Pieces) -> None:
        """Keep it there, and go on from what is there. Raises StoreError."""
        self._stored = stored = pieces.mapping("budgets/linked_twice", _is_piece, seldom_read=True)
        self._generation, self._count = stored.get("filters", [0, 0])
        for filled, generation in ((self._young, self._generation), (self._old, self._generation - 1)):
            for number in range(_BITS // 8 // _PIECE_BYTES):
                if piece := stored.get(f"{generation % 2}/{number}"):
                    filled[number * _PIECE_BYTES : (number + 1) * _PIECE_BYTES] = b64decode(piece)

    def save(self) -> None:
        """Write what has changed, to last with the next commit."""
        for number in sorted(self._changed):
            piece = self._young[number * _PIECE_BYTES : (number + 1) * _PIECE_BYTES]
            self._stored[f"{self._generation % 2}/{number}"] = b64encode(piece).decode()
        self._stored["filters"] = [self._generation, self._count]
        self._changed.clear()

    def add(self, keys: Iterable[str]) -> None:
        """Add documents."""
        recent, young = self._recent, self._young
        for key in keys:
            if key in recent:
                continue
            recent.add(key)
            first, second = _places(key)
            if young[first >> 3] >> (first & 7) & 1 and young[second >> 3] >> (second & 7) & 1:
                continue
            young[first >> 3] |= 1 << (first & 7)
            young[second >> 3] |= 1 << (second & 7)
            self._changed.update((first >> _PIECE_SHIFT, second >> _PIECE_SHIFT))
            self._count += 1
            if self._count >= _MOST:
                self._turn()
                young = self._young
        if len(recent) > _MOST_RECENT:
            recent.clear()

    def __contains__(self, key: str) -> bool:
        first, second = _places(key)
        return any(
            bits[first >> 3] >> (first & 7) & 1 and bits[second >> 3] >> (second & 7) & 1
            for bits in (self._young, self._old)
        )

    def _turn(self) -> None:
        """Begin another filter."""
        self.save()
        self._old, self._young = self._young, bytearray(_BITS // 8)
        self._generation, self._count = self._generation + 1, 0
        self._changed.update(range(_BITS // 8 // _PIECE_BYTES))
        self._recent.clear()


def _places(key: str) -> tuple[int, int]:
    """Return the numbers of a key's two bits."""
    hashed = crc32(key.encode("utf-8", "surrogatepass"))
    return hashed & (_BITS - 1), hashed * 0x9E3779B1 >> 20 & (_BITS - 1)


def _is_piece(value: Any) -> bool:
    """Return whether a value of the store is a piece of a filter, or the number of filters with that of documents."""
    if isinstance(value, str):
        try:
            return len(b64decode(value, validate=True)) == _PIECE_BYTES
        except ValueError:
            return False
    return isinstance(value, list) and len(value) == 2 and all(type(number) is int for number in value)


_FOLDERS: Final = 2
_PAY: Final = 3
"""Times the start that a page earns which is vouched for."""
_MOST_UNPROVEN: Final = 3
"""Times the start that a budget may have where its pages are not linked to as those of sites are."""
_PROVEN: Final = 4
"""Such pages from which on it is no maze."""
LISTED: Final = 5
"""New documents of one owner or prefix on a page elsewhere that make it a list of them."""


class Account(NamedTuple):
    """One budget, as JSON keeps it."""

    spent: int
    earned: int
    vouched: int
    """Pages that earned, and that two others link to."""
    trusted: bool
    """Whether the operator, or a list elsewhere, leads there."""
    waiting: bool
    """Whether documents may be set aside for want of it."""


_NEW: Final = Account(0, 0, 0, False, False)


class Budgets:
    """The accounts of owners and URL prefixes. A document is fetched if all of its have fetches left."""

    def __init__(self, start: int) -> None:
        self._start = start
        self._accounts: MutableMapping[str, Any] = {}
        self._linked_twice = LinkedTwice()
        self._median = RunningMedian()

    def keep_in(self, pieces: Pieces) -> None:
        """Keep accounts there, and go on from what is. Raises StoreError."""
        self._accounts = pieces.mapping("budgets/accounts", _is_account)
        self._linked_twice.keep_in(pieces)

    def save(self) -> list[list[int]]:
        """Write to where it is kept; return the rest of its state as JSON takes it."""
        self._linked_twice.save()
        return self._median.save()

    def load(self, state: Sequence[Sequence[int]]) -> None:
        """Go on from what :meth:`save` returned."""
        self._median.load(state)

    def left(self, scope: str) -> int:
        """Return the fetches that an owner or prefix has left; 0 or less: none."""
        return self._left(self._account(scope))

    def exhausted(self, scopes: Sequence[str]) -> str | None:
        """Return the first of some owners and prefixes that has nothing left; None: all have."""
        return next((scope for scope in scopes if self.left(scope) <= 0), None)

    def spend(self, scopes: Sequence[str], *, seed: bool) -> None:
        """Take a fetch from each; ``seed``: it is for what the operator asked for."""
        for scope in scopes:
            spent, earned, vouched, trusted, waiting = self._accounts.get(scope, _NEW)
            self._accounts[scope] = [spent + 1, earned, vouched, trusted or seed, waiting]

    def refund(self, scopes: Sequence[str]) -> None:
        """Give back a fetch that was not made."""
        for scope in scopes:
            spent, *others = self._accounts.get(scope, _NEW)
            self._accounts[scope] = [spent - 1, *others]

    def earn(self, scopes: Sequence[str], key: str, influence: float | None, *, new_text: bool) -> None:
        """Let a page that was fetched earn what it deserves."""
        good = influence is not None and self._median.is_below(influence) and new_text
        if influence is not None:
            self._median.add(influence)
        if not good:
            return
        vouched = key in self._linked_twice
        for scope in scopes:
            spent, earned, number, trusted, waiting = self._accounts.get(scope, _NEW)
            pay = _PAY * self._start if vouched or trusted else 1
            self._accounts[scope] = [spent, earned + pay, number + vouched, trusted, waiting]

    def linked(self, keys: Iterable[str]) -> None:
        """Note the documents to which a page links, and that other pages have linked to before."""
        self._linked_twice.add(keys)

    def trust(self, scope: str) -> None:
        """Let an owner or prefix earn as sites do."""
        *others, trusted, waiting = self._accounts.get(scope, _NEW)
        if not trusted:
            self._accounts[scope] = [*others, True, waiting]

    def wait(self, scope: str, *, waiting: bool) -> None:
        """Note whether documents are set aside for want of a budget."""
        *others, before = self._accounts.get(scope, _NEW)
        if before != waiting:
            self._accounts[scope] = [*others, waiting]

    def for_waiting(self, scopes: Sequence[str]) -> list[tuple[str, int]]:
        """Return those owners and prefixes for which documents wait that can go on, with the fetches they have left."""
        accounts = ((scope, self._account(scope)) for scope in scopes)
        return [(scope, left) for scope, one in accounts if one.waiting and (left := self._left(one)) > 0]

    def _account(self, scope: str) -> Account:
        return Account(*self._accounts.get(scope, _NEW))

    def _left(self, account: Account) -> int:
        allowed = self._start + account.earned
        if not account.trusted and account.vouched < _PROVEN:
            allowed = min(allowed, _MOST_UNPROVEN * self._start)
        return allowed - account.spent


def scopes_of(url: str) -> list[str]:
    """Return the names of a URL's budgets: its owner first, then prefixes, longer and longer, without the scheme. A
    document without a URL has none."""
    owner = owner_of(url)
    if not owner:
        return []
    path, asks, _ = url.partition("?")
    host, *folders = path.partition("//")[2].split("/", _FOLDERS + 1)
    scopes = [owner, prefix := f"{host}/"]
    for folder in folders[:-1]:
        prefix += f"{folder}/"
        scopes.append(prefix)
    if asks:
        scopes.append(f"{path.partition('//')[2]}?")
    return scopes


_WORD, _DOUBLE = struct.Struct(">Q"), struct.Struct(">d")
_SIGN: Final = 1 << 63
_SHIFT: Final = 44
"""Bits of a number that are not told apart: what differs by less than 1 in 256 is taken for equal."""


class RunningMedian:
    """The median of all numbers so far, by a histogram whose bins are as fine as the numbers are small."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._bins: list[int] = []
        self._place = self._below = self._total = 0
        """The median's place among the bins, and the numbers in those before."""

    def add(self, number: float) -> None:
        """Add a number."""
        bin_ = _bin_of(number)
        if bin_ not in self._counts:
            if self._bins and bin_ < self._bins[self._place]:
                self._place += 1
            insort(self._bins, bin_)
        self._count(bin_, 1)

    def is_below(self, number: float) -> bool:
        """Return whether a number is above the median; none is where there is none."""
        return bool(self._bins) and _bin_of(number) > self._bins[self._place]

    def save(self) -> list[list[int]]:
        """Return it as JSON takes it."""
        return [[bin_, self._counts[bin_]] for bin_ in self._bins]

    def load(self, state: Sequence[Sequence[int]]) -> None:
        """Go on, in a new one, from what :meth:`save` returned."""
        self._bins = [bin_ for bin_, _ in state]
        self._counts = dict.fromkeys(self._bins, 0)
        for bin_, count in state:
            self._count(bin_, count)

    def _count(self, bin_: int, count: int) -> None:
        self._counts[bin_] = self._counts.get(bin_, 0) + count
        self._total += count
        if bisect_left(self._bins, bin_) < self._place:
            self._below += count
        while 2 * self._below >= self._total and self._place:
            self._place -= 1
            self._below -= self._counts[self._bins[self._place]]
        while 2 * (self._below + self._counts[self._bins[self._place]]) < self._total:
            self._below += self._counts[self._bins[self._place]]
            self._place += 1


def _bin_of(number: float) -> int:
    """Return an integer in whose order numbers are, but for those that are not told apart."""
    (bits,) = _WORD.unpack(_DOUBLE.pack(number + 0.0))
    return int((bits ^ _SIGN if bits < _SIGN else ~bits & (2 * _SIGN - 1)) >> _SHIFT)


def _is_account(value: Any) -> bool:
    """Return whether a value of the store is an account."""
    return (
        isinstance(value, list)
        and len(value) == len(Account._fields)
        and all(type(number) is int for number in value[:3])
        and all(type(flag) is bool for flag in value[3:])
    )
