"""docs/troubleshooting.md has each finish reason, each reason of a document and each exit status that the code has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from crawl_helpers import PROJECT

from crawl4llm.base.reasons import TABLES
from crawl4llm.base.terminal import INTERRUPTED
from crawl4llm.crawl import ends
from crawl4llm.parts import ENDS

PACKAGE = PROJECT / "crawl4llm"
USAGE = 2
"""argparse's status for a wrong command line."""


def section(title: str) -> str:
    """The text below a heading of the page."""
    text = (PROJECT / "docs/troubleshooting.md").read_text()
    assert f"\n## {title}\n" in text
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def rows(title: str) -> set[str]:
    """What stands as code in the first cells of a section's table."""
    cells = [line.split("|")[1] for line in section(title).splitlines() if line.startswith("|")]
    return {name for cell in cells for name in re.findall("`([^`]+)`", cell)}


def trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_text()
        if re.search(r"\.stop\(|CloseSpider\(|reason=|exitcode|_?exit\(", source):
            name = ".".join(path.relative_to(PROJECT).with_suffix("").parts).removesuffix(".__init__")
            yield name, ast.parse(source)


def test_each_finish_reason_is_there() -> None:
    """Those of a crawl's end, of parts, of Scrapy's limits, and each that a crawl is stopped for."""
    named = {value for name, value in vars(ends).items() if name.isupper() and isinstance(value, str)}
    named |= {*ends.LIMITS, *ENDS, *import_module("crawl4llm.engine.summary")._REASONS, *stops()}
    assert len(named) > 15
    assert named - rows("Finish reasons") == set()
    assert rows("Finish reasons") - named == {"finish_reason"}, "and no others"


def stops() -> Iterator[str]:
    """The first argument of each ``stop(reason, message)``, and each reason that a spider is closed for."""
    for module, tree in trees():
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            if name == "stop" and len(call.args) == 2:
                yield from known(module, *call.args)
            elif name == "CloseSpider" and isinstance(call.args[0], ast.Name):
                yield from known(module, call.args[0])


def known(name: str, reason: ast.expr, message: ast.expr | None = None) -> Iterator[str]:
    """The value of a constant; of a variable, the keys of the table from which its message is."""
    module = import_module(name)
    if isinstance(reason, ast.Name) and hasattr(module, reason.id):
        yield getattr(module, reason.id)
    else:
        assert isinstance(message, ast.Subscript), f"{name}: {ast.unparse(reason)}"
        assert isinstance(message.value, ast.Name)
        yield from getattr(module, message.value.id)


@pytest.mark.parametrize(
    ("outcome", "title"),
    [("failed", "Failed documents"), ("dropped", "Dropped documents")],
)
def test_each_reason_of_a_document_is_there(outcome: str, title: str) -> None:
    assert rows(title) - {f"{outcome}/..."} == set(TABLES[outcome])


def test_each_other_reason_is_there() -> None:
    others = {f"{outcome}/{reason}" for outcome in ("redirected", "unscored") for reason in TABLES[outcome]}
    assert set(TABLES) == {"failed", "dropped", "redirected", "unscored"}
    assert others - rows("Other outcomes") == set()


def test_each_exit_status_is_there() -> None:
    found = {0, USAGE, INTERRUPTED, *statuses()}
    shown = {int(number) for number in re.findall(r"(?m)^\|(\d+)\|", section("Exit statuses"))}
    assert shown == found


def statuses() -> Iterator[int]:
    """Each number that a command of the package has as its status."""
    for _module, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "self.exitcode":
                values = [node.value]
            elif isinstance(node, ast.Call) and ast.unparse(node.func) in {"sys.exit", "os._exit"}:
                values = node.args
            else:
                continue
            constants = (value.value for value in values if isinstance(value, ast.Constant))
            yield from (status for status in constants if isinstance(status, int))


def test_it_finds_what_is_there() -> None:
    """The search is no empty one."""
    assert {"no_network", "disk_low", "too_many_errors", "drain", "stop"} <= set(stops())
    assert 1 in set(statuses())
    assert Path(ends.__file__).parent.parent == PACKAGE
