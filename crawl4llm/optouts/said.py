"""One signal that a site or page has given, and the line in which an archive keeps those of a page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from crawl4llm.optouts.table import HEADER, META, ROBOTS_TXT, TDMREP, row_of

PAGE: Final = "page"
"""Scope of what stands in a page's own head."""
ALL_AGENTS: Final = "*"

UNKNOWN: Final = "as the corpus: what its sites asked for was up to who made it"
"""The note in a warcinfo record of a simulation whose corpus does not tell what heads and sites said of its pages."""

_PLACES: Final = {ROBOTS_TXT, HEADER, META, TDMREP}
_BETWEEN: Final = "; "
_SAFE: Final = "!#$&'()*+,/:=?@[]-._~"
_LONGEST: Final = 1 << 10
_LONGEST_PART: Final = 200


class Said(NamedTuple):
    """A value of a signal that holds for a page."""

    signal: str
    """A signal of :data:`crawl4llm.optouts.table.TABLE`."""
    value: str
    place: str
    """Where it stands: ``robots.txt``, ``header``, ``meta`` or ``tdmrep.json``."""
    scope: str = PAGE
    """What it covers: ``page``, or a path with wildcards of the authority that said it, ``/`` for all of that."""
    agent: str = ALL_AGENTS
    """The crawler that it is addressed to, in lower case; ``*`` for all."""

    def __str__(self) -> str:
        """Return it for a reader: ``robots.txt: Content-Signal: ai-train=no (/, for *)``."""
        return f"{self.place}: {self.signal}: {self.value} ({self.scope}, for {self.agent})"


def as_text(said: Iterable[Said]) -> str:
    """Return signals as one line of an archive: ``robots.txt * / Content-Signal ai-train=no; meta * page robots noai``.

    Five words each: place, agent, scope, signal, value, percent-encoded. Of more than 1,024 characters those are left
    out that forbid least.
    """
    room = _LONGEST
    kept: set[Said] = set()
    said = list(dict.fromkeys(said))
    for one in sorted(said, key=_strength):
        size = len(_words(one)) + len(_BETWEEN)
        if size <= room:
            kept.add(one)
            room -= size
    return _BETWEEN.join(_words(one) for one in said if one in kept)


def from_text(text: str) -> list[Said]:
    """Return the signals of a line that :func:`as_text` has made. Other text is left out."""
    found = []
    for entry in text.split(_BETWEEN):
        words = [unquote(word) for word in entry.split(" ")]
        if len(words) == 5 and words[0] in _PLACES:
            place, agent, scope, signal, value = words
            found.append(Said(signal, value, place, scope, agent))
    return found


def is_known(note: str | None) -> bool:
    """Return whether the note of an archive on opt-outs (``opt-out`` of its warcinfo records) says that signals are
    noted with its pages; archives of others have none."""
    return bool(note) and note != UNKNOWN


def _words(said: Said) -> str:
    words = (said.place, said.agent, said.scope, said.signal, said.value)
    return " ".join(quote(word[:_LONGEST_PART], _SAFE, errors="replace") or "-" for word in words)


def _strength(said: Said) -> int:
    row = row_of(said.signal, said.value)
    return -len(row.forbids) if row else 0
