"""Links of an HTML page."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode

from crawl4llm.base.html_bounds import ATTRIBUTE, BEFORE_ATTRIBUTES, START_TAG, bounded
from crawl4llm.base.references import BaseUrl
from crawl4llm.base.urls import normalise_url

_LINKS: Final = "a[href], area[href], meta[http-equiv][content], base[href]"
_IN_BOILERPLATE: Final = ", ".join(f"{part} {link}" for part in ("header", "footer", "nav") for link in ("a", "area"))
_PARSER_OPTIONS: Final = LexborDocumentOptions.WO_EVENTS.value
"""Without mutation events, which would rewrite ``select`` elements and take four times the time."""

_REFRESH = re.compile(
    r"""\s*[\d.]+\s*[;,\s]\s*(?:url\s*=\s*)?(?:"([^"]*).*|'([^']*).*|(.*))""", re.IGNORECASE | re.DOTALL
)

_HARMLESS_TAGS: Final = 10_000
"""Tags that take half a second at the worst."""
_DEEPEST: Final = 1000
_HARMLESS_ATTRIBUTES: Final = 20_000
"""Attributes of one element that take half a second; the parser compares each with all before it."""
_MOST_LINKS: Final = 10_000
"""Links of a page that are read, which takes 0.2 s: twice as many as any of 21,599 real pages has."""
_LONGEST_REFERENCE: Final = 8192
"""Characters of a reference, and of a ``base``, which each relative link repeats."""
_LONGEST_ANCHOR: Final = 1000
_HARMLESS_TEXT: Final = 32 << 20
"""Bytes of a page that may be searched for the texts of its links; of links in links each has all of the rest."""
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


class HtmlLink(NamedTuple):
    """A link as the page has it."""

    url: str
    """Absolute, and normalised as :func:`crawl4llm.base.urls.normalise_url` does."""
    anchor: str
    """The link's text, or an ``area``'s ``alt``, on one line, 1,000 characters at most; empty for a meta refresh."""
    boilerplate: bool
    """True inside ``header``, ``footer`` and ``nav``."""


def html_links(html: bytes, url: str, charset: str = "utf-8") -> list[HtmlLink]:
    """Return the links of a page given in UTF-8, as :func:`distinct_links` gives them. ``charset``: the one in which it
    came.

    Links are those of ``a`` and ``area`` elements and of a meta refresh, resolved against ``base``, as far as
    :func:`crawl4llm.base.html_bounds.bounded` lets the page be read. Of a page with more
    than 1,000 elements inside each other, what comes after the thousandth is left out; of one with more than 10,000
    links, those beyond; of one with an element of more than 20,000 attributes, that and what comes after it. References
    of more than 8,192 characters are none. Where many links stand within links, the later ones have no text.
    """
    html = bounded(html)
    tree = LexborHTMLParser(_cut_at_attributes(_cut_at_depth(html)), options=_PARSER_OPTIONS)
    found = tree.css(_LINKS)  # each search goes over the whole tree
    base = next((node for node in found if node.tag == "base"), None)
    nodes = (found if base is None else [node for node in found if node.tag != "base"])[:_MOST_LINKS]
    boilerplate = {node.mem_id for node in tree.css(_IN_BOILERPLATE)}
    silent = _silent(tree, len(nodes), len(html))
    links = (
        (_reference(node), "" if node.mem_id in silent else _anchor(node), node.mem_id in boilerplate) for node in nodes
    )
    return distinct_links(links, url, base.attributes["href"] if base else None, charset)


def distinct_links(
    links: Iterable[tuple[str | None, str, bool]], url: str, base: str | None, charset: str = "utf-8"
) -> list[HtmlLink]:
    """Return links to http and https without their fragments, in page order, one for each target.

    Each of ``links`` is reference (None for no link), text and boilerplate flag. Of several to one target the first
    that has a text counts. A page's link to itself is none. Queries are encoded in ``charset``, the page's.
    """
    page = BaseUrl(url, charset)
    start = page.resolve(base) if base and len(base) <= _LONGEST_REFERENCE else None
    resolve = (BaseUrl(start, charset) if start else page).resolve
    found: dict[str, HtmlLink] = {}
    for reference, text, boilerplate in links:
        if reference is None or len(reference) > _LONGEST_REFERENCE:
            continue
        target = resolve(reference)
        if target is not None and (target not in found or (text and not found[target].anchor)):
            found[target] = HtmlLink(target, " ".join(text.split())[:_LONGEST_ANCHOR], boilerplate)
    found.pop(normalise_url(url), None)
    return list(found.values())


def refresh_target(content: str) -> str | None:
    """Return the URL in the content of a meta refresh (HTML Standard, 4.2.5.3), if there is one."""
    refresh = _REFRESH.fullmatch(content) if len(content) <= _LONGEST_REFERENCE else None
    return next(filter(None, refresh.groups()), None) if refresh else None


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


def _silent(tree: LexborHTMLParser, links: int, length: int) -> set[int]:
    """Return the links whose text is not read: each ``a`` in an ``a`` may hold all of the page again, as in ``svg``."""
    if links * length < _HARMLESS_TEXT:
        return set()
    return {node.mem_id for node in tree.css("a a")[_HARMLESS_TEXT // length :]}


def _reference(node: LexborNode) -> str | None:
    """Return the reference of an element; None for a ``meta`` that is no refresh."""
    attributes = node.attributes
    if "href" in attributes:
        return attributes["href"] or ""
    if (attributes["http-equiv"] or "").strip().lower() != "refresh":
        return None
    return refresh_target(attributes["content"] or "")


def _anchor(node: LexborNode) -> str:
    return (node.attributes.get("alt") or "") if node.tag == "area" else node.text()
