"""WARC files (ISO 28500) and their CDXJ indexes: written by warcio's record writer, read by a parser of our own.

Writing: ``archive`` is the interface for a crawl; ``writer`` keeps pages in numbered files; ``page_records`` and
``exchanges`` build records, of corpus pages and of network exchanges, and lines of the index; ``http_messages`` makes
foreign bytes fit.

Reading: ``cdxj`` reads indexes; ``reader`` opens any file and is the only way to a record; ``records`` parses heads;
``gzip``, ``zstd`` and ``plain`` find records in files; ``payload`` undoes codings and charsets. warcio and FastWARC
stop at damage; this reader loses only the damaged record. ``docs/warc-files.md`` compares the three on damaged files.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
