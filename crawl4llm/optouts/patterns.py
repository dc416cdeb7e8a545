"""Paths with the wildcards of robots.txt (RFC 9309, 2.2.2 and 2.2.3) and tdmrep.json, and rules by path.

They are matched without regular expressions, in time proportional to the lengths of pattern and path.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple
from urllib.parse import quote

from crawl4llm.base.urls import normalise_url

_LITERAL: Final = "!&'()+,-.:;=@_~"
"""Characters besides letters and digits that equal their percent-encoding."""
_DELIMITERS: Final = "/?"
"""Characters that differ from it: ``%2F`` and ``%3F`` belong to the data of a URL, and these do not."""
_NORMAL = re.compile(rf"[A-Za-z0-9{re.escape(_LITERAL + _DELIMITERS)}*]*")
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})?")
_STARS = re.compile(r"\*+")


def path_of(url: str) -> str:
    """Return path and query of a URL, normalised for matching: ``/a?b``."""
    rest = normalise_url(url).partition("://")[2]
    return _normal(rest[rest.find("/") :]).replace("*", "%2A").replace("$", "%24") if "/" in rest else "/"


class Pattern:
    """A prefix of paths; ``*`` stands for any characters, ``$`` at the end for the end of the path."""

    __slots__ = ("_is_whole", "_parts", "text")

    def __init__(self, text: str) -> None:
        """Percent-encoding is normalised as in URLs, so that ``%2A`` and ``%24`` stand for literal ``*`` and ``$``. A
        pattern that begins with neither ``/`` nor ``*`` matches no path."""
        self._is_whole = text.endswith("$")
        literal = _normal(text.removesuffix("$")).replace("$", "%24")
        self.text = f"{literal}$" if self._is_whole else literal
        """The normalised pattern; the longest match counts."""
        self._parts = tuple(_STARS.split(literal))

    @property
    def is_prefix(self) -> bool:
        """True if the text has no wildcard."""
        return len(self._parts) == 1 and not self._is_whole

    def matches(self, path: str) -> bool:
        """Return whether a path from :func:`path_of` matches."""
        first, *others = self._parts
        if not path.startswith(first):
            return False
        place = len(first)
        if not others:
            return not self._is_whole or place == len(path)
        last = others.pop()
        for part in others:
            if (found := path.find(part, place)) < 0:
                return False
            place = found + len(part)
        if self._is_whole:
            return path.endswith(last) and len(path) - len(last) >= place
        return path.find(last, place) >= 0


class PathRule(NamedTuple):
    """A pattern with the values of its rules."""

    pattern: Pattern
    written: str
    """The pattern as written."""
    said: tuple[str, ...]


class PathRules:
    """Rules by path: the longest match counts, and of equally long ones the first."""

    def __init__(self, rules: Iterable[tuple[str, str]]) -> None:
        """``rules``: patterns as written, each with a value. Rules with the same pattern count as one."""
        by_text: dict[str, PathRule] = {}
        for written, said in rules:
            pattern = Pattern(written)
            before = by_text.get(pattern.text)
            if before is None:
                by_text[pattern.text] = PathRule(pattern, written, (said,))
            elif said not in before.said:
                by_text[pattern.text] = before._replace(said=(*before.said, said))
        self.rules = sorted(by_text.values(), key=lambda rule: -len(rule.pattern.text))
        """Rules, the longest patterns first."""
        self._prefixes = tuple(rule.pattern.text for rule in self.rules if rule.pattern.is_prefix)
        self._others = [rule for rule in self.rules if not rule.pattern.is_prefix]

    def of(self, path: str) -> PathRule | None:
        """Return the rule that counts for a path from :func:`path_of`."""
        # One call tells that none of the prefixes matches, which is so of most paths.
        rules = self.rules if path.startswith(self._prefixes) else self._others
        return next((rule for rule in rules if rule.pattern.matches(path)), None)


def _normal(text: str) -> str:
    """Return a path with percent-encoding only if it is needed, in upper case; ``*`` and ``$`` are left.

    RFC 9309, 2.2.2: reserved characters equal their percent-encoding. A ``%`` without two hexadecimal digits is
    ``%25``, as in document keys.
    """
    if _NORMAL.fullmatch(text):
        return text
    data = _ESCAPE.sub(_normal_escape, text.encode("utf-8", "replace"))
    return quote(data, safe=f"{_LITERAL}{_DELIMITERS}%*$")


def _normal_escape(escape: re.Match[bytes]) -> bytes:
    if escape[1] is None:
        return b"%25"
    character = chr(int(escape[1], 16))
    is_literal = character in _LITERAL or (character.isascii() and character.isalnum())
    return character.encode() if is_literal else escape[0].upper()
