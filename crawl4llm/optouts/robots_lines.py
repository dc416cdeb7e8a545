"""Signals in the groups of a robots.txt: Content-Signal, Content-Usage, RSL, and what training crawlers are denied."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Final

from crawl4llm.optouts.patterns import PathRules, path_of
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

ALLOW: Final = "allow"
_INDEX_PAGE: Final = "index.htm"
_MOST_LICENCES: Final = 5
_ABSOLUTE = re.compile("https?://", re.IGNORECASE)
_PARSERS: Final = {"content-signal": (CONTENT_SIGNAL, content_signals), "content-usage": (CONTENT_USAGE, content_usage)}
_BYTES: Final = 1500
_BYTES_A_RULE: Final = 700
_BYTES_A_STAR: Final = 70
"""Memory of an object with any rules, of a rule besides its text, and of each ``*`` in it; a test measures."""


def may_fetch(lines: Iterable[Line]) -> PathRules:
    """Return the rules in a group's allow and disallow lines; what counts for a path is the first that a rule says.

    Of an allow and a disallow that match and are as long the former counts (RFC 9309, 2.2.2). An allowed
    ``index.html`` allows its folder too, as by Google's parser.
    """
    rules = []
    for name, path in sorted((line for line in lines if line[0] in {ALLOW, DISALLOW}), key=itemgetter(0)):
        rules.append((path, name))
        folder = path[: path.rfind("/") + 1]
        if name == ALLOW and folder and path.startswith(_INDEX_PAGE, len(folder)):
            rules.append((f"{folder}$", name))
    return PathRules(rules)


def size_of(rules: PathRules) -> int:
    """Return the bytes of memory that rules take, roughly, and rather too many."""
    texts = [f"{rule.pattern.text}{rule.written}" for rule in rules.rules]
    return sum(_BYTES_A_RULE + 3 * len(text) + _BYTES_A_STAR * text.count("*") for text in texts)


class RobotsSignals:
    """What a robots.txt says of the uses of pages, besides which of them the crawler itself may fetch.

    Lines of Content-Signal and Content-Usage hold that stand in the crawler's own group or, of a use of which that
    says nothing, in the group for all; those that stand in no group, or in that of a training crawler, hold besides.
    Of the rules of a group for a use, those with the longest path count (draft-ietf-aipref-attach, 3.1).
    """

    def __init__(self, groups: Mapping[str, Sequence[Line]], crawler: str) -> None:
        """``groups``: lines by product token in lower case, ``*`` and NO_GROUP; others than the crawler's, in lower
        case too, and those of training crawlers do not matter."""
        self._signals: list[tuple[str, str, PathRules]] = []
        """For each use: signal, whom it is for, and its rules."""
        for directive, (signal, parse) in _PARSERS.items():
            own = _uses(groups.get(crawler, ()), directive, parse)
            for agent in dict.fromkeys((crawler, ALL_AGENTS, NO_GROUP, *TRAINING)):
                for use, rules in _uses(groups.get(agent, ()), directive, parse).items():
                    is_strict = any(row_of(signal, value) for rule in rules.rules for value in rule.said)
                    if is_strict and (agent != ALL_AGENTS or use not in own):
                        self._signals.append((signal, ALL_AGENTS if agent == NO_GROUP else agent, rules))
        self._crawlers: list[tuple[str, PathRules]] = []
        """Training crawlers and their rules; of several that are told the same the first."""
        for agent in TRAINING:
            rules = may_fetch(groups.get(agent, ()))
            if any(DISALLOW in rule.said for rule in rules.rules) and all(
                _differ(rules, own) for _, own in self._crawlers
            ):
                self._crawlers.append((agent, rules))
        licences = [value for name, value in groups.get(NO_GROUP, ()) if name == "license"]
        self._licences = [value for value in licences if _ABSOLUTE.match(value)][:_MOST_LICENCES]
        sizes = [size_of(rules) for _, _, rules in self._signals] + [size_of(rules) for _, rules in self._crawlers]
        sizes += [_BYTES_A_RULE + len(licence) for licence in self._licences]
        self.size = _BYTES + sum(sizes) if sizes else 0
        """Bytes of memory, roughly, and rather too many."""

    def __bool__(self) -> bool:
        return self.size > 0

    def of(self, url: str) -> list[Said]:
        """Return the signals that hold for a URL."""
        path = path_of(url)
        found = []
        for signal, agent, rules in self._signals:
            if rule := rules.of(path):
                values = [value for value in rule.said if row_of(signal, value)]
                found += [Said(signal, value, ROBOTS_TXT, rule.pattern.text, agent) for value in values]
        for agent, rules in self._crawlers:
            if (rule := rules.of(path)) and rule.said[0] == DISALLOW:
                found.append(Said(AI_CRAWLER, DISALLOW, ROBOTS_TXT, rule.pattern.text, agent))
                break
        return found + [Said(RSL, url, ROBOTS_TXT, "/") for url in self._licences]


def _uses(lines: Iterable[Line], directive: str, parse: Callable[[str], Iterator[str]]) -> dict[str, PathRules]:
    """Return the rules in a group's lines of one directive, by the use that they speak of."""
    found: dict[str, list[tuple[str, str]]] = {}
    for name, value in lines:
        if name == directive:
            path, text = _with_path(value)
            for said in parse(text):
                found.setdefault(said.partition("=")[0], []).append((path, said))
    return {use: PathRules(rules) for use, rules in found.items()}


def _with_path(value: str) -> tuple[str, str]:
    """Return the path of a rule, ``/`` where it has none, and the rest (draft-ietf-aipref-attach, 3)."""
    if not value.startswith("/"):
        return "/", value
    path, _, rest = value.replace("\t", " ").partition(" ")
    return path, rest.strip()


def _differ(some: PathRules, others: PathRules) -> bool:
    return [(rule.pattern.text, rule.said) for rule in some.rules] != [
        (rule.pattern.text, rule.said) for rule in others.rules
    ]
