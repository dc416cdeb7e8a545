"""Shard tasks: the jobs of long work in tasks that need nothing but files, run where ``EXECUTOR`` says.

Each job leaves its output behind whole, or not at all. So a task that was killed is done again by the next start, which
finds the output of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeVar

from crawl4llm.base.errors import InputError
from crawl4llm.base.processes import Job, run_jobs

J = TypeVar("J", bound=Job)
R = TypeVar("R")

LOCAL: Final = "local"
SLURM: Final = "datatrove:slurm"
KILLED: Final = "a task was killed; the same command goes on with what is not done"


class Executor(NamedTuple):
    """Where tasks run, and how many there are."""

    name: str = LOCAL
    """LOCAL: processes of this machine. SLURM: an array of jobs that datatrove submits."""
    tasks: int | None = None
    """Tasks that the work is divided into; None: each job is a task, or the work is not divided."""
    options: Mapping[str, Any] | None = None
    """What datatrove's executor is given besides."""

    @classmethod
    def of(cls, name: str, tasks: int | None, options: Mapping[str, Any] | None) -> Executor:
        """Return an executor. Raises InputError where there is no number of tasks to submit, or of their processors."""
        processors = (options or {}).get("cpus_per_task", 1)
        if name != LOCAL and tasks is None:
            raise InputError("EXECUTOR needs a number of tasks: give --tasks N")
        if type(processors) is not int or processors < 1:
            raise InputError(f"EXECUTOR: cpus_per_task = {processors!r} must be a positive integer")
        return cls(name, tasks, options)

    def processes(self, workers: int) -> int:
        """Return how many processes a task has beside it, where the work has so many ``workers`` without tasks."""
        if self.tasks is None:
            return workers
        each: int = 1 if self.name == LOCAL else (self.options or {}).get("cpus_per_task", 1)
        return each if workers else 0


UNDIVIDED: Final = Executor()


@dataclass(frozen=True)
class Shards(Generic[J, R]):
    """Work that tasks can do."""

    work: Callable[[Sequence[J]], Iterable[R]]
    """Does some jobs, in their order; can be pickled. Results are what JSON has, and come back as JSON has them."""
    jobs: Sequence[J]
    done: Callable[[J], bool]
    """Whether a job's output is there; can be pickled."""
    folder: Path
    """For the state of the tasks: of this work alone, and seen by all machines."""


def run_shards(
    shards: Shards[J, R],
    executor: Executor,
    processes: int,
    unit: str,
    killed: str,
    label: str = "indexing",
    show: bool | None = None,
) -> Iterator[tuple[J, R]]:
    """Do the jobs whose output is not there, in any order; yield each with its result.

    Parameters and errors are those of :func:`crawl4llm.base.processes.run_jobs`; ``killed`` is what is said of a
    process where the work is not divided into tasks. Raises InputError too where tasks on
    other machines did not end well.
    """
    missing = [job for job in shards.jobs if not shards.done(job)]
    if executor.name == SLURM:
        if missing:
            from crawl4llm.base.slurm import run_array  # an extra

            yield from run_array(shards, executor, unit, label, show)
        return
    tasks = [_Task(shards.work, part) for part in divided(missing, executor.tasks or len(missing))]
    apart = executor.tasks is not None
    for task, results in run_jobs(_do, tasks, processes, unit, label, KILLED if apart else killed, show, apart=apart):
        yield from zip(task.jobs, results, strict=True)


class _Task(NamedTuple):
    """Some jobs, which one process does."""

    work: Callable[[Sequence[Any]], Iterable[Any]]
    jobs: Sequence[Any]

    @property
    def size(self) -> int:
        return sum(job.size for job in self.jobs)


def _do(task: _Task) -> list[Any]:
    return list(task.work(task.jobs))


def divided(jobs: Sequence[J], parts: int) -> list[list[J]]:
    """Divide jobs, which keep their order, into at most so many parts of about the same size; none is empty."""
    total, before = max(sum(job.size for job in jobs), 1), 0
    found: list[list[J]] = [[] for _ in range(parts)]
    for job in jobs:
        found[min((2 * before + job.size) * parts // (2 * total), parts - 1)].append(job)
        before += job.size
    return [part for part in found if part]
