"""``scrapy cluster status``, ``drain`` and ``stop``: the progress and workers of a crawl, and requests to the workers.

Workers are known if CLUSTER is given (``-s CLUSTER=valkey://HOST:PORT/0``).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from crawl4llm.base.errors import InputError
from crawl4llm.base.tables import Fact, Part, Rows, facts
from crawl4llm.cluster import DRAIN, STOP, History, journal, objects
from crawl4llm.options import read_options
from crawl4llm.tools._action import Action

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawl4llm.cluster import ValkeyLiveness


def _status(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    history = History(opts.arguments[0])
    yield from _of_journals(history) if history.is_continuous else _of_batches(history)
    if read_options(settings).cluster is None:
        yield "to see the workers, add -s CLUSTER=valkey://HOST:PORT/0"
        return
    workers = _liveness(settings, history).workers()
    rows = [(one.id, list(one.partitions), int(one.figures.get("pages", 0)), one.silent) for one in workers]
    yield Rows("workers", ("id", "partitions", "pages", "silent_seconds"), rows, digits=1)


def _of_journals(history: History) -> Iterator[Part]:
    heads = dict(_newest_heads(history))
    at_rest = [partition for partition, head in heads.items() if head["rest"] is not None]
    yield from facts(
        {
            "pages": sum(head["crawled"] for head in heads.values()),
            "wanted": history.max_pages,
            "ended": history.end["reason"] if history.end else "no",
            "partitions": history.partitions,
            "begun": len(heads),
        }
    )
    yield Fact("at_rest", at_rest, f"nothing to do in partitions {_numbers(at_rest)}" if at_rest else "")


def _newest_heads(history: History) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield partitions with the facts of their newest commits."""
    for partition in range(history.partitions):
        commit = journal.read_commit(history.storage, partition, journal.newest(history.storage, partition))
        if commit is not None:
            yield partition, commit.head._asdict()


def _of_batches(history: History) -> Iterator[Part]:
    iteration = history.last_iteration()
    crawled, waits_for, missing = 0, "offers", list(range(history.partitions))
    if iteration is not None:
        waits_for, missing = _waits_for(history, iteration)
        plans = (history.iteration(number).plan() for number in (iteration, iteration - 1))
        crawled = next((plan.crawled for plan in plans if plan is not None), 0)
    if history.end is not None:
        iteration, crawled, missing = history.end["iteration"], history.end["crawled"], []
    yield from facts(
        {
            "pages": crawled,
            "wanted": history.max_pages,
            "iteration": iteration,
            "ended": history.end["reason"] if history.end else "no",
            "partitions": history.partitions,
            "lag": len(missing),
        }
    )
    yield Fact("waits_for", {waits_for: missing}, f"{waits_for} of partitions {_numbers(missing)}" if missing else "")


def _waits_for(history: History, iteration: int) -> tuple[str, list[int]]:
    """Return the next kind of object in an iteration, and the partitions that have not put it yet."""
    folder = objects.folder(iteration)
    there = set(history.storage.names(folder))
    kind = objects.EXCHANGE if f"{folder}{objects.PLAN}" in there else objects.OFFER
    numbers = range(history.partitions)
    return f"{kind}s", [one for one in numbers if objects.name(iteration, kind, one) not in there]


def _numbers(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:10]))
    return shown + (f" and {len(numbers) - 10} more" if len(numbers) > 10 else "")


def _liveness(settings: BaseSettings, history: History) -> ValkeyLiveness:
    options = read_options(settings)
    if options.cluster is None:
        raise InputError("this command reaches workers over CLUSTER; add -s CLUSTER=valkey://HOST:PORT/0")
    # valkey is an extra
    from crawl4llm.cluster import ValkeyLiveness

    return ValkeyLiveness(options.cluster, history.crawl["id"], history.partitions, options.cluster_lease)


def _drain(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    liveness, worker = _liveness(settings, History(opts.arguments[0])), opts.arguments[1]
    known = [one.id for one in liveness.workers()]
    if worker not in known:
        raise InputError(f"there is no worker {worker}; known are: {', '.join(known) or 'none'}")
    liveness.request(DRAIN, worker)
    yield f"{worker} was asked to hand over its partitions and end"


def _stop(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    liveness = _liveness(settings, History(opts.arguments[0]))
    liveness.request(STOP)
    yield "the workers were asked to end; the command that began the crawl resumes it"


STATUS = Action("show the progress of the crawl, and its workers", _status, "STORAGE")
DRAIN_WORKER = Action("make a worker hand over its partitions and end", _drain, "STORAGE WORKER")
STOP_ALL = Action("end all workers; they can be started again", _stop, "STORAGE")
