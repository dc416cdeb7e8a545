"""Jobs for shard tasks, and a scorer that kills its task once."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from crawl4llm.base.errors import InputError
from crawl4llm.base.jobs import Executor, Here, Jobs, Told, run_missing
from crawl4llm.base.slurm import Slurm
from crawl4llm.scoring import ScoringOptions

LOCAL, SLURM = "local", "slurm"
OPTIONS = {"partition": "cpu", "time": "1:00:00"}


class Job(NamedTuple):
    """A file to write."""

    path: Path
    size: int = 1
    does: str = ""
    """``kill``: kills its process, once. ``refuse``: cannot be done. ``wait``: takes its time."""

    def is_done(self) -> bool:
        return self.path.exists()


def write(job: Job) -> str:
    """Write the file, and a line for each time that this was done."""
    killed = job.path.with_suffix(".killed")
    if job.does == "kill" and not killed.exists():
        killed.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if job.does == "refuse":
        raise InputError(f"{job.path.name} cannot be had")
    if job.does == "wait":
        time.sleep(1)
    with job.path.open("a") as file:
        file.write("done\n")
    return job.path.name


def do(folder: Path, does: list[str], name: str, tasks: int | None = 2, **options: Any) -> list[tuple[str, str]]:
    """Do some jobs in tasks; returns the files with the results."""
    jobs = [Job(folder / f"{number}", 1, what) for number, what in enumerate(does)]
    executor: Executor = Here(tasks) if name == LOCAL else Slurm(tasks, {**OPTIONS, **options})
    done = run_missing(Jobs(partial(map, write), jobs, folder / "tasks"), executor, 2, Told(" jobs", ""))
    return sorted((job.path.name, result) for job, result in done)


class KillingScorer:
    """Kills the task that its process works for, when it meets a page and ``KILLED`` names a file that is not there."""

    digest = "6" * 64

    @classmethod
    def from_options(cls, options: ScoringOptions) -> KillingScorer:
        return cls()

    def score(self, texts: Sequence[str]) -> list[float]:
        killed = Path(os.environ["KILLED"])
        if any(len(text) % 20 == 6 for text in texts) and not killed.exists():
            killed.touch()
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)
        return [float(len(text)) for text in texts]
