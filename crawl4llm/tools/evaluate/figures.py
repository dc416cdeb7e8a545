"""The results of an evaluation as plain data: figures, tables and the report that holds them.

Nothing here knows how a number was computed or how it is shown; crawl4llm.tools.evaluate.report writes it to disk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from crawl4llm.tools.evaluate.documents import Floats, Integers
    from crawl4llm.tools.evaluate.measures import Band

Kind: TypeAlias = Literal["line", "dashed", "points", "bars"]
Cell: TypeAlias = str | float | int | None


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
    kind: Kind = "line"


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
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True)
class Report:
    """All figures and tables of an evaluation. ``runs`` has, for each run, its name, its settings and its digests."""

    title: str
    notes: Sequence[str]
    sections: Sequence[Figure | Table]
    runs: Sequence[Mapping[str, Any]]


def number(value: float | np.floating | None) -> float | None:
    """Return a number for a table; None where it is undefined."""
    return None if value is None or not np.isfinite(value) else float(value)


def floats(values: Floats | Integers) -> list[float]:
    """Return the numbers of a series, NaN where they are undefined."""
    return values.astype(np.float64).tolist()  # type: ignore[no-any-return]  # by its dtype


def line(name: str, x: Floats | Integers, y: Floats | Integers, kind: Kind = "line") -> Series:
    """Return a curve without a band."""
    return Series(name, floats(x), floats(y), kind=kind)


def band(name: str, x: Floats | Integers, y: Band, sampled: bool) -> Series:
    """Return a curve, with its confidence band where it was estimated from a sample."""
    curve = line(name, x, y.value)
    if not sampled:
        return curve
    return replace(curve, low=floats(np.nan_to_num(y.low, nan=0.0)), high=floats(np.nan_to_num(y.high, nan=0.0)))
