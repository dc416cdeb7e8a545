"""WARC files (ISO 28500) and their CDXJ indexes: written by warcio's record writer, read by a parser of our own.

Written: ``writer`` keeps pages; ``page_records`` and ``exchanges`` build their records, of what a corpus holds and of
what went over the network; ``http_messages`` makes foreign bytes fit; ``series``
appends records to numbered files; ``cdxj`` indexes them by ``urlkey``.

Read: ``reader`` opens any file and is the only way to a record; ``records`` parses heads; ``gzip``, ``zstd`` and
``plain`` find records in files; ``payload`` undoes codings and charsets. warcio and FastWARC stop at damage, where ours
loses no record but the one that it hits: ``docs/warc-files.md`` has a table of what each makes of damaged files.
"""

from crawl4llm.base.files import ArchiveError
from crawl4llm.warc.writer import Archive, ArchiveFormat, ArchiveInfo, ArchivePosition, ArchiveWriter, NullArchive

__all__ = ["Archive", "ArchiveError", "ArchiveFormat", "ArchiveInfo", "ArchivePosition", "ArchiveWriter", "NullArchive"]
