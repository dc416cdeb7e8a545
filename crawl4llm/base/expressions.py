"""Lists of regular expressions from settings and files, which are searched in URLs.

RE2 (https://github.com/google/re2/wiki/Syntax) searches in time linear in the length of the URL, for any expression; it
has no look-arounds and no back-references.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.input_files import given_path, input_lines
from crawl4llm.base.installed import to_install
from crawl4llm.base.terminal import harmless

if TYPE_CHECKING:
    from pathlib import Path

MOST: Final = 10_000
"""Most expressions of a setting, including those of its files."""
LONGEST: Final = 1000
"""Most characters of an expression."""
_LONGEST_TEXT: Final = 65_536
_TOGETHER: Final = 50
"""Expressions that are searched at once."""
_COMMA = re.compile(r",(?![^{]*\})")
_FILE = re.compile(r"\.{1,2}/|~")
_SHOWN: Final = 60


def expressions(value: Any) -> tuple[str, ...]:
    """Check regular expressions and paths of files of them: a sequence, or a text divided by commas. The commas of
    ``{2,3}`` divide nothing."""
    given = _COMMA.split(value) if isinstance(value, str) else value
    if not (isinstance(given, list | tuple) and all(isinstance(one, str) for one in given)):
        raise ValueError("must be regular expressions, or files of them, like ./deny.txt, divided by commas")
    return tuple(dict.fromkeys(one.strip() for one in given if one.strip()))


class Expressions:
    """Expressions in their order."""

    def __init__(self, given: Sequence[str], setting: str) -> None:
        """Read the files and compile all expressions. Raises InputError with the setting, the expression and the
        reason, or if RE2 is not installed."""
        try:
            import re2  # an extra, and only for who gives expressions
        except ImportError:
            raise InputError(f"{setting} needs RE2: {to_install('scope')}") from None
        options = re2.Options()
        options.log_errors, options.never_capture = False, True
        self._compile: Callable[[str], Any] = lambda expression: re2.compile(expression, options)
        self._all: list[tuple[str, str]] = []
        """Expressions, each with its setting or its file and line."""
        for expression, place in _read(given, setting):
            if len(self._all) == MOST:
                raise InputError(f"{setting} has more than {MOST:,} expressions; put several into one: a|b")
            shown = harmless(expression if len(expression) <= _SHOWN else f"{expression[:_SHOWN]}...")
            if len(expression) > LONGEST:
                raise InputError(f"{setting}{place}: {shown!r} has more than {LONGEST:,} characters")
            try:
                self._compile(expression)
            except re2.error as error:
                raise InputError(f"{setting}{place}: {shown!r} is no expression of RE2: {_reason(error)}") from None
            self._all.append((expression, f"{setting}{place} {shown}"))
        self.digest = hashlib.sha256("\n".join(one for one, _ in self._all).encode()).hexdigest()
        """SHA-256 of all expressions."""
        self._chunks: list[tuple[Any, int, int]] = []
        for start in range(0, len(self._all), _TOGETHER):
            self._add(start, min(start + _TOGETHER, len(self._all)))

    def first_in(self, text: str) -> str | None:
        """Return the setting, place and text of the first expression that is found in a text; None if none is found."""
        text = text[:_LONGEST_TEXT].encode("utf-8", "replace").decode()
        for together, start, end in self._chunks:
            if together.search(text):
                return next(name for one, name in self._all[start:end] if self._compile(one).search(text))
        return None

    def _add(self, start: int, end: int) -> None:
        """Compile some expressions into one, or into two if they are too large together."""
        try:
            together = self._compile("|".join(f"(?:{one})" for one, _ in self._all[start:end]))
        except Exception:
            if end - start == 1:
                raise
            self._add(start, (start + end) // 2)
            self._add((start + end) // 2, end)
        else:
            self._chunks.append((together, start, end))


def _read(given: Sequence[str], setting: str) -> Iterator[tuple[str, str]]:
    """Yield the expressions, each with its file and line if it comes from a file."""
    for one in given:
        if _FILE.match(one) or (os.path.isabs(one) and os.path.isfile(one)):  # noqa: PTH113, PTH117 - may be no path
            yield from _of_file(given_path(one), setting)
        else:
            yield one, ""


def _of_file(path: Path, setting: str) -> Iterator[tuple[str, str]]:
    """Yield the expressions of a file, one a line; lines that begin with ``#`` are comments."""
    with as_input_error(f"{setting} {path} cannot be read", errors=(OSError, ValueError, EOFError)):
        for number, line in enumerate(input_lines(path), 1):
            if (expression := line.strip()) and not expression.startswith("#"):
                yield expression, f" {path}, line {number}"


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else error
    return harmless(reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason))[:200]
