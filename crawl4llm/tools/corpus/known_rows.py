"""The URLs and texts of files with a row a line, or in columns: JSON Lines, Parquet, CDXJ, lists of URLs."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from crawl4llm.base.compression import zstd
from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import LONGEST_ROW, input_lines
from crawl4llm.base.installed import to_install
from crawl4llm.base.terminal import harmless
from crawl4llm.parts import is_web_url, listed_urls

_ROWS = re.compile(r".+\.(?:(jsonl|ndjson|json|cdxj)(?:\.gz|\.zst)?|(parquet))", re.IGNORECASE)
_ROWS_AT_ONCE: Final = 1024
_LISTED: Final = ""
"""The kind of a list of URLs."""


class Row(NamedTuple):
    """The URL and text of a document."""

    url: str | None
    text: str | None


@dataclass
class RowFile:
    """A file of rows; has their counts once :meth:`rows` has ended."""

    path: Path
    url_field: str
    text_field: str
    counts: Counter[str] = field(default_factory=Counter)
    """Rows that cannot be used, by reason."""
    first_fault: str = ""
    """The first of them: its line and its fault."""

    def rows(self) -> Iterator[Row]:
        """Yield the rows that can be used. Raises InputError if the file cannot be read to its end, or has rows and
        none that can be used."""
        kind, count = kind_of(self.path), 0
        rows = {"parquet": self._of_parquet, "cdxj": self._of_cdxj, _LISTED: self._of_list}.get(kind, self._of_json)
        for at, values in rows():
            if isinstance(values, str):
                self._note(at, values)
            elif (row := self._checked(at, values)) is not None:
                count += 1
                yield row
        if not count and self.counts:
            raise InputError(f"{self.path}: no row can be used: {self.first_fault}")

    def _note(self, at: str, what: str) -> None:
        self.counts[what] += 1
        self.first_fault = self.first_fault or f"{at}: {what}"

    def _checked(self, at: str, values: Row) -> Row | None:
        """Return a row from a file's values of any kind; None if it cannot be used."""
        url, text = values
        if url is not None and not (isinstance(url, str) and is_web_url(url.lstrip())):
            self._note(at, f"no URL in {self.url_field!r}")
            url = None
        if text is not None and not isinstance(text, str):
            self._note(at, f"no text in {self.text_field!r}")
            text = None
        if url is None and text is None:
            if values == (None, None):
                self._note(at, f"neither {self.url_field!r} nor {self.text_field!r} (--url-field, --text-field)")
            return None
        return Row(url, text)

    def _lines(self) -> Iterator[tuple[str, str]]:
        """Yield the lines that are not blank, with their places."""
        number = 0
        try:
            lines = input_lines(self.path, errors="surrogateescape", newline="\n", longest=LONGEST_ROW)
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield f"line {number}", line
        except (OSError, EOFError, zlib.error, zstd.ZstdError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"{self.path}: cannot be read after line {number}: {reason}") from None

    def _of_json(self) -> Iterator[tuple[str, Row | str]]:
        for at, line in self._lines():
            try:
                row = orjson.loads(line)
            except (ValueError, RecursionError):
                yield at, "no JSON"
                continue
            is_object = isinstance(row, dict)
            yield at, Row(row.get(self.url_field), row.get(self.text_field)) if is_object else "no JSON object"

    def _of_cdxj(self) -> Iterator[tuple[str, Row | str]]:
        for at, line in self._lines():
            if line.startswith(("!", " CDX")):
                continue
            try:
                fields = orjson.loads(line.split(" ", 2)[2])
                url, failed = fields["url"], str(fields.get("status")).startswith(("4", "5"))
            except (ValueError, LookupError, TypeError, AttributeError):
                yield at, "no CDXJ entry with a URL"
            else:
                yield at, "a response with status 4xx or 5xx" if failed else Row(url, None)

    def _of_list(self) -> Iterator[tuple[str, Row | str]]:
        for number, url in listed_urls(self.path, "the list"):
            yield f"line {number}", Row(url, None) if is_web_url(url) else "no URL"

    def _of_parquet(self) -> Iterator[tuple[str, Row | str]]:
        try:
            # an extra
            import pyarrow as pa
            from pyarrow import parquet
        except ImportError:
            raise InputError(f"{self.path}: reading Parquet needs pyarrow; {to_install('parquet')}") from None
        number = 0
        try:
            with parquet.ParquetFile(self.path) as file:
                names = file.schema_arrow.names
                wanted = [name for name in (self.url_field, self.text_field) if name in names]
                if not wanted:
                    raise InputError(
                        f"{self.path}: has neither a column {self.url_field!r} nor {self.text_field!r}, but "
                        f"{harmless(', '.join(names))[:200]}; name the columns: --url-field, --text-field"
                    )
                for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE, columns=wanted):
                    columns: dict[str, list[Any]] = {name: batch.column(name).to_pylist() for name in wanted}
                    for place in range(batch.num_rows):
                        number += 1
                        values = (columns[name][place] if name in columns else None for name in self._fields)
                        yield f"row {number}", Row(*values)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise InputError(
                f"{self.path}: cannot be read after row {number}: {' '.join(str(error).split())}"
            ) from None

    @property
    def _fields(self) -> tuple[str, str]:
        return self.url_field, self.text_field


def is_row_file(path: Path) -> bool:
    """Return whether a file's name says that it has rows; others are taken for lists."""
    return _ROWS.fullmatch(path.name) is not None


def kind_of(path: Path) -> str:
    """Return the kind of rows in a file, by its name: ``parquet``, ``cdxj``, another for JSON; empty for a list."""
    named = _ROWS.fullmatch(path.name)
    return _LISTED if named is None else (named[1] or named[2]).lower()
