"""Building the demo web: determinism, re-use, kills, several at once, bad input, the command."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from crawl_helpers import begin_python, python, scrapy
from demo_helpers import digests

from crawl4llm.base.errors import InputError
from crawl4llm.scoring.fasttext_file import inspect_model
from simulate.demo import DemoPaths, build_demo, demo_paths, ensure_demo
from simulate.demo.web import plan_sites

SMALL = {"pages": 300, "hosts": 12, "jobs": 1, "progress": False}
_START = "import sys, pathlib; from simulate.demo import *; folder = pathlib.Path(sys.argv[1]);"
ENSURE = f"{_START} print(ensure_demo(folder, pages=300, hosts=12, jobs=1).model)"
BUILD = f"{_START} build_demo(folder, pages=3000, hosts=40, jobs=2)"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small web, built by one process."""
    folder = tmp_path_factory.mktemp("built") / "not UTF-8: \udcff"
    build_demo(folder, seed=3, **SMALL)
    return folder


@pytest.mark.slow
def test_equal_bytes_whatever_the_processes_and_the_hash_seed(built: Path, tmp_path: Path) -> None:
    code = (
        "import sys, pathlib as l, simulate.demo as d;"
        "d.build_demo(l.Path(sys.argv[1]), pages=300, hosts=12, seed=3, jobs=2)"
    )
    done = python("-c", code, tmp_path / "web", env={"PYTHONHASHSEED": "123"}, check=True)
    assert done.stderr == ""
    assert digests(tmp_path / "web") == digests(built)


def test_another_seed_gives_another_web() -> None:
    one, other = ({site.base for site in plan_sites(seed, 300, 12)} for seed in (3, 4))
    assert not one & other


def test_model_is_small_and_has_both_labels(built: Path) -> None:
    model = inspect_model(demo_paths(built).model)
    assert set(model.labels) == {"__label__hq", "__label__cc"}
    assert model.path.stat().st_size < 5_000_000


def test_several_processes_at_once_build_one_web_which_later_runs_use(tmp_path: Path) -> None:
    """And the command, which keeps it in the data dir."""
    root = tmp_path / ".scrapy"
    processes = [begin_python("-c", ENSURE, root) for _ in range(3)]
    answers = [process.communicate(timeout=600)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert len(set(answers)) == 1
    model = Path(answers[0].strip())
    assert [path for path in root.iterdir() if path.is_dir()] == [model.parent]
    written = model.stat().st_mtime_ns
    assert ensure_demo(root, **SMALL).model == model
    done = _command(tmp_path, "--pages", 300, "--hosts", 12)
    assert DemoPaths(*(Path(line.split()[1]) for line in done.stdout.splitlines()[:2])).model == model
    assert model.stat().st_mtime_ns == written


def test_a_killed_or_interrupted_build_leaves_nothing_behind(tmp_path: Path) -> None:
    """What a killed one leaves goes with the next build, and an interrupted one cleans up."""
    to = tmp_path / "web"
    killed = begin_python("-c", BUILD, to)
    _wait_until(lambda: any(tmp_path.glob(".web.*.tmp/clueweb22/txt")))
    workers = _children(killed.pid)
    killed.kill()
    killed.communicate(timeout=600)
    assert len(workers) >= 2
    assert not to.exists()
    _wait_until(lambda: not any(_runs(worker) for worker in workers))
    (left,) = tmp_path.iterdir()
    process = begin_python("-c", BUILD, to)
    _wait_until(lambda: any(path != left and (path / "clueweb22/txt").exists() for path in tmp_path.iterdir()))
    assert not left.exists()
    process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in process.communicate(timeout=600)[1]
    assert not any(tmp_path.iterdir())


def _children(process: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 600
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# -- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "word"), [({"pages": 100, "hosts": 50}, "--pages 100"), ({"pages": 100, "hosts": 3}, "--hosts 3")]
)
def test_impossible_sizes(size: dict[str, int], word: str, tmp_path: Path) -> None:
    for build in (build_demo, ensure_demo):
        with pytest.raises(InputError, match=word):
            build(tmp_path / "web", **size)


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        build_demo(tmp_path, **SMALL)
    with pytest.raises(InputError, match="exists already"):
        build_demo(tmp_path / "mine.txt", **SMALL)
    assert (tmp_path / "mine.txt").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_write_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="cannot be written"):
        build_demo(tmp_path / "web", **SMALL)


def test_a_parent_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for build in (build_demo, ensure_demo):
        with pytest.raises(InputError, match=r"file.*cannot be written"):
            build(tmp_path / "file" / "web", **SMALL)


# -- the command ------------------------------------------------------------------------------------------------------


def _command(folder: Path, *args: object) -> subprocess.CompletedProcess[str]:
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = here\n")
    (folder / "here.py").write_text('COMMANDS_MODULE = "crawl4llm.commands"\n')
    return scrapy("corpus", "demo", *map(str, args), cwd=folder)


def test_command(tmp_path: Path) -> None:
    done = _command(tmp_path, "--to", "web", "--pages", 300, "--hosts", 12, "--seed", 1)
    assert (done.returncode, done.stderr) == (0, "")
    paths = demo_paths(tmp_path / "web")
    assert done.stdout.startswith(f"corpus  {paths.corpus}\nmodel   {paths.model}\nNext: scrapy crawl influence ")
    again = _command(tmp_path, "--to", "web")
    assert again.returncode == 1
    assert again.stderr.count("\n") == 1
