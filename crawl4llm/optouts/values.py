"""Field values with signals, from any place: text in, values of the table out. Also the signals in the head of a
response, which are such fields.

Malformed values, and values that are not in the table, are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from http_sf import StructuredFieldError, Token, parse

from crawl4llm.base.pages import HeaderFields
from crawl4llm.optouts import table
from crawl4llm.optouts.said import ALL_AGENTS, Said

FIELDS: Final = {
    "x-robots-tag": table.ROBOTS,
    "content-signal": table.CONTENT_SIGNAL,
    "content-usage": table.CONTENT_USAGE,
    "tdm-reservation": table.TDM_RESERVATION,
    "tdm-policy": table.TDM_POLICY,
    "link": table.RSL,
}
"""Signals by the names of header fields."""
_NAMES: Final = frozenset(name.encode() for name in FIELDS)

_CONTENT_SIGNALS: Final = {
    **dict.fromkeys(("search", "ai-input", "ai-train"), ("yes", "no")),
    "use": ("immediate", "reference", "full"),
}
_LABELS: Final = ("train-ai", "search")
"""Labels of the vocabulary that are used; others are ignored."""
_LONGEST: Final = 8192
"""Most characters of a value that are read."""
_PARTS = re.compile("[,;]")
_AGENT = re.compile(r"[a-z_][a-z0-9_.-]*|\*")
_WITH_VALUE: Final = {"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"}
"""Robots directives with a colon, like a crawler's name before directives. None is in the table: the first depends on
the time, the others concern previews."""
_LICENCE = re.compile(r"<([^<>]*)>([^<]*)")
_RSL_TYPE: Final = "application/rsl+xml"


def said_in_head(headers: HeaderFields, crawler: str) -> list[Said]:
    """Return the signals in a head that are for all crawlers, or for the one with this product token (lower case)."""
    if _NAMES.isdisjoint(lower := [name.lower() for name, _ in headers]):
        return []
    fields: dict[str, list[str]] = {}
    for field, (_, value) in zip(lower, headers, strict=True):
        if field in _NAMES:
            fields.setdefault(field.decode(), []).append(value.decode("utf-8", "replace"))
    found = []
    for name, values in fields.items():
        signal = FIELDS[name]
        # A field that stands several times is one list (RFC 9110, 5.2); but there each has crawlers of its own.
        for text in values if name == "x-robots-tag" else [", ".join(values)]:
            found += [
                Said(signal, value, table.HEADER, agent=agent)
                for agent, value in values_of(signal, text)
                if agent in {ALL_AGENTS, crawler}
            ]
    return found


def values_of(signal: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield the values of a signal in a header field, each with the crawler that it is for: ``*`` for all."""
    text = text.strip()[:_LONGEST]
    if signal == table.ROBOTS:
        yield from _x_robots_tag(text)
        return
    yield from ((ALL_AGENTS, value) for value in _OF_SIGNAL[signal](text) if table.row_of(signal, value))


def content_signals(text: str) -> Iterator[str]:
    """Yield ``ai-train=no``, ``search=yes`` and the like from the value of Content-Signal."""
    for part in _PARTS.split(text.lower()):
        use, _, value = map(str.strip, part.partition("="))
        if value in _CONTENT_SIGNALS.get(use, ()):
            yield f"{use}={value}"


def content_usage(text: str) -> Iterator[str]:
    """Yield ``train-ai=n``, ``search=y`` and the like from a structured field: a dictionary (RFC 9651, 3.2) of the
    vocabulary's labels, with the tokens ``y`` and ``n`` as values. A malformed one gives nothing."""
    members: Any
    try:
        members = parse(text.encode("utf-8", "replace"), tltype="dictionary")
    except (StructuredFieldError, RecursionError):
        return
    for label in _LABELS:
        value, _ = members.get(label, (None, None))
        if isinstance(value, Token) and str(value) in {"y", "n"}:
            yield f"{label}={value}"


def robots_directives(text: str) -> Iterator[str]:
    """Yield ``noindex`` and the like from the content of a robots meta."""
    for part in text.lower().split(","):
        if table.row_of(table.ROBOTS, directive := part.strip()):
            yield directive


def tdm_reservation(text: str) -> Iterator[str]:
    """Yield ``1`` if rights are reserved; other values than 0 and 1 are errors, and ignored."""
    if "1" in map(str.strip, text.split(",")):
        yield "1"


def tdm_policy(text: str) -> Iterator[str]:
    """Yield the URL of a policy."""
    if text:
        yield text


def _rsl_links(text: str) -> Iterator[str]:
    """Yield the targets of links to licences in RSL (RFC 8288, 3)."""
    for url, parameters in _LICENCE.findall(text):
        if _RSL_TYPE in parameters and "license" in parameters.lower():
            yield url


def _x_robots_tag(text: str) -> Iterator[tuple[str, str]]:
    agent = ALL_AGENTS
    for part in text.lower().split(","):
        name, colon, directive = map(str.strip, part.partition(":"))
        if colon and name not in _WITH_VALUE and _AGENT.fullmatch(name):
            agent = ALL_AGENTS if name == "robots" else name
        else:
            directive = part.strip()
        if table.row_of(table.ROBOTS, directive):
            yield agent, directive


_OF_SIGNAL: Final = {
    table.CONTENT_SIGNAL: content_signals,
    table.CONTENT_USAGE: content_usage,
    table.TDM_RESERVATION: tdm_reservation,
    table.TDM_POLICY: tdm_policy,
    table.RSL: _rsl_links,
}
