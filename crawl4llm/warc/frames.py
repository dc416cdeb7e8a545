"""Where the records of an archive file lie. One class for each way to store them reads and finds them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from crawl4llm.base.errors import TooLarge
from crawl4llm.warc.records import HttpHead, Opening, Record, parse_heads


class Frame(NamedTuple):
    """A record's place in its file, and its heads."""

    offset: int
    length: int
    """Bytes it takes in the file; of a file that is compressed as a whole, in its contents."""
    record: Record | None
    """Its head; None for a record that is damaged or cut short."""
    http: HttpHead | None
    """The HTTP head in it; None where the block is no HTTP response."""
    opening: Opening
    """Its beginning, which may be read on until the next frame is asked for."""


class RecordFile(Protocol):
    """An archive file opened for reading, in a way that forks and threads may share."""

    def frames(self) -> Iterator[Frame]:
        """All records, in file order. Damage costs no other record than those it hits."""
        ...

    def read(self, offset: int, length: int, most: int | None = None) -> bytes:
        """A record's bytes, decompressed. Raises CorruptRecord where they cannot be had, TooLarge for more than
        ``most``."""
        ...


class WholeFileCompressed(Exception):
    """A file is compressed as a whole, not record by record: there is no way into its middle."""


def too_large(path: Path, offset: int) -> TooLarge:
    """What is raised for a record that is larger than was allowed."""
    return TooLarge(f"{path}: record at {offset}: the page is larger than DOWNLOAD_MAXSIZE")


def heads_or_none(opening: Opening) -> tuple[Record | None, HttpHead | None]:
    """The heads of a record, as Frame has them."""
    try:
        return parse_heads(opening)
    except ValueError:
        return None, None
