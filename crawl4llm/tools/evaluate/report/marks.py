"""What stands in a plot for a series: a line with its confidence band, dots, or bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from crawl4llm.tools.evaluate.figures import Figure, Series
from crawl4llm.tools.evaluate.report.colours import SERIES
from crawl4llm.tools.evaluate.report.thinning import Floats, cloud_points, line_points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DRAWN_WHOLE = 2000
"""A series of so many points is not thinned."""
_LINE_COLUMNS = 1400
"""Pixel columns of a line: two for each pixel of a plot that is 700 wide."""
_DOT_COLUMNS, _DOT_ROWS = 200, 120
"""Places for dots, each 3.5 pixels wide."""
_DASHED = (0, (5, 3))
_PATTERNS: Sequence[Any] = ("-", (0, (8, 2, 2, 2)), (0, (1, 1.5)))
"""How lines differ beyond their colours: one for each time that the colours are used up."""
_BAR_SHARE = 0.9
"""The part of the room between its neighbours that a bar fills."""


class Curve(NamedTuple):
    """A series as it is drawn: points that have a place on the x axis; NaN where a value is undefined."""

    x: Floats
    y: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, series: Series, figure: Figure) -> Curve:
        """What of a series has a place on the axes of its figure."""
        undefined = [None] * len(series.x)
        sequences = (series.x, series.y, series.low or undefined, series.high or undefined)
        curve = cls(*(np.array(values, dtype=np.float64) for values in sequences))
        if figure.x_log:
            curve.x[curve.x <= 0] = np.nan
        if figure.y_log:
            curve.y[curve.y <= 0] = np.nan
        return curve.at(~np.isnan(curve.x))

    def at(self, chosen: npt.NDArray[Any]) -> Curve:
        """Some of its points, chosen by indices or by a mask."""
        return Curve(*(values[chosen] for values in self))

    @property
    def defined(self) -> Curve:
        """Its points whose y is defined."""
        return self.at(~np.isnan(self.y))


def draw_line(axes: Axes, curve: Curve, place: int, *, dashed: bool) -> Any:
    """A line with its band; a point without neighbours, where a line has no length, is a dot. Returns its legend."""
    if len(curve.x) > _DRAWN_WHOLE:
        pixels = _pixels(curve.x, axes.get_xscale(), _LINE_COLUMNS)
        curve = curve.at(line_points(pixels, curve.y, curve.low, curve.high))
    colour = SERIES[place % len(SERIES)]
    style = _DASHED if dashed else _PATTERNS[place // len(SERIES) % len(_PATTERNS)]
    if not np.isnan(curve.low).all():
        axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.18, linewidth=0)
    gaps = np.concatenate(([True], np.isnan(curve.y), [True]))
    alone = curve.at(~gaps[1:-1] & gaps[:-2] & gaps[2:])
    if len(alone.x):
        axes.plot(alone.x, alone.y, "o", color=colour, markeredgewidth=0)
    return axes.plot(curve.x, curve.y, color=colour, linestyle=style)[0]


def draw_points(axes: Axes, curve: Curve, place: int) -> Any:
    """Dots; of those that hide each other only one. Returns their legend."""
    curve = curve.defined
    if len(curve.x) > _DRAWN_WHOLE:
        x_pixels = _pixels(curve.x, axes.get_xscale(), _DOT_COLUMNS)
        curve = curve.at(cloud_points(x_pixels, _pixels(curve.y, axes.get_yscale(), _DOT_ROWS)))
    return axes.plot(curve.x, curve.y, "o", color=SERIES[place % len(SERIES)], markeredgewidth=0)[0]


def draw_bars(axes: Axes, curve: Curve, place: int, nth: int, sets: int) -> Any:
    """The ``nth`` of so many sets of bars, which share the room around each x. Returns their legend."""
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
    bars = PathPatch(Path.make_compound_path_from_polys(corners), color=SERIES[place % len(SERIES)], linewidth=0)
    bars.sticky_edges.y.append(0)
    axes.add_patch(bars)
    axes.autoscale_view()
    return bars


def _room(x: Floats) -> tuple[Floats, Floats]:
    """The room around each x: half way to its neighbours; 1 wide where it has none."""
    distinct, place = np.unique(x, return_inverse=True)
    half_way = (distinct[1:] + distinct[:-1]) / 2
    first = 2 * distinct[:1] - half_way[:1] if len(half_way) else distinct - 0.5
    last = 2 * distinct[-1:] - half_way[-1:] if len(half_way) else distinct + 0.5
    edges = np.concatenate((first, half_way, last))
    return edges[place], edges[place + 1]


def _pixels(values: Floats, scale: str, size: int) -> Floats:
    """Positions on an axis of so many pixels, as if the values filled it."""
    shown = np.log(values) if scale == "log" else values
    return (shown - np.min(shown)) * (size / (np.ptp(shown) or 1.0))
