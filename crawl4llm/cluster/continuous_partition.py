"""One partition of a crawl in continuous order: a whole crawl of its own documents, whose commits are its journal.

Links and redirects to documents of other partitions go into the commit, in which those partitions read them. A
partition is restored from its newest snapshot and the commits since.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from crawl4llm.cluster import journal, shapes
from crawl4llm.cluster.archive import Segment
from crawl4llm.cluster.journal import Commit, Head, Quotas, before_first
from crawl4llm.cluster.objects import line_of, links_in, page_of, redirects_in
from crawl4llm.cluster.storage import pack
from crawl4llm.cluster.stores import LoggedStore, Working
from crawl4llm.cluster.worker import Common, OnePartition
from crawl4llm.crawl import Commits
from crawl4llm.frontier import Entry, Lease, StoredAside, score_of
from crawl4llm.parts import Part, Parts, Rated
from crawl4llm.policies import CrawledPage

_SOON: Final = 10.0
"""Seconds, or twice the delay, for which a partition keeps pages that it may crawl and cannot begin with."""
_DECAY: Final = 0.95
"""The factor by which a page counts less with each later page, if a partition is judged by its last pages."""
_PRIOR: Final = 5.0
"""Pages of the crawl's mean influence that count with a partition's last ones."""
_REPLAYED: Final = 4
"""Times the size of a snapshot that the changes since may have, which whoever takes over goes through."""
_LEAST_CLAIM: Final = 16
"""Pages that a claim asks for at least, as far as each partition can have as many."""
_NEVER_FULL: Final = 1 << 60
"""Pages: a partition ends with the crawl."""


Prepared = tuple[Commit, Segment | None, bytes | None]
"""A commit that is to be put, its pages, and a snapshot, if it is due."""


class _Lately(Part):
    """The meaning of scores, from the last pages of a partition; earlier pages count less."""

    name = "lately"

    def begin(self) -> None:
        self.sums = [0.0, 0.0, 0.0]
        """Of the influence and of the scores, and the number of pages."""

    def crawled(self, entry: Entry, page: Rated) -> None:
        if page.influence is not None and page.is_counted:
            new = (page.influence, entry.score, 1.0)
            self.sums = [_DECAY * before + one for before, one in zip(self.sums, new, strict=True)]

    def save(self) -> Any:
        return self.sums

    def load(self, state: Any) -> None:
        self.sums = state


class ContinuousPartition(OnePartition):
    """A crawl of the partition's documents, and the journal of its commits. It is the crawl's neighbours
    (:class:`crawl4llm.crawl.algorithm.Neighbours`)."""

    _store: Working

    def __init__(self, number: int, common: Common, snapshot: Commit | None, commits: Sequence[Commit]) -> None:
        """Begin, or go on from the newest snapshot and the commits since. Raises InputError."""
        super().__init__(number, common)
        options, clock, policy = common.options, common.clock, common.make_policy()
        self._is_vain = options.near_duplicates_worthless
        """True if near duplicates are worth nothing to the policy."""
        self.longest = 0.0 if clock is None else clock.delay + 2 * options.cluster_lease
        """Seconds for which its owners wait if it goes on."""
        told = [commit for commit in (snapshot, *commits) if commit is not None]
        last = told[-1] if told else Commit(0, before_first(options.partitions), {}, b"", b"", b"")
        changes = [commit[-2:] for commit in told]
        self._tables = tables = LoggedStore(self._path)
        with self._reading(journal.name(number, journal.LOG, last.number)):
            self._store = working = Working(tables, options, clock, changes, self.longest)
        log: Any = self._lines
        often = max(1, options.commit_interval_pages // options.partitions)  # others wait for the links
        options = replace(options, crawl_max_pages=_NEVER_FULL, commit_interval_pages=often)
        self.crawl = self._open(
            options,
            policy,
            commits=Commits(working, log, self._segments, options),
            by_owners=working.owned,
            parts=Parts([*common.parts, _Lately(options)]),
            aside=StoredAside(tables),
            clock=clock,
            tells_sites_apart=common.tells_sites_apart,
            sends=common.info.host is not None,
            neighbours=self,
        )
        working.keep(policy, self.crawl.parts, self.crawl.sites)
        self.crawl.after_commit.append(self._prepare)
        self.crawl.scope.sends_on = self._is_elsewhere
        [self.lately] = [part for part in self.crawl.parts if isinstance(part, _Lately)]
        self.commit_number, head = last.number, last.head
        self.turn, self.returned, self.marks = head.turn, head.returned, list(head.marks)
        self.grant(0)
        self.is_dirty = False
        """True if anything is not in the last commit."""
        self.is_touched = True
        """True if it has answers, or links that were read."""
        self.is_leaving = False
        """True if it asks for nothing more, and is let go once all is answered."""
        self.committed_at = time.monotonic()
        self._dropped: list[dict[str, Any]] = []
        """Of the next commit, pages that were dropped and have links to documents of other partitions."""
        # Bytes of the changes since the last snapshot, and of all there was when it was last seen whether one is due
        self._since = sum(len(part) for commit in commits for part in commit[-2:])
        self._whole = sum(map(len, snapshot[-2:])) if snapshot else 0
        self._committed_pages = self._low = 0
        """``_low``: pages left with which it claims more."""
        self.prepared: list[Prepared] = []
        """Commits that are to be put."""
        self.next_turn: Callable[[], int] = lambda: 0
        """Returns the turn of a commit, from the turns that the worker knows of others."""
        self.may_rest: Callable[[], bool] = lambda: True
        """Returns whether nothing is expected from elsewhere."""
        self._best: bytes | None = None
        self._leaves = False
        self._mail = self._new_sections()
        if told:
            with self._reading(journal.name(number, journal.LOG, last.number)):
                self._take_up()
        self._counted_before = self.crawl.counters.counts.copy()

    # -- what it crawls -------------------------------------------------------------------------------------------

    def grant(self, quota: int) -> None:
        """Set the pages that it may crawl in all."""
        self._quota = quota
        self.crawl.granted = quota - self.returned

    def expected(self, order: bytes, lately: Sequence[float]) -> float:
        """Return the expected influence of a document, by its score and the meaning of scores for its last pages;
        ``lately``: the same of pages of all partitions, which weighs as much as some of these."""
        own, score = self.lately.sums, max(score_of(order), 0.0)
        weight = _PRIOR / lately[2] if lately[2] else 0.0
        scores = own[1] + weight * lately[1]
        return score * (own[0] + weight * lately[0]) / scores if scores > 0 else score

    def best(self) -> bytes | None:
        """Return the sort key of the next document that may be leased, or None."""
        if self._best is None or self.crawl.owners is not None:
            self._best = self._store.frontier.first()
        return self._best

    def lease_one(self) -> list[Lease]:
        """Lease its best document, if it may have one."""
        self._best = None
        self.crawl.concurrent_leases = self.crawl.in_flight + 1
        leases = self.crawl.dequeue()
        self.is_dirty = self.is_dirty or not leases  # what it has dropped or set aside is to be told
        return leases

    def give_back(self, lease: Lease) -> None:
        """Queue a document again that was not asked for."""
        self._best = None
        self.is_dirty = True
        self.crawl.give_back(lease)

    @property
    def is_ready(self) -> bool:
        """True if a document may be leased now or soon."""
        owners, clock = self.crawl.owners, self.crawl.clock
        if owners is None:
            return len(self.crawl.frontier) > 0
        ready = owners.next_ready()
        return ready is not None and ready <= clock.now() + max(_SOON, 2 * clock.delay)

    @property
    def is_quiet(self) -> bool:
        """True if no document of it is being fetched."""
        owners = self.crawl.owners
        return not self.crawl.in_flight and (owners is None or not owners.counts.busy)

    async def claim_pages(self, quotas: Quotas, returned: int) -> None:
        """Claim pages if it has documents, and few pages left to crawl. ``returned``: see Quotas.claim()."""
        if self.crawl.missing > self._low or not self.is_ready:
            return
        share = quotas.left(returned) // (2 * self._common.options.partitions)
        wanted = max(1, min(share, max(_LEAST_CLAIM, self.crawl.crawled)))
        if claimed := await asyncio.to_thread(quotas.claim, self.number, wanted, returned):
            self._low = claimed // 4
            self.grant(quotas.of[self.number])

    def leave_pages(self) -> None:
        """Leave to others the pages that it cannot begin with soon."""
        crawl = self.crawl
        if crawl.missing > 0 and not (crawl.in_flight or crawl.answered or self.is_ready):
            self._leaves = True
            crawl.commit_now()

    async def advance(self) -> None:
        """Merge fetched documents. Raises InputError."""
        self._best = None
        self.is_dirty, self.is_touched = True, False
        await self.crawl.advance()

    def receive(self, partition: int, commit: Commit) -> None:
        """Take links to its documents from a commit of another partition, to be followed with the next advance().
        Raises StorageError."""
        self.marks[partition] = commit.number
        if (section := commit.sections.get(self.number)) is None:
            return
        self.turn = max(self.turn, commit.head.turn)
        storage, called = self._common.storage, journal.name(partition, journal.LOG, commit.number)
        content = storage.read(called, section, shapes.SECTION)
        pages, _, dropped = storage.read(called, commit.lines, shapes.LINES)
        with storage.reading(called):
            for place, links in links_in(content).items():
                line = dropped[~place] if place < 0 else pages[place]
                is_vain = self._is_vain and line.get("near_duplicate_of") is not None
                self.crawl.follow(page_of(line, links.links, is_vain=is_vain))
            for target in redirects_in(content):
                if self.crawl.visited.add([target.key]):
                    self.crawl.algorithm.targets.append(target)
        self.is_touched = True

    # -- as its crawl's neighbours ----------------------------------------------------------------------------------

    def own(self, page: CrawledPage) -> CrawledPage:
        """Put links to documents of other partitions into the next commit."""
        of = self._common.partitions.of
        to = [self.number if link.key is None else of(link.key) for link in page.links]
        if all(partition == self.number for partition in to):
            return page
        place = self._place_of(page)
        abroad = ((there, link) for there, link in zip(to, page.links, strict=True) if there != self.number)
        self._mail.add(place, abroad)
        own = [link for there, link in zip(to, page.links, strict=True) if there == self.number]
        return page._replace(links=own)

    def _place_of(self, page: CrawledPage) -> int:
        """Return the place of a page among those of the next commit; less than 0 among the dropped ones."""
        if page.archived:
            return self.crawl.counters.crawled - self._committed_pages - 1
        self._dropped.append(line_of(page))
        return -len(self._dropped)

    def takes(self, target: Entry) -> bool:
        """Put the target of a redirect that is another partition's into the next commit."""
        if not self._is_elsewhere(target.key):
            return False
        self._mail.redirected(self._common.partitions.of(target.key), target)
        return True

    def _is_elsewhere(self, key: str) -> bool:
        return self._common.partitions.of(key) != self.number

    # -- its journal --------------------------------------------------------------------------------------------------

    @property
    def is_urgent(self) -> bool:
        """True if an owner must be left alone for longer than a worker that takes over would wait anyway."""
        return self._store.holds.is_urgent

    def _prepare(self) -> None:
        """Prepare the commit that was just made to be put: before anything else changes."""
        self.commit_number += 1
        self.turn = max(self.next_turn(), self.turn) + 1
        rest = self.crawl.waits_only or (None if self.crawl.buffer else self.crawl.finished)
        rest = rest if self.may_rest() else None
        if rest is not None or self._leaves:
            self.returned, self._leaves = self._quota - self.crawl.crawled, False
            self.crawl.granted = self.crawl.crawled
        lines = pack([*self._lines.take(), self._dropped])
        self._dropped = []
        sections = self._mail.packed()
        self._mail = self._new_sections()
        self._committed_pages = self.crawl.counters.crawled
        segment = self._segments.take()
        self._segments.number = self.commit_number + 1
        changes = self._store.take()
        self._since += sum(map(len, changes))
        self.is_dirty, self.committed_at = False, time.monotonic()
        head = Head(self.turn, self.crawl.crawled, self.returned, rest, list(self.marks), None)
        commit = Commit(self.commit_number, head, sections, lines, *changes)
        snapshot = self._snapshot(commit)
        self.prepared.append((commit, segment, snapshot))

    def put(self, prepared: Prepared) -> Commit | None:
        """Put a commit into the storage; None if another worker has put one with its number. Of a thread's own: it
        touches nothing but the storage. Raises StorageError."""
        storage, (commit, segment, snapshot) = self._common.storage, prepared
        if segment is not None:
            pages = segment.put(storage, f"p/{self.number:04}/pages-{commit.number:08}")
            commit = commit._replace(head=commit.head._replace(pages=pages))
        if not storage.put(journal.name(self.number, journal.LOG, commit.number), journal.encode(commit)):
            return None
        if snapshot is not None:
            storage.put(journal.name(self.number, journal.ALL, commit.number), snapshot)
        return commit

    def _snapshot(self, commit: Commit) -> bytes | None:
        """Return a snapshot of the last commit, if the changes since the last snapshot are larger by that factor; in a
        store that has grown they may not be."""
        if self._since <= _REPLAYED * self._whole:
            return None
        changes, fingerprints = self._store.whole()
        self._whole = len(changes) + len(fingerprints)
        if self._since <= _REPLAYED * self._whole:
            return None
        self._since = 0
        return journal.encode(Commit(commit.number, commit.head, {}, b"", changes, fingerprints))

    def counted(self) -> Counter[str]:
        return self.crawl.counters.counts - self._counted_before

    def _take_up(self) -> None:
        """Go on where the newest commit ends."""
        crawl, leases = self.crawl, self._store.frontier.leases()
        crawl.policy.load(self._store.policy_state())
        crawl.load(self._store.state()["crawl"], leases if crawl.owners is not None else [])
        if crawl.owners is None:
            for lease in leases:
                crawl.frontier.give_back(lease, attempted=False)
        self._committed_pages = crawl.counters.crawled
        self._segments.number = self.commit_number + 1
