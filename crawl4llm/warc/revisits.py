"""Which payloads the archive holds already."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from crawl4llm.base.errors import PageError
from crawl4llm.base.files import ArchiveError
from crawl4llm.warc.cdxj import Entry
from crawl4llm.warc.exchanges import REVISIT_MIME, Original
from crawl4llm.warc.reader import read_stored
from crawl4llm.warc.records import DATE, TARGET_URI, field_name

_RECORD_ID = field_name("WARC-Record-ID")
_LONGEST = (1 << 40) - 1


class StoredPayloads:
    """The last ``size`` payloads that responses brought, by digest: first in, first out.

    What it holds is a function of the index alone, so that a crawl that is taken up again goes on as one that never
    stopped. About 250 bytes of memory each.
    """

    def __init__(self, directory: Path, size: int, entries: Iterable[Entry] = ()) -> None:
        self._directory = directory
        self._size = size
        self._places: dict[str, int] = {}
        """By digest: number of the file, offset and length in one integer, the smallest that Python can hold."""
        self._files: list[str] = []
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        """Take in what was written; a record that is not the response of a page's own is passed over."""
        if not self._size or not entry.id or entry.status is None or entry.mime == REVISIT_MIME:
            return
        if max(entry.offset, entry.length) > _LONGEST:  # damaged, or in a file of more than a terabyte
            return
        if entry.digest not in self._places:
            if entry.filename not in self._files[-1:]:
                self._files.append(entry.filename)
            self._places[entry.digest] = (len(self._files) - 1) << 80 | entry.offset << 40 | entry.length
            if len(self._places) > self._size:
                del self._places[next(iter(self._places))]

    def find(self, digest: str) -> Original | None:
        """The response that holds the payload; None where none is known, or it can no longer be read."""
        place = self._places.get(digest)
        if place is None:
            return None
        file, offset, length = place >> 80, place >> 40 & _LONGEST, place & _LONGEST
        try:
            fields = read_stored(self._directory, self._files[file], offset, length).record.fields
        except (PageError, ArchiveError):
            return None
        return Original(fields.text(_RECORD_ID), fields.text(TARGET_URI), fields.text(DATE))
