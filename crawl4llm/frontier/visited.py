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
"""Least number of fingerprints that a saved filter lacks before it is saved again; adding them takes half a second."""
_BYTES_PER_FINGERPRINT = 128
"""Bytes that saving the filter may write for each fingerprint added."""
_BYTES_IN_MEMORY = 100
"""Bytes of a fingerprint in memory."""

logger = logging.getLogger(__name__)


class VisitedSet(Protocol):
    """Remembers keys exactly: a key that was never added is always new. All implementations pass one contract test
    suite."""

    def add(self, keys: Iterable[str]) -> list[str]:
        """Add keys; return those that were new, each once, in the order given."""

    def __contains__(self, key: object) -> bool: ...

    def __len__(self) -> int: ...


class DurableVisited:
    """Implements :class:`crawl4llm.frontier.visited.VisitedSet` in a store, by 128-bit fingerprints of the keys.

    Recently used fingerprints are in memory, which is enough as long as it holds all of them. Later, three places are
    asked in turn: a Bloom filter recognises most new keys, memory has recently used ones, and the sorted runs on disk
    decide the rest. Neither a false positive of the filter nor a missing filter loses a document.

    :meth:`save` writes new fingerprints to the store, whose commit makes them durable.
    """

    def __init__(self, store: Store, filter_path: Path, *, cache: int, filter_bytes: int, fsync: bool = True) -> None:
        """Restore the set in a store. Raises StoreError if that is damaged.

        ``cache``: fingerprints in memory, 100 bytes each, besides those added since the last save. ``filter_path``: the
        file of the filter; others lie beside it. ``filter_bytes``: its most memory, 12 bits a key. ``fsync``: whether
        its files wait for the disk; otherwise a power cut may cost the filter, which is then rebuilt.
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
        """All fingerprints with this number or a later one are in memory."""
        self._young_from = len(self._runs)
        """Fingerprints with this number or a later one are fresh or in the young generation."""
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
        """Write changes to the store, and the filter to its files when that is due. Raises StoreError, or InputError if
        the filter cannot be written."""
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
        """Load the saved filter, if one is needed; ``progress``: show a bar if much must be added to it. Before this
        call, keys that are not in memory are looked up on disk."""
        if self._known_from:
            self._take_up_filter(progress=progress)

    def verify(self) -> None:
        """Read everything in the store. Raises StoreError, which names the fault."""
        self._runs.verify()

    def close(self) -> None:
        """Save the filter; the store stays open. Raises InputError."""
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
        """Load the filter and add the fingerprints that it lacks, which may be all."""
        if len(self) > self._filter_capacity:
            self._give_filter_up()
            return
        path, most_bytes = self._filter_path, self._filter_bytes
        try:
            loaded = FingerprintFilter.load(path, most_bytes=most_bytes, fsync=self._fsync)
            self._filter, self._filter_mark = loaded, self._trusted_mark(loaded)
        except (OSError, ValueError) as error:
            if self._filter_mark is not None or not isinstance(error, FileNotFoundError):
                logger.info("The visited set's filter %s is rebuilt: %s", path, error)
            FingerprintFilter.remove(path)
            self._filter_mark = None
            self._filter = FingerprintFilter(path, most_bytes=most_bytes, fsync=self._fsync)
        start = self._filter_mark.size if self._filter_mark else 0
        lacking = self._runs.added_since(start)
        bar = Progress(self._runs.since(start), "visited set", lacking, unit=" keys", bar=progress and lacking > 0)
        for one in chain(bar, self._fresh):
            self._filter.add(one)

    def _trusted_mark(self, loaded: FingerprintFilter) -> Mark:
        """Return the latest set that a filter surely contains. Raises ValueError if it is not of this store.

        That is the present set of the store, or the one at the filter's last save. Further fingerprints in the filter
        do no harm, because it only ever answers "maybe". They come from a kill between saving the filter and the
        store's commit, and most of them are found again. The others waste space, so a filter with many of them is not
        trusted either.
        """
        known = [mark for mark in loaded.marks if mark in (self._runs.mark, self._filter_mark)]
        if not known:
            raise ValueError("it belongs to another store, or to this one at another time")
        if len(loaded) > len(self) + len(self) // 8 + _LEAST_BEHIND:
            raise ValueError("much of its content is not in the store")
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
    """Return the bytes of memory for a set of ``documents`` documents."""
    in_cache = min(documents, cache) * _BYTES_IN_MEMORY
    return in_cache + (bytes_within(filter_bytes, documents) if documents > cache else 0)
