"""The numbers of file formats: CONTRIBUTING.md lists them. A file of another number is refused in one line."""

from __future__ import annotations

from typing import Final

from crawl4llm.base.errors import InputError
from crawl4llm.base.terminal import harmless

_LONGEST: Final = 40
"""Most characters of a wrong number that an error shows."""


def require_format(
    file: object, found: object, read: object, make: str, *, error: type[InputError] = InputError
) -> None:
    """Raise ``error`` if a file does not have the format that is read here. ``make``: the command that makes it again,
    or advice."""
    if found != read or type(found) is not type(read):
        shown = "no number of a format" if found is None else f"format {harmless(str(found))[:_LONGEST]}"
        raise error(f"{file} has {shown}; this version reads format {read}; make it again: {make}")
