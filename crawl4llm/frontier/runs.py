"""Sorted runs on disk: an external priority queue of records, which are entries as bytes in the frontier's order.

Records come in sorted runs, which are cut into blocks and written one after the other; the best record is the least of
the heads of all runs. So a push writes only its own bytes, for any place in the order; a B-tree would change another
page for each record. Runs of one size class are merged into one of the next, as in a log-structured merge tree (O'Neil
et al. 1996). So their number grows with the logarithm of the frontier.

Merging moves records from the heads of some runs to the end of a new one. All of them are sorted runs at any moment, so
a merge can pause at any record. Each addition continues it a little, and none takes long.
"""

from __future__ import annotations

import heapq
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from crawl4llm.frontier.frontier import Entry
from crawl4llm.frontier.memory import SCORE_BYTES, order_of, score_of
from crawl4llm.frontier.store import Store, StoreError

_HEAD = struct.Struct("<IIBI")
_HAS_PARENT, _URL_IS_KEY = 2, 4
_HOPS_AT, _HOPS = 3, 7
"""The three bits of the flags from this one on are Entry.hops."""
_HAS_CELL, _CELL_BYTES = 1 << 6, 2
"""If the flag is set, Entry.cell follows the head; only in a crawl with MIXTURE or KNOWN_LINKS."""

Record = tuple[bytes, bytes]
"""A sort key, which orders records like their entries, and the rest of the entry. The key: eight bytes for the score,
best first; then the document key in UTF-8, whose order is that of code points."""


def encode(entry: Entry) -> Record:
    """Return the record of an entry."""
    key = entry.key.encode("utf-8", "surrogatepass")
    flags = entry.hops << _HOPS_AT | (_HAS_PARENT if entry.parent is not None else 0)
    url, parent = b"", (entry.parent or "").encode("utf-8", "surrogatepass")
    if entry.url == entry.key:
        flags |= _URL_IS_KEY
    else:
        url = entry.url.encode("utf-8", "surrogatepass")
    if entry.cell:
        flags, url = flags | _HAS_CELL, entry.cell.to_bytes(_CELL_BYTES, "big") + url
    return order_of(entry.score) + key, _HEAD.pack(entry.depth, entry.attempts, flags, len(url)) + url + parent


def decode(record: Record) -> Entry:
    """Return the entry of a record. Raises StoreError if the record is damaged."""
    try:
        return _decoded(record)
    except (ValueError, struct.error):
        raise StoreError("a document in the store of JOBDIR is damaged; restore JOBDIR, or begin a new crawl") from None


def _decoded(record: Record) -> Entry:
    sort_key, rest = record
    depth, attempts, flags, url_bytes = _HEAD.unpack_from(rest)
    key = str(sort_key[SCORE_BYTES:], "utf-8", "surrogatepass")
    start, middle, cell = _HEAD.size, _HEAD.size + url_bytes, 0
    if flags & _HAS_CELL:
        start += _CELL_BYTES
        cell = int.from_bytes(rest[_HEAD.size : start], "big")
    url = key if flags & _URL_IS_KEY else str(rest[start:middle], "utf-8", "surrogatepass")
    parent = str(rest[middle:], "utf-8", "surrogatepass") if flags & _HAS_PARENT else None
    return Entry(key, url, score_of(sort_key), depth, parent, attempts, flags >> _HOPS_AT & _HOPS, cell)


def rescored(record: Record, score: float) -> Record:
    """Return the record of the same entry with another score."""
    sort_key, rest = record
    return order_of(score) + sort_key[SCORE_BYTES:], rest


def pack(records: Sequence[Record]) -> bytes:
    """Return records as one block."""
    parts = [part for record in records for part in record]
    return struct.pack(f"<I{len(parts)}I", len(records), *map(len, parts)) + b"".join(parts)


def unpack(block: bytes) -> list[Record]:
    """Return the records of a block, in order. Raises ValueError if it is not a block."""
    try:
        (count,) = struct.unpack_from("<I", block)
        lengths = struct.unpack_from(f"<{2 * count}I", block, 4)
    except struct.error as error:
        raise ValueError("a block cut short") from error
    place = 4 + 8 * count
    if place + sum(lengths) != len(block):
        raise ValueError("a block of the wrong length")
    parts = []
    for length in lengths:
        parts.append(block[place : place + length])
        place += length
    return list(zip(parts[::2], parts[1::2], strict=True))


def entry_in(store: Store, value: bytes) -> Entry:
    """Return the entry of a block with one record. Raises StoreError."""
    try:
        (record,) = unpack(value)
    except ValueError as error:
        raise store.damaged(f"a document: {error}") from None
    return decode(record)


TABLE = "frontier"
_KEY = struct.Struct(">QQ")
_BLOCK_BYTES = 16_000
"""Four pages of LMDB: a block is read by one look-up, and freed ones fit new ones."""
_FAN_IN = 12
"""Runs of a size class at which they are merged."""
_MOVES_PER_RECORD = 2
"""Records moved by each merge for each record added, so that a merge ends before the next one of its class begins."""
_LEAST_MOVES = 1024


@dataclass(slots=True)
class _Run:
    """Blocks ``first`` to ``end - 1`` of run ``id``, without ``skip`` records at the front and ``drop`` at the end."""

    id: int
    level: int
    first: int = 0
    end: int = 0
    skip: int = 0
    drop: int = 0
    count: int = 0
    target: int | None = None
    """The run into which it is merged."""
    head: list[Record] = field(default_factory=list)
    """The remaining records of block ``first`` after ``skip`` more, or empty if they are not loaded."""
    tail: list[Record] = field(default_factory=list)
    """The remaining records of block ``end - 1``, if that is another block; empty if they are not loaded."""

    def state(self) -> list[int | None]:
        """Return the values by which the run is found again."""
        return [self.id, self.level, self.first, self.end, self.skip, self.drop, self.count, self.target]


class SortedRuns:
    """All runs of a store."""

    def __init__(self, store: Store, state: dict[str, Any] | None = None) -> None:
        """Restore the runs of :meth:`state`; without it there are no runs yet."""
        self._store = store
        self._next_id: int = state["next"] if state else 0
        self._runs = {run[0]: _Run(*run) for run in state["runs"]} if state else {}
        self._heads: list[tuple[bytes, int]] | None = None

    def state(self) -> dict[str, Any]:
        """Return the places of the runs, to be committed with them."""
        return {"next": self._next_id, "runs": [run.state() for run in self._runs.values()]}

    # -- adding and merging ---------------------------------------------------------------------------------------

    def add(self, records: Sequence[Record]) -> None:
        """Add sorted records as a run, and merge a little."""
        if records:
            self._append(self._new_run(0), records)
        self._plan_merges()
        moves = max(_MOVES_PER_RECORD * len(records), _LEAST_MOVES)
        for target in sorted(self._targets()):
            self._merge(self._runs[target], moves)
        self._heads = None

    def start_over(self) -> None:
        """Begin to merge all runs into one; :meth:`go_on` continues."""
        self._runs = {run.id: run for run in self._runs.values() if run.count}
        sources = list(self._runs.values())
        target = self._new_run(1 + max((run.level for run in sources), default=0))
        for run in sources:
            run.target = target.id

    def go_on(self, moves: int, keep: Callable[[Record], bool]) -> bool:
        """Continue the merge; return whether there is more to do."""
        for target in sorted(self._targets()):
            self._merge(self._runs[target], moves, keep)
        self._heads = None
        return bool(self._targets())

    def _new_run(self, level: int) -> _Run:
        run = self._runs[self._next_id] = _Run(self._next_id, level)
        self._next_id += 1
        return run

    def _targets(self) -> set[int]:
        return {run.target for run in self._runs.values() if run.target is not None}

    def _plan_merges(self) -> None:
        """Begin merges of the levels with many runs outside of merges."""
        targets = self._targets()
        self._runs = {run.id: run for run in self._runs.values() if run.count or run.id in targets}
        free: dict[int, list[_Run]] = {}
        for run in self._runs.values():
            if run.target is None and run.id not in targets:
                free.setdefault(run.level, []).append(run)
        for level, runs in free.items():
            if len(runs) >= _FAN_IN:
                target = self._new_run(level + 1)
                for run in runs:
                    run.target = target.id

    def _merge(self, target: _Run, moves: int, keep: Callable[[Record], bool] | None = None) -> None:
        """Move about ``moves`` records from the runs that are merged to the end of their target."""
        sources = [run for run in self._runs.values() if run.target == target.id]
        while sources and moves > 0:
            moved = self._take_next(sources)
            moves -= len(moved)
            self._append(target, list(filter(keep, moved)) if keep else moved)
            sources = [run for run in sources if run.count]

    def _take_next(self, runs: Sequence[_Run]) -> list[Record]:
        """Take the next records from runs, in order: all that is loaded up to the first end of a loaded block."""
        bound = min(self._head(run)[-1][0] for run in runs)
        taken: list[Record] = []
        for run in runs:
            head, start = self._head(run), run.skip
            end = bisect_right(head, bound, lo=start, key=itemgetter(0))
            self._advance(run, end - start)
            taken += head[start:end]
        return sorted(taken)

    def _append(self, run: _Run, records: Sequence[Record]) -> None:
        """Add records at the end of a run."""
        if run.drop:
            self._put(run, run.end - 1, self._block(run, run.end - 1)[: -run.drop])
            run.drop = 0
        run.tail = []
        start, size = 0, 0
        for place, (sort_key, rest) in enumerate(records):
            size += len(sort_key) + len(rest) + 8
            if size > _BLOCK_BYTES and place > start:
                self._put(run, run.end, records[start:place])
                run.end += 1
                start, size = place, len(sort_key) + len(rest) + 8
        if start < len(records):
            self._put(run, run.end, records[start:])
            run.end += 1
        run.count += len(records)

    # -- taking ---------------------------------------------------------------------------------------------------

    def first(self) -> bytes | None:
        """Return the sort key of the best record."""
        heads = self._sorted_heads()
        return heads[0][0] if heads else None

    def pop(self) -> Record:
        """Take the best record; there must be one."""
        heads = self._sorted_heads()
        run = self._runs[heads[0][1]]
        record = self._head(run)[run.skip]
        self._advance(run, 1)
        if run.count:
            heapq.heapreplace(heads, (self._head(run)[run.skip][0], run.id))
        else:
            heapq.heappop(heads)
        return record

    def pop_many(self, most: int) -> list[Record]:
        """Take the best records, in order, as many as are known without loading; none if that could exceed ``most``."""
        runs = [run for run in self._runs.values() if run.count]
        if not runs or sum(len(self._head(run)) - run.skip for run in runs) > most:
            return []
        self._heads = None
        return self._take_next(runs)

    def last(self) -> bytes | None:
        """Return the sort key of the worst record."""
        return max((self._tail(run)[-1][0] for run in self._runs.values() if run.count), default=None)

    def pop_last(self) -> Record:
        """Take the worst record; there must be one."""
        run = max((run for run in self._runs.values() if run.count), key=lambda run: self._tail(run)[-1][0])
        record = self._tail(run).pop()
        run.count -= 1
        run.drop += 1
        if not run.count:
            self._drop_run(run)
            self._heads = None
        elif not run.tail and run.end - run.first > 1:
            run.end -= 1
            run.drop = 0
            self._store.delete(TABLE, _KEY.pack(run.id, run.end))
        return record

    def __iter__(self) -> Iterator[Record]:
        """Yield all records, best first; the runs may not change meanwhile."""
        return heapq.merge(*map(self._records, self._runs.values()))

    def _records(self, run: _Run) -> Iterator[Record]:
        skip, left = run.skip, run.count
        for number in range(run.first, run.end):
            records = self._block(run, number)[skip : skip + left]
            yield from records
            skip, left = 0, left - len(records)

    def _sorted_heads(self) -> list[tuple[bytes, int]]:
        if self._heads is None:
            self._heads = [(self._head(run)[run.skip][0], run.id) for run in self._runs.values() if run.count]
            heapq.heapify(self._heads)
        return self._heads

    def _head(self, run: _Run) -> list[Record]:
        if not run.head:
            records = self._block(run, run.first)
            run.head = records[: len(records) - run.drop] if run.end - run.first == 1 else records
            if len(run.head) <= run.skip:
                raise self._store.damaged(f"run {run.id} begins behind the end of its first block")
        return run.head

    def _tail(self, run: _Run) -> list[Record]:
        if run.end - run.first == 1:
            return self._head(run)
        if not run.tail:
            records = self._block(run, run.end - 1)
            run.tail = records[: len(records) - run.drop]
            if not run.tail:
                raise self._store.damaged(f"run {run.id} ends before its last block")
        return run.tail

    def _advance(self, run: _Run, taken: int) -> None:
        """Skip records at the front of the loaded block."""
        run.skip += taken
        run.count -= taken
        if not run.count:
            self._drop_run(run)
        elif run.skip == len(run.head):
            self._store.delete(TABLE, _KEY.pack(run.id, run.first))
            run.first += 1
            run.skip = 0
            run.head = []

    def _drop_run(self, run: _Run) -> None:
        """Remove the rest of an empty run, and the run itself unless more will be merged into it."""
        for number in range(run.first, run.end):
            self._store.delete(TABLE, _KEY.pack(run.id, number))
        run.first = run.end
        run.skip = run.drop = 0
        run.head, run.tail = [], []
        if run.id not in self._targets():
            del self._runs[run.id]

    def verify(self) -> None:
        """Raise StoreError unless each run is in order and complete, and nothing else lies beside them."""
        for run in self._runs.values():
            before, count = b"", 0
            for sort_key, _ in self._records(run):
                if sort_key < before:
                    raise self._store.damaged(f"run {run.id} is out of order")
                before, count = sort_key, count + 1
            if count != run.count:
                raise self._store.damaged(f"run {run.id} holds {count:,} documents of {run.count:,}")
        if (blocks := sum(run.end - run.first for run in self._runs.values())) != self._store.count(TABLE):
            raise self._store.damaged(f"it holds {self._store.count(TABLE):,} blocks of {blocks:,}")

    # -- blocks ---------------------------------------------------------------------------------------------------

    def _block(self, run: _Run, number: int) -> list[Record]:
        block = self._store.get(TABLE, _KEY.pack(run.id, number))
        try:
            return unpack(block or b"")
        except ValueError as error:
            raise self._store.damaged(f"block {number} of run {run.id}: {error}") from None

    def _put(self, run: _Run, number: int, records: Sequence[Record]) -> None:
        self._store.put(TABLE, _KEY.pack(run.id, number), pack(records))
