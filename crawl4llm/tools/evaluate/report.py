"""Writes the report of an evaluation: ``report.html``, and the same numbers and drawings as files of their own.

The page needs nothing else: no network, no other file, no library in the browser. Matplotlib draws figures on white, in
light and dark pages alike; text stays text.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from importlib.util import find_spec
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.installed import to_install
from crawl4llm.tools.evaluate.figures import Cell, Figure, Report, Series, Table, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

    from crawl4llm.tools.evaluate.documents import Floats


def check_installed() -> None:
    """Raise InputError if a library that an evaluation needs is missing."""
    if any(find_spec(name) is None for name in ("jinja2", "matplotlib", "scipy")):
        raise InputError(f"an evaluation needs Matplotlib, Jinja2 and SciPy; {to_install('evaluate')}")


def write_report(report: Report, directory: Path) -> list[Path]:
    """Write ``report.html``, ``report.json``, ``figures/ID`` as SVG and PDF, ``data/ID.csv``; return their paths.

    An earlier report there is overwritten. The same report gives the same bytes. Raises InputError if the directory
    cannot be written or a library is missing, and ValueError as its ``plain`` does.
    """
    check_installed()
    report = report.plain()
    drawn = {section.id: draw(section) for section in report.sections if isinstance(section, Figure)}
    contents: dict[str, str | bytes] = {
        "report.html": render(report, {name: drawings["svg"] for name, drawings in drawn.items()}),
        "report.json": report.json(),
        **{f"figures/{name}.{suffix}": data for name, drawings in drawn.items() for suffix, data in drawings.items()},
        **{f"data/{section.id}.csv": section.csv() for section in report.sections},
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


# -- drawings ----------------------------------------------------------------------------------------------------------

SERIES: Final = ("#0072b2", "#d55e00", "#009e73", "#69004b", "#5a69ff", "#a00028")
"""By place. They differ for the colour-blind too, and have a contrast of 3 to 1 with white (WCAG 1.4.11)."""
NEUTRAL: Final = "#59636e"
"""Of bounds, which are no policy's."""

_DASHED: Final = (0, (5, 3))
_OF_BOUNDS: Sequence[Any] = (_DASHED, (0, (1.5, 2)))
_PATTERNS: Sequence[Any] = ("-", (0, (8, 2, 2, 2)), (0, (1, 1.5)))
"""How lines differ beyond their colours: one for each time that the colours are used up."""
_MARKERS: Sequence[str] = ("o", "s", "^", "D", "v", "P", "X", "p")
_MARKS: Final = 5
"""Markers along the diagonal of a plot. Each line has its own places for them, so that lines that coincide can all be
seen."""
_ALL_MARKED: Final = 12
"""Points up to which a line has a marker at each, because a point between gaps is no line."""

_WIDTH, _HEIGHT = 5.0, 3.2
"""Inches, without the legend. The plot is narrow, so letters stay readable on a telephone, whose whole width it
fills."""
_LEGEND_LETTERS, _LEGEND_LINE = 54, 0.2
"""Letters that fit into the width of a legend, and the height of a line of it in inches."""
_DPI: Final = 200
"""Of the clouds of points, which are pictures in the drawings."""
_STYLE: Final[dict[str, Any]] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.alpha": 0.4,
    "legend.frameon": False,
    "lines.markersize": 5.0,
    "lines.markeredgewidth": 0,
}
_FORMATS: Final = {
    "svg": ("Creator", "Date", "Format", "Type"),
    "pdf": ("Creator", "Producer", "CreationDate"),
}
"""Formats, each with metadata to leave out: they differ between releases or from one time to the next."""


def draw(figure: Figure) -> dict[str, bytes]:
    """Return a figure as the files of several formats, by their suffix: ``svg`` and ``pdf``.

    The same figure gives the same bytes with the same release of Matplotlib.
    """
    # an extra, which check_installed() has looked for
    import matplotlib as mpl
    from matplotlib.figure import Figure as Canvas

    title = printable(figure.title)
    style: Any = {**_STYLE, "svg.hashsalt": figure.id}
    with mpl.rc_context(style), warnings.catch_warnings():
        # Matplotlib measures text in its own font; the reader's may well have the glyph.
        warnings.filterwarnings("ignore", r"Glyph \d+", UserWarning)
        canvas = Canvas(figsize=(_WIDTH, _HEIGHT), layout="constrained")
        _add_legend(canvas, figure, _plot(canvas.add_subplot(), figure))
        files = {}
        for suffix, unwanted in _FORMATS.items():
            written = io.BytesIO()
            metadata: dict[str, Any] = {**dict.fromkeys(unwanted), "Title": title}
            canvas.savefig(written, format=suffix, dpi=_DPI, metadata=metadata)
            files[suffix] = written.getvalue()
            canvas.set_layout_engine("none")  # where things lie is settled by now
        return files


def _plot(axes: Axes, figure: Figure) -> list[Any]:
    """Draw all series; return their symbols for the legend."""
    from matplotlib.ticker import LogFormatter, StrMethodFormatter  # as above

    axes.set(xlabel=printable(figure.x_label), ylabel=printable(figure.y_label))
    curves = [_curve(series, figure) for series in figure.series]
    if not any(np.isfinite(curve[:2]).all(axis=0).any() for curve in curves):
        axes.set(xticks=[], yticks=[])
        axes.text(0.5, 0.5, "no values", transform=axes.transAxes, ha="center", va="center")
        return []
    axes.set(xscale="log" if figure.x_log else "linear", yscale="log" if figure.y_log else "linear")
    for axis, is_log in ((axes.xaxis, figure.x_log), (axes.yaxis, figure.y_log)):
        axis.set_major_formatter(LogFormatter() if is_log else StrMethodFormatter("{x:,g}"))
        if is_log:
            axis.set_minor_formatter(LogFormatter(labelOnlyBase=False))
    return [
        _draw_series(axes, series, curve, nth, nth / len(curves))
        for nth, (series, curve) in enumerate(zip(figure.series, curves, strict=True))
    ]


def _curve(series: Series, figure: Figure) -> Floats:
    """Return x, y and the bounds of a series; NaN for values that are undefined or have no place on their axis."""
    undefined = [None] * len(series.x)
    bounds = series.low or undefined, series.high or undefined
    curve: Floats = np.array([series.x, series.y, *bounds], dtype=np.float64)
    for values, is_log in ((curve[:1], figure.x_log), (curve[1:], figure.y_log)):
        values[values <= (0 if is_log else -np.inf)] = np.nan
    return curve


def _draw_series(axes: Axes, series: Series, curve: Floats, nth: int, phase: float) -> Any:
    """Draw the ``nth`` series; return its symbol. ``phase``: how far its markers are moved, of the way to the next."""
    place = nth if series.place is None else series.place
    colour = NEUTRAL if place < 0 else SERIES[place % len(SERIES)]
    x, y, low, high = curve
    known = np.isfinite(x + y)
    if series.kind == "points":
        return axes.plot(x[known], y[known], "o", color=colour, markersize=3.5, rasterized=True)[0]
    style: Any = _DASHED if series.kind == "dashed" else _PATTERNS[place // len(SERIES) % len(_PATTERNS)]
    if place < 0:
        style = _OF_BOUNDS[place % len(_OF_BOUNDS) - 1]
    if series.low is not None:
        axes.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)
    marks = None if np.count_nonzero(known) <= _ALL_MARKED else (phase / _MARKS, 1 / _MARKS)
    return axes.plot(x, y, color=colour, linestyle=style, marker=_MARKERS[nth % len(_MARKERS)], markevery=marks)[0]


def _add_legend(canvas: Canvas, figure: Figure, drawn: list[Any]) -> None:
    """Add the names below the plot, which grows by as much; a name too long for the width loses its middle."""
    if not drawn:
        return
    names = [_shortened(printable(series.name)) for series in figure.series]
    columns = max(1, min(3, _LEGEND_LETTERS // (max(map(len, names)) + 8)))
    canvas.set_figheight(_HEIGHT + _LEGEND_LINE * math.ceil(len(names) / columns))
    canvas.legend(drawn, names, loc="outside lower left", ncols=columns)


def _shortened(name: str) -> str:
    name, half = " ".join(name.split()), _LEGEND_LETTERS // 2
    return name if len(name) <= _LEGEND_LETTERS else f"{name[: half - 1]}…{name[-half:]}"
