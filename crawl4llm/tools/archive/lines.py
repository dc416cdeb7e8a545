"""Lines of a dataset's indexes and logs, read and sorted; files may be cut short or damaged."""

from __future__ import annotations

import heapq
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, BinaryIO, Final

from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import open_input
from crawl4llm.tools.archive.facts import Facts
from crawl4llm.tools.archive.folder import LOST, Dataset
from crawl4llm.warc import IndexLine, one_line, timestamp, urlkey

_SORTED_AT_ONCE: Final = 1 << 26
"""Bytes of lines that are sorted in memory."""
_MERGED_AT_ONCE: Final = 64
_LONGEST_LINE: Final = 1 << 24


def differences(
    line: IndexLine, url: str, date: str, digest: str, status: str | None, document: str | None
) -> list[str]:
    """Return the names of the values in which a line and its record differ; ``document``: its key, None if not known.

    Indexes of others may have keys of another form, no status and no id.
    """
    stated: list[tuple[str, Any, str | None]] = [
        ("URL", line.fields.get("url"), url),
        ("date", line.timestamp, timestamp(date)),
        ("digest", line.fields.get("digest"), digest),
    ]
    if line.fields.get("status") is not None:
        stated.append(("status", line.fields["status"], status))
    if document is not None:
        stated.append(("key", line.key, urlkey(url)))
        if "id" in line.fields:
            stated.append(("id", as_in_warc(line.id), document))
    return [name for name, one, other in stated if one != other]


def read_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, with their ends; none if there is no file. Raises InputError."""
    try:
        with open_input(path) as file:
            while line := file.readline(_LONGEST_LINE):
                if len(line) == _LONGEST_LINE:
                    raise InputError(f"{path} is damaged: a line has {_LONGEST_LINE:,} bytes or more")
                yield line
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None


def parse_log_line(line: bytes) -> dict[str, Any] | None:
    """Parse a line of a crawl log, if it is a whole one; its id is as metadata records have it."""
    try:
        parsed = json.loads(line)
    except (RecursionError, ValueError):
        return None
    whole = line.endswith(b"\n") and isinstance(parsed, dict) and isinstance(parsed.get("id"), str)
    return parsed | {"id": as_in_warc(parsed["id"])} if whole else None


def load_lost(dataset: Dataset, facts: Facts) -> None:
    """Fill the table ``lost``: pages of the log that are known to be gone."""
    parsed = map(parse_log_line, read_lines(dataset.base / LOST))
    facts.add("lost", ((line["id"],) for line in parsed if line))


def as_in_warc(key: str) -> str:
    """Return a document key as a metadata record has it."""
    return re.sub(r"\s+$", "", one_line(key).strip())


def now() -> str:
    """Return the time in UTC, such as ``2026-01-31T12:00:00Z``."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def sort_lines(lines: Iterable[bytes], out: BinaryIO, folder: Path) -> None:
    """Write lines in byte order, each once; those that do not fit in memory are sorted through files in ``folder``."""
    runs: list[Path] = []
    held: list[bytes] = []
    size = made = 0
    for line in lines:
        held.append(line)
        size += len(line)
        if size > _SORTED_AT_ONCE:
            runs.append(_write_run(folder / f"run-{made}", sorted(held)))
            made += 1
            held, size = [], 0
        if len(runs) == _MERGED_AT_ONCE:
            merged = folder / f"run-{made}"
            made += 1
            with ExitStack() as opened:
                _write_run(merged, _merged(runs, opened))
            for run in runs:
                run.unlink()
            runs = [merged]
    with ExitStack() as opened:
        last = b""
        for line in heapq.merge(_merged(runs, opened), sorted(held)):
            if line != last:
                out.write(line)
            last = line


def _merged(runs: list[Path], opened: ExitStack) -> Iterator[bytes]:
    return iter(heapq.merge(*(opened.enter_context(run.open("rb")) for run in runs)))


def _write_run(path: Path, lines: Iterable[bytes]) -> Path:
    with path.open("wb") as file:
        file.writelines(lines)
    return path
