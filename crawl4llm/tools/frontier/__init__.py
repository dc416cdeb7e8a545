"""``scrapy frontier JOBDIR|STORAGE``: shows documents by state and host, the best documents, and leases; exports and
verifies them. :mod:`crawl4llm.tools.frontier.change` has the actions that change a JOBDIR.

The frontier of a crawl by several workers is with them. Its storage has how many documents each partition has queued,
as of its newest commit. In batch order that is as of the newest iteration that all have begun.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from datetime import datetime, timezone
from heapq import nsmallest
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from crawl4llm.base import crawl_log
from crawl4llm.base.bars import Progress
from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.files import lost
from crawl4llm.base.input_files import json_or_none, open_input
from crawl4llm.base.object_store import is_storage
from crawl4llm.base.run_folder import SETTINGS, STATS, WARC, read_json
from crawl4llm.base.stats import PREFIX
from crawl4llm.base.tables import Fact, Line, Part, Rows
from crawl4llm.base.urls import host_of
from crawl4llm.base.whole_files import check_new_file, refuse_to_overwrite, replacing
from crawl4llm.base.within import within
from crawl4llm.crawl import REDIRECTS, StoredCrawl, ended_documents
from crawl4llm.frontier import Outcome
from crawl4llm.tools._action import Action
from crawl4llm.tools.opened_run import run_folder
from crawl4llm.warc import INDEX_NAME, OPEN_SUFFIX, TEXT_INDEX_NAME, SeriesPosition, cdxj

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawl4llm.cluster import History

_LEASES = _PARKED = 20
"""Leases, and parked owners, that are shown."""
_LONGEST_LINE = 1 << 20
"""Bytes; a line of a log holds no more than two keys and a URL."""


def _add_options(parser: argparse._ArgumentGroup) -> None:
    parser.add_argument(
        "--hosts",
        type=_count,
        default=20,
        metavar="K",
        help="show the K hosts with the most documents in the frontier (default: 20); 0 avoids reading all of it",
    )
    parser.add_argument("--best", type=_count, default=10, metavar="K", help="show the K best documents (default: 10)")


def _run(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    """Describe the last commit; the crawl may be running. Raises InputError at the end if documents are lost."""
    if is_storage(opts.arguments[0]):
        yield from _show_stored(opts.arguments[0].rstrip("/"), settings, opts.hosts)
        return
    with StoredCrawl(Path(opts.arguments[0])) as crawl:
        yield from _identity(crawl, settings)
        yield ""
        yield from _states(crawl)
        yield from _parked(crawl)
        if opts.hosts:
            yield from _hosts(crawl, opts.hosts)
        if opts.best:
            yield from _best(crawl, opts.best)
        yield from _leases(crawl)
        crawl.check_balance()


def _identity(crawl: StoredCrawl, settings: BaseSettings) -> Iterator[Part]:
    committed = datetime.fromtimestamp(crawl.store_path.stat().st_mtime, tz=timezone.utc)
    size = 0
    for path in crawl.path.iterdir():
        with suppress(FileNotFoundError):  # a crawl that is running renames files
            size += path.lstat().st_size
    try:
        output = crawl.output(settings)
    except InputError as error:
        last_run, place = {}, f"unknown: {error}"
    else:
        last_run, place = read_json(output / SETTINGS), str(output)
    wanted = last_run.get("settings", {}).get("CRAWL_MAX_PAGES")
    yield Fact("crawl", crawl.job["crawl_id"])
    yield Fact("output", place)
    yield Fact("now", crawl.holder, "not running" if crawl.holder is None else f"in use by process {crawl.holder}")
    yield Fact("committed", f"{committed:%Y-%m-%d %H:%M:%S} UTC")
    yield Fact("wanted", wanted, "")
    yield Fact("crawled", crawl.pages, f"{crawl.pages:,}{'' if wanted is None else f' of {wanted:,}'} pages")
    yield Fact("size", size, f"{size / 1e6:,.1f} MB on disk")


def _states(crawl: StoredCrawl) -> Iterator[Part]:
    """Yield counts of documents by state."""
    states, ended = crawl.balance, ended_documents(crawl.frontier, crawl.counts)
    ended[Outcome.REDIRECTED]["within an owner"] += crawl.counts.get(REDIRECTS, 0)
    yield Fact("queued", states.queued)
    why = {"budget": len(crawl.aside) - crawl.unanswered, "unanswered": crawl.unanswered}
    yield Fact("parked", states.parked, f"{states.parked:,}{_listed(why)}")
    for name, number in why.items():
        yield Fact(f"parked_{name}", number, "")
    yield Fact("leased", states.leased)
    yield Fact("archived", states.archived)
    for outcome in (Outcome.REDIRECTED, Outcome.FAILED, Outcome.DROPPED):
        yield _by_reason(outcome.value, dict(sorted(ended[outcome].items())))
    yield str(states)
    if crawl.state.seeds:
        seeds = len(crawl.state.seeds)
        yield Fact("injected", seeds, f"{seeds:,} seeds, taken up when the crawl is resumed")


def _by_reason(outcome: str, counts: Mapping[str, int]) -> Fact:
    """Return how many documents ended so, in all and by reason."""
    counts = {reason: count for reason, count in counts.items() if count}
    total = sum(counts.values())
    return Fact(outcome, {"all": total, **counts}, f"{total:,}{_listed(counts)}")


def _listed(counts: Mapping[str, int]) -> str:
    named = ", ".join(f"{name} {count:,}" for name, count in counts.items() if count)
    return f" ({named})" if named else ""


def _parked(crawl: StoredCrawl) -> Iterator[Part]:
    """Yield the owners that are parked, those with the most documents first."""
    if not crawl.frontier.by_owners:
        return
    owners = crawl.frontier.owners
    parked = sorted((-owners.queued_of(name), name, delay) for name, delay in owners.parked())
    shown = f"{min(_PARKED, len(parked))} of {len(parked):,}, {owners.documents.parked:,} documents"
    rows = [(-queued, name, delay or None) for queued, name, delay in parked[:_PARKED]]
    title = f"\nParked owners ({shown}), and their Crawl-delay in seconds"
    yield Rows("parked_owners", ("queued", "owner", "crawl_delay"), rows, title, digits=0)


def _hosts(crawl: StoredCrawl, most: int) -> Iterator[Part]:
    queued = Progress(crawl.frontier, "Reading the frontier", len(crawl.frontier), unit=" documents")
    counts = Counter(host_of(entry.url or entry.key) or "(no host)" for entry in queued)
    yield _largest("host", counts, most)


def _largest(what: str, queued: Mapping[Any, int], most: int) -> Rows:
    """Return a table of the hosts or partitions with the most documents."""
    first = nsmallest(most, queued.items(), key=lambda item: (-item[1], item[0]))
    rows = [(count, name) for name, count in first]
    return Rows(f"{what}s", ("queued", what), rows, f"\n{what.title()}s ({len(rows):,} of {len(queued):,})")


def _best(crawl: StoredCrawl, most: int) -> Iterator[Part]:
    rows = [(entry.score, entry.key, entry.url) for entry in crawl.frontier.best(most)]
    yield Rows("best", ("score", "id", "url"), rows, "\nThe best documents", digits=6)


def _leases(crawl: StoredCrawl) -> Iterator[Part]:
    leases = crawl.frontier.leases()
    rows = [(entry.score, entry.attempts, entry.key, entry.url) for entry, _ in leases[:_LEASES]]
    title = f"\nOn lease ({len(rows)} of {len(leases):,}), by attempt"
    yield Rows("leases", ("score", "attempts", "id", "url"), rows, title, digits=6)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not 0 or a positive integer")
    return int(text)


# -- of a storage ------------------------------------------------------------------------------------------------------


def _show_stored(url: str, settings: BaseSettings, most: int) -> Iterator[Part]:
    """Yield the facts of the storage. Raises InputError at the end if a finished crawl has lost documents."""
    # obstore is an extra
    from crawl4llm.cluster import History

    history = History(url)
    counts = read_json(run_folder(url, settings) / STATS)
    queued = _queued(history)
    yield Fact("crawl", history.crawl["facts"]["crawl_id"])
    reason = history.end["reason"] if history.end else None
    yield Fact("ended", reason, reason or "no")
    crawled = counts.get(f"{PREFIX}pages/crawled", 0)
    yield Fact("wanted", history.max_pages, "")
    yield Fact("crawled", crawled, f"{crawled:,} of {history.max_pages:,} pages")
    yield Fact("queued", sum(queued))
    for outcome in ("failed", "dropped"):
        start = f"{PREFIX}{outcome}/"
        yield _by_reason(outcome, {key.removeprefix(start): counts[key] for key in counts if key.startswith(start)})
    yield _largest("partition", dict(enumerate(queued)), most)
    if history.end is not None and sum(queued) != (stated := counts.get(f"{PREFIX}frontier/queued")):
        raise InputError(f"STORAGE {url} is damaged: {sum(queued):,} documents are queued, and should be {stated:,}")


def _queued(history: History) -> list[int]:
    """Return how many documents each partition has queued; a crawl that has ended took some of its last offers."""
    if history.is_continuous:
        return history.queued()
    last = history.last_iteration()
    if last is None:
        return []
    of = history.iteration(last)
    offers = of.offers() or (history.iteration(last - 1).offers() if last else [])
    ended = [0] * len(offers)
    if history.end is not None and of.plan() is not None:
        ended = [sum(row[1:3] != [None, None] for row in one.rows) for one in of.exchanges()] or ended
    return [offer["queued"] - count for offer, count in zip(offers, ended, strict=True)]


# -- export ------------------------------------------------------------------------------------------------------------


def _export(_settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    """Write the file, or yield its lines if that is ``-``."""
    jobdir, name = opts.arguments
    path = Path(name)
    if not path.name:
        raise InputError(f"--export {name!r} is not the name of a file")
    if name == "-" and opts.json:
        raise InputError(
            "--json cannot be combined with --export -, which prints one JSON object per line; leave it out"
        )
    with StoredCrawl(Path(jobdir)) as crawl:
        if name == "-":
            yield from _lines(crawl)
            return
        _write(path, crawl)
        number = len(crawl.frontier) + len(crawl.aside)
        yield Fact("documents", number, "")
        yield Line(f"{number:,} documents written to {path}")


def _lines(crawl: StoredCrawl) -> Iterator[str]:
    number = len(crawl.frontier) + len(crawl.aside)
    for entry in Progress(chain(crawl.frontier.best(), crawl.aside), "Exporting", number, unit=" documents"):
        others = {name: getattr(entry, name) for name in ("url", "score", "depth", "parent", "attempts")}
        yield json.dumps({"id": entry.key, **others})


def _write(path: Path, crawl: StoredCrawl) -> None:
    """Write a new file whole or not at all."""
    with as_input_error(f"--export {path} cannot be written"), ExitStack() as opened:
        check_new_file(path, "--export")
        file = opened.enter_context(replacing(path, path.with_name(f"{path.name}.{os.getpid()}.open")))
        opened.callback(refuse_to_overwrite, path, "--export")
        if path.suffix == ".gz":  # without name and time: equal frontiers make equal files
            file = cast(BinaryIO, opened.enter_context(gzip.GzipFile("", "wb", 6, file, mtime=0)))
        for line in _lines(crawl):
            file.write(line.encode("ascii") + b"\n")


# -- verify ------------------------------------------------------------------------------------------------------------


def _verify(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    """Yield ``sound`` and the equation, or raise InputError that names the file and its fault."""
    with StoredCrawl(Path(opts.arguments[0]), thorough=True) as crawl:
        crawl.check_balance()
        equation = str(crawl.balance)
        if crawl.state.crawl is not None:
            output = crawl.output(settings)
            _check_lines(output / crawl_log.NAME, crawl.state.log.pages, crawl.archived)
            _check_lines(output / crawl_log.FAILURES, crawl.state.log.failures)
            if crawl.state.archive.index_offset:
                _check_archive(output / WARC, INDEX_NAME, crawl.state.archive.pages, crawl.archived)
            if crawl.state.archive.text_index_offset:
                _check_archive(output / WARC, TEXT_INDEX_NAME, crawl.state.archive.texts)
    yield Fact("sound", value=True, shown="")
    yield Fact("equation", equation, "")
    yield Line(f"sound: {equation}")


def _check_lines(path: Path, size: int, lines: int | None = None) -> None:
    """Check that the first ``size`` bytes of a log are ``lines`` lines of JSON."""
    _check_size(path, size)
    found = read = 0
    with (
        as_input_error(f"{path} cannot be read"),
        open_input(path) as file,
        Progress[None](None, path.name, size, unit="B", unit_scale=True) as bar,
    ):
        while read < size:
            line = file.readline(min(size - read, _LONGEST_LINE))
            found += 1
            read += len(line)
            if not line.endswith(b"\n") or json_or_none(line) is None:
                raise _damaged(f"{path} line {found:,}")
            bar.update(len(line))
    if lines not in {None, found}:
        raise _damaged(f"{path}, which holds {found:,} pages of {lines:,},")


def _check_archive(directory: Path, name: str, position: SeriesPosition, pages: int | None = None) -> None:
    """Check that an index has ``pages`` pages, and that its files are long enough for them."""
    index = directory / name
    _check_size(index, position.index_offset)
    ends: dict[str, int] = {}
    found, filename = 0, ""
    for entry in cdxj.read(index, redirects=True, end=position.index_offset):
        filename = entry.filename
        ends[filename] = entry.offset + entry.length
        found += bool(entry.id)
    if pages not in {None, found}:
        raise _damaged(f"{index}, which holds {found:,} pages of {pages:,},")
    ends[filename] = max(ends[filename], position.offset)  # with the metadata of its last entry
    for filename, end in ends.items():
        _check_size(within(directory, filename, index), end)


def _check_size(path: Path, size: int) -> None:
    """Check that a file, whose name may end with ``.open``, holds ``size`` bytes."""
    # A crawl that is running may rename the file between two looks.
    for place in (path, path.with_name(path.name + OPEN_SUFFIX), path):
        with as_input_error(f"{place} cannot be read"), suppress(FileNotFoundError):
            if (found := place.stat().st_size) < size:
                raise lost(place, f"holds {found:,} bytes", f"{size:,}")
            return
    raise lost(path, "is missing", f"{size:,} bytes of it")


def _damaged(what: str) -> InputError:
    return InputError(f"{what} is damaged; restore it from a backup or begin a new crawl")


SHOW = Action("Show the crawl.", _run, add_options=_add_options)
EXPORT = Action(
    "write the queued documents with their scores as JSONL, best first; compressed if the name ends with .gz, to the "
    "terminal for -",
    _export,
    "FILE",
)
VERIFY = Action("check the JOBDIR, and that the output holds everything that was committed", _verify)
