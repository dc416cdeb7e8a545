"""The rules of a robots.txt for one crawler, by RFC 9309: bytes in, what may be fetched out.

Groups are told apart here, paths are matched by protego. That matches names of crawlers by their beginnings, lets any
directive end the head of a group (RFC 9309, 2.2.4, does not), and holds the rules for all other crawlers in memory too.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import unquote

from protego import Protego

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
    r"|(?P<delay>crawl[ -]delay)",
    re.IGNORECASE,
)
"""Names of directives, misspelt ones as protego and Google's parser take them."""
_AFTER_NAME = re.compile(r"\s*:\s*|\s+|\Z")
_MOZILLA = re.compile(r"mozilla/\S*\s*\(\s*compatible\s*;\s*(?P<name>[^\s;/()]+)", re.IGNORECASE)
_TOKEN = re.compile(r"[^\s;/(),]+")
_BEFORE_PATH = re.compile(r"[^/]*//[^/?#]*|#.*")
_LONGEST_SEARCHED: Final = 1 << 16
"""Characters of rules in which the one that forbids a URL is looked for; that takes a millisecond."""
_BYTES_OF_RULES, _BYTES_A_RULE, _BYTES_A_STAR = 3000, 1000, 70
"""Memory of what is parsed without any rule, of a rule besides its text, and of each ``*`` in it; a test measures."""


class Rules:
    """What a robots.txt lets one crawler do."""

    def __init__(self, lines: Iterable[tuple[str, str]] = ()) -> None:
        """Take the directives of the crawler's own group; without any, all is allowed."""
        lines = list(lines)
        text = "".join(f"{name}:{value}\n" for name, value in lines)
        self._text = text
        self._parsed = Protego.parse(f"user-agent:*\n{text}") if lines else None
        self.size = _BYTES_OF_RULES + sum(_size(value) for _, value in lines) if lines else 0
        """Bytes of memory, roughly, and rather too many."""

    def allows(self, url: str) -> bool:
        """Return whether the URL may be fetched."""
        return self._parsed is None or self._parsed.can_fetch(url, "*")

    def line_against(self, url: str) -> str:
        """Return the line that forbids a URL: of those that match it the longest (RFC 9309, 2.2.2).

        Of a file whose rules are too many to be gone through for each URL, a description.
        """
        if len(self._text) > _LONGEST_SEARCHED:
            return f"the longest that matches of {self._text.count(chr(10)):,} lines"
        path = "/" + unquote(_BEFORE_PATH.sub("", url)).removeprefix("/")
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
    lines = list(group_of(text_of(body), crawler))
    return Rules(lines) if lines else ALLOW_ALL


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

    All groups that name its product token count as one; if there are none, those for ``*`` (RFC 9309, 2.2.1). Only
    allow and disallow lines end the head of a group (2.2 and 2.2.4).
    """
    crawler = crawler.lower()
    named = False
    own: list[tuple[str, str]] = []
    of_all: list[tuple[str, str]] = []
    agents: set[str] = set()
    in_head = False
    for name, value in _directives(text):
        if name == "agent":
            if not in_head:
                agents, in_head = set(), True
            agents.add("*" if value.partition(" ")[0] == "*" else product_token(value).rstrip("*"))
            named = named or crawler in agents
            continue
        in_head = in_head and name == "crawl-delay"
        if value and crawler in agents:
            own.append((name, value))
        elif value and "*" in agents:
            of_all.append((name, value))
    yield from own if named else of_all


def product_token(user_agent: str) -> str:
    """Return the name in a user agent, in lower case: ``foobot`` of ``FooBot/1.0 (+https://foo.example)``.

    Also of ``Mozilla/5.0 (compatible; FooBot/1.0; ...)``. Empty where there is none.
    """
    found = _MOZILLA.match(user_agent) or _TOKEN.match(user_agent.lstrip())
    return "" if found is None else (found["name"] if found.re is _MOZILLA else found[0]).lower()


def _directives(text: str) -> Iterator[tuple[str, str]]:
    """Yield the lines that say something of interest here: ``agent``, ``allow``, ``disallow`` or ``crawl-delay``."""
    for line in map(str.strip, _LINE_END.split(text)):
        name = _LINE.match(line)
        after = name and _AFTER_NAME.match(line, name.end())
        if name is not None and after:
            kind = str(name.lastgroup).replace("delay", "crawl-delay")
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
