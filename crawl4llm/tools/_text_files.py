"""Reads texts from JSON Lines and Parquet files."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from crawl4llm.base.compression import zstd
from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import LONGEST_ROW
from crawl4llm.base.installed import to_install

_JSONL: Final = (".jsonl", ".ndjson", ".json")
_PARQUET: Final = ".parquet"
_ROWS_AT_ONCE: Final = 1024


def is_jsonl(path: Path) -> bool:
    """Return whether a file's name says that it is JSON Lines, compressed or not."""
    return path.name.lower().removesuffix(".gz").removesuffix(".zst").endswith(_JSONL)


def is_parquet(path: Path) -> bool:
    """Return whether a file's name says that it is a Parquet file."""
    return path.name.lower().endswith(_PARQUET)


def jsonl_texts(path: Path, field: str) -> Iterator[str]:
    """Yield the field of each line of a JSON Lines file; blank lines are passed over.

    Raises InputError, naming file and line, if a line is no JSON object, or if its field is missing or no text. Raises
    InputError too if the file cannot be read to its end.
    """
    number = 0
    try:
        with _open(path) as lines:
            for number, line in enumerate(iter(partial(lines.readline, LONGEST_ROW + 1), b""), 1):
                if len(line) > LONGEST_ROW:
                    raise InputError(f"{path}, line {number}: has more than {LONGEST_ROW:,} bytes")
                if line.strip():
                    yield _text(line, field, f"{path}, line {number}")
    except (OSError, EOFError, zlib.error, zstd.ZstdError) as error:
        reason = getattr(error, "strerror", None) or error or "it ends too early"
        raise InputError(f"{path}: cannot be read after line {number}: {reason}") from None


def _open(path: Path) -> io.BufferedIOBase:
    if path.name.lower().endswith(".gz"):
        return gzip.open(path)
    if path.name.lower().endswith(".zst"):
        return zstd.open(path)
    return path.open("rb")


def _text(line: bytes, field: str, place: str) -> str:
    try:
        content = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise InputError(f"{place}: is not JSON; give one JSON object a line") from None
    if not isinstance(content, dict):
        raise InputError(f"{place}: is no JSON object; give objects with a field {field!r}")
    if field not in content:
        raise InputError(f"{place}: has no field {field!r}; name the one with the text: --text-field NAME")
    return _checked(content[field], field, place)


def _checked(value: Any, field: str, place: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"{place}: its field {field!r} is no text, but {type(value).__name__}")
    return value


def parquet_texts(path: Path, field: str) -> Iterator[str]:
    """Yield the column of that name of a Parquet file. Raises InputError as :func:`jsonl_texts` does."""
    try:
        # an extra
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise InputError(f"{path}: reading Parquet needs pyarrow; {to_install('parquet')}") from None
    row = 0
    try:
        with parquet.ParquetFile(path) as file:
            if field not in file.schema_arrow.names:
                names = ", ".join(file.schema_arrow.names)
                raise InputError(
                    f"{path}: has no column {field!r}, but {names}; name the column of texts: --text-field NAME"
                )
            for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE, columns=[field]):
                for value in batch.column(0).to_pylist():
                    row += 1
                    yield _checked(value, field, f"{path}, row {row}")
    except (OSError, ValueError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path}: cannot be read after row {row}: {reason}") from None
