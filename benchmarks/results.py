"""The result of a benchmark: tables and figures with limits, as JSON with the machine that it was measured on."""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import psutil

PROJECT = Path(__file__).resolve().parents[1]
_LIBRARIES = (
    *("Scrapy", "Twisted", "fasttext-community", "lmdb", "lxml", "numpy", "orjson", "Resiliparse"),
    *("selectolax", "trafilatura", "warcio"),
)
_NOT_SPENT = {"idle", "iowait", "guest", "guest_nice"}
"""Of psutil's times: guests are in ``user`` too."""


@dataclass
class Figure:
    """A figure that has a limit."""

    what: str
    value: float
    limit: float
    unit: str = ""
    least: bool = False
    """Whether the limit is the least that is wanted, not the most."""

    @property
    def met(self) -> bool:
        """Whether the figure keeps to its limit."""
        return self.value >= self.limit if self.least else self.value <= self.limit

    def __str__(self) -> str:
        bound = f"at {'least' if self.least else 'most'} {self.limit:,g}"
        unit = f" {self.unit}" if self.unit else ""
        return f"{self.what}: {rounded(self.value)}{unit} ({bound}: {'met' if self.met else 'MISSED'})"


@dataclass
class Table:
    """Figures as they are read side by side."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | float | None]]

    def __str__(self) -> str:
        cells = [list(self.columns), *([rounded(cell) for cell in row] for row in self.rows)]
        widths = [max(len(row[column]) for row in cells) for column in range(len(self.columns))]
        first, *others = widths
        lines = [
            "  ".join([row[0].ljust(first), *(cell.rjust(width) for cell, width in zip(row[1:], others, strict=True))])
            for row in cells
        ]
        return "\n".join([self.title, *lines])


@dataclass
class Result:
    """What a benchmark has measured."""

    benchmark: str
    data: Sequence[str]
    """What was crawled, and what stands in for data that is not here."""
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def met(self) -> bool:
        """Whether all figures keep to their limits."""
        return all(figure.met for figure in self.figures)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Result:
        """Return a result as it was written."""
        parts = {name: content[name] for name in ("benchmark", "data", "notes")}
        tables, figures = ([Table(**t) for t in content["tables"]], [Figure(**f) for f in content["figures"]])
        return cls(**parts, tables=tables, figures=figures)


class Used(NamedTuple):
    """Seconds since some start."""

    wall: float
    all: float
    """CPU of all processes of the machine."""
    own: float
    """CPU of this process, and of its children that have ended."""

    @classmethod
    def now(cls) -> Used:
        """Return what is used by now."""
        times = psutil.cpu_times()._asdict()
        spent = sum(seconds for kind, seconds in times.items() if kind not in _NOT_SPENT)
        own = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return cls(time.monotonic(), spent, own)

    def by_others(self) -> float:
        """Return the share of the machine's CPU time that other processes took since then."""
        wall, everyone, own = (now - then for now, then in zip(Used.now(), self, strict=True))
        return round(max(0.0, everyone - own) / (wall * (os.cpu_count() or 1)), 3)


def rounded(cell: str | float | None) -> str:
    """Return a cell as it is shown: three significant digits, all digits before the point."""
    if cell is None:
        return "-"
    if isinstance(cell, str):
        return cell
    if cell == 0 or abs(cell) >= 100:
        return f"{cell:,.0f}"
    return f"{cell:.3g}" if abs(cell) < 0.01 else f"{cell:.2f}" if abs(cell) < 10 else f"{cell:.1f}"


def machine() -> dict[str, Any]:
    """Describe this machine and what is installed on it."""
    libraries = {}
    for name in _LIBRARIES:
        try:
            libraries[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            libraries[name] = "not installed"
    return {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "commit": _commit(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "cpu": _cpu_model(),
        "memory GiB": round(psutil.virtual_memory().total / (1 << 30), 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "load average": [round(load, 2) for load in os.getloadavg()],
        "libraries": libraries,
    }


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add the option that says where the JSON goes."""
    parser.add_argument("--out", type=Path, help="folder to write the JSON to (default: %(default)s)")
    parser.set_defaults(machine=machine(), began=Used.now())  # before the benchmark itself adds to the load average


def publish(result: Result, args: argparse.Namespace) -> None:
    """Print a result, and write it where ``--out`` says."""
    print(*result.data, sep="\n")
    for part in (*result.tables, "", *result.figures, *result.notes):
        print(f"\n{part}" if isinstance(part, Table) else part)
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        content = {**asdict(result), "machine": {**args.machine, "CPU taken by others": args.began.by_others()}}
        text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        (args.out / f"{result.benchmark}.json").write_text(text, encoding="utf-8")


def _commit() -> str:
    try:
        command = ["git", "-C", str(PROJECT), "describe", "--always", "--dirty"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
