"""The working store of a partition on a worker's own disk, and its snapshots.

A store is thrown away with the worker, or when another worker takes the partition: what lasts is in the storage. A
snapshot is all its tables, as keys and values.
"""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from crawl4llm.cluster.shapes import SNAPSHOT, fits
from crawl4llm.cluster.storage import packed, unpacked
from crawl4llm.crawl.pieces import StoredPieces
from crawl4llm.frontier.durable import DurableFrontier
from crawl4llm.frontier.indexed import IndexedFrontier
from crawl4llm.frontier.store import NAME, TABLES, Store
from crawl4llm.frontier.visited import DurableVisited
from crawl4llm.options import Options
from crawl4llm.policies import Policy

_HEAD: Final = struct.Struct("<BHI")
_PARTITION, _POLICY = b"partition", b"policy"


class Scratch:
    """Frontier, visited set and the policy's state of a partition."""

    def __init__(self, folder: Path, options: Options, policy: Policy, snapshot: bytes | None) -> None:
        """Begin in a folder that is not there yet, with what :meth:`dump` returned, if anything. Raises InputError; and
        other errors, of many kinds, where the snapshot is none."""
        folder.mkdir(parents=True)
        self._folder = folder
        self._policy = policy
        self._store = Store(folder / NAME, fsync=False)
        for table, key, value in _records(unpacked(snapshot)) if snapshot is not None else ():
            self._store.put(table, key, value)
        self.frontier = (IndexedFrontier if policy.reranks else DurableFrontier)(self._store)
        self.visited = DurableVisited(
            self._store,
            folder / "visited.filter",
            cache=options.visited_cache // options.partitions,
            filter_bytes=options.visited_filter_bytes // options.partitions,
            fsync=False,
        )
        self.visited.load_filter()
        self._pieces = StoredPieces(self._store)
        if keep_in := getattr(policy, "keep_in", None):
            keep_in(self._pieces)
        self.state: dict[str, Any] = {}
        """What was dumped with it."""
        if snapshot is not None:
            policy.load(self._store.get("state", _POLICY) or b"")
            self.state = json.loads(self._store.get("state", _PARTITION) or b"{}")
            if not fits([self.state], SNAPSHOT):
                raise ValueError("it is no snapshot")

    def dump(self, state: dict[str, Any]) -> bytes:
        """Return all of it as a snapshot; nothing may be on lease."""
        self.frontier.save()
        self.visited.save()
        self._store.put("state", _POLICY, self._policy.save())
        self._pieces.save()
        self._store.put("state", _PARTITION, json.dumps(state).encode())
        self._store.commit()
        records: list[bytes] = []
        for number, table in enumerate(TABLES):
            for key, value in self._store.items(table):
                records += [_HEAD.pack(number, len(key), len(value)), key, value]
        return packed(b"".join(records))

    def close(self) -> None:
        """Throw it away."""
        self._store.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _records(data: bytes) -> Iterator[tuple[str, bytes, bytes]]:
    """Yield table, key and value of each record of a snapshot."""
    place = 0
    while place < len(data):
        number, key_bytes, value_bytes = _HEAD.unpack_from(data, place)
        place += _HEAD.size
        yield TABLES[number], data[place : place + key_bytes], data[place + key_bytes : place + key_bytes + value_bytes]
        place += key_bytes + value_bytes
