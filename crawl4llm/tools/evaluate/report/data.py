"""The numbers of a report as plain Python values, as CSV and as JSON."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple

from crawl4llm.base.terminal import harmless
from crawl4llm.tools.evaluate.figures import Figure, Report, Series, Table

Value = str | float | int | None

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_NOT_IN_XML = re.compile("[\ud800-\udfff\ufffe\uffff]")
"""Characters that XML 1.0 (section 2.2) forbids besides controls. They include the stand-ins for bytes of file names
that are not UTF-8."""
_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]")
"""How cells begin that spreadsheets take for a formula (OWASP, CSV Injection), in East Asian widths too."""


def printable(text: str) -> str:
    """Return a text that can stand in UTF-8, HTML and XML, and that steers no terminal."""
    return _NOT_IN_XML.sub("\ufffd", harmless(text))


def plain_report(report: Report) -> Report:
    """Return a report of Python's own numbers, with None for undefined values: None, NaN, infinite.

    Raises ValueError if an id is no file name or is there twice, or if sequences differ in length.
    """
    ids = [section.id for section in report.sections]
    for section_id in ids:
        if not _ID.fullmatch(section_id):
            raise ValueError(f"{section_id!r} cannot be the id of a figure or table: it names files")
    if len({section_id.casefold() for section_id in ids}) < len(ids):
        raise ValueError(f"the ids of figures and tables are not unique: {', '.join(ids)}")
    return replace(report, sections=[_plain_section(section) for section in report.sections])


def _plain_section(section: Figure | Table) -> Figure | Table:
    if isinstance(section, Figure):
        return replace(section, series=[_plain_series(series) for series in section.series])
    if any(len(row) != len(section.columns) for row in section.rows):
        raise ValueError(f"table {section.id} has a row that is not as long as its columns")
    return replace(section, rows=[_plain_values(row) for row in section.rows])


def _plain_series(series: Series) -> Series:
    if (series.low is None) != (series.high is None):
        raise ValueError(f"series {series.name!r} has one bound of its confidence band")
    low = None if series.low is None else _plain_values(series.low)
    high = None if series.high is None else _plain_values(series.high)
    x, y = _plain_values(series.x), _plain_values(series.y)
    if len({len(values) for values in (x, y, low, high) if values is not None}) > 1:
        raise ValueError(f"series {series.name!r} has sequences of different lengths")
    return replace(series, x=x, y=y, low=low, high=high)


def _plain_values(values: Iterable[Any]) -> list[Any]:
    return [_plain_value(value) for value in values]


def _plain_value(value: Any) -> Value:
    """Return one value; a NumPy scalar becomes the Python number it equals."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value  # type: ignore[no-any-return]  # what Series and Table hold, by their types


def section_csv(section: Figure | Table) -> str:
    """Return a figure or table as CSV; a figure has one line for each point of each series."""
    return _figure_csv(section) if isinstance(section, Figure) else _csv(section.columns, section.rows)


def _figure_csv(figure: Figure) -> str:
    rows = []
    for series in figure.series:
        undefined = [None] * len(series.x)
        bounds = (series.low or undefined, series.high or undefined)
        rows += [[series.name, *point] for point in zip(series.x, series.y, *bounds, strict=True)]
    return _csv(("series", "x", "y", "low", "high"), rows)


def _csv(columns: Sequence[str], rows: Iterable[Sequence[Value]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([_cell(value) for value in row] for row in (columns, *rows))
    return text.getvalue()


def _cell(value: Value) -> Value:
    """Return a value as CSV has it: text that is no formula in any spreadsheet, a number as it is."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if _FORMULA.match(text) else text


def report_json(report: Report) -> str:
    """Return a whole report as JSON, without plots. Numbers are those of the CSV files; undefined values are null."""
    content = asdict(report)
    for section, described in zip(report.sections, content["sections"], strict=True):
        described["type"] = type(section).__name__.lower()
    return json.dumps(content, sort_keys=True, default=str) + "\n"


NAME = "name"
"""The key of a run that names it."""


class Row(NamedTuple):
    """A setting, digest or figure of the runs; None for a run that does not have it."""

    key: str
    values: Sequence[str | None]

    @property
    def differs(self) -> bool:
        """True if the runs differ in it."""
        return len(set(self.values)) > 1


class Comparison(NamedTuple):
    """A table of runs: ``names`` heads its columns."""

    names: Sequence[str]
    rows: Sequence[Row]


def compare(runs: Sequence[Mapping[str, Any]]) -> Comparison:
    """Return settings, digests and figures of runs, nested mappings by their dotted keys, in order of the keys."""
    flat = [dict(_flat(run)) for run in runs]
    names = [run.pop(NAME, f"run {number}") for number, run in enumerate(flat, 1)]
    keys = sorted(set().union(*flat))
    return Comparison(names, [Row(key, [run.get(key) for run in flat]) for key in keys])


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
