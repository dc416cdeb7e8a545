"""``scrapy cluster verify``: a check that no document is lost or there twice, and that the archive is whole."""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from crawl4llm.base.errors import InputError
from crawl4llm.base.tables import Fact, Line, Part
from crawl4llm.cluster.compacted import digest_of
from crawl4llm.cluster.history import Batch, History, news_of
from crawl4llm.cluster.objects import Exchange
from crawl4llm.frontier.memory import MemoryVisited
from crawl4llm.tools._action import Action
from crawl4llm.tools.cluster.journals import Verify

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def _run(_settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    """Yield ``sound`` and the equation; or raise InputError that names what is wrong."""
    history = History(opts.arguments[0])
    equation = Verify(history).run() if history.is_continuous else _of_batches(history)
    yield Fact("sound", value=True, shown="")
    yield Fact("equation", equation, "")
    yield Line(f"sound: {equation}")


def _of_batches(history: History) -> str:
    """Return the equation of a crawl in batch order. Raises InputError."""
    ended, done = MemoryVisited(), _Done()
    discovered = _found(history, history.offers(0), ended, done)
    for batch in history.batches():
        _check_batch(history, batch, ended, done)
        if not batch.after:
            continue
        discovered += _found(history, batch.after, ended, done)
        queued = sum(offer["queued"] for offer in batch.after)
        if discovered != len(ended) + queued:
            states = f"{len(ended):,} ended + {queued:,} queued"
            raise _wrong(history, f"after iteration {batch.number}, {discovered:,} discovered are not {states}")
    equation = f"{discovered:,} discovered = {done.archived:,} archived + {done.failed:,} failed or dropped + "
    return equation + f"{discovered - len(ended):,} queued"


class _Done:
    """Documents that have come to an end."""

    archived = failed = 0


def _found(history: History, offers: Sequence[Mapping[str, Any]], ended: MemoryVisited, done: _Done) -> int:
    """Note the documents that ended when they were discovered; return how many were."""
    news = news_of(offers)
    for lines in news.failures.values():
        for line in lines:
            _note(history, line["id"], ended)
            done.failed += 1
    return sum(new for new, _ in news.visited.values())


def _check_batch(history: History, batch: Batch, ended: MemoryVisited, done: _Done) -> None:
    """Check that each document of the batch came to one end, and each page lies in the archive."""
    for number, exchange in enumerate(batch.exchanges):
        if [row[0] for row in exchange.rows] != batch.plan.places(number):
            raise _wrong(history, f"partition {number} has other documents of iteration {batch.number} than planned")
        for place, line, failure, _ in exchange.rows:
            key = batch.plan.keys[place]
            if any(one is not None and one["id"] != key for one in (line, failure)):
                raise _wrong(history, f"iteration {batch.number} has another document in place {place} than {key}")
            if line is not None or failure is not None:
                _note(history, key, ended)
                done.archived += line is not None
                done.failed += line is None
        _check_pages(history, exchange)


def _check_pages(history: History, exchange: Exchange) -> None:
    """Check a partition's pages of a batch: the file has the digest in its name, the index lists the pages."""
    name = exchange.head["pages"]
    if name is None:
        return
    if hashlib.sha256(history.pages.get(name)).hexdigest() != digest_of(name):
        raise _wrong(history, f"{name} is damaged: it has another digest")
    listed = list(history.pages.index(name))
    if listed != [row[1]["id"] for row in exchange.rows if row[1] is not None]:
        raise _wrong(history, f"{name}: its index lists other pages than were crawled")


def _note(history: History, key: str, ended: MemoryVisited) -> None:
    """Note that a document ended, which none does twice."""
    if not ended.add([key]):
        raise _wrong(history, f"{key} has come to an end twice")


def _wrong(history: History, how: str) -> InputError:
    return InputError(f"STORAGE {history.storage.url} is not sound: {how}")


VERIFY = Action("check that no document is lost or there twice, and the archive is whole", _run, "STORAGE")
