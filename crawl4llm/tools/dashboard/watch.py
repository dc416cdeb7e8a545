"""The watch over a crawl's folder: reads it again and again, as seldom as its size makes that costly."""

from __future__ import annotations

import json
import re
import resource
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from crawl4llm.base import crawl_log, series
from crawl4llm.base.errors import InputError
from crawl4llm.base.files import PreadFile, is_written
from crawl4llm.base.run_folder import LIVE, SETTINGS, STATS, read_json
from crawl4llm.base.terminal import harmless
from crawl4llm.base.within import require_within
from crawl4llm.crawl import JOB, JobDir, find_output
from crawl4llm.tools.dashboard import child, shown

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_LEAST_SECONDS: Final = 2.0
_REST: Final = 400
"""Seconds of rest per second of CPU time: watching takes less than a hundredth of a core."""
_PIECES: Final = 300
"""Parts in which a log without a series is read, each of which is a point."""
_SMALLEST_PIECE: Final = 1 << 14
_VISITED: Final = re.compile(rb'"visited": (\d{1,18})')
_ENDED: Final = re.compile(rb'"outcome": "(\w+)", "reason": "(\w+)"')


def open_crawl(path: Path, settings: BaseSettings) -> Watch:
    """Watch the crawl of an output folder or of a JOBDIR. Raises InputError if it is neither, or of another
    format."""
    if (path / JOB).is_file():
        job = JobDir(path, lock=False).job
        assert job is not None
        return Watch(find_output(path, job, settings.get("OUTPUT_DIR")), path)
    if not (path / crawl_log.NAME).is_file():
        raise InputError(
            f"{path} holds no crawl: neither {crawl_log.NAME} nor {JOB} is there; give a crawl's OUTPUT_DIR or JOBDIR"
        )
    return Watch(path, None)


class Watch:
    """The current state of a crawl. Files are read only while a page is open, except a log without a series."""

    def __init__(self, output: Path, jobdir: Path | None) -> None:
        """Raise InputError if files lead out of the folder, or are of another format."""
        self.output, self._jobdir = output, jobdir
        require_within(output, output / crawl_log.NAME, output / crawl_log.FAILURES)
        self._facts = read_json(output / SETTINGS)
        given = self._facts.get("settings")
        self._settings: dict[str, Any] = given if isinstance(given, dict) else {}
        threshold = self._settings.get("QUALITY_THRESHOLD")
        self._threshold = float(threshold) if _is_number(threshold) else None
        self._log: _LogReader | None = None
        series.read_series(output)  # raises what is to be said at once
        self._lock, self._reading = threading.Lock(), threading.Lock()
        self._seen: bytes = b""
        self._stamp: object = None
        self._next_look = 0.0
        self._over: object = None
        """The files of a crawl that does not run, as seen last. A change of them is final, and shown at once."""
        self._frontier: dict[str, Any] | None = None
        self._next_frontier = 0.0
        self._frontier_of: object = None
        """The files that the crawl had left when its frontier was read last; None while it ran."""

    def now(self) -> bytes:
        """Return the current content of the page, as JSON."""
        with self._lock:
            runs = is_written(self.output / crawl_log.NAME)
            files = tuple(self._stamps())
            over = None if runs else (*files, self._next_frontier)
            if time.monotonic() < self._next_look and over == self._over:
                return self._seen
            began = time.thread_time()
            frontier = self._waiting(None if runs else files)
            self._over = None if runs else (*files, self._next_frontier)
            read = self._log and (self._log.share, id(self._log.points))
            stamp = (runs, self._next_frontier, read, *files)
            if stamp != self._stamp:
                self._stamp = stamp
                more = {"runs": runs, "frontier": frontier, "jobdir": self._jobdir is not None}
                self._seen = json.dumps({**self._look(), **more}).encode()
            self._next_look = time.monotonic() + max(_LEAST_SECONDS, _REST * (time.thread_time() - began))
            return self._seen

    def _stamps(self) -> Iterator[tuple[int, int] | None]:
        """Yield values that change with the shown files."""
        for name in (series.NAME, STATS):
            try:
                status = (self.output / name).stat()
            except OSError:
                yield None
            else:
                yield status.st_mtime_ns, status.st_size

    def _look(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"threshold": self._threshold, "read": None, **self._told()}
        try:
            points = series.read_series(self.output)
            if points is None:
                self._log = self._log or _LogReader(self.output, self._threshold)
                points, facts["read"] = self._log.points, self._log.share
            figures = self._figures(points) if points else {}
            json.dumps(figures, allow_nan=False)
            facts |= figures
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            facts["fault"] = f"{series.NAME} is damaged; if you remove it, the dashboard reads the crawl log instead"
        except (InputError, OSError) as error:
            facts["fault"] = harmless(str(error))
        return facts

    def _figures(self, points: Sequence[shown.Point]) -> dict[str, Any]:
        last = points[-1]
        return {
            "charts": shown.charts(points),
            "now": {name: last[name] for name in ("crawled", "visited", "queued", "time", "seconds")},
            "mean": last["influence"] / last["scored"] if last["scored"] else None,
            "waits": shown.waits(last),
            "ended": shown.ended(last["counts"]),
            "best": self._best(last["best"]),
        }

    def _told(self) -> dict[str, Any]:
        """Return the facts of the crawl in settings and statistics."""
        reason, pages = read_json(self.output / STATS).get("finish_reason"), self._settings.get("CRAWL_MAX_PAGES")
        return {
            "name": harmless("/".join(self.output.parts[-2:])),
            "policy": harmless(str(self._facts.get("policy", "unknown"))),
            "corpus": harmless(str(self._corpus())),
            "pages": pages if _is_number(pages) else None,
            "reason": reason if isinstance(reason, str) else None,
        }

    def _corpus(self) -> object:
        """Return the corpus as its user calls it, such as ``demo``, else by its kind."""
        kind, given = self._facts.get("corpus", "unknown"), self._settings.get("CORPUS")
        return given if kind != LIVE and given else kind

    def _best(self, best: list[tuple[float, int]]) -> list[dict[str, Any]]:
        """Return the best pages, as far as their lines of the log are still in place."""
        found = []
        log = PreadFile(self.output / crawl_log.NAME)
        for score, offset in best:
            line = child.line_at(log, offset)
            if line.get("influence") == score:
                page = {name: harmless(str(line.get(name) or "")) for name in ("id", "url")}
                order = line["order"] if _is_number(line.get("order")) else None
                found.append({"influence": score, "offset": offset, "order": order, **page})
        return found

    def text(self, offset: int) -> dict[str, str]:
        """Return ``{"text": ...}`` or ``{"fault": ...}`` for the page whose line of the log begins there."""
        with self._reading:
            return child.run("text", str(self.output), str(offset))

    def _waiting(self, left: object) -> dict[str, Any] | None:
        """Return the frontier in the JOBDIR; ``left``: the files of a crawl that has ended.

        A thread reads it now and then while the crawl runs, and once when the crawl has ended.
        """
        is_read = self._next_frontier == float("inf")
        due = time.monotonic() >= self._next_frontier if left is None else left != self._frontier_of
        if self._jobdir is not None and due and not is_read:
            self._next_frontier, self._frontier_of = float("inf"), left
            threading.Thread(target=self._read_frontier, args=(self._jobdir,), daemon=True).start()
        return self._frontier

    def _read_frontier(self, jobdir: Path) -> None:
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        self._frontier = child.run("frontier", str(jobdir))
        took = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        self._next_frontier = time.monotonic() + _REST * took


def _is_number(value: object) -> TypeGuard[float]:
    """Return whether a value from a file is a number that JSON has."""
    return isinstance(value, int | float) and -1e300 < value < 1e300


class _LogReader:
    """Makes the points of a crawl that has no series out of its logs, in a thread; there are no times in them."""

    def __init__(self, output: Path, threshold: float | None) -> None:
        self.points: list[dict[str, Any]] = []
        self._scores = series.Scores(threshold)
        self._pages = PreadFile(output / crawl_log.NAME)
        self._failures = PreadFile(output / crawl_log.FAILURES) if (output / crawl_log.FAILURES).exists() else None
        self._failures_read = self._crawled = 0
        self._counts: Counter[str] = Counter()
        self._piece = min(max(self._pages.size // _PIECES, _SMALLEST_PIECE), 1 << 20)
        threading.Thread(target=self._run, daemon=True).start()

    @property
    def share(self) -> float:
        """The share of the logs that has been read, from 0 to 1."""
        failures = self._failures.size if self._failures else 0
        whole = self._pages.size + failures
        return min((self._scores.offset + self._failures_read) / whole, 1.0) if whole else 1.0

    def _run(self) -> None:
        """Read the lines of the log and follow it, up to an invalid line."""
        with suppress(InputError):
            while True:
                while lines := self._scores.read(self._pages, self._piece):
                    self._crawled += lines.count(b"\n")
                    self._add(lines)
                read = self._failures_read
                while self._read_failures():
                    pass
                if self._failures_read > read and self.points:
                    self._add(b"")
                time.sleep(1.0)

    def _read_failures(self) -> bool:
        if self._failures is None:
            return False
        piece = self._failures.read(1 << 20, self._failures_read)
        end = piece.rfind(b"\n") + 1
        self._counts.update(f"{outcome.decode()}/{reason.decode()}" for outcome, reason in _ENDED.findall(piece[:end]))
        self._failures_read += end
        return end > 0

    def _add(self, lines: bytes) -> None:
        """Add a point; without lines, the last one once more, with the counts of the log of failures."""
        points = self.points[::2] if len(self.points) == series.MOST else self.points[:]
        if lines:
            found = _VISITED.search(lines, lines.rfind(b"\n", 0, -1) + 1)
            visited = None if found is None else int(found[1])
        else:
            visited = points.pop()["visited"]
        point = dict.fromkeys(series.FIELDS) | self._scores.point() | {"counts": dict(self._counts)}
        point |= {"crawled": self._crawled, "visited": visited, "cpu": [None, None], "memory": [None, None]}
        self.points = [*points, {**point, "behind": 0, "workers": 0}]
