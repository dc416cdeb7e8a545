"""Sorted runs on disk: a set of fingerprints that only grows.

Each addition is a sorted run, cut into blocks, whose keys in the store are the run's number and their first
fingerprint. The store's own tree finds the block of a fingerprint, so no index of blocks is kept in memory. Runs are
merged by size class, as in a log-structured merge tree (O'Neil et al. 1996), so that their number grows with the
logarithm of the set.

Each addition continues a merge a little. At any time all fingerprints up to a bound are in the new run, and those above
it still in the parts. So a merge can pause at any time, and no fingerprint is stored twice.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from hashlib import blake2b
from itertools import groupby, pairwise, takewhile
from operator import xor
from typing import Any, NamedTuple

from crawl4llm.frontier.store import Store

TABLE = "visited"
_SIZE = 16
_ID = struct.Struct(">Q")
_BLOCK = 254
"""Fingerprints in a block: with its checksum and LMDB's page header it fills one page of 4 KiB."""
_FAN_IN = 4
"""Runs of a size class at which they are merged. Each run is another look-up."""
_MOVES_PER_FINGERPRINT = 2
"""Fingerprints moved by each merge for each one added, so that a merge ends before the next one of its class begins."""
_MOVES = 16_384
"""Fingerprints moved at once, and the least that each merge moves."""


def fingerprint(key: str) -> bytes:
    """Return 128 bits of BLAKE2b (RFC 7693) that stand for a key. Two of 100 million keys share one with a probability
    of 1.5e-23: less than that of a memory error."""
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=_SIZE).digest()


class Mark(NamedTuple):
    """Tells sets of fingerprints apart."""

    size: int
    xor: int
    """Exclusive or of all fingerprints, as big-endian numbers."""


@dataclass(slots=True)
class _Run:
    """The fingerprints that were added as number ``start`` to ``end - 1``."""

    id: int
    level: int
    start: int
    end: int
    xor: int
    parts: list[int] = field(default_factory=list)
    """Ids under which those beyond ``merged`` still lie; none after the merge."""
    merged: bytes = b""

    def state(self) -> list[Any]:
        """Return what is needed to find it again."""
        return [self.id, self.level, self.start, self.end, f"{self.xor:x}", self.parts, self.merged.hex()]

    @classmethod
    def of(cls, state: list[Any]) -> _Run:
        """Return the run that :meth:`state` told of."""
        run_id, level, start, end, xor_of_all, parts, merged = state
        return cls(run_id, level, start, end, int(xor_of_all, 16), parts, bytes.fromhex(merged))


class FingerprintRuns:
    """All fingerprints of a store."""

    def __init__(self, store: Store, state: dict[str, Any] | None = None) -> None:
        """Restore the runs of :meth:`state`; by default the set is empty. Raises StoreError if the store holds more
        blocks or fewer."""
        self._store = store
        self._next_id: int = state["next"] if state else 0
        self._runs = [_Run.of(run) for run in state["runs"]] if state else []
        """In the order in which they were added: the largest come first, too."""
        blocks, expected = store.count(TABLE), state["blocks"] if state else 0
        if blocks != expected:
            raise store.damaged(f"the visited set has {blocks} blocks, not {expected}")

    @property
    def mark(self) -> Mark:
        """Count and checksum of all fingerprints."""
        return Mark(len(self), reduce(xor, (run.xor for run in self._runs), 0))

    def __len__(self) -> int:
        return self._runs[-1].end if self._runs else 0

    def state(self) -> dict[str, Any]:
        """Return the places of the runs, to be committed with them."""
        return {"next": self._next_id, "blocks": self._store.count(TABLE), "runs": [run.state() for run in self._runs]}

    # -- looking up -----------------------------------------------------------------------------------------------

    def find(self, wanted: bytes, before: int) -> bool:
        """Return whether a fingerprint is stored, unless it was added as number ``before`` or later."""
        for run in self._runs:
            if run.start >= before:
                break
            places = run.parts if run.parts and wanted > run.merged else (run.id,)
            for place in places:
                if self._lies_under(place, wanted):
                    return True
        return False

    def added_since(self, number: int) -> int:
        """Return how many fingerprints are in the runs that contain number ``number`` or later ones."""
        return sum(run.end - run.start for run in self._runs if run.end > number)

    def since(self, number: int) -> Iterator[bytes]:
        """Yield the fingerprints of these runs, in no particular order."""
        for run in self._runs:
            if run.end > number:
                for place, after in _places(run):
                    for _, fingerprints in self._blocks(place, after):
                        yield from fingerprints

    def start_of_newest(self, most: int) -> int:
        """Return the least number from which on the runs hold at most ``most`` fingerprints."""
        start = len(self)
        for run in reversed(self._runs):
            if len(self) - run.start > most:
                break
            start = run.start
        return start

    def verify(self) -> None:
        """Read everything. Raises StoreError, which names the fault."""
        for run in self._runs:
            count = xor_of_all = 0
            for place, after in _places(run):
                last = b""
                for key, fingerprints in self._blocks(place, after):
                    if any(one >= other for one, other in pairwise([last, *fingerprints])):
                        raise self._store.damaged(f"visited {key.hex()} is out of order")
                    last = fingerprints[-1]
                    count += len(fingerprints)
                    xor_of_all ^= _xor(fingerprints)
            if (count, xor_of_all) != (run.end - run.start, run.xor):
                raise self._store.damaged(
                    f"run {run.id} of the visited set has {count} fingerprints with checksum {xor_of_all:x}, "
                    f"not {run.end - run.start} with {run.xor:x}"
                )

    def _lies_under(self, place: int, wanted: bytes) -> bool:
        prefix = _ID.pack(place)
        block = self._store.last(TABLE, prefix, prefix + wanted + b"\0") or b""
        at = block.find(wanted)
        while at > 0 and at % _SIZE:  # where one fingerprint ends and the next begins
            at = block.find(wanted, at + 1)
        return at >= 0

    # -- adding and merging ---------------------------------------------------------------------------------------

    def add(self, fingerprints: Sequence[bytes]) -> None:
        """Add sorted new fingerprints as a run, and merge a little."""
        if fingerprints:
            run = _Run(self._new_id(), 0, len(self), len(self) + len(fingerprints), _xor(fingerprints))
            self._write(run.id, fingerprints)
            self._runs.append(run)
        self._plan_merges()
        for run in self._runs:
            for _ in range(1 + _MOVES_PER_FINGERPRINT * len(fingerprints) // _MOVES):
                if run.parts:
                    self._merge(run)

    def _new_id(self) -> int:
        self._next_id += 1
        return self._next_id - 1

    def _plan_merges(self) -> None:
        """Begin merges of the levels that have many runs."""
        runs: list[_Run] = []
        for level, group in groupby(self._runs, key=lambda run: run.level):
            of_level = list(group)
            whole = list(takewhile(lambda run: not run.parts, of_level))
            if len(whole) >= _FAN_IN:
                xor_of_all = reduce(xor, (run.xor for run in whole))
                parts = [run.id for run in whole]
                runs.append(_Run(self._new_id(), level + 1, whole[0].start, whole[-1].end, xor_of_all, parts))
                of_level = of_level[len(whole) :]
            runs += of_level
        self._runs = runs

    def _merge(self, run: _Run) -> None:
        """Move some fingerprints from the parts of a run to its end."""
        moved, used_up, is_all = self._least(run)
        if not is_all:
            del moved[len(moved) - len(moved) % _BLOCK :]  # whole blocks only: the others are taken the next time
        self._write(run.id, moved)
        run.merged = moved[-1]
        for key, last in used_up:
            if last <= run.merged:
                self._store.delete(TABLE, key)
        if is_all:
            run.parts, run.merged = [], b""

    def _least(self, run: _Run) -> tuple[list[bytes], list[tuple[bytes, bytes]], bool]:
        """Return the next fingerprints of a merge, sorted; key and last fingerprint of each block in use; and whether
        that is all."""
        left = {part: self._blocks(part, run.merged) for part in run.parts}
        heads: dict[int, list[bytes]] = {}
        moved: list[bytes] = []
        in_use: list[tuple[bytes, bytes]] = []
        while True:
            for part in [part for part in left if not heads.get(part)]:
                key, heads[part] = next(left[part], (b"", []))
                if heads[part]:
                    in_use.append((key, heads[part][-1]))
                else:
                    del left[part], heads[part]
            if not heads or len(moved) >= max(_MOVES, _BLOCK):
                return moved, in_use, not heads
            bound = min(head[-1] for head in heads.values())
            least: list[bytes] = []
            for part, head in heads.items():
                end = bisect_right(head, bound)
                least += head[:end]
                heads[part] = head[end:]
            least.sort()  # quick: it finds and merges the sorted pieces
            moved += least

    # -- blocks ---------------------------------------------------------------------------------------------------

    def _blocks(self, place: int, after: bytes) -> Iterator[tuple[bytes, list[bytes]]]:
        """Yield key and fingerprints of each block of a run or part; of the first block only those after ``after``."""
        for key, block in self._store.behind(TABLE, _ID.pack(place)):
            if not block or len(block) % _SIZE:
                raise self._store.damaged(f"visited {key.hex()} has {len(block)} bytes")
            fingerprints = list(struct.unpack(f"{_SIZE}s" * (len(block) // _SIZE), block))
            yield key, fingerprints if fingerprints[0] > after else fingerprints[bisect_right(fingerprints, after) :]

    def _write(self, place: int, fingerprints: Sequence[bytes]) -> None:
        for at in range(0, len(fingerprints), _BLOCK):
            block = fingerprints[at : at + _BLOCK]
            self._store.put(TABLE, _ID.pack(place) + block[0], b"".join(block))


def _places(run: _Run) -> list[tuple[int, bytes]]:
    """Return the places of a run's fingerprints, each with the fingerprint after which they begin."""
    return [(run.id, b""), *((part, run.merged) for part in run.parts)]


def _xor(fingerprints: Sequence[bytes]) -> int:
    return reduce(xor, (int.from_bytes(one, "big") for one in fingerprints), 0)
