"""Evidence on the URL patterns of an owner: the pages with a pattern, and whether more links to such URLs are followed.

A *pair* is a page with a pattern and the page without it, both crawled. It is for the pattern if the former adds
nothing to the latter, and against it otherwise; one pair against it decides for good. A page whose counterpart is
unknown is *bare* if it is worthless by itself. Otherwise it is a *doubt*, because the counterpart may have the same
content, or not exist.
"""

from __future__ import annotations

import enum
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final

from crawl4llm.base.shapes import LONGEST_LINE, Where, is_of, whole
from crawl4llm.parts.aliases.tables import Row, Table, hashed

CANONICAL, WORTHLESS = "canonical", "worthless"
"""Reasons why links to a pattern are not followed, as in the figures."""
MOST, WINDOW = 1 << 19, 1 << 8
"""Most patterns with evidence, in all and of an owner."""
_VALUES: Final = 5
"""Values that a parameter must have had before it counts as worthless with any value."""
_BASES: Final = 5
"""Pages without it to which the worthless pages must belong."""
_MOST_BASES: Final = 16
_MOST_RULES: Final = 100
"""Most patterns of an owner that are not followed."""
_LONGEST_LIFE: Final = 100


class Kind(enum.Enum):
    """The kinds of evidence that a page gives on a pattern. The values are the fields of :class:`Evidence` that count
    such pages."""

    ALIAS = "aliases"
    """A pair for it: the page is an alias of the other one, which it names as canonical."""
    PAIR = "pairs"
    """Another pair for it."""
    AGAINST = "against"
    """A pair against it."""
    BARE = "bare"
    DOUBT = "doubts"


@dataclass(slots=True)
class Evidence:
    """The evidence on one pattern, in the order of a table's row."""

    number: int
    owner: str
    pattern: str
    aliases: int = 0
    pairs: int = 0
    """Pairs for it, aliases included."""
    against: int = 0
    bare: int = 0
    doubts: int = 0
    values: list[int] = field(default_factory=list)
    """The first values that it had, as numbers; for a pattern of names."""
    bases: list[int] = field(default_factory=list)
    """The first pages without it, as numbers."""
    life: int = 1
    """Other patterns that may claim its place in the table before it is forgotten."""

    @property
    def row(self) -> Row:
        """Its row in a table."""
        counts = self.aliases, self.pairs, self.against, self.bare, self.doubts
        return [self.number, self.owner, self.pattern, *counts, self.values, self.bases, self.life]

    def note(self, kind: Kind, base: int, value: int, change: int = 1) -> None:
        """Count a page, or undo that (``change`` -1)."""
        setattr(self, kind.value, max(getattr(self, kind.value) + change, 0))
        if kind is Kind.ALIAS:
            self.pairs += change
        if change < 0:
            return
        self.life = min(self.life + 1, _LONGEST_LIFE)
        if len(self.values) < _VALUES and value not in self.values:
            self.values.append(value)
        if kind in _FOR and len(self.bases) < _MOST_BASES and base not in self.bases:
            self.bases.append(base)

    def verdict(self, alias_pairs: int, worthless_pages: int) -> str | None:
        """Return CANONICAL or WORTHLESS if links to the pattern are not followed; None if they are. The arguments are
        the settings; 0 switches a reason off."""
        is_of_names = self.pattern.startswith("?") and "=" not in self.pattern
        if self.against or (is_of_names and len(self.values) < _VALUES):
            return None
        stands_alone = 2 * self.doubts > self.pairs
        if 0 < alias_pairs <= self.aliases and not stands_alone:
            return CANONICAL
        if not worthless_pages or len(self.bases) < _BASES:
            return None
        if self.pairs >= worthless_pages and not stands_alone:
            return WORTHLESS
        # A parameter that tells the pages of a site apart comes with few others, so that few pages are without it.
        is_bare = not self.doubts and 2 * len(self.bases) >= min(worthless_pages, 2 * _MOST_BASES)
        return WORTHLESS if is_bare and self.pairs + self.bare >= worthless_pages else None


_FOR: Final = {Kind.ALIAS, Kind.PAIR, Kind.BARE}
_COUNT: Final = whole()
_LINE: Final = Where({str}, lambda text: len(text) <= LONGEST_LINE)
_ROW: Final = (_COUNT, _LINE, _LINE, *[_COUNT] * 5, [_COUNT], [_COUNT], _COUNT)
_RULES: Final = {...: {CANONICAL, WORTHLESS}}


def _evidence(row: Row) -> Evidence:
    """Return the evidence of a row, with its own lists, because rows change by assignment."""
    *fields, values, bases, life = row
    return Evidence(*[*fields, [*values], [*bases], life])


class Patterns:
    """The evidence on all patterns, and the patterns of each owner that are not followed."""

    def __init__(self, alias_pairs: int, worthless_pages: int) -> None:
        """The arguments are the settings of the same names."""
        self._thresholds = alias_pairs, worthless_pages
        self.learnt = self.ended = 0
        """Patterns that were judged worthless, and those whose judgement turned out to be wrong, since the last
        reading."""
        self._keep({}, {})

    def keep_in(self, pieces: Any) -> None:
        """Restore the evidence from pieces (:class:`crawl4llm.policies.Pieces`), and keep it there. Raises
        StoreError."""
        self._keep(pieces.mapping("aliases/evidence", is_of(_ROW)), pieces.mapping("aliases/rules", is_of(_RULES)))

    def _keep(self, rows: MutableMapping[str, Any], rules: MutableMapping[str, Any]) -> None:
        self._table, self._rules = Table(rows, MOST, WINDOW), rules

    def rules_of(self, owner: str) -> dict[str, str]:
        """Return the patterns of an owner that are not followed, with CANONICAL or WORTHLESS."""
        rules: dict[str, str] = self._rules.get(owner) or {}
        return rules

    def is_known(self, owner: str, pattern: str) -> bool:
        """Return whether there is evidence on a pattern."""
        return self._table.get(owner, hashed(owner, pattern)) is not None

    def note(self, owner: str, pattern: str, kind: Kind, base: int, value: int, change: int = 1) -> None:
        """Count a page with a pattern; ``change`` -1 undoes that. ``base``: the page without it. ``value``: the text of
        the page's URL in its place."""
        evidence = self._evidence(owner, pattern)
        if evidence is None:
            if change < 0 or not self._makes_room(owner, pattern):
                return
            evidence = Evidence(hashed(owner, pattern), owner, pattern, life=0)
        evidence.note(kind, base, value, change)
        self._table.put(owner, evidence.row)
        self._apply(evidence)

    def _evidence(self, owner: str, pattern: str) -> Evidence | None:
        row = self._table.get(owner, hashed(owner, pattern))
        return _evidence(row) if row is not None else None

    def _makes_room(self, owner: str, pattern: str) -> bool:
        """Return whether a pattern may take its place: each claim to the place of another pattern shortens the other's
        life."""
        place = self._table.place(owner, hashed(owner, pattern))
        if (row := self._table.at(place)) is None:
            return True
        holder = _evidence(row)
        holder.life -= 1
        if holder.life > 0:
            self._table.put(holder.owner, holder.row)
            return False
        self._rule(holder.owner, holder.pattern, None)
        return True

    def _apply(self, evidence: Evidence) -> None:
        verdict, rules = evidence.verdict(*self._thresholds), self.rules_of(evidence.owner)
        before = rules.get(evidence.pattern)
        if verdict == before or (before is None and len(rules) >= _MOST_RULES):
            return
        if verdict is not None:
            evidence.life = _LONGEST_LIFE
            self._table.put(evidence.owner, evidence.row)
        self.learnt += before is None
        self.ended += verdict is None
        self._rule(evidence.owner, evidence.pattern, verdict)

    def _rule(self, owner: str, pattern: str, verdict: str | None) -> None:
        """Stop or resume following a pattern of an owner, by its verdict."""
        rules = {name: why for name, why in self.rules_of(owner).items() if name != pattern}
        if verdict is not None:
            rules[pattern] = verdict
        if rules:
            self._rules[owner] = dict(sorted(rules.items()))
        else:
            self._rules.pop(owner, None)
