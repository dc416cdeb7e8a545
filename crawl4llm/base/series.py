"""The series, ``series.jsonl``: figures of a crawl over time, a JSON object a line, at most 2,000 points.

Its first line is ``{"format": 1}``; each other line is a point with the fields of :data:`FIELDS`. Counts are totals of
the whole crawl, so any point may be left out. Times are those of the machine, so equal crawls have different points.
"""

from __future__ import annotations

import heapq
import json
import math
import re
import shlex
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import orjson

from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.files import AppendFile, PreadFile
from crawl4llm.base.formats import require_format
from crawl4llm.base.input_files import read_input
from crawl4llm.base.shapes import NUMBER, fits
from crawl4llm.base.whole_files import replacing
from crawl4llm.base.within import require_within

NAME: Final = "series.jsonl"
FORMAT: Final = 1
MOST: Final = 2000
"""Most points; a full series drops every other one."""
FIELDS: Final = {
    "crawled": "pages crawled",
    "visited": "documents discovered",
    "queued": "documents in the frontier",
    "scored": "crawled pages that have an influence score",
    "influence": "sum of these scores",
    "good": "those of QUALITY_THRESHOLD or more; null if that is not set",
    "best": "the ten best pages so far, `[influence, offset of its line in crawl.jsonl]` each",
    "log": "bytes of crawl.jsonl up to this point",
    "counts": "the other figures of stats.md that are counts, such as `failed/dns`",
    "seconds": "seconds that the crawl has run, pauses left out",
    "time": "Unix time",
    "owners": "owners, and their queued documents, by state: `{ready, waiting, busy, parked: [owners, documents]}`; "
    "null if owners do not wait",
    "behind": "answers that wait for a worker process, or for earlier answers",
    "memory": "proportional set size in bytes of the crawler, and of its worker processes; null if unknown",
    "cpu": "CPU seconds of the crawler, and of its worker processes, since it was started last",
    "workers": "worker processes",
    "received": "bytes received since the crawl was started last",
}
"""The fields of a point, and their meaning."""
_POINT: Final = {
    **dict.fromkeys(FIELDS, ...),
    **dict.fromkeys(("crawled", "scored", "influence", "log", "seconds"), NUMBER),
    "best": [(NUMBER, NUMBER)],
}
"""The shape of a point: it has all fields, and those that later points build on are numbers."""
_BEST: Final = 10
_LARGEST: Final = 64 << 20
"""Most bytes of the file."""
_PIECE: Final = 1 << 20
_SCORE: Final = re.compile(rb'"influence": (-?\d[^,}\s]*)')
"""The score in a line of the crawl log; within a string, a backslash would precede the quote after the name."""


class Scores:
    """Scores of the pages in the crawl log, as far as it was read."""

    def __init__(self, threshold: float | None, point: Mapping[str, Any] | None = None) -> None:
        """Begin at the start of the log, or after a point of the series."""
        self._threshold = threshold
        self.offset, self.scored, self.good = 0, 0, 0
        self.influence = 0.0
        self.best: list[tuple[float, int]] = []
        """A heap of scores and offsets."""
        if point is not None:
            self.offset, self.scored, self.good = int(point["log"]), int(point["scored"]), int(point["good"] or 0)
            self.influence = float(point["influence"])
            self.best = [(float(score), int(offset)) for score, offset in point["best"]]
            heapq.heapify(self.best)

    def read(self, log: PreadFile, most: int = _PIECE) -> bytes:
        """Read the next complete lines of the log, at most ``most`` bytes, and return them; empty at its end. Raises
        InputError for a longer line."""
        piece = log.read(most, self.offset)
        end = piece.rfind(b"\n") + 1
        if not end and len(piece) == most:
            raise InputError(f"{log.path} is damaged: a line of more than {most:,} bytes")
        lines = piece[:end]
        for found in _SCORE.finditer(lines):
            with suppress(ValueError):
                self._add(float(found[1]), lines, found.start())
        self.offset += end
        return lines

    def _add(self, score: float, lines: bytes, at: int) -> None:
        if not math.isfinite(score):
            return
        self.scored += 1
        self.influence += score
        self.good += self._threshold is not None and score >= self._threshold
        if len(self.best) < _BEST or score > self.best[0][0]:
            heapq.heappush(self.best, (score, self.offset + lines.rfind(b"\n", 0, at) + 1))
            if len(self.best) > _BEST:
                heapq.heappop(self.best)

    def point(self) -> dict[str, Any]:
        """Return the fields of a point that come from the log."""
        return {
            "scored": self.scored,
            "influence": self.influence,
            "good": None if self._threshold is None else self.good,
            "best": sorted(self.best, key=lambda page: (-page[0], page[1])),
            "log": self.offset,
        }


class SeriesFile:
    """The writer of the file; if the process is killed, only the last line can be incomplete."""

    def __init__(self, folder: Path, crawled: int) -> None:
        """Begin the file, or continue it after ``crawled`` pages: later points are dropped, because a resumed crawl
        fetches their pages again. A damaged file is started again. Raises InputError if it cannot be written."""
        self._path = folder / NAME
        points: list[dict[str, Any]] = []
        with suppress(InputError, OSError, KeyError, TypeError):
            points = [point for point in read_series(folder) or () if point["crawled"] <= crawled]
        self.last = points[-1] if points else None
        self._points = len(points)
        self._file = self._write_anew(points)

    def add(self, point: Mapping[str, Any]) -> None:
        """Append a point. Raises InputError."""
        if self._points == MOST:
            points = (read_series(self._path.parent) or [])[1::2]
            self._file.close()
            self._file = self._write_anew(points)
            self._points = len(points)
        self._file.append(_line(point))
        self._points += 1

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write_anew(self, points: Iterable[Mapping[str, Any]]) -> AppendFile:
        with as_input_error(f"{self._path} cannot be written"), replacing(self._path) as file:
            file.write(b"".join(map(_line, [{"format": FORMAT}, *points])))
            size = file.tell()
        return AppendFile(self._path, size)


def _line(content: Mapping[str, Any]) -> bytes:
    return f"{json.dumps(content, separators=(',', ':'))}\n".encode()


def read_series(folder: Path) -> list[dict[str, Any]] | None:
    """Return the points of a crawl's series, which may still be written to; None if it has none. Raises InputError if
    it is damaged or has another format."""
    path = folder / NAME
    require_within(folder, path)
    data = None
    with as_input_error(f"{path} cannot be read"), suppress(FileNotFoundError):
        data = read_input(path, _LARGEST)
    if data is None:
        return None
    try:
        lines = [orjson.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]
        if lines:
            make = f"rm {shlex.quote(str(path))}, and the crawl log is read in its place"
            require_format(path, lines[0]["format"], FORMAT, make)
    except (LookupError, TypeError, ValueError):
        raise _damaged(path) from None
    if not fits(lines[1:], _POINT):
        raise _damaged(path)
    return lines[1:]


def _damaged(path: Path) -> InputError:
    return InputError(f"{path} is damaged; remove it, and the crawl log is read in its place")
