"""When a crawl's state is made to last: the seam between the crawl and what it survives in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from crawl4llm.warc import Archive

if TYPE_CHECKING:
    from crawl4llm.crawl.algorithm import Crawl


class Commits(Protocol):
    """Told by the crawl whenever its state is whole: all that was taken is logged, archived and expanded."""

    lasting: bool
    """Whether another process can go on where this one ends."""

    def commit(self, crawl: Crawl) -> None:
        """Make log, archive and state last, all together, if it is time. Raises InputError where that fails."""
        ...

    def commit_now(self, crawl: Crawl) -> None:
        """The same, at once."""
        ...


class NoCommits:
    """For a crawl that ends with its process: log and archive are all that stays."""

    lasting = False

    def __init__(self, archive: Archive) -> None:
        self._archive = archive

    def commit(self, crawl: Crawl) -> None:
        """Finish archive files that are full."""
        self._archive.flush()

    def commit_now(self, crawl: Crawl) -> None:
        """Finish archive files that are full."""
        self._archive.flush()
