"""The one line that a fastText classifier sees of a text: in training exactly as in scoring."""

from __future__ import annotations

from typing import Final

TEXT_RULE: Final = "dclm"
"""The name of what :func:`one_line` does, as the rules beside a model give it."""


def one_line(text: str) -> str:
    """The text stripped and its lines joined with one space (DCLM: ``" ".join(text.strip().splitlines())``)."""
    line = " ".join(text.strip().splitlines())
    if line.isascii():
        return line
    return line.encode("utf-8", "replace").decode()  # fastText's binding refuses half a surrogate pair
