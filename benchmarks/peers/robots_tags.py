"""X-Robots-Tag and robots metas: tests of StormCrawler and Nutch, asked for what these call index, follow and cache."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from benchmarks.peers.expressions import Unknown
from benchmarks.peers.results import Result
from benchmarks.peers.robots import Cases, Verdict
from benchmarks.peers.statements import Tests
from crawl4llm.optouts.html_meta import said_in_html
from crawl4llm.optouts.said import Said, decide
from crawl4llm.optouts.table import Action
from crawl4llm.optouts.values import said_in_head

_CRAWLER: Final = "testbot"
_NAMES: Final = {"isNoIndex": Action.EXPORT, "isNoFollow": Action.EXPAND, "isNoCache": Action.ARCHIVE}
"""What forbids here what a peer calls so."""
_NONE = "none is noindex and nofollow, as Google's documentation says, and not noarchive"
_PRAGMA = "Pragma: no-cache is about caches between a server and a browser, and not about archives"
KNOWN: Final = {
    "testHTTPHeaders: none: isNoCache": _NONE,
    "metas: none: isNoCache": _NONE,
    "metas: pragma: isNoCache": _PRAGMA,
}
"""Cases with a known difference, by how they begin, and why."""


def run(folder: Path) -> list[Result]:
    """Run the suites that are found below a folder."""
    found = [_of_heads(path) for path in sorted(folder.rglob("RobotsTagsTest.java"))]
    found += [_of_metas(path, "StormCrawler, metas") for path in sorted(folder.rglob("JSoupParserBoltTest.java"))]
    for path in sorted(folder.rglob("TestRobotsMetaProcessor.java")):
        found.append(_of_metas(path, f"Nutch, {path.parent.name} metas"))
    return found


def _of_heads(path: Path) -> Result:
    cases = Cases("StormCrawler, X-Robots-Tag", KNOWN)

    def tags(fields: list[tuple[str, str]], *_: Any) -> list[tuple[str, str]]:
        return fields

    def equal(expected: bool, verdict: Any, *_: Any) -> None:
        if not isinstance(verdict, Verdict):
            raise Unknown
        cases.note(verdict.about, passed=verdict.allowed is expected)

    def asked(name: str) -> Callable[[list[tuple[str, str]]], Verdict]:
        def method(fields: list[tuple[str, str]]) -> Verdict:
            said = said_in_head([(field.encode(), value.encode()) for field, value in fields], _CRAWLER)
            return Verdict(_forbids(said, name), f"{', '.join(value for _, value in fields)}: {name}")

        return method

    calls: dict[str, Callable[..., Any]] = {
        "Metadata": list,
        "setValue": lambda fields, name, value: fields.append((name, value)),
        "setValues": lambda fields, name, values: fields.extend((name, value) for value in values),
        "RobotsTags": tags,
        "assertEquals": equal,
        **{name: asked(name) for name in _NAMES},
    }
    tests = Tests(path.read_text(), calls, {})
    cases.test = lambda: tests.test
    tests.run({})
    return cases.result(tests.unread)


def _of_metas(path: Path, suite: str) -> Result:
    """Compare the pages and answers that a test has as arrays."""
    cases = Cases(suite, KNOWN)
    cases.test = lambda: "metas"
    tests = Tests(path.read_text(), {}, {})
    tests.run(_Everything())
    pages, answers = tests.fields.get("tests", []), tests.fields.get("answers", [])
    unread = [] if pages and len(pages) == len(answers) else [f"{path.name}: tests, answers"]
    for page, answer in zip(pages, answers, strict=False):
        said = said_in_html(page.encode(), _CRAWLER)
        kind = "none" if 'content="none"' in page.lower() else "pragma" if "pragma" in page.lower() else page
        for name, expected in zip(_NAMES, answer, strict=True):
            cases.note(f"{kind}: {name}", passed=_forbids(said, name) is expected)
    return cases.result(unread)


class _Everything(dict[str, str]):
    """Names all tests: none is run."""

    def __contains__(self, name: object) -> bool:
        return True


def _forbids(said: Iterable[Said], name: str) -> bool:
    return decide(said).forbids(_NAMES[name])
