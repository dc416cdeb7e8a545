"""``scrapy cluster verify``: a check that no document is lost or there twice, and that the archive is whole."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from crawl4llm.base.tables import Fact, Line, Part
from crawl4llm.cluster import BatchesSoundness, CommitsSoundness, History
from crawl4llm.tools._action import Action

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def _run(_settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    """Yield ``sound`` and the equation, or raise InputError that names the fault."""
    equation = _equation(History(opts.arguments[0]))
    yield Fact("sound", value=True, shown="")
    yield Fact("equation", equation, "")
    yield Line(f"sound: {equation}")


def _equation(history: History) -> str:
    """Read all of a crawl, its archive too, and return how many documents are in which state. Raises InputError."""
    if history.is_continuous:
        of_commits = CommitsSoundness(history)
        for one in of_commits.commits():
            if one.commit.head.pages is not None:
                history.pages.get(one.commit.head.pages)
        return of_commits.equation
    of_batches = BatchesSoundness(history)
    for batch, _ in of_batches.batches():
        for exchange in batch.exchanges:
            if exchange.head["pages"] is not None:
                history.pages.get(exchange.head["pages"])
    return of_batches.equation


VERIFY = Action("check that no document is lost or repeated, and that the archive is whole", _run, "STORAGE")
