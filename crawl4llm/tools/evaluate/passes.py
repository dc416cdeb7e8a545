"""One pass over many pages in worker processes: cached, so that it is made once, and resumed where it was killed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

from crawl4llm.base.bars import Progress
from crawl4llm.base.terminal import wants_bar
from crawl4llm.options import Options
from crawl4llm.scoring.rating import PageRater, Rating
from crawl4llm.scoring.workers import PageWorkers
from crawl4llm.tools.evaluate.blocks import Arrays, BlockStore

BLOCK = 4096
"""Pages that are computed, and saved, at once: a few seconds of work."""

T = TypeVar("T")


@dataclass(frozen=True)
class Pages:
    """Documents to look at."""

    name: str
    """Tells them from other documents of the same corpus."""
    count: int
    keys: Callable[[], Iterator[str]]


@dataclass(frozen=True)
class Task(Generic[T]):
    """Something to find out of each page."""

    what: str
    """In a word or two, for the progress bar."""
    depends_on: Mapping[str, Any]
    """All that decides what comes out, but for the pages."""
    of_page: Callable[[PageRater, str], T]
    """Runs in a worker process, where it is found by its module and name."""
    pack: Callable[[Sequence[T | Rating]], Arrays]
    """The block of some pages; a page that failed is a Rating with the reason."""


def run_pass(task: Task[T], pages: Pages, rater: PageRater, options: Options, cache: Path) -> list[Arrays]:
    """The blocks of all pages, in their order. Raises InputError where the cache cannot be read or written.

    Only what is not in the folder ``cache`` yet is computed; processes are started only for that.
    """
    store = BlockStore(cache, {"what": task.what, "pages": pages.name, "block": BLOCK, **task.depends_on})
    numbers = range(blocks_of(pages.count))
    blocks = {number: block for number in numbers if (block := store.load(number)) is not None}
    if len(blocks) < len(numbers):
        missing = [number for number in numbers if number not in blocks]
        with PageWorkers(rater, options.workers, options.text_time_limit) as workers:
            workers.start()
            with Progress[str](
                desc=task.what,
                total=pages.count,
                initial=pages.count - _size(missing, pages.count),
                unit=" pages",
                bar=wants_bar(options.progress_bar),
            ) as bar:
                for number, keys in _keys_of(pages.keys(), missing):
                    blocks[number] = task.pack(asyncio.run(workers.run(task.of_page, keys)))
                    store.save(number, blocks[number])
                    bar.update(len(keys))
    return [blocks[number] for number in numbers]


def blocks_of(count: int) -> int:
    """How many blocks so many pages make."""
    return -(-count // BLOCK)


def _size(numbers: Sequence[int], count: int) -> int:
    """How many pages some blocks have together, of ``count`` in all blocks."""
    return sum(min(BLOCK, count - number * BLOCK) for number in numbers)


def _keys_of(keys: Iterator[str], numbers: Sequence[int]) -> Iterator[tuple[int, list[str]]]:
    """The keys of some blocks, by ascending number."""
    passed = 0
    for number in numbers:
        for _ in islice(keys, (number - passed) * BLOCK):
            pass
        yield number, list(islice(keys, BLOCK))
        passed = number + 1
