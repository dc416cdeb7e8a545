"""Durable visited sets for tests: so small in all their parts that a few keys make blocks, runs, merges and filters."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from crawl4llm.frontier import bloom, fingerprints, visited as durable
from crawl4llm.frontier.store import Store
from crawl4llm.frontier.visited import DurableVisited

ROOMY, TIGHT = 1 << 30, 0


@contextmanager
def small_parts() -> Iterator[None]:
    """Blocks of 3, merges of 2 or more runs, 4 moves at once, filters of 8, 32, 128 ..., saved as soon as they grow."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fingerprints, "_BLOCK", 3)
        patch.setattr(fingerprints, "_FAN_IN", 2)
        patch.setattr(fingerprints, "_MOVES", 4)
        patch.setattr(bloom, "_FIRST_CAPACITY", 8)
        patch.setattr(bloom, "_GROWTH", 4)
        patch.setattr(durable, "_LEAST_BEHIND", 0)
        patch.setattr(durable, "_BYTES_PER_FINGERPRINT", 1 << 40)
        yield


class Opened:
    """A durable visited set in a folder, with its store."""

    def __init__(self, folder: Path, *, cache: int = 4, filter_bytes: int = ROOMY) -> None:
        self.folder, self.cache, self.filter_bytes = folder, cache, filter_bytes
        self.open()

    def open(self) -> None:
        self.store = Store(self.folder / "store.mdb", fsync=False)
        self.visited = DurableVisited(
            self.store,
            self.folder / "visited.filter",
            cache=self.cache,
            filter_bytes=self.filter_bytes,
            fsync=False,
        )
        self.visited.load_filter()

    def commit(self) -> None:
        self.visited.save()
        self.store.commit()

    def kill(self) -> None:
        """End without a word and open it again: what was not committed is lost."""
        self.store.close()
        self.open()

    def reopen(self) -> None:
        """Pause and resume."""
        self.commit()
        self.visited.close()
        self.kill()


class Reopened:
    """A durable visited set that is committed before each use, and every third time opened anew."""

    def __init__(self, cache: int, filter_bytes: int) -> None:
        self._temporary = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # goes with this object
        self._opened = Opened(Path(self._temporary.name), cache=cache, filter_bytes=filter_bytes)
        self._uses = itertools.count(1)

    def _visited(self) -> DurableVisited:
        if next(self._uses) % 3:
            self._opened.commit()
        else:
            self._opened.reopen()
        return self._opened.visited

    def add(self, keys: Iterable[str]) -> list[str]:
        return self._visited().add(keys)

    def __contains__(self, key: object) -> bool:
        return key in self._visited()

    def __len__(self) -> int:
        return len(self._visited())
