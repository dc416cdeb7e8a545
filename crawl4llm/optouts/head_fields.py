"""Signals in the head of a response: X-Robots-Tag, Content-Usage, Content-Signal, TDM-Reservation, Link to RSL."""

from __future__ import annotations

from typing import Final

from crawl4llm.base.pages import HeaderFields
from crawl4llm.optouts.said import PAGE, Said
from crawl4llm.optouts.table import HEADER
from crawl4llm.optouts.values import ALL, FIELDS, values_of

_NAMES: Final = frozenset(name.encode() for name in FIELDS)


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
                Said(signal, value, HEADER, PAGE, agent)
                for agent, value in values_of(signal, text)
                if agent in {ALL, crawler}
            ]
    return found
