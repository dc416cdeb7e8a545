"""crawler-commons' tests of its sitemap parser: how many URLs each sitemap in them has.

The sitemaps are files beside the tests, or text that a test puts together in Java: calls of ``append`` and string
literals are followed, as far as these tests go.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.peers.results import Result
from crawl4llm.live.sitemap_files import read_sitemap

SUITE: Final = "crawler-commons: sitemaps"
KNOWN: Final = {
    "testSitemapXXEWithDocTypeAllowed": "a document type ends the reading, always",
    "testSitemapTXTfilterUrls": "a line of text that has no scheme is no URL",
    "testSitemapParserBrokenXml": "XML is read up to its first fault",
    "testMissingLocSitemapIndexFile": "a URL stands in an element loc",
    "testLenientParser": "a sitemap may list any URL of its owner",
    "testAtomFormat": "each alternate link of an entry counts",
    "testRSSFormat": "an item without a link has no page: guid is passed over",
    "testPartialSitemapsAllowed": "a URL that is cut short may be another",
}
"""Differences that remain on purpose, by test; README.md here has them with their reasons."""
_FOLDER: Final = "crawler-commons/src/test/java/crawlercommons/sitemaps"
_TESTS: Final = ("SiteMapParserTest.java", "SiteMapParserExtensionTest.java")
_METHOD = re.compile(r"\n    @Test\s+public void (\w+)\(.*?(?=\n    (?:@Test|private|/\*\*|protected)|\Z)", re.DOTALL)
_LITERAL: Final = r'"(?:[^"\\]|\\.)*"'
_STEP = re.compile(
    rf"""(?P<empty>new\ StringBuilder\(|String\ \w*content\ =)
    |(?P<named>(?:getResourceAsBytes\(|parse\(parser,\ )(?P<path>{_LITERAL}))
    |(?P<default>getXMLSitemapAsBytes\()
    |URL\ url\ =\ new\ URI\((?P<url>{_LITERAL})
    |(?P<throws>assertThrows\()
    |assertEquals\((?P<size>\d+),\ [^;\n]*?\.(?:getSiteMapUrls|getSitemaps)\(\)\.size\(\)
    |(?P<literal>{_LITERAL})""",
    re.VERBOSE,
)
_OF_URL: Final = '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'


class Case(NamedTuple):
    """A sitemap, and how many URLs a test expects of it; None for what is no sitemap."""

    test: str
    data: bytes
    url: str
    size: int | None


def run(folder: Path) -> list[Result]:
    """Return the result of the tests in a folder with a checkout of crawler-commons; nothing if there is none."""
    sources = [path for name in _TESTS if (path := folder / _FOLDER / name).exists()]
    if not sources:
        return []
    passed, known, failed = 0, 0, list[str]()
    for source in sources:
        for case in _cases(source.read_text("utf-8"), folder / "crawler-commons"):
            found = read_sitemap(case.data, case.url, 1000, lambda _: True)
            size = None if found is None else len(found.pages) + len(found.maps)
            if size == case.size:
                passed += 1
            elif case.test in KNOWN:
                known += 1
            else:
                failed.append(f"{case.test}: {size} URLs instead of {case.size}")
    return [Result(SUITE, passed, known, failed)]


def _cases(java: str, root: Path) -> Iterator[Case]:
    """Yield the cases of a file of tests."""
    urls = (
        re.findall(rf"\{{ ({_LITERAL}), ", java[java.find("SITEMAP_URLS = {") :]) if "SITEMAP_URLS = {" in java else []
    )
    locs = "".join(f"<url><loc>{json.loads(url)}</loc></url>" for url in urls)
    for method in _METHOD.finditer(java):
        data, url, throws = b"", "http://www.example.com/sitemap.xml", False
        for step in _STEP.finditer(method[0]):
            if step["empty"]:
                data = b""
            elif step["named"]:
                data = (root / json.loads(step["path"])).read_bytes()
            elif step["default"]:
                data += f"{_OF_URL}{locs}</urlset>".encode()
            elif step["url"]:
                url = json.loads(step["url"])
            elif step["throws"]:
                throws = True
            elif step["size"]:
                yield Case(method[1], data, url, int(step["size"]))
            elif _is_content(method[0], step.start()):
                data += json.loads(step["literal"]).encode()
        if throws:
            yield Case(method[1], data, url, None)


def _is_content(java: str, at: int) -> bool:
    """Return whether a literal is a part of a sitemap: an argument of append, or what a text begins with."""
    before = java[:at].rstrip()
    return before.endswith((".append(", "content =")) or (
        before.endswith("+") and ".append(" in before.rpartition(";")[2]
    )
