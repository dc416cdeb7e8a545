"""Shard tasks: what is done again after a kill, here and as an array of Slurm jobs, and what is said of errors."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from crawl_helpers import PROJECT, begin_python
from fake_slurm import fake_slurm
from shard_jobs import LOCAL, OPTIONS, SLURM, Job, do

from crawl4llm.base.errors import InputError
from crawl4llm.base.jobs import divided

DRIVER = """
import sys
from pathlib import Path
from shard_jobs import do
do(Path(sys.argv[1]), ["wait"] * 4, "slurm")
"""


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("datatrove")
    environment = fake_slurm(tmp_path / "slurm")
    environment["PYTHONPATH"] = f"{PROJECT}:{PROJECT}/tests/helpers"
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("crawl4llm.base.slurm._FIRST_WAIT", 0.05)  # until it looks whether tasks have ended
    return tmp_path / "slurm"


@pytest.mark.parametrize("name", [LOCAL, SLURM])
@pytest.mark.usefixtures("slurm")
@pytest.mark.slow
def test_a_killed_task_is_done_again_and_no_other(name: str, tmp_path: Path) -> None:
    does = ["", "", "", "kill", "", ""]
    with pytest.raises(InputError, match="killed" if name == LOCAL else "1 of 2 tasks did not end well; their logs"):
        do(tmp_path, does, name)
    assert [(tmp_path / f"{number}").exists() for number in range(6)] == [True] * 3 + [False] * 3
    found = do(tmp_path, does, name)
    assert [(tmp_path / f"{number}").read_text() for number in range(6)] == ["done\n"] * 6
    if name == SLURM:
        assert found == [(f"{number}", f"{number}") for number in range(6)]
        scripts = [(tmp_path / f"slurm/script{number}").read_text().splitlines() for number in (1, 2)]
        assert {"#SBATCH --array=0-1", "#SBATCH --partition=cpu", "#SBATCH --time=1:00:00"} <= set(scripts[0])
        assert "#SBATCH --array=0-0" in scripts[1]
    assert not (tmp_path / "tasks").exists()


def test_an_array_that_is_queued_is_waited_for(slurm: Path, tmp_path: Path) -> None:
    driver = begin_python("-c", DRIVER, tmp_path)
    while not (tmp_path / "tasks/array.json").exists():
        assert driver.poll() is None
        time.sleep(0.02)
    driver.kill()
    driver.wait()
    with pytest.raises(InputError, match="job 1 still does this in 2 tasks; wait with --tasks 2"):
        do(tmp_path, ["wait"] * 4, SLURM, 3)
    assert len(do(tmp_path, ["wait"] * 4, SLURM)) == 4
    assert [(tmp_path / f"{number}").read_text() for number in range(4)] == ["done\n"] * 4
    assert not (slurm / "script2").exists()


@pytest.mark.parametrize(
    ("told", "given"),
    [
        ("2 cannot be had. The same command", {"does": ["", "", "refuse"]}),
        ("EXECUTOR has memory; it takes ", {"memory": 3}),
        ("EXECUTOR has a wrong value: ", {"tasks_per_job": "many"}),
        ("cpus_per_task = 0 must be a positive integer", {"cpus_per_task": 0}),
        ("EXECUTOR lacks partition; set it", {"partition": None}),
        ("sbatch ended with status 3", {"sbatch": "exit 3"}),
        ("sbatch is not here; use a login node", {"sbatch": ""}),
        ("EXECUTOR needs a number of tasks: give --tasks N", {"tasks": None}),
        ("run the command outside a job array", {"within": True}),
    ],
)
def test_errors(told: str, given: dict[str, Any], slurm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if given.pop("within", False):
        monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "0")
    sbatch = given.pop("sbatch", None)
    if sbatch:
        (slurm / "bin/sbatch").write_text(f"#!/bin/bash\n{sbatch}\n")
    elif sbatch is not None:
        (slurm / "bin/sbatch").unlink()
    if "partition" in given:
        monkeypatch.delitem(OPTIONS, given.popitem()[0])
    with pytest.raises(InputError, match=told):
        do(tmp_path, given.pop("does", [""]), SLURM, **given)


def test_parts_are_alike_in_size() -> None:
    jobs = [Job(Path(), size) for size in (1, 1, 1, 9, 3, 3)]
    assert [[job.size for job in part] for part in divided(jobs, 3)] == [[1, 1, 1], [9], [3, 3]]
    assert sum(map(len, divided(jobs, 50))) == 6
    assert divided([], 3) == []
