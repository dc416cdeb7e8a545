"""Signals in an HTML document: the robots meta, TDM reservation, links to licences in RSL, and metas that stand for
fields of the response (``http-equiv``).

They are read from the document's tree, so that scripts, comments, templates and quoted attributes are understood as in
a browser. A meta in the body counts too, because for a parser any body element ends the head, even inside ``head``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from crawl4llm.base.html_tree import HtmlTree
from crawl4llm.optouts.said import ALL_AGENTS, PAGE, Said
from crawl4llm.optouts.table import META, ROBOTS, RSL
from crawl4llm.optouts.values import FIELDS, robots_directives, values_of

_LONGEST: Final = 4096
"""Most characters of an attribute that are read."""
_WIDE: Final = 1 << 10
"""Bytes within which a document with two bytes a character has a NUL."""
_WORDS: Final = tuple(b"noindex nofollow none noarchive noai noimageai".split())
_NAMES: Final = (b"tdm-", b"rsl+xml", b"content-signal", b"content-usage")
_REFERENCE: Final = b"&#"
"""Begins a character reference, which can stand for a letter of those words."""
_TAG = re.compile(rb"<(?:meta|link)\b")
_LONGEST_TAG: Final = 1 << 14
"""Most bytes of a tag that are searched for one."""


def may_say(document: bytes, crawler: str = "") -> bool:
    """Return whether a document in any charset can have a signal; quick, before it is decoded and parsed."""
    if b"\0" in document[:_WIDE]:  # UTF-16
        return True
    lower = document.lower()
    if (b"robots" in lower or (crawler.encode() or b"robots") in lower) and any(word in lower for word in _WORDS):
        return True
    return any(name in lower for name in _NAMES) or _has_reference_in_tag(lower)


def _has_reference_in_tag(lower: bytes) -> bool:
    reference = -1
    for tag in _TAG.finditer(lower):
        if reference < tag.start() and (reference := lower.find(_REFERENCE, tag.start())) < 0:
            return False
        if reference - tag.start() < _LONGEST_TAG:
            return True
    return False


def said_in_html(html: bytes, crawler: str, tree: HtmlTree | None = None) -> list[Said]:
    """Return the result of :func:`said_in_tree` for a document in UTF-8, which is parsed and searched only if it may
    have a signal. ``tree``: its tree, if it has been parsed."""
    return said_in_tree(tree or HtmlTree(html), crawler) if may_say(html, crawler) else []


def said_in_tree(page: HtmlTree, crawler: str) -> list[Said]:
    """Return the signals of a document that are for all crawlers or for the one with this product token (in lower
    case)."""
    found: list[Said] = []
    for tag, node in page.references:
        if tag in {"meta", "link"}:
            attributes = {name: (value or "").strip()[:_LONGEST] for name, value in node.attributes.items()}
            found += _meta(attributes, crawler) if tag == "meta" else _link(attributes)
    return list(dict.fromkeys(found))


def said_in_metas(metas: Iterable[Mapping[str, str]], crawler: str) -> list[Said]:
    """Return the signals of ``meta`` elements given by their attributes, for the same crawlers."""
    bounded = ({name.lower(): value.strip()[:_LONGEST] for name, value in meta.items()} for meta in metas)
    return list(dict.fromkeys(said for meta in bounded for said in _meta(meta, crawler)))


def _meta(attributes: dict[str, str], crawler: str) -> list[Said]:
    name, content = attributes.get("name", "").lower(), attributes.get("content", "")
    if name == "robots" or (crawler and name == crawler):
        agent = ALL_AGENTS if name == "robots" else name
        return [Said(ROBOTS, value, META, PAGE, agent) for value in robots_directives(content)]
    # One of TDM's is named like the field of a response, as one with http-equiv is that stands for a field.
    field = name if name in {"tdm-reservation", "tdm-policy"} else attributes.get("http-equiv", "").lower()
    if signal := FIELDS.get(field, ""):
        said = values_of(signal, content)
        return [Said(signal, value, META, PAGE, agent) for agent, value in said if agent in {ALL_AGENTS, crawler}]
    return []


def _link(attributes: dict[str, str]) -> list[Said]:
    is_licence = "license" in attributes.get("rel", "").lower().split()
    if is_licence and attributes.get("type", "").lower() == "application/rsl+xml" and attributes.get("href"):
        return [Said(RSL, attributes["href"], META)]
    return []
