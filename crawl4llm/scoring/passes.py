"""Passes over many pages in worker processes, cached on disk in blocks, so that a killed pass can continue."""

from __future__ import annotations

import hashlib
import io
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.jobs import KILLED, Executor, Jobs, Told, run_missing
from crawl4llm.base.whole_files import write_whole, writing
from crawl4llm.scoring.rating import PageRater, Raters, Rating
from crawl4llm.scoring.score_cache import ScoreCache
from crawl4llm.scoring.workers import PageWorkers

logger = logging.getLogger(__name__)

Arrays = Mapping[str, NDArray[Any]]
"""The numbers of a block's pages, by their names."""

_FORMAT = 1
"""Version of the blocks' content."""
_DIGEST_BYTES = 32


class BlockStore:
    """A folder of blocks with the same dependencies, such as corpus and model, which ``depends_on`` identifies.

    Each file holds a digest of its content and of ``depends_on``. A file that does not match, because it is damaged or
    was copied from elsewhere, is logged and counts as absent.
    """

    def __init__(self, parent: Path, depends_on: Mapping[str, Any]) -> None:
        self._about = {"format": _FORMAT, **depends_on}
        self._identity = hashlib.sha256(json.dumps(self._about, sort_keys=True).encode()).digest()
        self.folder = parent / self._identity.hex()[:24]

    def load(self, number: int) -> Arrays | None:
        """Return a block; None if it is not there or cannot be used."""
        path = self._path(number)
        data = None
        with as_input_error(f"{path} cannot be read"), suppress(FileNotFoundError):
            data = path.read_bytes()
        if data is None:
            return None
        digest, content = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
        if digest != self._digest(content):
            logger.warning("%s is damaged, or of another corpus or model; its pages are computed again", path)
            return None
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}

    def read(self, number: int) -> Arrays:
        """Return a block that was loaded just before. Raises InputError if it is gone."""
        block = self.load(number)
        if block is None:
            raise InputError(f"{self._path(number)} was removed or damaged while it was read; give the command again")
        return block

    def save(self, number: int, arrays: Arrays) -> None:
        """Write a block, whole or not at all. Raises InputError if that fails."""
        content, contents = io.BytesIO(), dict[str, Any](arrays)
        np.savez(content, **contents)
        data = content.getvalue()
        with writing(self.folder, "the scores"):
            self.folder.mkdir(parents=True, exist_ok=True)
        if number == 0:
            write_whole(self.folder / "about.json", json.dumps(self._about, indent=2).encode(), "the scores")
        write_whole(self._path(number), self._digest(data) + data, "the scores")

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06d}.block"

    def _digest(self, content: bytes) -> bytes:
        return hashlib.sha256(self._identity + content).digest()


_UNIT = " pages"

BLOCK = 4096
"""Pages computed and saved at once: a few seconds of work."""

T = TypeVar("T")


@dataclass(frozen=True)
class Pages:
    """Documents of a pass."""

    name: str
    """Name, unique among the documents of a corpus."""
    count: int
    keys: Callable[[], Iterator[str]]


@dataclass(frozen=True)
class Question(Generic[T]):
    """A question about each page, with the function that answers it."""

    what: str
    """The question in a word or two, for the progress bar."""
    depends_on: Mapping[str, Any]
    """All dependencies of the result except the pages."""
    of_page: Callable[[PageRater, Any], T]
    """The function, which a worker process finds by its module and name; its argument is a page's key."""
    pack: Callable[[Sequence[T | Rating]], Arrays]
    """Function that makes the block of some pages; a page that failed is a Rating with the reason."""
    scores: ScoreCache | None = None
    """A cache for scores from the function, which is given each page's key with the known Rating."""


class _Block(NamedTuple):
    """A block to compute."""

    number: int
    size: int
    """Pages."""


@dataclass(frozen=True)
class _Pass(Generic[T]):
    """A pass over pages: computes blocks, and knows which exist. Pickled for tasks."""

    task: Question[T]
    pages: Pages
    rater: PageRater
    store: BlockStore
    processes: int

    def is_done(self, block: _Block) -> bool:
        """Return whether a complete block is in the folder."""
        return self.store.load(block.number) is not None

    def compute(self, blocks: Sequence[_Block]) -> Iterator[None]:
        """Compute and save blocks, by ascending number."""
        with PageWorkers(self.rater, self.processes) as workers:
            workers.start()
            for number, keys in _keys_of(self.pages.keys(), [block.number for block in blocks]):
                self.store.save(number, self.task.pack(_answers(self.task, keys, workers)))
                yield


def run_pass(
    task: Question[T], pages: Pages, rater: PageRater, processes: int, cache: Path, executor: Executor, *, show: bool
) -> Iterator[Arrays]:
    """Compute the blocks of all pages and yield them in order, each read when it is needed.

    Only blocks that the folder ``cache`` lacks are computed, and processes are started only for that. Raises InputError
    if the cache cannot be read or written.
    """
    store = BlockStore(cache, {"what": task.what, "pages": pages.name, "block": BLOCK, **task.depends_on})
    blocks = [_Block(at, min(BLOCK, pages.count - at * BLOCK)) for at in range(-(-pages.count // BLOCK))]
    work = _Pass(task, pages, rater, store, executor.processes(processes))
    jobs = Jobs(work.compute, blocks, store.folder / "tasks", work.is_done)
    at_once = 1 if executor.tasks is None else processes  # a pass that is not divided has processes of its own
    for _ in run_missing(jobs, executor, at_once, Told(_UNIT, KILLED, task.what, show)):
        pass
    return map(store.read, range(len(blocks)))


def _answers(task: Question[Any], keys: Sequence[str], workers: Raters[PageRater]) -> list[Any]:
    if task.scores is None:
        return workers.run_all(task.of_page, keys)
    known = task.scores.find(keys)
    answers: list[Any] = workers.run_all(task.of_page, list(zip(keys, known, strict=True)))
    new = [place for place, rating in enumerate(known) if rating is None]
    task.scores.add([keys[place] for place in new], [answers[place] for place in new])
    return answers


def _keys_of(keys: Iterator[str], numbers: Sequence[int]) -> Iterator[tuple[int, list[str]]]:
    """Yield the keys of some blocks, by ascending number."""
    passed = 0
    for number in numbers:
        start = (number - passed) * BLOCK
        yield number, list(islice(keys, start, start + BLOCK))
        passed = number + 1
