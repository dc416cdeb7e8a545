"""Draws a figure as SVG, with Matplotlib's SVG backend. Text stays text.

Plots are drawn in light colours. A style sheet replaces each by its dark counterpart if the reader's system is set to
dark (``prefers-color-scheme``, Media Queries Level 5). So the same SVG serves both, and a viewer without style sheets
shows the light one.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.ticker import FuncFormatter, LogFormatter

from crawl4llm.tools.evaluate.documents import Floats
from crawl4llm.tools.evaluate.figures import Figure, Series
from crawl4llm.tools.evaluate.report.data import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis


BACKGROUND: Final = "#ffffff"
TEXT: Final = "#1f2328"
AXIS: Final = "#6e7781"
GRID: Final = "#e1e5ea"
SERIES: Final = ("#0072b2", "#d55e00", "#009e73", "#69004b", "#5a69ff", "#a00028")
"""By place. They differ for the colour-blind too, and have a contrast of 3 to 1 with the background (WCAG 1.4.11)."""
NEUTRAL: Final = "#59636e"
"""Of bounds, which are no policy's."""

_DARK_SERIES: Final = ("#4fa8f0", "#ff8c42", "#2fd6a4", "#fbd5f2", "#8a74ff", "#f0405a")
_DARK: Final = {
    BACKGROUND: "#14171b",
    TEXT: "#e6e9ec",
    AXIS: "#8c959f",
    GRID: "#2b3138",
    NEUTRAL: "#a7b1bc",
    **dict(zip(SERIES, _DARK_SERIES, strict=True)),
}


def dark_plots() -> str:
    """Return the rules that make plots dark; they stand inside a media query."""
    return "\n".join(
        f'svg.plot [style*="{part}: {light}"] {{ {part}: {dark} !important }}'
        for light, dark in _DARK.items()
        for part in ("fill", "stroke")
    )


def plot_style() -> str:
    """Return the style sheet of a plot that is a file of its own."""
    return (
        ":root { color-scheme: light dark }\n"
        "svg.plot text { font-family: system-ui, sans-serif !important }\n"
        f"@media (prefers-color-scheme: dark) {{\n{dark_plots()}\n}}"
    )


Indices: TypeAlias = npt.NDArray[np.intp]

_DRAWN_WHOLE = 2000
"""A series of up to so many points is drawn whole."""
_LINE_COLUMNS = 1400
"""Pixel columns of a line: two for each pixel of a plot that is shown 700 wide."""
_SETTLED, _SETTLED_SHARE = 100, 0.1
"""Width of the beginning of the x axis, and its largest share of the axis, which does not set the scale of y: means of
few pages vary widely."""
_DOT_COLUMNS, _DOT_ROWS = 200, 120
"""Places for dots, each 3.5 pixels wide."""
_DASHED = (0, (5, 3))
_OF_BOUNDS: Sequence[Any] = (_DASHED, (0, (1.5, 2)))
_PATTERNS: Sequence[Any] = ("-", (0, (8, 2, 2, 2)), (0, (1, 1.5)))
"""How lines differ beyond their colours: one for each time that the colours are used up."""
_MARKERS: Sequence[str] = ("o", "s", "^", "D", "v", "P", "X", "p")
_MARKS = 6
"""The most markers along a line. Each line has its own places for them, so that lines that coincide can all be seen."""
_LINES, _ABOVE_LINES = 2.0, 2.5
"""Drawing order: markers lie above all lines."""
_MARKER_SIZE = 5.0
_MARGIN = 0.06
"""Of a scale, above and below."""
_BAR_SHARE = 0.9
"""The part of the space between its neighbours that a bar fills."""


class Curve(NamedTuple):
    """A series as it is drawn: points that have a place on the x axis; NaN if a value is undefined."""

    x: Floats
    y: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, series: Series, figure: Figure) -> Curve:
        """Return the part of a series that has a place on the axes of its figure."""
        undefined = [None] * len(series.x)
        sequences = (series.x, series.y, series.low or undefined, series.high or undefined)
        curve = cls(*(np.array(values, dtype=np.float64) for values in sequences))
        if figure.x_log:
            curve.x[curve.x <= 0] = np.nan
        if figure.y_log:
            curve.y[curve.y <= 0] = np.nan
        return curve.at(~np.isnan(curve.x))

    def at(self, chosen: npt.NDArray[Any]) -> Curve:
        """Return some of its points, chosen by indices or by a mask."""
        return Curve(*(values[chosen] for values in self))

    @property
    def defined(self) -> Curve:
        """Its points whose y is defined."""
        return self.at(~np.isnan(self.y))


def draw_line(axes: Axes, curve: Curve, place: int, *, dashed: bool, marker: str, marks: Floats) -> Any:
    """Draw a line with its band, and a marker at the points next to ``marks``; a point without neighbours is a dot.

    Returns its legend.
    """
    if len(curve.x) > _DRAWN_WHOLE:
        pixels = _pixels(curve.x, axes.get_xscale(), _LINE_COLUMNS)
        curve = curve.at(line_points(pixels, curve.y, curve.low, curve.high))
    colour = _colour(place)
    style: Any = _DASHED if dashed else _PATTERNS[place // len(SERIES) % len(_PATTERNS)]
    if place < 0:
        style = _OF_BOUNDS[place % len(_OF_BOUNDS) - 1]
    if not np.isnan(curve.low).all():
        axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.18, linewidth=0)
    gaps = np.concatenate(([True], np.isnan(curve.y), [True]))
    alone = curve.at(~gaps[1:-1] & gaps[:-2] & gaps[2:])
    if len(alone.x):
        axes.plot(alone.x, alone.y, "o", color=colour, markeredgewidth=0)
    axes.plot(curve.x, curve.y, color=colour, linestyle=style, zorder=_LINES)
    seen = curve.defined
    within = marks[(marks >= seen.x.min(initial=np.inf)) & (marks <= seen.x.max(initial=-np.inf))]
    marked = seen.at(np.unique([int(np.argmin(np.abs(seen.x - mark))) for mark in within]).astype(np.intp))
    shape: Any = {"marker": marker, "color": colour, "markersize": _MARKER_SIZE, "markeredgewidth": 0}
    axes.plot(marked.x, marked.y, linestyle="none", zorder=_ABOVE_LINES, **shape)
    return Line2D([], [], linestyle=style, **shape)


def _colour(place: int) -> str:
    return NEUTRAL if place < 0 else SERIES[place % len(SERIES)]


def draw_points(axes: Axes, curve: Curve, place: int) -> Any:
    """Draw dots; of those that hide each other only one. Returns their legend."""
    curve = curve.defined
    if len(curve.x) > _DRAWN_WHOLE:
        x_pixels = _pixels(curve.x, axes.get_xscale(), _DOT_COLUMNS)
        curve = curve.at(cloud_points(x_pixels, _pixels(curve.y, axes.get_yscale(), _DOT_ROWS)))
    return axes.plot(curve.x, curve.y, "o", color=_colour(place), markeredgewidth=0)[0]


def draw_bars(axes: Axes, curve: Curve, place: int, nth: int, sets: int) -> Any:
    """Draw the ``nth`` of the sets of bars, which share the space around each x. Returns their legend."""
    curve = curve.defined
    if len(curve.x) > _DRAWN_WHOLE:
        curve = curve.at(line_points(_pixels(curve.x, axes.get_xscale(), _LINE_COLUMNS), curve.y))
    is_log = axes.get_xscale() == "log"
    left, right = _room(np.log(curve.x) if is_log else curve.x)
    share = (right - left) * _BAR_SHARE / sets
    start = left + (right - left) * (1 - _BAR_SHARE) / 2 + nth * share
    end = start + share
    if is_log:
        start, end = np.exp(start), np.exp(end)
    zero = np.zeros_like(curve.y)
    corners = np.array([(start, zero), (start, curve.y), (end, curve.y), (end, zero)]).transpose(2, 0, 1)
    # One path for all: axes.bar() would make an object of each bar, 20 seconds for some thousands.
    bars = PathPatch(Path.make_compound_path_from_polys(corners), color=_colour(place), linewidth=0)
    bars.sticky_edges.y.append(0)
    axes.add_patch(bars)
    axes.autoscale_view()
    return bars


def _room(x: Floats) -> tuple[Floats, Floats]:
    """Return the space around each x: half way to its neighbours; 1 wide without neighbours."""
    distinct, place = np.unique(x, return_inverse=True)
    half_way = (distinct[1:] + distinct[:-1]) / 2
    first = 2 * distinct[:1] - half_way[:1] if len(half_way) else distinct - 0.5
    last = 2 * distinct[-1:] - half_way[-1:] if len(half_way) else distinct + 0.5
    edges = np.concatenate((first, half_way, last))
    return edges[place], edges[place + 1]


def _pixels(values: Floats, scale: str, size: int) -> Floats:
    """Return positions on an axis of ``size`` pixels that the values fill."""
    shown = np.log(values) if scale == "log" else values
    return (shown - np.min(shown)) * (size / (np.ptp(shown) or 1.0))


def line_points(pixels: Floats, *curves: Floats) -> Indices:
    """Return indices of the points that curves over the same x need, in order.

    ``pixels``: position of each point on the x axis, in pixels. Of neighbours that share a pixel column, the first, the
    last, the least and the greatest of each curve draw the same line as all of them do (M4 aggregation: Jugel et al.,
    VLDB 2014, section 4). NaN in the first curve is a gap, which stays if it empties a column.
    """
    columns = np.floor(pixels)
    defined = ~np.isnan(curves[0])
    stretches = _stretches(columns)
    has_values = np.zeros(len(stretches), dtype=bool)
    has_values[stretches[defined]] = True
    kept = np.flatnonzero(defined | ~has_values[stretches])
    stretches = stretches[kept]
    chosen = [kept[index] for index in _ends(stretches)]
    for curve in curves:
        values = np.where(np.isnan(curve[kept]), curves[0][kept], curve[kept])
        order = np.lexsort((values, stretches))
        chosen += [kept[order[index]] for index in _ends(stretches[order])]
    return np.unique(np.concatenate(chosen))


def _stretches(columns: Floats) -> Indices:
    """Return, for each point, the number of its stretch: of neighbours that are all in one column."""
    return np.cumsum(np.concatenate(([False], columns[1:] != columns[:-1])))[: len(columns)]


def _ends(sorted_numbers: Indices) -> tuple[Indices, Indices]:
    """Return where each number comes first and last."""
    changes = np.flatnonzero(sorted_numbers[1:] != sorted_numbers[:-1])
    last = np.append(changes, len(sorted_numbers) - 1)
    return np.append(0, changes + 1), last


def cloud_points(x_pixels: Floats, y_pixels: Floats) -> Indices:
    """Return indices of the points of a cloud that no other hides, in order: one for each pixel."""
    cells = np.stack((np.floor(x_pixels), np.floor(y_pixels)))
    return np.sort(np.unique(cells, axis=1, return_index=True)[1])


_WIDTH, _HEIGHT = 5.0, 3.2
"""Inches, without the legend. The plot is narrow, so letters stay readable on a telephone, whose whole width it
fills."""
_LEGEND_COLUMNS, _LEGEND_LETTERS, _LEGEND_LINE = 3, 54, 0.2
"""Columns of a legend at most, letters that fit into its width, and the height of a line of it in inches."""

_DPI = 200
"""Of PNG files."""

_STYLE = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.size": 10,
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
    """Draw a figure as an ``svg`` element, to stand in an HTML page with the rules of :func:`dark_plots`.

    The same figure gives the same bytes with the same release of Matplotlib.
    """
    with _canvas(figure) as canvas:
        return _svg(canvas, figure)


def draw_files(figure: Figure) -> tuple[str, dict[str, bytes]]:
    """Draw a figure as :func:`draw` does, and as the files of other formats, by their suffix."""
    title = printable(figure.title)
    unwanted = {"pdf": dict.fromkeys(("Creator", "Producer", "CreationDate")), "png": {"Software": None}}
    with _canvas(figure) as canvas:
        svg = _svg(canvas, figure)
        files = {}
        for suffix, metadata in unwanted.items():
            written = io.BytesIO()
            canvas.savefig(written, format=suffix, dpi=_DPI, metadata={**metadata, "Title": title})
            files[suffix] = written.getvalue()
        return svg, files


@contextmanager
def _canvas(figure: Figure) -> Iterator[Canvas]:
    """Draw a figure, for all formats alike."""
    # The salt makes the ids of clip paths and markers unique among all plots on a page.
    style: Any = {**_STYLE, "svg.hashsalt": figure.id}
    with mpl.rc_context(style), warnings.catch_warnings():
        # Matplotlib measures text in its own font; the reader's may well have the glyph.
        warnings.filterwarnings("ignore", r"Glyph \d+", UserWarning)
        canvas = Canvas(figsize=(_WIDTH, _HEIGHT), layout="constrained")
        FigureCanvasSVG(canvas)
        _add_legend(canvas, figure, _plot(canvas.add_subplot(), figure))
        yield canvas


def stand_alone(svg: str) -> str:
    """Return the result of :func:`draw` as the text of an SVG file."""
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
    """Draw all series; returns their symbols for the legend."""
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
    for nth, (series, curve) in enumerate(zip(figure.series, curves, strict=True)):
        place = nth if series.place is None else series.place
        if series.kind == "points":
            drawn.append(draw_points(axes, curve, place))
        elif series.kind == "bars":
            drawn.append(draw_bars(axes, curve, place, sets.index(nth), len(sets)))
        else:
            shape = _MARKERS[nth % len(_MARKERS)]
            marks = _marks(curves, nth, log=figure.x_log)
            drawn.append(draw_line(axes, curve, place, dashed=series.kind == "dashed", marker=shape, marks=marks))
    if figure.settles:
        _scale_to_settled(axes, curves)
    return drawn


def _marks(curves: Sequence[Curve], nth: int, *, log: bool) -> Floats:
    """Return where on the x axis the ``nth`` of some curves has its markers."""
    x = np.concatenate([curve.x for curve in curves])
    low, high = float(x.min()), float(x.max())
    shares = (np.arange(_MARKS) + (nth + 0.5) / len(curves)) / _MARKS
    marks: Floats = low * (high / low) ** shares if log else low + (high - low) * shares
    return marks


def _scale_to_settled(axes: Axes, curves: Sequence[Curve]) -> None:
    """Scale the y axis to the points after the first ones; of these it shows those that fit."""
    first = min(_SETTLED, _SETTLED_SHARE * max(np.max(curve.x, initial=0.0) for curve in curves))
    settled = np.concatenate([np.concatenate(curve.at(curve.x >= first)[1:]) for curve in curves])
    settled = settled[np.isfinite(settled)]
    if len(settled):
        margin = _MARGIN * (np.ptp(settled) or abs(settled[0]) or 1.0)
        axes.set_ylim(settled.min() - margin, settled.max() + margin)


def _add_legend(canvas: Canvas, figure: Figure, drawn: list[Any]) -> None:
    """Add the names below the plot, which grows by as much; a name too long for the width loses its middle."""
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
    """Format a value beside an axis: six digits at most, ``M`` for millions."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:,g}M"
    return f"{value:,g}"
