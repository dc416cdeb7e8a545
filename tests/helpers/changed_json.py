"""JSON with another value in some place of it."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

OTHERS: list[Any] = [None, True, -7, 10**12, 0.5, "", "d000a", [], [[]], {}, {"keys": 1}]


def places(content: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of each value in some JSON."""
    yield at
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in items:
        yield from places(value, (*at, key))


def with_other(content: Any, at: tuple[Any, ...], other: Any) -> Any:
    """Return JSON with another value at a place."""
    if not at:
        return other
    changed = deepcopy(content)
    within = changed
    for key in at[:-1]:
        within = within[key]
    within[at[-1]] = other
    return changed
