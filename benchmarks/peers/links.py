"""Links of pages: the tests of Scrapy's link extractor and of Nutch's DOMContentUtils.

Their pages are literals of the tests; a case is a URL that a test expects of a page.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.peers.results import Result
from crawl4llm.base.html_tree import HtmlTree, html_links
from crawl4llm.base.urls import normalise_url

_LITERAL: Final = r'"(?:[^"\\]|\\.)*"'
_STRINGS = re.compile(rf"new String\(\s*({_LITERAL}(?:\s*\+\s*{_LITERAL})*)\)")
_OUTLINK = re.compile(rf"new Outlink\(({_LITERAL}),")
_COMMENT = re.compile(rf"({_LITERAL})|//[^\n]*")
_NO_LINKS = re.compile(
    r"<(?:div|form|frame|iframe|img|p|source|video)\b[^>]*(?:action|data-url|href|src)\s*=", re.IGNORECASE
)
"""Elements that refer to something, and do not link here; README.md here has why."""
_OF_THE_USER: Final = {"http://example.org/other/page.html", "https://example.com/p?a=1&b=2"}
"""URLs made by a function that is given to Scrapy's extractor, or by ``canonicalize=True``."""


class Page(NamedTuple):
    """A page, and the URLs that a test expects of it."""

    url: str
    html: str
    expected: list[str]
    charset: str = "utf-8"


def run(folder: Path) -> list[Result]:
    """Run the suites that are found below a folder."""
    scrapy = [
        _result("Scrapy, test_linkextractors.py", _scrapy(path)) for path in folder.rglob("test_linkextractors.py")
    ]
    nutch = sorted(folder.rglob("parse-html/**/TestDOMContentUtils.java"))
    return scrapy + [_result("Nutch, TestDOMContentUtils.java", _nutch(path)) for path in nutch]


def _result(suite: str, pages: Iterable[Page]) -> Result:
    passed = known = 0
    failed: list[str] = []
    for page in pages:
        found = {link.url for link in html_links(HtmlTree(page.html.encode()), page.url, page.charset)} | {
            normalise_url(page.url)
        }
        for url in page.expected:
            if normalise_url(url) in found:
                passed += 1
            elif url in _OF_THE_USER or not url.startswith("http") or _NO_LINKS.search(page.html):
                known += 1
            else:
                failed.append(f"{page.url} {page.html[:200]!r}: {url}")
    return Result(suite, passed, known, failed)


def _scrapy(path: Path) -> Iterator[Page]:
    """Yield the pages of functions: the last literal that has a tag is the page, each ``Link(url=...)`` is expected."""
    of_all = (path.parent / "sample_data/link_extractor/linkextractor.html").read_text()
    for function in ast.walk(ast.parse(path.read_text())):
        if not isinstance(function, ast.FunctionDef):
            continue
        html, url, expected, charset = of_all, "http://example.com/index", list[str](), "utf-8"
        for node in ast.walk(function):
            if isinstance(node, ast.Constant) and isinstance(node.value, bytes) and b"<" in node.value:
                html = node.value.decode("latin-1")
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                given = {word.arg: word.value for word in node.keywords}
                values = [one.value for one in (*node.args[:1], given.get("url")) if isinstance(one, ast.Constant)]
                if node.func.id == "HtmlResponse" and values:
                    url = str(values[0])
                    if isinstance(encoding := given.get("encoding"), ast.Constant):
                        charset = str(encoding.value)
                elif node.func.id == "Link" and values:
                    expected.append(str(values[0]))
        yield Page(url, html.encode("latin-1", "replace").decode(charset, "replace"), expected, charset)


def _nutch(path: Path) -> Iterator[Page]:
    """Yield the pages of three lists: pages, their URLs, and what is expected of each."""
    source = _COMMENT.sub(lambda found: found[1] or "", path.read_text())
    pages = ["".join(map(json.loads, re.findall(_LITERAL, found[1]))) for found in _STRINGS.finditer(source)]
    urls = re.findall(_LITERAL, source.partition("testBaseHrefs = {")[2].partition("}")[0])
    answers = source.partition("answerOutlinks = new Outlink[][] {")[2].partition("} };")[0].split("},")
    for html, url, answer in zip(pages, urls, answers, strict=False):
        yield Page(json.loads(url), html, [json.loads(found[1]) for found in _OUTLINK.finditer(answer)])
