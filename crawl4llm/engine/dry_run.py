"""The dry run: estimates time and space of a crawl from a short one (``scrapy crawl influence -s DRY_RUN=1``)."""

from __future__ import annotations

import asyncio
import resource
import sys
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from pathlib import Path

from scrapy.settings import BaseSettings

from crawl4llm.base.errors import InputError
from crawl4llm.base.output_dir import check_output_dir
from crawl4llm.base.run_folder import SETTINGS, read_json
from crawl4llm.crawl import Job
from crawl4llm.engine.run import Run
from crawl4llm.engine.webs import web_class
from crawl4llm.frontier import Entry, MemoryVisited, memory_frontier, plain, visited as durable_visited
from crawl4llm.options import Options, read_options
from crawl4llm.scoring import rating

PAGES = 200
"""Pages that are scored to measure the rate of scoring, and crawled to measure the rest."""
_ENTRIES = 20_000


class DryRun:
    """A crawl of 200 pages into a temporary folder, with all settings of the real one but N, n and OUTPUT_DIR.

    With JOBDIR the short crawl has its own; the real JOBDIR is read and left unchanged. Raises InputError if the real
    crawl would.
    """

    def __init__(self, settings: BaseSettings, seeds: str | Sequence[str] | None, folder: Path) -> None:
        self.options = read_options(settings)
        if web_class(settings).profile != "simulation":
            raise InputError(
                "DRY_RUN measures simulations only; for a live crawl, `crawl4llm live SEEDS --contact URL --dry-run` "
                "prints what it would ask of whom"
            )
        jobdir = settings.get("JOBDIR")
        job = Job(Path(jobdir), self.options, look=True) if jobdir else None
        if self.options.output_dir is not None and (job is None or job.is_new):
            check_output_dir(Path(self.options.output_dir))
        self._done = job.pages if job else 0
        self._jobdir = folder / "job" if jobdir else None
        short = settings.copy()
        values = {
            "CRAWL_MAX_PAGES": min(PAGES, self.options.crawl_max_pages),
            "CRAWL_BATCH_SIZE": min(PAGES // 10, self.options.crawl_batch_size),
            "OUTPUT_DIR": str(folder / "run"),
            "JOBDIR": str(self._jobdir) if self._jobdir else None,
            "SCORE_CACHE": "",
        }
        short.setdict(values, priority="cmdline")
        self.run = Run(short, seeds)
        try:
            if job is not None:
                job.check(read_json(self.run.output / SETTINGS))
            self._seconds_per_score = self._measure_scoring()
        except BaseException:
            self.run.close()
            raise
        self._started = time.perf_counter()

    def _measure_scoring(self) -> float:
        """Return the seconds to look up and score a page with all workers busy; the second pass finds them warm."""
        corpus, workers = self.run.web.corpus, self.run.workers
        keys = corpus.sample(min(PAGES, len(corpus)), self.options.crawl_seed)
        loop = asyncio.new_event_loop()  # not asyncio.run(): that would take away the loop of Scrapy's reactor
        try:
            loop.run_until_complete(workers.run(rating.influence, keys))
            started = time.perf_counter()
            loop.run_until_complete(workers.run(rating.influence, keys))
        finally:
            loop.close()
        return (time.perf_counter() - started) / len(keys)

    def estimate(self) -> Iterator[str]:
        """Yield lines with the estimate; to be called when the short crawl has ended."""
        seconds = time.perf_counter() - self._started
        crawl, held = self.run.crawl, len(self.run.web.corpus)
        looks_ahead = crawl.policy.looks_ahead
        short = max(crawl.crawled, 1)
        scored = len(crawl.visited) if looks_ahead else short
        per_page = max(seconds - scored * self._seconds_per_score, 0.0) / short
        pages = min(self.options.crawl_max_pages, held)
        visited = min(len(crawl.visited) * pages // short, held)
        left = 1 - min(self._done / pages, 1) if pages else 0
        hours = left * (pages * per_page + (visited if looks_ahead else pages) * self._seconds_per_score) / 3600
        disk = left * pages * _size(self.run.output) / short
        if self._jobdir is not None:
            disk += left * visited * _size(self._jobdir) / max(len(crawl.visited), 1)
        memory = _peak_memory() + memory_of_stores(self.options, visited, on_disk=self._jobdir is not None)
        done = f" ({self._done:,} of them already)" if self._done else ""
        yield f"All settings are good. {'The rest of the' if done else 'The'} crawl would take about"
        yield f"  pages    {pages:,} crawled{done}, of {held:,} in the corpus; up to {visited:,} visited"
        yield f"  time     {hours:.2f} hours"
        yield f"  disk     {_in_units(disk)}"
        yield f"  memory   {_in_units(memory)} in the crawler, and {_in_units(_peak_memory(children=True))} in a worker"
        yield f"Measured on {short:,} pages: {1e3 * per_page:.2f} ms to crawl one,"
        yield f"  {1e3 * self._seconds_per_score:.2f} ms to look up and score one with {self.options.workers} workers."
        yield "Early pages bring more new links than later ones, so visited, time and memory are upper estimates."


def memory_of_stores(options: Options, documents: int, *, on_disk: bool) -> float:
    """Return the most memory of frontier and visited set, in bytes; ``on_disk``, only a part of them is in memory."""
    if not on_disk:
        return documents * _bytes_a_document()
    return plain.expected_memory(documents) + durable_visited.expected_memory(
        documents, cache=options.visited_cache, filter_bytes=options.visited_filter_bytes
    )


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _peak_memory(*, children: bool = False) -> int:
    """Return the largest resident size so far in bytes: of this process, or of the largest child that has ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN if children else resource.RUSAGE_SELF)
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _bytes_a_document() -> float:
    """Return the memory of a visited and queued document, in bytes."""
    tracemalloc.start()
    frontier, visited = memory_frontier(), MemoryVisited()
    keys = visited.add(f"clueweb22-en0000-{number // 1000:02d}-{number % 1000:05d}" for number in range(_ENTRIES))
    frontier.push(Entry(key, f"https://www.example.org/{key}/index.html", hash(key) / 7, 1, keys[0]) for key in keys)
    del keys
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size / _ENTRIES


def _in_units(size: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
