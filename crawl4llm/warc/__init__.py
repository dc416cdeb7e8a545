"""The crawl's product: WARC files with an index, written while the crawl runs.

``ArchiveWriter`` is what a crawl uses; the other modules are its parts, one idea each: ``headervalues`` makes foreign
strings safe, ``serialise`` writes one record, ``records`` and ``exchanges`` build those of a page, the latter with
``http_messages`` from what went over the network, ``revisits`` knows the payloads that are stored already, ``compress``
turns a record into a gzip member or Zstandard frame, ``files`` appends these to files of bounded size, which ``names``
names, ``cdxj`` indexes them, ``series`` keeps files and index together, ``reader`` reads one back.
"""

from crawl4llm.base.files import ArchiveError
from crawl4llm.warc.writer import Archive, ArchiveFormat, ArchiveInfo, ArchivePosition, ArchiveWriter, NullArchive

__all__ = ["Archive", "ArchiveError", "ArchiveFormat", "ArchiveInfo", "ArchivePosition", "ArchiveWriter", "NullArchive"]
