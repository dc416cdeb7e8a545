"""WARC files (ISO 28500) and their CDXJ indexes: written by warcio's record writer, read by a parser of our own.

Written: ``archive`` is what a crawl sees of it; ``writer`` keeps pages in numbered files; ``page_records`` and
``exchanges`` build their records, of what a corpus holds and of what went over the network, and lines of the index;
``http_messages`` makes foreign bytes fit.

Read: ``cdxj`` reads indexes; ``reader`` opens any file and is the only way to a record; ``records`` parses heads;
``gzip``, ``zstd`` and ``plain`` find records in files; ``payload`` undoes codings and charsets. warcio and FastWARC
stop at damage, where ours loses no record but the one that it hits: ``benchmarks/notes-damaged-files.md`` has a table
of what each makes of damaged files.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
