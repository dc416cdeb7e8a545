"""``scrapy frontier JOBDIR``: ``--inject FILE`` adds seeds, ``--compact`` makes the store smaller and faster.

``--purge DOMAIN`` removes a domain that opted out from the frontier. ``--block DOMAIN`` and ``--unblock DOMAIN`` work
also while the crawl runs, and on a storage.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from crawl4llm.base.bars import Progress
from crawl4llm.base.crawl_log import FAILURES, failure_line
from crawl4llm.base.domains import Domain, domain_to_purge
from crawl4llm.base.errors import InputError, PageError, as_input_error
from crawl4llm.base.files import AppendFile
from crawl4llm.base.object_store import is_storage
from crawl4llm.base.pages import Corpus
from crawl4llm.base.reasons import OPT_OUT
from crawl4llm.base.run_folder import LIVE, SETTINGS, WARC, read_json
from crawl4llm.base.tables import Fact, Part, facts
from crawl4llm.base.terminal import add_question_options, can_ask, confirm
from crawl4llm.base.urls import host_of
from crawl4llm.base.whole_files import replacing
from crawl4llm.crawl import (
    Control,
    JobDir,
    LiveCorpus,
    StoredCrawl,
    add_purged,
    add_seeds,
    find_output,
    move_output,
    publish_blocked,
    read_seeds,
    set_blocked,
    set_seeds,
)
from crawl4llm.engine import take_over
from crawl4llm.frontier import Entry, Outcome, put_in_place
from crawl4llm.options import read_options
from crawl4llm.tools._action import Action
from crawl4llm.warc import INDEX_NAME, cdxj
from simulate import open_corpus

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def _corpus_of(crawl: StoredCrawl, settings: BaseSettings) -> Corpus:
    """Open the crawled corpus, or the live web. Raises InputError, also if the corpus has changed.

    Settings on the command line count, then those of the crawl's last run, then the project's.
    """
    output = crawl.output(settings)
    last_run = read_json(output / SETTINGS)
    if last_run.get("corpus") == LiveCorpus.name:
        return LiveCorpus()
    take_over(settings, last_run, output)
    corpus = open_corpus(settings)
    corpus.check()
    if corpus.identity() != crawl.job["digests"].get("corpus_digest"):
        raise InputError(
            f"CORPUS {settings['CORPUS']} is not the corpus of JOBDIR {crawl.path}; give that one: -s CORPUS=PATH"
        )
    return corpus


def _inject(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    """Store the seeds that were not visited; yield counts by kind."""
    jobdir, given = map(Path, opts.arguments)
    with StoredCrawl(jobdir, change=True) as crawl:
        with closing(_corpus_of(crawl, settings)) as corpus:
            seeds = read_seeds(given, corpus)
        crawl.require_begun()
        waiting = set(crawl.state.seeds)
        not_waiting = [key for key in seeds.keys if key not in waiting]
        new = [key for key in not_waiting if key not in crawl.visited]
        if new:
            add_seeds(crawl.store, new)
            crawl.store.commit()
        counts = {
            "new": len(new),
            "visited": len(not_waiting) - len(new),
            "injected before": len(seeds.keys) - len(not_waiting),
            **{kind.rpartition("/")[2]: count for kind, count in seeds.counts.items() if kind != "seeds/given"},
        }
        yield from facts(counts)
        wanted = read_options(settings).crawl_max_pages
        if new and crawl.pages >= wanted:
            yield f"The crawl has all its pages: resume it with CRAWL_MAX_PAGES greater than {wanted}."


def _compact(_settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    """Merge the frontier, copy the store, put the copy in its place; yield the sizes before and after.

    Killed at any moment it leaves the store before or the one after, each with the same crawl.
    """
    with StoredCrawl(Path(opts.arguments[0]), change=True) as crawl:
        before = crawl.store_path.stat().st_size
        for _ in Progress(crawl.frontier.rewrite(lambda _entry: False), "Merging", unit=" pieces"):
            crawl.frontier.save()
            crawl.store.commit()
        copy = crawl.store_path.with_name(f"{crawl.store_path.name}.compact")
        try:
            with as_input_error(f"{copy} cannot be written"):
                copy.unlink(missing_ok=True)  # of an earlier attempt that was killed
                crawl.store.copy_to(copy)
                put_in_place(copy, crawl.store_path)
        finally:
            copy.unlink(missing_ok=True)
        after = crawl.store_path.stat().st_size
    yield Fact("before", before, f"{before / 1e6:,.1f} MB")
    yield Fact("after", after, f"{after / 1e6:,.1f} MB")


def _block(settings: BaseSettings, opts: argparse.Namespace, *, blocked: bool) -> Iterator[Part]:
    """Change the control file, and the lists for exports; yield the current state. The store is not opened."""
    given, name = Path(opts.arguments[0]), opts.arguments[1]
    domain = domain_to_purge(name.strip(), whole_suffix=opts.whole_suffix or not blocked)
    if is_storage(opts.arguments[0]):
        yield from _in_storage(opts.arguments[0], domain.name, blocked=blocked)
        return
    jobdir = JobDir(given, lock=False)
    assert jobdir.job is not None
    if jobdir.job["digests"].get("corpus_digest") != LIVE:
        raise InputError(f"JOBDIR {given} holds a simulation, which sends nothing; use --purge while it is paused")
    control, changed = set_blocked(given, domain.name, blocked=blocked)
    holder = jobdir.holder()
    when = "when the crawl goes on" if holder is None else f"process {holder}, which crawls, applies it within a second"
    yield from _told(domain.name, control, when if changed else None, blocked=blocked)
    publish_blocked(given, find_output(given, jobdir.job, settings.get("OUTPUT_DIR")))


def _in_storage(url: str, name: str, *, blocked: bool) -> Iterator[Part]:
    """Tell all workers of a crawl, even those that join later, the blocked domains; yield the current state."""
    # obstore is an extra
    from crawl4llm.cluster import Controls, History

    history = History(url)
    if history.crawl["facts"].get("corpus") != LIVE:
        raise InputError(f"STORAGE {url} holds a simulation, which sends nothing")
    controls = Controls(history.storage)
    changed = controls.set_blocked(name, blocked=blocked)
    when = "each worker applies it within CLUSTER_LEASE seconds, or sends nothing" if changed else None
    yield from _told(name, controls.control, when, blocked=blocked)


def _told(name: str, control: Control, when: str | None, *, blocked: bool) -> Iterator[Part]:
    """Yield the current state; ``when``: None if it is unchanged."""
    what = "blocked" if blocked else "not blocked"
    yield Fact("blocked", list(control.blocked), "")
    yield f"{name} is {what}{f': {when}' if when else ', as before'}; in all {len(control.blocked):,} domains"


# -- purge -------------------------------------------------------------------------------------------------------------


def _purge(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    """Drop the domain's documents as ``opt_out``; yield their number, and the list of its archived pages."""
    jobdir, given = opts.arguments
    domain = domain_to_purge(given.strip(), whole_suffix=opts.whole_suffix)
    with StoredCrawl(Path(jobdir), change=True) as crawl:
        crawl.require_begun()
        output = crawl.output(settings)
        purge = _Purge(crawl, domain, settings, output)
        with purge.opened:
            if can_ask() and not opts.yes:
                confirm(f"drop {domain.name} and all below it from JOBDIR {crawl.path}: {purge.going()}")
            add_purged(crawl.store, domain.name)
            leased, queued, injected = purge.leases(), purge.queued(), purge.injected_seeds()
        listed = output / f"purge-{domain.name}.jsonl"
        archived = _list_archived(crawl, domain, output / WARC / INDEX_NAME, listed)
    yield Fact("queued", queued, f"{queued:,} dropped")
    yield Fact("leased", leased, f"{leased:,} dropped")
    yield Fact("injected", injected, f"{injected:,} seeds taken back")
    yield Fact("archived", archived, f"{archived:,}{f', listed for removal in {listed}' if archived else ''}")
    yield Fact("listing", listed if archived else None, "")


@dataclass
class _Purge:
    """The purge of a domain from a crawl's frontier; each step is committed with its lines in the log."""

    crawl: StoredCrawl
    domain: Domain
    settings: BaseSettings
    output: Path
    opened: ExitStack = field(default_factory=ExitStack)
    """Closes the log and the corpus."""

    @cached_property
    def _log(self) -> AppendFile:
        """The log of failures; lines that were not committed are dropped when it is first asked for."""
        return self.opened.enter_context(closing(AppendFile(self.output / FAILURES, self.crawl.state.log.failures)))

    @cached_property
    def _corpus(self) -> Corpus:
        return self.opened.enter_context(closing(_corpus_of(self.crawl, self.settings)))

    def going(self) -> str:
        """Return a text with the counts."""
        frontier, aside = self.crawl.frontier, self.crawl.aside
        number = len(frontier) + len(aside)
        reading = Progress(chain(frontier, aside), "Reading the frontier", number, unit=" documents")
        queued = sum(map(self._is_unwanted, reading))
        leased = sum(self._is_unwanted(lease.entry) for lease in frontier.leases())
        injected = sum(self.domain.holds(self._url(key)) for key in self.crawl.state.seeds)
        return f"{queued:,} queued, {leased:,} leased, {injected:,} injected seeds"

    def leases(self) -> int:
        """Drop the documents on lease; returns how many there were."""
        frontier = self.crawl.frontier
        leases = [lease for lease in frontier.leases() if self._is_unwanted(lease.entry)]
        for lease in leases:
            frontier.settle(lease, Outcome.DROPPED, OPT_OUT)
        self._commit([lease.entry for lease in leases])
        return len(leases)

    def queued(self) -> int:
        """Drop the queued documents; returns how many there were."""
        dropped = 0
        frontier, aside = self.crawl.frontier.rewrite(self._is_unwanted), self.crawl.aside.purge(self._is_unwanted)
        for gone in Progress(chain(frontier, aside), "Purging", unit=" pieces"):
            self.crawl.frontier.count_dropped(OPT_OUT, len(gone))
            self._commit(gone)
            dropped += len(gone)
        return dropped

    def injected_seeds(self) -> int:
        """Take back seeds that the crawl has not taken up; returns how many there were."""
        seeds = self.crawl.state.seeds
        left = [key for key in seeds if not self.domain.holds(self._url(key))]
        if len(left) < len(seeds):
            set_seeds(self.crawl.store, left)
            self.crawl.store.commit()
        return len(seeds) - len(left)

    def _is_unwanted(self, entry: Entry) -> bool:
        return self.domain.holds(entry.url or self._url(entry.key))

    def _url(self, key: str) -> str:
        """Return the URL of a seed: its key, or the URL in the corpus; empty if it is unknown."""
        if host_of(key):
            return key
        try:
            return self._corpus.page(key).url
        except PageError:
            return ""

    def _commit(self, dropped: Iterable[Entry]) -> None:
        failures = (failure_line(Outcome.DROPPED.value, OPT_OUT, entry) for entry in dropped)
        self._log.append("".join(f"{json.dumps(failure)}\n" for failure in failures).encode())
        self._log.sync()
        self.crawl.frontier.save()
        move_output(self.crawl.store, log=self.crawl.state.log._replace(failures=self._log.size))
        self.crawl.store.commit()


def _list_archived(crawl: StoredCrawl, domain: Domain, index: Path, listed: Path) -> int:
    """Write the places of the domain's pages, if there are any; returns their number."""
    if not crawl.state.archive.index_offset:
        return 0
    found = (entry for entry in islice(cdxj.read(index), crawl.archived) if domain.holds(entry.url))
    archived = 0
    if (first := next(found, None)) is None:
        return archived
    with as_input_error(f"{listed} cannot be written"), replacing(listed) as file:
        for entry in chain([first], found):
            place = {name: getattr(entry, name) for name in ("id", "url", "filename", "offset", "length")}
            file.write(f"{json.dumps(place)}\n".encode("ascii"))
            archived += 1
    return archived


INJECT = Action("add the seeds in a file to a paused crawl, which takes them up when resumed", _inject, "FILE")
COMPACT = Action("rewrite a paused crawl's store without free space", _compact)
BLOCK = Action(
    "block a domain and all below it: send it no more requests, and leave it out of exports; works while the crawl "
    "runs",
    partial(_block, blocked=True),
    "DOMAIN",
)
UNBLOCK = Action("undo --block for a domain", partial(_block, blocked=False), "DOMAIN")
PURGE = Action(
    "remove a domain that opted out, and all below it, from a paused crawl's frontier; list its archived pages",
    _purge,
    "DOMAIN",
    add_question_options,
)
