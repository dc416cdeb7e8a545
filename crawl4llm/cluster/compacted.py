"""The archive in a storage: segments of pages as they were put, or compacted: many of them in one object.

``warc/00000012-0003-00000019-0001.warc.gz`` begins with the segment of partition 3 of iteration 12. It ends with that
of partition 1 of iteration 19. In continuous order ``warc/0003-00000012-0003-00000047.warc.gz`` has the segments of
partition 3, of its commits 12 to 47. ``.cdxj`` beside it holds the indexes of its segments as they were, each with its
checksum. ``warc/00000012-0003.segments``, which is put last, says where each segment lies. Only then are the single
segments deleted. So each segment can be read at any moment, with the same bytes in both places.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, TypeVar

from crawl4llm.cluster import shapes
from crawl4llm.cluster.storage import Storage, StorageError, sealed
from crawl4llm.warc import IndexLine, parse_index_line

WARC: Final = "warc/"
_SEGMENTS, _INDEX = ".segments", ".cdxj"
_KEPT: Final = 16
"""Lists of segments in memory, each of WARC_MAX_BYTES of the archive; or one per partition, if there are more
partitions."""
_PIECE: Final = 1 << 22
"""Bytes that are copied at a time."""
_OTHER_DIGEST: Final = "it has another digest"
_Found = TypeVar("_Found")


class Segment(NamedTuple):
    """A segment of a compacted object, and of the object with the indexes."""

    name: str
    start: int
    size: int
    index_start: int
    index_size: int


class Pages:
    """Reads segments by the name that exchanges and commits give them. All methods raise StorageError."""

    def __init__(self, storage: Storage, partitions: int) -> None:
        self._storage = storage
        self._read = lru_cache(maxsize=max(_KEPT, partitions))(self._read_list)
        self.look_again()

    def look_again(self) -> None:
        """List the compacted objects again."""
        self._names = list(self._storage.names(WARC))
        self.compacted = [name for name in self._names if name.endswith(_SEGMENTS)]
        """The lists of segments, in their order."""

    def place(self, name: str) -> tuple[str, int]:
        """Return the object that holds a segment, and where it begins there."""
        found = self._find(name)
        return (name, 0) if found is None else (found[0] + _suffix(name), found[1].start)

    def get(self, name: str) -> bytes:
        """Return a segment, which has the digest in its name."""
        data = self._piece(name)
        if hashlib.sha256(data).hexdigest() != digest_of(name):
            raise self._storage.damaged(name, _OTHER_DIGEST)
        return data

    def index(self, name: str) -> list[IndexLine]:
        """Return the lines of the index of a segment, whose checksum holds."""
        with self._storage.reading(index_name(name)):
            parsed = map(parse_index_line, self._index(name).splitlines(keepends=True))
            lines = [line for line in parsed if line is not None]
        if not lines:
            raise self._storage.damaged(index_name(name), "it lists no page")
        return lines

    def _index(self, name: str) -> bytes:
        data = self._look(
            name,
            lambda base, at: self._storage.get_range(base + _INDEX, at.index_start, at.index_size),
            lambda: self._storage.get_as_is(index_name(name)),
        )
        return self._storage.unsealed(index_name(name), data)

    def sizes(self, name: str) -> tuple[int, int]:
        """Return the bytes of a segment and of its index."""

        def own() -> tuple[int, int] | None:
            size, index_size = self._storage.size(name), self._storage.size(index_name(name))
            return None if size is None or index_size is None else (size, index_size)

        return self._look(name, lambda _, at: (at.size, at.index_size), own)

    # -- compaction -----------------------------------------------------------------------------------------------

    def last(self, series: str = "") -> str:
        """Return the last compacted segment of the lists with this name; empty if there is no compacted one. Leftovers
        of a killed compaction are deleted."""
        lists = [name for name in self.compacted if name.startswith(WARC + series)]
        return self._clean_up(lists[-1]) if lists else ""

    def compact(self, segments: Sequence[tuple[str, int, int]]) -> None:
        """Put segments (name, bytes, bytes of the index) together; nothing is done twice, whoever did it before."""
        places, start, index_start = [], 0, 0
        for name, size, index_size in segments:
            places.append(Segment(name, start, size, index_start, index_size))
            start, index_start = start + size, index_start + index_size
        base, suffix = _object(places), _suffix(places[0].name)
        self._storage.put_pieces(base + suffix, start, self._pieces(places))
        indexes = (sealed(index_name(one.name), self._index(one.name)) for one in places)
        self._storage.put_pieces(base + _INDEX, index_start, indexes)
        called = _base(places[0].name) + _SEGMENTS
        self._storage.put_packed(called, places)
        self.look_again()
        self._clean_up(called)

    def _pieces(self, segments: Sequence[Segment]) -> Iterator[bytes]:
        for name, _, size, _, _ in segments:
            digest = hashlib.sha256()
            for start in range(0, size, _PIECE):
                piece = self._piece(name, start, min(_PIECE, size - start))
                digest.update(piece)
                yield piece
            if digest.hexdigest() != digest_of(name):
                raise self._storage.damaged(name, _OTHER_DIGEST)

    def _piece(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        """Return some bytes of a segment, by default all."""
        return self._look(
            name,
            lambda base, at: self._storage.get_range(base + _suffix(name), at.start + start, size or at.size),
            lambda: self._storage.get_range(name, start, size) if size else self._storage.get_as_is(name),
        )

    def _clean_up(self, called: str) -> str:
        """Delete the segments that a list replaces, except those at the places that it names; return the last of them.

        Two compactions that see the end of a crawl at different times may each put an object for the same list. The
        list names one, and no other can be put."""
        kept, places = self._read(called)
        segments = list(places.values())
        for name in self._names:
            if name.startswith(called.removesuffix(_SEGMENTS) + "-") and not name.startswith(f"{kept}."):
                self._storage.delete(name)
        last = segments[-1].name
        if self._storage.size(last) is not None:  # it is deleted last
            for segment in segments:
                self._storage.delete(index_name(segment.name))
                self._storage.delete(segment.name)
        return last

    # -- where segments lie ---------------------------------------------------------------------------------------

    def _look(
        self, name: str, compacted: Callable[[str, Segment], _Found | None], own: Callable[[], _Found | None]
    ) -> _Found:
        """Return the content of a segment, from a compacted object or from its own."""
        for look_again in (False, True):  # it may have been compacted since
            if look_again:
                self.look_again()
            found = self._find(name)
            data = own() if found is None else compacted(*found)
            if data is not None:
                return data
        raise StorageError(f"STORAGE {self._storage.url}: {name} is missing")

    def _find(self, name: str) -> tuple[str, Segment] | None:
        """Return the beginning of the name of the object that holds a segment, and the segment's place in it."""
        if not (at := bisect_right(self.compacted, _base(name) + _SEGMENTS)):
            return None
        base, segments = self._read(self.compacted[at - 1])
        return None if (segment := segments.get(name)) is None else (base, segment)

    def _read_list(self, name: str) -> tuple[str, dict[str, Segment]]:
        """Return the beginning of the object's name, and its segments by name."""
        found = shapes.read(self._storage, name, self._storage.get(name) or b"", shapes.SEGMENTS)
        segments = [Segment(*segment) for segment in found]
        return _object(segments), {segment.name: segment for segment in segments}


def index_name(name: str) -> str:
    """Return the name of the index of a segment that is not compacted."""
    return name.partition(".")[0] + _INDEX


def digest_of(name: str) -> str:
    """Return the SHA-256 digest that a segment has by its name."""
    return name.partition(".")[0].rpartition("-")[2]


def _suffix(name: str) -> str:
    return "." + name.partition(".")[2]


def _base(name: str) -> str:
    """Return the beginning of the name of the list that starts with this segment."""
    _, folder, pages = name.split("/")
    return f"{WARC}{folder}-{pages.split('-')[1]}"


def _object(segments: Sequence[Segment]) -> str:
    """Return the beginning of the names of the object of segments and of their indexes."""
    return f"{_base(segments[0].name)}-{_base(segments[-1].name).removeprefix(WARC)}"
