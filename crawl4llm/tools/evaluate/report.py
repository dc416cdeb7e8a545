"""The report of an evaluation: figures and tables as plain data, and the files that show them.

It is ``report.html``, and the same numbers and drawings as files of their own. The page needs nothing else: no network,
no other file, no library in the browser.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from importlib.util import find_spec
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.installed import to_install
from crawl4llm.base.terminal import harmless

if TYPE_CHECKING:
    from crawl4llm.tools.evaluate.documents import Floats, Integers
    from crawl4llm.tools.evaluate.runs import Band

Kind: TypeAlias = Literal["line", "dashed", "points", "bars"]
Cell: TypeAlias = str | float | int | None

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_NOT_IN_XML: Final = re.compile("[\ud800-\udfff\ufffe\uffff]")
"""Characters that XML 1.0 (section 2.2) forbids besides controls. They include the stand-ins for bytes of file names
that are not UTF-8."""
_FORMULA: Final = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]")
"""How cells begin that spreadsheets take for a formula (OWASP, CSV Injection), in East Asian widths too."""


@dataclass(frozen=True)
class Series:
    """One curve, cloud of points or set of bars. ``y`` is None or NaN if a value is undefined.

    ``low`` and ``high`` bound a confidence band and are given together. All sequences are as long as ``x``.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    kind: Kind = "line"
    place: int | None = None
    """Decides its colour, so that a policy has the same one in all figures; below 0: the colour of bounds, which are
    no policy's. By default its place in the figure."""


@dataclass(frozen=True)
class Figure:
    """A plot. ``id`` names its files; ``definition`` says how it is defined and which paper's figure or section it is.

    On a logarithmic axis, values that are not positive have no place and are left out.
    """

    id: str
    title: str
    definition: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    x_log: bool = False
    y_log: bool = False
    part: str = ""
    """The part of the report that it belongs to; a part folds."""


@dataclass(frozen=True)
class Table:
    """A table; a cell is None if its value is undefined. ``id`` and ``definition`` as a figure's."""

    id: str
    title: str
    definition: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    part: str = ""


@dataclass(frozen=True)
class Report:
    """All figures and tables of an evaluation. ``runs`` has, for each run, its name, its settings and its digests."""

    title: str
    notes: Sequence[str]
    sections: Sequence[Figure | Table]
    runs: Sequence[Mapping[str, Any]]
    verdict: Sequence[str] = ()
    """Which policy is best, by how much, and how sure that is; a sentence or two each."""


def floats(values: Floats | Integers) -> list[float]:
    """Return the numbers of a series, NaN if they are undefined."""
    return values.astype(np.float64).tolist()  # type: ignore[no-any-return]  # by its dtype


def line(
    name: str, x: Floats | Integers, y: Floats | Integers, kind: Kind = "line", place: int | None = None
) -> Series:
    """Return a curve without a band."""
    return Series(name, floats(x), floats(y), kind=kind, place=place)


def band(name: str, x: Floats | Integers, y: Band, place: int | None = None) -> Series:
    """Return a curve with its band."""
    low, high = (floats(np.nan_to_num(bound, nan=0.0)) for bound in (y.low, y.high))
    return replace(line(name, x, y.value, place=place), low=low, high=high)


# -- as CSV and JSON ---------------------------------------------------------------------------------------------------


def plain_report(report: Report) -> Report:
    """Return a report of Python's own numbers, with None for undefined values: None, NaN, infinite.

    Raises ValueError if an id is no file name or is there twice.
    """
    ids = [section.id for section in report.sections]
    if len({name.casefold() for name in ids if _ID.fullmatch(name)}) < len(ids):
        raise ValueError(f"the ids of figures and tables name files, each once: {', '.join(ids)}")
    return replace(report, sections=list(map(_plain_section, report.sections)))


def _plain_section(section: Figure | Table) -> Figure | Table:
    if isinstance(section, Figure):
        return replace(section, series=list(map(_plain_series, section.series)))
    return replace(section, rows=list(map(_plain_values, section.rows)))


def _plain_series(series: Series) -> Series:
    given = {name: getattr(series, name) for name in ("x", "y", "low", "high")}
    plain: dict[str, Any] = {name: _plain_values(some) for name, some in given.items() if some is not None}
    return replace(series, **plain)


def _plain_values(values: Iterable[Any]) -> list[Any]:
    """Return values, of which NumPy's become the Python numbers that they equal."""
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    return [None if isinstance(value, float) and not math.isfinite(value) else value for value in plain]


def printable(text: str) -> str:
    """Return a text that can stand in UTF-8, HTML and XML, and that steers no terminal."""
    return _NOT_IN_XML.sub("\ufffd", harmless(text))


def section_csv(section: Figure | Table) -> str:
    """Return a figure or table as CSV; a figure has one line for each point of each series."""
    if isinstance(section, Table):
        return _csv(section.columns, section.rows)
    rows: list[Sequence[Cell]] = []
    for series in section.series:
        undefined = [None] * len(series.x)
        bounds = (series.low or undefined, series.high or undefined)
        rows += [[series.name, *point] for point in zip(series.x, series.y, *bounds, strict=True)]
    return _csv(("series", "x", "y", "low", "high"), rows)


def _csv(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([_cell(value) for value in row] for row in (columns, *rows))
    return text.getvalue()


def _cell(value: Cell) -> Cell:
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


# -- as files ----------------------------------------------------------------------------------------------------------


def check_installed() -> None:
    """Raise InputError if a library that an evaluation needs is missing."""
    if any(find_spec(name) is None for name in ("jinja2", "matplotlib", "scipy")):
        raise InputError(f"an evaluation needs Matplotlib, Jinja2 and SciPy; {to_install('evaluate')}")


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
    numeric = [_is_numeric(column) for column in columns]
    return Section(plot, table, numeric, list(zip(*texts, strict=True)))


def _decimals(column: Iterable[Cell]) -> int:
    """Return the decimals of a column: four significant digits of its greatest number, but at most four decimals, or
    six if that is less than 0.001."""
    greatest = max((abs(value) for value in column if isinstance(value, float)), default=0.0)
    most = 4 if greatest >= 0.001 else 6
    return min(max(3 - math.floor(math.log10(greatest)), 0), most) if greatest else 0


def series_table(figure: Figure) -> Table:
    """Return the ends and extremes of each series of a figure, for readers who cannot see the plot."""
    columns = ("series", "points", "first", "last", "least", "greatest")
    rows: list[list[Cell]] = []
    for series in figure.series:
        defined = [y for y in series.y if y is not None]
        ends = (defined[0], defined[-1], min(defined), max(defined)) if defined else (None,) * 4
        rows.append([series.name, len(defined), *ends])
    return Table(figure.id, figure.title, figure.definition, columns, rows)


def _is_numeric(column: Iterable[Cell]) -> bool:
    values = [value for value in column if value is not None]
    return bool(values) and not any(isinstance(value, str) for value in values)


def shown(value: Cell, decimals: int = 0) -> str:
    """Format a value for people: with thousands separators, with ``decimals`` unless it is an integer, and as a dash if
    it is undefined."""
    if value is None:
        return "\N{EN DASH}"
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{decimals}f}"


class Row(NamedTuple):
    """A setting, digest or figure of the runs; None for a run that does not have it."""

    key: str
    values: Sequence[str | None]
    differs: bool
    """True if the runs differ in it."""


def compare(runs: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[Row]]:
    """Return the names of runs, and their settings, digests and figures: nested mappings by their dotted keys, in order
    of the keys."""
    flat = [dict(_flat(run)) for run in runs]
    names = [run.pop("name", f"run {number}") for number, run in enumerate(flat, 1)]
    rows = {key: [run.get(key) for run in flat] for key in sorted(set().union(*flat))}
    return names, [Row(key, values, len(set(values)) > 1) for key, values in rows.items()]


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
