"""Budgets: how many fetches owners and URL prefixes have left, and how they earn more.

The URL of a document says which budgets it has (:func:`crawl4llm.parts.budgets.scopes.scopes_of`). Each starts with
URL_BUDGET fetches (10). A page whose text is new is *good* if its influence score is above the running median of new
texts; if scores are probabilities, a score above 0.5 will do. A good page earns

- two fetches for each of its budgets, and for those budgets of the page that led to it that are not its own;
- three times URL_BUDGET fetches for its budgets that are *trusted*: those of a seed, and those of documents of which a
  page elsewhere lists five or more at once. It earns as much for all of its budgets if a second page links to it.

A budget may spend three times URL_BUDGET, or any number if it is trusted or has four good pages with a second link. A
limit that is reached grows by URL_BUDGET if half of the last ten new texts are good, three times at most.

Mazes without end can make pages that please the scorer, and links. But their addresses are always new, so that hardly
any page is linked to twice. Sites of people link to what they have.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping, Sequence
from typing import Any, Final, NamedTuple

from crawl4llm.parts.budgets.linked_twice import LinkedTwice
from crawl4llm.parts.budgets.running_median import RunningMedian
from crawl4llm.parts.budgets.scopes import is_nested
from crawl4llm.policies import Pieces

_PAY: Final = 2
"""Fetches that a good page earns: half of the pages good, and a budget keeps its size."""
_PAY_VOUCHED: Final = 3
"""Times the start that a page earns which is vouched for."""
_MOST_UNPROVEN: Final = 3
"""Times the start that a budget may have if its pages are not linked to as those of sites are."""
_MOST_GROWN: Final = 3
"""Times that this grows by the start."""
_RECENT: Final = 10
"""New texts of which half have to be good for that."""
_PROVEN: Final = 4
"""Such pages from which on it is no maze."""
LISTED: Final = 5
"""New documents of one owner or prefix on a page elsewhere that make it a list of them."""
_LIKELY: Final = 0.5
"""Probability from which on a page is good, whatever others are."""


class Account(NamedTuple):
    """One budget, as JSON keeps it."""

    spent: int = 0
    earned: int = 0
    vouched: int = 0
    """Pages that earned, and that two others link to."""
    recent: int = 1
    """The last ten new texts, a bit each, 1 if it was good; the bit before them is 1."""
    grown: int = 0
    """Times that the limit of a budget that is not proven grew."""
    trusted: bool = False
    """True if the operator, or a list elsewhere, leads there."""
    waiting: bool = False
    """True if documents may be set aside for want of it."""

    def limit(self, start: int) -> int | None:
        """Return how many fetches it may have, whatever it earns; None: any number."""
        return None if self.trusted or self.vouched >= _PROVEN else (_MOST_UNPROVEN + self.grown) * start

    def left(self, start: int) -> int:
        """Return the fetches that it has left; 0 or less: none."""
        allowed, limit = start + self.earned, self.limit(start)
        return (allowed if limit is None else min(allowed, limit)) - self.spent

    def is_full(self, start: int) -> bool:
        """Return whether its limit is used up."""
        limit = self.limit(start)
        return limit is not None and self.spent >= limit

    def may_grow(self, start: int) -> bool:
        """Return whether its limit is used up, and half of its last ten new texts were good."""
        if self.grown == _MOST_GROWN or not self.is_full(start):
            return False
        return self.recent >> _RECENT == 1 and 2 * (self.recent.bit_count() - 1) >= _RECENT


_NEW: Final = Account()


def with_text(recent: int, *, good: bool) -> int:
    """Return :attr:`Account.recent` with one more new text."""
    recent = recent << 1 | good
    return recent if recent < 2 << _RECENT else recent & (1 << _RECENT) - 1 | 1 << _RECENT


class Budgets:
    """The accounts of owners and URL prefixes. A document is fetched if all of its have fetches left."""

    def __init__(self, start: int, *, probabilities: bool = False) -> None:
        """``probabilities``: whether influence scores are probabilities."""
        self._start = start
        self._likely = _LIKELY if probabilities else float("inf")
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
        return self._grown(scope).left(self._start)

    def exhausted(self, scopes: Sequence[str]) -> str | None:
        """Return which of its budgets a document has to wait for; None: it may be fetched.

        It needs a fetch of the innermost one; of those around it too, up to the first that has earned something: what
        was wasted around that does not stop it. No limit may be used up.
        """
        pays = False
        for scope in reversed(scopes):
            account = self._grown(scope)
            if account.is_full(self._start) or (not pays and account.left(self._start) <= 0):
                return scope
            pays = pays or (account.earned > 0 and (scope is not scopes[-1] or is_nested(scopes)))
        return None

    def spend(self, scopes: Sequence[str], *, seed: bool) -> None:
        """Take a fetch from each; ``seed``: it is for what the operator asked for."""
        for scope in scopes:
            spent, earned, vouched, recent, grown, trusted, waiting = self._accounts.get(scope, _NEW)
            self._accounts[scope] = [spent + 1, earned, vouched, recent, grown, trusted or seed, waiting]

    def refund(self, scopes: Sequence[str]) -> None:
        """Give back a fetch that was not made."""
        for scope in scopes:
            spent, *others = self._accounts.get(scope, _NEW)
            self._accounts[scope] = [spent - 1, *others]

    def earn(self, scopes: Sequence[str], key: str, influence: float, beside: Sequence[str] = ()) -> None:
        """Let a page whose text is new earn what it deserves. ``beside``: those scopes of the page that led to it that
        are not its own."""
        good = self._median.is_below(influence) or influence > self._likely
        self._median.add(influence)
        vouched = good and key in self._linked_twice
        for scope in scopes:
            spent, earned, number, recent, grown, trusted, waiting = self._accounts.get(scope, _NEW)
            pay = good * (_PAY_VOUCHED * self._start if vouched or trusted else _PAY)
            texts = with_text(recent, good=good)
            self._accounts[scope] = [spent, earned + pay, number + vouched, texts, grown, trusted, waiting]
        for scope in beside if good else ():
            spent, earned, number, *others = self._accounts.get(scope, _NEW)
            self._accounts[scope] = [spent, earned + _PAY, number + vouched, *others]

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
        waiting = [scope for scope in scopes if self._accounts.get(scope, _NEW)[-1]]
        return [(scope, left) for scope in waiting if (left := self.left(scope)) > 0]

    def _grown(self, scope: str) -> Account:
        """Return an account, whose limit grows first if it may."""
        account = Account(*self._accounts.get(scope, _NEW))
        if account.may_grow(self._start):
            account = account._replace(grown=account.grown + 1)
            self._accounts[scope] = list(account)
        return account


def _is_account(value: Any) -> bool:
    """Return whether a value of the store is an account."""
    return (
        isinstance(value, list)
        and len(value) == len(Account._fields)
        and all(type(number) is int for number in value[:5])
        and 1 <= value[3] < 2 << _RECENT
        and all(type(flag) is bool for flag in value[5:])
    )
