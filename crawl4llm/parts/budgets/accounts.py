"""Budgets: the fetches that owners and URL prefixes have left, and how they earn more.

The URL of a document determines its budgets (:func:`crawl4llm.parts.budgets.scopes.scopes_of`). Each starts with
URL_BUDGET fetches (10). A page whose text is new is *good* if its influence score is above the running median of new
texts; if scores are probabilities, a score above 0.5 is enough. A good page earns

- two fetches for each of its budgets, and for those budgets of the page that led to it that are not its own;
- three times URL_BUDGET fetches for its budgets that are *trusted*: those of a seed, and those of documents of which a
  page elsewhere lists five or more at once. It earns as much for all of its budgets if a second page links to it.

A budget may spend three times URL_BUDGET, or any number if it is trusted or has four good pages with a second link. A
limit that is reached grows by URL_BUDGET if half of the last ten new texts are good, three times at most.

Endless mazes can make pages that the scorer likes, and links. But their addresses are always new, so hardly any page
has a second link. Sites of people link to their own pages again.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping, Sequence
from typing import Any, Final, NamedTuple

from crawl4llm.parts.budgets.linked_twice import LinkedTwice
from crawl4llm.parts.budgets.running_median import RunningMedian
from crawl4llm.parts.budgets.scopes import is_nested
from crawl4llm.policies import Pieces

_PAY: Final = 2
"""Fetches that a good page earns; if half of the pages are good, a budget keeps its size."""
_PAY_VOUCHED: Final = 3
"""Multiple of the start that a page with a second link or in a trusted budget earns."""
_MOST_UNPROVEN: Final = 3
"""Multiple of the start that a budget may spend before its pages have enough second links."""
_MOST_GROWN: Final = 3
"""Most times that this limit grows by the start."""
_RECENT: Final = 10
"""Number of last new texts of which half must be good for that."""
_PROVEN: Final = 4
"""Number of good pages with a second link from which on a budget has no limit."""
LISTED: Final = 5
"""New documents of one owner or prefix on a page elsewhere that make the page a list of them."""
_LIKELY: Final = 0.5
"""Least probability at which a page is always good."""


class Account(NamedTuple):
    """One budget, in JSON values."""

    spent: int = 0
    earned: int = 0
    vouched: int = 0
    """Pages that earned, and to which two others link."""
    recent: int = 1
    """The last ten new texts, a bit each, 1 if it was good; the bit before them is 1."""
    grown: int = 0
    """Times that the limit of an unproven budget grew."""
    trusted: bool = False
    """True if the operator, or a list elsewhere, leads there."""
    waiting: bool = False
    """True if documents may be set aside for lack of it."""

    def limit(self, start: int) -> int | None:
        """Return how many fetches it may have in all; None: any number."""
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
    """The accounts of owners and URL prefixes. A document is fetched if all of its accounts have fetches left."""

    def __init__(self, start: int, *, probabilities: bool = False) -> None:
        """``probabilities``: whether influence scores are probabilities."""
        self._start = start
        self._likely = _LIKELY if probabilities else float("inf")
        self._accounts: MutableMapping[str, Any] = {}
        self._linked_twice = LinkedTwice()
        self._median = RunningMedian()

    def keep_in(self, pieces: Pieces) -> None:
        """Restore the accounts from ``pieces``, and keep them there. Raises StoreError."""
        self._accounts = pieces.mapping("budgets/accounts", _is_account)
        self._linked_twice.keep_in(pieces)

    def save(self) -> list[list[int]]:
        """Write changes to the pieces; return the rest of its state in JSON values."""
        self._linked_twice.save()
        return self._median.save()

    def load(self, state: Sequence[Sequence[int]]) -> None:
        """Restore the state that :meth:`save` returned."""
        self._median.load(state)

    def left(self, scope: str) -> int:
        """Return the fetches that an owner or prefix has left; 0 or less: none."""
        return self._grown(scope).left(self._start)

    def exhausted(self, scopes: Sequence[str]) -> str | None:
        """Return the budget for which a document has to wait; None if it may be fetched.

        It needs a fetch of the innermost budget, and of those around it up to the first that has earned something;
        waste outside of that does not stop it. No limit may be used up.
        """
        pays = False
        for scope in reversed(scopes):
            account = self._grown(scope)
            if account.is_full(self._start) or (not pays and account.left(self._start) <= 0):
                return scope
            pays = pays or (account.earned > 0 and (scope is not scopes[-1] or is_nested(scopes)))
        return None

    def spend(self, scopes: Sequence[str], *, seed: bool) -> None:
        """Take a fetch from each; ``seed``: for a document that the operator asked for."""
        for scope in scopes:
            spent, earned, vouched, recent, grown, trusted, waiting = self._accounts.get(scope, _NEW)
            self._accounts[scope] = [spent + 1, earned, vouched, recent, grown, trusted or seed, waiting]

    def refund(self, scopes: Sequence[str]) -> None:
        """Give back a fetch that was not made."""
        for scope in scopes:
            spent, *others = self._accounts.get(scope, _NEW)
            self._accounts[scope] = [spent - 1, *others]

    def earn(self, scopes: Sequence[str], key: str, influence: float, beside: Sequence[str] = ()) -> None:
        """Credit a page with a new text. ``beside``: those scopes of the page that led to it that are not its own."""
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
        """Note those documents to which a page links and to which others have linked before."""
        self._linked_twice.add(keys)

    def trust(self, scope: str) -> None:
        """Mark an owner or prefix as trusted."""
        *others, trusted, waiting = self._accounts.get(scope, _NEW)
        if not trusted:
            self._accounts[scope] = [*others, True, waiting]

    def wait(self, scope: str, *, waiting: bool) -> None:
        """Note whether documents are set aside for lack of a budget."""
        *others, before = self._accounts.get(scope, _NEW)
        if before != waiting:
            self._accounts[scope] = [*others, waiting]

    def for_waiting(self, scopes: Sequence[str]) -> list[tuple[str, int]]:
        """Return those owners and prefixes whose waiting documents can now be fetched, with their fetches left."""
        waiting = [scope for scope in scopes if self._accounts.get(scope, _NEW)[-1]]
        return [(scope, left) for scope in waiting if (left := self.left(scope)) > 0]

    def _grown(self, scope: str) -> Account:
        """Return an account, after its limit has grown if it may."""
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
