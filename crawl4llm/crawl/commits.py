"""The commit protocol: when and how the state of a crawl becomes durable."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from crawl4llm.base.crawl_log import CrawlLog, LogPosition
from crawl4llm.base.input_files import parse_json
from crawl4llm.crawl.pieces import StoredPieces
from crawl4llm.frontier.durable import DurableFrontier
from crawl4llm.frontier.store import Store
from crawl4llm.frontier.visited import DurableVisited
from crawl4llm.options import Options
from crawl4llm.warc import Archive, ArchivePosition
from crawl4llm.warc.series import SeriesPosition

if TYPE_CHECKING:
    from crawl4llm.crawl.algorithm import Crawl


class Commits(Protocol):
    """Commits the state of a crawl. Called when it is whole: all that was taken is logged, archived and expanded."""

    lasting: bool
    """Whether another process can go on where this one ends."""

    def commit(self, crawl: Crawl) -> None:
        """Make log, archive and state last, all together, if it is time. Raises InputError where that fails."""

    def commit_now(self, crawl: Crawl) -> None:
        """Do the same at once."""


_CRAWL, _POLICY, _SEEDS, _PURGED = b"crawl", b"policy", b"seeds", b"purged"


class State(NamedTuple):
    """The last commit, but for frontier and visited set."""

    crawl: dict[str, Any] | None
    """None: the crawl had not started."""
    policy: bytes
    log: LogPosition
    archive: ArchivePosition
    seeds: list[str]
    """Keys that were added to a paused crawl."""
    purged: list[str]
    """Domains that opted out."""


def read_state(store: Store) -> State:
    """Return the state at the last commit. Raises StoreError."""
    stored, seeds, purged = (store.get("state", name) for name in (_CRAWL, _SEEDS, _PURGED))
    try:
        state: dict[str, Any] = parse_json(stored) if stored else {}
        return State(
            state.get("crawl"),
            store.get("state", _POLICY) or b"",
            LogPosition(*map(index, state.get("log", (0, 0))[:2])),  # version 0.1.0 had a third log
            ArchivePosition(*map(index, (*state.get("archive", (0, 0, 0)), *state.get("texts", ())))),
            parse_json(seeds) if seeds else [],
            parse_json(purged) if purged else [],
        )
    except (AttributeError, TypeError, ValueError):
        raise store.damaged("its state is not that of a crawl") from None


def add_seeds(store: Store, keys: list[str]) -> None:
    """Leave seeds for the crawl to take up when it is resumed."""
    set_seeds(store, [*read_state(store).seeds, *keys])


def set_seeds(store: Store, keys: list[str]) -> None:
    """Leave other seeds for the crawl to take up."""
    store.put("state", _SEEDS, json.dumps(keys).encode())


def add_purged(store: Store, domain: str) -> None:
    """Let the crawl drop a domain from now on."""
    domains = {*read_state(store).purged, domain}
    store.put("state", _PURGED, json.dumps(sorted(domains)).encode())


def move_log(store: Store, log: LogPosition) -> None:
    """Let the log of a paused crawl end elsewhere: lines were added to it. The crawl must have started."""
    state = json.loads(store.get("state", _CRAWL) or b"")
    store.put("state", _CRAWL, json.dumps({**state, "log": log}).encode())


def move_output(store: Store, log: LogPosition, archive: SeriesPosition, texts: SeriesPosition) -> None:
    """Let log and archive of a paused crawl end elsewhere: parts of them were taken out. It must have started."""
    state = json.loads(store.get("state", _CRAWL) or b"")
    store.put("state", _CRAWL, json.dumps({**state, "log": log, "archive": archive, "texts": texts}).encode())


@dataclass
class JobCommits:
    """Commits to a JOBDIR every COMMIT_INTERVAL_PAGES pages or COMMIT_INTERVAL_SECONDS seconds.

    When it commits changes nothing of what is crawled or written: after a restart all goes on from the last commit as
    if nothing had come after it.
    """

    lasting = True

    store: Store
    frontier: DurableFrontier
    visited: DurableVisited
    pieces: StoredPieces
    log: CrawlLog
    archive: Archive
    options: Options
    _pages: int = 0
    _time: float = field(default_factory=time.monotonic)

    def commit(self, crawl: Crawl) -> None:
        """Commit if enough pages were crawled, or enough time went by, since the last time."""
        if (
            crawl.crawled - self._pages >= self.options.commit_interval_pages
            or time.monotonic() - self._time >= self.options.commit_interval_seconds
        ):
            self.commit_now(crawl)

    def commit_now(self, crawl: Crawl) -> None:
        """Commit. Raises InputError where that fails, RuntimeError where a document would be lost: then the commit
        before stands."""
        if problem := crawl.balance.problem:
            raise RuntimeError(f"not committed: {problem}")
        self.log.flush(fsync=self.options.commit_fsync)
        self.archive.flush(fsync=self.options.commit_fsync)
        self.frontier.save()
        self.visited.save()
        archive = self.archive.position()
        state = {"crawl": crawl.save(), "log": self.log.position(), "archive": archive.pages, "texts": archive.texts}
        self.store.put("state", _CRAWL, json.dumps(state).encode())
        self.store.put("state", _POLICY, crawl.policy.save())
        self.pieces.save()
        self.store.delete("state", _SEEDS)
        self.store.commit()
        crawl.committed()
        self._pages, self._time = crawl.crawled, time.monotonic()
