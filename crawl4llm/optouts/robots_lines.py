"""Signals in the groups of a robots.txt: Content-Signal, Content-Usage, RSL, and what training crawlers are denied."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from crawl4llm.optouts.patterns import Pattern, path_of
from crawl4llm.optouts.said import ALL_AGENTS, Said
from crawl4llm.optouts.table import (
    AI_CRAWLER,
    CONTENT_SIGNAL,
    CONTENT_USAGE,
    DISALLOW,
    ROBOTS_TXT,
    RSL,
    TRAINING_CRAWLERS,
    row_of,
)
from crawl4llm.optouts.values import content_signals, content_usage

Line = tuple[str, str]
"""Name of a directive, in lower case, and its value."""
NO_GROUP: Final = " "
"""Stands for the lines that are in no group, and for those that hold for all wherever they stand."""
TRAINING: Final = tuple(crawler.name.lower() for crawler in TRAINING_CRAWLERS)
"""Product tokens of training crawlers, in lower case."""
SIGNAL_LINES: Final = ("content-signal", "content-usage", "license")
"""Directives that are read here, besides allow and disallow."""

_MOST_LICENCES: Final = 5
_ABSOLUTE = re.compile("https?://", re.IGNORECASE)
_PARSERS: Final = {"content-signal": (CONTENT_SIGNAL, content_signals), "content-usage": (CONTENT_USAGE, content_usage)}
_BYTES: Final = 1500
_BYTES_A_RULE: Final = 700
"""Memory of an object with any rules, and of a rule besides its text; a test measures."""


class _Rule(NamedTuple):
    pattern: Pattern
    said: tuple[str, ...]
    """Values of a signal; of the groups of crawlers one of allow and disallow."""


class RobotsSignals:
    """What a robots.txt says of the uses of pages, besides which of them the crawler itself may fetch.

    Lines of Content-Signal and Content-Usage hold that stand in the crawler's own group or, of a use of which that
    says nothing, in the group for all; those that stand in no group, or in that of a training crawler, hold besides.
    Of the rules of a group for a use, those with the longest path count (draft-ietf-aipref-attach, 3.1).
    """

    def __init__(self, groups: Mapping[str, Sequence[Line]], crawler: str) -> None:
        """``groups``: lines by product token in lower case, ``*`` and NO_GROUP; others than the crawler's, in lower
        case too, and those of training crawlers do not matter."""
        self._signals: list[tuple[str, str, list[_Rule]]] = []
        """For each use: signal, whom it is for, and its rules, those with the longest paths first."""
        for directive, (signal, parse) in _PARSERS.items():
            own = _uses(groups.get(crawler, ()), directive, parse)
            for agent in dict.fromkeys((crawler, ALL_AGENTS, NO_GROUP, *TRAINING)):
                for use, rules in _uses(groups.get(agent, ()), directive, parse).items():
                    is_strict = any(row_of(signal, value) for rule in rules for value in rule.said)
                    if is_strict and (agent != ALL_AGENTS or use not in own):
                        self._signals.append((signal, ALL_AGENTS if agent == NO_GROUP else agent, rules))
        self._crawlers: list[tuple[str, list[_Rule]]] = []
        """Training crawlers and their rules; of several that are told the same the first."""
        for agent in TRAINING:
            lines = [line for line in groups.get(agent, ()) if line[0] in {"allow", "disallow"}]
            rules = _merged((path, (name,)) for name, path in lines)
            if any(DISALLOW in rule.said for rule in rules) and all(_differ(rules, own) for _, own in self._crawlers):
                self._crawlers.append((agent, rules))
        licences = [value for name, value in groups.get(NO_GROUP, ()) if name == "license"]
        self._licences = [value for value in licences if _ABSOLUTE.match(value)][:_MOST_LICENCES]
        rules = [rule for _, _, rules in self._signals for rule in rules]
        rules += [rule for _, rules in self._crawlers for rule in rules]
        texts = [rule.pattern.text for rule in rules] + self._licences
        self.size = sum(_BYTES_A_RULE + 3 * len(text) for text in texts) + (_BYTES if texts else 0)
        """Bytes of memory, roughly, and rather too many."""

    def __bool__(self) -> bool:
        return self.size > 0

    def of(self, url: str) -> list[Said]:
        """Return the signals that hold for a URL."""
        path = path_of(url)
        found = []
        for signal, agent, rules in self._signals:
            if rule := _first(rules, path):
                values = [value for value in rule.said if row_of(signal, value)]
                found += [Said(signal, value, ROBOTS_TXT, rule.pattern.text, agent) for value in values]
        for agent, rules in self._crawlers:
            # Of an allow and a disallow with one path the former counts (RFC 9309, 2.2.2).
            if (rule := _first(rules, path)) and rule.said == (DISALLOW,):
                found.append(Said(AI_CRAWLER, DISALLOW, ROBOTS_TXT, rule.pattern.text, agent))
                break
        return found + [Said(RSL, url, ROBOTS_TXT, "/") for url in self._licences]


def _uses(lines: Iterable[Line], directive: str, parse: Callable[[str], Iterator[str]]) -> dict[str, list[_Rule]]:
    """Return the rules in a group's lines of one directive, by the use that they speak of."""
    found: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    for name, value in lines:
        if name == directive:
            path, text = _with_path(value)
            for said in parse(text):
                found.setdefault(said.partition("=")[0], []).append((path, (said,)))
    return {use: _merged(rules) for use, rules in found.items()}


def _with_path(value: str) -> tuple[str, str]:
    """Return the path of a rule, ``/`` where it has none, and the rest (draft-ietf-aipref-attach, 3)."""
    if not value.startswith("/"):
        return "/", value
    path, _, rest = value.replace("\t", " ").partition(" ")
    return path, rest.strip()


def _merged(rules: Iterable[tuple[str, tuple[str, ...]]]) -> list[_Rule]:
    """Return rules, those with one path as one, those with longer paths first."""
    by_text: dict[str, _Rule] = {}
    for path, said in rules:
        pattern = Pattern(path)
        before = by_text.get(pattern.text)
        values = dict.fromkeys((*(before.said if before else ()), *said))
        by_text[pattern.text] = _Rule(pattern, tuple(values))
    return sorted(by_text.values(), key=lambda rule: -len(rule.pattern.text))


def _first(rules: Sequence[_Rule], path: str) -> _Rule | None:
    return next((rule for rule in rules if rule.pattern.matches(path)), None)


def _differ(some: Sequence[_Rule], others: Sequence[_Rule]) -> bool:
    return [(rule.pattern.text, rule.said) for rule in some] != [(rule.pattern.text, rule.said) for rule in others]
