"""The runs of a report side by side: what each was run with, and where they differ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

NAME = "name"
"""The key of a run that names it."""


class Row(NamedTuple):
    """A setting, digest or figure of the runs; None for a run that does not have it."""

    key: str
    values: Sequence[str | None]

    @property
    def differs(self) -> bool:
        """Whether not all runs have the same."""
        return len(set(self.values)) > 1


class Comparison(NamedTuple):
    """A table of runs: ``names`` heads its columns."""

    names: Sequence[str]
    rows: Sequence[Row]


def compare(runs: Sequence[Mapping[str, Any]]) -> Comparison:
    """All that runs say of themselves, nested mappings by their dotted keys, in order of the keys."""
    flat = [dict(_flat(run)) for run in runs]
    names = [run.pop(NAME, f"run {number}") for number, run in enumerate(flat, 1)]
    keys = sorted(set().union(*flat))
    return Comparison(names, [Row(key, [run.get(key) for run in flat]) for key in keys])


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
