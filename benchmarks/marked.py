"""Figures in the docs that stand between markers, and the files of benchmarks/measured that they come from.

A marked figure is ``<!--=simulation.n100.archive-off.cpu-peer-->0.17<!--/-->``: a measured file, a table, a row and a
column. Each part may be cut after a word, ``n100-6-500-pages-crawled`` to ``n100``; if it then stands for several, the
one with most parts whole is meant. ``NAME.WHAT`` is a figure with a limit, ``NAME.limits`` and ``NAME.missed`` count
these, ``NAME.date`` and ``NAME.commit`` say when and of what it was measured. The number that stands there says how it
is written: how many decimals, whether as a percentage, whether with its spread. ``python -m benchmarks.report`` writes
them all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.results import PROJECT, Result, rounded

MEASURED = PROJECT / "benchmarks/measured"
_MARKED = re.compile(r"<!--=([\w.-]+)-->(.*?)<!--/-->", re.DOTALL)
_AT_START = re.compile(r"^\s*(?:[-*+]|\d+[.)])?\s*<!--=", re.MULTILINE)
"""Markdown takes a line that starts with a comment for HTML, and shows what follows as it stands."""

Cell = str | float | None


class UnknownFigure(Exception):
    """A marker names no figure, or more than one."""


def pages() -> list[Path]:
    """Return the pages that may have marked figures."""
    return [PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md")), *sorted(MEASURED.parent.glob("*.md"))]


def results(folder: Path = MEASURED) -> Iterator[tuple[Result, dict[str, Any]]]:
    """Yield what each benchmark has measured, and the machine. Files of other shapes are passed over."""
    for file in sorted(folder.glob("*.json")):
        content = json.loads(file.read_text(encoding="utf-8"))
        if "benchmark" in content:
            yield Result.from_json(content), content["machine"]


def known(folder: Path = MEASURED) -> dict[tuple[str, ...], Cell]:
    """Return each measured figure by its name."""
    found: dict[tuple[str, ...], Cell] = {}
    for result, machine in results(folder):
        name = result.benchmark
        found |= {(name, "date"): str(machine["date"])[:10], (name, "commit"): machine["commit"]}
        found |= {(name, "limits"): float(len(result.figures))}
        found |= {(name, "missed"): float(sum(not figure.met for figure in result.figures))}
        found |= {(name, _slug(figure.what)): figure.value for figure in result.figures}
        for table in result.tables:
            for first, *cells in table.rows:
                row = (name, _slug(table.title), _slug(str(first)))
                found |= {(*row, _slug(c)): cell for c, cell in zip(table.columns[1:], cells, strict=True)}
    return found


def filled(text: str, figures: Mapping[tuple[str, ...], Cell]) -> str:
    """Return a text with its marked figures as measured. Raises UnknownFigure."""
    if wrong := _AT_START.search(text):
        line = text[: wrong.end()].count("\n") + 1
        raise UnknownFigure(
            f"line {line} starts with a marker, so that Markdown takes it for HTML; put a word before it"
        )
    return _MARKED.sub(lambda m: f"<!--={m[1]}-->{_written(_find(m[1], figures), m[2])}<!--/-->", text)


def _find(name: str, figures: Mapping[tuple[str, ...], Cell]) -> Cell:
    parts = tuple(name.split("."))
    if parts in figures:
        return figures[parts]
    cut = [whole for whole in figures if len(whole) == len(parts) and all(map(_begins, whole, parts))]
    same = {whole: sum(map(str.__eq__, whole, parts)) for whole in cut}
    cut = [whole for whole in cut if same[whole] == max(same.values())]
    if len(cut) != 1:
        these = f"{len(cut)}, such as {' and '.join('.'.join(whole) for whole in cut[:2])}" if cut else "none"
        raise UnknownFigure(f"{name} names {these}; benchmarks/measured has the tables")
    return figures[cut[0]]


def _begins(whole: str, part: str) -> bool:
    return whole == part or whole.startswith(f"{part}-")


def _written(value: Cell, before: str) -> str:
    """Return a value, written as the one that stands there unless nothing but zeros would be left of it."""
    if isinstance(value, str):
        number = re.fullmatch(r"([\d.,]+)(?:±[\d.,]+)?", value)
        if number is None or "±" in before or not before.strip():
            return value
        value = float(number[1].replace(",", ""))
    if value is None or not re.search(r"\d", before):
        return rounded(value)
    decimals = len(before.rstrip("%").partition(".")[2])
    text = f"{100 * value:,.{decimals}f}%" if before.endswith("%") else f"{value:,.{decimals}f}"
    return text if value == 0 or re.search("[1-9]", text) else rounded(value)


def _slug(text: str) -> str:
    return "-".join(re.findall(r"\w+%?", text.lower())).replace("%", "")
