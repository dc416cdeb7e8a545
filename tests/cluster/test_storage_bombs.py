"""Objects of a storage that unpack to far more than they should: one line, and no memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from memory_helpers import little_memory

from crawl4llm.base.compression import zstd
from crawl4llm.cluster.storage import Storage, StorageError, pack

PARAMETER = zstd.CompressionParameter


def unsized(size: int) -> bytes:
    one = zstd.ZstdCompressor(options={PARAMETER.content_size_flag: 0})
    return one.compress(b"[" * size) + one.flush()


BOMBS: dict[str, Callable[[], bytes]] = {
    "second": lambda: pack([]) + zstd.compress(b" " * (1 << 30)),
    "many": lambda: pack([]) + zstd.compress(b" " * (1 << 20)) * 3000,
    "unsized": lambda: pack([]) + unsized(1 << 28),
    "first": lambda: zstd.compress(b" " * (1 << 28)),
}
"""How to make them: when the tests are collected they would cost each process seconds."""


@pytest.mark.slow
@pytest.mark.parametrize("bomb", BOMBS)
def test_an_object_that_unpacks_to_too_much_is_damaged(tmp_path: Path, bomb: str) -> None:
    """Each is of less than 200 KB. The size that the first frame states was all that was looked at."""
    data = BOMBS[bomb]()
    assert len(data) < 200_000
    storage = Storage(f"file://{tmp_path}")
    storage.put("bomb", data)
    with little_memory(200_000_000), pytest.raises(StorageError, match="bomb is damaged: it unpacks to more than"):
        storage.read("bomb", storage.get("bomb") or b"")
