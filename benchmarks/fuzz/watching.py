"""Runs a reader on one input, and tells what it does that it must not: errors, time, memory, and what guards refuse."""

from __future__ import annotations

import resource
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.fuzz.guards import Guard
from benchmarks.fuzz.target import Reader, Target

PROJECT: Final = Path(__file__).resolve().parents[2]
_OWN: Final = (str(PROJECT / "crawl4llm"), str(PROJECT / "simulate"))


class Fault(NamedTuple):
    """What a reader did with an input."""

    kind: str
    """Equal for faults that have one cause, as far as that can be told."""
    told: str
    """The traceback, or a line."""


class Watched:
    """A reader whose executions are watched. Its memory is bounded from now on, so that an allocation fails beyond."""

    def __init__(self, target: Target, reader: Reader, guard: Guard) -> None:
        self._target, self._reader, self._guard = target, reader, guard
        self._peak = _peak()

    def run(self, data: bytes) -> Fault | None:
        """Read an input; return what went wrong, if anything did."""
        fault = None
        began = time.process_time()
        try:
            with self._guard.on(self._target.harmless):
                self._reader.read(data)
        except self._reader.allowed:
            pass
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it was is what is looked for
            fault = Fault(_kind_of(error), "".join(traceback.format_exception(error, limit=-12)))
        spent, peak = time.process_time() - began, _peak()
        grown, self._peak = peak - self._peak, peak
        if self._guard.seen:
            return Fault(f"refused: {self._guard.seen[0].partition(' ')[0]}", "\n".join(self._guard.seen))
        if fault is None and spent > self._target.seconds:
            fault = Fault("slow", f"{spent:.1f} s of CPU for {len(data):,} bytes")
        if fault is None and grown > self._target.megabytes:
            fault = Fault("memory", f"{grown:,.0f} MB more for {len(data):,} bytes")
        return fault


def _kind_of(error: BaseException) -> str:
    """Return the error's class with the last line of the project that it passed."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename.startswith(_OWN)] or list(frames)
    last = own[-1]
    return f"{type(error).__name__} {Path(last.filename).name}:{last.name}:{last.lineno}"


def _peak() -> float:
    """Return the most memory that this program ever had, in MB. What the system counts for the process can be that of
    another program, by which it was started."""
    with suppress(OSError, ValueError):  # Linux
        return int(Path("/proc/self/status").read_bytes().partition(b"VmHWM:")[2].split(maxsplit=1)[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
