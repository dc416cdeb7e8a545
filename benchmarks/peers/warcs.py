"""warcio's and jwarc's files and tests: which records a file has, how heads of records and of HTTP are read.

warcio's expectations are the lists in its tests, found by Python's own parser. jwarc's are the string literals in its
tests: what is parsed, and what an assertion behind that says of it.
"""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.peers.results import Result
from crawl4llm.base.chunked import joined
from crawl4llm.warc.plain import PlainRecords
from crawl4llm.warc.reader import Stretch, WarcReader, html_of_record, parse_stored
from crawl4llm.warc.records import UnreadableFile, field_name, parse_http, parse_record

KNOWN: Final = {
    "bad.arc": "a length that is no number begins no record",
    "example-trunc.warc": "a record whose length is wrong is damage",
    "broken name": "a blank ends no name",
}
"""Differences that remain on purpose, by file or case; README.md here has them with their reasons."""
_WARCIO, _JWARC = Path("warcio/test"), Path("jwarc/test/org/netpreserve/jwarc")
_NAMES: Final = {"arc_header": "filedesc"}
"""Kinds of records as warcio names them, and as this project does."""
_TEXT: Final = r'"(?:[^"\\]|\\.)*"'
_JOINED: Final = rf"{_TEXT}(?:\s*\+\s*{_TEXT})*"
_ASSERTED: Final = rf"assertEquals\((?:Optional\.of\()?({_TEXT})\)?, "
_OCTAL = re.compile(r"\\([0-7])(?![0-9])")


class _Cases:
    """Counts the cases of a suite."""

    def __init__(self, suite: str) -> None:
        self._suite = suite
        self._passed = self._known = 0
        self._failed: list[str] = []

    def compare(self, name: str, found: object, expected: object) -> None:
        """Count a case."""
        if found == expected:
            self._passed += 1
        elif name in KNOWN:
            self._known += 1
        else:
            self._failed.append(f"{name}: {found!r:.200} instead of {expected!r:.200}")

    def result(self) -> Result:
        """Return all cases."""
        return Result(self._suite, self._passed, self._known, self._failed)


def run(folder: Path) -> list[Result]:
    """Return the results of the suites whose checkouts lie in a folder."""
    suites = {_WARCIO / "data": _warcio, _JWARC: _jwarc}
    return [suite(folder) for path, suite in suites.items() if (folder / path).is_dir()]


def _warcio(folder: Path) -> Result:
    cases = _Cases("warcio: files")
    data = folder / _WARCIO / "data"
    for name, expected in _lists(ast.parse((folder / _WARCIO / "test_archiveiterator.py").read_text("utf-8"))):
        kinds = [_NAMES.get(kind, kind) for kind in expected]
        cases.compare(name, [kind for kind in _kinds(data / name) if kind], kinds)
    for name in ("example.warc.gz", "example.warc", "example.arc.gz", "example.arc"):
        cases.compare(f"{name}, content", b"Example Domain" in _first_page(data / name), True)
    chunked = _first_page(data / "example-iana.org-chunked.warc")
    cases.compare("chunked", chunked.startswith(b"<!doctype html>") and chunked.endswith(b"</html>\n"), True)
    for name, url in (
        ("example-wget-bad-target-uri.warc.gz", "http://example.com/"),
        ("example-space-in-target-uri.warc.gz", "file:///example with spaces.png"),
    ):
        urls = [one.frame.record.url for one in _stretches(data / name) if one.frame and one.frame.record]
        cases.compare(name, url in urls, True)
    return cases.result()


def _lists(tree: ast.Module) -> Iterator[tuple[str, list[str]]]:
    """Yield the files that warcio's tests load, and the kinds of records that each test expects of them."""
    for test in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        expected = [
            ast.literal_eval(node.value)
            for node in ast.walk(test)
            if isinstance(node, ast.Assign)
            and ast.unparse(node.targets[0]) == "expected"
            and isinstance(node.value, ast.List)
        ]
        for node in ast.walk(test):
            is_load = isinstance(node, ast.Compare) and "self._load_archive(" in (call := ast.unparse(node.left))
            if is_load and expected and "arc2warc" not in call:
                assert isinstance(node, ast.Compare)
                assert isinstance(node.left, ast.Call)
                yield ast.literal_eval(node.left.args[0]), expected[0]


def _stretches(path: Path) -> list[Stretch]:
    try:
        return list(WarcReader(path).stretches())
    except UnreadableFile:
        return []


def _kinds(path: Path) -> list[str | None]:
    """Return the kinds of the records in a file; None for damage."""
    return [one.frame.record.kind if one.frame and one.frame.record else None for one in _stretches(path)]


def _first_page(path: Path) -> bytes:
    reader = WarcReader(path)
    for one in reader.stretches():
        if one.frame and one.frame.record and one.frame.record.kind == "response":
            return html_of_record(parse_stored(reader.read(one.offset, one.length), str(path)), None).data
    return b""


def _jwarc(folder: Path) -> Result:
    cases = _Cases("jwarc: parsers")
    tests = folder / _JWARC
    for name, body in _methods(tests / "HttpParserTest.java"):
        if name.startswith(("lenientResponse", "nonAscii")):
            _http(cases, body)
    for name, body in _methods(tests / "WarcParserTest.java"):
        if "Arc" in name:
            _arc_lines(cases, body)
    for path in (tests / "apitests/WarcReaderTest.java", tests / "apitests/ArcTest.java"):
        for name, body in _methods(path):
            if found := re.search(rf"String (?:testArc|raw) =\s+({_JOINED});", body):
                targets = re.findall(r'assertEquals\("((?:http|dns):[^"]*)", [^;]*\.target\(\)\)', body)
                cases.compare(
                    name, [url for url in _urls(_literal(found[1])) if not url.startswith("filedesc")], targets
                )
    for name, body in _methods(tests / "ChunkedBodyTest.java"):
        if "WhiteSpace" in name or "Bypass" in name:
            text = re.search(rf"String bodyString = ({_TEXT})", body)
            parts = re.search(rf"\(({_TEXT}) \+ bodyString \+ ({_TEXT})\)", body)
            if text and parts:
                whole = _literal(text[1])
                cases.compare(name, joined(_literal(parts[1]) + whole + _literal(parts[2])), whole)
    files = folder / "jwarc/test-resources/org/netpreserve/jwarc"
    cases.compare("cc.warc.gz", _kinds(files / "cc.warc.gz"), ["response"])
    cases.compare("gzip_extra_sl.warc.gz", None in _kinds(files / "gzip_extra_sl.warc.gz"), False)
    return cases.result()


def _methods(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the body of each test in a file of Java."""
    for part in re.split(r"\n    @Test[^\n]*\s+public void ", path.read_text("utf-8"))[1:]:
        yield part.partition("(")[0], part


def _literal(java: str) -> bytes:
    """Return what a string expression of literals has, in Latin-1 where that can be."""
    text = "".join(json.loads(_OCTAL.sub(r"\\u000\1", one), strict=False) for one in re.findall(_TEXT, java))
    return text.encode("latin-1", "replace")


def _http(cases: _Cases, body: str) -> None:
    """Compare status lines and fields: each assertion is on the message that was parsed before it."""
    head = None
    steps = rf"parse\((?:message|({_JOINED}))\)|{_ASSERTED}httpParser\.headers\(\)\.sole\(({_TEXT})\)"
    message = re.search(rf"String message = ({_JOINED})", body)
    for step in re.finditer(steps, body):
        if step[2] is None:
            data = _literal(step[1] or (message[1] if message else ""))
            head = parse_http(data if b"\n\n" in data or b"\n\r\n" in data else data.rstrip() + b"\r\n\r\n", 0)
            cases.compare(data.decode("latin-1"), head is not None and head.status in {200, 404}, True)
        elif head is not None:
            name = _literal(step[3]).decode("latin-1")
            case = "broken name" if "\t" in name else name
            cases.compare(case, head.fields.get(field_name(name)), _literal(step[2]))


def _arc_lines(cases: _Cases, body: str) -> None:
    record = None
    for step in re.finditer(rf'parse\(({_TEXT})\)|{_ASSERTED}parser\.headers\(\)\.\w+\("([\w-]+)"\)', body):
        if step[1]:
            record = parse_record(_literal(step[1]))
        elif record is not None:
            found = str(record.length) if step[3] == "Content-Length" else record.date
            cases.compare(f"{record.url} {step[3]}", found, _literal(step[2]).decode())


class _Bytes:
    """A source of bytes in memory."""

    path = Path(os.devnull)

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self, size: int, position: int) -> bytes:
        return self._data[position : position + size]


def _urls(data: bytes) -> list[str]:
    """Return the URLs of the records in a file that is not compressed."""
    return [frame.record.url for frame in PlainRecords(_Bytes(data)).frames() if frame.record]
