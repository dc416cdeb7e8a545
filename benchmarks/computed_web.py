"""Crawls of a web that is computed from its keys, with nothing on disk: whether a page costs more in one of 10 million.

    python -m benchmarks.computed_web [--documents 10M] [--pages 300k] [--small 100k] [--out FOLDER]

Documents are a tree: each of the first third has three links to others that nothing else leads to, and eight to those
before it on the way from the root; the rest have eleven of these. Scores are drawn by a hash, and are lower where a
document leads no further: so a page leads to three new documents in any crawl of less than a third of them. A small
web and a large one are crawled by influence, with JOBDIR and by one worker of a cluster. While the large one is
crawled, with JOBDIR in three parts, the small one is crawled beside it, again and again: as what a machine does
changes, that is what it is compared with. CPU is without that of a crawl of the seeds; memory is the peak of what is
anonymous, as files that are mapped can be given back.

Pages of both webs have eleven links (10.85 on average in the small one, 10.99 in the large one), of which three are
new, on as many hosts, as each seed is on one of its own, and URLs of the same length; what differs is that the small
crawl ends when VISITED_CACHE is about to be full.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from benchmarks.frontier import number
from benchmarks.results import PROJECT, Figure, Result, Table, add_output, publish
from crawl4llm.base.errors import InputError, MissingRecord
from crawl4llm.base.pages import Link, PageRecord
from crawl4llm.options import Options
from crawl4llm.scoring import ScoringOptions

DOCUMENTS = "COMPUTED_WEB_DOCUMENTS"
"""The variable of the environment that says how many there are."""
MOST_GROWTH = 1.15
MOST_BYTES = 1.1
"""Of a queued URL at the end, by those after the first part."""
SETTINGS = {"VISITED_CACHE": 100_000}
MOST_MEMORY = 150
"""MiB besides those of a crawl of the seeds: 40 by these settings and the frontier, the rest for batches, snapshots."""
PARTITIONS, SEEDS, LINKS, PARTS = 16, 100, 11, 3
_HOST = SEEDS
"""Documents of a host, but for those of the seeds."""
_LOOK = 0.1
_KEY = re.compile(r"https://www\.h(\d{6})\.example/(\d{8})")


class ComputedWeb:
    """Implements :class:`crawl4llm.base.pages.Corpus`: all that there is of a document is its number, in its URL."""

    name = "computed web"

    def __init__(self, documents: int) -> None:
        self._documents = documents

    @classmethod
    def from_options(cls, options: Options) -> ComputedWeb:
        return cls(int(os.environ[DOCUMENTS]))

    def page(self, key: str) -> PageRecord:
        return PageRecord(key, key, text=self.text(key), outlinks=self.outlinks(key))

    def text(self, key: str) -> str:
        return f"{self._number(key)} of {self._documents}"

    def html(self, key: str) -> bytes:
        return self.text(key).encode()

    def outlinks(self, key: str) -> list[Link]:
        one = self._number(key)
        linked = [3 * one + place for place in (1, 2, 3) if 3 * one + 3 < self._documents]
        while one and len(linked) < LINKS:
            one = (one - 1) // 3
            linked.append(one)
        return [Link(url, url, "", False) for url in map(_url, linked)]

    def inlinks(self, key: str) -> list[Link]:
        return []

    def __contains__(self, key: object) -> bool:
        found = _KEY.fullmatch(str(key))
        return found is not None and int(found[2]) < self._documents and _url(int(found[2])) == key

    def __len__(self) -> int:
        return self._documents

    def is_key(self, text: str) -> bool:
        return _KEY.fullmatch(text) is not None

    def keys(self) -> Iterator[str]:
        return map(_url, range(self._documents))

    def sample(self, n: int, seed: int) -> list[str]:
        return [_url(one) for one in random.Random(seed).sample(range(self._documents), n)]

    def resolve(self, url: str) -> str | None:
        return url if url in self else None

    def require(self, *parts: str) -> None:
        if "inlinks" in parts:
            raise InputError("CORPUS computed web: holds no inlinks")

    def identity(self) -> str:
        return f"{self._documents:x}"

    def check(self) -> None:
        """Nothing can be missing."""

    def close(self) -> None:
        """Nothing is open."""

    def _number(self, key: str) -> int:
        if key not in self:
            raise MissingRecord(f"CORPUS computed web: does not hold {key}")
        return int(key.rpartition("/")[2])


def _url(number: int) -> str:
    host = number if number < SEEDS else SEEDS - 1 + number // _HOST
    return f"https://www.h{host:06}.example/{number:08}"


class HashScorer:
    """A scorer that gives each text of that web a number which looks drawn."""

    digest = hashlib.sha256(b"crc32").hexdigest()

    @classmethod
    def from_options(cls, options: ScoringOptions) -> HashScorer:
        return cls()

    def score(self, texts: Sequence[str]) -> list[float]:
        told = [map(int, text.split(" of ")) for text in texts]
        return [crc32(b"%d" % one) / 2**32 + (3 * one + 3 < documents) for one, documents in told]


class Cost(NamedTuple):
    """What one process did, or several, one after the other."""

    pages: int
    queued: int
    """0 in a cluster, whose workers leave nothing."""
    cpu: float
    """Seconds."""
    memory: float
    """MiB."""
    stored: int
    """Bytes, of the store in JOBDIR or of the storage of a cluster without the archive."""

    @property
    def of_page(self) -> float:
        """Milliseconds of CPU."""
        return 1000 * self.cpu / self.pages


def crawl(folder: Path, documents: int, pages: int, *, cluster: bool) -> Cost:
    """Begin a crawl in a folder, or with JOBDIR go on with it."""
    (folder / "storage").mkdir(parents=True, exist_ok=True)
    (folder / "seeds").write_text("".join(f"{_url(one)}\n" for one in range(SEEDS)))
    kept: dict[str, object] = {"JOBDIR": folder / "job", "COMMIT_FSYNC": False}
    if cluster:
        kept = {"STORAGE": f"file://{folder}/storage", "CRAWL_PARTITIONS": PARTITIONS}
    settings = {
        "CORPUS": "benchmarks.computed_web.ComputedWeb",
        "SCORER": "benchmarks.computed_web.HashScorer",
        "CRAWL_MAX_PAGES": pages,
        "CRAWL_BATCH_SIZE": 1000,
        "SCORING_WORKERS": 0,
        "SCORE_CACHE": "",
        "OUTPUT_DIR": folder / "run",
        **SETTINGS,
        **kept,
    }
    given = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    command = [sys.executable, "-m", "scrapy", "crawl", "influence", "-a", f"seeds={folder}/seeds", *given]
    env = {**os.environ, DOCUMENTS: str(documents), "PYTHONPATH": str(PROJECT), "PYTHONHASHSEED": "0"}
    with (folder / "errors").open("w+") as errors:
        process = subprocess.Popen(command, cwd=PROJECT, env=env, stdout=subprocess.DEVNULL, stderr=errors)
        memory, cpu = _watch(process)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command, (folder / "errors").read_text())
    stats = json.loads((folder / "run/stats.json").read_text())
    crawled, queued = (stats[f"crawl4llm/{name}"] for name in ("pages/crawled", "frontier/queued"))
    files = (folder / "storage").rglob("*[0-9]") if cluster else [folder / "job/store.mdb"]  # without the archive
    return Cost(crawled, queued, cpu, memory, sum(file.stat().st_size for file in files if file.is_file()))


def _watch(process: subprocess.Popen[bytes]) -> tuple[float, float]:
    """Wait for a process; return the peak of its anonymous memory in MiB, and its CPU seconds."""
    status, peak = Path(f"/proc/{process.pid}/status"), 0
    while True:
        found = re.search(r"RssAnon:\s+(\d+)", status.read_text())
        peak = max(peak, int(found[1]) if found else 0)
        pid, code, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(code)
            return peak / 1024, used.ru_utime + used.ru_stime
        time.sleep(_LOOK)


def _until(
    ended: threading.Event, folder: Path, documents: int, pages: int, *, cluster: bool
) -> tuple[list[Cost], list[Cost]]:
    """Crawl the seeds alone, and from the beginning, again and again; return what either cost."""
    starts: list[Cost] = []
    costs: list[Cost] = []
    while not ended.is_set():
        for many, done in ((1, starts), (pages, costs)):
            done.append(crawl(folder / f"{many}-{len(done)}", documents, many, cluster=cluster))
    return starts, costs


def _less(cost: Cost, before: Cost, start: Cost) -> Cost:
    """Return what a process did after another, less what it takes to start."""
    return cost._replace(pages=cost.pages - before.pages, cpu=cost.cpu - start.cpu)


def _together(costs: Sequence[Cost]) -> Cost:
    """Return what some processes did together."""
    return costs[0]._replace(pages=sum(one.pages for one in costs), cpu=sum(one.cpu for one in costs))


def main(argv: Sequence[str] | None = None) -> None:
    """Crawl and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=number, default=number("10M"), help="of the large web")
    parser.add_argument("--pages", type=number, default=number("300k"), help="crawled of it")
    parser.add_argument("--small", type=number, default=number("100k"), help="documents of the small web")
    add_output(parser)
    args = parser.parse_args(argv)
    result, rows = Result("computed_web", []), []
    nothing = Cost(0, 0, 0.0, 0.0, 0)
    for name, cluster in (("JOBDIR", False), ("cluster", True)):
        with tempfile.TemporaryDirectory(prefix="crawl4llm-") as temporary:
            folder, ended = Path(temporary), threading.Event()
            few = 3 * args.small // 10
            with ThreadPoolExecutor(1) as beside:
                found = beside.submit(_until, ended, folder / "small", args.small, few, cluster=cluster)
                try:
                    of_large = [args.pages] if cluster else [args.pages * part // PARTS for part in range(1, PARTS + 1)]
                    parts = [crawl(folder / "large", args.documents, pages, cluster=cluster) for pages in of_large]
                finally:
                    ended.set()
                starts, small = found.result()
        start = starts[0]._replace(cpu=statistics.mean(one.cpu for one in starts))
        of_small = _together([_less(one, nothing, start) for one in small])
        costs = [_less(one, before, start) for before, one in pairwise([nothing, *parts])]
        rows.append(_row(name, args.small, small[0], of_small))
        rows += [_row(name, args.documents, one, cost) for one, cost in zip(parts, costs, strict=True)]
        ratio = _together(costs).of_page / of_small.of_page
        what = f"{name}: CPU a page at {args.documents:,} documents / at {args.small:,}"
        result.figures.append(Figure(what, ratio, MOST_GROWTH))
        beyond = max(one.memory for one in parts) - start.memory
        result.figures.append(Figure(f"{name}: memory besides that of the seeds", beyond, MOST_MEMORY, "MiB"))
        if not cluster:
            first, last = (one.stored / one.queued for one in (parts[0], parts[-1]))
            result.figures.append(
                Figure(f"{name}: bytes a queued URL, at the end / after the first part", last / first, MOST_BYTES)
            )
    columns = ("", "documents", "pages", "ms CPU a page", "bytes stored a queued URL", "a page", "MiB")
    result.tables.append(Table(f"Crawls of a computed web, {SETTINGS}", columns, rows))
    publish(result, args)


def _row(name: str, documents: int, so_far: Cost, cost: Cost) -> list[str | float | None]:
    stored = [so_far.stored / so_far.queued if so_far.queued else None, so_far.stored / so_far.pages]
    return [name, documents, so_far.pages, cost.of_page, *stored, so_far.memory]


if __name__ == "__main__":
    main()
