"""``scrapy cluster``: a crawl by several workers, looked at and taken out of its storage.

All actions read :class:`crawl4llm.cluster.history.History`. Workers are known if CLUSTER is given (``-s
CLUSTER=valkey://HOST:PORT/0``).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from crawl4llm.base.errors import InputError
from crawl4llm.base.tables import Fact, Line, Part, Rows, facts
from crawl4llm.base.whole_files import check_free, whole_folder, writing
from crawl4llm.cluster import DRAIN, STOP, BatchesSoundness, CommitsSoundness, History, journal, objects
from crawl4llm.options import read_options
from crawl4llm.tools._action import Action
from crawl4llm.tools._merging import merge

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawl4llm.cluster import ValkeyLiveness


# -- status, drain and stop: the progress and the workers --------------------------------------------------------------


def _status(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    history = History(opts.arguments[0])
    yield from _of_journals(history) if history.is_continuous else _of_batches(history)
    if read_options(settings).cluster is None:
        yield "to see the workers, add -s CLUSTER=valkey://HOST:PORT/0"
        return
    workers = _liveness(settings, history).workers()
    rows = [(one.id, list(one.partitions), int(one.figures.get("pages", 0)), one.silent) for one in workers]
    yield Rows("workers", ("id", "partitions", "pages", "silent_seconds"), rows, digits=1)


def _progress(history: History, pages: int, **more: int | None) -> Iterator[Part]:
    ended = history.end["reason"] if history.end else "no"
    common = {"pages": pages, "wanted": history.max_pages, "ended": ended, "partitions": history.partitions}
    return facts({**common, **more})


def _of_journals(history: History) -> Iterator[Part]:
    numbers = range(history.partitions)
    newest = [journal.read_commit(history.storage, one, journal.newest(history.storage, one)) for one in numbers]
    heads = {number: commit.head for number, commit in enumerate(newest) if commit is not None}
    at_rest = [number for number, head in heads.items() if head.rest is not None]
    yield from _progress(history, sum(head.crawled for head in heads.values()), begun=len(heads))
    yield Fact("at_rest", at_rest, f"nothing to do in partitions {_numbers(at_rest)}" if at_rest else "")


def _of_batches(history: History) -> Iterator[Part]:
    iteration = history.last_iteration()
    crawled, waits_for, missing = 0, "offers", list(range(history.partitions))
    if iteration is not None:
        waits_for, missing = _waits_for(history, iteration)
        plans = (history.iteration(number).plan() for number in (iteration, iteration - 1))
        crawled = next((plan.crawled for plan in plans if plan is not None), 0)
    if history.end is not None:
        iteration, crawled, missing = history.end["iteration"], history.end["crawled"], []
    yield from _progress(history, crawled, iteration=iteration, lag=len(missing))
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


# -- verify: no document is lost or there twice, and the archive is whole ----------------------------------------------


def _verify(_settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    """Yield ``sound`` and the equation, or raise InputError that names the fault."""
    history = History(opts.arguments[0])
    sound = CommitsSoundness(history) if history.is_continuous else BatchesSoundness(history)
    for segment in sound.segments():
        history.pages.get(segment)
    yield Fact("sound", value=True, shown="")
    yield Fact("equation", sound.equation, "")
    yield Line(f"sound: {sound.equation}")


# -- compact: one segment for each partition and batch, or commit ------------------------------------------------------


def _compact(_settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    """Compact the segments that fill objects of WARC_MAX_BYTES, and the rest once the crawl has ended.

    The segments alone decide where an object ends. So it may be killed and started again, and run twice at a time,
    while the crawl goes on.
    """
    history = History(opts.arguments[0])
    facts = {"segments": 0, "files": 0, "left": 0}
    of_commits = (_segments_of_commits(history, partition) for partition in range(history.partitions))
    for names in of_commits if history.is_continuous else [_segments_of_batches(history)]:
        for group, is_whole in _groups(history, names):
            if is_whole:
                history.pages.compact(group)
            facts["segments" if is_whole else "left"] += len(group)
            facts["files"] += is_whole
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


def _segments_of_batches(history: History) -> Iterator[str]:
    """Yield the segments that are not compacted, in their order, of the batches that all partitions have ended. Raises
    InputError if one is missing."""
    ended, last = history.ended_iterations(), history.pages.last()
    iteration = int(last.split("/")[1]) if last else 0
    while exchanges := history.iteration(iteration).exchanges():
        yield from (one.head["pages"] for one in exchanges if (one.head["pages"] or "") > last)
        iteration += 1
    if iteration < ended:
        raise history.storage.damaged(objects.folder(iteration), "objects are missing there")


def _segments_of_commits(history: History, partition: int) -> Iterator[str]:
    """Return the segments of a partition in continuous order that are not compacted, in the order of its commits.
    Raises InputError if one is missing."""
    last = history.pages.last(f"{partition:04}-")
    after = int(last.split("-")[1]) if last else 0
    return (one.head.pages for one in history.commits_of(partition, after) if one.head.pages is not None)


# -- merge: one run folder ---------------------------------------------------------------------------------------------


def _merge(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    if not opts.out:
        raise InputError("give the folder to write: --out DIR")
    out = Path(opts.out)
    check_free(out)
    history = History(opts.arguments[0])
    with writing(out, "the merged crawl"), whole_folder(out) as folder:
        pages = merge(history, folder, out, settings, index_only=opts.index_only)
    ended = history.end["reason"] if history.end else None
    yield Fact("pages", pages, "")
    yield Fact("ended", ended, "")
    yield Line(f"{out}: {pages:,} pages" + ("" if ended else "; the crawl has not ended"))


def _add_merge_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--out", metavar="DIR", help="the run folder to write")
    group.add_argument("--index-only", action="store_true", help="leave the pages in the storage, write only an index")


STATUS = Action("show the progress of the crawl, and its workers", _status, "STORAGE")
DRAIN_WORKER = Action("make a worker hand over its partitions and end", _drain, "STORAGE WORKER")
STOP_ALL = Action("end all workers; they can be started again", _stop, "STORAGE")
VERIFY = Action("check that no document is lost or repeated, and that the archive is whole", _verify, "STORAGE")
COMPACT = Action("merge the archive's segments into files of WARC_MAX_BYTES", _compact, "STORAGE")
MERGE = Action("write the crawl as one run folder", _merge, "STORAGE", _add_merge_options)
