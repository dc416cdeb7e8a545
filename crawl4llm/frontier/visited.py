"""The visited set: every document ever discovered (V of Algorithm 1)."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Protocol

from crawl4llm.base.bars import Progress
from crawl4llm.base.received import VISITED
from crawl4llm.frontier.bloom import FingerprintFilter, bytes_within, capacity_within
from crawl4llm.frontier.fingerprints import FingerprintRuns, Mark, fingerprint
from crawl4llm.frontier.store import Store

VISITED_STATE = b"visited"
_LEAST_BEHIND = 65_536
"""Fingerprints, at least, that a saved filter may lack before it is saved again; half a second to add them."""
_BYTES_PER_FINGERPRINT = 128
"""Bytes that saving the filter may write for each fingerprint added."""
_BYTES_IN_MEMORY = 100
"""Of a fingerprint."""

logger = logging.getLogger(__name__)


class VisitedSet(Protocol):
    """Remembers keys. Exact: a key that was never added is always new. One contract test suite for all."""

    def add(self, keys: Iterable[str]) -> list[str]:
        """Add keys; return those that were new, each once, in the order given."""

    def __contains__(self, key: object) -> bool: ...

    def __len__(self) -> int: ...


class DurableVisited:
    """Implements :class:`crawl4llm.frontier.visited.VisitedSet` in a store, by 128-bit fingerprints of the keys.

    Fingerprints used lately are in memory; while those are all there are, that is the answer. Beyond, three places are
    asked in turn: a Bloom filter knows most of what is new, memory what was used lately, and the sorted runs on disk
    decide the rest. Neither a false positive of the filter nor the lack of one loses a document.

    :meth:`save` writes what is new to the store, whose commit makes it last.
    """

    def __init__(self, store: Store, filter_path: Path, *, cache: int, filter_bytes: int, fsync: bool = True) -> None:
        """Take up what the store holds. Raises StoreError if that is damaged.

        ``cache``: fingerprints in memory, 100 bytes each, besides what was added since the last save.
        ``filter_path``: the file that keeps the filter; others lie beside it. ``filter_bytes``: memory that it may
        take, 12 bits a key. ``fsync``: whether its files wait for the disk; after a power cut it may be made anew.
        """
        self._store = store
        self._filter_path = filter_path
        self._fsync = fsync
        state = store.stated(VISITED_STATE, VISITED)
        self._runs = FingerprintRuns(store, state.get("runs"))

        self._filter: FingerprintFilter | None = None
        self._filter_bytes, self._filter_capacity = filter_bytes, capacity_within(filter_bytes)
        mark = state.get("filter")
        self._filter_mark = Mark(mark[0], int(mark[1], 16)) if mark else None

        # What was added since the last save, and two generations of what was used lately: the young one, when it is
        # full, becomes the old one, which is forgotten.
        self._generation = max(1, cache // 2)
        self._fresh: set[bytes] = set()
        self._known_from = self._runs.start_of_newest(cache)
        """All fingerprints that were added as this number or later are in memory."""
        self._young_from = len(self._runs)
        """Those added as this number or later are fresh or in the young generation."""
        newest = list(self._runs.since(self._known_from))
        self._young, self._old = set(newest[: self._generation]), set(newest[self._generation :])

    # -- the visited set's protocol -------------------------------------------------------------------------------

    def add(self, keys: Iterable[str]) -> list[str]:
        wanted = dict.fromkeys(keys)
        if self._filter is not None and len(self._filter) + len(wanted) > self._filter_capacity:
            self._give_filter_up()
        known, fresh, young, old = self._filter, self._fresh, self._young, self._old
        new = []
        for key in wanted:
            one = fingerprint(key)
            if known is None or known.add(one):  # without: all may be there
                if one in fresh or one in young:
                    continue
                if one in old or (self._known_from and self._runs.find(one, self._known_from)):
                    young.add(one)
                    continue
            fresh.add(one)
            new.append(key)
        if len(self._young) > self._generation:
            self._age()
        return new

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, str):
            return False
        one = fingerprint(key)
        if one in self._fresh or one in self._young or one in self._old:
            return True
        if self._filter is not None and one not in self._filter:
            return False
        return self._runs.find(one, self._known_from)

    def __len__(self) -> int:
        return len(self._runs) + len(self._fresh)

    # -- durability -----------------------------------------------------------------------------------------------

    def fresh(self) -> list[bytes]:
        """Return the fingerprints that were added since the last save, sorted."""
        return sorted(self._fresh)

    def save(self) -> None:
        """Write to the store what it does not hold yet, and the filter to its files when that is due. Raises
        StoreError, or InputError where the filter cannot be written."""
        self._runs.add(sorted(self._fresh))
        self._young |= self._fresh
        self._fresh = set()
        if len(self._young) > self._generation:
            self._age()
        if self._filter is not None:
            behind = self._runs.added_since(self._filter_mark.size if self._filter_mark else 0)
            if behind > max(_LEAST_BEHIND, self._filter.growing_bytes // _BYTES_PER_FINGERPRINT):
                self._filter.save(self._runs.mark)
                self._filter_mark = self._runs.mark
        mark = self._filter_mark
        state = {"runs": self._runs.state(), "filter": [mark.size, f"{mark.xor:x}"] if mark else None}
        self._store.put("state", VISITED_STATE, json.dumps(state).encode())

    def load_filter(self, *, progress: bool = False) -> None:
        """Take up the saved filter, where one is needed; ``progress``: with a bar, where much must be added to it.
        Before this is called, all that is not in memory is looked up on disk."""
        if self._known_from:
            self._take_up_filter(progress=progress)

    def verify(self) -> None:
        """Read all that is stored. Raises StoreError, which names what is wrong."""
        self._runs.verify()

    def close(self) -> None:
        """Save the filter as it is; the store is closed by whoever opened it. Raises InputError."""
        if self._filter is not None and self._runs.mark not in self._filter.marks:
            self._filter.save(self._runs.mark)

    # -- its parts ------------------------------------------------------------------------------------------------

    def _age(self) -> None:
        """Forget the old generation."""
        knew_all = not self._known_from
        if self._old:
            self._known_from = self._young_from
        self._old, self._young, self._young_from = self._young, set(), len(self._runs)
        if knew_all and self._known_from:
            self._take_up_filter(progress=False)

    def _take_up_filter(self, *, progress: bool) -> None:
        """Load the filter and add what it lacks, which may be everything."""
        if len(self) > self._filter_capacity:
            self._give_filter_up()
            return
        path, most_bytes = self._filter_path, self._filter_bytes
        try:
            loaded = FingerprintFilter.load(path, most_bytes=most_bytes, fsync=self._fsync)
            self._filter, self._filter_mark = loaded, self._trusted_mark(loaded)
        except (OSError, ValueError) as error:
            if self._filter_mark is not None or not isinstance(error, FileNotFoundError):
                logger.info("The visited set's filter %s is made anew: %s", path, error)
            FingerprintFilter.remove(path)
            self._filter_mark = None
            self._filter = FingerprintFilter(path, most_bytes=most_bytes, fsync=self._fsync)
        start = self._filter_mark.size if self._filter_mark else 0
        lacking = self._runs.added_since(start)
        bar = Progress(self._runs.since(start), "visited set", lacking, unit=" keys", bar=progress and lacking > 0)
        for one in chain(bar, self._fresh):
            self._filter.add(one)

    def _trusted_mark(self, loaded: FingerprintFilter) -> Mark:
        """Return the latest set that a filter held for sure; ValueError where that is none of this store.

        That is the set which the store holds now, or the one it held when it last saved the filter. What the filter
        holds beyond that does no harm, as it only ever says "maybe": a kill between saving the filter and the store's
        commit leaves there what was found since the commit before. Most of that is found again; what is not takes the
        place of something else, so a filter with much of it is not trusted either.
        """
        known = [mark for mark in loaded.marks if mark in (self._runs.mark, self._filter_mark)]
        if not known:
            raise ValueError("it belongs to another store, or to this one at another time")
        if len(loaded) > len(self) + len(self) // 8 + _LEAST_BEHIND:
            raise ValueError("much of what it holds is not in the store")
        return max(known)

    def _give_filter_up(self) -> None:
        self._filter = self._filter_mark = None
        FingerprintFilter.remove(self._filter_path)
        logger.info(
            "The visited set's filter would outgrow its memory, which is for %d keys: without it, each key that is not "
            "in the cache is looked up on disk",
            self._filter_capacity,
        )


def expected_memory(documents: int, *, cache: int, filter_bytes: int) -> int:
    """Return the bytes that a set of so many documents takes."""
    in_cache = min(documents, cache) * _BYTES_IN_MEMORY
    return in_cache + (bytes_within(filter_bytes, documents) if documents > cache else 0)
