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
    settles: bool = False
    """True to leave the first points out of the scale of the y axis, because means of few pages vary widely."""
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


def number(value: float | np.floating | None) -> float | None:
    """Return a number for a table; None if it is undefined."""
    return None if value is None or not np.isfinite(value) else float(value)


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
