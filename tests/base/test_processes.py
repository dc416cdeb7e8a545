"""Jobs that several threads or processes do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[2]
INTERRUPTED_OFTEN = """
import random, signal
from concurrent.futures import ThreadPoolExecutor
from crawl4llm.base import terminal
from crawl4llm.base.processes import in_any_order

draw, interrupted = random.Random(3), 0
for _ in range(3000):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    terminal.raise_when_interrupted()
    signal.signal(signal.SIGALRM, signal.getsignal(signal.SIGINT))
    terminal._signalled.clear()
    pool = ThreadPoolExecutor(2)
    try:
        signal.setitimer(signal.ITIMER_REAL, draw.uniform(0.0002, 0.001))
        for _ in in_any_order(lambda number: pool.submit(int, number), range(10**9), 1):
            pass
    except KeyboardInterrupt:
        interrupted += 1
    pool.shutdown(cancel_futures=True)
print(interrupted)
"""


def test_ctrl_c_at_any_moment_leaves_no_lock_behind() -> None:
    """With concurrent.futures.wait() one signal in some thousand did, and the pool could not be shut down."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_OFTEN],
        check=False,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == "3000\n", done.stderr
