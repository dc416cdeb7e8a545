"""WARC files (ISO 28500) and their CDXJ indexes: written by warcio's record writer, read by a parser of our own.

Written: ``archive`` is what a crawl sees of it; ``writer`` keeps pages in numbered files; ``page_records`` and
``exchanges`` build their records, of what a corpus holds and of what went over the network, and lines of the index;
``http_messages`` makes foreign bytes fit.

Read: ``cdxj`` reads indexes; ``reader`` opens any file and is the only way to a record; ``records`` parses heads;
``gzip``, ``zstd`` and ``plain`` find records in files; ``payload`` undoes codings and charsets. warcio and FastWARC
stop at damage, where ours loses no record but the one that it hits: ``docs/warc-files.md`` has a table of what each
makes of damaged files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crawl4llm.base.files import ArchiveError
from crawl4llm.warc.archive import Archive, ArchiveFormat, ArchiveInfo, ArchivePosition, NullArchive

if TYPE_CHECKING:
    from crawl4llm.warc.writer import ArchiveWriter

__all__ = ["Archive", "ArchiveError", "ArchiveFormat", "ArchiveInfo", "ArchivePosition", "ArchiveWriter", "NullArchive"]


def __getattr__(name: str) -> Any:
    """Load the writer when it is asked for (PEP 562): a crawl that archives nothing needs none of what it imports."""
    if name != "ArchiveWriter":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from crawl4llm.warc.writer import ArchiveWriter  # slow to import, as above

    return ArchiveWriter
