"""Measuring a command and all its processes from outside."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

_POLL_SECONDS = 0.1
_MIB = 1 << 20


class Cost(NamedTuple):
    """What a command cost."""

    wall: float
    """Seconds."""
    cpu: float
    """User and system seconds of the process and all its children."""
    memory: tuple[float, ...]
    """Peak proportional set size (memory shared between processes counted once) of each process in MiB, the command's
    own process first, then its children by size."""
    tree: float
    """Peak of the sum of them in MiB."""


def measure(command: Sequence[str], cwd: Path, env: dict[str, str] | None = None) -> Cost:
    """Run a command to its end. Raises CalledProcessError with what it printed unless it exits with 0.

    Python may keep what it compiles, as it does where users have not turned that off.
    """
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before, started = _cpu_of_children(), time.perf_counter()
    process = subprocess.Popen(
        command, cwd=cwd, env={**inherited, **(env or {})}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    peaks: dict[int, float] = {}
    tree = 0.0
    output = ""
    while process.returncode is None:
        try:
            output = process.communicate(timeout=_POLL_SECONDS)[0]
        except subprocess.TimeoutExpired:
            tree = max(tree, _note_memory(process.pid, peaks))
    wall = time.perf_counter() - started
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, list(command), output)
    own = peaks.pop(process.pid, 0.0)
    return Cost(wall, _cpu_of_children() - before, (own, *sorted(peaks.values(), reverse=True)), tree)


def median(costs: Iterable[Cost]) -> Cost:
    """The medians of several runs, figure by figure."""
    runs = list(costs)
    memory = tuple(statistics.median(peaks) for peaks in zip(*(run.memory for run in runs), strict=False))
    wall, cpu, tree = (statistics.median(getattr(run, name) for run in runs) for name in ("wall", "cpu", "tree"))
    return Cost(wall, cpu, memory, tree)


def _note_memory(pid: int, peaks: dict[int, float]) -> float:
    """Raise the peaks of a process and its children to what they take now; returns the sum of that."""
    total = 0.0
    try:
        parent = psutil.Process(pid)
        for process in (parent, *parent.children(recursive=True)):
            memory = process.memory_full_info().pss / _MIB
            peaks[process.pid] = max(peaks.get(process.pid, 0.0), memory)
            total += memory
    except psutil.Error:
        pass  # it ended between two looks
    return total


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
