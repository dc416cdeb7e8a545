"""Jobs: parts of long work, each of which makes one file, whole or not at all.

That its file is there says that a job is done. So the same command, given again, does the jobs that are missing, and
uses the files of all others. An executor says where they run: in processes of this machine, or in Slurm's
(:mod:`crawl4llm.base.slurm`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from crawl4llm.base.bars import Progress
from crawl4llm.base.errors import InputError
from crawl4llm.base.pools import Pool
from crawl4llm.base.processes import ChildEnded, cores

KILLED: Final = "a task was killed; the same command does the remaining ones"
KILLED_INDEXING: Final = "an indexing process was killed; if memory ran out, use fewer --jobs"
_WORTH_A_PROCESS: Final = 8 << 20
"""Bytes that take longer to read than a process to start."""


class Job(Protocol):
    """A part of the work. Can be pickled."""

    @property
    def size(self) -> int:
        """The job's share of all work, in the unit of the bar."""


T = TypeVar("T")
J = TypeVar("J", bound=Job)
R = TypeVar("R")


@dataclass(frozen=True)
class Jobs(Generic[J, R]):
    """Work that consists of jobs."""

    work: Callable[[Sequence[J]], Iterable[R]]
    """Does some jobs, in their order, and gives the result of each when it is done. Can be pickled; results that other
    machines send are JSON values."""
    jobs: Sequence[J]
    folder: Path
    """Folder for the state of tasks on other machines: for this work alone, and on a disk that all of them share."""
    done: Callable[[J], bool] = methodcaller("is_done")
    """Tells whether a job's file is there; can be pickled."""


class Told(NamedTuple):
    """The bar of some work, and its error if processes are killed and it is not divided into tasks."""

    unit: str
    """Unit of the jobs' sizes."""
    killed: str = KILLED_INDEXING
    label: str = "indexing"
    show: bool | None = None
    """True for a bar, False for a line every 30 seconds, None for a bar on a terminal only."""

    def bar(self, total: int, initial: int = 0) -> Progress[Any]:
        return Progress(
            None, self.label, total, unit=self.unit, initial=initial, unit_scale=self.unit == "B", bar=self.show
        )


class Executor(Protocol):
    """The place of tasks, which do some jobs each, and their number."""

    @property
    def tasks(self) -> int | None:
        """Number of tasks into which the work is divided. None: each job is a task, or the work is not divided."""

    def processes(self, workers: int) -> int:
        """Return how many processes a task starts, for work with ``workers`` processes if it is not divided."""

    def run(self, jobs: Jobs[J, R], missing: Sequence[J], processes: int | None, told: Told) -> Iterator[tuple[J, R]]:
        """Do the missing jobs, of which there is one at least, in any order; yield each with its result.

        ``processes``: those that start here; None: one for each core, fewer for work of a few megabytes. Raises
        InputError if processes are killed; if the work is divided, after all other tasks are done.
        """


class Here(NamedTuple):
    """Runs tasks in processes of this machine."""

    tasks: int | None = None

    def processes(self, workers: int) -> int:
        return workers if self.tasks is None else min(workers, 1)

    def run(self, jobs: Jobs[J, R], missing: Sequence[J], processes: int | None, told: Told) -> Iterator[tuple[J, R]]:
        total, left = (sum(job.size for job in some) for some in (jobs.jobs, missing))
        if processes is None:
            is_small = self.tasks is None and told.unit == "B"
            processes = min(cores(), left // _WORTH_A_PROCESS) if is_small else cores()
        with told.bar(total, total - left) as bar:
            for job, result in self._results(jobs, missing, processes, told.killed if self.tasks is None else KILLED):
                bar.update(job.size)
                yield job, result

    def _results(self, jobs: Jobs[J, R], missing: Sequence[J], processes: int, killed: str) -> Iterator[tuple[J, R]]:
        is_divided = self.tasks is not None
        parts = divided(missing, self.tasks or len(missing))
        if processes <= 1 or len(parts) < 2:
            yield from zip(missing, jobs.work(missing), strict=True)
            return
        for part, results in _in_pool(partial(_do, jobs.work), parts, processes, killed, others_first=is_divided):
            yield from zip(part, results, strict=True)


UNDIVIDED: Final = Here()


def _do(work: Callable[[Sequence[Any]], Iterable[Any]], jobs: Sequence[Any]) -> list[Any]:
    return list(work(jobs))


def run_missing(jobs: Jobs[J, R], executor: Executor, processes: int | None, told: Told) -> Iterator[tuple[J, R]]:
    """Do the jobs whose files are missing, in any order; yield each with its result. Errors of the work are raised."""
    if missing := [job for job in jobs.jobs if not jobs.done(job)]:
        yield from executor.run(jobs, missing, processes, told)


def run_jobs(work: Callable[[J], R], jobs: Sequence[J], processes: int | None, told: Told) -> Iterator[tuple[J, R]]:
    """Do the work on each job, in any order. Nothing is kept for after a stop. A killed process raises InputError at
    once."""
    return UNDIVIDED.run(Jobs(partial(map, work), jobs, Path()), jobs, processes, told)


def _in_pool(
    work: Callable[[T], R], items: Sequence[T], processes: int, killed: str, *, others_first: bool = False
) -> Iterator[tuple[T, R]]:
    lost = False
    with Pool(work, min(processes, len(items))) as pool:
        for item, future in pool.each(items):
            if not isinstance(future.exception(), ChildEnded):
                yield item, future.result()
                continue
            lost = True
            if not others_first:
                break
    if lost:
        raise InputError(killed)


def divided(jobs: Sequence[J], parts: int) -> list[list[J]]:
    """Divide jobs, in their order, into at most ``parts`` parts of about equal size; none is empty."""
    total, before = max(sum(job.size for job in jobs), 1), 0
    found: list[list[J]] = [[] for _ in range(parts)]
    for job in jobs:
        found[min((2 * before + job.size) * parts // (2 * total), parts - 1)].append(job)
        before += job.size
    return [part for part in found if part]
