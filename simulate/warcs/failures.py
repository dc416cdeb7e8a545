"""Documents that a live crawl could not have, or did not want: its ``failures.jsonl``, read beside its archive.

On the archive alone links to them would lead nowhere; the crawl took them from its frontier, and so does a simulation.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from crawl4llm.base.crawl_log import FAILURES
from crawl4llm.base.domains import OPT_OUT
from crawl4llm.base.errors import CorruptRecord, MissingRecord, NoPage
from crawl4llm.base.input_files import LONGEST_LINE, PreadFile, open_input, parse_json
from crawl4llm.base.run_folder import LIVE, SETTINGS, read_json
from crawl4llm.base.urls import normalise_url
from simulate.warcs.part import FAILED, PartColumns

_NEVER_ASKED_FOR: Final = {"frontier_full", "host_full", OPT_OUT}
_COUNT: Final = "not_had"


def failures_of(folder: Path) -> Path | None:
    """The log of failures of the live crawl that wrote the archive files in a folder; None where it was none."""
    run = folder.parent
    log = run / FAILURES
    return log if log.is_file() and read_json(run / SETTINGS).get("corpus") == LIVE else None


def is_failures(name: str) -> bool:
    """Whether a file of a collection is a log of failures."""
    return Path(name).name == FAILURES


def scan_failures(path: Path) -> PartColumns:
    """Index a log of failures. Raises OSError where it cannot be read; lines cut short are counted as damaged."""
    part = PartColumns()
    offset = 0
    with open_input(path) as lines:
        while line := lines.readline(LONGEST_LINE):
            failure = _parse(line)
            if failure is None:
                part.counts["damaged"] += 1
            elif failure["reason"] not in _NEVER_ASKED_FOR:
                part.add_document((offset, len(line)), FAILED, normalise_url(failure["id"]), digest=b"", name=b"")
                part.counts[_COUNT] += 1
            offset += len(line)
    return part


def read_failure(path: Path, offset: int, length: int) -> NoPage:
    """Why the crawl had no page of a document. Raises MissingRecord, CorruptRecord where the log has changed."""
    try:
        failure = _parse(PreadFile(path).read(length, offset))
    except FileNotFoundError:
        raise MissingRecord(f"{path}: is gone since it was indexed; run `scrapy corpus index`") from None
    if failure is None:
        raise CorruptRecord(f"{path}: no line at {offset}; if the file has changed, run `scrapy corpus index`")
    return NoPage(f"{failure['id']}: {failure['reason']}", failure["reason"], wanted=failure["outcome"] == "failed")


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        failure = parse_json(line)
    except ValueError:
        return None
    wanted = ("id", "reason", "outcome")
    is_one = isinstance(failure, dict) and all(isinstance(failure.get(name), str) for name in wanted)
    return failure if is_one else None
