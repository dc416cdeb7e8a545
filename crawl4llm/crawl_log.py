"""The crawl log: ``crawl.jsonl``, one line a crawled page, in the order in which pages left the frontier.

Beside it ``failures.jsonl``, one line a document that was discovered and ended without a page; and with EVALUATION_LOG
``estimates.jsonl``, what a policy thinks later of pages that were crawled.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypedDict

from crawl4llm.archive.appendfile import AppendFile

NAME, FAILURES, ESTIMATES = "crawl.jsonl", "failures.jsonl", "estimates.jsonl"


class CrawlLine(TypedDict):
    """One line of the crawl log."""

    order: int
    """Place in the crawl, from 0."""
    iteration: int | None
    """Batch in which the page was crawled, the seeds' is 0; null in continuous order."""
    id: str
    """Document key."""
    url: str
    status: int | None
    """HTTP status of the answer."""
    priority: float | None
    """URL score by which it was dequeued; null for the start requests of a spider that uses the add-on."""
    influence: float | None
    """Influence score of the page, null if not computed."""
    depth: int
    """Links from the nearest seed along which it was found."""
    parent: str | None
    """Key of the page it was first seen on; null for a seed."""
    visited: int
    """Documents visited so far, with this page's outlinks."""
    fetched: int
    """Documents fetched so far, likewise."""


class FailureLine(TypedDict):
    """One line of the log of failures."""

    id: str
    url: str
    """The URL by which it was found; empty for a seed."""
    outcome: str
    """``failed``: it could not be had; ``dropped``: it was not wanted."""
    reason: str
    depth: int
    parent: str | None


class EstimatesLine(TypedDict):
    """One line of the log of estimates."""

    crawled: int
    """Pages crawled by then."""
    scores: dict[str, float]
    """By document key, the URL scores that pages crawled before would have now."""


class CrawlLog:
    """Appends lines; what it has returned from is with the operating system, so a killed process loses none of it.

    The log of estimates is kept only with ``estimates``.
    """

    def __init__(self, directory: Path, *, estimates: bool = False) -> None:
        self._pages = AppendFile(directory / NAME)
        self._failures = AppendFile(directory / FAILURES)
        self._estimates = AppendFile(directory / ESTIMATES) if estimates else None

    def write(self, pages: Iterable[CrawlLine], failures: Iterable[FailureLine]) -> None:
        """Append lines to both, all or none to each. Raises InputError where they cannot be written (disk full)."""
        for file, lines in ((self._pages, pages), (self._failures, failures)):
            file.append("".join(f"{json.dumps(line)}\n" for line in lines).encode())

    def write_estimates(self, crawled: int, scores: Sequence[tuple[str, float]]) -> None:
        """Append a line to the log of estimates, if it is kept and there are any. Raises InputError likewise."""
        if self._estimates is not None and scores:
            line: EstimatesLine = {"crawled": crawled, "scores": dict(scores)}
            self._estimates.append(f"{json.dumps(line)}\n".encode())

    def close(self) -> None:
        """Close the files."""
        self._pages.close()
        self._failures.close()
        if self._estimates is not None:
            self._estimates.close()
