"""A worker's part of a crawl: the partitions that are its own, as the scheduler sees one crawl.

Batch and continuous order share who has which partition, how one is dropped, and how a worker leaves.
"""

from __future__ import annotations

import shutil
import time
from abc import abstractmethod
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeVar

from crawl4llm.base.domains import owner_of
from crawl4llm.base.errors import InputError, PageError, Why
from crawl4llm.base.pages import Corpus, PageRecord
from crawl4llm.cluster import objects, shapes
from crawl4llm.cluster.archive import Lines, Segments
from crawl4llm.cluster.liveness import DRAIN, STOP, Liveness
from crawl4llm.cluster.storage import Storage
from crawl4llm.crawl import Balance, Clock, Counters, Crawl, CrawlStore, Driven, Limits, RatePages, Scope, open_crawl
from crawl4llm.frontier import NAME, Lease, MemoryVisited, Owners, Store, VisitedSet
from crawl4llm.options import Options
from crawl4llm.parts import Parts
from crawl4llm.policies import NO, Policy
from crawl4llm.warc import ArchiveInfo

_PLACES: Final = 1 << 20
"""For keys whose partition is remembered, by their hashes, which nobody can choose; 12 MB."""
_UNKNOWN: Final = -1
POLL: Final = 1.0
"""Seconds between two looks for objects of other workers, announced or not."""


class Partitions:
    """Divides documents by the owner of their URL: of the key if that is one, else of the one that the corpus has for
    it. Documents without an owner, or whose page the corpus cannot give, are divided by their keys."""

    def __init__(self, count: int, corpus: Corpus) -> None:
        """Raise InputError if there are several partitions and the corpus does not know URLs."""
        self.count = count
        self._hashes = array("q", bytes(8 * _PLACES))
        self._numbers = array("i", [_UNKNOWN]) * _PLACES
        self._url: Callable[[str], str] | None = getattr(corpus, "site", None) or getattr(corpus, "url", None)
        example = next(iter(corpus.keys()), "")
        if count > 1 and self._url is None and "://" not in example:
            raise InputError(
                f"CRAWL_PARTITIONS = {count} needs a corpus that knows the URL of a key ({corpus.name} does not, and "
                f"its keys are like {example}); set CRAWL_PARTITIONS=1"
            )

    def of(self, key: str) -> int:
        """Return the partition of a document."""
        if self.count == 1:
            return 0
        hashed = hash(key)
        place = hashed % _PLACES
        if self._hashes[place] == hashed and (number := self._numbers[place]) != _UNKNOWN:
            return number
        name = owner_of(self._url_of(key)) or key
        digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        number = int.from_bytes(digest, "big") % self.count
        self._hashes[place], self._numbers[place] = hashed, number
        return number

    def _url_of(self, key: str) -> str:
        if "://" in key or self._url is None:
            return key
        try:
            return self._url(key)
        except PageError:
            return ""


class Common(NamedTuple):
    """The parts that the partitions of a crawl share."""

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
    """For files that are deleted with this process."""
    clock: Clock | None = None
    """Continuous order: the time by which owners wait, if they do."""
    concurrent_leases: int = 1
    """Continuous order: documents of this worker that may be in flight."""
    tells_sites_apart: bool = False
    """True: a site may never answer, and then it holds up no other site of its owner."""


class OnePartition:
    """A partition: a crawl of its own documents, and its state in the storage."""

    crawl: Crawl
    _store: CrawlStore
    _tables: Store

    def __init__(self, number: int, common: Common) -> None:
        self.number = number
        self._common = common
        self._folder = common.folder / f"{number:04}"
        self._path = self._folder / "store" / NAME
        self._path.parent.mkdir(parents=True)
        self._segments = Segments(self._folder / "warc", common.options, common.info, number)
        self._lines = Lines()

    def _open(self, options: Options, policy: Policy, **more: Any) -> Crawl:
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
            provenance=common.provenance,
            limits=common.limits,
            url_of_seed=common.url_of_seed,
            **{"parts": common.parts, **more},
        )

    @contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        """Treat errors with the content of an object as damage. The partition is closed then, because LMDB can crash
        when an open store is collected as garbage."""
        try:
            with self._common.storage.reading(name):
                yield
        except InputError:
            self.close()
            raise

    def counted(self) -> Counter[str]:
        """Return the counts of this worker."""
        return self.crawl.counters.counts

    @property
    def balance(self) -> Balance:
        """The states of its documents."""
        return self.crawl.balance

    def _new_sections(self) -> objects.Sections:
        """Return the sections for links of its pages; with anchors for a policy that learns, and may use them."""
        return objects.Sections(self.number, anchors=getattr(self.crawl.policy, "partitioned", NO) == NO)

    def seeds(self) -> list[str]:
        """Return the seeds that are its own."""
        return [key for key in self._common.seeds if self._common.partitions.of(key) == self.number]

    def close(self) -> None:
        """Discard everything that the storage does not have."""
        self._tables.close()
        shutil.rmtree(self._folder, ignore_errors=True)


P = TypeVar("P", bound=OnePartition)


class WorkerCrawl(Driven, Generic[P]):
    """Drives the partitions of this worker as the scheduler drives one crawl."""

    lasting = True
    finished: str | None = None
    folder: str
    """Of the storage, in which work is put."""

    def __init__(
        self, common: Common, liveness: Liveness, *, visited: VisitedSet | None = None, owners: Owners | None = None
    ) -> None:
        """``visited`` and ``owners`` know the visited documents of this worker's partitions, and whose turn it is."""
        counters = Counters()
        parts = common.parts.begun(counters.counts)
        visited = MemoryVisited() if visited is None else visited
        scope = Scope(visited, (), common.limits, parts, by_owners=owners is not None)
        facts = common.options, common.make_policy(), scope, counters, parts
        super().__init__(*facts, owners, common.clock, common.concurrent_leases)
        self.seeds = len(common.seeds)
        self._common = common
        self._storage = common.storage
        self._liveness = liveness
        self._is_new = not common.storage.folders(self.folder)
        """True if the storage shows no work yet."""
        self._own: dict[int, P] = {}
        """This worker's partitions."""
        self._of: dict[int, tuple[P, Lease]] = {}
        """Leases handed out or ready to be, by the identity of their entry: a partition that comes again has others."""
        self._leaving = False
        self._pages = 0
        """Batch order: pages crawled by all workers before the present batch."""
        self._looked = -POLL

    # -- as the scheduler sees it ---------------------------------------------------------------------------------

    async def begin(self, seeds: Sequence[str], added: Sequence[str] = ()) -> None:
        """Join the workers, and go on to the first documents to fetch."""
        self._liveness.join()
        await self._go_on()

    def requested(self, url: str, purpose: str, unsent: str | None, lease: Lease | None) -> None:
        """Let the partition count it that the document or the URL belongs to, if that is this worker's."""
        found = None if lease is None else self._of.get(id(lease.entry))
        partition = self._own.get(self._common.partitions.of(url)) if found is None else found[0]
        count = super().requested if partition is None else partition.crawl.requested
        count(url, purpose, unsent, lease)

    def fetched(self, lease: Lease, page: PageRecord, status: int) -> None:
        if partition := self._partition_of(lease):
            partition.crawl.fetched(lease, page, status)

    def failed(self, lease: Lease, reason: str, why: Why | None = None, *, final: bool = True) -> None:
        if partition := self._partition_of(lease):
            partition.crawl.failed(lease, reason, why, final=final)

    def dropped(self, lease: Lease, reason: str, why: Why | None = None) -> None:
        if partition := self._partition_of(lease):
            partition.crawl.dropped(lease, reason, why)

    def redirected(self, lease: Lease, page: PageRecord) -> None:
        if partition := self._partition_of(lease):
            partition.crawl.redirected(lease, page)

    def block(self, domains: Sequence[str]) -> None:
        self.scope.block(domains)
        for partition in self._own.values():
            partition.crawl.block(domains)

    @property
    def answered(self) -> int:
        return sum(one.crawl.answered for one in self._own.values())

    @property
    def must_wait(self) -> bool:
        return self.answered >= 2 * self.pages_at_once

    @property
    def in_flight(self) -> int:
        return len(self._of)

    @property
    def may_lease(self) -> bool:
        return len(self._of) < self.concurrent_leases and self.finished is None and not self.lag()

    def leave(self) -> None:
        self._leaving = True

    async def wind_up(self) -> None:
        """Hand the partitions over."""
        self.close()
        await self._liveness.leave()

    def close(self) -> None:
        """Discard everything that the storage does not have, and release the partitions, even after an error."""
        if own := list(self._own):
            self._release(own)

    @property
    def balance(self) -> Balance:
        """The states of the documents of this worker's partitions."""
        of_each = [one.balance for one in self._own.values()]
        return Balance._make(sum(one[place] for one in of_each) for place in range(len(Balance._fields)))

    def statistics(self) -> dict[str, float | None]:
        """Return the figures of this worker; ``scrapy cluster merge`` adds up those of all."""
        crawls = [one.crawl for one in self._own.values()]
        counts = sum((one.counted() for one in self._own.values()), self.counters.counts)
        queued = sum(len(crawl.frontier) for crawl in crawls)
        self._liveness.figures = {"pages": counts["pages/crawled"]}
        return {
            **counts,
            "pages/visited": sum(len(crawl.visited) for crawl in crawls),
            "frontier/queued": queued,
            "storage/puts": self._storage.puts,
            "storage/bytes": self._storage.put_bytes,
            "storage/gets": self._storage.gets,
        }

    # -- for what a crawl is --------------------------------------------------------------------------------------

    @abstractmethod
    async def _go_on(self) -> None:
        """Work until there are documents to fetch, or nothing is left to do."""

    @abstractmethod
    async def _open(self, number: int) -> None:
        """Begin with a partition as the storage has it."""

    async def _hand_over(self, numbers: Sequence[int]) -> None:
        """Let go of partitions."""
        self._release(numbers)

    def _release(self, numbers: Sequence[int]) -> None:
        """Let go of partitions that others may take at once."""
        for number in numbers:
            self._drop(number)
        self._liveness.give_up(numbers)

    # -- which partitions are this worker's -----------------------------------------------------------------------

    async def _look_after_leases(self) -> None:
        """Release partitions that others have now, and take free ones."""
        for number in self._liveness.renew():
            self._drop(number)
        if self._own and time.monotonic() < self._looked + POLL:
            return
        self._looked = time.monotonic()
        if (asked := self._liveness.requested) is not None:
            self.stop(asked, _SAID[asked])
            return
        if (surplus := self._liveness.surplus()) > 0:
            await self._hand_over(sorted(self._own)[-surplus:])
        if not self._own:
            self._see_whether_ended()
        if self.finished is None:
            for number in self._liveness.claim(is_new=self._is_new):
                await self._open(number)
        self._is_new = False

    def _see_whether_ended(self) -> None:
        """Look for the end that others have noted."""
        if (end := self._storage.read_if_there(objects.END, shapes.END)) is not None:
            self.finished, self._pages, self.iteration = end["reason"], end["crawled"], end["iteration"]

    def _note_end(self, reason: str, pages: int, iteration: int = 0) -> None:
        """Record that the crawl is over, also for workers without a partition."""
        if self.finished is not None:
            return  # by another partition, meanwhile
        self._storage.put_packed(objects.END, {"reason": reason, "iteration": iteration, "crawled": pages})
        self.finished, self._pages = reason, pages
        self._liveness.announce()

    def _drop(self, number: int) -> None:
        """Throw a partition away."""
        if partition := self._own.pop(number, None):
            self._forget(partition)
            self.counters.counts.update(partition.counted())
            partition.close()

    def _forget(self, partition: P) -> None:
        """Forget the leases of a partition."""
        self._of = {key: found for key, found in self._of.items() if found[0] is not partition}

    def _partition_of(self, lease: Lease) -> P | None:
        found = self._of.get(id(lease.entry))
        return found[0] if found else None


_SAID: Final = {
    DRAIN: "this worker was asked to hand its partitions over (scrapy cluster drain); the other workers continue",
    STOP: "the crawl was asked to stop (scrapy cluster stop); the same command resumes it",
}
