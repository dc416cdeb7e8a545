"""What the parts of the report share."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from crawl4llm.tools.evaluate.documents import Floats, Integers
from crawl4llm.tools.evaluate.figures import Series
from crawl4llm.tools.evaluate.measures import Band

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
