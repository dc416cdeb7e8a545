"""The results of an evaluation as plain data, and as CSV and JSON: figures, tables and the report that holds them.

Nothing here knows how a number was computed or how it is shown; crawl4llm.tools.evaluate.report writes it to disk.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from crawl4llm.base.terminal import harmless

if TYPE_CHECKING:
    from crawl4llm.tools.evaluate.documents import Floats, Integers
    from crawl4llm.tools.evaluate.runs import Band

Kind: TypeAlias = Literal["line", "dashed", "points"]
Cell: TypeAlias = str | float | int | None

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_NOT_IN_XML: Final = re.compile("[\ud800-\udfff\ufffe\uffff]")
"""Characters that XML 1.0 (section 2.2) forbids besides controls. They include the stand-ins for bytes of file names
that are not UTF-8."""
_FORMULA: Final = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]")
"""How cells begin that spreadsheets take for a formula (OWASP, CSV Injection), in East Asian widths too."""


@dataclass(frozen=True)
class Series:
    """One curve or cloud of points. ``y`` is None or NaN if a value is undefined.

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
    part: str = ""
    """The part of the report that it belongs to; a part folds."""

    def csv(self) -> str:
        """Return it as CSV, one line for each point of each series."""
        rows: list[Sequence[Cell]] = []
        for series in self.series:
            undefined = [None] * len(series.x)
            bounds = (series.low or undefined, series.high or undefined)
            rows += [[series.name, *point] for point in zip(series.x, series.y, *bounds, strict=True)]
        return _csv(("series", "x", "y", "low", "high"), rows)


@dataclass(frozen=True)
class Table:
    """A table; a cell is None if its value is undefined. ``id`` and ``definition`` as a figure's."""

    id: str
    title: str
    definition: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    part: str = ""

    def csv(self) -> str:
        """Return it as CSV."""
        return _csv(self.columns, self.rows)


@dataclass(frozen=True)
class Report:
    """All figures and tables of an evaluation. ``runs`` has, for each run, its name, its settings and its digests."""

    title: str
    notes: Sequence[str]
    sections: Sequence[Figure | Table]
    runs: Sequence[Mapping[str, Any]]
    verdict: Sequence[str] = ()
    """Which policy is best, by how much, and how sure that is; a sentence or two each."""

    def plain(self) -> Report:
        """Return it with Python's own numbers, and None for undefined values: None, NaN, infinite.

        Raises ValueError if an id is no file name or is there twice.
        """
        ids = [section.id for section in self.sections]
        if len({name.casefold() for name in ids if _ID.fullmatch(name)}) < len(ids):
            raise ValueError(f"the ids of figures and tables name files, each once: {', '.join(ids)}")
        return replace(self, sections=_plain(self.sections), runs=_plain(self.runs))

    def json(self) -> str:
        """Return it as JSON, without plots. Numbers are those of the CSV files; undefined values are null."""
        content = asdict(self.plain())
        for section, described in zip(self.sections, content["sections"], strict=True):
            described["type"] = type(section).__name__.lower()
        return json.dumps(content, sort_keys=True, default=str, allow_nan=False) + "\n"


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


def _plain(value: Any) -> Any:
    """Return a part of a report in which NumPy's numbers are the Python numbers that they equal."""
    if isinstance(value, Figure | Table | Series):
        return replace(value, **_plain(vars(value)))
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(one) for one in value]
    plain = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(plain, float) and not math.isfinite(plain) else plain


def printable(text: str) -> str:
    """Return a text that can stand in UTF-8, HTML and XML, and that steers no terminal."""
    return _NOT_IN_XML.sub("\ufffd", harmless(text))


def _csv(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([_cell(value) for value in row] for row in (columns, *rows))
    return text.getvalue()


def _cell(value: Cell) -> Cell:
    """Return a value as CSV has it: text that is no formula in any spreadsheet, a number as it is."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if _FORMULA.match(text) else text
