"""Shapes of JSON that somebody else may have written: checked by type and by value before anything uses it.

A shape is one of

- a set of types or strings: a value of one of the types, or one of the strings;
- ``[shape]``: a list of any length, whose items have the shape;
- ``(shape, shape)``: a list of that length, whose items have these shapes;
- ``{name: shape}``: an object with at least these fields;
- ``{...: shape}``: an object whose values all have the shape;
- ``...``: anything;
- :class:`Maybe`, :class:`Where` or :class:`Whole`, and for a field :class:`If`.

Many values are checked together, which takes a fraction of the time of one check after the other.

:mod:`crawl4llm.base.received` has the shapes of files in run folders, JOBDIRs and exports.
:mod:`crawl4llm.cluster.shapes` has those of objects in a storage.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final
from uuid import UUID

from crawl4llm.base.within import is_within


@dataclass(frozen=True)
class Maybe:
    """A shape, or None."""

    shape: Any


@dataclass(frozen=True)
class If:
    """The shape of a field that an object may lack."""

    shape: Any


@dataclass(frozen=True)
class Where:
    """A shape, with a condition on the value."""

    shape: Any
    holds: Callable[[Any], object]


@dataclass(frozen=True)
class Whole:
    """The shape of whole numbers from ``least`` to ``most``, both included."""

    least: int
    most: int


def fits(values: Sequence[Any], shape: Any) -> bool:
    """Return whether all of some values have a shape; checking many together takes a fraction of the time."""
    if shape is ...:
        return True
    if isinstance(shape, Maybe):
        return fits([value for value in values if value is not None], shape.shape)
    if isinstance(shape, Where):
        return fits(values, shape.shape) and all(map(shape.holds, values))
    types = set(map(type, values))
    if isinstance(shape, Whole):
        return types <= {int} and (not values or shape.least <= min(values) <= max(values) <= shape.most)
    if isinstance(shape, set):
        return types <= shape or (types <= {str} and set(values) <= shape)
    if isinstance(shape, dict):
        return types <= {dict} and _fields_fit(values, shape)
    if not types <= {list}:
        return False
    if isinstance(shape, list):
        return fits(list(chain.from_iterable(values)), shape[0])
    return set(map(len, values)) <= {len(shape)} and all(
        fits([value[place] for value in values], of) for place, of in enumerate(shape)
    )


def is_of(shape: Any) -> Callable[[Any], bool]:
    """Return a function that tells whether a value has a shape."""
    return lambda value: fits([value], shape)


def _fields_fit(values: Sequence[dict[Any, Any]], shape: dict[Any, Any]) -> bool:
    if ... in shape:
        return fits(list(chain.from_iterable(value.values() for value in values)), shape[...])
    for name, of in shape.items():
        given = [value[name] for value in values if name in value]
        is_whole = isinstance(of, If) or len(given) == len(values)
        if not (is_whole and fits(given, of.shape if isinstance(of, If) else of)):
            return False
    return True


def misfit(value: Any, shape: Any, name: str = "") -> str:
    """Name the wrong field of a value that does not fit its shape."""
    if isinstance(shape, dict) and isinstance(value, dict) and ... not in shape:
        for field, of in shape.items():
            if not fits([value], {field: of}):
                inner = of.shape if isinstance(of, If) else of
                return misfit(value[field], inner, f"{name}.{field}") if field in value else f"it lacks {field}"
    if not name:
        return "it does not hold what its name says"
    return f"its {name[1:]} is {value!r:.100}, which cannot be"


# -- values -------------------------------------------------------------------------------------------------------

LONGEST_LINE: Final = 1 << 12
"""Most characters of a line of text from a file."""
LARGEST_WHOLE: Final = (1 << 63) - 1
LONGEST_PART: Final = 128
"""Most bytes: a file name has 255, of which the rest of a WARC file's takes up to 110 (crawl4llm.warc.writer)."""
_NO_LINE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def is_line(value: str) -> bool:
    """Return whether text is one line of acceptable length, without control characters and lone surrogates."""
    return len(value) <= LONGEST_LINE and not _NO_LINE.search(value)


def is_name_part(value: str) -> bool:
    """Return whether text can begin a file's name and leaves room for the rest of it."""
    return "/" not in value and value.isprintable() and 0 < len(value.encode()) <= LONGEST_PART


def is_file_name(value: str) -> bool:
    """Return whether text is the name of a file in a folder: not a path, and short enough for a file system."""
    return "/" not in value and is_within(value) and is_line(value) and len(value.encode()) <= 255


def is_uuid(value: str) -> bool:
    """Return whether text is a UUID."""
    try:
        UUID(value)
    except ValueError:
        return False
    return is_line(value)


def _is_finite(value: float) -> bool:
    return abs(value) < 1e300


def whole(least: int = 0, most: int = LARGEST_WHOLE) -> Whole:
    """Return the shape of a whole number from ``least`` to ``most``."""
    return Whole(least, most)


def named(name: Any, shape: Any) -> Where:
    """Return the shape of an object whose names have one shape and whose values have another."""
    return Where({...: shape}, lambda value: fits(list(value), name))


LINE: Final = Where({str}, is_line)
NAME_PART: Final = Where({str}, is_name_part)
FILE_NAME: Final = Where({str}, is_file_name)
IDENTIFIER: Final = Where({str}, is_uuid)
DIGEST: Final = Where({str}, re.compile(r"([a-z0-9]{2,10}:)?[0-9A-Za-z+/=_-]{16,256}").fullmatch)
NUMBER: Final = Where({int, float}, _is_finite)
FLAG: Final = {bool}
VALUE: Final = Where(
    {str, int, float, bool}, lambda value: is_line(value) if isinstance(value, str) else _is_finite(value)
)
"""Shape of a field of an archive or a log."""
COUNTS: Final = named(LINE, whole())
"""Counts of pages, documents and links, by the end of their names in stats.json."""
