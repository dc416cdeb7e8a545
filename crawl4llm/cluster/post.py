"""Reads all journals for a worker: their heads, and the links to documents of its partitions."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable
from typing import Final

from crawl4llm.cluster import journal
from crawl4llm.cluster.continuous_partition import ContinuousPartition
from crawl4llm.cluster.journal import Commit, before_first, read_commit
from crawl4llm.cluster.storage import Storage

_KEPT: Final = 256
"""Commits in memory."""


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
        self._is_new = True
        """True if some links may not have been delivered."""

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
        self._is_new = True

    async def deliver(self, own: Collection[ContinuousPartition]) -> set[int]:
        """Give partitions the links to their documents, in the order of each sender's commits; return the numbers of
        those that got some."""
        got: set[int] = set()
        if self._is_new:
            self._is_new = False
            for partition in own:
                for sender, newest in enumerate(self._newest):
                    while sender != partition.number and partition.marks[sender] < newest:
                        commit = await self._commit(sender, partition.marks[sender] + 1)
                        if partition.receive(sender, commit):
                            got.add(partition.number)
        return got

    def look_again(self) -> None:
        """Deliver to a partition that was opened, too."""
        self._is_new = True

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
        if commit := read_commit(self._storage, partition, journal.newest(self._storage, partition)):
            self._newest[partition], self.heads[partition] = commit.number, commit.head

    def _look_at(self, partition: int) -> None:
        for commit in journal.commits(self._storage, partition, self._newest[partition]):
            self.add(partition, commit)

    async def _commit(self, partition: int, number: int) -> Commit:
        if (kept := self._kept.get((partition, number))) is not None:
            return kept
        commit = await asyncio.to_thread(read_commit, self._storage, partition, number)
        if commit is None:
            raise self._storage.damaged(journal.name(partition, journal.LOG, number), "it is missing")
        return commit
