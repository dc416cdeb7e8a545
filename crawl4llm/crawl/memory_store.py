"""The store and the commits of a crawl that ends with its process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from crawl4llm.frontier import Frontier, Lease
from crawl4llm.frontier.memory import MemoryVisited
from crawl4llm.warc import Archive

if TYPE_CHECKING:
    from crawl4llm.crawl.commits import Committed, CrawlStore
    from crawl4llm.crawl.counting import Balance
    from crawl4llm.frontier.visited import VisitedSet


class MemoryCrawlStore:
    """Implements :class:`crawl4llm.crawl.commits.CrawlStore`; ends with the process."""

    def __init__(self, frontier: Frontier) -> None:
        self.frontier = frontier
        self.visited: VisitedSet = MemoryVisited()

    def leases(self) -> list[Lease]:
        """Return nothing: no process comes after this one."""
        return []

    def commit(self, balance: Balance, state: Mapping[str, Any]) -> None:
        """Raise RuntimeError where a document is lost; nothing lasts."""
        balance.check()


class NoCommits:
    """The commits of a crawl that ends with its process: log and archive are all that stays."""

    lasting = False

    def __init__(self, archive: Archive, store: CrawlStore | None = None) -> None:
        self._archive = archive
        self._store = store

    def commit(self, crawl: Committed) -> None:
        """Finish archive files that are full."""
        self._archive.flush()

    def commit_now(self, crawl: Committed) -> None:
        """Do the same, and see to it that no document was lost: RuntimeError."""
        self._archive.flush()
        if self._store is not None:
            self._store.commit(crawl.balance, {})
