"""Signals of a site or page: the line in which an archive keeps those of a page, and the verdict on its uses. The
strictest of a page's signals counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from crawl4llm.base.reasons import OPT_OUT
from crawl4llm.optouts.table import HEADER, KNOWN_BEFORE, META, OPERATOR, ROBOTS, ROBOTS_TXT, TDMREP, Action, row_of

PAGE: Final = "page"
"""Scope of a signal in a page's own head."""
ALL_AGENTS: Final = "*"

UNKNOWN: Final = "as the corpus: what its sites asked for was up to who made it"
"""The note in a warcinfo record of a simulation whose corpus has no signals of its pages."""

_PLACES: Final = {ROBOTS_TXT, HEADER, META, TDMREP, OPERATOR}
_NOINDEX: Final = {"noindex", "none"}
_BETWEEN: Final = "; "
_SAFE: Final = "!#$&'()*+,/:=?@[]-._~"
_LONGEST: Final = 1 << 10
_LONGEST_PART: Final = 200


class Said(NamedTuple):
    """A value of a signal that applies to a page."""

    signal: str
    """A signal of :data:`crawl4llm.optouts.table.TABLE`."""
    value: str
    place: str
    """Its place: ``robots.txt``, ``header``, ``meta``, ``tdmrep.json`` or ``operator``."""
    scope: str = PAGE
    """Its scope: ``page``, or a path with wildcards of the authority that gave it, ``/`` for the whole authority."""
    agent: str = ALL_AGENTS
    """The crawler to which it is addressed, in lower case; ``*`` for all."""

    def __str__(self) -> str:
        """Return it for people: ``robots.txt: Content-Signal: ai-train=no (/, for *)``."""
        return f"{self.place}: {self.signal}: {self.value} ({self.scope}, for {self.agent})"


def as_text(said: Iterable[Said]) -> str:
    """Return signals as one line of an archive: ``robots.txt * / Content-Signal ai-train=no; meta * page robots noai``.

    Each has five words: place, agent, scope, signal, value, percent-encoded. A line of more than 1,024 characters loses
    the signals that forbid least.
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
    """Return the signals of a line from :func:`as_text`. Other text is ignored."""
    found = []
    for entry in text.split(_BETWEEN) if text else ():
        words = [unquote(word) for word in entry.split(" ")]
        if len(words) == 5 and words[0] in _PLACES:
            place, agent, scope, signal, value = words
            found.append(Said(signal, value, place, scope, agent))
    return found


def is_noindex(said: Iterable[Said]) -> bool:
    """Return whether a page asks not to be indexed."""
    return any(one.signal == ROBOTS and one.value in _NOINDEX for one in said)


def is_known(note: str | None) -> bool:
    """Return whether the note of an archive on opt-outs (``opt-out`` of its warcinfo records) says that signals stand
    with its pages; archives of other software have no such note."""
    return bool(note) and note != UNKNOWN


def _words(said: Said) -> str:
    words = (said.place, said.agent, said.scope, said.signal, said.value)
    return " ".join(quote(word[:_LONGEST_PART], _SAFE, errors="replace") or "-" for word in words)


def _strength(said: Said) -> int:
    row = row_of(said.signal, said.value)
    return -len(row.forbids) if row else 0


class Verdict(NamedTuple):
    """Forbidden actions on a page, with the signals that decide."""

    said: tuple[Said, ...] = ()
    """All signals of the page, also those that forbid nothing."""
    forbidden: Mapping[Action, Said] = {}
    """Deciding signals by forbidden action; of several the first."""

    def forbids(self, action: Action) -> bool:
        """Return whether an action is forbidden."""
        return action in self.forbidden

    def reason(self, action: Action) -> str:
        """Return the signal that forbids an action, in one clause; empty if none does."""
        said = self.forbidden.get(action)
        return "" if said is None else str(said)


NOTHING_SAID: Final = Verdict()


def decide(said: Iterable[Said], *, fetch_opted_out: bool = False) -> Verdict:
    """Return the verdict of a page's signals. ``fetch_opted_out``: the value of OPT_OUT_FETCH."""
    said = tuple(said)
    if not said:
        return NOTHING_SAID
    forbidden: dict[Action, Said] = {}
    for one in said:
        if (row := row_of(one.signal, one.value)) is None:
            continue
        for action in row.forbids_fetched if fetch_opted_out else row.forbids:
            if action is not Action.FETCH or one.place in KNOWN_BEFORE:
                forbidden.setdefault(action, one)
    return Verdict(said, forbidden)


def reason_against_training(said: Iterable[Said]) -> str | None:
    """Return why a page may not be used for training, with the deciding signal; None if it may."""
    decides = decide(said, fetch_opted_out=True).forbidden.get(Action.EXPORT)  # that it was fetched is no matter here
    return None if decides is None else f"{OPT_OUT}/{decides.signal}"
