"""The watch over a crawl's folder. It reads the folder again and again, more seldom if that costs much. The points of
the crawl's series become the columns of the page's charts and the rows of its tables."""

from __future__ import annotations

import json
import re
import resource
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from crawl4llm.base import crawl_log, reasons, series
from crawl4llm.base.errors import InputError
from crawl4llm.base.files import PreadFile, is_written
from crawl4llm.base.object_store import is_storage
from crawl4llm.base.run_folder import LIVE, SETTINGS, STATS, read_json
from crawl4llm.base.terminal import harmless
from crawl4llm.base.within import require_within
from crawl4llm.crawl import JOB, JobDir, find_output
from crawl4llm.tools.dashboard import child
from crawl4llm.tools.opened_run import run_folder

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_LEAST_SECONDS: Final = 2.0
REST: Final = 400
"""Seconds of rest per second of CPU time: watching takes less than a hundredth of a core."""
_PIECES: Final = 300
"""Parts in which a log without a series is read, each of which is a point."""
_SMALLEST_PIECE: Final = 1 << 14
_PARTS: Final = 200
"""Parts of the crawl's time, or of its pages if times are unknown; a point of a chart covers at least one."""
_REFUSALS: Final = {
    *(reasons.OPT_OUT, reasons.BLOCKLIST, reasons.ROBOTS, reasons.ROBOTS_UNKNOWN, reasons.REFUSED_ADDRESS),
    *("http_401", "http_402", "http_403", "http_451"),
}
"""Reasons by which a site, or whoever runs the crawl, did not want the document fetched or used."""
_STATES: Final = {
    "ready": "ready for a request",
    "waiting": "waiting: politeness delay, Retry-After or back-off",
    "busy": "with a request in flight",
    "parked": "parked: Crawl-delay above CRAWL_DELAY_CAP",
}

_VISITED: Final = re.compile(rb'"visited": (\d{1,18})')
_ENDED: Final = re.compile(rb'"outcome": "(\w+)", "reason": "(\w+)"')

Point = Mapping[str, Any]


def open_crawl(given: str, settings: BaseSettings) -> Watch:
    """Watch the crawl of an output folder or of a JOBDIR, or the current state of a storage. Raises InputError if it is
    no crawl, or of another format."""
    path = run_folder(given, settings)
    if (path / JOB).is_file():
        job = JobDir(path, lock=False).job
        assert job is not None
        return Watch(find_output(path, job, settings.get("OUTPUT_DIR")), path)
    if not (path / crawl_log.NAME).is_file():
        raise InputError(
            f"{path} holds no crawl: neither {crawl_log.NAME} nor {JOB} is there; give a crawl's OUTPUT_DIR or JOBDIR"
        )
    return Watch(path, storage=given if is_storage(given) else None)


class Watch:
    """The current state of a crawl. Files are read only while a page is open, except a log without a series."""

    def __init__(self, output: Path, jobdir: Path | None = None, storage: str | None = None) -> None:
        """Raise InputError if files lead out of the folder, or are of another format. ``storage``: the URL of the
        storage of which the folder is a view."""
        self.output, self._jobdir, self._storage = output, jobdir, storage
        require_within(output, output / crawl_log.NAME, output / crawl_log.FAILURES)
        self._read_facts()
        self._log: _LogReader | None = None
        series.read_series(output)  # raises what is to be said at once
        self._lock, self._reading = threading.Lock(), threading.Lock()
        self._seen: bytes = b""
        self._next_look = 0.0
        self._left: object = None
        """The files that the crawl had left when they were looked at last; None while it ran. A change of them is
        final, and shown at once."""
        self._frontier: dict[str, Any] | None = None
        self._next_frontier = 0.0
        self._frontier_of: object = None
        """The files that the crawl had left when its frontier was read last."""

    def _read_facts(self) -> None:
        self._facts = read_json(self.output / SETTINGS)
        self._settings: dict[str, Any] = self._facts.get("settings", {})
        threshold = self._settings.get("QUALITY_THRESHOLD")
        self._threshold = None if threshold is None else float(threshold)
        self._reason = read_json(self.output / STATS).get("finish_reason")

    def now(self) -> bytes:
        """Return the current content of the page, as JSON."""
        with self._lock:
            runs = is_written(self.output / crawl_log.NAME)
            left = None if runs else tuple(self._stamps())
            if time.monotonic() < self._next_look and left == self._left:
                return self._seen
            began = time.thread_time()
            self._left = left
            more = {
                "runs": runs,
                "storage": self._storage is not None,
                "frontier": self._waiting(left),
                "jobdir": self._jobdir is not None,
            }
            self._seen = json.dumps({**self._look(), **more}).encode()
            self._next_look = time.monotonic() + max(_LEAST_SECONDS, REST * (time.thread_time() - began))
            return self._seen

    def _stamps(self) -> Iterator[tuple[int, int]]:
        """Yield values that change with the shown files."""
        for name in (series.NAME, STATS):
            with suppress(OSError):
                status = (self.output / name).stat()
                yield status.st_mtime_ns, status.st_size

    def _look(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"read": None, **self._told()}
        try:
            points = series.read_series(self.output)
            if points is None:
                self._log = self._log or _LogReader(self.output, self._threshold)
                self._log.go_on()
                points, facts["read"] = self._log.points, self._log.share
            figures = self._figures(points) if points else {}
            json.dumps(figures, allow_nan=False)
            facts |= figures
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            of_series = f"{series.NAME} is damaged; if you remove it, the dashboard reads the crawl log instead"
            facts["fault"] = (
                of_series if self._log is None else f"{crawl_log.NAME} is damaged: it has impossible numbers"
            )
        except (InputError, OSError) as error:
            facts["fault"] = harmless(str(error))
        return facts

    def _figures(self, points: Sequence[Point]) -> dict[str, Any]:
        last = points[-1]
        return {
            "charts": _charts(points),
            "now": {name: last[name] for name in ("crawled", "visited", "queued", "time", "seconds")},
            "mean": last["influence"] / last["scored"] if last["scored"] else None,
            "waits": _waits(last),
            "ended": _ended(last["counts"]),
            "best": self._best(last["best"]),
        }

    def _told(self) -> dict[str, Any]:
        """Return the facts of the crawl in settings and statistics, which a resumed crawl writes again."""
        fault = {}
        try:
            self._read_facts()
        except InputError as error:
            fault["fault"] = harmless(str(error))
        corpus, given = self._facts.get("corpus", "unknown"), self._settings.get("CORPUS")
        return {
            "name": harmless(self._storage or "/".join(self.output.parts[-2:])),
            "threshold": self._threshold,
            "policy": harmless(str(self._facts.get("policy", "unknown"))),
            "corpus": harmless(str(given if corpus != LIVE and given else corpus)),  # such as ``demo``
            "pages": self._settings.get("CRAWL_MAX_PAGES"),
            "reason": self._reason,
            **fault,
        }

    def _best(self, best: list[tuple[float, int]]) -> list[dict[str, Any]]:
        """Return the best pages, as far as their lines of the log are still in place."""
        found = []
        log = PreadFile(self.output / crawl_log.NAME)
        for score, offset in best:
            line = child.line_at(log, offset)
            if line.get("influence") == score:
                page = {name: harmless(str(line.get(name) or "")) for name in ("id", "url")}
                order = line["order"] if isinstance(line.get("order"), int) else None
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
        self._next_frontier = time.monotonic() + REST * took
        self._next_look = 0.0


# -- what the page draws ----------------------------------------------------------------------------------------------


def _charts(points: Sequence[Point]) -> dict[str, list[float | None]]:
    """Return the columns of the charts. Each row covers the time since the point before; the first row covers the time
    since the beginning, as far as known."""
    chosen = list(points[:1])
    axis = "crawled" if points and points[-1]["seconds"] is None else "seconds"
    for point in points[1:]:
        if point is points[-1] or point[axis] - chosen[-1][axis] >= points[-1][axis] / _PARTS:
            chosen.append(point)
    rows = [_row(before, point) for before, point in zip([None, *chosen], chosen, strict=False)]
    columns = {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
    return {**columns, "busy": list(_busy(chosen))} if columns else {}


def _row(before: Point | None, point: Point) -> dict[str, float | None]:
    def more(name: str) -> float:
        """Return the increase since the point before; a count that a new process began at 0 counts whole."""
        earlier = (before or {}).get(name) or 0
        return float(point[name] if point[name] < earlier else point[name] - earlier)

    seconds = None if point["seconds"] is None else more("seconds")
    scored = more("scored")
    return {
        **{name: point[name] for name in ("seconds", "crawled", "visited", "queued")},
        "rate": _ratio(more("crawled"), seconds),
        "influence": _ratio(point["influence"] - ((before or {}).get("influence") or 0.0), scored),
        "good": None if point["good"] is None else _ratio(more("good"), scored),
        "received": _ratio(more("received"), seconds) if point["received"] else None,
        **dict(zip(("crawler", "workers"), point["memory"], strict=True)),
    }


def _ratio(part: float, whole: float | None) -> float | None:
    return float(f"{part / whole:.5g}") if whole else None


def _busy(points: Iterable[Point]) -> Iterator[float | None]:
    """Yield the share of the time in which the worker processes were at work; CPU time is looked at now and then."""
    last: Point | None = None
    share: float | None = None
    for point in points:
        spent = point["cpu"][1]
        if spent is None or not point["workers"]:
            last = share = None
        elif last is None or spent < last["cpu"][1]:
            last, share = point, None
        elif spent > last["cpu"][1] and point["seconds"] > last["seconds"]:
            used = (spent - last["cpu"][1]) / (point["seconds"] - last["seconds"]) / point["workers"]
            last, share = point, min(round(used, 4), 1.0)
        yield share


def _waits(point: Point) -> list[list[Any]]:
    """Return the waiting documents: a row of reason, owners and documents."""
    counts = point["counts"]
    owners = point["owners"]
    if owners is not None:
        rows = [[f"owners {_STATES[state]}", *owners[state]] for state in _STATES]
    else:
        rows = [["in the frontier, behind better documents", None, point["queued"]]]
    rows += [
        ["set aside: no budget left (URL_BUDGET)", None, counts.get("parked/budget", 0)],
        ["in flight", None, counts.get("frontier/leased", 0)],
        ["fetched, waiting for a worker process or for an earlier page", None, point["behind"]],
    ]
    return [row for row in rows if row[1] or row[2]]


def _ended(counts: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the reasons for documents that ended without a page, the most frequent first."""
    rows = []
    for key, count in counts.items():
        outcome, _, reason = key.partition("/")
        if outcome in reasons.TABLES and reason:
            table = reasons.TABLES[outcome]
            meaning = table.get(reason) or table.get(re.sub(r"_\d{3}$", "_<status>", reason), "")
            plain = re.sub(r"\[([^]]*)\]\([^)]*\)|`", r"\1", meaning)
            refusal = reason in _REFUSALS
            rows.append({"outcome": outcome, "reason": reason, "count": count, "why": plain, "refusal": refusal})
    return sorted(rows, key=lambda row: (-row["count"], row["outcome"], row["reason"]))


# -- a crawl without a series ------------------------------------------------------------------------------------------


class _LogReader:
    """Makes the points of a crawl that has no series out of its logs, in a thread; there are no times in them."""

    _thread: threading.Thread | None = None

    def __init__(self, output: Path, threshold: float | None) -> None:
        self.points: list[dict[str, Any]] = []
        self._scores = series.Scores(threshold)
        self._pages = PreadFile(output / crawl_log.NAME)
        self._failures = PreadFile(output / crawl_log.FAILURES) if (output / crawl_log.FAILURES).exists() else None
        self._failures_read = self._crawled = 0
        self._visited: int | None = None
        self._counts: Counter[str] = Counter()

    def go_on(self) -> None:
        """Read what the logs have more, in a thread, unless one does."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()

    @property
    def share(self) -> float:
        """The share of the logs that has been read, from 0 to 1."""
        failures = self._failures.size if self._failures else 0
        whole = self._pages.size + failures
        return min((self._scores.offset + self._failures_read) / whole, 1.0) if whole else 1.0

    def _run(self) -> None:
        """Read the lines of the log that are there, up to an invalid line."""
        piece = min(max(self._pages.size // _PIECES, _SMALLEST_PIECE), 1 << 20)
        with suppress(InputError):
            while True:
                lines, failures = self._scores.read(self._pages, piece), self._read_failures()
                if lines:
                    points = self.points[::2] if len(self.points) == series.MOST else self.points
                    found = _VISITED.search(lines, lines.rfind(b"\n", 0, -1) + 1)
                    self._visited = None if found is None else int(found[1])
                    self._crawled += lines.count(b"\n")
                    self.points = [*points, self._point()]
                elif failures:  # the last point once more, with these counts
                    self.points = [*self.points[:-1], self._point()] if self.points else []
                else:
                    return

    def _read_failures(self) -> bool:
        if self._failures is None:
            return False
        piece = self._failures.read(1 << 20, self._failures_read)
        end = piece.rfind(b"\n") + 1
        self._counts.update(f"{outcome.decode()}/{reason.decode()}" for outcome, reason in _ENDED.findall(piece[:end]))
        self._failures_read += end
        return end > 0

    def _point(self) -> dict[str, Any]:
        point = dict.fromkeys(series.FIELDS) | self._scores.point() | {"counts": dict(self._counts)}
        point |= {"crawled": self._crawled, "visited": self._visited, "cpu": [None, None], "memory": [None, None]}
        return {**point, "behind": 0, "workers": 0}
