"""Records that lie uncompressed one after the other: in a plain file, or in one that is compressed as a whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from crawl4llm.base.errors import CorruptRecord
from crawl4llm.warc.records import LONGEST_LINE, RECORD_START, Frame, Record, heads_or_none, too_large

_NEXT_RECORD = re.compile(rb"WARC/\d+\.\d+[ \t]*\r?\n[A-Za-z][\w-]*[ \t]*:|(?<=\n)(?:%b)" % RECORD_START.pattern)
"""A WARC record may also begin in the middle of a line, if a file that was cut short was joined with another."""
_SEARCHED, _FIRST_READ = 1 << 20, 1 << 12


class Source(Protocol):
    """Bytes that are read by position, for example of a PreadFile."""

    path: Path

    def read(self, size: int, position: int) -> bytes:
        """Return up to ``size`` bytes from ``position``; fewer only at the end."""


class PlainRecords:
    """The records of a source.

    A record that is not followed by another one has a wrong Content-Length or is cut short; it ends where the next
    record begins. This counts as damage unless its head has bare line feeds: ClueWeb09's lengths were counted before
    its line ends were changed.
    """

    def __init__(self, source: Source) -> None:
        self._source = source

    def read(self, offset: int, length: int, most: int | None = None) -> bytes:
        if most is not None and length > most:
            raise too_large(self._source.path, offset)
        data = self._source.read(length, offset)
        if len(data) < length:
            raise CorruptRecord(f"{self._source.path}: record at {offset}: cut short")
        return data

    def pieces(self, offset: int, length: int) -> Iterator[bytes]:
        end = offset + length
        for at in range(offset, end, _SEARCHED):
            data = self._source.read(min(_SEARCHED, end - at), at)
            if len(data) < min(_SEARCHED, end - at):
                raise CorruptRecord("the record is cut short")
            yield data

    def frames(self) -> Iterator[Frame]:
        """Yield all records, in file order."""
        opening = _Opening(self._source, 0)
        while opening.data:
            record, http = heads_or_none(opening)
            following = self._following(opening, record) if record else None
            if following is None:
                following = self._next_record(opening.position + 1)
                if record and record.size is not None and b"\r\n" in opening.data[: record.block_at]:
                    record = None
            yield Frame(opening.position, following.position - opening.position, record, http, opening)
            opening = following

    def _following(self, opening: _Opening, record: Record) -> _Opening | None:
        """Return the beginning of the record after a record; None if neither a record nor the end follows."""
        if record.size is None:
            return None
        end = opening.position + record.size
        following = _Opening(self._source, end)
        if RECORD_START.match(following.data):
            return following
        cut_short = not following.data and len(self._source.read(1, end - 1)) == 0
        return following if not following.data and not cut_short else None

    def _next_record(self, position: int) -> _Opening:
        """Return the next place, from ``position``, at which a line begins a record; otherwise the end."""
        while data := self._source.read(_SEARCHED + LONGEST_LINE, position):
            found = _NEXT_RECORD.search(data)
            if found and found.start() <= _SEARCHED:
                return _Opening(self._source, position + found.start())
            position += min(_SEARCHED, len(data))
        return _Opening(self._source, position)


class _Opening:
    """The beginning of a record at a position, or after line ends there."""

    def __init__(self, source: Source, position: int) -> None:
        self._source = source
        data = source.read(_FIRST_READ, position)
        self.data = data.lstrip(b"\r\n")
        self.position = position + len(data) - len(self.data)

    def grow(self) -> bool:
        """Make ``data`` longer; return False at the end."""
        more = self._source.read(len(self.data), self.position + len(self.data))
        self.data += more
        return bool(more)
