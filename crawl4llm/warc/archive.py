"""The archive of a crawl: its protocol, its facts and format, and an archive that keeps nothing.

Separate from the writer, which is loaded only if pages are archived.
"""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol
from uuid import UUID

from crawl4llm.base.pages import Capture, PageRecord

if TYPE_CHECKING:
    from crawl4llm.warc.page_records import Values


OPEN_SUFFIX = ".open"
"""Follows the name of a WARC file until the file is finished."""


def host_name() -> str:
    """Return this machine's name as part of file names: at most 64 characters, the limit of Linux."""
    return re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname())[:64] or "localhost"


class SeriesPosition(NamedTuple):
    """The end of a series of files and their index: everything before it has been handed to the operating system."""

    serial: int
    """Number of the WARC file for the next record."""
    offset: int
    """Its size in bytes; 0 if it does not exist yet."""
    index_offset: int
    """Size of the index in bytes."""


class ArchivePosition(NamedTuple):
    """The end of the archive: committed, and restored by cutting files back."""

    serial: int
    """The first three are a :class:`SeriesPosition`, of the page files."""
    offset: int
    index_offset: int
    text_serial: int = 0
    """The last three are the same for the text files; 0 without text files."""
    text_offset: int = 0
    text_index_offset: int = 0

    @property
    def pages(self) -> SeriesPosition:
        """Position in the page files."""
        return SeriesPosition(*self[:3])

    @property
    def texts(self) -> SeriesPosition:
        """Position in the text files."""
        return SeriesPosition(*self[3:])


@dataclass(frozen=True, slots=True)
class ArchiveInfo:
    """Facts in an archive about its crawl; equal for equal crawls."""

    crawl_id: UUID
    """Namespace of all record ids."""
    prefix: str
    """First part of the WARC files' names."""
    start_date: str
    """``2022-08-01T12:00:00Z``: date of the warcinfo records and of pages that carry none."""
    fields: Values
    """Values of warcinfo records (6.2): software, operator, robots, policy; ``isPartOf`` and the format are added."""
    host: str | None = None
    """Name of this machine in a live crawl, whose file names tell when and where the files began; None in a
    simulation."""


@dataclass(frozen=True, slots=True)
class ArchiveFormat:
    """The format of an archive, except the size of its files."""

    compression: str = "gzip"
    """A name of :data:`crawl4llm.base.compression.COMPRESSIONS`."""
    text: bool = False
    """True if the pages' text is kept, in separate files."""
    revisits: int = 0
    """Number of payloads that are remembered, so that none of them is stored twice; 0: no revisit records."""
    max_age: float = 0
    """Seconds after which a flush ends a file, if there is a host; 0: any age."""
    credentials: bool = False
    """True if requests keep Cookie and Authorization; then only their owner may read the files of pages."""


class Archive(Protocol):
    """A store of pages, in the order in which they come."""

    keeps_text: bool
    """True if it needs the pages' text."""

    def write(self, page: PageRecord, fields: Values, text: str | None = None) -> None:
        """Keep a page, ``fields`` about it, and its text, if wanted. If that fails, ArchiveError is raised and nothing
        is kept."""

    def write_redirects(self, page: PageRecord, fields: Values) -> None:
        """Keep the redirects that led from a document to no page of this archive, and ``fields`` about them: the
        captures of a page without content. Raises ArchiveError like :meth:`write`."""

    def write_exchange(self, capture: Capture, purpose: str, fields: Values) -> None:
        """Keep an exchange that belongs to no page, such as that for ``robots.txt``, its ``purpose``, and ``fields``
        about it. Raises ArchiveError like :meth:`write`."""

    def flush(self, *, fsync: bool = False) -> None:
        """Finish the full files; with ``fsync``, return once everything before the position is on the disk.

        Raises ArchiveError if that fails; such an archive must not be committed again, but opened at its last commit.
        """

    def position(self) -> ArchivePosition:
        """Return the end of all pages written; the operating system has every byte before it. Closing does not change
        it."""

    def close(self, *, fsync: bool = False) -> None:
        """Finish all files, ``fsync`` as in :meth:`flush`; the archive cannot be used afterwards."""


class NullArchive:
    """An archive that keeps nothing, for crawls without one."""

    keeps_text = False

    def write(self, page: PageRecord, fields: Values, text: str | None = None) -> None:
        """Drop the page."""

    def write_redirects(self, page: PageRecord, fields: Values) -> None:
        """Drop the redirects."""

    def write_exchange(self, capture: Capture, purpose: str, fields: Values) -> None:
        """Drop the exchange."""

    def flush(self, *, fsync: bool = False) -> None:
        """Flush nothing."""

    def position(self) -> ArchivePosition:
        """Return the beginning."""
        return ArchivePosition(0, 0, 0)

    def close(self, *, fsync: bool = False) -> None:
        """Close nothing."""
