"""``scrapy cluster compact``: puts the archive's segments together: one for each partition and batch."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from crawl4llm.base.errors import InputError
from crawl4llm.base.tables import Fact, Line, Part
from crawl4llm.cluster.history import History
from crawl4llm.tools._action import Action

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def _run(_settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    """Compact what is there, as far as it fills objects of WARC_MAX_BYTES, and the rest once the crawl has ended.

    Where one object ends and the next begins follows from the segments alone, so that it may be killed and begun again,
    and run twice at a time, while the crawl goes on.
    """
    history = History(opts.arguments[0])
    if history.is_continuous:
        raise InputError(f"{opts.arguments[0]}: crawls in continuous order are not compacted; merge it")
    most: int = history.crawl["facts"]["settings"]["WARC_MAX_BYTES"]
    history.pages.delete(history.pages.last())  # what a killed one left
    group: list[tuple[str, bytes, bytes]] = []
    size = segments = files = 0
    for name in _segments(history):
        content = history.pages.get(name)
        if group and size + len(content) > most:
            history.pages.compact(group)
            segments, files, size, group = segments + len(group), files + 1, 0, []
        group.append((name, content, history.pages.raw_index(name)))
        size += len(content)
    if group and history.end is not None:
        history.pages.compact(group)
        segments, files, group = segments + len(group), files + 1, []
    facts: dict[str, Any] = {"segments": segments, "files": files, "left": len(group)}
    yield from (Fact(name, count, "") for name, count in facts.items())
    left = f"; {len(group):,} wait for more" if group else ""
    yield Line(f"{segments:,} segments compacted to {files:,} WARC files{left}")


def _segments(history: History) -> Iterator[str]:
    """Yield the segments that are not compacted, in their order, of the batches that all partitions have ended."""
    last = history.pages.last()
    name = last[-1].name if last else ""
    iteration = int(name.split("/")[1]) if name else 0
    while exchanges := history.exchanges(iteration):
        yield from (one.head["pages"] for one in exchanges if (one.head["pages"] or "") > name)
        iteration += 1


COMPACT = Action("put the archive's segments together to files of WARC_MAX_BYTES", _run, "STORAGE")
