"""The stores of partitions on a worker's own disk, as snapshots or as changes in the storage.

A store is thrown away with the worker, or when another worker takes the partition. In batch order (:class:`Scratch`)
what lasts is a snapshot: all its tables, as keys and values. In continuous order (:class:`Working`) it is what each
commit changes: of the tables in which a document, a piece of a policy or an owner's wait stands once. Indexes and
queues are made of them again when the partition is taken over, so that what is uploaded does not depend on how large
the frontier is. A fingerprint of the visited set is told once, when it is new.

Changes are bytes: each has its table, key and value, or the changed parts of the value. Keys ascend within a table, so
that of each one only what the one before does not begin with is told. Of a document, what changes is mostly its score,
in the middle; of all else, which is JSON, a few numbers here and there.
"""

from __future__ import annotations

import json
import re
import struct
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from difflib import SequenceMatcher
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

from crawl4llm.base.input_files import parse_json
from crawl4llm.cluster.storage import packed, unpacked
from crawl4llm.crawl import Balance, Clock, CrawlStore, patience_of
from crawl4llm.frontier import (
    CURRENT,
    FRONTIER_STATE,
    LEASES,
    MOST_FRESH,
    TABLES,
    VISITED_STATE,
    FingerprintRuns,
    Hold,
    Store,
    StoredFrontier,
    decode_stored,
    hold_of,
    is_document,
    open_frontier,
)
from crawl4llm.options import Options
from crawl4llm.policies import Policy

_IN_PART: Final = ("state", CURRENT)
"""Tables for whose values only the changed parts are written."""
_HEAD: Final = struct.Struct("<BHHI")
"""Kind; bytes of the key that are as before, and others; bytes of the value."""
_HUNK: Final = struct.Struct("<IHH")
"""Bytes that are as before, bytes that are there no more, and new bytes, which follow."""
_IS_PATCH: Final = 0x80
_GONE: Final = 0xFFFFFFFF
"""Stands for the size of a value that was deleted."""
_PARTS: Final = re.compile(rb"[^,]*,|[^,]+")
_TOLD: Final = ("state", LEASES, CURRENT, "aside")
"""Tables whose changes are reported."""
FINGERPRINT: Final = 16
"""Bytes of a document in the visited set."""
_AT_ONCE: Final = 10_000
_HOLDS: Final = b"holds"
_FILTER: Final = "visited.filter"
_LEAST_FRESH: Final = 1024
"""Records of a partition's frontier in memory, however many partitions there are."""


class Patch(NamedTuple):
    """A value of which some parts have changed."""

    hunks: bytes

    def applied_to(self, before: bytes) -> bytes:
        """Return the new value. Raises ValueError if the hunks are invalid, or exceed the old value."""
        parts, place, at = list[bytes](), 0, 0
        while at < len(self.hunks):
            start = at + _HUNK.size
            kept, gone, size = _HUNK.unpack(self.hunks[at:start].ljust(_HUNK.size, b"\xff"))
            at = start + size
            if at > len(self.hunks) or place + kept + gone > len(before):
                raise ValueError("it changes what is not there")
            parts += [before[place : place + kept], self.hunks[start:at]]
            place += kept + gone
        return b"".join([*parts, before[place:]])


Change = tuple[str, bytes, bytes | Patch | None]
"""Table, key and new value; None for a deleted entry."""


Values = tuple[str, bytes, bytes | None, bytes | None]
"""Table, key, new value, and the one before, if whoever reads the changes has it."""


def encoded(changes: Iterable[Values]) -> bytes:
    """Return changes as bytes."""
    parts: list[bytes] = []
    last = b""
    for table, key, value, before in changes:
        kind, told = TABLES.index(table), value
        if value is not None and before is not None and table in _IN_PART:
            is_whole = is_document(value) or is_document(before)
            hunks = _in_the_middle(before, value) if is_whole else _by_parts(before, value)
            with suppress(struct.error):  # of a hunk that is too long: the value is told whole
                told = b"".join(_HUNK.pack(kept, gone, len(new)) + new for kept, gone, new in hunks)
                kind |= _IS_PATCH
        same, size = _same(last, key), _GONE if told is None else len(told)
        parts += [_HEAD.pack(kind, same, len(key) - same, size), key[same:], told or b""]
        last = key
    return b"".join(parts)


def records(data: bytes) -> Iterator[Change]:
    """Yield the changes. Raises ValueError if the data are no changes."""
    place, key = 0, b""
    while place < len(data):
        if len(data) - place < _HEAD.size:
            raise ValueError("it is cut short")
        kind, same, others, size = _HEAD.unpack_from(data, place)
        start = place + _HEAD.size
        middle = start + others
        place = middle + (0 if size == _GONE else size)
        number = kind & ~_IS_PATCH
        if place > len(data) or number >= len(TABLES) or same > len(key):
            raise ValueError("it is cut short")
        key = key[:same] + data[start:middle]
        value = None if size == _GONE else data[middle:place]
        yield TABLES[number], key, Patch(value) if kind & _IS_PATCH and value is not None else value


def restore(store: Store, data: bytes) -> None:
    """Make changes in a store. Raises ValueError if the data are no changes, or those of another store."""
    for table, key, value in records(data):
        if value is None:
            store.delete(table, key)
        else:
            new = value if isinstance(value, bytes) else value.applied_to(store.get(table, key) or b"")
            store.put(table, key, new)


def _in_the_middle(before: bytes, value: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield the hunk by which a document differs from the one before."""
    start = _same(before, value)
    end = _same(before[start:][::-1], value[start:][::-1])
    yield start, len(before) - end - start, value[start : len(value) - end]


def _by_parts(before: bytes, value: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield the hunks from one value to another, by parts that end with commas."""
    old, new = _PARTS.findall(before), _PARTS.findall(value)
    kept = 0
    for what, start, end, first, last in SequenceMatcher(None, old, new).get_opcodes():
        size = sum(map(len, old[start:end]))
        if what == "equal":
            kept = size
        else:  # the next one is equal
            yield kept, size, b"".join(new[first:last])


def _same(one: bytes, other: bytes) -> int:
    """Return with how many equal bytes two values begin."""
    size = min(len(one), len(other))
    differing = int.from_bytes(one[:size], "big") ^ int.from_bytes(other[:size], "big")
    return size - (differing.bit_length() + 7) // 8


class Scratch(CrawlStore):
    """The store of a partition: its snapshot is the durable form of a commit."""

    def __init__(self, tables: Store, options: Options, policy: Policy, snapshot: bytes | None) -> None:
        """Begin with empty tables, from the result of :meth:`snapshot`, if any. Raises InputError, and errors of many
        other kinds if the snapshot is invalid."""
        if snapshot is not None:
            restore(tables, unpacked(snapshot))
        most_fresh = max(MOST_FRESH // options.partitions, _LEAST_FRESH)
        frontier = open_frontier(tables, reranks=policy.reranks, most_fresh=most_fresh)
        super().__init__(tables, frontier, tables.path.with_name(_FILTER), options)
        self.keep(policy)
        if snapshot is not None:
            policy.load(self.policy_state())

    def snapshot(self) -> bytes:
        """Return all of it; nothing may have changed since the last commit."""
        items = ((table, key, value, None) for table in TABLES for key, value in self.tables.items(table))
        return packed(encoded(items))


class LoggedStore(Store):
    """A store that collects the changes of the reported tables, from one :meth:`take` to the next."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, fsync=False)
        self._before: dict[tuple[int, bytes], bytes | None] | None = None
        """The old values of changed entries; None before the first :meth:`take`."""

    def put(self, table: str, key: bytes, value: bytes) -> None:
        self._remember(table, key)
        super().put(table, key, value)

    def delete(self, table: str, key: bytes) -> bool:
        self._remember(table, key)
        return super().delete(table, key)

    def take(self) -> bytes:
        """Return the changes since the last call. The first call returns none."""
        before, self._before = self._before or {}, {}
        changed = sorted(before.items(), key=itemgetter(0))
        values = ((TABLES[number], key, self.get(TABLES[number], key), old) for (number, key), old in changed)
        return encoded(change for change in values if change[2] != change[3])

    def whole(self) -> bytes:
        """Return the reported tables as changes of an empty store."""
        return encoded((table, key, value, None) for table in _TOLD for key, value in self.items(table))

    def _remember(self, table: str, key: bytes) -> None:
        if self._before is None or table not in _TOLD or (table, key) == ("state", VISITED_STATE):
            return  # the visited set is read from its fingerprints
        if (place := (TABLES.index(table), key)) not in self._before:
            # The frontier's state is told whole: the worker that takes over has counted its documents again
            self._before[place] = None if (table, key) == ("state", FRONTIER_STATE) else self.get(table, key)


class StoredHolds:
    """Implements :class:`crawl4llm.frontier.holds.OwnerHolds` in a store. A wait that is taken over starts again,
    because clocks of two machines are not compared."""

    def __init__(self, store: Store, longest: float) -> None:
        """``longest``: seconds for which whoever takes over lets all owners wait."""
        self._store, self._longest = store, longest
        self.is_urgent = False
        """True if there is a new wait that a worker that takes over would not observe by itself."""
        now = time.time()
        holds = {owner: hold_of(said) for owner, said in parse_json(store.get("state", _HOLDS) or b"{}").items()}
        self._holds = {owner: hold._replace(until=now + hold.wait) for owner, hold in holds.items()}

    def items(self) -> Iterator[tuple[str, Hold]]:
        """Yield owners with the waits in force."""
        now = time.time()
        return ((owner, hold) for owner, hold in list(self._holds.items()) if hold.in_force(now))

    def get(self, owner: str) -> Hold:
        """Return the stored wait of an owner, which may be over."""
        return self._holds.get(owner, Hold())

    def set(self, owner: str, hold: Hold) -> None:
        """Note that this holds for an owner, and nothing else; it is stored with the next commit."""
        self._holds[owner] = hold
        self.is_urgent |= hold.wait > self._longest

    def save(self) -> None:
        """Store what is in force; before a commit."""
        now = time.time()
        self._holds = {
            owner: hold if hold.until > now else hold._replace(until=0.0, wait=0.0) for owner, hold in self.items()
        }
        self._store.put("state", _HOLDS, json.dumps(self._holds).encode())
        self.is_urgent = False


class Working(CrawlStore):
    """Frontier, visited set and all else of a partition, in a folder that is thrown away with the process."""

    tables: LoggedStore

    def __init__(
        self,
        tables: LoggedStore,
        options: Options,
        clock: Clock | None,
        told: Iterable[tuple[bytes, bytes]],
        longest: float,
    ) -> None:
        """Begin with empty tables. ``told``: changes and fingerprints, packed, since the first commit or a snapshot.
        With a clock the frontier is ordered by owners. ``longest``: see StoredHolds. Raises InputError, and ValueError
        if ``told`` is invalid."""
        runs = FingerprintRuns(tables)
        for changes, fingerprints in told:
            restore(tables, unpacked(changes))
            runs.add(sorted(each_fingerprint(fingerprints)))
        if len(runs):
            tables.put("state", VISITED_STATE, json.dumps({"runs": runs.state(), "filter": None}).encode())
        if (stored := tables.get("state", FRONTIER_STATE)) is not None:
            tables.put("state", FRONTIER_STATE, json.dumps({**json.loads(stored), "queued": 0}).encode())
        self.holds = StoredHolds(tables, longest)
        times: dict[str, Any] = {}
        if clock is not None:
            times = {"patience": patience_of(options, clock), "clock": clock.now, "holds": self.holds}
        frontier = open_frontier(tables, reranks=True, by_owners=clock is not None, **times)
        self.owned: StoredFrontier | None = None if clock is None else frontier
        """The frontier, if it is ordered by owners. The store itself has their waits."""
        super().__init__(tables, frontier, tables.path.with_name(_FILTER), options)
        self._fill()
        tables.take()  # what changes from now on is told
        self._fingerprints = b""

    def commit(self, balance: Balance, state: Mapping[str, Any]) -> None:
        self.holds.save()
        self._fingerprints += b"".join(self.visited.fresh())
        super().commit(balance, state)

    def take(self) -> tuple[bytes, bytes]:
        """Return the changes of the commits since the last call, packed, and the fingerprints of new documents."""
        fingerprints, self._fingerprints = self._fingerprints, b""
        return packed(self.tables.take()), fingerprints

    def whole(self) -> tuple[bytes, bytes]:
        """Return the same of all commits together; right after a commit."""
        state = json.loads(self.tables.get("state", VISITED_STATE) or b"{}")
        return packed(self.tables.whole()), b"".join(FingerprintRuns(self.tables, state.get("runs")).since(0))

    def _fill(self) -> None:
        """Queue the documents that the store has; those on lease stay so."""
        start = b""
        while batch := list(islice(self.tables.items(CURRENT, start), _AT_ONCE)):
            start = batch[-1][0] + b"\0"
            self.frontier.push([decode_stored(value) for _, value in batch if is_document(value)])


def each_fingerprint(fingerprints: bytes) -> Iterator[bytes]:
    """Yield the fingerprints of a commit."""
    return (fingerprints[at : at + FINGERPRINT] for at in range(0, len(fingerprints), FINGERPRINT))
