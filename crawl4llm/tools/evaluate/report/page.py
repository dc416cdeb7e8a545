"""The report as one HTML page that needs nothing else: no network, no other file, no library in the browser."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from crawl4llm.tools.evaluate.figures import Figure, Report, Series, Table
from crawl4llm.tools.evaluate.report.data import Value, compare, printable
from crawl4llm.tools.evaluate.report.plot import dark_plots

_UNDEFINED = "\N{EN DASH}"


class Section(NamedTuple):
    """A figure or table of the page. ``plot`` is empty for a table; the ``table`` of a figure sums up its series.

    ``numeric`` says of each column of the table whether it holds numbers.
    """

    id: str
    title: str
    definition: str
    plot: str
    table: Table
    numeric: Sequence[bool]
    cells: Sequence[Sequence[str]]
    """The rows as they are shown: the numbers of a column with as many decimals each."""


class Part(NamedTuple):
    """Sections that fold together; those of no part have an empty title, and stay open."""

    title: str
    sections: Sequence[Section]


def render(report: Report, plots: Mapping[str, str]) -> str:
    """Return the page. ``plots``: the ``svg`` element of each figure, by its id. The template engine escapes text."""
    environment = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shown"] = shown
    script = _template("report.js")
    page = environment.get_template("report.html").render(
        report=report,
        parts=[
            Part(title, [_section(section, plots) for section in sections])
            for title, sections in groupby(report.sections, key=attrgetter("part"))
        ],
        comparison=compare(report.runs),
        style=_template("report.css") + f"@media screen and (prefers-color-scheme: dark) {{\n{dark_plots()}\n}}",
        script=script,
        script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
    return printable(page)


def _template(name: str) -> str:
    return files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


def _section(section: Figure | Table, plots: Mapping[str, str]) -> Section:
    if isinstance(section, Figure):
        plot, table = plots[section.id], series_table(section)
    else:
        plot, table = "", section
    columns = list(zip(*table.rows, strict=True)) or [()] * len(table.columns)
    numeric = [_is_numeric(column) for column in columns]
    texts = [
        [shown(value, decimals) for value in column]
        for column, decimals in zip(columns, _decimals(columns), strict=True)
    ]
    cells = list(zip(*texts, strict=True)) if table.rows else []
    return Section(section.id, section.title, section.definition, plot, table, numeric, cells)


def _decimals(columns: Iterable[Iterable[Value]]) -> Iterator[int]:
    """Yield the decimals of each column: four significant digits of its greatest number, but at most four decimals, or
    six if that is less than 0.001."""
    for column in columns:
        greatest = max((abs(value) for value in column if isinstance(value, float)), default=0.0)
        most = 4 if greatest >= 0.001 else 6
        yield min(max(3 - math.floor(math.log10(greatest)), 0), most) if greatest else 0


def series_table(figure: Figure) -> Table:
    """Return the ends and extremes of each series of a figure, for readers who cannot see the plot."""
    columns = ("series", "points", "first", "last", "least", "greatest")
    rows = [[series.name, *_summary(series)] for series in figure.series]
    return Table(figure.id, figure.title, figure.definition, columns, rows)


def _summary(series: Series) -> tuple[Value, ...]:
    defined = [y for y in series.y if y is not None]
    if not defined:
        return 0, None, None, None, None
    return len(defined), defined[0], defined[-1], min(defined), max(defined)


def _is_numeric(column: Iterable[Value]) -> bool:
    values = [value for value in column if value is not None]
    return bool(values) and not any(isinstance(value, str) for value in values)


def shown(value: Value, decimals: int = 0) -> str:
    """Format a value for people: with thousands separators, with ``decimals`` unless it is an integer, and as a dash if
    it is undefined."""
    if value is None:
        return _UNDEFINED
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{decimals}f}"
