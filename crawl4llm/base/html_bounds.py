"""Bounds on the trees that HTML is parsed to: of a page that would take too much memory only the beginning is read.

Each parser passes here: ten megabytes of ``<p>a`` take 0.6 GB as a tree, and 27 KB of unclosed ``<b>`` 1.4 GB.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice
from typing import Final

MOST_ELEMENTS: Final = 1 << 16
"""Start tags and comments of a page that are read. Of 21,599 real pages none has more than 32,098. This many
``<p>`` take trafilatura 4 s and 130 MB."""
MOST_TAGS: Final = 2 * MOST_ELEMENTS
"""The same with end tags, of which the real pages have 64,185 at most together: ``</p>`` alone makes an element too."""
MOST_ATTRIBUTES: Final = 1 << 18
"""Attributes of a page that are read. The same pages have 201,571 characters at most that could stand before one."""
BEFORE_ATTRIBUTES: Final = b" \t\n\r\f/\"'"
"""One of these stands before each attribute (HTML Standard, 13.2.5.32 to 13.2.5.40)."""
START_TAG = re.compile(rb"<[a-zA-Z][^>=]*(?:=\s*(?:\"[^\"]*\"|'[^']*'|)[^>=]*)*")
ATTRIBUTE = re.compile(rb"(?:=?[^\s/>=]+|=)(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s>]*))?")
_FORMATTING: Final = b"|".join(
    b"".join(b"[%b%b]" % (letter.encode(), letter.upper().encode()) for letter in name)
    for name in ("b", "big", "code", "em", "font", "i", "s", "small", "strike", "strong", "tt", "u")
)
"""Names of formatting elements. To search without regard to case would take five times as long."""
_FORMATTING_START = re.compile(rb"<(?:%b)[\s/>]" % _FORMATTING)
_FORMATTING_TAG = re.compile(
    rb"<(?:(?P<start>(?P<name>%b)(?=[\s/>])[^>]*)|/(?P<end>%b)[\s/>])" % (_FORMATTING, _FORMATTING)
)
_NO_END_TAG = re.compile(rb"<(?!/)")
_NOAHS_ARK: Final = 3
"""The most formatting elements of one kind that a parser reopens (HTML Standard, 13.2.4.3)."""


def bounded(html: bytes) -> bytes:
    """Return as much of a page, from its beginning, as has a tree of bounded size: nearly always all of it."""
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
    """Return the page up to where unclosed formatting elements have made too many: a parser opens them again in each
    paragraph that follows (HTML Standard, 13.2.4.3)."""
    tags = html.count(b"<")
    if tags * tags <= MOST_ELEMENTS or tags * len(_FORMATTING_START.findall(html)) <= MOST_ELEMENTS:
        return html
    unclosed: dict[bytes, Counter[bytes]] = {}
    opened = made = at = 0
    for tag in _FORMATTING_TAG.finditer(html):
        if opened:
            made += opened * html.count(b"<", at, tag.start())
            if made > MOST_ELEMENTS:
                return html[:at]
        at = tag.end()
        if tag["start"]:
            kinds = unclosed.setdefault(tag["name"].lower(), Counter())
            kinds[tag["start"]] += 1
            opened += kinds[tag["start"]] <= _NOAHS_ARK
        else:
            opened -= _close(unclosed.get(tag["end"].lower()))
    return html[:at] if made + opened * html.count(b"<", at) > MOST_ELEMENTS else html


def _close(kinds: Counter[bytes] | None) -> int:
    """Close the last open element of a name; return by how many the reopened elements decrease."""
    if not kinds:
        return 0
    last = next(reversed(kinds))
    kinds[last] -= 1
    fewer = kinds[last] < _NOAHS_ARK
    if not kinds[last]:
        del kinds[last]
    return fewer
