"""Paths with the wildcards of robots.txt (RFC 9309, 2.2.2 and 2.2.3), which tdmrep.json has too.

Matched without regular expressions: a hostile pattern takes time in proportion to its length and the path's.
"""

from __future__ import annotations

from crawl4llm.base.urls import key_by_rfc_3986, normalise_url

_HOST = "http://h"


def path_of(url: str) -> str:
    """Return path and query of a URL, normalised, as patterns are matched against: ``/a?b``."""
    rest = normalise_url(url).partition("://")[2]
    return rest[rest.find("/") :] if "/" in rest else "/"


class Pattern:
    """A path that begins others; ``*`` stands for any characters, ``$`` at the end for the end of the path."""

    __slots__ = ("_is_whole", "_parts", "text")

    def __init__(self, text: str) -> None:
        """Percent-encoding is normalised, as it is in URLs. What begins with neither ``/`` nor ``*`` is taken to begin
        with a slash. A pattern is no URL, and no browser takes a backslash in it for a slash."""
        leading = "" if text.startswith("/") else "/"
        normal = key_by_rfc_3986(_HOST + leading + text)[len(_HOST) :]
        self.text = normal[1:] if text.startswith("*") else normal
        """The pattern, normalised. The longest one that matches counts."""
        self._is_whole = self.text.endswith("$")
        self._parts = self.text.removesuffix("$").split("*")

    def matches(self, path: str) -> bool:
        """Return whether a path, as :func:`path_of` gives it, begins so."""
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
