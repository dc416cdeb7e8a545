"""``crawl4llm docs``: the pages that came with the package, and who cites them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from crawl_helpers import PROJECT, error_of, scrapy

PAGES = PROJECT / "docs"
FILES = [path for top in ("crawl4llm", "simulate") for path in (PROJECT / top).rglob("*.py")]


def test_the_pages_are_listed(tmp_path: Path) -> None:
    listed = scrapy("docs", cwd=tmp_path)
    assert listed.returncode == 0, listed.stderr
    title, headings, *rows = listed.stdout.splitlines()
    assert "scrapy docs TOPIC" in title
    assert headings.split() == ["topic", "title"]
    assert {row.split()[0] for row in rows} == {path.stem for path in PAGES.glob("*.md")}
    assert all(len(row.split()) > 1 for row in rows)


@pytest.mark.parametrize("topic", ["scope", "scope.md", "docs/scope.md"])
def test_a_page_on_a_pipe(topic: str, tmp_path: Path) -> None:
    shown = scrapy("docs", topic, cwd=tmp_path)
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, (PAGES / "scope.md").read_text(), "")


@pytest.mark.parametrize(
    "topic", ["scop", "", "..", "../README", "../../../etc/passwd", "/etc/passwd", "nothing-like-it"]
)
def test_there_is_no_such_page(topic: str, tmp_path: Path) -> None:
    said = error_of(scrapy("docs", topic, cwd=tmp_path))
    assert said.startswith("there is no page ")
    assert said.endswith("did you mean scope?" if topic == "scop" else "`scrapy docs` lists them"), said


def test_usage(tmp_path: Path) -> None:
    for args in (["scope", "traps"], ["--all"]):
        refused = scrapy("docs", *args, cwd=tmp_path)
        assert (refused.returncode, "usage: scrapy docs [TOPIC]" in refused.stderr) == (2, True)


# -- who cites them ---------------------------------------------------------------------------------------------------


def texts(path: Path) -> Iterator[str]:
    """Yield the strings of a file that it may print: all but docstrings."""
    tree = ast.parse(path.read_text())
    said = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    silent = {id(value) for value in said if isinstance(value, ast.Constant)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            yield node.value


def test_nothing_that_is_printed_names_a_file_that_is_not_there() -> None:
    """In an installed package there is no ``docs/``; reference.py runs in a checkout only."""
    files = [path for path in FILES if path.name != "reference.py"]
    named = {(path.name, text) for path in files for text in texts(path) if re.search(r"docs/[\w-]+\.md", text)}
    assert not named


def test_cited_pages_exist() -> None:
    cited = set()
    for path in FILES:
        source = path.read_text()
        cited |= set(re.findall(r"\bdocs\(['\"]([\w-]+)['\"]\)", source))
        cited |= {topic for text in texts(path) for topic in re.findall(r"crawl4llm docs ([a-z][\w-]*)", text)}
    assert {"install", "settings"} <= cited
    assert {topic for topic in cited if not (PAGES / f"{topic}.md").exists()} == set()
