"""``scrapy cluster compact``: puts the archive's segments together: one for each partition and batch, or commit."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from crawl4llm.base.tables import Fact, Line, Part
from crawl4llm.cluster import History, journal
from crawl4llm.tools._action import Action

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def _run(_settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    """Compact the segments that fill objects of WARC_MAX_BYTES, and the rest once the crawl has ended.

    The segments alone decide where an object ends. So it may be killed and started again, and run twice at a time,
    while the crawl goes on.
    """
    history = History(opts.arguments[0])
    facts = {"segments": 0, "files": 0, "left": 0}
    if history.is_continuous:
        series = [_of_commits(history, partition) for partition in range(history.partitions)]
    else:
        series = [_of_batches(history)]
    for names in series:
        for group, is_whole in _groups(history, names):
            if is_whole:
                history.pages.compact(group)
                facts["segments"] += len(group)
                facts["files"] += 1
            else:
                facts["left"] += len(group)
    yield from (Fact(name, count, "") for name, count in facts.items())
    left = f"; {facts['left']:,} wait for more" if facts["left"] else ""
    yield Line(f"{facts['segments']:,} segments compacted to {facts['files']:,} WARC files{left}")


def _groups(history: History, names: Iterable[str]) -> Iterator[tuple[list[tuple[str, int, int]], bool]]:
    """Yield the segments of each object with their sizes, and whether no more can come to them."""
    most: int = history.crawl["facts"]["settings"]["WARC_MAX_BYTES"]
    group: list[tuple[str, int, int]] = []
    total = 0
    for name in names:
        size, index_size = history.pages.sizes(name)
        if group and total + size > most:
            yield group, True
            group, total = [], 0
        group.append((name, size, index_size))
        total += size
    if group:
        yield group, history.end is not None


def _of_batches(history: History) -> Iterator[str]:
    """Yield the segments that are not compacted, in their order, of the batches that all partitions have ended."""
    last = history.pages.last()
    iteration = int(last.split("/")[1]) if last else 0
    while exchanges := history.iteration(iteration).exchanges():
        yield from (one.head["pages"] for one in exchanges if (one.head["pages"] or "") > last)
        iteration += 1


def _of_commits(history: History, partition: int) -> Iterator[str]:
    """Yield the segments of a partition in continuous order that are not compacted, in the order of its commits."""
    last = history.pages.last(f"{partition:04}-")
    after = int(last.split("-")[1]) if last else 0
    for commit in journal.commits(history.storage, partition, after):
        if commit.head.pages is not None:
            yield commit.head.pages


COMPACT = Action("merge the archive's segments into files of WARC_MAX_BYTES", _run, "STORAGE")
