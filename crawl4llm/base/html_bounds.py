"""Bounds on the trees of HTML pages: only the beginning of a page that would take too much memory is parsed.

All parsers use it: ten megabytes of ``<p>a`` take 0.6 GB as a tree, and 27 KB of unclosed ``<b>`` 1.4 GB.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from functools import lru_cache
from itertools import islice
from typing import Final

MOST_ELEMENTS: Final = 1 << 16
"""Start tags and comments of a page that are read. Of 21,599 real pages none has more than 32,098. This many
``<p>`` take trafilatura 4 s and 130 MB."""
MOST_TAGS: Final = 2 * MOST_ELEMENTS
"""The same with end tags, because ``</p>`` alone makes an element too. The real pages have 64,185 at most."""
MOST_ATTRIBUTES: Final = 1 << 18
"""Attributes of a page that are read. The same pages have 201,571 characters at most that could stand before one."""
BEFORE_ATTRIBUTES: Final = b" \t\n\r\f/\"'"
"""One of these stands before each attribute (HTML Standard, 13.2.5.32 to 13.2.5.40)."""
START_TAG = re.compile(rb"<[a-zA-Z][^>=]*(?:=\s*(?:\"[^\"]*\"|'[^']*'|)[^>=]*)*")
ATTRIBUTE = re.compile(rb"(?:=?[^\s/>=]+|=)(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s>]*))?")
MOST_REOPENED: Final = 2 * MOST_ELEMENTS
"""Most formatting elements that a page's tags reopen. Of the same pages none has more than 88,777."""
_NOAHS_ARK: Final = 3
"""The most formatting elements of one kind that a parser reopens (HTML Standard, 13.2.4.3)."""
_FORMATTING: Final = rb"(?:[bisu]|tt|em|big|font|code|small|strong|strike)"
"""Names of formatting elements, in lower case, because a search without regard to case takes five times as long. A page
has one open ``a`` and one ``nobr`` at most."""
_PLAIN: Final = rb"(?:\s+[\w:-]+(?:=(?:\"[^\"<>]*\"|'[^'<>]*'|[^\s\"'<>=`]+))?)*\s*"
"""The attributes of a tag that ends at the next ``>`` for every parser."""
_START = re.compile(rb"<%b[\s/>]" % _FORMATTING)
_PLAIN_START = re.compile(rb"<(?P<kind>(?P<name>%b)%b)>(?P<end>[^<]*</(?P=name)\s*>)?" % (_FORMATTING, _PLAIN))
_TAG = re.compile(
    rb"<(?:(?P<kind>(?P<start>%b)%b)>|/(?P<end>%b)\s*>|(?P<odd>%b[\s/>])"
    rb"|(?P<inline>/?(?:a|abbr|br|cite|img|label|q|span|sub|sup|wbr)%b/?>))?"
    % (_FORMATTING, _PLAIN, _FORMATTING, _FORMATTING, _PLAIN)
)
_NO_END_TAG = re.compile(rb"<(?!/)")


@lru_cache(maxsize=1)  # text and links of a page are read one after the other
def bounded(html: bytes) -> bytes:
    """Return the beginning of a page that has a tree of bounded size; nearly always this is the whole page."""
    return _cut_at_formatting(_cut_at_attributes(_cut_at_elements(html)))


def _cut_at_elements(html: bytes) -> bytes:
    tags = html.count(b"<")
    if tags > MOST_TAGS:
        rest = html.split(b"<", MOST_TAGS + 1)[-1]
        html = html[: len(html) - len(rest) - 1]
    if tags > MOST_ELEMENTS and html.count(b"<") - html.count(b"</") > MOST_ELEMENTS:
        html = html[: next(islice(_NO_END_TAG.finditer(html), MOST_ELEMENTS, None)).start()]
    return html


def _cut_at_attributes(html: bytes) -> bytes:
    if len(html) < MOST_ATTRIBUTES or len(html) - len(html.translate(None, BEFORE_ATTRIBUTES)) <= MOST_ATTRIBUTES:
        return html
    found = 0
    for tag in START_TAG.finditer(html):
        found += sum(1 for _ in ATTRIBUTE.finditer(html, *tag.span())) - 1  # the first is the name
        if found > MOST_ATTRIBUTES:
            return html[: tag.start()]
    return html


def _cut_at_formatting(html: bytes) -> bytes:
    """Cut a page where unclosed formatting elements are too many, because a parser reopens them after each tag that
    closes an element around them (HTML Standard, 13.2.4.3)."""
    tags = html.count(b"<")
    if tags * tags <= MOST_REOPENED:
        return html
    lower = html.lower()
    starts = len(_START.findall(lower))
    if tags * starts <= MOST_REOPENED or tags * _most_open(html, lower, starts) <= MOST_REOPENED:
        return html
    return _cut_at_reopened(html, lower)


def _most_open(html: bytes, lower: bytes, starts: int) -> int:
    """Return an upper bound of the number of formatting elements that are unclosed at any place. ``starts``: their
    start tags.

    An end tag counts only if nothing but text precedes it; others may stand in a script or an attribute's value.
    """
    kinds: Counter[bytes] = Counter()
    closed = 0
    for tag in _PLAIN_START.finditer(lower):
        if tag["end"]:
            closed += 1
        else:
            kinds[html[slice(*tag.span("kind"))]] += 1
    alike = sum(number - _NOAHS_ARK for number in kinds.values() if number > _NOAHS_ARK)
    return starts - closed - alike


def _cut_at_reopened(html: bytes, lower: bytes) -> bytes:
    """Cut as :func:`_cut_at_formatting` does, but tag by tag.

    An end tag counts only if nothing but text and plain inline tags stand between it and the start tag.
    """
    kinds: Counter[bytes] = Counter()
    closable: defaultdict[bytes, list[bytes]] = defaultdict(list)
    unclosed = reopened = 0
    for tag in _TAG.finditer(lower):
        reopened += unclosed
        if reopened > MOST_REOPENED:
            return html[: tag.start()]
        if name := tag["start"]:
            kind = html[slice(*tag.span("kind"))]
            closable[name].append(kind)
            kinds[kind] += 1
            unclosed += kinds[kind] <= _NOAHS_ARK
        elif (name := tag["end"]) and closable[name]:
            kind = closable[name].pop()
            kinds[kind] -= 1
            unclosed -= kinds[kind] < _NOAHS_ARK
        elif not (tag["inline"] or tag["end"]):
            closable.clear()
            unclosed += tag["odd"] is not None
    return html
