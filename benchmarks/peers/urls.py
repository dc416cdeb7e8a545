"""URLs: web-platform-tests, and the normalisers of crawler-commons and Nutch.

Expected results of others are put through :func:`normalise_url`, because a document key is a normal form by RFC 3986
of what browsers have; whatever decides where a URL leads must be the same.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.peers.results import Result
from crawl4llm.base.urls import BaseUrl, host_of, normalise_url, parse_url

_WEB: Final = ("http:", "https:")
_NORMALISED = re.compile(r'normalizeTest\(\s*(?:norm,\s*)?("(?:[^"\\]|\\.)*"),\s*("(?:[^"\\]|\\.)*")\)')


class Case(NamedTuple):
    """A case: what is given, what the suite expects, and what is made of it here; None for what is refused."""

    given: str
    expected: str | None
    here: str | None


KNOWN: Final[tuple[Callable[[Case], bool], ...]] = (
    lambda case: (case.here or "").replace("'", "%27") == case.expected,
    lambda case: _squeezed(case.here) == _squeezed(case.expected),
    lambda case: _without_user(case.here) == _without_user(case.expected),
    lambda case: _parameters(case.here) == _parameters(case.expected),
    lambda case: case.expected == "http:/",
    lambda case: not (case.here or case.expected or "").startswith(_WEB),
    lambda case: host_of(case.here or "") == f"{host_of(case.expected or '')}.",
    lambda case: case.expected == normalise_url(case.given.replace("ß", "ss")),
)
"""The differences that README.md here has, in its order."""


def run(folder: Path) -> list[Result]:
    """Run the suites that are found below a folder."""
    return [
        _result(f"{suite}, {path.name}", cases(path))
        for suite, name, cases in _SUITES
        for path in sorted(folder.rglob(name))
    ]


def _result(suite: str, cases: Iterable[Case]) -> Result:
    passed = known = 0
    failed: list[str] = []
    for case in cases:
        if case.here == case.expected:
            passed += 1
        elif any(explains(case) for explains in KNOWN):
            known += 1
        else:
            failed.append(f"{case.given!a}: {case.here!a} for {case.expected!a}")
    return Result(suite, passed, known, failed)


def _url_tests(path: Path) -> Iterator[Case]:
    """Yield the cases of urltestdata.json whose base, if they have one, is on the web."""
    for case in _objects(path):
        base = case.get("base")
        if base is None or base.startswith(_WEB):
            href = None if case.get("failure") or not case["href"].startswith(_WEB) else case["href"]
            here = parse_url(case["input"]) if base is None else BaseUrl(base).resolve(case["input"])
            yield Case(case["input"], href and normalise_url(href), here)


def _hosts(path: Path) -> Iterator[Case]:
    """Yield the cases of toascii.json and IdnaTestV2.json."""
    for case in _objects(path):
        url = f"http://{case['input']}/"
        yield Case(case["input"], case["output"] or None, None if parse_url(url) is None else host_of(url))


def _objects(path: Path) -> list[dict[str, Any]]:
    return [case for case in json.loads(path.read_bytes()) if isinstance(case, dict)]


def _normalised(path: Path) -> Iterator[Case]:
    for given, expected in _rows(path):
        yield Case(given, normalise_url(expected), normalise_url(given))


def _refused(path: Path) -> Iterator[Case]:
    for (given,) in _rows(path):
        yield Case(given, None, parse_url(given))


def _resolved(path: Path) -> Iterator[Case]:
    for reference, base, expected in _rows(path):
        here = BaseUrl(base).resolve(reference) if base.strip() else parse_url(reference)
        yield Case(reference, normalise_url(expected), here)


def _rows(path: Path) -> Iterator[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        lines = (line for line in file if line.strip() and not line.startswith("#"))
        for row in csv.reader(lines, skipinitialspace=True):
            yield [cell.strip() for cell in row]


def _java(path: Path) -> Iterator[Case]:
    """Yield the cases of a Java file that are two literals."""
    for match in _NORMALISED.finditer(path.read_text()):
        given, expected = (json.loads(literal) for literal in match.groups())
        yield Case(given, normalise_url(expected), normalise_url(given))


def _squeezed(url: str | None) -> str:
    return re.sub(r"(?<!:)/+", "/", url or "")


def _without_user(url: str | None) -> str:
    return re.sub("//[^/@]*@", "//", url or "")


def _parameters(url: str | None) -> tuple[str, list[str]]:
    """Return a URL as the normaliser of crawler-commons has it: parameters sorted, those without a name left out."""
    start, _, query = (url or "").partition("?")
    return start, sorted(one.removesuffix("=") for one in query.split("&") if one.partition("=")[0])


_WPT, _CRAWLER_COMMONS, _NUTCH = "web-platform-tests", "crawler-commons", "Nutch"
_SUITES: Final[tuple[tuple[str, str, Callable[[Path], Iterator[Case]]], ...]] = (
    (_WPT, "urltestdata.json", _url_tests),
    (_WPT, "toascii.json", _hosts),
    (_WPT, "IdnaTestV2.json", _hosts),
    (_CRAWLER_COMMONS, "wpt-urltestdata.json", _url_tests),
    (_CRAWLER_COMMONS, "weirdToNormalizedUrls.csv", _normalised),
    (_CRAWLER_COMMONS, "invalidUrls.csv", _refused),
    (_CRAWLER_COMMONS, "url-resolve.csv", _resolved),
    (_NUTCH, "TestBasicURLNormalizer.java", _java),
)
