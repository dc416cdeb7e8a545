"""Draws figures with Matplotlib: on white, in light and dark pages alike. Text stays text."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import LogFormatter, StrMethodFormatter

from crawl4llm.tools.evaluate.documents import Floats
from crawl4llm.tools.evaluate.report import Figure, Series, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
"""Of PNG files, and of the clouds of points in the others."""
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
    "png": ("Software",),
}
"""Formats, each with metadata to leave out: they differ between releases or from one time to the next."""


def draw(figure: Figure) -> dict[str, bytes]:
    """Return a figure as the files of several formats, by their suffix: ``svg``, ``pdf``, ``png``.

    The same figure gives the same bytes with the same release of Matplotlib.
    """
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
        return files


def _plot(axes: Axes, figure: Figure) -> list[Any]:
    """Draw all series; return their symbols for the legend."""
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
    if series.kind == "bars":
        return axes.bar(x[known], y[known], color=colour)
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
