"""Ctrl-C while an event loop hands pages to workers: one line, wherever in the loop it comes."""

from __future__ import annotations

import pytest
from crawl_helpers import python

_PROGRAM = """\
import signal, sys
from worker_tasks import GOOD, RATER, length
from crawl4llm.base.terminal import print_lines
from crawl4llm.scoring.workers import PageWorkers

class Workers(PageWorkers):
    async def run_chunk(self, task, pages):
        if PLACE == "before":
            signal.raise_signal(signal.SIGINT)
        answers = await super().run_chunk(task, pages)
        if PLACE == "after":
            signal.raise_signal(signal.SIGINT)
        return answers

    async def run(self, task, pages):
        answers = await super().run(task, pages)
        if PLACE == "end":
            signal.raise_signal(signal.SIGINT)
        return answers

def lines():
    with Workers(RATER, PROCESSES) as workers:
        workers.start()
        yield ["rated", len(workers.run_all(length, GOOD))]

sys.exit(print_lines(lines()))
"""


@pytest.mark.parametrize(("place", "processes"), [("before", 2), ("after", 2), ("end", 2), ("end", 0)])
def test_ctrl_c_is_one_line(place: str, processes: int) -> None:
    done = python("-c", _PROGRAM.replace("PLACE", repr(place)).replace("PROCESSES", str(processes)))
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "crawl4llm: interrupted\n")
