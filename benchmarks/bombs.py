"""Sites that send bodies which unpack to a thousand times as much, beside others: time and memory of a live crawl.

    python -m benchmarks.bombs [--sites 400] [--pages 25] [--out FOLDER]

A local web has ``--sites`` plain sites of ``--pages`` pages each. It is crawled by the live profile without delays and
with trafilatura: alone, and with as many sites beside them whose only page is a bomb. A fifth each of these send flat
text, ``<p>a``, nested elements and two codings, which all unpack to 60 MB. The others send text of a ratio of 20, which
is within the bounds and read. Judged are

- the time of the crawl with bombs, as a multiple of that without them: at most 1.5;
- anonymous memory of the main process, at its highest: at most 300 MB; and of each reader: at most 400 MB;
- the documents' ends: all plain pages are crawled, all bombs fail as ``bomb``, those of a ratio of 20 are crawled.

Memory is ``Anonymous`` of /proc/PID/smaps_rollup, read ten times a second. Ends with status 1 if a limit is not kept.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import psutil

from benchmarks.live_runs import crawl, finish
from benchmarks.live_web import EvenPages, served
from benchmarks.results import Figure, Result, Table, add_output, publish
from tests.testweb.misbehaviour import unpacking

KINDS: Final = ("flat", "paragraphs", "nested", "twice", "ratio20")
_READ: Final = "ratio20"
_SAMPLE_SECONDS: Final = 0.1
_MOST_TIME, _MOST_MAIN, _MOST_READER = 1.5, 300.0, 400.0
_MEGABYTE: Final = 1e6


class Run(NamedTuple):
    """A finished crawl."""

    seconds: float
    cpu: float
    """Seconds of the main process and the readers."""
    main: float
    """Megabytes of the main process, at most."""
    reader: float
    """Megabytes of the largest reader, at most."""
    crawled: int
    bombs: int


def anonymous(pid: int) -> float:
    """Return the megabytes of anonymous memory that a process has; 0 if it has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Anonymous:"):
                return int(line.split()[1]) * 1024 / _MEGABYTE
    return 0.0


def watched(process: subprocess.Popen[str]) -> tuple[float, float, float]:
    """Wait for the end of a crawl; return the seconds of CPU of its readers, and the most memory that its main process
    and any of its readers had."""
    main = reader = 0.0
    used: dict[int, float] = {}
    while process.poll() is None:
        main = max(main, anonymous(process.pid))
        with suppress(psutil.NoSuchProcess):
            for child in psutil.Process(process.pid).children(recursive=True):
                reader = max(reader, anonymous(child.pid))
                used[child.pid] = sum(child.cpu_times()[:2])
        time.sleep(_SAMPLE_SECONDS)
    return sum(used.values()), main, reader


def one_run(folder: Path, sites: int, pages: int, *, bombs: bool) -> Run:
    """Crawl the web, with or without bombs."""
    bad = {f"bad-{number}.test": f"unpacks:{KINDS[number % len(KINDS)]}" for number in range(sites * bombs)}
    for kind in KINDS:
        unpacking(kind)  # before the servers share them
    with served(folder / "web", EvenPages(sites, pages), bad) as servers:
        settings = {"CRAWL_MAX_PAGES": sites * pages + len(bad), "DOWNLOAD_DELAY": 0, "TEXT_EXTRACTOR": "trafilatura"}
        process = crawl(servers.web, folder, settings)
        cpu, main, reader = watched(process)
        cost = finish(process, folder)
    stats = json.loads((folder / "run/stats.json").read_text())
    crawled, found = stats["crawl4llm/pages/crawled"], stats.get("crawl4llm/failed/bomb", 0)
    return Run(cost.seconds, cost.cpu + cpu, main, reader, crawled, found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", type=int, default=400)
    parser.add_argument("--pages", type=int, default=25)
    add_output(parser)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="crawl4llm-") as scratch:
        plain = one_run(Path(scratch, "plain"), args.sites, args.pages, bombs=False)
        both = one_run(Path(scratch, "both"), args.sites, args.pages, bombs=True)
    read = sum(KINDS[number % len(KINDS)] == _READ for number in range(args.sites))
    rows: list[Sequence[str | float | None]] = [["plain sites", *plain], ["with bombs", *both]]
    columns = ["crawl of", "seconds", "CPU seconds", "main, MB", "largest reader, MB", "pages crawled", "bombs"]
    result = Result("bombs", [f"{args.sites} sites of {args.pages} pages, and as many bombs"])
    result.tables.append(Table("Crawls", columns, rows))
    result.figures += [
        Figure("time with bombs, of that without", both.seconds / plain.seconds, _MOST_TIME, "times"),
        Figure("main process", both.main, _MOST_MAIN, "MB"),
        Figure("largest reader", both.reader, _MOST_READER, "MB"),
        Figure("pages crawled", both.crawled, args.sites * args.pages + read, least=True),
        Figure("bombs found", both.bombs, args.sites - read, least=True),
    ]
    publish(result, args)
    return 0 if result.met else 1


if __name__ == "__main__":
    sys.exit(main())
