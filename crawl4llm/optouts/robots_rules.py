"""The rules of a robots.txt for one crawler, by RFC 9309: bytes in, what may be fetched out.

Groups are told apart here, paths are matched by protego. That matches names of crawlers by their beginnings, lets any
directive end the head of a group (RFC 9309, 2.2.4, does not), and holds the rules for all other crawlers in memory too.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from protego import Protego

from crawl4llm.optouts.robots_lines import NO_GROUP, SIGNAL_LINES, TRAINING, RobotsSignals

if TYPE_CHECKING:
    from crawl4llm.optouts.robots_lines import Line
    from crawl4llm.optouts.said import Said

LIMIT: Final = 500 * 1024
"""Bytes of a robots.txt that are parsed; the rest is ignored (RFC 9309, 2.5, asks for so many at least)."""

_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF_8_MARK = re.compile(rb"\xef(?:\xbb\xbf?)?")
"""A byte order mark, or what an editor has left of it."""
_LINE_END = re.compile(r"\r\n|\r|\n")
"""RFC 9309, 2.2: these end a line, and nothing else that Python and protego take for a line's end."""
_NO_TEXT = re.compile("[\udc80-\udcff\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
"""Bytes that are not UTF-8, and the other ends of lines."""
_LINE = re.compile(
    r"(?P<agent>user[ -]?agent)|(?P<allow>allow)|(?P<disallow>disallow|dissallow|dissalow|disalow|diasllow|disallaw)"
    r"|(?P<crawl_delay>crawl[ -]delay)|(?P<content_signal>content-signal)|(?P<content_usage>content-usage)"
    r"|(?P<license>license)",
    re.IGNORECASE,
)
"""Names of directives, misspelt ones as protego and Google's parser take them."""
_AFTER_NAME = re.compile(r"\s*:\s*|\s+|\Z")
_WITHIN_HEADS: Final = {"crawl-delay", "content-signal", "license"}
"""Lines that do not end the head of a group: RFC 9309 (2.2.4) has them as records of others. Content-Usage does: its
draft makes it a rule."""
_MOZILLA = re.compile(r"mozilla/\S*\s*\(\s*compatible\s*;\s*(?P<name>[^\s;/()]+)", re.IGNORECASE)
_TOKEN = re.compile(r"[^\s;/(),]+")
_AROUND_PATH = re.compile(r"\A[^/]*//[^/?#]*|#.*")
_LONGEST_SEARCHED: Final = 1 << 16
"""Characters of rules in which the one that forbids a URL is looked for; that takes a millisecond."""
_BYTES_OF_RULES, _BYTES_A_RULE, _BYTES_A_STAR = 3000, 1000, 70
"""Memory of what is parsed without any rule, of a rule besides its text, and of each ``*`` in it; a test measures."""


class Rules:
    """What a robots.txt lets one crawler do, and what it says of the uses of pages."""

    def __init__(self, lines: Iterable[Line] = (), signals: RobotsSignals | None = None) -> None:
        """Take the directives of the crawler's own group; without any, all is allowed."""
        lines = [line for line in lines if line[0] not in SIGNAL_LINES]
        self._signals = signals or None
        text = "".join(f"{name}:{value}\n" for name, value in lines)
        self._text = text
        self._parsed = Protego.parse(f"user-agent:*\n{text}") if lines else None
        self.size = _BYTES_OF_RULES + sum(_size(value) for _, value in lines) if lines else 0
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
        return self._parsed is None or self._parsed.can_fetch(url, "*")

    def line_against(self, url: str) -> str:
        """Return the line that forbids a URL: of those that match it the longest (RFC 9309, 2.2.2).

        Of a file whose rules are too many to be gone through for each URL, a description.
        """
        if len(self._text) > _LONGEST_SEARCHED:
            return f"the longest that matches of {self._text.count(chr(10)):,} lines"
        path = "/" + unquote(_AROUND_PATH.sub("", url)).removeprefix("/")
        rules = (line.partition(":")[2] for line in self._text.splitlines() if line.startswith("disallow"))
        matching = sorted((rule for rule in rules if _matches(unquote(rule), path)), key=len, reverse=True)
        # What is percent-encoded is compared more exactly by protego, whose word counts.
        found = next((rule for rule in matching if not Rules([("disallow", rule)]).allows(url)), None)
        return "disallow" if found is None else f"disallow: {found}"

    @property
    def crawl_delay(self) -> float | None:
        """Seconds that the site asks to be left alone between two requests, if it does."""
        return None if self._parsed is None else self._parsed.crawl_delay("*")


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


def group_of(text: str, crawler: str) -> Iterator[tuple[str, str]]:
    """Yield the directives, as name and value, that are for a crawler.

    All groups that name its product token count as one; if there are none, those for ``*`` (RFC 9309, 2.2.1).
    """
    yield from _own(groups_of(text, crawler), crawler)


def groups_of(text: str, crawler: str) -> dict[str, list[Line]]:
    """Return the directives that are for a crawler, for all (``*``), and for those that collect training data, by
    product token in lower case; and those that stand outside of groups, or hold for all wherever they stand
    (NO_GROUP). Only rules end the head of a group (2.2 and 2.2.4).
    """
    wanted = {crawler.lower(), "*", *TRAINING}
    groups: dict[str, list[Line]] = {NO_GROUP: []}
    agents: set[str] | None = None
    in_head = False
    for name, value in _directives(text):
        if name == "agent":
            if not in_head or agents is None:
                agents, in_head = set(), True
            agent = "*" if value.partition(" ")[0] == "*" else product_token(value).rstrip("*")
            if agent in wanted:
                agents.add(agent)
                groups.setdefault(agent, [])
            continue
        in_head = in_head and name in _WITHIN_HEADS
        if not value:
            continue
        if name == "license" or (agents is None and name in SIGNAL_LINES):
            groups[NO_GROUP].append((name, value))
        for agent in agents or ():
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
    """Yield the lines that say something of interest here: ``agent``, ``allow``, ``disallow``, ``crawl-delay``, and
    SIGNAL_LINES."""
    for line in map(str.strip, _LINE_END.split(text)):
        name = _LINE.match(line)
        after = name and _AFTER_NAME.match(line, name.end())
        if name is not None and after:
            kind = str(name.lastgroup).replace("_", "-")
            yield kind, line[after.end() :].partition("#")[0].strip()


def _matches(rule: str, path: str) -> bool:
    """Return whether a rule with ``*`` and ``$`` (RFC 9309, 2.2.3) matches a path."""
    first, *others = rule.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    at = len(first)
    for part in others[:-1] if rule.endswith("$") else others:
        if (found := path.find(part, at)) < 0:
            return False
        at = found + len(part)
    if not rule.endswith("$"):
        return True
    return path.endswith(others[-1], at) if others else at == len(path)


def _size(value: str) -> int:
    """Return the memory of a rule; protego makes two of one with a ``$``."""
    return (6 * len(value) + _BYTES_A_STAR * value.count("*") + _BYTES_A_RULE) * (2 if "$" in value else 1)


def _percent_encoded(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "surrogateescape"))
