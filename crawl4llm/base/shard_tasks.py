"""Shard tasks: parts of long work that communicate through files only, and run where ``EXECUTOR`` says.

Each job leaves its output whole, or none. The next start repeats the jobs of killed tasks and uses the output of all
others.
"""

from __future__ import annotations

import inspect
import json
import os
import pickle
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeVar

from crawl4llm.base.bars import Progress
from crawl4llm.base.errors import InputError
from crawl4llm.base.installed import to_install
from crawl4llm.base.processes import Job, run_jobs
from crawl4llm.base.whole_files import write_whole, writing

J = TypeVar("J", bound=Job)
R = TypeVar("R")

LOCAL: Final = "local"
SLURM: Final = "datatrove:slurm"
KILLED: Final = "a task was killed; the same command does the remaining ones"


class Executor(NamedTuple):
    """The place of tasks, and their number."""

    name: str = LOCAL
    """LOCAL: processes of this machine. SLURM: an array of jobs that datatrove submits."""
    tasks: int | None = None
    """Number of tasks into which the work is divided. None: each job is a task, or the work is not divided."""
    options: Mapping[str, Any] | None = None
    """Further arguments of datatrove's executor."""

    @classmethod
    def of(cls, name: str, tasks: int | None, options: Mapping[str, Any] | None) -> Executor:
        """Return an executor. Raises InputError if the number of tasks to submit, or of their processors, is
        missing."""
        processors = (options or {}).get("cpus_per_task", 1)
        if name != LOCAL and tasks is None:
            raise InputError("EXECUTOR needs a number of tasks: give --tasks N")
        if type(processors) is not int or processors < 1:
            raise InputError(f"EXECUTOR: cpus_per_task = {processors!r} must be a positive integer")
        return cls(name, tasks, options)

    def processes(self, workers: int) -> int:
        """Return how many processes a task starts, for work with ``workers`` processes if it is not divided."""
        if self.tasks is None:
            return workers
        each: int = 1 if self.name == LOCAL else (self.options or {}).get("cpus_per_task", 1)
        return each if workers else 0


UNDIVIDED: Final = Executor()


@dataclass(frozen=True)
class Shards(Generic[J, R]):
    """Work that can be divided into tasks."""

    work: Callable[[Sequence[J]], Iterable[R]]
    """Does some jobs, in their order; can be pickled. Results are JSON values."""
    jobs: Sequence[J]
    done: Callable[[J], bool]
    """Tells whether a job's output is there; can be pickled."""
    folder: Path
    """Folder for the state of the tasks: for this work alone, and on a disk that all machines share."""


def run_shards(
    shards: Shards[J, R],
    executor: Executor,
    processes: int,
    unit: str,
    killed: str,
    label: str = "indexing",
    show: bool | None = None,
) -> Iterator[tuple[J, R]]:
    """Do the jobs whose output is missing, in any order; yield each with its result.

    Parameters and errors are those of :func:`crawl4llm.base.processes.run_jobs`; ``killed`` is the message for a killed
    process if the work is not divided into tasks. Raises InputError also if tasks on other machines failed.
    """
    missing = [job for job in shards.jobs if not shards.done(job)]
    if executor.name == SLURM:
        if missing:
            yield from _run_array(shards, executor, unit, label, show)
        return
    tasks = [_Task(shards.work, part) for part in divided(missing, executor.tasks or len(missing))]
    apart = executor.tasks is not None
    for task, results in run_jobs(_do, tasks, processes, unit, label, KILLED if apart else killed, show, apart=apart):
        yield from zip(task.jobs, results, strict=True)


class _Task(NamedTuple):
    """Some jobs that one process does."""

    work: Callable[[Sequence[Any]], Iterable[Any]]
    jobs: Sequence[Any]

    @property
    def size(self) -> int:
        return sum(job.size for job in self.jobs)


def _do(task: _Task) -> list[Any]:
    return list(task.work(task.jobs))


def divided(jobs: Sequence[J], parts: int) -> list[list[J]]:
    """Divide jobs, in their order, into at most ``parts`` parts of about equal size; none is empty."""
    total, before = max(sum(job.size for job in jobs), 1), 0
    found: list[list[J]] = [[] for _ in range(parts)]
    for job in jobs:
        found[min((2 * before + job.size) * parts // (2 * total), parts - 1)].append(job)
        before += job.size
    return [part for part in found if part]


# -- Slurm -------------------------------------------------------------------------------------------------------------

_ARRAY: Final = "array.json"
"""Record of the submitted array: its number of tasks and the id of its last job."""
_OURS: Final = {"self", "pipeline", "tasks", "logging_dir", "skip_completed", "depends", "job_id_retriever"}
"""Parameters of the executor that EXECUTOR may not set."""
_NEEDED: Final = ("partition", "time")
_ENVIRONMENT: Final = ("env_command", "condaenv", "venv_path")
_FIRST_WAIT, _LONGER, _LONGEST_WAIT = 0.5, 1.5, 60.0
"""Seconds between two looks at the queue, and the factor by which they grow."""


class _Step:
    """The one step of the pipeline: does the jobs of a task that are still to do."""

    def __init__(self, shards: Shards[Any, Any], parts: Sequence[Sequence[Any]]) -> None:
        self._pickled = pickle.dumps((shards, parts))  # which datatrove copies and pickles again

    def __call__(self, _data: object, rank: int, _tasks: int) -> None:
        shards, parts = pickle.loads(self._pickled)  # noqa: S301 - this project's own file, as datatrove takes it
        places = [place for place, job in enumerate(parts[rank]) if not shards.done(job)]
        try:
            found = list(shards.work([parts[rank][place] for place in places]))
        except InputError as error:
            write_whole(_path(shards.folder, "failed", rank), str(error).encode())
            raise
        results = json.dumps(list(zip(places, found, strict=True)))
        write_whole(_path(shards.folder, "results", rank), results.encode())


def _run_array(
    shards: Shards[J, R], executor: Executor, unit: str, label: str, show: bool | None
) -> Iterator[tuple[J, R]]:
    """Submit the incomplete tasks as an array of Slurm jobs, by datatrove, and wait for them; yield their jobs with the
    results.

    If an earlier process submitted an array, that is waited for. Raises InputError, with the reason, if nothing can be
    submitted or tasks fail.
    """
    try:
        from datatrove.executor import SlurmPipelineExecutor  # an extra
        from datatrove.utils.logging import logger  # likewise
    except ImportError:
        raise InputError(f"EXECUTOR={SLURM} needs datatrove; {to_install('offline')}") from None
    if "SLURM_ARRAY_TASK_ID" in os.environ:
        raise InputError(f"EXECUTOR={SLURM} submits jobs; run the command outside a job array")
    logger.disable("datatrove")
    parts = divided(shards.jobs, executor.tasks or 1)
    noted = _noted(shards.folder)
    is_queued = bool(noted) and _is_queued(noted["job"])
    if noted and noted["tasks"] != executor.tasks:
        if is_queued:
            raise InputError(
                f"job {noted['job']} still does this in {noted['tasks']} tasks; wait with --tasks {noted['tasks']}, or "
                f"end it: scancel {noted['job']}"
            )
        shutil.rmtree(shards.folder, ignore_errors=True)
    array = _array(SlurmPipelineExecutor, shards, parts, executor, label)
    if not is_queued:
        _submit(array, shards.folder, executor)
    _wait(array, shards.folder, parts, unit, label, show)
    for rank, part in enumerate(parts):
        for place, result in json.loads(_path(shards.folder, "results", rank).read_bytes()):
            yield part[place], result
    shutil.rmtree(shards.folder, ignore_errors=True)


def _array(kind: Any, shards: Shards[J, R], parts: Sequence[Sequence[J]], executor: Executor, label: str) -> Any:
    """Return a datatrove executor of class ``kind``, without its last job, which would sum up statistics that do not
    exist here."""
    given = dict(executor.options or {})
    known = set(inspect.signature(kind.__init__).parameters) - _OURS
    if unknown := set(given) - known:
        raise InputError(f"EXECUTOR has {min(unknown)}; it takes {', '.join(sorted(known))}")
    if missing := [name for name in _NEEDED if name not in given]:
        raise InputError(f"EXECUTOR lacks {missing[0]}; set it like " + '{"partition": "cpu", "time": "8:00:00"}')
    if not any(name in given for name in _ENVIRONMENT):
        given["env_command"] = f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH"
    given = {"job_name": f"crawl4llm-{label.replace(' ', '-')}", **given}
    array = kind([_Step(shards, parts)], tasks=len(parts), logging_dir=str(shards.folder.absolute()), **given)
    array.launch_merge_stats = _submit_nothing
    return array


def _submit_nothing() -> None:
    """Replace a method of the executor, which is pickled with it."""


def _submit(array: Any, folder: Path, executor: Executor) -> None:
    for failed in (folder / "failed").glob("*"):
        failed.unlink()
    with writing(folder, "the state of the tasks"):
        for name in ("failed", "results"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        try:
            array.launch_job()
        except FileNotFoundError as error:
            raise InputError(f"EXECUTOR: {error.filename} is not here; use a login node") from None
        except (TypeError, ValueError) as error:
            raise InputError(f"EXECUTOR has a wrong value: {error}") from None
        except subprocess.CalledProcessError as error:
            raise InputError(f"sbatch ended with status {error.returncode}; see its messages above") from None
    write_whole(folder / _ARRAY, json.dumps({"tasks": executor.tasks, "job": str(array.job_id)}).encode())


def _wait(array: Any, folder: Path, parts: Sequence[Sequence[J]], unit: str, label: str, show: bool | None) -> None:
    """Wait until all tasks are complete. Raises InputError if the array ends before."""
    sizes = [sum(job.size for job in part) for part in parts]
    done, wait = 0, _FIRST_WAIT
    with Progress[J](None, label, sum(sizes), unit=unit, unit_scale=True, bar=show) as bar:
        while True:
            is_queued = _is_queued(_noted(folder).get("job", ""))
            left = array.get_incomplete_ranks()
            bar.update(sum(sizes) - sum(sizes[rank] for rank in left) - done)
            done = sum(sizes) - sum(sizes[rank] for rank in left)
            if not left:
                return
            if not is_queued:
                raise InputError(_why(folder, left, len(parts)))
            time.sleep(wait)
            wait = min(wait * _LONGER, _LONGEST_WAIT)


def _why(folder: Path, left: Sequence[int], tasks: int) -> str:
    reasons = {_path(folder, "failed", rank).read_text() for rank in left if _path(folder, "failed", rank).exists()}
    told = f": {min(reasons)}" if reasons else f"; their logs are in {folder}/logs and {folder}/slurm_logs"
    return f"{len(left)} of {tasks} tasks did not end well{told}. The same command does these again, and no others"


def _is_queued(job: str) -> bool:
    """Return whether Slurm has a job in its queue, running ones included."""
    asking = ["squeue", "--noheader", f"--jobs={job}"]
    try:
        asked = subprocess.run(asking, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"EXECUTOR={SLURM}: squeue cannot be asked ({error})") from None
    return asked.returncode == 0 and bool(asked.stdout.strip())


def _noted(folder: Path) -> dict[str, Any]:
    try:
        noted: dict[str, Any] = json.loads((folder / _ARRAY).read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return noted


def _path(folder: Path, what: str, rank: int) -> Path:
    return folder / what / f"{rank:05d}"
