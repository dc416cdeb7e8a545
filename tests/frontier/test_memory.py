"""What the stores in memory take of it."""

from __future__ import annotations

import tracemalloc

from frontier_contract import entry

from crawl4llm.frontier import Entry
from crawl4llm.frontier.memory import MemoryVisited, pack, unpack
from crawl4llm.frontier.opening import memory_frontier

_DOCUMENTS, _BATCH = 12_000, 500
_MOST_QUEUED, _MOST_VISITED = 150, 40


def batch(start: int) -> list[Entry]:
    """Entries with a key, a URL and a parent of their own."""
    return [
        Entry(f"clueweb22-en0000-00-{number:05d}", f"http://example.org/{number}", number * 0.37 % 1, 1, f"p{number}")
        for number in range(start, start + _BATCH)
    ]


def test_a_queued_document_takes_little_but_its_texts() -> None:
    """At whatever size, and where documents get new scores."""
    frontier, texts = memory_frontier(), 0
    tracemalloc.start()
    try:
        for start in range(0, _DOCUMENTS, _BATCH):
            entries = batch(start)
            texts += sum(len(one.key) + len(one.url) + len(one.parent or "") for one in entries)
            frontier.push(entries)
            del entries
            assert start < 6_000 or tracemalloc.get_traced_memory()[0] < texts + _MOST_QUEUED * len(frontier)
        for start in range(0, _DOCUMENTS, _BATCH):
            assert frontier.rerank([(one.key, one.score / 2 - 1) for one in batch(start)]) == _BATCH
            assert tracemalloc.get_traced_memory()[0] < texts + _MOST_QUEUED * _DOCUMENTS
    finally:
        tracemalloc.stop()


def test_a_visited_document_takes_little() -> None:
    visited = MemoryVisited()
    tracemalloc.start()
    try:
        for start in range(0, _DOCUMENTS, _BATCH):
            visited.add(f"http://example.org/{number}" for number in range(start, start + _BATCH))
            assert tracemalloc.get_traced_memory()[0] < _MOST_VISITED * len(visited) + 1000
    finally:
        tracemalloc.stop()


def test_documents_are_unpacked_as_they_were_packed() -> None:
    """With all kinds of texts; the two zeros are one score."""
    for key in ("", "\0", "a\0\0", "\0\1", "é\ud800\U0010ffff"):
        for parent in (None, "", "\0\1\0\0"):
            for one in (entry(key, -0.0, 2**31, parent), Entry(key, "", 0.1, 0, parent, 3, 5)):
                assert unpack(pack(one)) == one
                assert str(unpack(pack(one)).score) == str(one.score + 0.0)
