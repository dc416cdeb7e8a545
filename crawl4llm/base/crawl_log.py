"""The crawl log: ``crawl.jsonl``, a line for each crawled page, in the order in which pages left the frontier.

``failures.jsonl``, beside it, has a line for each discovered document that ended without a page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TypedDict, get_type_hints

from crawl4llm.base.errors import InputError, Why
from crawl4llm.base.input_files import open_input, parse_json
from crawl4llm.base.within import require_within

NAME, FAILURES = "crawl.jsonl", "failures.jsonl"
_TOO_LARGE: Final = 1 << 63
_LONGEST_LINE: Final = 1 << 22
"""Most bytes of a line that is read."""
_LONGEST_RULE: Final = 500
"""Most characters of a rule; a line of robots.txt may have half a million."""


class CrawlLine(TypedDict):
    """One line of the crawl log."""

    order: int
    """Place in the crawl, from 0."""
    iteration: int | None
    """Batch in which the page was crawled; 0 for the seeds, null in continuous order."""
    id: str
    """Document key."""
    url: str
    status: int | None
    """HTTP status of the answer."""
    priority: float | None
    """URL score with which it left the frontier; null for start requests of a spider that uses the add-on."""
    influence: float | None
    """Influence score of the page; null if not computed."""
    depth: int
    """Number of links from the nearest seed, along the way on which it was found."""
    parent: str | None
    """Key of the page it was first seen on; null for a seed."""
    visited: int
    """Documents visited so far, this page's outlinks included."""
    fetched: int
    """Documents fetched so far, this page included."""


class ComparedLine(CrawlLine, total=False):
    """A line of the crawl log with the fields that parts add, each only if its setting is on."""

    near_duplicate_of: int | None
    """NEAR_DUPLICATES: ``order`` of an earlier page with nearly the same text; null if there is no such page, or no
    text."""
    known_text: bool
    """KNOWN_TEXTS: whether its text is in the given sets."""
    noindex: bool
    """NOINDEX = archive: whether it asks not to be indexed, so that it does not count towards CRAWL_MAX_PAGES."""
    classes: dict[str, str] | None
    """MIXTURE: the label of its class, by classifier; null if it has no text."""
    left_overs: str | None
    """LOWER_LEFT_OVERS: why its influence was lowered, ``links`` or ``short_lines``; null if it was not."""
    lowered_from: float | None
    """LOWER_LEFT_OVERS: the influence before it was lowered; null if it was not."""


class FailureLine(TypedDict):
    """One line of the log of failures."""

    id: str
    url: str
    """The URL by which it was found; empty for a seed."""
    outcome: str
    """``failed``, ``dropped``, or ``redirected`` (see RedirectLine)."""
    reason: str
    """Why, in a word: docs/troubleshooting.md lists them."""
    depth: int
    """As in the crawl log; so is ``parent``."""
    parent: str | None


class ExplainedLine(FailureLine, total=False):
    """A failure line with the rule that decided, if there is one; see :class:`crawl4llm.base.errors.Why`."""

    rule: str
    """A line of robots.txt, a signal, a status, a setting, or a list with the number of its line."""
    digest: str | None
    """With ``time``, identifies the record in the archive that holds the rule: its WARC-Payload-Digest and
    WARC-Date."""
    time: str | None


class RedirectLine(ExplainedLine):
    """The line of a document that ended with a redirect to another owner."""

    target: str
    """Key of the document to which it redirected."""


class Document(Protocol):
    """A document that failed: an entry of the frontier, or a candidate for it."""

    @property
    def key(self) -> str: ...

    @property
    def url(self) -> str: ...

    @property
    def depth(self) -> int: ...

    @property
    def parent(self) -> str | None: ...


def failure_line(outcome: str, reason: str, document: Document, why: Why | None = None) -> ExplainedLine:
    """Return the line for a document that ended without a page."""
    id_, url, depth, parent = document.key, document.url, document.depth, document.parent
    line: ExplainedLine = {
        "id": id_,
        "url": url,
        "outcome": outcome,
        "reason": reason,
        "depth": depth,
        "parent": parent,
    }
    if why is not None:
        line["rule"] = why.rule[:_LONGEST_RULE]
        line["digest"], line["time"] = why.digest, why.time
    return line


def read_log(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the complete lines of a log, which may still be written to.

    Raises InputError if the file or a line cannot be read, or if the file is a link that leads out of its folder.
    """
    require_within(path.parent, path)
    read = 0
    try:
        with open_input(path) as file:
            while line := file.readline(_LONGEST_LINE):
                if line.endswith(b"\n"):
                    parsed = parse_json(line)
                    if not isinstance(parsed, dict):
                        raise ValueError("it is no object")  # noqa: TRY301 - as what is not JSON does
                    yield parsed
                    read += 1
                elif len(line) == _LONGEST_LINE:
                    raise ValueError("it is too long")  # noqa: TRY301 - as above
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise InputError(f"{path} is damaged: line {read + 1} is not a JSON object") from None


_types = cache(get_type_hints)


def is_whole(line: Mapping[str, Any], kind: type) -> bool:
    """Return whether a line has all fields of its kind, such as :class:`CrawlLine`, with the right types."""
    return all(_fits(line.get(name), wanted) for name, wanted in _types(kind).items())


def _fits(value: object, wanted: Any) -> bool:
    if type(value) is int:
        return abs(value) < _TOO_LARGE and (isinstance(value, wanted) or isinstance(0.0, wanted))
    return isinstance(value, wanted)


class LogPosition(NamedTuple):
    """Sizes of both files in bytes: committed, and restored by cutting them back."""

    pages: int
    failures: int


class LogWriter(Protocol):
    """Writes lines of both logs."""

    def write(self, pages: Sequence[CrawlLine], failures: Sequence[FailureLine]) -> None:
        """Write lines. Raises InputError if they cannot be written."""
