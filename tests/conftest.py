"""What the tests share: a small demo web, and the data beside the checkout where it is there."""

from __future__ import annotations

import gc
import importlib
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from crawl_helpers import SHARED, Web
from finished_runs import FinishedRuns
from process_tests import starts_processes

from crawl4llm.frontier.store import Store

pytest_plugins = ["lasting_failures"]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Run as a shell's background job: the processes that tests start, and interrupt, would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)


gc.disable()  # while test files are imported, which makes hardly any garbage: a third of that time


def pytest_collection_finish() -> None:
    """What is imported by now stays: no collection looks through it again, here or in a forked process. Hypothesis is
    imported before, since it looks for what refers to the random numbers of Trio."""
    importlib.import_module("hypothesis")
    gc.freeze()
    gc.enable()


def pytest_xdist_auto_num_workers() -> int:
    """Twice as many processes as there are cores: tests wait for sockets and processes two fifths of their time."""
    return 2 * (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Each process of a parallel run imports the test files first, and begins with another one: pytest's rewriting of
    asserts takes longer than all else of an import, so that each process should find most files rewritten."""
    worker = getattr(session.config, "workerinput", None)
    if worker is None or session.config.args != session.config.getini("testpaths"):
        return
    files = sorted((session.config.rootpath / "tests").rglob("test_*.py"))
    first = len(files) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    kept, sys.dont_write_bytecode = sys.dont_write_bytecode, False
    for file in files[first:] + files[:first]:
        with suppress(Exception, pytest.skip.Exception):  # pytest says what is wrong when it collects the file
            importlib.import_module(".".join(file.relative_to(session.config.rootpath).with_suffix("").parts))
    sys.dont_write_bytecode = kept


LONGEST = (
    *("test_trainlm_command.py", "test_resume.py", "test_commands.py", "test_contest.py", "test_policy_state.py"),
    *("test_corpus_build.py", "test_frontier_command.py", "test_websoftware.py", "test_shard_tasks.py"),
    *("test_cluster_steering.py", "test_mutations.py", "test_received_folder.py", "test_worker_folders.py"),
    *("test_known_links_command.py", "test_printed_commands.py", "test_trainlm.py", "test_power_cut.py"),
)
"""Files that take longest, the longest first: those that begin late would leave a process alone with one at the end."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that start processes, before ``-m`` chooses. The longest files first, then others with slow tests."""
    for item in items:
        if starts_processes(item):
            item.add_marker("processes")
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    place = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: (place.get(item.path.name, len(LONGEST)), item.path not in slow))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Say, below all else, how to install what tests were skipped for."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    reasons = [str(report.longrepr) for report in terminal.stats.get("skipped", ())] if terminal else []
    lacking = Counter(found[1] for reason in reasons if (found := re.search(r"on Debian: ([\w -]+)", reason)))
    for command, tests in lacking.items():
        terminal.write_line(f"{tests} tests were skipped for want of a program; to install it: {command}")


_opened: set[Store] = set()
"""Stores that the test has opened, and not closed. If another thread collected one, LMDB would end the process."""


def pytest_configure() -> None:
    """Note which stores are open."""
    begin, close = Store.__init__, Store.close

    def note(self: Store, *args: Any, **options: Any) -> None:
        begin(self, *args, **options)
        _opened.add(self)

    def forget(self: Store) -> None:
        _opened.discard(self)
        close(self)

    Store.__init__, Store.close = note, forget  # type: ignore[method-assign]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[object]:
    """Close the stores that a test leaves open, in the thread that opened them."""
    done = yield
    for store in list(_opened):
        store.close()
    return done


@pytest.fixture(scope="module")
def nothing_before() -> None:
    """What all the other tests have left is not looked through in each collection."""
    gc.collect()
    gc.freeze()


def _shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The temporary folder of a run of the tests, one for all processes of a parallel run."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session")
def demo_web(tmp_path_factory: pytest.TempPathFactory) -> Web:
    """A demo web of 1,500 pages, and its model; the processes of a parallel run share one, which no test may change."""
    from simulate.demo import ensure_demo

    paths = ensure_demo(_shared_folder(tmp_path_factory) / "demo", pages=1500, hosts=40, seed=0, progress=False)
    return Web(paths.corpus, paths.model)


@pytest.fixture(scope="session")
def small_demo_web(tmp_path_factory: pytest.TempPathFactory) -> Web:
    """As ``demo_web``, of 300 pages: for crawls that take all of a web."""
    from simulate.demo import ensure_demo

    paths = ensure_demo(_shared_folder(tmp_path_factory) / "demo", pages=300, hosts=10, seed=0, progress=False)
    return Web(paths.corpus, paths.model)


@pytest.fixture(scope="session")
def finished_runs(demo_web: Web, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FinishedRuns]:
    """Finished crawls of the demo web, each made once, which no test may change."""
    runs = FinishedRuns(demo_web, _shared_folder(tmp_path_factory) / "finished")
    yield runs
    runs.check()


@pytest.fixture(scope="session")
def jax_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Processes that train compile a model once: they find it in a folder, which those of a parallel run share."""
    folder = _shared_folder(tmp_path_factory)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAX_COMPILATION_CACHE_DIR", str(folder / "jax"))
        patch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
        patch.setenv("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
        yield


@pytest.fixture(scope="session")
def shared() -> Callable[[str], Path]:
    """Path of something in ../shared; the test is skipped where that is absent."""

    def path(name: str) -> Path:
        if not (SHARED / name).exists():
            pytest.skip(f"needs {SHARED / name}, which is not here")
        return SHARED / name

    return path
