"""A crawl in continuous order whose documents lie in partitions, of which this worker has some.

Each partition is a crawl of its own, which ends with all others. The next document is the best of those that this
worker's partitions can lease now. Their pages are in the storage after their next commit; other partitions read their
links there.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from crawl4llm.base.domains import owner_of
from crawl4llm.base.errors import InputError
from crawl4llm.base.pages import Capture
from crawl4llm.cluster.complaints import Heeding, RequestSpool
from crawl4llm.cluster.continuous_partition import ContinuousPartition
from crawl4llm.cluster.journal import Post, Quotas, told_of
from crawl4llm.cluster.liveness import Liveness
from crawl4llm.cluster.routes import RoutedOwners, RoutedVisited
from crawl4llm.cluster.worker import POLL, Common, WorkerCrawl
from crawl4llm.crawl import FRONTIER_EMPTY, MAX_PAGES, ONLY_PARKED, UNANSWERED, SitedFrontier
from crawl4llm.frontier import Lease
from crawl4llm.policies import NO, CrawledPage


class ContinuousCrawl(WorkerCrawl[ContinuousPartition]):
    """See the module."""

    folder = "p"

    def __init__(self, common: Common, liveness: Liveness) -> None:
        self._routes = routes = RoutedOwners(common.partitions.of, self._workable)
        owners = None if common.clock is None else routes
        super().__init__(common, liveness, visited=RoutedVisited(common.partitions.of, routes.own), owners=owners)
        self._own = routes.own
        self._post = Post(common.storage, common.options.partitions)
        self._quotas = Quotas(common.storage, common.options.crawl_max_pages)
        self._pulse = asyncio.Event()
        """Set when something may have happened elsewhere, and each second."""
        self._tasks: list[asyncio.Task[None]] = []
        """Tasks beside the crawl: the pulse, and orders of the operator."""
        self._compares = getattr(self.policy, "partitioned", NO) != NO
        """True if scores of different partitions can be compared."""
        self._spent = {part.spent for part in self.parts if part.spent}
        self._lately = [0.0, 0.0, 0.0]
        """The meaning of scores, from the last pages of all its partitions."""
        self._heeding: Heeding | None = None
        """Hears which domains are blocked, in a live crawl."""
        self._spool: RequestSpool | None = None
        self._spooled_at = -math.inf
        if common.clock is not None:
            crawl = str(common.info.crawl_id)
            self._heeding = Heeding(common.storage, common.options.cluster_lease, self.block)
            self.requests = self._spool = RequestSpool(common.storage, common.folder.parent, crawl, liveness.worker)
        self._woken = asyncio.Event()
        """Set with it, and by answers."""
        self._was_idle = False
        """True if the last round could do nothing."""

    # -- as the scheduler sees it ---------------------------------------------------------------------------------

    def dequeue(self) -> list[Lease]:
        """Lease the best documents that are available now."""
        leases: list[Lease] = []
        if self.finished is not None or self._leaving or self.lag():
            return leases
        waiting = {one.number: one for one in self._workable() if one.crawl.missing > 0}
        while waiting and len(self._of) < self.concurrent_leases:
            ready = [(key, one.number) for one in waiting.values() if (key := one.best()) is not None]
            if not ready:
                break
            partition = waiting[self._next_of(ready)]
            some = partition.lease_one()
            partition.is_touched = partition.is_touched or bool(partition.crawl.answered)  # known documents
            if not some or partition.crawl.missing <= 0:  # a budget is spent: it has set documents aside
                del waiting[partition.number]
            self._of.update((id(lease.entry), (partition, lease)) for lease in some)
            leases += some
        return leases

    def _next_of(self, ready: Sequence[tuple[bytes, int]]) -> int:
        """Return the partition that is next, of pairs of a partition and the sort key of its best document. A policy
        that learns from all crawled pages has learnt something else in each partition, so each partition's scores are
        converted by their meaning there."""
        if self._compares:
            return min(ready)[1]
        return max(ready, key=lambda one: (self._own[one[1]].expected(one[0], self._lately), -one[1]))[1]

    def give_back(self, lease: Lease) -> None:
        if partition := self._partition_of(lease):
            partition.give_back(lease)

    def unanswered(self) -> list[Lease]:
        return [lease for _, lease in self._of.values()]

    def block(self, domains: Sequence[str]) -> None:
        super().block(domains)
        self._woken.set()

    def drop_blocked(self) -> bool:
        some = [partition for partition in self._own.values() if partition.crawl.drop_blocked()]
        for partition in some:
            partition.is_dirty = True
        return bool(some)

    def follow(self, links: CrawledPage) -> None:
        """Let the partition follow links that all their owner's documents are in; drop them if the owner is another
        partition's."""
        partition = self._own.get(self._common.partitions.of(links.entry.key))
        if partition is not None:
            partition.crawl.follow(links)
            partition.is_touched = True
            self._woken.set()

    def keep_exchange(self, capture: Capture, purpose: str, about: Mapping[str, str]) -> None:
        """Archive it with the partition that it is asked for, or with another one of this worker."""
        partition = self._own.get(self._common.partitions.of(capture.url)) or next(iter(self._own.values()), None)
        if partition is not None:
            partition.is_dirty = True
            partition.crawl.keep_exchange(capture, purpose, about)
            self.failure = self.failure or partition.crawl.failure

    def may_send(self, url: str, *, led: bool = False) -> bool:
        if not self._hears:
            return False
        return self._routes.may_work(url) or not owner_of(url) or (led and not self._routes.is_own(url))

    @property
    def can_advance(self) -> bool:
        if self.finished is not None or self._leaving:
            return False
        return self._pulse.is_set() or not self._of or any(one.is_touched for one in self._own.values())

    def sites_of(self, url: str) -> SitedFrontier | None:
        partition = self._own.get(self._common.partitions.of(url))
        return None if partition is None else partition.crawl.sites

    @property
    def waits_only(self) -> str | None:
        rests = self._post.rests()
        return next((reason for reason in (UNANSWERED, ONLY_PARKED) if reason in rests), None)

    @property
    def crawled(self) -> int:
        """Pages crawled by all workers, as far as is known."""
        return self._post.crawled + sum(
            one.crawl.crawled - self._post.heads[one.number].crawled for one in self._own.values()
        )

    async def advance(self, *, expand: bool = True) -> None:
        """Merge fetched documents, and do all other due work. Raises InputError."""
        if not self._tasks:  # not before, as Scrapy's engine cannot be woken until the scheduler is open
            self._tasks.append(asyncio.ensure_future(self._pulse_on()))
            if self._heeding is not None:
                self._tasks.append(asyncio.ensure_future(self._heeding.run(self._drop_blocked)))
        is_heard = self._pulse.is_set()
        is_due = is_heard or self._was_idle
        self._pulse.clear()
        self._woken.clear()
        touched = await self._advance_touched()
        if is_due:
            await self._look_around(is_heard=is_heard)
            touched |= await self._advance_touched()
        is_idle = not self._of and not touched
        stands_still = is_idle and not self._has_work
        some = self._own.keys() if is_due or stands_still else touched
        if await self._commit(some, all_of_them=stands_still):
            touched |= await self._advance_touched()
            self._see_end()
        await self._claim_pages(some)
        is_idle = is_idle and not touched
        if is_idle and self._was_idle and not self._leaving:
            self._see_end()
            if self.finished is None:
                await self._woken.wait()
        self._was_idle = is_idle

    async def wind_up(self) -> None:
        """Commit fetched documents, and hand the partitions over."""
        for task in self._tasks:
            task.cancel()
        self._of.clear()
        for partition in self._own.values():
            if partition.is_dirty or partition.crawl.unanswered():
                await partition.crawl.wind_up()
        await self._put_commits()
        await self._put_requests()
        await super().wind_up()

    def close(self) -> None:
        super().close()
        if self._spool is not None:
            self._spool.finish()

    def leave(self) -> None:
        super().leave()
        self._woken.set()

    # -- one thing after the other --------------------------------------------------------------------------------

    async def _go_on(self) -> None:
        """Begin: read the storage, and take partitions."""
        if self._heeding is not None:
            await self._heeding.hear()  # before anything is asked for
        await self._put_requests()  # those that a worker before has left here
        await self._post.begin()  # also of a crawl that has ended: whoever joins it tells of its pages
        self._see_whether_ended()
        if self.finished is None:
            await asyncio.to_thread(self._quotas.look)
            await self._look_around(is_heard=True)
            await self._commit(self._own, all_of_them=True)
            await self._claim_pages(self._own)

    async def _pulse_on(self) -> None:
        with suppress(asyncio.CancelledError):
            while True:
                await self._liveness.wait(POLL)
                self._pulse.set()
                self._woken.set()
                self.wake()

    @property
    def _has_work(self) -> bool:
        """True if a document may be leased now, or later when its owner is free."""
        if self.owners is not None:
            return self._routes.next_ready() is not None
        return any(one.crawl.missing > 0 and len(one.crawl.frontier) for one in self._workable())

    async def _advance_touched(self) -> set[int]:
        """Let partitions take their answers, and the links that others have for them; return which."""
        some, self._post.is_new = list(self._own.values()) if self._post.is_new else [], False
        for partition in some:
            async for sender, commit in self._post.unread(partition.number, partition.marks):
                partition.receive(sender, commit)
        touched = {number for number, partition in self._own.items() if partition.is_touched}
        for number in sorted(touched):
            partition = self._own[number]
            await partition.advance()
            self.failure = self.failure or partition.crawl.failure
        if touched:
            self.counters.errors_in_row = max(one.crawl.counters.errors_in_row for one in self._own.values())
            self._lately = [sum(some) for some in zip(*(one.lately.sums for one in self._own.values()), strict=True)]
        return touched

    def _drop_blocked(self, until: float) -> None:
        """Drop some queued documents of blocked owners."""
        while self.finished is None and self.drop_blocked() and time.monotonic() < until:
            pass

    async def _put_requests(self) -> None:
        """Put the lines of the request log that the storage does not have."""
        if self._spool is not None:
            self._spooled_at = time.monotonic()
            await self._spool.put()

    async def _look_around(self, *, is_heard: bool) -> None:
        """Renew leases, and read the objects of other workers, if there may be new ones."""
        if time.monotonic() >= self._spooled_at + self.options.cluster_lease / 3:
            await self._put_requests()
        await self._look_after_leases()
        for partition in list(self._own.values()):
            if partition.is_leaving and partition.is_quiet:
                await partition.crawl.wind_up()
                await self._put_requests()
                await self._put_commits_of(partition)
                self._release([partition.number])
        if is_heard:
            if self._quotas.left(self._post.returned) <= 0:
                for partition in self._own.values():
                    partition.leave_pages()
            await self._post.look(one for one in range(self.options.partitions) if one not in self._own)
            await asyncio.to_thread(self._quotas.look)  # who had a partition before may have claimed for it
            for number, partition in self._own.items():
                partition.grant(self._quotas.of[number])
            self._see_whether_ended()

    async def _commit(self, some: Iterable[int], *, all_of_them: bool) -> bool:
        """Let partitions commit whose time has come; return whether any did."""
        oldest = time.monotonic() - self.options.commit_interval_seconds
        for partition in [self._own[number] for number in some if number in self._own]:
            late = all_of_them or partition.committed_at <= oldest
            if not partition.prepared and (partition.is_urgent or (partition.is_dirty and late)):
                partition.crawl.commit_now()
        return await self._put_commits()

    async def _put_commits(self) -> bool:
        """Put the commits that partitions have made; return whether there were any."""
        due = [partition for partition in self._own.values() if partition.prepared]
        if due:
            await self._put_requests()  # first: the storage has no page whose requests it does not have
        await asyncio.gather(*map(self._put_commits_of, due))
        return bool(due)

    async def _put_commits_of(self, partition: ContinuousPartition) -> None:
        """Put its commits, or throw it away if another worker has put one of them."""
        while partition.prepared:
            commit = await asyncio.to_thread(partition.put, partition.prepared.pop(0))
            if commit is None:
                partition.prepared.clear()
                if self.options.cluster is None:
                    raise InputError(
                        f"STORAGE {self._storage.url}: another worker crawls partition {partition.number}; give all of "
                        "them the same CLUSTER, or let one alone crawl"
                    )
                self._release([partition.number])
                return
            self._post.add(partition.number, commit)
            self._liveness.announce()

    async def _claim_pages(self, some: Iterable[int]) -> None:
        """Claim pages for partitions that have documents, and few pages left to crawl."""
        for partition in [self._own[number] for number in some if number in self._own]:
            await partition.claim_pages(self._quotas, self._post.returned)

    def _see_end(self) -> None:
        """Note that the crawl is over, if it is."""
        if self._post.crawled >= self.options.crawl_max_pages:
            self._note_end(MAX_PAGES, self._post.crawled)
        elif (rests := self._post.rests()) and rests <= {FRONTIER_EMPTY, *self._spent}:
            self._note_end(min(rests - {FRONTIER_EMPTY}, default=FRONTIER_EMPTY), self._post.crawled)

    # -- which partitions are this worker's -----------------------------------------------------------------------

    def _workable(self) -> Iterable[ContinuousPartition]:
        """Return the partitions that may be worked on now."""
        if not self._hears:
            return []
        held = self._liveness.held()
        return [partition for number, partition in self._own.items() if number in held and not partition.is_leaving]

    @property
    def _hears(self) -> bool:
        """True if no order to block a domain can have been missed for long."""
        return self._heeding is None or self._heeding.hears

    async def _open(self, number: int) -> None:
        """Begin with a partition as the storage has it, and put a commit at once, so that objects which its previous
        worker may still do goes nowhere."""
        told = await asyncio.to_thread(told_of, self._storage, number)
        await self._post.look([number])
        partition = ContinuousPartition(number, self._common, *told)
        is_new = not partition.commit_number
        partition.crawl.turns = self.turns
        if self._heeding is not None:
            partition.crawl.block(self._heeding.control.blocked)
        partition.next_turn, partition.may_rest = lambda: self._post.turn, lambda: not self.expects
        if partition.crawl.owners is not None and not is_new:
            partition.crawl.owners.hold_all(self.clock.now() + partition.longest)
        self._own[number] = partition
        partition.grant(self._quotas.of[number])
        await partition.crawl.begin(partition.seeds())
        if not is_new:
            partition.crawl.commit_now()
        self._post.is_new = True

    async def _hand_over(self, numbers: Sequence[int]) -> None:
        """Ask nothing more of the owners of partitions; they are let go when all was answered."""
        for number in numbers:
            self._own[number].is_leaving = True

    def _drop(self, number: int) -> None:
        if self.turns is not None:
            for partition, lease in self._of.values():
                if partition.number == number:
                    self.turns.end(lease)
        super()._drop(number)

    def _partition_of(self, lease: Lease) -> ContinuousPartition | None:
        found = self._of.pop(id(lease.entry), None)
        if found is None or found[0].number not in self._own:
            return None
        found[0].is_touched = True
        self._woken.set()
        return found[0]
