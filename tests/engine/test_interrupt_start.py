"""Ctrl-C and SIGTERM while a crawl starts: one line, status 130, and nothing half-done is taken for whole."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from crawl_helpers import PROJECT, TIMEOUT, Web, begin, crawl_args, scrapy
from warc_helpers import page, url_of, write

FILES, PAGES = 16, 80


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of its own, with its own data dir, and a collection that takes a second to index."""
    for number in range(FILES):
        first = number * PAGES
        pages = [page(n, [url_of(n + 1), url_of(n + 7), url_of(5 * n)]) for n in range(first, first + PAGES)]
        write(tmp_path / f"web/{number:02d}.warc.gz", *pages)
    (tmp_path / "project").mkdir()
    shutil.copy(PROJECT / "scrapy.cfg", tmp_path / "project")
    return tmp_path / "project"


def arguments(web: Web, project: Path, name: str) -> list[str]:
    settings = {"SIMULATION_TEXT": "extracted", "TEXT_EXTRACTOR": "resiliparse", "URL_POLICY": "breadth_first"}
    own, job = web._replace(corpus=project.parent / "web"), project.parent / f"{name}.job"
    return crawl_args(own, project.parent / name, **settings, CRAWL_MAX_PAGES=50, JOBDIR=job, SCORING_WORKERS=2)


def interrupted(
    args: list[str], project: Path, number: int, when: Callable[[], bool], *, group: bool, is_forked: bool = True
) -> str:
    """Start a crawl, and send it, or its group, a signal when something has come to pass; what it then said."""
    process = begin([*args, "--loglevel", "INFO"], cwd=project, silent=["out"], is_forked=is_forked)
    assert process.stderr is not None
    assert "Scrapy" in process.stderr.readline()
    deadline = time.monotonic() + 600
    while not when():
        assert time.monotonic() < deadline
        time.sleep(0.005)
    children = psutil.Process(process.pid).children(recursive=True)
    (os.killpg if group else os.kill)(process.pid, number)
    sent = time.monotonic()
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 130, errors
    # What Python says of a handler that it runs while it forks cannot be kept back.
    assert "Traceback" not in errors or "Exception ignored in" in errors, errors
    assert errors.count("crawl4llm: interrupted\n") == 1, errors
    assert time.monotonic() - sent < 120
    assert not psutil.wait_procs(children, timeout=120)[1]
    return errors


def test_at_any_moment_of_the_start(demo_web: Web, project: Path) -> None:
    """While Scrapy sets up, while files are indexed, and while workers start; then the crawl goes its way."""
    parts = project / ".scrapy"
    args = arguments(demo_web, project, "run")

    def indexed() -> int:
        return len(list(parts.glob("corpora/*/parts/*[!p]")))

    interrupted(args, project, signal.SIGINT, lambda: True, group=True, is_forked=False)
    interrupted(args, project, signal.SIGINT, lambda: indexed() >= 2, group=True)
    assert 2 <= indexed() < FILES
    assert not list(parts.glob("corpora/*/index.json"))
    interrupted(args, project, signal.SIGTERM, (project.parent / "run/settings.json").exists, group=False)

    for name in ("run", "undisturbed"):
        done = scrapy(*arguments(demo_web, project, name), cwd=project)
        assert done.returncode == 0, done.stderr
    for log in ("crawl.jsonl", "failures.jsonl"):
        assert (project.parent / "run" / log).read_bytes() == (project.parent / "undisturbed" / log).read_bytes()


_AT_A_FORK = """
import os, signal, sys
from scrapy.cmdline import execute

sent, lets_through = [], sys.argv.pop(1) == "True"

def press():
    if not sent:
        sent.append(True)
        if lets_through:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        os.kill(os.getpid(), signal.SIGTERM)

os.register_at_fork(after_in_parent=press)
execute(["scrapy", *sys.argv[1:]])
"""


@pytest.mark.parametrize("lets_through", [False, True])
def test_while_a_process_is_forked(lets_through: bool, demo_web: Web, tmp_path: Path) -> None:
    """The crawl does not begin, and the new process ends. Our pools hold a signal back until a process is started. If
    it is let through in the fork, as in one of a library, Python drops the exception of its handler."""
    args = crawl_args(demo_web, tmp_path / "run", CRAWL_MAX_PAGES=50)
    result = subprocess.run(
        [sys.executable, "-c", _AT_A_FORK, str(lets_through), *args],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert result.returncode == 130, result.stderr
    assert result.stderr.endswith("crawl4llm: interrupted\n")
    log = tmp_path / "run/crawl.jsonl"
    assert not log.exists() or not log.read_bytes()


_IN_AN_EXEC = """
import sys

from crawl4llm.base.terminal import print_lines

def lines():
    exec("raise KeyboardInterrupt")
    yield

sys.exit(print_lines(lines()))
"""


def test_while_a_dataclass_is_made(tmp_path: Path) -> None:
    """By exec() of a text, of whose KeyboardInterrupt CPython takes note, to end itself by SIGINT."""
    (tmp_path / "command.py").write_text(_IN_AN_EXEC)
    result = subprocess.run(
        [sys.executable, "-m", "command"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (result.returncode, result.stderr) == (130, "crawl4llm: interrupted\n")


_AT_AN_IMPORT = """
import os, signal, sys
from importlib.abc import MetaPathFinder

class Press(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == module and os.getpid() == pid:
            os.kill(pid, number)

pid, module, number = os.getpid(), sys.argv.pop(1), int(sys.argv.pop(1))
sys.meta_path.insert(0, Press())
from scrapy.cmdline import execute
execute(["scrapy", *sys.argv[1:]])
"""


@pytest.mark.parametrize(
    ("module", "command", "number"),
    [
        ("crawl4llm.commands.archive", "crawl", signal.SIGINT),
        ("crawl4llm.commands.trainscorer", "crawl", signal.SIGTERM),
        ("crawl4llm.engine.run", "crawl", signal.SIGTERM),
        ("crawl4llm.crawl.algorithm", "crawl", signal.SIGINT),
        ("crawl4llm.tools.opened_run", "evaluate", signal.SIGINT),
        ("matplotlib", "evaluate", signal.SIGTERM),
    ],
)
def test_while_modules_are_imported(
    module: str, command: str, number: signal.Signals, demo_web: Web, tmp_path: Path
) -> None:
    """From the first of our modules on; before that, Scrapy itself is imported."""
    if command == "evaluate":
        pytest.importorskip("matplotlib", reason="needs the extra evaluate")
        args = ["evaluate", str(tmp_path / "none"), "--out", str(tmp_path / "report")]
    else:
        args = crawl_args(demo_web, tmp_path / "run", CRAWL_MAX_PAGES=50)
    result = subprocess.run(
        [sys.executable, "-c", _AT_AN_IMPORT, module, str(int(number)), *args],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert (result.returncode, result.stderr) == (130, "crawl4llm: interrupted\n")


def test_commands_of_scrapy_mind_interrupts_as_ever() -> None:
    """As ``scrapy shell`` needs; ``version`` stands for all."""
    command = [
        sys.executable,
        "-c",
        "import signal, crawl4llm.commands; print(signal.getsignal(2).__name__)",
        "version",
    ]
    found = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
    assert found.stdout == "default_int_handler\n"
