"""Writes the report of an evaluation: ``report.html``, and the same numbers and drawings as files of their own.

The page needs nothing else: no network, no other file, no library in the browser.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from importlib.util import find_spec
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.installed import to_install
from crawl4llm.tools.evaluate.figures import (
    Cell,
    Figure,
    Report,
    Series,
    Table,
    plain_report,
    printable,
    report_json,
    section_csv,
)

_UNDEFINED = "\N{EN DASH}"


def check_installed() -> None:
    """Raise InputError if a library that an evaluation needs is missing."""
    if any(find_spec(name) is None for name in ("duckdb", "jinja2", "matplotlib", "scipy")):
        raise InputError(f"an evaluation needs DuckDB, Matplotlib, Jinja2 and SciPy; {to_install('evaluate')}")


def write_report(report: Report, directory: Path) -> list[Path]:
    """Write ``report.html``, ``report.json``, ``figures/ID`` as SVG, PDF and PNG, ``data/ID.csv``; return their paths.

    An earlier report there is overwritten. The same report gives the same bytes. Raises InputError if the directory
    cannot be written or a library is missing, and ValueError as ``plain_report`` does.
    """
    check_installed()
    # an extra, which check_installed() has looked for
    from crawl4llm.tools.evaluate.plot import draw

    report = plain_report(report)
    drawn = {section.id: draw(section) for section in report.sections if isinstance(section, Figure)}
    contents: dict[str, str | bytes] = {
        "report.html": render(report, {name: drawings["svg"] for name, drawings in drawn.items()}),
        "report.json": report_json(report),
        **{f"figures/{name}.{suffix}": data for name, drawings in drawn.items() for suffix, data in drawings.items()},
        **{f"data/{section.id}.csv": section_csv(section) for section in report.sections},
    }
    for name, content in contents.items():
        path = directory / name
        with as_input_error(f"{path} cannot be written"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
    return [directory / name for name in contents]


class Section(NamedTuple):
    """A figure or table of the page."""

    plot: str
    """The drawing, as a URL that holds it; empty for a table."""
    table: Table
    """That of a figure sums up its series."""
    numeric: Sequence[bool]
    """For each column of the table, whether it holds numbers."""
    cells: Sequence[Sequence[str]]
    """The rows as they are shown: the numbers of a column with as many decimals each."""


def render(report: Report, plots: Mapping[str, bytes]) -> str:
    """Return the page. ``plots``: the drawing of each figure in SVG, by its id. The template engine escapes text."""
    # an extra, which check_installed() has looked for
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shown"] = shown
    script = _template("report.js")
    names, rows = compare(report.runs)
    page = environment.get_template("report.html").render(
        report=report,
        parts=[
            (title, [_section(section, plots) for section in sections])
            for title, sections in groupby(report.sections, key=attrgetter("part"))
        ],
        names=names,
        rows=rows,
        style=_template("report.css"),
        script=script,
        script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
    return printable(page)


def _template(name: str) -> str:
    return files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


def _section(section: Figure | Table, plots: Mapping[str, bytes]) -> Section:
    if isinstance(section, Figure):
        plot = f"data:image/svg+xml;base64,{base64.b64encode(plots[section.id]).decode()}"
        table = series_table(section)
    else:
        plot, table = "", section
    columns = list(zip(*table.rows, strict=True)) or [()] * len(table.columns)
    texts = [[shown(value, _decimals(column)) for value in column] for column in columns]
    cells = list(zip(*texts, strict=True)) if table.rows else []
    return Section(plot, table, [_is_numeric(column) for column in columns], cells)


def _decimals(column: Iterable[Cell]) -> int:
    """Return the decimals of a column: four significant digits of its greatest number, but at most four decimals, or
    six if that is less than 0.001."""
    greatest = max((abs(value) for value in column if isinstance(value, float)), default=0.0)
    most = 4 if greatest >= 0.001 else 6
    return min(max(3 - math.floor(math.log10(greatest)), 0), most) if greatest else 0


def series_table(figure: Figure) -> Table:
    """Return the ends and extremes of each series of a figure, for readers who cannot see the plot."""
    columns = ("series", "points", "first", "last", "least", "greatest")
    rows = [[series.name, *_summary(series)] for series in figure.series]
    return Table(figure.id, figure.title, figure.definition, columns, rows)


def _summary(series: Series) -> tuple[Cell, ...]:
    defined = [y for y in series.y if y is not None]
    if not defined:
        return 0, None, None, None, None
    return len(defined), defined[0], defined[-1], min(defined), max(defined)


def _is_numeric(column: Iterable[Cell]) -> bool:
    values = [value for value in column if value is not None]
    return bool(values) and not any(isinstance(value, str) for value in values)


def shown(value: Cell, decimals: int = 0) -> str:
    """Format a value for people: with thousands separators, with ``decimals`` unless it is an integer, and as a dash if
    it is undefined."""
    if value is None:
        return _UNDEFINED
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{decimals}f}"


class Row(NamedTuple):
    """A setting, digest or figure of the runs; None for a run that does not have it."""

    key: str
    values: Sequence[str | None]

    @property
    def differs(self) -> bool:
        """True if the runs differ in it."""
        return len(set(self.values)) > 1


def compare(runs: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[Row]]:
    """Return the names of runs, and their settings, digests and figures: nested mappings by their dotted keys, in order
    of the keys."""
    flat = [dict(_flat(run)) for run in runs]
    names = [run.pop("name", f"run {number}") for number, run in enumerate(flat, 1)]
    return names, [Row(key, [run.get(key) for run in flat]) for key in sorted(set().union(*flat))]


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
