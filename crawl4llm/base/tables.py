"""The output of a command, as aligned lines for people or as one JSON object for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Final, NamedTuple, TypeAlias

from crawl4llm.base.errors import InputError, PageError

_WIDTH: Final = 11
_MEASURED: Final = 500
"""Rows that determine the widths of columns; longer values of later rows push their line to the right."""


class Fact(NamedTuple):
    """A named value."""

    name: str
    value: Any
    shown: str | None = None
    """The value in its line; by default the value itself, with a separator of thousands. Empty: no line."""
    width: int = _WIDTH
    """Characters of the line before the value."""


class Rows(NamedTuple):
    """A table: rows under headings, in JSON a list of objects."""

    name: str
    columns: Sequence[str]
    """Keys in JSON; headings have blanks for their underscores."""
    rows: Iterable[Sequence[Any]]
    title: str = ""
    """The line above the table."""
    total: Sequence[Any] | None = None
    """A last row; in JSON a separate object, ``NAME_in_all``, without the first column, which names it."""
    digits: int = 3
    """Decimal places of all numbers that are not integers."""
    line: Callable[..., str] | None = None
    """Makes the line of a row from its values; there are no headings then."""


class Line(str):
    """A line for people; programs get the same from facts beside it."""

    __slots__ = ()


Part: TypeAlias = "str | Fact | Rows"
"""A piece of a command's output. A string is a remark: a line, or in JSON an item of the list ``notes``."""


def facts(values: Mapping[str, Any]) -> Iterator[Fact]:
    """Yield facts with their values aligned, for names of any length."""
    width = max(_WIDTH, *(len(name) + 2 for name in values))
    yield from (Fact(name, value, width=width) for name, value in values.items())


def text_lines(parts: Iterable[Part]) -> Iterator[str]:
    """Yield the lines of all parts as they come."""
    for part in parts:
        if isinstance(part, str):
            yield part
        elif isinstance(part, Rows):
            yield from _lines_of(part)
        elif part.shown != "":
            yield f"{part.name:<{part.width}}{shown(part.value) if part.shown is None else part.shown}"


def json_lines(parts: Iterable[Part]) -> Iterator[str]:
    """Yield one line, a JSON object of all parts; an InputError or PageError that ends them is its field ``error``.

    Keys are names with underscores for blanks and hyphens. A repeated name gets a list of its values.
    """
    content: dict[str, Any] = {}
    lists: set[str] = set()
    try:
        for part in parts:
            if isinstance(part, str):
                if part.strip() and not isinstance(part, Line):
                    content.setdefault("notes", []).append(part.strip())
                continue
            key = part.name.strip().replace(" ", "_").replace("-", "_")
            if isinstance(part, Rows):
                content[key] = [dict(zip(part.columns, row, strict=True)) for row in part.rows]
                if part.total is not None:
                    content[f"{key}_in_all"] = dict(zip(part.columns[1:], part.total[1:], strict=True))
            elif key not in content:
                content[key] = part.value
            else:
                content[key] = [*(content[key] if key in lists else [content[key]]), part.value]
                lists.add(key)
    except (InputError, PageError) as error:
        yield _json({**content, "error": str(error)})
        raise
    yield _json(content)


def _json(content: dict[str, Any]) -> str:
    """Return JSON, with null for numbers that it lacks: NaN and infinity, as a file from others may have them."""
    try:
        return json.dumps(content, default=str, allow_nan=False)
    except ValueError:
        return json.dumps(json.loads(json.dumps(content, default=str), parse_constant=lambda _: None))


def shown(value: Any, digits: int = 3) -> str:
    """Return a value for people, on one line: a dash for None, numbers with a separator of thousands."""
    if value is None or value == "":
        return "-"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return f"{value:,.{digits}f}" if isinstance(value, float) else " ".join(str(value).split())


def _lines_of(table: Rows) -> Iterator[str]:
    rows = chain(table.rows, [] if table.total is None else [table.total])
    first = list(islice(rows, _MEASURED))
    if first and table.title:
        yield table.title
    if table.line is not None:
        yield from (table.line(*row) for row in chain(first, rows))
        return
    cells = [[shown(value, table.digits) for value in row] for row in first]
    if not cells:
        return
    headings = [name.replace("_", " ") for name in table.columns]
    widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
    numeric = [any(isinstance(row[place], (int, float)) for row in first) for place in range(len(widths))]

    def set_out(texts: Sequence[str]) -> str:
        set_texts = zip(texts, widths, numeric, strict=True)
        return "  ".join(
            f"{text:>{width}}" if right else f"{text:<{width}}" for text, width, right in set_texts
        ).rstrip()

    yield set_out(headings)
    yield from map(set_out, cells)
    for row in rows:
        yield set_out([shown(value, table.digits) for value in row])
