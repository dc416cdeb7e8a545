"""The crawled pages of each owner, and those that are the same page at another URL.

A page and its counterpart without a pattern may come in any order. The first one waits for the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from crawl4llm.base.shapes import FLAG, LONGEST_LINE, Where, is_of, whole
from crawl4llm.parts.aliases.evidence import Kind, Patterns
from crawl4llm.parts.aliases.patterns import Removal, SplitUrl, holds, removals, split_url
from crawl4llm.parts.aliases.tables import Table, hashed
from crawl4llm.parts.part import Rated
from crawl4llm.policies import Pieces
from crawl4llm.scoring import SIGNATURE, are_alike

MOST, WINDOW = 1 << 19, 1 << 12
"""Most known pages, in all and of an owner."""
MOST_AWAITED, AWAITED_WINDOW = 1 << 17, 1 << 10
"""Most pages for which others wait, in all and of an owner."""
_MOST_WAITING: Final = 8
"""Most pages that wait for one page."""


class Facts(NamedTuple):
    """The facts about a crawled page."""

    first: int
    second: int
    """The bits of its text's signature (:mod:`crawl4llm.scoring.signatures`)."""
    is_empty: bool
    """True if it has no text."""
    noindex: bool
    follows: bool
    """True if its links may be followed."""
    is_repeated: bool
    """True if its text is a near duplicate of an earlier page's."""
    canonical: str
    """The form of the canonical URL that it names, if that is not its own; otherwise empty."""

    @property
    def is_worthless(self) -> bool:
        """True if only its links are of use."""
        return self.is_empty or self.noindex

    def is_like(self, other: Facts) -> bool:
        """Return whether its text is a near duplicate of another page's."""
        return are_alike(self.first, self.second, other.first, other.second)


def facts_of(page: Rated, url: SplitUrl) -> Facts:
    """Return the facts about a page that has a text, asks not to be indexed, or has no text."""
    first, second = SIGNATURE.unpack(page.signature)[:2] if page.signature else (0, 0)
    named = split_url(page.head.canonical) if page.head is not None else None
    canonical = named.form if named is not None and named.form != url.form else ""
    repeated = page.novel is False
    return Facts(first, second, not page.signature, page.noindex, page.follows, repeated, canonical)


def alone(page: Facts, removal: Removal) -> Kind | None:
    """Return the evidence of a page with an unknown counterpart; None without evidence."""
    if page.canonical == removal.form:
        return None
    if page.is_worthless or page.is_repeated:
        brings_links = page.follows and not page.is_repeated
        return None if brings_links or not removal.in_query else Kind.BARE
    return Kind.DOUBT


def together(page: Facts, other: Facts, form: str) -> Kind | None:
    """Return the evidence of a page beside the page without a pattern, whose form is given. None without evidence,
    because the latter is worthless itself, or both are near duplicates of a third page."""
    if other.is_worthless:
        return None
    if page.is_empty or not page.is_like(other):
        return Kind.PAIR if page.is_worthless else Kind.AGAINST
    if page.is_repeated and other.is_repeated:
        return None
    return Kind.ALIAS if page.canonical == form and not other.canonical else Kind.PAIR


class _Waiting(NamedTuple):
    """A page that waits for the one without a pattern, in JSON values."""

    facts: list[Any]
    removal: list[Any]
    said: str
    """The :class:`Kind` that it was counted as meanwhile; empty for none."""
    noted: list[str]
    """The patterns for which it was counted."""


_BITS: Final = whole(0, (1 << 64) - 1)
_FORM: Final = Where({str}, lambda text: len(text) <= LONGEST_LINE)
_FACTS: Final = (_BITS, _BITS, *[FLAG] * 4, _FORM)
_ROW: Final = (whole(), _FACTS)
_KINDS: Final = {"", Kind.BARE.value, Kind.DOUBT.value}
_REMOVAL: Final = (_FORM, _FORM, _FORM, whole(), FLAG)
_WAITING: Final = Where((_FACTS, _REMOVAL, _KINDS, [_FORM]), lambda row: row[2] or not row[3])
_AWAITED: Final = (whole(), [_WAITING])


class Pages:
    """The last pages of owners, and those that wait for others."""

    def __init__(self, patterns: Patterns) -> None:
        """``patterns`` receive the evidence of pages."""
        self._patterns = patterns
        self._known, self._awaited = Table({}, MOST, WINDOW), Table({}, MOST_AWAITED, AWAITED_WINDOW)

    def keep_in(self, pieces: Pieces) -> None:
        """Restore them from pieces, and keep them there. Raises StoreError."""
        self._known = Table(pieces.mapping("aliases/pages", is_of(_ROW)), MOST, WINDOW)
        awaited = pieces.mapping("aliases/awaited", is_of(_AWAITED))
        self._awaited = Table(awaited, MOST_AWAITED, AWAITED_WINDOW)

    def add(self, owner: str, url: SplitUrl, page: Facts) -> int:
        """Add a crawled page; return how many aliases were found: the page itself, and those that waited for it."""
        form = url.form
        number = hashed(form)
        found = [self._judge(owner, removal, page) for removal in removals(url)]
        for waiting in self._waiting_for(owner, number):
            other = Facts(*waiting.facts)
            kind = self._settle(owner, waiting, page)
            if kind in {Kind.PAIR, Kind.ALIAS} and not other.is_repeated and not other.is_worthless:
                page = page._replace(is_repeated=False)  # its text came first with its own alias
            found.append(kind)
        self._known.put(owner, [number, list(page)])
        return found.count(Kind.ALIAS)

    def led(self, owner: str, url: SplitUrl, found: Iterable[str]) -> None:
        """Note the URLs of documents that were first found on a crawled page. A worthless page becomes a doubt if it
        leads where its pattern does not, because lists of a site's pages often ask not to be indexed."""
        row = self._known.get(owner, hashed(url.form))
        if row is None or not Facts(*row[1]).is_worthless:
            return
        words = [split.words for split in map(split_url, found) if split is not None]
        for removal in removals(url):
            base = self._known.get(owner, hashed(removal.form))
            if base is None or Facts(*base[1]).is_worthless:
                continue
            for pattern in self._noted(owner, removal, Kind.DOUBT):
                if not all(holds(pattern, one) for one in words):
                    self._patterns.note(owner, pattern, Kind.DOUBT, base[0], removal.value)

    def _judge(self, owner: str, removal: Removal, page: Facts) -> Kind | None:
        """Count the evidence of a page on a pattern, now or when the page without it comes."""
        base = hashed(removal.form)
        row = self._known.get(owner, base)
        other = Facts(*row[1]) if row is not None else None
        if other is None or other.is_worthless:
            kind = alone(page, removal)
        elif (kind := together(page, other, removal.form)) is None:
            return None
        noted = self._note(owner, removal, kind)
        if other is None and (noted or removal.in_query or page.canonical == removal.form):
            said = "" if kind is None else kind.value
            self._wait(owner, base, _Waiting(list(page), list(removal), said, noted))
        return kind

    def _note(self, owner: str, removal: Removal, kind: Kind | None) -> list[str]:
        """Count the evidence of a page; return the patterns for which it is counted."""
        if kind is None:
            return []
        noted = self._noted(owner, removal, kind)
        for pattern in noted:
            self._patterns.note(owner, pattern, kind, hashed(removal.form), removal.value)
        return noted

    def _noted(self, owner: str, removal: Removal, kind: Kind) -> list[str]:
        """Return the patterns for which the evidence of a page is kept. Most segments and values occur in one URL only;
        evidence against these is kept only if there is evidence for them."""
        patterns = [pattern for pattern in (removal.by_name, removal.by_value) if pattern]
        if kind not in {Kind.AGAINST, Kind.DOUBT}:
            return patterns
        is_shared = removal.in_query or (kind is Kind.AGAINST and not removal.is_last)
        return [
            one for one in patterns if (one == removal.by_name and is_shared) or self._patterns.is_known(owner, one)
        ]

    def _wait(self, owner: str, base: int, waiting: _Waiting) -> None:
        row = self._awaited.get(owner, base) or [base, []]
        if len(row[1]) < _MOST_WAITING:
            self._awaited.put(owner, [base, [*row[1], list(waiting)]])

    def _waiting_for(self, owner: str, number: int) -> Iterator[_Waiting]:
        """Yield the pages that waited for a page, and end their wait."""
        row = self._awaited.get(owner, number)
        self._awaited.drop(owner, number)
        for waiting in row[1] if row is not None else ():
            yield _Waiting(*waiting)

    def _settle(self, owner: str, waiting: _Waiting, page: Facts) -> Kind | None:
        """Replace the evidence of a page that waited by that of the pair, now that its counterpart has come."""
        removal = Removal(*waiting.removal)
        kind = together(Facts(*waiting.facts), page, removal.form)
        if kind is None and page.is_worthless:
            return None
        for pattern in waiting.noted:
            self._patterns.note(owner, pattern, Kind(waiting.said), hashed(removal.form), removal.value, -1)
        self._note(owner, removal, kind)
        return kind
