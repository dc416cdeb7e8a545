"""What became of one public test suite."""

from __future__ import annotations

from typing import NamedTuple


class Result(NamedTuple):
    """What became of one public test suite."""

    suite: str
    passed: int
    known: int
    """Cases that differ, and of which README.md here says why."""
    failed: list[str]
