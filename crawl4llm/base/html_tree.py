"""The tree of an HTML page, of bounded size: its links and its signals are both read from it, parsed once."""

from __future__ import annotations

import re
from typing import Final

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode

from crawl4llm.base.html_bounds import ATTRIBUTE, BEFORE_ATTRIBUTES, START_TAG, bounded

_PARSER_OPTIONS: Final = LexborDocumentOptions.WO_EVENTS.value
"""Without mutation events, which would rewrite ``select`` elements and take four times the time."""
_HARMLESS_TAGS: Final = 10_000
"""Tags that take half a second at the worst."""
_DEEPEST: Final = 1000
_HARMLESS_ATTRIBUTES: Final = 20_000
"""Attributes of one element that take half a second; the parser compares each with all before it."""
_NOT_NESTING: Final = (
    "area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr"
    "|p|li|dd|dt|tr|td|th|thead|tbody|tfoot|option|optgroup|colgroup|rb|rp|rt|rtc|html|head|body"
)
"""Elements that hold nothing, or that end without an end tag."""
_NESTING_TAG = re.compile(
    rb"<(?:!--.*?(?:-->|\Z)"
    rb"|(?P<raw>script|style|textarea|title|xmp|iframe|noembed|noframes)\b.*?(?:</(?P=raw)|\Z)"
    rb"|(?!(?:%b)\b)(?P<end>/?)(?P<name>[a-z]))" % _NOT_NESTING.encode(),
    re.IGNORECASE | re.DOTALL,
)
"""A tag that begins or ends an element in which others may stand; also what holds no tags, to pass over it."""


class HtmlTree:
    """The tree of a page given in UTF-8, as far as :func:`crawl4llm.base.html_bounds.bounded` lets the page be read.

    A page ends before the element that is inside 1,000 others, and before one with more than 20,000 attributes.
    """

    def __init__(self, html: bytes) -> None:
        html = bounded(html)
        self.length = len(html)
        """Bytes of the page that are read."""
        self._tree = LexborHTMLParser(_cut_at_attributes(_cut_at_depth(html)), options=_PARSER_OPTIONS)

    def css(self, selectors: str) -> list[LexborNode]:
        """Return the elements that selectors find, in page order; none in a ``template``. Each search goes over the
        whole tree."""
        return self._tree.css(selectors)


def _cut_at_depth(html: bytes) -> bytes:
    """Return the page up to where elements are nested too deeply: parsing takes time with the depth squared."""
    if html.count(b"<") < _HARMLESS_TAGS:
        return html
    depth = 0
    for tag in _NESTING_TAG.finditer(html):
        if tag["name"]:
            depth = max(0, depth - 1) if tag["end"] else depth + 1
        if depth > _DEEPEST:
            return html[: tag.start()]
    return html


def _cut_at_attributes(html: bytes) -> bytes:
    """Return the page up to an element with too many attributes: parsing takes time with their number squared."""
    if len(html) < 2 * _HARMLESS_ATTRIBUTES:
        return html
    if len(html) - len(html.translate(None, BEFORE_ATTRIBUTES)) < _HARMLESS_ATTRIBUTES:
        return html
    if max(map(len, START_TAG.findall(html)), default=0) < 2 * _HARMLESS_ATTRIBUTES:
        return html
    for tag in START_TAG.finditer(html):
        if sum(1 for _ in ATTRIBUTE.finditer(html, *tag.span())) > _HARMLESS_ATTRIBUTES:
            return html[: tag.start()]
    return html
