"""``scrapy frontier JOBDIR --purge DOMAIN``: the removal of a domain that opted out from the frontier."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from crawl4llm.base.bars import Progress
from crawl4llm.base.crawl_log import FAILURES, failure_line
from crawl4llm.base.domains import Domain, domain_to_purge
from crawl4llm.base.errors import PageError, as_input_error
from crawl4llm.base.files import AppendFile
from crawl4llm.base.pages import Corpus
from crawl4llm.base.reasons import OPT_OUT
from crawl4llm.base.run_folder import WARC
from crawl4llm.base.tables import Fact, Part
from crawl4llm.base.terminal import add_question_options, can_ask, confirm
from crawl4llm.base.urls import host_of
from crawl4llm.base.whole_files import replacing
from crawl4llm.crawl import StoredCrawl, add_purged, move_output, set_seeds
from crawl4llm.frontier import Entry, Outcome
from crawl4llm.tools._action import Action
from crawl4llm.tools.frontier.change import corpus_of
from crawl4llm.warc import INDEX_NAME, cdxj

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def _run(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    """Drop the domain's documents as ``opt_out``; yield their number, and the list of its archived pages."""
    jobdir, given = opts.arguments
    domain = domain_to_purge(given.strip(), whole_suffix=opts.whole_suffix)
    with StoredCrawl(Path(jobdir), change=True) as crawl:
        crawl.require_begun()
        output = crawl.output(settings)
        with closing(_Purge(crawl, domain, settings, output)) as purge:
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


class _Purge:
    """The purge of a domain from a crawl's frontier; each step is committed with its lines in the log."""

    def __init__(self, crawl: StoredCrawl, domain: Domain, settings: BaseSettings, output: Path) -> None:
        self._crawl = crawl
        self._domain = domain
        self._settings = settings
        self._failures = output / FAILURES
        self._opened = ExitStack()
        self.close = self._opened.close

    @cached_property
    def _log(self) -> AppendFile:
        """The log of failures; lines that were not committed are dropped when it is first asked for."""
        return self._opened.enter_context(closing(AppendFile(self._failures, self._crawl.state.log.failures)))

    @cached_property
    def _corpus(self) -> Corpus:
        return self._opened.enter_context(closing(corpus_of(self._crawl, self._settings)))

    def going(self) -> str:
        """Return a text with the counts."""
        frontier, aside = self._crawl.frontier, self._crawl.aside
        number = len(frontier) + len(aside)
        reading = Progress(chain(frontier, aside), "Reading the frontier", number, unit=" documents")
        queued = sum(map(self._is_unwanted, reading))
        leased = sum(self._is_unwanted(lease.entry) for lease in frontier.leases())
        injected = sum(self._domain.holds(self._url(key)) for key in self._crawl.state.seeds)
        return f"{queued:,} queued, {leased:,} leased, {injected:,} injected seeds"

    def leases(self) -> int:
        """Drop the documents on lease; returns how many there were."""
        frontier = self._crawl.frontier
        leases = [lease for lease in frontier.leases() if self._is_unwanted(lease.entry)]
        for lease in leases:
            frontier.settle(lease, Outcome.DROPPED, OPT_OUT)
        self._commit([lease.entry for lease in leases])
        return len(leases)

    def queued(self) -> int:
        """Drop the queued documents; returns how many there were."""
        dropped = 0
        frontier, aside = self._crawl.frontier.rewrite(self._is_unwanted), self._crawl.aside.purge(self._is_unwanted)
        for gone in Progress(chain(frontier, aside), "Purging", unit=" pieces"):
            self._crawl.frontier.count_dropped(OPT_OUT, len(gone))
            self._commit(gone)
            dropped += len(gone)
        return dropped

    def injected_seeds(self) -> int:
        """Take back seeds that the crawl has not taken up; returns how many there were."""
        seeds = self._crawl.state.seeds
        left = [key for key in seeds if not self._domain.holds(self._url(key))]
        if len(left) < len(seeds):
            set_seeds(self._crawl.store, left)
            self._crawl.store.commit()
        return len(seeds) - len(left)

    def _is_unwanted(self, entry: Entry) -> bool:
        return self._domain.holds(entry.url or self._url(entry.key))

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
        self._crawl.frontier.save()
        move_output(self._crawl.store, log=self._crawl.state.log._replace(failures=self._log.size))
        self._crawl.store.commit()


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


PURGE = Action(
    "remove a domain that opted out, and all below it, from a paused crawl's frontier; list its archived pages",
    _run,
    "DOMAIN",
    add_question_options,
)
