"""The rules of a robots.txt for one crawler, by RFC 9309: bytes in, what may be fetched out.

Google's parser (github.com/google/robotstxt) decides what the RFC leaves open. Scrapy's, protego, differs: any
directive ends a run of User-agent lines, against 2.2.4 of the RFC. It finds names of crawlers within others, and a
``%`` without two hexadecimal digits does not equal ``%25``.
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from crawl4llm.optouts.patterns import path_of
from crawl4llm.optouts.robots_lines import NO_GROUP, SIGNAL_LINES, TRAINING, RobotsSignals, may_fetch, size_of
from crawl4llm.optouts.table import DISALLOW

if TYPE_CHECKING:
    from crawl4llm.optouts.robots_lines import Line
    from crawl4llm.optouts.said import Said

LIMIT: Final = 500 * 1024
"""Bytes of a robots.txt that are parsed; the rest is ignored (RFC 9309, 2.5, asks for so many at least)."""

_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF_8_MARK = re.compile(rb"\xef(?:\xbb\xbf?)?")
"""A byte order mark, or what an editor has left of it."""
_LINE_END = re.compile(r"\r\n|\r|\n")
"""RFC 9309, 2.2: these end a line, and nothing else that Python takes for a line's end."""
_NO_TEXT = re.compile("[\udc80-\udcff\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
"""Bytes that are not UTF-8, and the other ends of lines."""
_LINE = re.compile(
    r"(?P<agent>user[ -]?agent)|(?P<allow>allow)|(?P<disallow>disallow|dissallow|dissalow|disalow|diasllow|disallaw)"
    r"|(?:(?P<crawl_delay>crawl[ -]delay)|(?P<content_signal>content-signal)|(?P<content_usage>content-usage)"
    r"|(?P<license>license))(?=[\s:])",
    re.IGNORECASE,
)
"""Names of directives, misspelt ones as Google's parser takes them. It also takes longer names that begin so."""
_AFTER_NAME = re.compile(r"[^\s:]*\s*:|\s+")
_LONGEST_LINE: Final = 8 * 2083 - 1
"""Characters of a line that are read; the rest is ignored, as by Google's parser."""
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
"""The tag that ends the lines of a robots.txt if an editor has made HTML of it."""
_OF_THE_RFC: Final = {"agent", "allow", "disallow"}
_RULES: Final = {"allow", "disallow", "content-usage"}
"""Lines that end a run of User-agent lines, and hold for all agents of the run. Content-Usage does too, since its draft
makes it a rule of the group (draft-ietf-aipref-attach, 3)."""
_SECONDS = re.compile(r"[0-9]+\.?[0-9]*|\.[0-9]+")
_MOZILLA = re.compile(r"mozilla/\S*\s*\(\s*compatible\s*;\s*(?P<name>[^\s;/()]+)", re.IGNORECASE)
_TOKEN = re.compile(r"[^\s;/(),]+")
_ROBOTS_TXT: Final = "/robots.txt"
_BYTES_OF_RULES: Final = 1500
"""Memory of what is parsed without any rule; a test measures it."""


class Rules:
    """What a robots.txt lets one crawler do, and what it says of the uses of pages."""

    def __init__(self, lines: Iterable[Line] = (), signals: RobotsSignals | None = None) -> None:
        """Take the directives of the crawler's own group; without any, all is allowed."""
        lines = list(lines)
        self._rules = may_fetch(lines)
        self._signals = signals or None
        self.crawl_delay = max(_delays(lines), default=None)
        """Seconds that the site asks to be left alone between two requests, if it does; of several the most."""
        self.size = _BYTES_OF_RULES + size_of(self._rules) if lines else 0
        if signals:
            self.size += signals.size
        """Bytes of memory, roughly, and rather too many."""

    @property
    def has_signals(self) -> bool:
        """Whether there are opt-outs for any URL."""
        return self._signals is not None

    def said(self, url: str) -> list[Said]:
        """Return the opt-outs that hold for a URL."""
        return [] if self._signals is None else self._signals.of(url)

    def allows(self, url: str) -> bool:
        """Return whether the URL may be fetched."""
        return self.line_against(url) is None

    def line_against(self, url: str) -> str | None:
        """Return the line that forbids a URL: the longest of those that match it (RFC 9309, 2.2.2); None if it is
        allowed, as robots.txt itself always is."""
        path = path_of(url)
        if path.partition("?")[0] == _ROBOTS_TXT:
            return None
        rule = self._rules.of(path)
        return None if rule is None or rule.said[0] != DISALLOW else f"{DISALLOW}: {rule.written}"


def _delays(lines: Iterable[Line]) -> Iterator[float]:
    for name, value in lines:
        if name == "crawl-delay" and _SECONDS.fullmatch(value) and math.isfinite(seconds := float(value)):
            yield seconds


ALLOW_ALL: Final = Rules()


def parse(body: bytes, crawler: str) -> Rules:
    """Return the rules of a robots.txt for the crawler with this product token. Any bytes give some."""
    groups = groups_of(text_of(body), crawler)
    lines, signals = _own(groups, crawler), RobotsSignals(groups, crawler.lower())
    return Rules(lines, signals) if lines or signals else ALLOW_ALL


def signals_of(body: bytes, crawler: str) -> RobotsSignals:
    """Return what a robots.txt says of the uses of pages alone, in a fraction of the time of :func:`parse`."""
    return RobotsSignals(groups_of(text_of(body), crawler), crawler.lower())


def text_of(body: bytes) -> str:
    """Return the text of the part that is parsed: of UTF-8, or UTF-16 where a byte order mark says so.

    A byte that is neither is percent-encoded, as it is in URLs. Where the limit falls within a line, that is left out:
    the beginning of a path would forbid more than the site has written.
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

    They are those for the crawler, for all (``*``), and for crawlers that collect training data. NO_GROUP has the
    lines outside of groups, and those that hold for all wherever they stand.

    A rule is for all agents of a run of User-agent lines, which only rules end (RFC 9309, 2.2 and 2.2.4). Any other
    line is for the agents that were named since the last directive that is no User-agent line. After ``User-agent: a``,
    ``Crawl-delay: 9``, ``User-agent: b`` and ``Disallow: /x`` the delay is for a, and the rule for both.
    """
    wanted = {crawler.lower(), "*", *TRAINING}
    groups: dict[str, list[Line]] = {NO_GROUP: []}
    run: set[str] | None = None
    named: set[str] = set()
    is_run_over = is_named = False
    """A rule has come since the last agent; any directive has."""
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
        if name == "license" or (run is None and name in SIGNAL_LINES):
            groups[NO_GROUP].append((name, value))
        for agent in (run or ()) if name in _RULES else named:
            groups[agent].append((name, value))
    return groups


def _own(groups: dict[str, list[Line]], crawler: str) -> list[Line]:
    return groups.get(crawler.lower(), groups.get("*", []))


def product_token(user_agent: str) -> str:
    """Return the name in a user agent, in lower case: ``foobot`` of ``FooBot/1.0 (+https://foo.example)``.

    Also of ``Mozilla/5.0 (compatible; FooBot/1.0; ...)``. Empty where there is none.
    """
    found = _MOZILLA.match(user_agent) or _TOKEN.match(user_agent.lstrip())
    return "" if found is None else (found["name"] if found.re is _MOZILLA else found[0]).lower()


def _directives(text: str) -> Iterator[tuple[str, str]]:
    """Yield name and value of each directive: ``agent``, ``allow``, ``disallow``, ``crawl-delay``, and SIGNAL_LINES;
    others without name and value.

    A blank may stand for the colon. In a line of the RFC nothing but the value may follow it then: Google's parser
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
