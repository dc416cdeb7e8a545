"""A target: a reader, inputs that it takes, and the errors that its docstring names."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

Mutate = Callable[[bytes, random.Random], bytes | None]
"""Changes an input so that it stays one of its kind; None if this input has none that can be changed so."""
LONGEST: Final = 1 << 14
"""Bytes of an input, unless a target says otherwise."""
PAGE: Final = "http://site.example/folder/page.html?q=1"
CRAWLER: Final = "crawl4llm"
"""The page that inputs are of, and who reads it."""


class Reader(NamedTuple):
    """A reader that is ready: all that it needs is imported."""

    read: Callable[[bytes], object]
    """Reads an input. An AssertionError says that a promise of the reader's docstring is broken."""
    allowed: tuple[type[Exception], ...] = ()
    """The errors that the docstring names; any other is a finding."""


def text_of(data: bytes) -> str:
    """Return an input as text."""
    return data.decode("utf-8", "surrogateescape")


@dataclass(frozen=True)
class Target:
    """A target. Modules under test are imported by ``make`` and ``seeds`` alone: the engine instruments them then."""

    name: str
    make: Callable[[Path], Reader]
    """Returns the reader. The folder is empty; the reader may write there, and nowhere else."""
    seeds: Callable[[], Sequence[bytes]]
    """Returns valid inputs."""
    mutate: Mutate | None = None
    tokens: Sequence[bytes] = ()
    """Words of the input's language."""
    longest: int = LONGEST
    """Bytes of an input."""
    megabytes: int = 64
    """By which one input may raise the peak of memory."""
    seconds: float = 2.0
    """Of CPU that one input may take."""
    harmless: frozenset[str] = frozenset()
    """Audit events that guards refuse of others, and that do no harm here."""
    weight: float = 1.0
    """The share of time, beside those of other targets."""
