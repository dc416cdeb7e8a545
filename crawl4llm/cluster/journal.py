"""The journals of partitions in continuous order: commits, each an object that is put once, and their reader.

``p/0003/log/00000042`` is commit 42 of partition 3: a head, links to documents of other partitions apart for each, the
lines of both logs, and the changes of its store. The newest one is its state; a worker that finds the next number taken
has lost the partition. ``p/0003/all/00000042`` is a snapshot of the store at that commit.
``p/0003/pages-00000042-DIGEST.warc.gz`` with its ``.cdxj`` archives the pages since the commit before.
``quota/00000007`` says how many more pages a partition may crawl.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from crawl4llm.cluster import objects, shapes
from crawl4llm.cluster.storage import Storage

LOG, ALL = "log", "all"
QUOTA: Final = "quota"
_KEPT: Final = 256
"""Commits in memory."""


def folder(partition: int, kind: str) -> str:
    """Return the folder of a partition's commits, or of its snapshots."""
    return f"p/{partition:04}/{kind}"


def name(partition: int, kind: str, number: int) -> str:
    """Return the name of a commit or a snapshot."""
    return f"{folder(partition, kind)}/{number:08}"


class Head(NamedTuple):
    """The facts of a commit that all workers know."""

    turn: int
    """Ascends with the commits of a partition, and above those whose links are applied in it."""
    crawled: int
    """Pages so far."""
    returned: int
    """Pages that it was to crawl, and has left to others, so far."""
    rest: str | None
    """Why it has nothing more to do, as a crawl of its own would end; None if it has."""
    marks: list[int]
    """By partition, the last of its commits whose links are applied."""
    pages: str | None
    """Name of the WARC file."""


def before_first(partitions: int) -> Head:
    """Return the head of a partition without commits."""
    return Head(0, 0, 0, None, [0] * partitions, None)


class Commit(NamedTuple):
    """A commit as it was read."""

    number: int
    head: Head
    sections: Mapping[int, bytes]
    """By partition, links to its documents, packed."""
    lines: bytes
    """Pages and failures, packed."""
    changes: bytes
    """Packed."""
    fingerprints: bytes


def encode(commit: Commit) -> bytes:
    """Return a commit as bytes."""
    return objects.encode(commit.head, (commit.lines, commit.changes, commit.fingerprints), commit.sections)


def decode(storage: Storage, partition: int, number: int, data: bytes, kind: str = LOG) -> Commit:
    """Return the commit that was encoded. Raises StorageError."""
    head, parts, sections = objects.decode(storage, name(partition, kind, number), data, shapes.HEAD, 3)
    return Commit(number, Head(*head), sections, *parts)


def read_commit(storage: Storage, partition: int, number: int, kind: str = LOG) -> Commit | None:
    """Return a commit or a snapshot; None if the storage does not have it. Raises StorageError."""
    data = storage.get(name(partition, kind, number)) if number else None
    return None if data is None else decode(storage, partition, number, data, kind)


def commits(storage: Storage, partition: int, after: int = 0) -> Iterator[Commit]:
    """Yield the commits of a partition, in order, those behind a number only. Raises StorageError."""
    while (commit := read_commit(storage, partition, after + 1)) is not None:
        yield commit
        after = commit.number


def newest(storage: Storage, partition: int) -> int:
    """Return the number of the newest commit; 0 before the first. Raises StorageError."""
    snapshots = storage.numbers(folder(partition, ALL))
    after = name(partition, LOG, snapshots[-1]) if snapshots else ""
    return max([0, *snapshots, *storage.numbers(folder(partition, LOG), after)])


def told_of(storage: Storage, partition: int) -> tuple[Commit | None, list[Commit]]:
    """Return the newest snapshot of a partition, and the commits since, without the parts for others. Raises
    StorageError."""
    at = max(storage.numbers(folder(partition, ALL)), default=0)
    snapshot = read_commit(storage, partition, at, ALL)
    return snapshot, [commit._replace(sections={}, lines=b"") for commit in commits(storage, partition, at)]


class Quotas:
    """The share of the N pages that each partition may crawl. Objects with ascending numbers deal them, so that each
    dealer knows all earlier deals. Methods raise StorageError."""

    def __init__(self, storage: Storage, most: int) -> None:
        self._storage, self._most = storage, most
        self._read = 0
        self.of: Counter[int] = Counter()
        """Pages by partition."""

    def look(self) -> None:
        """Read the deals since the last time."""
        while (found := self._storage.read_if_there(f"{QUOTA}/{self._read + 1:08}", shapes.QUOTA)) is not None:
            self._note(*found)

    def left(self, returned: int) -> int:
        """Return how many pages are not dealt, with those that partitions have left to others."""
        return self._most + returned - self.of.total()

    def claim(self, partition: int, wanted: int, returned: int) -> int:
        """Deal at most ``wanted`` pages, and return their number; ``returned``: pages that partitions are known to have
        left to others."""
        while True:
            pages = min(wanted, self.left(returned))
            if pages <= 0:
                return 0
            if self._storage.put_packed(f"{QUOTA}/{self._read + 1:08}", [partition, pages]):
                self._note(partition, pages)
                return pages
            self.look()

    def _note(self, partition: int, pages: int) -> None:
        self._read += 1
        self.of[partition] += pages


class Post:
    """The journals of all partitions, each commit of which is read once while this worker's partitions keep up. Methods
    raise StorageError."""

    def __init__(self, storage: Storage, partitions: int) -> None:
        self._storage = storage
        self.heads = [before_first(partitions)] * partitions
        """Of the newest commits, by partition."""
        self._newest = [0] * partitions
        self._kept: OrderedDict[tuple[int, int], Commit] = OrderedDict()
        self._mail: Counter[tuple[int, int]] = Counter()
        """By sender and receiver, the newest commit that has something for it."""
        self.is_new = True
        """True if a partition may have something unread."""

    async def begin(self) -> None:
        """Read the newest commits, and those before them that a partition has not read."""
        await asyncio.gather(*(asyncio.to_thread(self._begin_with, one) for one in range(len(self._newest))))
        for sender, newest in enumerate(self._newest):
            marks = (head.marks[sender] for receiver, head in enumerate(self.heads) if receiver != sender)
            self._newest[sender] = min(min(marks, default=0), newest)
        await self.look(range(len(self._newest)))

    async def look(self, partitions: Iterable[int]) -> None:
        """Read the new commits of some partitions."""
        await asyncio.gather(*(asyncio.to_thread(self._look_at, partition) for partition in partitions))

    def add(self, partition: int, commit: Commit) -> None:
        """Note the next commit of a partition."""
        self._newest[partition], self.heads[partition] = commit.number, commit.head
        for receiver in commit.sections:
            self._mail[partition, receiver] = commit.number
        self._kept[partition, commit.number] = commit._replace(changes=b"", fingerprints=b"")
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        self.is_new = True

    async def unread(self, receiver: int, marks: Sequence[int]) -> AsyncIterator[tuple[int, Commit]]:
        """Yield senders and commits that a partition has not read, in the order of each sender's. ``marks``: by
        partition, the last one that it has read, as it goes on."""
        for sender, newest in enumerate(self._newest):
            while sender != receiver and marks[sender] < newest:
                yield sender, await self._commit(sender, marks[sender] + 1)

    @property
    def turn(self) -> int:
        """The last turn of all that is known."""
        return max(head.turn for head in self.heads)

    @property
    def crawled(self) -> int:
        """Pages of all partitions."""
        return sum(head.crawled for head in self.heads)

    @property
    def returned(self) -> int:
        """Pages that partitions have left to others."""
        return sum(head.returned for head in self.heads)

    def rests(self) -> set[str]:
        """Return why the partitions have nothing more to do; nothing if one has work, or has not read what others have
        for it."""
        rests = {head.rest for head in self.heads}
        if any(self.heads[receiver].marks[sender] < number for (sender, receiver), number in self._mail.items()):
            return set()
        return set() if None in rests else {rest for rest in rests if rest is not None}

    def _begin_with(self, partition: int) -> None:
        if commit := read_commit(self._storage, partition, newest(self._storage, partition)):
            self._newest[partition], self.heads[partition] = commit.number, commit.head

    def _look_at(self, partition: int) -> None:
        for commit in commits(self._storage, partition, self._newest[partition]):
            self.add(partition, commit)

    async def _commit(self, partition: int, number: int) -> Commit:
        if (kept := self._kept.get((partition, number))) is not None:
            return kept
        commit = await asyncio.to_thread(read_commit, self._storage, partition, number)
        if commit is None:
            raise self._storage.damaged(name(partition, LOG, number), "it is missing")
        return commit
