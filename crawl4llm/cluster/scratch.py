"""The working store of a partition on a worker's own disk, and its snapshots.

A store is thrown away with the worker, or when another worker takes the partition: what lasts is in the storage. A
snapshot is all its tables, as keys and values.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from crawl4llm.cluster.storage import packed, unpacked
from crawl4llm.crawl.commits import LmdbCrawlStore
from crawl4llm.frontier.opening import open_frontier
from crawl4llm.frontier.plain import MOST_FRESH
from crawl4llm.frontier.store import NAME, TABLES, Store
from crawl4llm.options import Options
from crawl4llm.policies import Policy

_HEAD: Final = struct.Struct("<BHI")
_LEAST_FRESH: Final = 1024
"""Records of a partition's frontier in memory, however many partitions there are."""


class Scratch(LmdbCrawlStore):
    """The store of a partition: its snapshot is what lasts of a commit."""

    def __init__(self, folder: Path, options: Options, policy: Policy, snapshot: bytes | None) -> None:
        """Begin in a folder that is not there yet, with what :meth:`snapshot` returned, if anything. Raises InputError;
        and other errors, of many kinds, where the snapshot is none."""
        folder.mkdir(parents=True)
        tables = Store(folder / NAME, fsync=False)
        for table, key, value in _records(unpacked(snapshot)) if snapshot is not None else ():
            tables.put(table, key, value)
        most_fresh = max(MOST_FRESH // options.partitions, _LEAST_FRESH)
        frontier = open_frontier(tables, reranks=policy.reranks, most_fresh=most_fresh)
        super().__init__(tables, frontier, folder / "visited.filter", options)
        self.keep(policy)
        if snapshot is not None:
            policy.load(self.policy_state())

    def flush(self) -> None:
        """Let what was written take no memory: LMDB has a transaction there that has not ended."""
        self.tables.commit()

    def snapshot(self) -> bytes:
        """Return all of it; nothing may have changed since the last commit."""
        records: list[bytes] = []
        for number, table in enumerate(TABLES):
            for key, value in self.tables.items(table):
                records += [_HEAD.pack(number, len(key), len(value)), key, value]
        return packed(b"".join(records))


def _records(data: bytes) -> Iterator[tuple[str, bytes, bytes]]:
    """Yield table, key and value of each record of a snapshot."""
    place = 0
    while place < len(data):
        number, key_bytes, value_bytes = _HEAD.unpack_from(data, place)
        place += _HEAD.size
        yield TABLES[number], data[place : place + key_bytes], data[place + key_bytes : place + key_bytes + value_bytes]
        place += key_bytes + value_bytes
