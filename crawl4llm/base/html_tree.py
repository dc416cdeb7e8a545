"""The tree of an HTML page, of bounded size, and its links: these and its signals are read from it, parsed once."""

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
        self._texts: dict[int, str] = {}

    def css(self, selectors: str) -> list[LexborNode]:
        """Return the elements that selectors find, in page order; none in a ``template``. Each search goes over the
        whole tree."""
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


# -- links ------------------------------------------------------------------------------------------------------------

_REFERENCES: Final = "a[href], area[href], meta[content], base[href], script[src], link[href], img[src], form[action]"
_LINKS: Final = {"a", "area"}
_IN_BOILERPLATE: Final = ", ".join(f"{part} {link}" for part in ("header", "footer", "nav") for link in ("a", "area"))

_REFRESH = re.compile(
    r"""\s*[\d.]+\s*[;,\s]\s*(?:url\s*=\s*)?(?:"([^"]*).*|'([^']*).*|(.*))""", re.IGNORECASE | re.DOTALL
)

_FOREIGN: Final = {"svg", "math"}
_HTML_WITHIN: Final = {"foreignObject", "foreignobject", "desc", "title", "annotation-xml"}
"""Elements of theirs in which HTML may stand."""
_MOST_LINKS: Final = 10_000
"""Links of a page that are read, which takes 0.2 s: twice as many as any of 21,599 real pages has."""
_MOST_BASES: Final = 100
"""Elements ``base`` that are looked at for the first which is of HTML."""
_LONGEST_REFERENCE: Final = 8192
"""Characters of a reference, and of a ``base``, which each relative link repeats."""
_LONGEST_ANCHOR: Final = 1000
_HARMLESS_TEXT: Final = 32 << 20
"""Bytes of a page that may be searched for the texts of its links; of links in links each has all of the rest."""


class HtmlLink(NamedTuple):
    """A link as the page has it."""

    url: str
    """Absolute, and normalised as :func:`crawl4llm.base.urls.normalise_url` does."""
    anchor: str
    """The link's text, or an ``area``'s ``alt``, on one line, 1,000 characters at most; empty for a meta refresh."""
    boilerplate: bool
    """True inside ``header``, ``footer`` and ``nav``."""
    rel: str = ""
    """Those of RELATIONS that all links of the page to this target have, in that order, with a blank between."""
    language: str = ""
    """The language of the target by the first ``hreflang`` that says one, in lower case."""


RELATIONS: Final = ("nofollow", "ugc", "sponsored")
"""Link types that say why a link is not followed (HTML Standard, 4.6.7.11; Google's two since 2019)."""
_LONGEST_REL: Final = 1000
_LONGEST_LANGUAGE: Final = 35
"""Characters of a language tag (RFC 5646, 4.4.1)."""


FoundLink: TypeAlias = tuple[str | None, str, bool, str, str]
"""A link before it is resolved: its reference (None for no link), and the other fields of a HtmlLink, the text as it
stands."""


def html_links(page: HtmlTree, url: str, charset: str = "utf-8") -> list[HtmlLink]:
    """Return the links of a page, as :func:`distinct_links` gives them. ``charset``: the one in which it came.

    Links are those of ``a`` and ``area`` elements, ``xlink:href`` of ``svg`` and ``math`` included, and of a meta
    refresh, resolved against ``base``. Links beyond the 10,000th are left out, and so are references of more than 8,192
    characters. If many links stand within links, the later ones have no text.
    """
    bases = islice((node for tag, node in page.references if tag == "base"), _MOST_BASES)
    base = next((node for node in bases if not _is_foreign(node)), None)
    found = [one for one in page.references if one[0] in _LINKS or _is_field(*one)][:_MOST_LINKS]
    boilerplate = {node.mem_id for node in page.css(_IN_BOILERPLATE)}
    silent = _silent(page, len(found))
    links = (_found(page, tag, node, silent, node.mem_id in boilerplate) for tag, node in found)
    return distinct_links(links, url, _href(base.attributes) if base else None, charset)


def link_texts(page: HtmlTree) -> frozenset[str]:
    """Return the texts of a page's links, those within the page included, as :attr:`HtmlLink.anchor` has them; of the
    links that :func:`html_links` reads."""
    nodes = [node for tag, node in page.references if tag == "a"][:_MOST_LINKS]
    silent = _silent(page, len(nodes))
    texts = (_one_line(page.text_of(node)) for node in nodes if node.mem_id not in silent)
    return frozenset(filter(None, texts))


def distinct_links(links: Iterable[FoundLink], url: str, base: str | None, charset: str = "utf-8") -> list[HtmlLink]:
    """Return links to http and https without their fragments, in page order, one for each target.

    Of several to one target the first that has a text counts. A page's link to itself is none. Queries are encoded in
    ``charset``, the page's.
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
    """Return the links whose text is not read: each ``a`` in an ``a`` may hold all of the page again, as in ``svg``."""
    if links * page.length < _HARMLESS_TEXT:
        return set()
    return {node.mem_id for node in page.css("a a")[_HARMLESS_TEXT // page.length :]}


def _is_foreign(node: LexborNode) -> bool:
    """Return whether an element is one of ``svg`` or ``math`` (HTML Standard, 13.2.6.5), and not of HTML within."""
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
    """Return those of RELATIONS that an attribute ``rel`` has, with a blank between."""
    rel = rel[:_LONGEST_REL].lower()
    if "o" not in rel and "ugc" not in rel:  # neither nofollow nor sponsored
        return ""
    words = rel.split()
    return " ".join(one for one in RELATIONS if one in words)


def _href(attributes: Mapping[str, str | None]) -> str:
    """Return the reference of an element: its ``href``, or else ``xlink:href`` (SVG 2, 16.1.6), which selectors take
    for one too."""
    return (attributes["href"] if "href" in attributes else attributes.get("xlink:href")) or ""
