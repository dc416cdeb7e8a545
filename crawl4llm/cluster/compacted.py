"""The archive in a storage: pages as they were put, or compacted: many such segments one behind the other in an object.

``warc/00000012-0003.warc.gz`` begins with the segment of partition 3 of iteration 12, ``.cdxj`` beside it holds the
indexes of its segments as they were, and ``.segments``, which is put last, says where each of them lies. What is
compacted is deleted only then: at any moment each segment can be read, and all have the same bytes in both places.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from crawl4llm.cluster import shapes
from crawl4llm.cluster.storage import Storage, StorageError, pack
from crawl4llm.warc.cdxj import IndexLine, parse_index_line

WARC: Final = "warc/"
_SEGMENTS, _INDEX = ".segments", ".cdxj"
_KEPT: Final = 16
"""Lists of segments in memory, each of WARC_MAX_BYTES of the archive."""


class Segment(NamedTuple):
    """A segment of a compacted object, and of the object with the indexes."""

    name: str
    start: int
    size: int
    index_start: int
    index_size: int


class Pages:
    """Reads segments by the name that exchanges give them. All methods raise StorageError."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.compacted: list[str] = []
        """The lists of segments, in their order."""
        self._read = lru_cache(maxsize=_KEPT)(self._read_list)
        self.look_again()

    def look_again(self) -> None:
        """List again what is compacted."""
        self.compacted = [name for name in self._storage.names(WARC) if name.endswith(_SEGMENTS)]

    def last(self) -> Sequence[Segment]:
        """Return the segments that were compacted last, in their order; empty where none were."""
        return list(self._read(self.compacted[-1]).values()) if self.compacted else []

    def place(self, name: str) -> tuple[str, int]:
        """Return the object that holds a segment, and where it begins there."""
        found = self._find(name)
        return (name, 0) if found is None else (found[0] + _suffix(name), found[1].start)

    def get(self, name: str) -> bytes:
        """Return a segment."""
        return self._bytes(name, of_index=False)

    def index(self, name: str) -> dict[str, IndexLine]:
        """Return the lines of the index of a segment, by document key."""
        lines = map(parse_index_line, self._bytes(name, of_index=True).splitlines(keepends=True))
        found = {line.id: line for line in lines if line is not None}
        if not found:
            raise self._storage.damaged(index_name(name), "it lists no page")
        return found

    def raw_index(self, name: str) -> bytes:
        """Return the index of a segment as it is."""
        return self._bytes(name, of_index=True)

    def compact(self, segments: Sequence[tuple[str, bytes, bytes]]) -> None:
        """Put segments (name, content, index) together; nothing is done twice, whoever did it before."""
        base = _base(segments[0][0])
        places, start, index_start = [], 0, 0
        for name, content, index in segments:
            places.append(Segment(name, start, len(content), index_start, len(index)))
            start, index_start = start + len(content), index_start + len(index)
        self._storage.put(base + _suffix(segments[0][0]), b"".join(content for _, content, _ in segments))
        self._storage.put(base + _INDEX, b"".join(index for _, _, index in segments))
        self._storage.put(base + _SEGMENTS, pack(places))
        self.look_again()
        self.delete(places)

    def delete(self, segments: Sequence[Segment]) -> None:
        """Delete the objects whose segments are compacted."""
        for segment in segments:
            self._storage.delete(index_name(segment.name))
            self._storage.delete(segment.name)

    def _bytes(self, name: str, *, of_index: bool) -> bytes:
        for look_again in (False, True):  # it may have been compacted since
            if look_again:
                self.look_again()
            if (found := self._find(name)) is not None:
                file, at = found
                place = (at.index_start, at.index_size) if of_index else (at.start, at.size)
                return self._storage.get_range(file + (_INDEX if of_index else _suffix(name)), *place)
            if (data := self._storage.get(index_name(name) if of_index else name)) is not None:
                return data
        raise StorageError(f"STORAGE {self._storage.url}: {name} is missing")

    def _find(self, name: str) -> tuple[str, Segment] | None:
        at = bisect_right(self.compacted, _base(name) + _SEGMENTS)
        segment = self._read(self.compacted[at - 1]).get(name) if at else None
        return None if segment is None else (self.compacted[at - 1].removesuffix(_SEGMENTS), segment)

    def _read_list(self, name: str) -> dict[str, Segment]:
        segments = shapes.read(self._storage, name, self._storage.get(name) or b"", shapes.SEGMENTS)
        return {segment[0]: Segment(*segment) for segment in segments}


def index_name(name: str) -> str:
    """Return the name of the index of a segment that is not compacted."""
    return name.partition(".")[0] + _INDEX


def _suffix(name: str) -> str:
    return "." + name.partition(".")[2]


def _base(name: str) -> str:
    """Return what the names of compacted objects begin with whose first segment this is."""
    _, iteration, pages = name.split("/")
    return f"{WARC}{iteration}-{pages.split('-')[1]}"
