"""Named rules for URLs that lead into a trap: endless pages that a site makes from few, by calendars, filters,
sessions.

A rule uses the URL alone, so that a document is dropped before it is requested. The rules drop next to nothing of the
honest web (docs/traps.md has the figures); other parts deal with mazes that no rule matches.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

_MOST_SEGMENTS: Final = 16
_MOST_PARAMETERS, _MOST_OF_A_NAME = 6, 2
_MOST_OF_A_SEGMENT: Final = 3

_CGI_BIN: Final = "cgi-bin"
_CALENDARS: Final = frozenset({"calendar", "calendars", "calendario", "calendrier", "kalender", "events", "agenda"})
_DATE_PATH = re.compile(
    r"/(?:calendars?|calendario|calendrier|kalender|events|agenda)/(?:[a-z]+/)?[12]\d{3}[/-]\d\d?(?:[/-]\d\d?)?/?(?:[?#]|$)"
)
_DATE_QUERY = re.compile(
    r"(?:^|[&;])(?:(?:tribe-bar-|event_?|start_?|end_?|from_?|cal_?)?date|(?:cal_?)?month|i?cal|outlook-ical)=\d",
    re.IGNORECASE,
)
_RUNS = re.compile(r"((?:/[^/]+){1,3})\1\1(?=/|$)")
_SESSION = re.compile(
    r"[?&;](?:(?:phpsessid|jsessionid|aspsessionid[a-z]*|cftoken|oscsid|zenid|session_?id)=[^&;]{8}|s(?:id)?=[0-9a-f]{32}\b)"
    r"|/\([a-z]?\(?[0-9a-z]{24}\)+/",
    re.IGNORECASE,
)
_WORDS: Final = _CALENDARS | {_CGI_BIN}
_SEPARATOR = re.compile("[&;]")


class _Parts(NamedTuple):
    """A URL, and its parts that the rules use."""

    url: str
    segments: list[str]
    """Segments of the path; the last one is empty if the path ends with a slash."""
    query: str


class Rule(NamedTuple):
    """A rule in the words of the documentation, with its check."""

    meaning: str
    holds: Callable[[_Parts], bool]


def _repeats_itself(of: _Parts) -> bool:
    if len(set(of.segments)) > len(of.segments) - 2:
        return False
    if max(Counter(filter(None, of.segments)).values(), default=0) > _MOST_OF_A_SEGMENT:
        return True
    return _RUNS.search("/" + "/".join(of.segments)) is not None


def _is_calendar(of: _Parts) -> bool:
    if of.query and _DATE_QUERY.search(of.query):
        return True
    return not _CALENDARS.isdisjoint(of.segments) and _DATE_PATH.search(of.url) is not None


def _has_session(of: _Parts) -> bool:
    return _SESSION.search(of.url) is not None


def _is_deep(of: _Parts) -> bool:
    return len(of.segments) > _MOST_SEGMENTS


def _has_many_parameters(of: _Parts) -> bool:
    names = [parameter.partition("=")[0] for parameter in _SEPARATOR.split(of.query)]
    return len(names) > _MOST_PARAMETERS or max(Counter(names).values()) > _MOST_OF_A_NAME


RULES: Final = {
    "cgi_bin": Rule("a segment of the path is `cgi-bin`", lambda of: _CGI_BIN in of.segments),
    "repeated_path": Rule(
        "a segment of the path comes four times, or up to three segments three times in a row (`/a/b/a/b/a/b`)",
        _repeats_itself,
    ),
    "calendar": Rule(
        "the path ends with a month or day of a calendar (`/events/2031-05/`), or the query asks for one (`?month=5`, "
        "`?tribe-bar-date=2031-05-01`)",
        _is_calendar,
    ),
    "session_id": Rule("path or query name a session (`;jsessionid=...`, `?PHPSESSID=...`)", _has_session),
    "deep_path": Rule(f"the path has more than {_MOST_SEGMENTS} segments", _is_deep),
    "many_parameters": Rule(
        f"the query has more than {_MOST_PARAMETERS} parameters, or one of them more than twice, as filters have",
        _has_many_parameters,
    ),
}
"""Rules by name, in the order in which they are tried."""


class Traps:
    """Some of the rules."""

    def __init__(self, names: Sequence[str]) -> None:
        self._rules = [(name, rule.holds) for name, rule in RULES.items() if name in names]

    def rule_of(self, url: str) -> str | None:
        """Return the name of the first rule that a URL matches."""
        if "?" not in url and ";" not in url and "(" not in url:
            parts = url.split("/")
            distinct = set(parts)
            if len(parts) - len(distinct) < 2 and len(parts) <= _MOST_SEGMENTS and distinct.isdisjoint(_WORDS):
                return None  # as of most: no rule can hold
        path, _, query = url.partition("?")
        of = _Parts(url, path.split("/")[3:], query)
        for name, holds in self._rules:
            if holds(of):
                return name
        return None
