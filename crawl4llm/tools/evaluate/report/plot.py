"""Drawing a figure as SVG, with Matplotlib's SVG backend. Text stays text, colours can be changed (``colours``)."""

from __future__ import annotations

import io
import math
import re
import warnings
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, LogFormatter

from crawl4llm.tools.evaluate.figures import Figure
from crawl4llm.tools.evaluate.report.colours import AXIS, BACKGROUND, GRID, TEXT, plot_style
from crawl4llm.tools.evaluate.report.data import printable
from crawl4llm.tools.evaluate.report.marks import Curve, draw_bars, draw_line, draw_points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

_WIDTH, _HEIGHT = 7.2, 4.2
"""Inches, without the legend."""
_LEGEND_COLUMNS, _LEGEND_LETTERS, _LEGEND_LINE = 4, 88, 0.19
"""Columns of a legend at most, letters that fit into its width, and the height of a line of it in inches."""

_STYLE = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.size": 9,
    "text.color": TEXT,
    "axes.labelcolor": TEXT,
    "axes.edgecolor": AXIS,
    "axes.facecolor": BACKGROUND,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": BACKGROUND,
    "savefig.facecolor": BACKGROUND,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 3.5,
    "xtick.color": AXIS,
    "xtick.labelcolor": TEXT,
    "ytick.color": AXIS,
    "ytick.labelcolor": TEXT,
}


def draw(figure: Figure) -> str:
    """A figure as an ``svg`` element, to stand in an HTML page with the rules of ``colours.dark_plots``.

    The same figure gives the same bytes with the same release of Matplotlib.
    """
    # The salt makes the ids of clip paths and markers unique among all plots on a page.
    style: Any = {**_STYLE, "svg.hashsalt": figure.id}
    with mpl.rc_context(style), warnings.catch_warnings():
        # Matplotlib measures text in its own font; the reader's may well have the glyph.
        warnings.filterwarnings("ignore", r"Glyph \d+", UserWarning)
        canvas = Canvas(figsize=(_WIDTH, _HEIGHT), layout="constrained")
        FigureCanvasSVG(canvas)
        _add_legend(canvas, figure, _plot(canvas.add_subplot(), figure))
        return _svg(canvas, figure)


def stand_alone(svg: str) -> str:
    """What :func:`draw` gives, as the text of an SVG file."""
    root, end, content = svg.partition(">")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{root}{end}\n<style>\n{plot_style()}\n</style>{content}\n'


def _svg(canvas: Canvas, figure: Figure) -> str:
    written = io.StringIO()
    unwanted = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    canvas.savefig(written, format="svg", metadata={**unwanted, "Title": printable(figure.title)})
    text = written.getvalue()
    text = re.sub(r" *<metadata>.*?</metadata>\n", "", text[text.index("<svg ") :], count=1, flags=re.DOTALL)
    # Nothing refers to the ids of groups, which are the same in every plot.
    return re.sub(r'<g id="[^"]*"', "<g", text).replace("<svg ", '<svg class="plot" role="img" ', 1).strip()


def _plot(axes: Axes, figure: Figure) -> list[Any]:
    """Draw all series; returns what stands for each in the legend."""
    curves = [Curve.of(series, figure) for series in figure.series]
    axes.set_xlabel(printable(figure.x_label))
    axes.set_ylabel(printable(figure.y_label))
    if not any(len(curve.defined.x) for curve in curves):
        axes.set(xticks=[], yticks=[])
        axes.text(0.5, 0.5, "no values", transform=axes.transAxes, ha="center", va="center")
        return []
    axes.set_xscale("log" if figure.x_log else "linear")
    axes.set_yscale("log" if figure.y_log else "linear")
    _format_ticks(axes.xaxis, log=figure.x_log)
    _format_ticks(axes.yaxis, log=figure.y_log)
    sets = [place for place, series in enumerate(figure.series) if series.kind == "bars"]
    drawn = []
    for place, (series, curve) in enumerate(zip(figure.series, curves, strict=True)):
        if series.kind == "points":
            drawn.append(draw_points(axes, curve, place))
        elif series.kind == "bars":
            drawn.append(draw_bars(axes, curve, place, sets.index(place), len(sets)))
        else:
            drawn.append(draw_line(axes, curve, place, dashed=series.kind == "dashed"))
    return drawn


def _add_legend(canvas: Canvas, figure: Figure, drawn: list[Any]) -> None:
    """Names below the plot, which grows by as much; a name too long for the width loses its middle."""
    if not drawn:
        return
    names = [_shortened(printable(series.name), _LEGEND_LETTERS) for series in figure.series]
    columns = max(1, min(_LEGEND_COLUMNS, _LEGEND_LETTERS // (max(map(len, names)) + 8)))
    canvas.set_figheight(_HEIGHT + _LEGEND_LINE * math.ceil(len(names) / columns))
    canvas.legend(drawn, names, loc="outside lower left", ncols=columns)


def _shortened(name: str, length: int) -> str:
    name = " ".join(name.split())
    half = length // 2
    return name if len(name) <= length else f"{name[: half - 1]}…{name[-half:]}"


def _format_ticks(axis: Axis, *, log: bool) -> None:
    if log:
        axis.set_major_formatter(_LogTicks())
        axis.set_minor_formatter(_LogTicks(labelOnlyBase=False))
    else:
        axis.set_major_formatter(FuncFormatter(tick_label))


class _LogTicks(LogFormatter):
    """Labels the ticks that Matplotlib would, as :func:`tick_label` does."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return tick_label(x, pos) if super().__call__(x, pos) else ""


def tick_label(value: float, _position: int | None = None) -> str:
    """A value beside an axis: six digits at most, ``M`` for millions."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:,g}M"
    return f"{value:,g}"
