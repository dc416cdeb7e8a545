"""robots.txt: the suites of Google (robotstxt, robotstxt-spec-test), crawler-commons, Nutch and Heritrix."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.peers.expressions import OTHER, Other, Unknown
from benchmarks.peers.results import Result
from benchmarks.peers.statements import Tests
from benchmarks.peers.words import words_of
from crawl4llm.live.sitemap_files import named_sitemaps
from crawl4llm.optouts.robots_rules import parse, product_token

_SITE: Final = "http://domain.com"
_UNSET: Final = "no Crawl-delay"
_MOZILLA = re.compile(r"Mozilla (\S+) ")

LEFT_OUT: Final = {
    "ID_VerifyValidUserAgentsToObey": "a check of the crawler's own name",
    "testStatusCodeCreation": "answers, of which tests/live/test_robots.py has tests",
    "testAcapFields": "warnings",
    "testExtendedStandard": "warnings",
    "testOverrideUserAgentMatcher": "a class of theirs is overridden",
    "testCompactSerialization": "their classes",
    "testGetNumWarningsBeforeParse": "warnings",
    "testGetEnabledExtensions": "their classes",
    "testParseRobots": "their classes",
    "testExtensionDataInToString": "their classes",
    "testExtensionEqualsAndHashCode": "their classes",
    "testSizeLimit": "their limit on size; tests/live/test_robots_rules.py has a test of ours",
    "ID_LinesNumbersAreCountedCorrectly": "numbers of lines",
    "ID_UTF8ByteOrderMarkIsSkipped": "numbers of lines; robotstxt-spec-test has the same as rules",
    "ID_NonStandardLineExample_Sitemap": "numbers of lines",
    "TestGetPathParamsQuery": "their functions",
    "TestMaybeEscapePattern": "their functions",
}
"""Tests that are not about what a robots.txt says, and why."""


_CONSTANTS: Final = {"UNSET_CRAWL_DELAY": _UNSET, "MIN_VALUE": _UNSET, "parser": OTHER}


class Robots(NamedTuple):
    """A robots.txt for a crawler."""

    body: bytes
    agent: str

    def allows(self, url: str) -> bool:
        """Return whether it allows a URL, which may be a path, or nothing."""
        if not url.startswith(("http://", "https://")):
            url = f"{_SITE}{url}"
        return parse(self.body, product_token(self.agent)).allows(url)


class Cases:
    """Counts the cases of one suite."""

    def __init__(self, suite: str, known: Mapping[str, str]) -> None:
        self._suite, self._known, self._passed = suite, known, 0
        self._differing: list[str] = []
        self.test: Callable[[], str] = lambda: ""
        """Name of the test that runs."""

    def note(self, what: str, *, passed: bool) -> None:
        """Count a case."""
        if passed:
            self._passed += 1
        else:
            self._differing.append(f"{self.test()}: {what}")

    def result(self, unread: list[str]) -> Result:
        """Return what became of all; what could not be read has failed."""
        differing = self._differing + [f"{case}: not read" for case in unread]
        failed = [case for case in differing if not case.startswith(tuple(self._known))]
        return Result(self._suite, self._passed, len(differing) - len(failed), failed)


def run(folder: Path) -> list[Result]:
    """Run the suites that are found below a folder."""
    found: list[Result] = []
    for name, suite in _SUITES.items():
        found += [_of_source(path, *suite) for path in sorted(folder.rglob(name))]
    specifications = sorted(folder.rglob("CTC/*/*.textproto"))
    return found + ([_of_specifications(specifications)] if specifications else [])


def _of_source(path: Path, suite: str, known: Mapping[str, str]) -> Result:
    """Run the tests of a source file."""
    cases = Cases(suite, known)
    is_c = path.suffix == ".cc"
    tests = Tests(path.read_text(), _calls(cases, path), _CONSTANTS, octets=is_c)
    cases.test = lambda: tests.test
    tests.run(LEFT_OUT)
    return cases.result(tests.unread)


def _calls(cases: Cases, path: Path) -> dict[str, Callable[..., Any]]:
    """Return what calls of the suites mean."""
    encoding = "latin-1" if path.suffix == ".cc" else "utf-8"

    def robots(names: Any, text: Any) -> Robots:
        if isinstance(names, str):
            names = names.split(",")
        if len(names) > 1:  # one crawler with several names
            raise Unknown
        body = text if isinstance(text, bytes) else text.encode(encoding)
        name = names[0] if names else "-"
        return Robots(body, found[1] if (found := _MOZILLA.match(name)) else name)

    def allowed(text: str, agent: str, url: str) -> Verdict:
        url = url.encode(encoding).decode("utf-8", "surrogateescape")
        return Verdict(robots([agent] if agent else [], text).allows(url), f"{agent} {url[:100]}")

    def is_true(value: Any, *_: Any, expected: bool = True) -> None:
        if isinstance(value, Verdict):
            cases.note(f"{value.about}: {_word(value.allowed)}", passed=value.allowed is expected)
        elif isinstance(value, bool):
            cases.note(f"{value}", passed=value is expected)
        elif not isinstance(value, Other):
            raise Unknown

    def is_false(value: Any, *_: Any) -> None:
        is_true(value, expected=False)

    def equal(expected: Any, value: Any, *_: Any) -> None:
        if isinstance(expected, (Verdict, Delay)) or isinstance(value, bool):
            expected, value = value, expected
        if isinstance(value, Verdict):
            is_true(value, expected=expected)
        elif isinstance(value, Delay):
            wanted = _UNSET if expected in {_UNSET, -1} else expected
            cases.note(f"{value.about}: {value.value}, not {wanted}", passed=value.value == wanted)
        elif isinstance(value, (int, str, list)):
            cases.note(f"{value}, not {expected}", passed=value == expected)
        elif not isinstance(value, Other):
            raise Unknown

    def of(*parts: Any) -> Any:
        """Map.of, Set.of or List.of."""
        if len(parts) % 2 == 0 and parts and not isinstance(parts[1], str):
            return list(zip(parts[::2], parts[1::2], strict=True))
        return list(parts)

    def delay(rules: Robots) -> Delay:
        seconds = parse(rules.body, product_token(rules.agent)).crawl_delay
        unit = 1 if "heritrix" in str(path) else 1000
        return Delay(_UNSET if seconds is None else seconds * unit, rules.agent)

    def same(value: Any, other: Any) -> Any:
        if isinstance(value, Delay):
            return Verdict(value.value == other, f"{value.about}: {value.value}")
        return value == other

    calls: dict[str, Callable[..., Any]] = {
        "IsUserAgentAllowed": allowed,
        "isUserAgentAllowed": allowed,
        "EXPECT_TRUE": is_true,
        "EXPECT_FALSE": is_false,
        "assertTrue": is_true,
        "assertFalse": is_false,
        "assertEquals": equal,
        "assertNull": lambda *_: None,
        "assertNotNull": lambda *_: None,
        "assertArrayEquals": lambda *_: None,
        "assertThrows": lambda *_: None,
        "StrCat": lambda *parts: "".join(parts),
        "string": str,
        "createRobotRules": lambda names, text, *_: robots(names, text),
        "parseContent": lambda _site, text, _kind, names: robots(names, text),
        "parseRules": lambda _site, text, _kind, names: robots(names, text),
        "SimpleRobotRulesParser": lambda: OTHER,
        "HttpRobotRulesParser": lambda: OTHER,
        "sanitizeRobotNames": lambda names: [name.lower() for name in names if name != "*"],
        "of": of,
        "asList": lambda *parts: list(parts),
        "==": same,
        "isAllowed": lambda rules, url: Verdict(rules.allows(url), f"{rules.agent} {url}"),
        "allows": lambda rules, url: Verdict(rules.allows(url), f"{rules.agent} {url}"),
        "getCrawlDelay": delay,
        "getSitemaps": lambda rules: named_sitemaps(rules.body, _SITE),
        "getKey": lambda pair: pair[0],
        "getValue": lambda pair: pair[1],
        "entrySet": lambda pairs: pairs,
        "readFile": lambda name: (path.parents[3] / "resources" / name.lstrip("/")).read_bytes(),
        "split": lambda text, pattern: re.split(pattern, text),
        # Heritrix's.
        "StringReader": lambda text: text,
        "BufferedReader": lambda reader: reader,
        "Robotstxt": lambda reader: reader,
        "getDirectivesFor": lambda text, agent, *_: robots(agent, text),
    }
    for name in _OF_NO_INTEREST:
        calls[name] = lambda *_: OTHER
    return calls


_OF_NO_INTEREST: Final = (
    *("isMatchedWildcard", "getRobotRules", "getExtensionData", "getExtensions", "getNumWarnings", "enableExtension"),
    *("enableAllExtensions", "getNamedUserAgents", "IsValidUserAgentToObey", "isDeferVisits"),
)
"""Methods whose results are about the classes of a peer."""


class Verdict(NamedTuple):
    """Whether a URL is allowed."""

    allowed: bool
    about: str


class Delay(NamedTuple):
    """A Crawl-delay."""

    value: Any
    about: str


def _word(allowed: bool) -> str:
    return "allowed here" if allowed else "forbidden here"


def _of_specifications(paths: list[Path]) -> Result:
    """Run robotstxt-spec-test: text in the format of protocol buffers."""
    cases = Cases("google/robotstxt-spec-test", _SPECIFICATION)
    for path in paths:
        cases.test = lambda path=path: path.stem  # type: ignore[misc]
        body, url, agent = b"", "", ""
        for name, value in _fields(path.read_text()):
            if name == "robotstxt":
                body = value.encode("latin-1")
            elif name == "testurl":
                url = value.encode("latin-1").decode()
            elif name == "useragent":
                agent = value
            elif name == "expected_outcome":
                allowed = Robots(body, agent).allows(url)
                cases.note(f"{agent} {url}: {_word(allowed)}", passed=allowed is (value == "ALLOWED"))
    return cases.result([])


def _fields(text: str) -> Iterator[tuple[str, str]]:
    """Yield names and values."""
    words = list(words_of(re.sub("(?m)^ *#.*", "", text), octets=True))
    for i, word in enumerate(words):
        if word.kind != "name" or i + 2 >= len(words) or words[i + 1].text != ":":
            continue
        if words[i + 2].kind == "name":
            yield word.text, words[i + 2].text
            continue
        end = i + 2
        while end < len(words) and words[end].kind == "text":
            end += 1
        yield word.text, "".join(one.value for one in words[i + 2 : end])


_NAMES = "one crawler has one name here, and a User-agent line too (RFC 9309, 2.2.1)"
_URLS = "a URL with other letters equals its percent-encoding, as in document keys"
_RESERVED = "%62 is b (RFC 9309, 2.2.2, table)"
_ALWAYS = "robots.txt itself is always allowed (RFC 9309, 2.2.2)"
_DIGITS = "digits belong to a crawler's name"
_GOOGLE: Final = {
    "GoogleOnly_AcceptUserAgentUpToFirstSpace: Foo Bar ": "a name has no blank: this is Foo's, which is allowed",
    "ID_Encoding: FooBot http://foo.bar/foo/bar/ツ": _URLS,
    "ID_Encoding: FooBot http://foo.bar/foo/bar/baz": _RESERVED,
}
_COMMONS: Final = {
    "testNutchCases: ": _NAMES,
    "testNutchCases2: Agent3 ": _NAMES,
    "testMultiAgentNames: crawler2 ": _NAMES,
    "testSpacesInMultipleUserAgentNames: T": _NAMES,
    "testMatchingUserAgentNamesHttpHeader: assert": _NAMES,
    "testMatchingUserAgentNamesHttpHeader: butterfly ": "the name in a Mozilla/5.0 (compatible; ...) is read",
    "testBigCrawlDelay: bixo ": "the owner is parked",
    "testDirectiveTypos: bot1 http://domain.com/desallow/": "misspelt names are Google's",
    "testDirectiveTypos: bot3 ": "misspelt names are Google's",
    "testSitemap: ": "a URL alone on its line is no Sitemap line",
    "testAPIsanitizeUserAgentList: assertThrows": "their interface",
}
_SPECIFICATION: Final = {
    "non-ascii-paths: FooBot http://foo.bar/foo/bar/ツ": _URLS,
    "non-ascii-paths: FooBot http://foo.bar/foo/bar/baz": _RESERVED,
    "user-agent-name: Foo Bar ": "a name has no blank",
    "327748: asdfbot http://m.example.com/robots.txt": _ALWAYS,
    "369883: BarBot http://example.com/robots.txt": _ALWAYS,
    "369883: AB http://example.com/robots.txt": _ALWAYS,
    "860237: XYZ http://example.com/robots.txt": _ALWAYS,
    "369883: AB42bot ": _DIGITS,
    "369883: AB http://example.com/": _DIGITS,
}
_HERITRIX: Final = {"testSeparatedSections: c /foo": "a Crawl-delay does not end a group (RFC 9309, 2.2.4)"}
_NUTCH: Final = {
    "testRobotsAgent: assertEquals": _NAMES,
    "testRobotsAgentDeprecatedAPIMethod: assertEquals": _NAMES,
}
_SUITES: Final = {
    "robots_test.cc": ("google/robotstxt", _GOOGLE),
    "SimpleRobotRulesParserTest.java": ("crawler-commons, robots", _COMMONS),
    "GoogleRobotsTxtTest.java": ("crawler-commons, Google's tests", {}),
    "TestRobotRulesParser.java": ("Nutch, robots", _NUTCH),
    "RobotstxtTest.java": ("Heritrix, robots", _HERITRIX),
}
"""By name of a source file: the suite, and its cases with a known difference, by how they begin, and why."""
