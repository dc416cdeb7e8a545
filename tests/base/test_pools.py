"""Work in child processes and pools: what hangs, crashes or is killed costs itself alone, and no process is left."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from concurrent.futures import Future, TimeoutError as FutureTimeout
from pathlib import Path

import psutil
import pytest
from crawl_helpers import begin_python

from crawl4llm.base.errors import InputError
from crawl4llm.base.jobs import Here, Jobs, Told, run_jobs, run_missing
from crawl4llm.base.pools import Pool
from crawl4llm.base.processes import ChildEnded, in_child, in_children

BEFORE: list[psutil.Process] = []


@pytest.fixture(autouse=True)
def _noted() -> None:
    """Notes the processes that other tests have left, such as the server of crawls."""
    BEFORE[:] = psutil.Process().children()


def do(what: str) -> str:
    if what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "exit":
        os._exit(3)
    if what == "hang":
        time.sleep(600)
    if what == "refuse":
        raise InputError("it cannot be had")
    return what.upper()


def outcome(future: Future[str]) -> object:
    error = future.exception()
    return future.result() if error is None else type(error)


def children() -> list[psutil.Process]:
    """The processes that the test has started, but the tracker of locks, which stays."""
    new = [one for one in psutil.Process().children() if one not in BEFORE]
    alive = [one for one in new if one.status() != psutil.STATUS_ZOMBIE]
    return [one for one in alive if "resource_tracker" not in " ".join(one.cmdline())]


class TestInChild:
    def test_what_it_returns(self) -> None:
        assert in_child(do, "a") == "A"
        assert in_child(os.getppid) == os.getpid()

    def test_what_it_raises(self) -> None:
        with pytest.raises(InputError, match="it cannot be had"):
            in_child(do, "refuse")

    @pytest.mark.parametrize(("what", "how"), [("kill", "SIGKILL"), ("exit", "status 3")])
    def test_how_it_ended(self, what: str, how: str) -> None:
        with pytest.raises(ChildEnded, match=f"^{how}$"):
            in_child(do, what)

    def test_each_in_a_process_of_its_own(self) -> None:
        items = ["a", "kill", "b", "refuse", "exit", "c"]
        found = {item: outcome(future) for item, future in in_children(do, items, 2)}
        ended = {"kill": ChildEnded, "exit": ChildEnded, "refuse": InputError}
        assert found == {item: ended.get(item, item.upper()) for item in items}
        assert children() == []

    def test_who_has_enough_leaves_no_process(self) -> None:
        for item, future in in_children(do, ["hang", "a"], 2):
            assert (item, future.result()) == ("a", "A")
            break
        assert children() == []


class TestPool:
    @pytest.mark.parametrize("fork", [True, False], ids=["fork", "spawn"])
    @pytest.mark.slow
    def test_calls_that_hang_or_end_their_process_cost_themselves(self, fork: bool) -> None:
        items = ["a", "kill", "b", "hang", "exit", "refuse", "c"]
        with Pool(do, 2, fork=fork) as pool:
            found = {item: outcome(future) for item, future in pool.each(items, time_limit=1.0)}
        ended = {"kill": ChildEnded, "exit": ChildEnded, "hang": FutureTimeout, "refuse": InputError}
        assert found == {item: ended.get(item, item.upper()) for item in items}
        assert children() == []

    def test_a_pool_whose_processes_are_all_killed_goes_on(self) -> None:
        with Pool(do, 2, fork=True) as pool:
            assert pool.submit("a").result() == "A"
            for child in children():
                child.kill()
            for _ in range(3):
                found = {outcome(future) for _, future in pool.each("bcdefgh")}
            assert found == set("BCDEFGH")

    def test_a_call_of_a_process_that_stands_still_is_out_of_time(self) -> None:
        with Pool(do, 1, fork=True) as pool:
            assert pool.submit("a").result() == "A"
            for child in children():
                child.suspend()
            assert [outcome(future) for _, future in pool.each("bc", time_limit=0.5)] == [FutureTimeout, "C"]

    @pytest.mark.parametrize("turn", range(7))
    def test_no_other_call_is_blamed_for_a_kill(self, turn: int) -> None:
        items = [*"abcdef"]
        items.insert(turn, "kill")
        with Pool(do, 2, fork=True) as pool:
            found = {item: outcome(future) for item, future in pool.each(items)}
        assert found == {"kill": ChildEnded, **{item: item.upper() for item in "abcdef"}}


class Item(str):
    """A job that is never done."""

    size = 1


def do_some(items: Sequence[Item]) -> list[str]:
    return [do(item) for item in items]


def never(_item: Item) -> bool:
    return False


class TestJobs:
    def test_a_killed_process_ends_work_that_begins_anew(self) -> None:
        with pytest.raises(InputError, match=r"^killed$"):
            list(run_jobs(do, [Item("kill"), *map(Item, "abc")], 2, Told(" jobs", "killed")))

    def test_tasks_beside_a_killed_one_are_done(self, tmp_path: Path) -> None:
        done = []
        jobs = Jobs(do_some, [Item("kill"), *map(Item, "abc")], tmp_path, never)
        with pytest.raises(InputError, match="a task was killed"):  # noqa: PT012 - what comes before
            for _, result in run_missing(jobs, Here(4), 2, Told(" jobs", "killed")):
                done.append(result)
        assert sorted(done) == ["A", "B", "C"]


_INTERRUPTED = """
import sys, time
from crawl4llm.base.pools import Pool
from crawl4llm.base.processes import in_child
from crawl4llm.base.terminal import print_lines

def lines():
    if sys.argv[1] == "child":
        yield in_child(time.sleep, 600)
    with Pool(time.sleep, 2) as pool:
        for _ in pool.each([600, 600, 600]):
            yield "?"

sys.exit(print_lines(lines()))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("where", ["child", "pool"])
def test_no_process_outlives_its_parent(where: str, number: signal.Signals) -> None:
    process = begin_python("-c", _INTERRUPTED, where)
    parent = psutil.Process(process.pid)
    while len(started := parent.children(recursive=True)) < (1 if where == "child" else 3):  # with the tracker of locks
        assert process.poll() is None
        time.sleep(0.02)
    time.sleep(0.3)
    process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    if number == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
    else:
        assert (process.returncode, errors) == (130, "crawl4llm: interrupted\n")
    _, alive = psutil.wait_procs(started, timeout=60)
    assert [one for one in alive if one.status() != psutil.STATUS_ZOMBIE] == []
