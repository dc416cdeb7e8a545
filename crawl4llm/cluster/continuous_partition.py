"""One partition of a crawl in continuous order: a whole crawl of its own documents, whose commits are its journal.

Links to documents of other partitions, and redirects that lead there, go into the commit; those partitions read them
there. A partition is made anew from its newest snapshot and the commits since.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from crawl4llm.base.crawl_log import RedirectLine
from crawl4llm.base.pages import PageRecord
from crawl4llm.base.reasons import QUEUED
from crawl4llm.cluster import journal, shapes
from crawl4llm.cluster.journal import Commit, Head, Mail, own_links, redirects_in
from crawl4llm.cluster.logged import Working
from crawl4llm.cluster.objects import links_in
from crawl4llm.cluster.partition import Parts
from crawl4llm.cluster.segments import Lines, Segment, Segments
from crawl4llm.cluster.shapes import read
from crawl4llm.cluster.storage import pack
from crawl4llm.cluster.worker import OnePartition
from crawl4llm.crawl.budgeted_frontier import layered
from crawl4llm.crawl.budgets import Budgets
from crawl4llm.crawl.commits import JobCommits
from crawl4llm.crawl.near_duplicates import NearDuplicates
from crawl4llm.crawl.page_writer import Rated
from crawl4llm.crawl.reorder_buffer import Answer
from crawl4llm.frontier import Entry, Lease, score_of
from crawl4llm.frontier.aside import StoredAside
from crawl4llm.policies import NO, Candidate, CrawledPage
from crawl4llm.scope_options import OFF

_SOON: Final = 10.0
"""Seconds, or twice the delay, for which a partition keeps pages that it may crawl and cannot begin with."""
_DECAY: Final = 0.95
"""What a page counts less with each one after it, where a partition's last pages are judged by."""
_PRIOR: Final = 5.0
"""Pages of the crawl's mean influence that count with a partition's last ones."""
_REPLAYED: Final = 4
"""Times the size of a snapshot that the changes since may have, which whoever takes over goes through."""
_NEVER_FULL: Final = 1 << 60
"""Pages: a partition ends with the crawl."""


class Told(NamedTuple):
    """What the storage has of a partition."""

    number: int
    """Of its newest commit."""
    changes: list[tuple[bytes, bytes]]
    """Changes of the store and fingerprints: of the newest snapshot, and of the commits since."""
    head: Head | None
    """Of the newest commit; None where there is none."""
    since: int
    """Bytes of the changes since the snapshot."""
    whole: int
    """Bytes of the snapshot."""


class Prepared(NamedTuple):
    """A commit that is to be put."""

    number: int
    head: Head
    segment: Segment | None
    sections: dict[int, bytes]
    lines: bytes
    changes: tuple[bytes, bytes]
    whole: bytes | None
    """A snapshot, if it is due."""


class ContinuousPartition(OnePartition):
    """See the module; its calls are those of :class:`crawl4llm.crawl.algorithm.Crawl`."""

    def __init__(self, number: int, parts: Parts, told: Told, *, longest: float) -> None:
        """Begin, or go on from what the storage has. ``longest``: seconds for which its owners wait if it goes on.
        Raises InputError."""
        self.number = number
        self.longest = longest
        self._parts = parts
        options, folder = parts.options, parts.folder / f"{number:04}"
        policy = parts.make_policy()
        with parts.storage.reading(journal.name(number, journal.LOG, told.number)):
            self._working = working = Working(folder / "store", options, parts.clock, told.changes, longest)
        self._segments, self._lines = Segments(folder / "warc", options, parts.info, number), Lines()
        budgets = Budgets(options.url_budget) if options.url_budget else None
        aside, sites = StoredAside(working.tables), parts.tells_sites_apart
        layers = layered(working.frontier, working.owned, budgets, aside, sites=sites)
        near_duplicates = NearDuplicates() if options.near_duplicates != OFF else None
        log: Any = self._lines
        working.keep(policy, budgets, near_duplicates, layers.sites)
        often = max(1, options.commit_interval_pages // options.partitions)  # others wait for the links
        options = replace(options, crawl_max_pages=_NEVER_FULL, commit_interval_pages=often)
        super().__init__(
            options,
            policy=policy,
            rate=parts.rate,
            frontier=layers.frontier,
            by_owners=layers.owned,
            visited=working.visited,
            archive=self._segments,
            log=self._lines,
            commits=JobCommits(working, log, self._segments, options),
            provenance=parts.provenance,
            limits=parts.limits,
            rules=parts.rules,
            clock=parts.clock,
            url_of_seed=parts.url_of_seed,
            near_duplicates=near_duplicates,
            sites=layers.sites,
            sends=parts.info.host is not None,
        )
        self.scope.sends_on = self._is_elsewhere
        self.commit_number = told.number
        self.quota = 0
        """Pages that it may crawl in all."""
        head = told.head or Head(0, 0, 0, None, [0] * options.partitions, None, [])
        self.turn, self.returned, self.marks = head.turn, head.returned, list(head.marks)
        self.is_dirty = False
        """Whether there is something that the last commit does not have."""
        self.committed_at = time.monotonic()
        self._committed_pages = 0
        # Bytes of the changes since the last snapshot, and of all there was when it was last seen whether one is due
        self._since, self._whole = told.since, told.whole
        self.low = 0
        """Pages left with which it claims more."""
        self.prepared: list[Prepared] = []
        """Commits that are to be put."""
        self.next_turn: Callable[[], int] = lambda: 0
        """Returns the turn of a commit, by what the worker knows of others'."""
        self.may_rest: Callable[[], bool] = lambda: True
        """Returns whether nothing is expected from elsewhere."""
        self._best: bytes | None = None
        self._leaves = False
        self.lately = [0.0, 0.0, 0.0]
        """Sums of the influence and of the scores of its last pages, and their number; earlier ones count less."""
        self._mail = self._new_mail()
        if told.head is not None:
            with parts.storage.reading(journal.name(number, journal.LOG, told.number)):
                self._take_up()
        self._counted_before = self.counters.counts.copy()

    # -- what it crawls -------------------------------------------------------------------------------------------

    def expected(self, order: bytes, lately: Sequence[float]) -> float:
        """Return the influence that can be expected of a document, by its score and what scores meant for its last
        pages; ``lately``: the same of pages of all partitions, which weighs as much as some of these."""
        own, score = self.lately, max(score_of(order), 0.0)
        weight = _PRIOR / lately[2] if lately[2] else 0.0
        scores = own[1] + weight * lately[1]
        return score * (own[0] + weight * lately[0]) / scores if scores > 0 else score

    def best(self) -> bytes | None:
        """Return by what the next document sorts that may be leased; None where none may."""
        if self._by_owners is not None:
            return self._working.frontier.first()
        if self._best is None:
            self._best = self._working.frontier.first()
        return self._best

    def lease_one(self) -> list[Lease]:
        """Lease its best document, if it may have one."""
        self._best = None
        self._concurrent_leases = self._buffer.in_flight + 1
        return self.dequeue()

    def give_back(self, lease: Lease) -> None:
        self._best = None
        self.is_dirty = True
        super().give_back(lease)

    @property
    def left(self) -> int:
        """Pages that it may still begin with."""
        return self._missing

    @property
    def _missing(self) -> int:
        return self.quota - self.returned - self.crawled - self._merging - len(self._buffer)

    @property
    def is_ready(self) -> bool:
        """Whether a document may be had now, or soon."""
        if self.owners is None:
            return len(self.frontier) > 0
        ready = self.owners.next_ready()
        return ready is not None and ready <= self.clock.now() + max(_SOON, 2 * self.clock.delay)

    def leave_pages(self) -> None:
        """Leave to others the pages that it cannot begin with soon; nothing may be in flight."""
        self._leaves = True
        self.commit_now()

    @property
    def is_at_rest(self) -> bool:
        """Whether it has nothing to do by itself."""
        return (not self._buffer and self.finished is not None) or self.waits_only is not None

    async def advance(self, *, expand: bool = True) -> None:
        self._best = None
        self.is_dirty = True
        await super().advance(expand=expand)

    def _archive(self, lease: Lease, page: PageRecord, rated: Rated) -> CrawledPage:
        if rated.influence is not None:
            new = (rated.influence, lease.entry.score, 1.0)
            self.lately = [_DECAY * before + one for before, one in zip(self.lately, new, strict=True)]
        return super()._archive(lease, page, rated)

    def receive(self, partition: int, commit: Commit) -> bool:
        """Take links to its documents from a commit of another partition, to be followed with the next advance();
        return whether there are any. Raises StorageError."""
        self.marks[partition] = commit.number
        if (section := commit.sections.get(self.number)) is None:
            return False
        self.turn = max(self.turn, commit.head.turn)
        storage, called = self._parts.storage, journal.name(partition, journal.LOG, commit.number)
        content = read(storage, called, section, shapes.MAIL)
        pages, _ = read(storage, called, commit.lines, shapes.LINES)
        with storage.reading(called):
            for place, links in links_in(content).items():
                line = pages[place]
                entry = Entry(line["id"], line["url"], line["priority"], line["depth"], line["parent"])
                self.follow(CrawledPage(entry, line["influence"], links.links))
            for target in redirects_in(content):
                if self.visited.add([target.key]):
                    self._targets.append(target)
        return True

    def _extract(self, page: CrawledPage) -> list[Candidate]:
        of = self._parts.partitions.of
        to = [self.number if link.key is None else of(link.key) for link in page.links]
        if any(partition != self.number for partition in to):
            place = self.crawled - self._committed_pages - 1
            abroad = ((there, link) for there, link in zip(to, page.links, strict=True) if there != self.number)
            self._mail.add(place, abroad)
            page = page._replace(links=own_links(page.links, to, self.number))
        return super()._extract(page)

    def _end_elsewhere(self, answer: Answer, page: PageRecord) -> RedirectLine:
        line = super()._end_elsewhere(answer, page)
        if line["reason"] == QUEUED and self._is_elsewhere(page.hops[-1]):
            self._mail.redirected(self._parts.partitions.of(page.hops[-1]), self._targets.pop())
        return line

    def _is_elsewhere(self, key: str) -> bool:
        return self._parts.partitions.of(key) != self.number

    # -- its journal ----------------------------------------------------------------------------------------------

    @property
    def is_urgent(self) -> bool:
        """Whether an owner is to be left alone for longer than whoever takes over would by itself."""
        return self._working.holds is not None and self._working.holds.is_urgent

    def commit_now(self) -> None:
        """Commit; between two calls of advance()."""
        self._commits.commit_now(self)

    def save(self) -> dict[str, Any]:
        if self._working.holds is not None:
            self._working.holds.pass_by()
        return {**super().save(), "lately": self.lately}

    def committed(self) -> None:
        """Prepare the commit that was just made, to be put: before anything else changes."""
        super().committed()
        self.commit_number += 1
        self.turn = max(self.next_turn(), self.turn) + 1
        rest = None
        if self.is_at_rest and self.may_rest():
            rest = self.waits_only or self.finished
        if rest is not None or self._leaves:
            self.returned, self._leaves = self.quota - self.crawled, False
        lines = pack(self._lines.take())
        sections = self._mail.packed()
        self._mail = self._new_mail()
        self._committed_pages = self.crawled
        self._segments.facts()
        segment = self._segments.take()
        self._segments.number = self.commit_number + 1
        changes = self._working.take()
        self._since += sum(map(len, changes))
        mail = [[partition, len(section)] for partition, section in sections.items()]
        self.is_dirty, self.committed_at = False, time.monotonic()
        head = Head(self.turn, self.crawled, self.returned, rest, list(self.marks), None, mail)
        whole = self._snapshot(head) if self._since > _REPLAYED * self._whole else None
        self.prepared.append(Prepared(self.commit_number, head, segment, sections, lines, changes, whole))

    def put(self, prepared: Prepared) -> Commit | None:
        """Put a commit into the storage; None where another worker has put one of its number. Of a thread's own: it
        touches nothing but the storage. Raises StorageError."""
        storage, number, head = self._parts.storage, prepared.number, prepared.head
        if prepared.segment is not None:
            pages = prepared.segment.put(storage, journal.pages_name(self.number, number))
            head = head._replace(pages=pages)
        data = journal.encode(head, list(prepared.sections.values()), prepared.lines, *prepared.changes)
        if not storage.put(journal.name(self.number, journal.LOG, number), data):
            return None
        if prepared.whole is not None:
            storage.put(journal.name(self.number, journal.ALL, number), prepared.whole)
        return Commit(number, head, prepared.sections, prepared.lines, *prepared.changes)

    def _snapshot(self, head: Head) -> bytes | None:
        """Return a snapshot of the commit that was just made, if the changes since the last one are so many times as
        much: in a store that has grown meanwhile they may not be."""
        changes, fingerprints = self._working.whole()
        self._whole = len(changes) + len(fingerprints)
        if self._since <= _REPLAYED * self._whole:
            return None
        self._since = 0
        return journal.encode(head._replace(mail=[]), [], b"", changes, fingerprints)

    def counted(self) -> Counter[str]:
        return self.counters.counts - self._counted_before

    def close(self) -> None:
        self._segments.close()
        self._working.close()

    def _new_mail(self) -> Mail:
        anchors = getattr(self.policy, "partitioned", NO) == NO
        return Mail(self.number, self.options.partitions, anchors=anchors)

    def _take_up(self) -> None:
        """Go on where the newest commit ends."""
        self.policy.load(self._working.policy_state())
        self.lately = self._working.state()["crawl"]["lately"]
        leases = self._working.leases()
        self.load(self._working.state()["crawl"], leases if self._by_owners is not None else [])
        if self._by_owners is None:
            for lease in leases:
                self.frontier.give_back(lease, attempted=False)
        self._committed_pages = self.crawled
        self._segments.number = self.commit_number + 1


def told_of(parts: Parts, number: int) -> Told:
    """Return what the storage has of a partition. Raises StorageError."""
    at, data = journal.latest(parts.storage, number)
    changes: list[tuple[bytes, bytes]] = []
    head, whole, since = None, 0, 0
    found: Iterable[Commit] = journal.commits(parts.storage, number, at)
    if data is not None:
        snapshot = journal.decode(parts.storage, number, at, data)
        changes.append((snapshot.changes, snapshot.fingerprints))
        head, whole = snapshot.head, len(snapshot.changes) + len(snapshot.fingerprints)
    for commit in found:
        changes.append((commit.changes, commit.fingerprints))
        since += len(commit.changes) + len(commit.fingerprints)
        head, at = commit.head, commit.number
    return Told(at, changes, head, since, whole)


def seeds_of(parts: Parts, number: int) -> Sequence[str]:
    """Return the seeds of a partition."""
    return [key for key in parts.seeds if parts.partitions.of(key) == number]
