"""Builds a web and its model with several processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from crawl4llm.base.bars import Progress
from crawl4llm.base.errors import InputError
from crawl4llm.base.processes import end_with, sigint_blocked, terminate
from simulate.demo.model import train_model
from simulate.demo.planning import plan_web
from simulate.demo.tree import Tree

_tree: Tree
"""In a worker process only: what it writes files of."""


def build(corpus: Path, model: Path, *, pages: int, hosts: int, seed: int, jobs: int, progress: bool) -> None:
    """Write the file tree of a web to ``corpus`` and its fastText model to ``model``.

    The bytes do not depend on ``jobs``, the number of processes. ``progress`` shows a bar where there is a terminal.
    Raises InputError where a process is killed, OSError where the disk fails.
    """
    tree = Tree(plan_web(pages, hosts, seed), corpus)
    tree.write_root_files()
    context = multiprocessing.get_context("fork" if hasattr(os, "fork") else "spawn")  # a forked one has the plan
    pool = ProcessPoolExecutor(jobs, context, _start_worker, (os.getpid(), tree))
    try:
        with sigint_blocked():
            running: list[Future[int]] = [pool.submit(_train, model, seed)]
            running += [pool.submit(_write_file, file_id) for file_id in tree.files]
        with Progress[int](None, "building the demo web", pages, unit=" pages", bar=None if progress else False) as bar:
            for done in as_completed(running):
                bar.update(done.result())
    except BrokenProcessPool:
        raise InputError("a process of the build was killed; if memory ran out, use fewer --jobs") from None
    except (KeyboardInterrupt, OSError):  # by OSError some processes were perhaps not started, and wait for ever
        terminate(pool)
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _train(path: Path, seed: int) -> int:
    train_model(path, seed)
    return 0


def _write_file(file_id: str) -> int:
    return _tree.write_file(file_id)


def _start_worker(parent: int, tree: Tree) -> None:
    global _tree  # noqa: PLW0603 - the one way to hand a process pool's tasks what they work with
    _tree = tree
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends the pool
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with(parent)
