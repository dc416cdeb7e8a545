"""Word-by-word translations by Debian's FreeDict dictionaries: pages that a reader, or a classifier of languages, takes
for another language, though nobody would call them good."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

_FOLDER = Path("/usr/share/dictd")
_CODES = {"de": "deu", "fr": "fra"}
_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
NEEDS = [str(_FOLDER / f"freedict-eng-{code}.index") for code in _CODES.values()]


def _number(digits: str) -> int:
    """Return what dictd's base 64 stands for."""
    value = 0
    for digit in digits:
        value = 64 * value + _DIGITS.index(digit)
    return value


@cache
def words(language: str) -> dict[str, str]:
    """Return the first translation of each English word."""
    code = _CODES[language]
    data = gzip.decompress((_FOLDER / f"freedict-eng-{code}.dict.dz").read_bytes())
    found: dict[str, str] = {}
    for line in (_FOLDER / f"freedict-eng-{code}.index").read_text(encoding="utf-8", errors="replace").splitlines():
        word, start, size = line.split("\t")[:3]
        key = word.lower()
        if key in found or not key.isalpha():
            continue
        lines = data[_number(start) : _number(start) + _number(size)].decode("utf-8", "replace").splitlines()
        if len(lines) > 1 and (first := re.match(r"(?:\d+\. )?([^\W\d]+)", lines[1])):
            found[key] = first[1]
    return found


def translator(language: str) -> Callable[[str], str]:
    """Return a function from English text to what its words are in a language; other words stay."""
    known = words(language)
    return lambda text: re.sub(r"[A-Za-z]+", lambda word: known.get(word[0].lower(), word[0]), text)
