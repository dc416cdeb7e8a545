"""The stored crawl: a crawl as its JOBDIR holds it, for the actions of ``scrapy frontier``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crawl4llm.base.crawl_log import FAILURES, NAME
from crawl4llm.base.errors import InputError
from crawl4llm.base.run_folder import WARC
from crawl4llm.base.within import require_within
from crawl4llm.crawl.commits import State, read_state
from crawl4llm.crawl.counting import Balance, balance, counted
from crawl4llm.crawl.jobdir import JobDir, find_output
from crawl4llm.crawl.sited_frontier import unanswered_in
from crawl4llm.crawl.store_check import check_store
from crawl4llm.frontier import DurableVisited, Entry, Store, StoredAside, StoredFrontier, stored_frontier
from crawl4llm.parts import scopes_of
from crawl4llm.warc import INDEX_NAME, TEXT_INDEX_NAME

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


class StoredCrawl:
    """The last commit of a crawl, which may be running; with ``change``, of a paused one, to be changed.

    Use it in a ``with`` statement. Each object is opened when it is first used.
    """

    def __init__(self, path: Path, *, change: bool = False, thorough: bool = False) -> None:
        """Check the store, ``thorough`` as in check_store, and lock the JOBDIR for a change. Raises InputError."""
        self.path = path
        with ExitStack() as opened:
            self._dir = JobDir(path, lock=False)  # with a lock it would make a JOBDIR where there is none
            self.holder = self._dir.holder()
            """The process that crawls, or that changes the JOBDIR as this one does; None if there is no other."""
            if change:
                self._dir = JobDir(path)
                opened.callback(self._dir.close)
            assert self._dir.job is not None
            self.job: dict[str, Any] = self._dir.job
            self.store_path = self._dir.store_path
            check_store(self.store_path, self.job["crawl_id"], thorough=thorough)
            self._readonly = not change
            self._opened = opened.pop_all()

    def __enter__(self) -> StoredCrawl:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    @cached_property
    def store(self) -> Store:
        """The store; processes must be forked before it is opened."""
        store = Store(self.store_path, readonly=self._readonly)
        self._opened.callback(store.close)
        return store

    @cached_property
    def state(self) -> State:
        """The state of the crawl without frontier and visited set."""
        return read_state(self.store)

    @cached_property
    def frontier(self) -> StoredFrontier:
        """The frontier."""
        return stored_frontier(self.store)

    @cached_property
    def aside(self) -> StoredAside:
        """Documents whose owner or URL prefix has no budget, and those of sites that have not answered."""
        return StoredAside(self.store)

    def set_aside(self, owner: str | None = None) -> Iterator[tuple[str, Entry]]:
        """Yield the documents without a budget, all or those of an owner, each with the owner or URL prefix whose
        budget is used up."""
        return self.aside.waiting(lambda entry: scopes_of(entry.url or entry.key), owner)

    @cached_property
    def unanswered(self) -> int:
        """The number of documents of sites that have not answered."""
        return sum(number for _, _, number in unanswered_in(self.aside))

    @cached_property
    def visited(self) -> DurableVisited:
        """The visited set, without its filter: a look-up reads the disk."""
        return DurableVisited(self.store, self._dir.filter_path, cache=1, filter_bytes=1)

    @property
    def pages(self) -> int:
        """Crawled pages that count towards N."""
        return counted(self.counts)

    @property
    def archived(self) -> int:
        """Crawled pages in log and archive."""
        return int(self.counts.get("pages/crawled", 0))

    @property
    def counts(self) -> Mapping[str, int]:
        """The counts of the crawl, by stats key."""
        counts: Mapping[str, int] = self.state.crawl["counts"] if self.state.crawl else {}
        return counts

    @cached_property
    def balance(self) -> Balance:
        """The states of its documents."""
        owners = self.frontier.owners if self.frontier.by_owners else None
        return balance(self.visited, self.frontier, self.counts, owners, len(self.aside))

    def check_balance(self) -> None:
        """Raise InputError unless each document discovered is in exactly one state."""
        if problem := self.balance.problem:
            raise self.store.damaged(problem)

    def output(self, settings: BaseSettings) -> Path:
        """Return its output directory, or the one to which OUTPUT_DIR says it was moved. Raises InputError, also if a
        file in it is a link that leads out of it."""
        output = find_output(self.path, self.job, settings.get("OUTPUT_DIR"))
        warc = output / WARC
        require_within(output, output / NAME, output / FAILURES, warc, warc / INDEX_NAME, warc / TEXT_INDEX_NAME)
        return output

    def require_begun(self) -> None:
        """Raise InputError if the crawl was stopped before its seeds were queued."""
        if self.state.crawl is None:
            raise InputError(f"the crawl in JOBDIR {self.path} has not begun; start it again first")
