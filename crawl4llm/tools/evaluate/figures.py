"""What an evaluation finds, as plain data: figures, tables and the report that holds them.

Nothing here knows how a number was computed or how it is shown; crawl4llm.tools.evaluate.report writes it to disk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal


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
