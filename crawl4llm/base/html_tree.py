"""The tree of an HTML page, of bounded size, and its links; a page is parsed once for links and signals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode

from crawl4llm.base.html_bounds import ATTRIBUTE, BEFORE_ATTRIBUTES, START_TAG, bounded
from crawl4llm.base.urls import BaseUrl, normalise_url

_PARSER_OPTIONS: Final = LexborDocumentOptions.WO_EVENTS.value
"""Without mutation events, which would rewrite ``select`` elements and take four times the time."""
_HARMLESS_TAGS: Final = 10_000
"""Tags whose nesting takes half a second at most, so that it needs no check."""
_DEEPEST: Final = 1000
_HARMLESS_ATTRIBUTES: Final = 20_000
"""Attributes of one element that take half a second, because the parser compares each with all before it."""
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
"""A tag that begins or ends an element that may hold others; also elements that hold no tags, which are skipped."""


class HtmlTree:
    """The tree of a page given in UTF-8, cut by :func:`crawl4llm.base.html_bounds.bounded`.

    A page ends before the first element inside 1,000 others, and before one with more than 20,000 attributes.
    """

    def __init__(self, html: bytes) -> None:
        html = bounded(html)
        self.length = len(html)
        """Bytes of the page that are read."""
        self._tree = LexborHTMLParser(_cut_at_attributes(_cut_at_depth(html)), options=_PARSER_OPTIONS)
        self._texts: dict[int, str] = {}

    def css(self, selectors: str) -> list[LexborNode]:
        """Return the elements that selectors find, in page order, without those in a ``template``. Each search
        traverses the whole tree."""
        return self._tree.css(selectors)

    @cached_property
    def references(self) -> list[tuple[str, LexborNode]]:
        """The elements that refer to others or tell of the page, which one search finds, with their tags: links,
        ``base``, ``meta``, scripts, styles, images and forms."""
        return [(node.tag or "", node) for node in self.css(_REFERENCES)]

    def text_of(self, node: LexborNode) -> str:
        """Return the text of an element, which is kept unless it is long."""
        if (known := self._texts.get(node.mem_id)) is not None:
            return known
        text = node.text()
        if len(text) <= _LONGEST_ANCHOR:
            self._texts[node.mem_id] = text
        return text

    @property
    def head(self) -> LexborNode | None:
        """The element ``head``."""
        return self._tree.head

    @property
    def body(self) -> LexborNode | None:
        """The element ``body``."""
        return self._tree.body


def _cut_at_depth(html: bytes) -> bytes:
    """Cut a page where elements are nested too deeply, because parsing takes time quadratic in the depth."""
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
    """Cut a page at an element with too many attributes, because parsing takes time quadratic in their number."""
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


# -- links ------------------------------------------------------------------------------------------------------------

_REFERENCES: Final = "a[href], area[href], meta[content], base[href], script[src], link[href], img[src], form[action]"
_LINKS: Final = {"a", "area"}
_IN_BOILERPLATE: Final = ", ".join(f"{part} {link}" for part in ("header", "footer", "nav") for link in ("a", "area"))

_REFRESH = re.compile(
    r"""\s*[\d.]+\s*[;,\s]\s*(?:url\s*=\s*)?(?:"([^"]*).*|'([^']*).*|(.*))""", re.IGNORECASE | re.DOTALL
)

_FOREIGN: Final = {"svg", "math"}
_HTML_WITHIN: Final = {"foreignObject", "foreignobject", "desc", "title", "annotation-xml"}
"""Foreign elements that may hold HTML."""
_MOST_LINKS: Final = 10_000
"""Most links of a page that are read, in 0.2 s: twice as many as any of 21,599 real pages has."""
_MOST_BASES: Final = 100
"""Elements ``base`` among which the first of HTML is searched."""
_LONGEST_REFERENCE: Final = 8192
"""Most characters of a reference, and of a ``base``, which each relative link repeats."""
_LONGEST_ANCHOR: Final = 1000
_HARMLESS_TEXT: Final = 32 << 20
"""Most bytes searched for the texts of links: of nested links each may contain the whole rest of the page."""


class HtmlLink(NamedTuple):
    """A link as it stands in the page."""

    url: str
    """Absolute, and normalised by :func:`crawl4llm.base.urls.normalise_url`."""
    anchor: str
    """The link's text, or an ``area``'s ``alt``, on one line, at most 1,000 characters; empty for a meta refresh."""
    boilerplate: bool
    """True inside ``header``, ``footer`` and ``nav``."""
    rel: str = ""
    """Those of RELATIONS that all links of the page to this target have, in the order of RELATIONS, divided by
    blanks."""
    language: str = ""
    """The language of the target by its first ``hreflang``, in lower case."""


RELATIONS: Final = ("nofollow", "ugc", "sponsored")
"""Link types that say why a link is not followed (HTML Standard, 4.6.7.11; Google's two since 2019)."""
_LONGEST_REL: Final = 1000
_LONGEST_LANGUAGE: Final = 35
"""Characters of a language tag (RFC 5646, 4.4.1)."""


FoundLink: TypeAlias = tuple[str | None, str, bool, str, str]
"""A link before it is resolved: its reference (None if it is not a link), and the other fields of a HtmlLink, with the
raw text."""


def html_links(page: HtmlTree, url: str, charset: str = "utf-8") -> list[HtmlLink]:
    """Return the links of a page, as :func:`distinct_links` gives them. ``charset``: the one in which it came.

    Links come from ``a`` and ``area`` elements, including ``xlink:href`` in ``svg`` and ``math``, and from a meta
    refresh; they are resolved against ``base``. Links after the 10,000th and references of more than 8,192 characters
    are left out. If many links are nested, the later ones have no text.
    """
    bases = islice((node for tag, node in page.references if tag == "base"), _MOST_BASES)
    base = next((node for node in bases if not _is_foreign(node)), None)
    found = [one for one in page.references if one[0] in _LINKS or _is_field(*one)][:_MOST_LINKS]
    boilerplate = {node.mem_id for node in page.css(_IN_BOILERPLATE)}
    silent = _silent(page, len(found))
    links = (_found(page, tag, node, silent, node.mem_id in boilerplate) for tag, node in found)
    return distinct_links(links, url, _href(base.attributes) if base else None, charset)


def link_texts(page: HtmlTree) -> frozenset[str]:
    """Return the texts of the links that :func:`html_links` reads, including links within the page, as in
    :attr:`HtmlLink.anchor`."""
    nodes = [node for tag, node in page.references if tag == "a"][:_MOST_LINKS]
    silent = _silent(page, len(nodes))
    texts = (_one_line(page.text_of(node)) for node in nodes if node.mem_id not in silent)
    return frozenset(filter(None, texts))


def distinct_links(links: Iterable[FoundLink], url: str, base: str | None, charset: str = "utf-8") -> list[HtmlLink]:
    """Return links to http and https without their fragments, in page order, one for each target.

    Of several links to a target, the first with a text counts. Links of the page to itself are left out. Queries are
    encoded in ``charset``, the page's.
    """
    page = BaseUrl(url, charset)
    start = page.resolve(base) if base and len(base) <= _LONGEST_REFERENCE else None
    resolve = (BaseUrl(start, charset) if start else page).resolve
    found: dict[str, HtmlLink] = {}
    for reference, text, boilerplate, rel, language in links:
        if reference is None or len(reference) > _LONGEST_REFERENCE or (target := resolve(reference)) is None:
            continue
        before = found.get(target)
        if before is None:
            found[target] = HtmlLink(target, _one_line(text), boilerplate, rel, language)
            continue
        if before.rel or language:
            both = " ".join(one for one in before.rel.split() if one in rel.split())
            before = found[target] = before._replace(rel=both, language=before.language or language)
        if text and not before.anchor:
            found[target] = before._replace(anchor=_one_line(text), boilerplate=boilerplate)
    found.pop(normalise_url(url), None)
    return list(found.values())


def _one_line(text: str) -> str:
    return " ".join(text.split())[:_LONGEST_ANCHOR]


def refresh_target(content: str) -> str | None:
    """Return the URL in the content of a meta refresh (HTML Standard, 4.2.5.3), if there is one."""
    refresh = _REFRESH.fullmatch(content) if len(content) <= _LONGEST_REFERENCE else None
    return next(filter(None, refresh.groups()), None) if refresh else None


def _is_field(tag: str, node: LexborNode) -> bool:
    """Return whether an element is a ``meta`` that stands for a field of the response."""
    return tag == "meta" and "http-equiv" in node.attributes


def _silent(page: HtmlTree, links: int) -> set[int]:
    """Return the links whose text is not read, because each ``a`` in an ``a`` may contain the whole rest of the page,
    as in ``svg``."""
    if links * page.length < _HARMLESS_TEXT:
        return set()
    return {node.mem_id for node in page.css("a a")[_HARMLESS_TEXT // page.length :]}


def _is_foreign(node: LexborNode) -> bool:
    """Return whether an element is part of ``svg`` or ``math`` (HTML Standard, 13.2.6.5), and not of HTML inside
    them."""
    while (parent := node.parent) is not None:
        if parent.tag in _HTML_WITHIN:
            return False
        if parent.tag in _FOREIGN:
            return True
        node = parent
    return False


def _found(page: HtmlTree, tag: str, node: LexborNode, silent: set[int], is_boilerplate: bool) -> FoundLink:
    """Return the link of an element; ``silent``: those whose text is not read."""
    attributes = node.attributes
    if tag == "meta":
        is_refresh = (attributes.get("http-equiv") or "").strip().lower() == "refresh"
        return refresh_target(attributes.get("content") or "") if is_refresh else None, "", is_boilerplate, "", ""
    if silent and node.mem_id in silent:
        text = ""
    else:
        text = (attributes.get("alt") or "") if tag == "area" else page.text_of(node)
    rel, language = attributes.get("rel"), attributes.get("hreflang")
    if rel:
        rel = relations(rel)
    if language:
        language = language.strip().lower()[:_LONGEST_LANGUAGE]
    return _href(attributes), text, is_boilerplate, rel or "", language or ""


def relations(rel: str) -> str:
    """Return those of RELATIONS that an attribute ``rel`` has, divided by blanks."""
    rel = rel[:_LONGEST_REL].lower()
    if "o" not in rel and "ugc" not in rel:  # neither nofollow nor sponsored
        return ""
    words = rel.split()
    return " ".join(one for one in RELATIONS if one in words)


def _href(attributes: Mapping[str, str | None]) -> str:
    """Return the reference of an element: its ``href``, or else ``xlink:href`` (SVG 2, 16.1.6), which selectors take
    for one too."""
    return (attributes["href"] if "href" in attributes else attributes.get("xlink:href")) or ""
