"""The archive in a storage: segments, which a partition writes between two steps, and many of them compacted in one.

A segment is a WARC file with its index. ``warc/00000012-0003-00000019-0001.warc.gz`` begins with the segment of
partition 3 of iteration 12. It ends with that of partition 1 of iteration 19. In continuous order
``warc/0003-00000012-0003-00000047.warc.gz`` has the segments of partition 3, of its commits 12 to 47. ``.cdxj`` beside
it holds the indexes of its segments as they were, each with its checksum. ``warc/00000012-0003.segments``, which is put
last, says where each segment lies. Only then are the single segments deleted. So each segment can be read at any
moment, with the same bytes in both places.
"""

from __future__ import annotations

import hashlib
import shutil
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from crawl4llm.base.crawl_log import CrawlLine, FailureLine, LogPosition
from crawl4llm.base.errors import as_input_error
from crawl4llm.base.files import ArchiveError
from crawl4llm.base.pages import Capture, PageRecord
from crawl4llm.cluster import shapes
from crawl4llm.cluster.storage import Storage, StorageError, sealed
from crawl4llm.crawl import open_archive
from crawl4llm.options import Options
from crawl4llm.warc import INDEX_NAME, Archive, ArchiveInfo, IndexLine, NullArchive, Values, parse_index_line

T = TypeVar("T")
_ANY_SIZE: Final = 1 << 62
WARC: Final = "warc/"
_SEGMENTS, _INDEX = ".segments", ".cdxj"
_KEPT: Final = 16
"""Lists of segments in memory, each of WARC_MAX_BYTES of the archive; or one per partition, if there are more
partitions."""
_PIECE: Final = 1 << 22
"""Bytes that are copied at a time."""
_OTHER_DIGEST: Final = "it has another digest"


class Lines:
    """Keeps the lines of both logs until they are asked for."""

    def __init__(self) -> None:
        self.pages: list[CrawlLine] = []
        self.failures: list[FailureLine] = []

    def write(self, pages: Sequence[CrawlLine], failures: Sequence[FailureLine]) -> None:
        self.pages += pages
        self.failures += failures

    def take(self) -> tuple[list[CrawlLine], list[FailureLine]]:
        taken = self.pages, self.failures
        self.pages, self.failures = [], []
        return taken

    def flush(self, *, fsync: bool = False) -> None:
        """Do nothing: lines are put with the commit that they belong to."""

    def position(self) -> LogPosition:
        return LogPosition(0, 0)


class Segment(NamedTuple):
    """A WARC file with its index."""

    suffix: str
    data: bytes
    listing: bytes
    """The index."""

    def put(self, storage: Storage, base: str) -> str:
        """Put it into a storage, under a name that begins with ``base``, and return the file's. Raises StorageError."""
        name = f"{base}-{hashlib.sha256(self.data).hexdigest()}"
        storage.put(f"{name}.cdxj", self.listing)
        storage.put_as_is(f"{name}{self.suffix}", self.data)
        return f"{name}{self.suffix}"


class Segments(NullArchive):
    """Implements :class:`crawl4llm.warc.Archive` for one partition; each file begins with the first page of a step.

    The metadata records lack the page's ``order`` in the crawl, which is not known before the merge.
    """

    def __init__(self, folder: Path, options: Options, info: ArchiveInfo, partition: int) -> None:
        self._folder = folder
        self._options = replace(options, warc_max_bytes=_ANY_SIZE)
        self._info = info
        self._partition = partition
        self._archive: Archive | None = None
        self.number = 0
        """Of the step: a batch, or a commit."""

    def write(self, page: PageRecord, fields: Values, text: str | None = None) -> None:
        self._opened().write(page, {**fields, "order": None}, text)

    def take(self) -> Segment | None:
        """Return the archived pages and start a new segment; None if there are no pages. Raises InputError."""
        archive, self._archive = self._archive, None
        if archive is None:
            return None
        with as_input_error(f"cannot read {self._folder}", ArchiveError):
            archive.close()
            files = list(self._folder.glob("*.warc*"))
            if not files:  # archiving is off, or no URL fits into a record
                return None
            data, index = files[0].read_bytes(), (self._folder / INDEX_NAME).read_bytes()
        shutil.rmtree(self._folder)
        return Segment("".join(files[0].suffixes[-2:]), data, index)

    def write_redirects(self, page: PageRecord, fields: Values) -> None:
        self._opened().write_redirects(page, fields)

    def write_exchange(self, capture: Capture, purpose: str, fields: Values) -> None:
        self._opened().write_exchange(capture, purpose, fields)

    def _opened(self) -> Archive:
        """Return the file's writer; begin one if needed."""
        if self._archive is None:
            prefix = f"{self._info.prefix}-{self._partition:04}-{self.number:08}"
            self._archive = open_archive(self._folder, self._options, replace(self._info, prefix=prefix))
        return self._archive

    def close(self, *, fsync: bool = False) -> None:
        """Forget segments that were not put."""
        self._archive = None
        shutil.rmtree(self._folder, ignore_errors=True)


class Place(NamedTuple):
    """The place of a segment in a compacted object, and of its index in the object with the indexes."""

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
        return self._where(name)[:2]

    def get(self, name: str) -> bytes:
        """Return a segment, which has the digest in its name."""
        data = self._bytes(name)
        if hashlib.sha256(data).hexdigest() != digest_of(name):
            raise self._storage.damaged(name, _OTHER_DIGEST)
        return data

    def index(self, name: str) -> list[IndexLine]:
        """Return the lines of the index of a segment, whose checksum holds."""
        name = index_name(name)
        with self._storage.reading(name):
            parsed = map(parse_index_line, self._index(name).splitlines(keepends=True))
            lines = [line for line in parsed if line is not None]
        if not lines:
            raise self._storage.damaged(name, "it lists no page")
        return lines

    def _index(self, name: str) -> bytes:
        return self._storage.unsealed(name, self._bytes(name))

    def sizes(self, name: str) -> tuple[int, int]:
        """Return the bytes of a segment and of its index."""

        def size(called: str, _: int, most: int | None) -> int | None:
            return self._storage.size(called) if most is None else most

        return self._ask(name, size), self._ask(index_name(name), size)

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
            places.append(Place(name, start, size, index_start, index_size))
            start, index_start = start + size, index_start + index_size
        base, suffix = _object(places), _suffix(places[0].name)
        self._storage.put_pieces(base + suffix, start, self._pieces(places))
        names = (index_name(one.name) for one in places)
        self._storage.put_pieces(base + _INDEX, index_start, (sealed(name, self._index(name)) for name in names))
        called = _base(places[0].name) + _SEGMENTS
        self._storage.put_packed(called, places)
        self.look_again()
        self._clean_up(called)

    def _pieces(self, segments: Sequence[Place]) -> Iterator[bytes]:
        for name, _, size, _, _ in segments:
            digest = hashlib.sha256()
            for start in range(0, size, _PIECE):
                piece = self._bytes(name, start, min(_PIECE, size - start))
                digest.update(piece)
                yield piece
            if digest.hexdigest() != digest_of(name):
                raise self._storage.damaged(name, _OTHER_DIGEST)

    def _clean_up(self, called: str) -> str:
        """Delete the segments that a list replaces, except those at the places that it names; return the last of them.

        Two compactions that see the end of a crawl at different times may each put an object for the same list. The
        list names one, and no other can be put."""
        places = self._read(called)
        kept = {name for name, _, _ in places.values()}
        for name in self._names:
            if name.startswith(called.removesuffix(_SEGMENTS) + "-") and name not in kept:
                self._storage.delete(name)
        *_, last = places
        if self._storage.size(last) is not None:  # it is deleted last
            for name in places:
                self._storage.delete(name)
        return last

    # -- where segments lie ---------------------------------------------------------------------------------------

    def _bytes(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        """Return some bytes of a segment or of an index, by default all."""

        def read(called: str, first: int, most: int | None) -> bytes | None:
            wanted = most if size is None else size
            if wanted is None:
                return self._storage.get_as_is(called)
            return self._storage.get_range(called, first + start, wanted)

        return self._ask(name, read)

    def _ask(self, name: str, ask: Callable[[str, int, int | None], T | None]) -> T:
        """Return the answer about a segment or an index, by its place."""
        for look_again in (False, True):  # it may have been compacted since
            if look_again:
                self.look_again()
            if (answer := ask(*self._where(name))) is not None:
                return answer
        raise StorageError(f"STORAGE {self._storage.url}: {name} is missing")

    def _where(self, name: str) -> tuple[str, int, int | None]:
        """Return the object that holds a segment or an index, the place of its first byte, and its size; None if it is
        all of the object."""
        at = bisect_right(self.compacted, _base(name) + _SEGMENTS)
        return (self._read(self.compacted[at - 1]).get(name) if at else None) or (name, 0, None)

    def _read_list(self, name: str) -> dict[str, tuple[str, int, int]]:
        """Return where indexes and segments lie, each index before its segment, by their names."""
        found = self._storage.read(name, self._storage.get(name) or b"", shapes.SEGMENTS)
        segments = [Place(*segment) for segment in found]
        base, where = _object(segments), dict[str, tuple[str, int, int]]()
        for one in segments:
            where[index_name(one.name)] = base + _INDEX, one.index_start, one.index_size
            where[one.name] = base + _suffix(one.name), one.start, one.size
        return where


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


def _object(segments: Sequence[Place]) -> str:
    """Return the beginning of the names of the object of segments and of their indexes."""
    return f"{_base(segments[0].name)}-{_base(segments[-1].name).removeprefix(WARC)}"
