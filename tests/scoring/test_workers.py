"""A page that hangs, kills or breaks its worker process is lost alone, and no process outlives its crawler."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil
import pytest
import worker_tasks
from crawl_helpers import begin_python
from worker_tasks import GOOD, RATER

from crawl4llm.scoring import workers as workers_module
from crawl4llm.scoring.rating import PageRater, Rating, Task
from crawl4llm.scoring.workers import PageWorkers

PROJECT = Path(__file__).resolve().parents[2]
PATIENCE = 120.0
"""Seconds after which something that should have happened counts as not happening: a process that is killed while it
holds a lock costs the time limit (30), 0.25 for each page of a chunk (128), and 10."""

Workers = PageWorkers[PageRater]
NewWorkers = Callable[..., Workers]


@pytest.fixture
def new_workers() -> Iterator[NewWorkers]:
    """Starts workers, and stops them at the end."""
    started: list[Workers] = []

    def start(processes: int, time_limit: float = 30.0) -> Workers:
        workers = PageWorkers(RATER, processes, time_limit)
        started.append(workers)
        workers.start()
        return workers

    yield start
    for workers in started:
        workers.close()
    for child in psutil.Process().children():
        child.kill()


def rate(workers: Workers, keys: Sequence[str], task: Task = worker_tasks.length) -> list[Rating]:
    """Rate pages; fails where that does not end."""
    return asyncio.run(asyncio.wait_for(workers.run(task, keys), PATIENCE))


def good(keys: Sequence[str]) -> list[Rating]:
    return [Rating(float(len(key))) for key in keys]


def pids() -> set[int]:
    """The processes that this one has started and that have not ended."""
    return {child.pid for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE}


def wait_until(holds: Callable[[], bool]) -> bool:
    """Whether something comes true before patience ends."""
    end = time.monotonic() + PATIENCE
    while not holds() and time.monotonic() < end:
        time.sleep(0.02)
    return holds()


# -- results ----------------------------------------------------------------------------------------------------------


def test_ratings_stand_in_the_order_of_the_keys(new_workers: NewWorkers) -> None:
    keys = [f"p{'x' * (number * 7 % 50)}{number}" for number in range(700)]
    keys += keys[::-3]
    assert rate(new_workers(2), keys) == good(keys)


def test_results_are_the_same_for_any_number_of_processes(new_workers: NewWorkers) -> None:
    keys = ["raise1", *GOOD, "gone", "page1", "unpicklable", *(f"more{number}" for number in range(200)), "deep"]
    zero, one, two = [rate(new_workers(processes), keys) for processes in (0, 1, 2)]
    assert zero == one == two
    failed = {key: rating for key, rating in zip(keys, zero, strict=True) if rating.score is None}
    reasons = {"raise1": "error", "gone": "http_404", "unpicklable": "error", "deep": "error"}
    assert failed == {key: Rating(None, reason) for key, reason in reasons.items()}


@pytest.mark.parametrize("processes", [0, 1])
def test_no_pages_no_ratings(new_workers: NewWorkers, processes: int) -> None:
    assert rate(new_workers(processes), []) == []


def test_both_processes_work(new_workers: NewWorkers) -> None:
    ratings = rate(new_workers(2), GOOD * 2, worker_tasks.worker)
    assert {rating.score for rating in ratings} == {float(pid) for pid in pids()}
    assert len(pids()) == 2


# -- pages that misbehave ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("loop", "timeout"),
        ("kill", "killed"),
        ("exit3", "killed"),
        ("raise", "error"),
        ("leave", "error"),
        ("deep", "error"),
        ("unpicklable", "error"),
        ("gone", "http_404"),
    ],
)
def test_a_page_that_misbehaves_is_lost_alone(
    new_workers: NewWorkers, key: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers_module, "_SECONDS_PER_PAGE", 0.0)  # of a chunk, beyond the limit of a page
    workers = new_workers(1, time_limit=1.0 if reason == "timeout" else 60.0)
    assert rate(workers, ["page1", key, "zebra"]) == [Rating(5.0), Rating(None, reason), Rating(5.0)]
    assert rate(workers, GOOD) == good(GOOD)


def test_a_page_that_ends_its_process_as_if_all_were_well_is_lost_alone(new_workers: NewWorkers) -> None:
    first, lost, last = rate(new_workers(1, time_limit=1.0), ["page1", "exit0", "zebra"])
    assert [first, last] == [Rating(5.0), Rating(5.0)]
    assert lost in {Rating(None, "killed"), Rating(None, "timeout")}


def test_many_pages_that_misbehave(new_workers: NewWorkers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers_module, "_SECONDS_PER_PAGE", 0.0)
    bad = {"sleep1": "timeout", "kill1": "killed", "exit1": "killed", "raise1": "error", "kill2": "killed"}
    keys = [*GOOD[:5], *bad, *GOOD[5:10]]
    ratings = rate(new_workers(2, time_limit=1.0), keys)
    assert ratings == [Rating(None, bad[key]) if key in bad else Rating(5.0) for key in keys]


def test_a_chunk_of_slow_pages_is_no_hanging_page(new_workers: NewWorkers) -> None:
    keys = [f"slow{number}" for number in range(300)]
    assert rate(new_workers(1, time_limit=0.1), keys, worker_tasks.slow) == good(keys)


# -- processes killed from outside ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("victims", "pause"), [(1, 0.0), (2, 0.3)], ids=["one, at once", "both, later"])
def test_a_worker_killed_while_idle_does_no_harm(new_workers: NewWorkers, victims: int, pause: float) -> None:
    workers = new_workers(2)
    for _ in range(2):
        for pid in sorted(pids())[:victims]:
            os.kill(pid, signal.SIGKILL)
        time.sleep(pause)
        assert rate(workers, GOOD) == good(GOOD)
        assert wait_until(lambda: len(pids()) <= 2), "a process that was replaced lives on"


def test_a_worker_killed_at_work_does_no_harm(new_workers: NewWorkers) -> None:
    workers = new_workers(2)
    keys = [f"slow{number}" for number in range(400)]

    async def kill_soon() -> None:
        await asyncio.sleep(0.1)
        os.kill(min(pids()), signal.SIGKILL)

    async def both() -> list[Rating]:
        ratings, _ = await asyncio.gather(workers.run(worker_tasks.slow, keys), kill_soon())
        return ratings

    assert asyncio.run(asyncio.wait_for(both(), PATIENCE)) == good(keys)


def test_all_workers_killed_before_they_take_up_their_work(new_workers: NewWorkers) -> None:
    workers = new_workers(2)
    keys = [f"{'x' * 40}{number}" for number in range(5000)]  # more than the pipe to the workers holds
    for pid in pids():
        os.kill(pid, signal.SIGSTOP)

    async def kill_soon() -> None:
        await asyncio.sleep(0.3)
        for pid in pids():
            os.kill(pid, signal.SIGKILL)

    async def both() -> list[Rating]:
        ratings, _ = await asyncio.gather(workers.run(worker_tasks.length, keys), kill_soon())
        return ratings

    assert asyncio.run(asyncio.wait_for(both(), PATIENCE)) == good(keys)


# -- the end of a process ---------------------------------------------------------------------------------------------


def test_close_leaves_no_process_behind(new_workers: NewWorkers) -> None:
    workers = new_workers(2)
    rate(workers, GOOD)
    assert len(pids()) == 2
    workers.close()
    assert pids() == set()
    workers.close()


def test_close_leaves_no_process_behind_after_one_was_killed(new_workers: NewWorkers) -> None:
    workers = new_workers(2)
    os.kill(min(pids()), signal.SIGKILL)
    time.sleep(0.3)
    assert rate(workers, GOOD) == good(GOOD)
    workers.close()
    assert pids() == set()


def test_close_does_not_wait_for_a_page_that_hangs(new_workers: NewWorkers) -> None:
    workers = new_workers(1)

    async def give_up() -> None:
        await asyncio.wait_for(workers.run(worker_tasks.length, ["loop"]), 0.3)

    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(give_up())
    began = time.monotonic()
    workers.close()
    assert time.monotonic() - began < PATIENCE / 2
    assert pids() == set()


def test_workers_are_stopped_at_the_end_of_a_with_block() -> None:
    with PageWorkers(RATER, 1, 30.0) as workers:
        workers.start()
        assert rate(workers, GOOD) == good(GOOD)
        assert len(pids()) == 1
    assert pids() == set()


def test_signals_to_workers_do_not_reach_the_crawler(new_workers: NewWorkers) -> None:
    seen: list[int] = []
    reading, writing = socket.socketpair()
    reading.setblocking(False)
    writing.setblocking(False)
    before = signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
    wakeup = signal.set_wakeup_fd(writing.fileno())
    try:
        new_workers(2)
        victims = pids()
        for pid in victims:  # one of which may have only begun
            os.kill(pid, signal.SIGTERM)
        assert wait_until(lambda: not victims & pids())
        assert seen == []
        with pytest.raises(BlockingIOError):
            reading.recv(1)
    finally:
        signal.set_wakeup_fd(wakeup)
        signal.signal(signal.SIGTERM, before)
        reading.close()
        writing.close()


def test_ctrl_c_in_the_terminal_does_not_end_workers(new_workers: NewWorkers) -> None:
    workers = new_workers(2)
    before = pids()
    for pid in before:
        os.kill(pid, signal.SIGINT)
        os.kill(pid, signal.SIGINT)
    ratings = rate(workers, GOOD * 2, worker_tasks.worker)
    assert {rating.score for rating in ratings} == {float(pid) for pid in before}


CRAWLER = """
import asyncio, sys, psutil, worker_tasks
from crawl4llm.scoring.workers import PageWorkers

workers = PageWorkers(worker_tasks.RATER, 2, 3600.0)
workers.start()
print(*(child.pid for child in psutil.Process().children()), flush=True)
asyncio.run(workers.run(worker_tasks.length, sys.argv[1:]))
print("idle", flush=True)
asyncio.run(asyncio.sleep(3600))
"""


@pytest.mark.parametrize("key", ["page1", "loop"], ids=["idle", "in a loop without end"])
def test_workers_end_with_their_crawler(key: str) -> None:
    with begin_python("-c", CRAWLER, key, silent=["err"]) as crawler:
        assert crawler.stdout is not None
        workers = [psutil.Process(int(pid)) for pid in crawler.stdout.readline().split()]
        try:
            assert len(workers) == 2
            if key == "page1":
                assert crawler.stdout.readline() == "idle\n"
            else:
                time.sleep(0.3)
            crawler.kill()
            crawler.wait()
            _, alive = psutil.wait_procs(workers, timeout=120)
            assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []
        finally:
            for process in workers:
                if process.is_running():
                    process.kill()
