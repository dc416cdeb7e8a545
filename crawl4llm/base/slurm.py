"""Jobs in tasks that datatrove submits to Slurm as an array. They communicate with this process through files only."""

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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from crawl4llm.base.errors import InputError
from crawl4llm.base.installed import to_install
from crawl4llm.base.jobs import J, Jobs, R, Told, divided
from crawl4llm.base.whole_files import write_whole, writing

_ARRAY: Final = "array.json"
"""Record of the submitted array: its number of tasks and the id of its last job."""
_OURS: Final = {"self", "pipeline", "tasks", "logging_dir", "skip_completed", "depends", "job_id_retriever"}
"""Parameters of the executor that EXECUTOR may not set."""
_NEEDED: Final = ("partition", "time")
_ENVIRONMENT: Final = ("env_command", "condaenv", "venv_path")
_FIRST_WAIT, _LONGER, _LONGEST_WAIT = 0.5, 1.5, 60.0
"""Seconds between two looks at the queue, and the factor by which they grow."""


@dataclass(frozen=True)
class Slurm:
    """Runs tasks as an array of Slurm jobs. Raises InputError if their number, or that of processors, is missing."""

    tasks: int | None
    options: Mapping[str, Any]
    """Further arguments of datatrove's executor."""

    def __post_init__(self) -> None:
        processors = self.processes(1)
        if self.tasks is None:
            raise InputError("EXECUTOR needs a number of tasks: give --tasks N")
        if type(processors) is not int or processors < 1:
            raise InputError(f"EXECUTOR: cpus_per_task = {processors!r} must be a positive integer")

    def processes(self, workers: int) -> int:
        processors: int = self.options.get("cpus_per_task", 1)
        return processors if workers else 0

    def run(self, jobs: Jobs[J, R], missing: Sequence[J], processes: int | None, told: Told) -> Iterator[tuple[J, R]]:
        """Submit the incomplete tasks and wait for them; yield the jobs of each with the results when it is complete.

        If an earlier process submitted an array, that is waited for. Raises InputError, with the reason, if nothing can
        be submitted or tasks fail.
        """
        try:
            from datatrove.executor import SlurmPipelineExecutor  # an extra
            from datatrove.utils.logging import logger  # likewise
        except ImportError:
            raise InputError(f"EXECUTOR needs datatrove; {to_install('offline')}") from None
        if "SLURM_ARRAY_TASK_ID" in os.environ:
            raise InputError("EXECUTOR submits jobs; run the command outside a job array")
        logger.disable("datatrove")
        folder, noted = jobs.folder, _noted(jobs.folder)
        is_queued = bool(noted) and _is_queued(noted["job"])
        if noted and noted["tasks"] != self.tasks:
            if is_queued:
                raise InputError(
                    f"job {noted['job']} still does this in {noted['tasks']} tasks; wait with --tasks "
                    f"{noted['tasks']}, or end it: scancel {noted['job']}"
                )
            shutil.rmtree(folder, ignore_errors=True)
        parts = divided(jobs.jobs, self.tasks or 1)
        array = _array(SlurmPipelineExecutor, jobs, parts, self.options, told.label)
        if not is_queued:
            _submit(array, folder, self.tasks)
        with told.bar(sum(job.size for job in jobs.jobs)) as bar:
            for rank in _completed(array, folder, len(parts)):
                for place, result in json.loads(_path(folder, "results", rank).read_bytes()):
                    bar.update(parts[rank][place].size)
                    yield parts[rank][place], result
        shutil.rmtree(folder, ignore_errors=True)


class _Step:
    """The one step of the pipeline: does the jobs of a task that are still to do."""

    def __init__(self, jobs: Jobs[Any, Any], parts: Sequence[Sequence[Any]]) -> None:
        self._pickled = pickle.dumps((jobs, parts))  # which datatrove copies and pickles again

    def __call__(self, _data: object, rank: int, _tasks: int) -> None:
        jobs, parts = pickle.loads(self._pickled)  # noqa: S301 - this project's own file, as datatrove takes it
        places = [place for place, job in enumerate(parts[rank]) if not jobs.done(job)]
        try:
            found = list(jobs.work([parts[rank][place] for place in places]))
        except InputError as error:
            write_whole(_path(jobs.folder, "failed", rank), str(error).encode())
            raise
        results = json.dumps(list(zip(places, found, strict=True)))
        write_whole(_path(jobs.folder, "results", rank), results.encode())


def _array(kind: Any, jobs: Jobs[J, R], parts: Sequence[Sequence[J]], options: Mapping[str, Any], label: str) -> Any:
    """Return a datatrove executor of class ``kind``, without its last job, which would sum up statistics that do not
    exist here."""
    given = dict(options)
    known = set(inspect.signature(kind.__init__).parameters) - _OURS
    if unknown := set(given) - known:
        raise InputError(f"EXECUTOR has {min(unknown)}; it takes {', '.join(sorted(known))}")
    if missing := [name for name in _NEEDED if name not in given]:
        raise InputError(f"EXECUTOR lacks {missing[0]}; set it like " + '{"partition": "cpu", "time": "8:00:00"}')
    if not any(name in given for name in _ENVIRONMENT):
        given["env_command"] = f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH"
    given = {"job_name": f"crawl4llm-{label.replace(' ', '-')}", **given}
    array = kind([_Step(jobs, parts)], tasks=len(parts), logging_dir=str(jobs.folder.absolute()), **given)
    array.launch_merge_stats = _submit_nothing
    return array


def _submit_nothing() -> None:
    """Replace a method of the executor, which is pickled with it."""


def _submit(array: Any, folder: Path, tasks: int | None) -> None:
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
    write_whole(folder / _ARRAY, json.dumps({"tasks": tasks, "job": str(array.job_id)}).encode())


def _completed(array: Any, folder: Path, tasks: int) -> Iterator[int]:
    """Yield the number of each task when it is complete. Raises InputError if the array ends before."""
    left, wait = set(range(tasks)), _FIRST_WAIT
    while True:
        is_queued = _is_queued(_noted(folder).get("job", ""))
        incomplete = set(array.get_incomplete_ranks())
        yield from sorted(left - incomplete)
        left &= incomplete
        if not left:
            return
        if not is_queued:
            raise InputError(_why(folder, sorted(left), tasks))
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
        raise InputError(f"EXECUTOR: squeue cannot be asked ({error})") from None
    return asked.returncode == 0 and bool(asked.stdout.strip())


def _noted(folder: Path) -> dict[str, Any]:
    try:
        noted: dict[str, Any] = json.loads((folder / _ARRAY).read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return noted


def _path(folder: Path, what: str, rank: int) -> Path:
    return folder / what / f"{rank:05d}"
