"""Signals that a site or page has given: the line in which an archive keeps those of a page, and the verdict on its
uses. The strictest of a page's signals holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from crawl4llm.base.reasons import OPT_OUT
from crawl4llm.optouts.table import HEADER, KNOWN_BEFORE, META, ROBOTS, ROBOTS_TXT, TDMREP, Action, row_of

PAGE: Final = "page"
"""Scope of what stands in a page's own head."""
ALL_AGENTS: Final = "*"

UNKNOWN: Final = "as the corpus: what its sites asked for was up to who made it"
"""The note in a warcinfo record of a simulation whose corpus does not tell what heads and sites said of its pages."""

_PLACES: Final = {ROBOTS_TXT, HEADER, META, TDMREP}
_NOINDEX: Final = {"noindex", "none"}
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


def is_noindex(said: Iterable[Said]) -> bool:
    """Return whether a page asks to be kept out of indexes."""
    return any(one.signal == ROBOTS and one.value in _NOINDEX for one in said)


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


class Verdict(NamedTuple):
    """What is forbidden of a page, and by which signals."""

    said: tuple[Said, ...] = ()
    """All signals of the page, those that forbid nothing too."""
    forbidden: Mapping[Action, Said] = {}
    """The signal that decides, by what it forbids: of several the first."""

    def forbids(self, action: Action) -> bool:
        """Return whether an action is forbidden."""
        return action in self.forbidden

    def reason(self, action: Action) -> str:
        """Return which signal forbids an action, in one clause; empty if none does."""
        said = self.forbidden.get(action)
        return "" if said is None else str(said)


NOTHING_SAID: Final = Verdict()


def decide(said: Iterable[Said], *, fetch_opted_out: bool = False) -> Verdict:
    """Return what the signals of a page forbid. ``fetch_opted_out``: what OPT_OUT_FETCH says."""
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
    """Return the reason for which a page is left out of data for training, with the signal that decides; None if it is
    not."""
    decides = decide(said, fetch_opted_out=True).forbidden.get(Action.EXPORT)  # that it was fetched is no matter here
    return None if decides is None else f"{OPT_OUT}/{decides.signal}"
