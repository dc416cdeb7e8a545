"""Tasks for worker processes, which find them by name; what a page does to its worker stands in its key."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import deque
from contextlib import suppress
from itertools import count, repeat
from pathlib import Path

from graph_corpus import GraphCorpus, NumberScorer

from crawl4llm.base.files import PreadFile
from crawl4llm.scoring.rating import PageRater, Rating

GOOD = [f"page{number}" for number in range(40)]
RATER = PageRater(GraphCorpus({key: [] for key in GOOD}, dict.fromkeys(GOOD, "0.5")), NumberScorer(), extractor=None)


def length(rater: PageRater, key: str) -> Rating:
    """Rates a page by its key's length, unless the key says that it misbehaves."""
    if key.startswith("sleep"):
        time.sleep(3600)
    elif key.startswith("loop"):
        deque(repeat(0), maxlen=0)  # in C, without end; it lets no other thread run and looks at no signal
    elif key.startswith("kill"):
        os.kill(os.getpid(), signal.SIGKILL)
    elif key.startswith("exit"):
        os._exit(int(key[4:]))
    elif key.startswith("leave"):
        sys.exit("a page")
    elif key.startswith("raise"):
        raise ValueError(key)
    elif key.startswith("unpicklable"):
        raise OSError(lambda: key)
    elif key.startswith("deep"):
        length(rater, key)
    elif key.startswith("gone"):
        rater.corpus.text(key)
    return Rating(float(len(key)))


def slow(rater: PageRater, key: str) -> Rating:
    """Takes its time, as text extraction does."""
    time.sleep(0.002)
    return length(rater, key)


def worker(rater: PageRater, key: str) -> Rating:
    """The process that rates the page."""
    time.sleep(0.01)
    return Rating(float(os.getpid()))


def hoard(rater: PageRater, key: str) -> Rating:
    """Takes all files that a process may have open."""
    with suppress(OSError):
        hoarded.extend(os.open(os.devnull, os.O_RDONLY) for _ in count())
    try:
        PreadFile(Path(os.devnull).parent / "zero")
    finally:
        while hoarded:
            os.close(hoarded.pop())
    return Rating(float(len(key)))


hoarded: list[int] = []
