"""What an evaluation finds, as plain data: figures, tables and the report that holds them.

Nothing here knows how a number was computed or how it is shown; crawl4llm.tools.evaluate.report writes it to disk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from crawl4llm.tools.evaluate.documents import Floats, Integers
from crawl4llm.tools.evaluate.measures import Band


@dataclass(frozen=True)
class Series:
    """One curve, cloud of points or set of bars. ``y`` is None or NaN where a value is undefined.

    ``low`` and ``high`` bound a confidence band and are given together. All sequences are as long as ``x``.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    kind: Literal["line", "dashed", "points", "bars"] = "line"


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


@dataclass(frozen=True)
class Table:
    """A table; a cell is None where its value is undefined. ``id`` and ``definition`` as a figure's."""

    id: str
    title: str
    definition: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | float | int | None]]


@dataclass(frozen=True)
class Report:
    """All that an evaluation found. ``runs`` has, for each run, its name, its settings and its digests."""

    title: str
    notes: Sequence[str]
    sections: Sequence[Figure | Table]
    runs: Sequence[Mapping[str, Any]]


Cell: TypeAlias = str | float | int | None


def number(value: float | np.floating | None) -> float | None:
    """A number for a table or plot; None where it is undefined."""
    return None if value is None or not np.isfinite(value) else float(value)


def numbers(values: Floats | Integers) -> list[float | None]:
    """Many of them."""
    return [number(value) for value in values.tolist()]


def places(values: Floats | Integers) -> list[float]:
    """Where on an axis points lie."""
    return [float(value) for value in values]


def line(name: str, x: Floats | Integers, y: Floats, kind: Literal["line", "dashed", "points"] = "line") -> Series:
    """A curve without a band."""
    return Series(name, places(x), numbers(y), kind=kind)


def band(name: str, x: Floats | Integers, y: Band, sampled: bool) -> Series:
    """A curve, with its confidence band where it was estimated from a sample."""
    if not sampled:
        return line(name, x, y.value)
    low, high = (np.nan_to_num(edge, nan=0.0) for edge in (y.low, y.high))
    return Series(name, places(x), numbers(y.value), low=places(low), high=places(high))
