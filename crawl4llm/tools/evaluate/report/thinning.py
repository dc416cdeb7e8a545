"""Which points of a long series are worth drawing: those that change what is seen."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


def line_points(pixels: Floats, *curves: Floats) -> Indices:
    """Indices of the points that curves over the same x need, in order.

    ``pixels``: position of each point on the x axis, in pixels. Of neighbours that share a pixel column, the first,
    the last, the least and the greatest of each curve draw the same line as all of them do (M4 aggregation: Jugel et
    al., VLDB 2014, section 4). NaN in the first curve is a gap, which stays where it empties a column.
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
    """The number of the stretch of neighbours, all in one column, that each point belongs to."""
    return np.cumsum(np.concatenate(([False], columns[1:] != columns[:-1])))[: len(columns)]


def _ends(sorted_numbers: Indices) -> tuple[Indices, Indices]:
    """Where each number comes first and last."""
    changes = np.flatnonzero(sorted_numbers[1:] != sorted_numbers[:-1])
    last = np.append(changes, len(sorted_numbers) - 1)
    return np.append(0, changes + 1), last


def cloud_points(x_pixels: Floats, y_pixels: Floats) -> Indices:
    """Indices of the points of a cloud that are not hidden by another, in order: one for each pixel."""
    cells = np.stack((np.floor(x_pixels), np.floor(y_pixels)))
    return np.sort(np.unique(cells, axis=1, return_index=True)[1])
