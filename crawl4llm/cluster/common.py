"""What the partitions of a crawl have in common, in batch and in continuous order."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from crawl4llm.cluster.partitions import Partitions
from crawl4llm.cluster.segments import Lines, Segments
from crawl4llm.cluster.storage import Storage
from crawl4llm.crawl.commits import Commits, LmdbCrawlStore
from crawl4llm.crawl.counting import Balance
from crawl4llm.crawl.crawl import Crawl
from crawl4llm.crawl.opening import open_crawl
from crawl4llm.crawl.page_writer import RatePages
from crawl4llm.crawl.scope import Limits
from crawl4llm.crawl.turns import Clock
from crawl4llm.options import Options
from crawl4llm.parts import Parts
from crawl4llm.policies import Policy
from crawl4llm.warc import ArchiveInfo


class Common(NamedTuple):
    """What the partitions of a crawl share."""

    options: Options
    make_policy: Callable[[], Policy]
    rate: RatePages
    provenance: Mapping[str, str]
    limits: Limits
    parts: Parts
    url_of_seed: Callable[[str], str] | None
    info: ArchiveInfo
    seeds: Sequence[str]
    partitions: Partitions
    storage: Storage
    folder: Path
    """For what is thrown away with this process."""
    clock: Clock | None = None
    """Continuous order: the time by which owners wait, if they do."""
    concurrent_leases: int = 1
    """Continuous order: documents of this worker that may be in flight."""
    tells_sites_apart: bool = False
    """True: a site may never answer, and then it holds up no other site of its owner."""


class OnePartition:
    """A partition: a crawl of its own documents, and what the storage knows of it."""

    crawl: Crawl
    _store: LmdbCrawlStore

    def __init__(self, number: int, common: Common) -> None:
        self.number = number
        self._common = common
        self._folder = common.folder / f"{number:04}"
        self._segments = Segments(self._folder / "warc", common.options, common.info, number)
        self._lines = Lines()

    def _open(self, options: Options, policy: Policy, commits: Commits, **more: Any) -> Crawl:
        """Return its crawl. ``more``: other arguments of :func:`crawl4llm.crawl.opening.open_crawl`."""
        common = self._common
        return open_crawl(
            options,
            policy=policy,
            rate=common.rate,
            frontier=self._store.frontier,
            visited=self._store.visited,
            archive=self._segments,
            log=self._lines,
            commits=commits,
            provenance=common.provenance,
            limits=common.limits,
            url_of_seed=common.url_of_seed,
            **{"parts": common.parts, **more},
        )

    def counted(self) -> Counter[str]:
        """Return what was counted by this worker."""
        return self.crawl.counters.counts

    @property
    def balance(self) -> Balance:
        """The states of its documents."""
        return self.crawl.balance

    def seeds(self) -> list[str]:
        """Return the seeds that are its own."""
        return [key for key in self._common.seeds if self._common.partitions.of(key) == self.number]

    def close(self) -> None:
        """Throw away what the storage does not have."""
        self._store.tables.close()
        shutil.rmtree(self._folder, ignore_errors=True)
