"""A robots.txt for one crawler, by RFC 9309: the rules for fetching, and the signals in its groups.

The signals are Content-Signal, Content-Usage, RSL, and rules against training crawlers.

If the RFC leaves a choice, this parser follows Google's (github.com/google/robotstxt). Scrapy's, protego, differs: any
directive ends a run of User-agent lines, against 2.2.4 of the RFC. It also finds names of crawlers within others, and a
``%`` without two hexadecimal digits does not equal ``%25``.
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Final

from crawl4llm.optouts import table
from crawl4llm.optouts.patterns import PathRules, path_of
from crawl4llm.optouts.said import ALL_AGENTS, Said
from crawl4llm.optouts.values import content_signals, content_usage

Line = tuple[str, str]
"""Name of a directive, in lower case, and its value."""
_NO_GROUP: Final = " "
"""Stands for lines outside of groups, and for lines that apply to all anywhere."""
_TRAINING: Final = tuple(crawler.name.lower() for crawler in table.TRAINING_CRAWLERS)
"""Product tokens of training crawlers, in lower case."""
_SIGNAL_LINES: Final = ("content-signal", "content-usage", "license")
"""Directives that are read here, besides allow and disallow."""

_ALLOW: Final = "allow"
_INDEX_PAGE: Final = "index.htm"
_MOST_LICENCES: Final = 5
_ABSOLUTE = re.compile("https?://", re.IGNORECASE)
_PARSERS: Final = {
    "content-signal": (table.CONTENT_SIGNAL, content_signals),
    "content-usage": (table.CONTENT_USAGE, content_usage),
}
_BYTES, _BYTES_A_RULE, _BYTES_A_STAR = 1500, 700, 70
"""Memory in bytes of an object with or without rules, of a rule besides its text, and of each ``*`` in it; a test
measures them."""

LIMIT: Final = 500 * 1024
"""Bytes of a robots.txt that are parsed; the rest is ignored (RFC 9309, 2.5, requires at least this many)."""

_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF_8_MARK = re.compile(rb"\xef(?:\xbb\xbf?)?")
"""A byte order mark, or the part of it that an editor has left."""
_LINE_END = re.compile(r"\r\n|\r|\n")
"""RFC 9309, 2.2: only these end a line, although Python accepts more."""
_NO_TEXT = re.compile("[\udc80-\udcff\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
"""Bytes that are not UTF-8, and Python's other line ends."""
_LINE = re.compile(
    r"(?P<agent>user[ -]?agent)|(?P<allow>allow)|(?P<disallow>disallow|dissallow|dissalow|disalow|diasllow|disallaw)"
    r"|(?:(?P<crawl_delay>crawl[ -]delay)|(?P<content_signal>content-signal)|(?P<content_usage>content-usage)"
    r"|(?P<license>license))(?=[\s:])",
    re.IGNORECASE,
)
"""Names of directives, with the misspellings that Google's parser accepts. It also accepts longer names that begin with
one."""
_AFTER_NAME = re.compile(r"[^\s:]*\s*:|\s+")
_LONGEST_LINE: Final = 8 * 2083 - 1
"""Most characters of a line that are read; the rest is ignored, as by Google's parser."""
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
"""The tag between lines of a robots.txt that an editor has converted to HTML."""
_OF_THE_RFC: Final = {"agent", "allow", "disallow"}
_RULES: Final = {"allow", "disallow", "content-usage"}
"""Lines that end a run of User-agent lines, and apply to all agents of the run. Content-Usage does too, because its
draft makes it a rule of the group (draft-ietf-aipref-attach, 3)."""
_SECONDS = re.compile(r"[0-9]+\.?[0-9]*|\.[0-9]+")
_MOZILLA = re.compile(r"mozilla/\S*\s*\(\s*compatible\s*;\s*(?P<name>[^\s;/()]+)", re.IGNORECASE)
_TOKEN = re.compile(r"[^\s;/(),]+")
_ROBOTS_TXT: Final = "/robots.txt"


def _may_fetch(lines: Iterable[Line]) -> PathRules:
    """Return the rules in a group's allow and disallow lines; for each path the first matching rule counts.

    Of an allow and a disallow of the same length the former counts (RFC 9309, 2.2.2). An allowed ``index.html`` allows
    its folder too, as in Google's parser.
    """
    rules = []
    for name, path in sorted((line for line in lines if line[0] in {_ALLOW, table.DISALLOW}), key=itemgetter(0)):
        rules.append((path, name))
        folder = path[: path.rfind("/") + 1]
        if name == _ALLOW and folder and path.startswith(_INDEX_PAGE, len(folder)):
            rules.append((f"{folder}$", name))
    return PathRules(rules)


def _size_of(rules: PathRules) -> int:
    """Return the memory of rules in bytes, roughly, and rather too much."""
    texts = [f"{rule.pattern.text}{rule.written}" for rule in rules.rules]
    return sum(_BYTES_A_RULE + 3 * len(text) + _BYTES_A_STAR * text.count("*") for text in texts)


class RobotsSignals:
    """The signals of a robots.txt about uses of pages, apart from the URLs that the crawler may fetch.

    Content-Signal and Content-Usage lines apply if they stand in the crawler's own group; if that does not mention a
    use, those in the group for all apply. Lines in no group, or in that of a training crawler, apply in addition. Of a
    group's rules for a use, those with the longest path count (draft-ietf-aipref-attach, 3.1).
    """

    def __init__(self, groups: Mapping[str, Sequence[Line]], crawler: str) -> None:
        """``groups``: lines by product token in lower case, ``*`` and _NO_GROUP. Only those of the crawler, also in
        lower case, and of training crawlers matter."""
        self._signals: list[tuple[str, str, PathRules]] = []
        """For each use: signal, addressee, and its rules."""
        for directive, (signal, parse) in _PARSERS.items():
            own = _uses(groups.get(crawler, ()), directive, parse)
            for agent in dict.fromkeys((crawler, ALL_AGENTS, _NO_GROUP, *_TRAINING)):
                for use, rules in _uses(groups.get(agent, ()), directive, parse).items():
                    is_strict = any(table.row_of(signal, value) for rule in rules.rules for value in rule.said)
                    if is_strict and (agent != ALL_AGENTS or use not in own):
                        self._signals.append((signal, ALL_AGENTS if agent == _NO_GROUP else agent, rules))
        self._crawlers: list[tuple[str, PathRules]] = []
        """Training crawlers and their rules; of several with equal rules the first."""
        told: list[list[tuple[str, tuple[str, ...]]]] = []
        for agent in _TRAINING:
            rules = _may_fetch(groups.get(agent, ()))
            lines = [(rule.pattern.text, rule.said) for rule in rules.rules]
            if any(table.DISALLOW in said for _, said in lines) and lines not in told:
                told.append(lines)
                self._crawlers.append((agent, rules))
        licences = [value for name, value in groups.get(_NO_GROUP, ()) if name == "license"]
        self._licences = [value for value in licences if _ABSOLUTE.match(value)][:_MOST_LICENCES]
        sizes = [_size_of(rules) for _, _, rules in self._signals] + [_size_of(rules) for _, rules in self._crawlers]
        sizes += [_BYTES_A_RULE + len(licence) for licence in self._licences]
        self.size = _BYTES + sum(sizes) if sizes else 0
        """Memory in bytes, roughly, and rather too much."""

    def __bool__(self) -> bool:
        return self.size > 0

    def of(self, url: str) -> list[Said]:
        """Return the signals that apply to a URL."""
        path = path_of(url)
        found = []
        for signal, agent, rules in self._signals:
            if rule := rules.of(path):
                values = [value for value in rule.said if table.row_of(signal, value)]
                found += [Said(signal, value, table.ROBOTS_TXT, rule.pattern.text, agent) for value in values]
        for agent, rules in self._crawlers:
            if (rule := rules.of(path)) and rule.said[0] == table.DISALLOW:
                found.append(Said(table.AI_CRAWLER, table.DISALLOW, table.ROBOTS_TXT, rule.pattern.text, agent))
                break
        return found + [Said(table.RSL, url, table.ROBOTS_TXT, "/") for url in self._licences]


def _uses(lines: Iterable[Line], directive: str, parse: Callable[[str], Iterator[str]]) -> dict[str, PathRules]:
    """Return the rules in a group's lines of one directive, by use."""
    found: dict[str, list[tuple[str, str]]] = {}
    for name, value in lines:
        if name == directive:
            path, text = _with_path(value)
            for said in parse(text):
                found.setdefault(said.partition("=")[0], []).append((path, said))
    return {use: PathRules(rules) for use, rules in found.items()}


def _with_path(value: str) -> tuple[str, str]:
    """Return the path of a rule, ``/`` if it has none, and the rest (draft-ietf-aipref-attach, 3)."""
    if not value.startswith("/"):
        return "/", value
    path, _, rest = value.replace("\t", " ").partition(" ")
    return path, rest.strip()


class Rules:
    """The rules of a robots.txt for one crawler, and its signals about uses of pages."""

    def __init__(self, lines: Iterable[Line] = (), signals: RobotsSignals | None = None) -> None:
        """``lines``: the directives of the crawler's own group; without any, all is allowed."""
        lines = list(lines)
        self._rules = _may_fetch(lines)
        self._signals = signals or None
        seconds = (float(value) for name, value in lines if name == "crawl-delay" and _SECONDS.fullmatch(value))
        self.crawl_delay = max(filter(math.isfinite, seconds), default=None)
        """Crawl-delay of the site in seconds, if it has one; the longest of several."""
        self.size = (_BYTES + _size_of(self._rules) if lines else 0) + (signals.size if signals else 0)
        """Memory in bytes, roughly, and rather too much."""

    def said(self, url: str) -> list[Said]:
        """Return the opt-outs that apply to a URL."""
        return [] if self._signals is None else self._signals.of(url)

    def allows(self, url: str) -> bool:
        """Return whether the URL may be fetched."""
        return self.line_against(url) is None

    def line_against(self, url: str) -> str | None:
        """Return the line that forbids a URL: the longest match (RFC 9309, 2.2.2); None if the URL is allowed, as
        robots.txt itself always is."""
        path = path_of(url)
        if path.partition("?")[0] == _ROBOTS_TXT:
            return None
        rule = self._rules.of(path)
        return None if rule is None or rule.said[0] != table.DISALLOW else f"{table.DISALLOW}: {rule.written}"


ALLOW_ALL: Final = Rules()


def parse(body: bytes, crawler: str) -> Rules:
    """Return the rules of a robots.txt for the crawler with this product token. Any bytes are accepted."""
    groups = groups_of(text_of(body), crawler)
    lines, signals = groups.get(crawler.lower(), groups.get("*", [])), RobotsSignals(groups, crawler.lower())
    return Rules(lines, signals) if lines or signals else ALLOW_ALL


def signals_of(body: bytes, crawler: str) -> RobotsSignals:
    """Return only the signals of a robots.txt about uses of pages, in a fraction of the time of :func:`parse`."""
    return RobotsSignals(groups_of(text_of(body), crawler), crawler.lower())


def text_of(body: bytes) -> str:
    """Return the text of the part that is parsed: as UTF-8, or as UTF-16 if a byte order mark says so.

    An invalid byte is percent-encoded, as in URLs. If the limit falls within a line, that line is left out, because the
    beginning of a path would forbid more than the site has written.
    """
    part = body[:LIMIT]
    if part.startswith(_UTF_16):
        text = part.decode("utf-16", "replace")
    else:
        mark = _UTF_8_MARK.match(part)
        text = part[mark.end() if mark else 0 :].decode("utf-8", "surrogateescape")
    if len(body) > LIMIT:
        text = text[: max(text.rfind("\n"), text.rfind("\r")) + 1]
    return _NO_TEXT.sub(_percent_encoded, text)


def groups_of(text: str, crawler: str) -> dict[str, list[Line]]:
    """Return directives by the crawler that they are for, a product token in lower case.

    The keys are the crawler, ``*`` for all, and crawlers that collect training data. _NO_GROUP has the lines outside of
    groups, and those that apply to all anywhere.

    A rule applies to all agents of a run of User-agent lines, which only rules end (RFC 9309, 2.2 and 2.2.4). Any other
    line applies to the agents named since the last directive other than User-agent. After ``User-agent: a``,
    ``Crawl-delay: 9``, ``User-agent: b`` and ``Disallow: /x`` the delay is for a, and the rule for both.
    """
    wanted = {crawler.lower(), "*", *_TRAINING}
    groups: dict[str, list[Line]] = {_NO_GROUP: []}
    run: set[str] | None = None
    named: set[str] = set()
    is_run_over = is_named = False
    """``is_run_over``: a rule has followed the last agent; ``is_named``: any directive has."""
    for name, value in _directives(text):
        if name == "agent":
            if run is None or is_run_over:
                run = set()
            if is_named:
                named = set()
            is_run_over = is_named = False
            agent = "*" if value.partition(" ")[0] == "*" else product_token(value).rstrip("*")
            if agent in wanted:
                run.add(agent)
                named.add(agent)
                groups.setdefault(agent, [])
            continue
        is_named, is_run_over = True, is_run_over or name in _RULES
        if not value:
            continue
        if name == "license" or (run is None and name in _SIGNAL_LINES):
            groups[_NO_GROUP].append((name, value))
        for agent in (run or ()) if name in _RULES else named:
            groups[agent].append((name, value))
    return groups


def product_token(user_agent: str) -> str:
    """Return the name in a user agent, in lower case: ``foobot`` for ``FooBot/1.0 (+https://foo.example)``.

    Also for ``Mozilla/5.0 (compatible; FooBot/1.0; ...)``. Empty if it has no name.
    """
    found = _MOZILLA.match(user_agent) or _TOKEN.match(user_agent.lstrip())
    return "" if found is None else (found["name"] if found.re is _MOZILLA else found[0]).lower()


def _directives(text: str) -> Iterator[tuple[str, str]]:
    """Yield name and value of each directive: ``agent``, ``allow``, ``disallow``, ``crawl-delay``, and _SIGNAL_LINES;
    others without name and value.

    A blank may replace the colon. In a directive of the RFC only the value may follow it then, because Google's parser
    takes other lines for prose.
    """
    for line in _LINE_END.split(text):
        line = line[:_LONGEST_LINE].partition("#")[0].strip()  # noqa: PLW2901
        if line.endswith(">"):
            line = _BREAK.split(line, 1)[0].rstrip()  # noqa: PLW2901
        if not line:
            continue
        name = _LINE.match(line)
        after = name and _AFTER_NAME.match(line, name.end())
        if name is None or not after:
            yield "", ""
            continue
        kind, value = str(name.lastgroup).replace("_", "-"), line[after.end() :].strip()
        if after[0].endswith(":") or kind not in _OF_THE_RFC or len(value.split(None, 1)) == 1:
            yield kind, value


def _percent_encoded(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "surrogateescape"))
