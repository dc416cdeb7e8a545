"""Signals in the head of an HTML document: the robots meta, TDM reservation, links to licences in RSL, and metas that
stand for fields of the response (``http-equiv``).

The head is searched as bytes, without a tree: most pages have no such signal, and each page is looked at.
"""

from __future__ import annotations

import re
from typing import Final

from crawl4llm.optouts.said import ALL_AGENTS, PAGE, Said
from crawl4llm.optouts.table import META, ROBOTS, RSL, TDM_POLICY, TDM_RESERVATION
from crawl4llm.optouts.values import FIELDS, robots_directives, tdm_policy, tdm_reservation, values_of

LIMIT: Final = 1 << 16
"""Bytes of a document that are searched, up to the end of its head."""

_WORDS: Final = tuple(b"noindex nofollow none noarchive noai noimageai".split())
_NAMES: Final = (b"tdm-", b"rsl+xml", b"content-signal", b"content-usage")
_END: Final = b"</head"
_RAW: Final = (
    (b"<!--", b"-->"),
    *((b"<" + name, b"</" + name) for name in (b"script", b"style", b"title", b"textarea", b"template")),
)
"""The beginning and the end of what holds no tags."""
_TAG = re.compile(
    rb"<(?:!--.*?(?:-->|\Z)"
    rb"|(?P<raw>script|style|title|textarea|template)\b.*?(?:</(?P=raw)|\Z)"
    rb"|(?P<end>/head\b)"
    rb"|(?P<name>meta|link)(?=[\s/])(?P<attributes>[^>]{0,4096})>)",
    re.DOTALL,
)
"""A tag that may hold a signal, or ends the head; also what holds no tags, to pass over it. Of text in lower case."""
_ATTRIBUTE = re.compile(rb"""([^\s=>"'/]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']+))""")


def may_say(document: bytes) -> bool:
    """Return whether a document in any charset can have a signal in its head: a quick question before it is decoded."""
    if b"\0" in document[:LIMIT]:  # UTF-16
        return True
    return _has_words(_head(document), b"robots")


def _head(html: bytes) -> bytes:
    """Return the part of a document that is searched, in lower case: up to the end of its head, unless that stands in a
    script or the like."""
    end = html.find(_END, 0, LIMIT)  # in most it is in lower case, and only so much is to be copied
    lower = html[: end if end >= 0 else LIMIT].lower()
    if (end := lower.find(_END)) >= 0:
        lower = lower[:end]
    is_open = any(lower.rfind(begin) > lower.rfind(close) for begin, close in _RAW)
    return html[:LIMIT].lower() if is_open else lower


def _has_words(lower: bytes, own: bytes) -> bool:
    """Return whether there are the words of any signal in a head in lower case; ``own``: the crawler's name."""
    if (b"robots" in lower or own in lower) and any(word in lower for word in _WORDS):
        return True
    return any(name in lower for name in _NAMES)


def said_in_html(html: bytes, crawler: str) -> list[Said]:
    """Return the signals in a document's head, given in UTF-8, that are for all crawlers or for the one with this
    product token (in lower case)."""
    lower = _head(html)
    if not _has_words(lower, crawler.encode() or b"robots"):
        return []
    found: list[Said] = []
    for tag in _TAG.finditer(lower):
        if tag["end"]:
            break
        if tag["name"]:
            attributes = _attributes(html[tag.start("attributes") : tag.end("attributes")])
            found += _meta(attributes, crawler) if tag["name"] == b"meta" else _link(attributes)
    return list(dict.fromkeys(found))


def _attributes(tag: bytes) -> dict[str, str]:
    """Return a tag's attributes; of several with one name the first counts (HTML Standard, 13.2.5.33)."""
    found: dict[str, str] = {}
    for name, *values in _ATTRIBUTE.findall(tag):
        found.setdefault(name.decode("utf-8", "replace").lower(), b"".join(values).decode("utf-8", "replace").strip())
    return found


def _meta(attributes: dict[str, str], crawler: str) -> list[Said]:
    name, content = attributes.get("name", "").lower(), attributes.get("content", "")
    if name == "robots" or (crawler and name == crawler):
        agent = ALL_AGENTS if name == "robots" else name
        return [Said(ROBOTS, value, META, PAGE, agent) for value in robots_directives(content)]
    if name == "tdm-reservation":
        return [Said(TDM_RESERVATION, value, META) for value in tdm_reservation(content)]
    if name == "tdm-policy":
        return [Said(TDM_POLICY, value, META) for value in tdm_policy(content)]
    if signal := FIELDS.get(attributes.get("http-equiv", "").lower(), ""):  # stands for the field of a response
        said = values_of(signal, content)
        return [Said(signal, value, META, PAGE, agent) for agent, value in said if agent in {ALL_AGENTS, crawler}]
    return []


def _link(attributes: dict[str, str]) -> list[Said]:
    is_licence = "license" in attributes.get("rel", "").lower().split()
    if is_licence and attributes.get("type", "").lower() == "application/rsl+xml" and attributes.get("href"):
        return [Said(RSL, attributes["href"], META)]
    return []
