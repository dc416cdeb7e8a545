"""Jobs that several threads or processes do."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from crawl_helpers import python

from crawl4llm.base.processes import interruptible

PROJECT = Path(__file__).parents[2]
INTERRUPTED_OFTEN = """
import random, signal
from concurrent.futures import ThreadPoolExecutor
from crawl4llm.base import terminal
from crawl4llm.base.pools import in_any_order

draw, interrupted = random.Random(3), 0
for _ in range(3000):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    terminal.raise_when_interrupted()
    signal.signal(signal.SIGALRM, signal.getsignal(signal.SIGINT))
    terminal._signalled.clear()
    pool = ThreadPoolExecutor(2)
    try:
        signal.setitimer(signal.ITIMER_REAL, draw.uniform(0.0001, 0.0005))
        for _ in in_any_order(lambda number: pool.submit(int, number), range(10**9), 1):
            pass
    except KeyboardInterrupt:
        interrupted += 1
    pool.shutdown(cancel_futures=True)
print(interrupted)
"""


def test_ctrl_c_at_any_moment_leaves_no_lock_behind() -> None:
    """With concurrent.futures.wait() one signal in some thousand did, and the pool could not be shut down."""
    done = python("-c", INTERRUPTED_OFTEN)
    assert done.stdout == "3000\n", done.stderr


_LONG = """
import hashlib, os, signal, sys, threading
from crawl4llm.base.processes import interruptible
from crawl4llm.base.terminal import print_lines

def lines():
    threading.Timer(0.3, os.kill, (os.getpid(), int(sys.argv[1]))).start()
    yield interruptible(lambda: hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9).hex())

sys.exit(print_lines(lines(), goes_on=True))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_work_in_c_that_would_not_notice_it(number: signal.Signals) -> None:
    began = time.monotonic()
    done = python("-c", _LONG, int(number))
    assert time.monotonic() - began < 60, "the work would take several minutes"
    assert (done.returncode, done.stderr) == (130, "crawl4llm: interrupted; the same command goes on\n")


def test_interruptible_work_returns_and_raises() -> None:
    assert interruptible(lambda: threading.current_thread() is threading.main_thread()) is False
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 // 0)


_LATE = """
import os, sys, time

if "--multiprocessing-fork" in sys.orig_argv:
    try:
        os.close(os.open(os.environ["FIRST"], os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        time.sleep(0.5)
"""
_STOPPED_EARLY = """
import os
from crawl4llm.base.pools import Pool

if __name__ == "__main__":
    with Pool(os.getpid, 2) as pool:
        pool.submit().result()
"""


def test_a_pool_that_is_stopped_while_a_process_starts(tmp_path: Path) -> None:
    """The first process answers while the second one, which starts late, is at it."""
    (tmp_path / "sitecustomize.py").write_text(_LATE)
    (tmp_path / "stopped.py").write_text(_STOPPED_EARLY)
    done = subprocess.run(
        [sys.executable, "stopped.py"],
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{PROJECT}", "FIRST": str(tmp_path / "first")},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert (done.returncode, done.stderr) == (0, "")


_FRAGMENTS = """
import sys
from pathlib import Path
from crawl4llm.base.processes import return_freed_memory

def anonymous():
    (line,) = [line for line in Path("/proc/self/smaps_rollup").read_text().splitlines() if "Anonymous" in line]
    return int(line.split()[1]) >> 10

if sys.argv[1] == "returned":
    return_freed_memory()
bytearray(24 << 20)
before = anonymous()
large = [b"x" * (8 << 20) for _ in range(5)]
large.clear()
print(anonymous() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="what glibc alone does")
@pytest.mark.parametrize(("how", "stays"), [("as_it_is", True), ("returned", False)])
def test_freed_memory_is_returned(how: str, stays: bool) -> None:
    result = subprocess.run([sys.executable, "-c", _FRAGMENTS, how], capture_output=True, text=True, check=True)
    assert (int(result.stdout) > 30) is stays
