"""The commit protocol: when and how the state of a crawl becomes durable."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import index
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from crawl4llm.base import received
from crawl4llm.base.crawl_log import LogPosition
from crawl4llm.base.input_files import parse_json
from crawl4llm.crawl.counting import Balance
from crawl4llm.crawl.page_writer import CrawlLog
from crawl4llm.crawl.pieces import StoredPieces
from crawl4llm.frontier import DurableVisited, Store, StoredFrontier
from crawl4llm.options import Options
from crawl4llm.policies import Pieces, Policy
from crawl4llm.warc import Archive, ArchivePosition, SeriesPosition


class Committed(Protocol):
    """A crawl, or a partition of one, whose state is committed."""

    @property
    def crawled(self) -> int:
        """Pages crawled so far."""

    @property
    def balance(self) -> Balance:
        """The states of its documents."""

    def save(self) -> Mapping[str, Any]:
        """Return its state in JSON values."""

    def committed(self) -> None:
        """Called after each commit."""


class Kept(Protocol):
    """An object that keeps its state in pieces."""

    def keep_in(self, pieces: Pieces) -> None:
        """Restore the state from ``pieces``, and keep it there from now on. Raises StoreError."""


CRAWL, _POLICY, _SEEDS, _PURGED = b"crawl", b"policy", b"seeds", b"purged"


class State(NamedTuple):
    """The last commit, without frontier and visited set."""

    crawl: dict[str, Any] | None
    """None if the crawl had not started."""
    policy: bytes
    log: LogPosition
    archive: ArchivePosition
    seeds: list[str]
    """Keys that were added to a paused crawl."""
    purged: list[str]
    """Domains that opted out."""


def read_state(store: Store) -> State:
    """Return the state at the last commit. Raises StoreError."""
    seeds, purged = (store.get("state", name) for name in (_SEEDS, _PURGED))
    try:
        state = store.stated(CRAWL, received.CRAWL)
        return State(
            state.get("crawl"),
            store.get("state", _POLICY) or b"",
            LogPosition(*map(index, state.get("log", (0, 0)))),
            ArchivePosition(*map(index, (*state.get("archive", (0, 0, 0)), *state.get("texts", ())))),
            parse_json(seeds) if seeds else [],
            parse_json(purged) if purged else [],
        )
    except (AttributeError, TypeError, ValueError):
        raise store.damaged("its state is not that of a crawl") from None


def add_seeds(store: Store, keys: list[str]) -> None:
    """Store seeds that the crawl visits when it is resumed."""
    set_seeds(store, [*read_state(store).seeds, *keys])


def set_seeds(store: Store, keys: list[str]) -> None:
    """Replace the seeds that the crawl visits when it is resumed."""
    store.put("state", _SEEDS, json.dumps(keys).encode())


def add_purged(store: Store, domain: str) -> None:
    """Make the crawl drop a domain from now on."""
    domains = {*read_state(store).purged, domain}
    store.put("state", _PURGED, json.dumps(sorted(domains)).encode())


def move_output(store: Store, **ends: LogPosition | SeriesPosition) -> None:
    """Move the end of the ``log``, the ``archive`` or its ``texts`` of a paused crawl, to which something was added or
    from which something was removed. The crawl must have started."""
    state = json.loads(store.get("state", CRAWL) or b"")
    store.put("state", CRAWL, json.dumps({**state, **ends}).encode())


class CrawlStore:
    """The documents of a crawl or partition and the rest of its state, committed together to the tables of a store.

    Visiting documents and pushing them into the frontier are one operation, although they are scored in between. No
    commit can separate the two, because a commit is refused while a document is in no state, or in two.

    A lease belongs to the process that has the store. In a JOBDIR, which is locked, it lasts as long as the process; in
    a cluster as long as the worker's lease of the partition (:class:`crawl4llm.cluster.liveness.Liveness`). The next
    process that opens the store has the leases of the last commit.
    """

    def __init__(
        self, tables: Store, frontier: StoredFrontier, filter_path: Path, options: Options, *, progress: bool = False
    ) -> None:
        """Raise StoreError if the tables are damaged. ``progress``: show a bar while much is read."""
        self.tables = tables
        self.frontier = frontier
        self.visited = DurableVisited(
            tables,
            filter_path,
            cache=options.visited_cache // options.partitions,
            filter_bytes=options.visited_filter_bytes // options.partitions,
            fsync=tables.fsync,
        )
        self.visited.load_filter(progress=progress)
        self._pieces = StoredPieces(tables)
        self._policy: Policy | None = None

    def keep(self, policy: Policy, *others: Kept | None) -> None:
        """Keep the state of the policy and of others from now on."""
        self._policy = policy
        self.keep_others(*others)
        if keep_in := getattr(policy, "keep_in", None):  # policies of others need not have it
            keep_in(self._pieces)

    def keep_others(self, *others: Kept | None) -> None:
        """Keep the state of others than the policy from now on."""
        for other in others:
            if other is not None:
                other.keep_in(self._pieces)

    def state(self) -> dict[str, Any]:
        """Return the state at the last commit; empty before the first one."""
        state: dict[str, Any] = json.loads(self.tables.get("state", CRAWL) or b"{}")
        return state

    def policy_state(self) -> bytes:
        """Return the policy's state, without its pieces."""
        return self.tables.get("state", _POLICY) or b""

    def commit(self, balance: Balance, state: Mapping[str, Any]) -> None:
        """Commit the documents, the ``state`` of the crawl, which is JSON, and that of its policy. ``balance``: of the
        documents. Raises InputError if that fails, and RuntimeError if a document would be lost; the previous commit
        then remains valid."""
        balance.check()
        self.frontier.save()
        self.visited.save()
        self.tables.put("state", CRAWL, json.dumps(state).encode())
        if self._policy is not None:
            self.tables.put("state", _POLICY, self._policy.save())
        self._pieces.save()
        self.tables.commit()


@dataclass
class Commits:
    """Commits the state of a crawl every COMMIT_INTERVAL_PAGES pages or COMMIT_INTERVAL_SECONDS seconds.

    It is called when the state is complete: all merged pages are logged, archived and expanded. The time of a commit
    does not change which pages are crawled or written: after a restart the crawl continues from the last commit as if
    nothing had followed it.
    """

    store: CrawlStore
    log: CrawlLog
    archive: Archive
    options: Options
    _pages: int = 0
    _time: float = field(default_factory=time.monotonic)

    def commit(self, crawl: Committed) -> None:
        """Commit if enough pages were crawled, or enough time has passed, since the last commit."""
        pages, seconds = crawl.crawled - self._pages, time.monotonic() - self._time
        if pages >= self.options.commit_interval_pages or seconds >= self.options.commit_interval_seconds:
            self.commit_now(crawl)

    def commit_now(self, crawl: Committed) -> None:
        """Commit. Raises the errors of :meth:`CrawlStore.commit`."""
        self.log.flush(fsync=self.options.commit_fsync)
        self.archive.flush(fsync=self.options.commit_fsync)
        archive = self.archive.position()
        state = {"crawl": crawl.save(), "log": self.log.position(), "archive": archive.pages, "texts": archive.texts}
        self.store.tables.delete("state", _SEEDS)
        self.store.commit(crawl.balance, state)
        crawl.committed()
        self._pages, self._time = crawl.crawled, time.monotonic()
