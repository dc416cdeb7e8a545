"""The formats of an export's files, which pretraining pipelines read.

A line of JSON has the fields of three readers. datatrove takes ``text`` and ``id``; all else becomes metadata. dolma's
document format has ``id``, ``text``, ``source`` and ``created``; its taggers see ``metadata`` besides. DCLM's pipelines
take ``text`` and ``url``; their configurations begin with ``move_url_modifier``, which takes the URL from ``metadata``.

A compressed file is one gzip member or one Zstandard frame: DCLM's reader, and others made with python-zstandard, stop
after the first frame. Nothing in it depends on time or place. gzip is zlib's level 6, Zstandard level 3.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections import Counter, deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, timezone
from typing import Any, BinaryIO, Final, NamedTuple, Protocol

import orjson

from crawl4llm.base.compression import zstd

_AHEAD = 4
"""Pieces that may wait for the thread."""
SOURCE = "crawl4llm"
"""The value of dolma's ``source``."""
_GZIP_LEVEL, _ZSTD_LEVEL = 6, 3
_CHUNK = 1 << 20
DATE_TYPE: Final = "timestamp[us, tz=UTC]"
"""The type of dates in Parquet, as pyarrow and Hugging Face write it."""
_DATE: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,6})\d{0,3})?Z", re.ASCII)
OTHER_LANGUAGES = "..."
_MOST_LANGUAGES, _LONGEST_LANGUAGE = 1000, 100
"""Bounds to the languages that foreign archives can put into a manifest."""
_ROW_GROUP = 1000
"""Documents in a row group of Parquet; they are held in memory until it is full."""


class Compressor(Protocol):
    """A stream that compresses."""

    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


class Plain:
    """A stream that does not compress."""

    def compress(self, data: bytes, /) -> bytes:
        return data

    def flush(self) -> bytes:
        return b""


class HashedFile:
    """The content of a new file, which is only written, with its SHA-256.

    Compressing, hashing and writing need no Python: a thread of its own does them on another core. An error of it, an
    OSError, is raised by a later call, at the latest by :meth:`close`, after which ``size`` and ``digest`` are valid.
    """

    def __init__(self, file: BinaryIO, compressor: Compressor) -> None:
        self._file = file
        self._compressor = compressor
        self._sha256 = hashlib.sha256()
        self._taken = 0
        self._thread = ThreadPoolExecutor(1)
        self._pending: deque[Future[None]] = deque()
        self.size = 0
        """Bytes in the file."""
        self.closed = False

    @property
    def digest(self) -> str:
        """The SHA-256 in hex."""
        return self._sha256.hexdigest()

    def write(self, data: bytes) -> int:
        """Queue data for writing; many bytes at once."""
        self._pending.append(self._thread.submit(self._compress, data))
        self._taken += len(data)
        while len(self._pending) > _AHEAD:
            self._pending.popleft().result()
        return len(data)

    def tell(self) -> int:
        """Return the bytes given to :meth:`write` so far."""
        return self._taken

    def flush(self) -> None:
        """Do nothing: the thread writes all that is queued."""

    def close(self) -> None:
        """Write the rest; the caller closes the file itself."""
        if self.closed:
            return
        self.closed = True
        with self._thread:
            for piece in self._pending:
                piece.result()
            self._write(self._compressor.flush())

    def _compress(self, data: bytes) -> None:
        self._write(self._compressor.compress(data))

    def _write(self, data: bytes) -> None:
        self._sha256.update(data)
        self.size += self._file.write(data)


class Document(NamedTuple):
    """A document as it is written; fields are those of the files."""

    id: str
    text: str
    url: str
    date: str | None
    language: str | None
    influence: float | None
    words: int
    link_share: float | None
    warc_file: str
    warc_offset: int
    warc_length: int
    digest: str | None
    opt_out_signals: str | None = None
    tokens: int | None = None
    """By the tokenizer that was given; without one there is no such field."""


NUMBERS: Final = {
    **dict.fromkeys(("influence", "link_share"), "float64"),
    **dict.fromkeys(("words", "warc_offset", "warc_length", "tokens"), "int64"),
}
"""Types of fields that are not text."""
REPEATED: Final = ("influence", "language", "words", "link_share")
"""Fields that JSON repeats in ``metadata``, behind URL and date."""


def _gzip() -> Compressor:
    return zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, 16 + zlib.MAX_WBITS)


def _zstd() -> Compressor:
    parameter = zstd.CompressionParameter
    return zstd.ZstdCompressor(options={parameter.compression_level: _ZSTD_LEVEL, parameter.checksum_flag: 1})


COMPRESSORS: dict[str, Callable[[], Compressor]] = {"jsonl.zst": _zstd, "jsonl.gz": _gzip, "jsonl": Plain}
PARQUET = "parquet"
FORMATS = (*COMPRESSORS, PARQUET)
"""The values of ``--format``, and endings of the files' names."""


class JsonLines:
    """A writer of JSON, a document a line."""

    def __init__(self, file: HashedFile) -> None:
        self._file = file
        self._lines = bytearray()

    def add(self, document: Document) -> None:
        """Write a document."""
        fields = document._asdict()
        if document.tokens is None:
            del fields["tokens"]
        first = {"id": document.id, "text": document.text, "source": SOURCE, "created": document.date or ""}
        repeated = {name: fields[name] for name in REPEATED}
        metadata = {"WARC-Target-URI": document.url, "WARC-Date": document.date, **repeated}
        self._lines += orjson.dumps({**first, **fields, "metadata": metadata}, option=orjson.OPT_APPEND_NEWLINE)
        if len(self._lines) >= _CHUNK:
            self.finish()

    def finish(self) -> None:
        """Write what is left; the file itself is closed by who opened it."""
        self._file.write(bytes(self._lines))
        self._lines.clear()


def moment(date: str | None) -> datetime | None:
    """Return a W3C date-time in UTC as a time to the microsecond; None for any other text."""
    found = _DATE.fullmatch(date or "")
    try:
        second = datetime.fromisoformat(found[1]) if found else None
    except ValueError:  # such as the 31st of February
        return None
    fraction = int((found[2] or "").ljust(6, "0")) if found else 0
    return second and second.replace(microsecond=fraction, tzinfo=timezone.utc)


def date_of(moment: datetime) -> str:
    """Return a time as a W3C date-time in UTC."""
    return moment.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")


class Parquet:
    """A writer of Apache Parquet, compressed with Zstandard: the columns are the fields of :class:`Document`, with the
    date as a time."""

    def __init__(self, file: HashedFile, *, tokens: bool) -> None:
        # an extra
        import pyarrow as pa
        from pyarrow import parquet

        types = {name: getattr(pa, kind)() for name, kind in NUMBERS.items()} | {"date": pa.timestamp("us", "UTC")}
        names = [name for name in Document._fields if tokens or name != "tokens"]
        self._schema = pa.schema([(name, types.get(name, pa.string())) for name in names])
        self._table = pa.Table
        self._writer = parquet.ParquetWriter(pa.PythonFile(file, mode="w"), self._schema, compression="zstd")
        self._rows: list[dict[str, Any]] = []

    def add(self, document: Document) -> None:
        """Write a document."""
        self._rows.append({**document._asdict(), "date": moment(document.date)})
        if len(self._rows) == _ROW_GROUP:
            self._write()

    def _write(self) -> None:
        self._writer.write_table(self._table.from_pylist(self._rows, self._schema))
        self._rows.clear()

    def finish(self) -> None:
        """Write what is left; the file itself is closed by who opened it."""
        if self._rows:
            self._write()
        self._writer.close()


class ShardFacts(NamedTuple):
    """A file's entry of the manifest."""

    name: str
    documents: int
    words: int
    text_bytes: int
    bytes: int
    sha256: str
    languages: Mapping[str, int]
    """Documents by language, sorted by name. Those without one count as the empty string. Invalid language tags, and
    all languages beyond a thousand, count as OTHER_LANGUAGES."""
    tokens: int | None = None
    """By the tokenizer that was given."""

    def entry(self) -> dict[str, Any]:
        """Return all of it, but tokens that were not counted."""
        return {name: value for name, value in self._asdict().items() if name != "tokens" or value is not None}


class ShardWriter:
    """A writer of documents to a file of an export, in one of FORMATS, which counts for the manifest."""

    def __init__(self, file: BinaryIO, form: str, *, tokens: bool = False) -> None:
        """``tokens``: whether documents have token counts."""
        self._file = HashedFile(file, COMPRESSORS.get(form, Plain)())  # Parquet is compressed within
        self._shard = Parquet(self._file, tokens=tokens) if form == PARQUET else JsonLines(self._file)
        self._tokens = 0 if tokens else None
        self._languages: Counter[str] = Counter()
        self._documents = self._words = self._text_bytes = 0

    def add(self, document: Document) -> None:
        """Write a document."""
        self._words += document.words
        self._documents += 1
        self._text_bytes += len(document.text.encode())
        if self._tokens is not None:
            self._tokens += document.tokens or 0
        language = document.language or ""
        known = language in self._languages or len(self._languages) < _MOST_LANGUAGES
        self._languages[language if known and len(language) <= _LONGEST_LANGUAGE else OTHER_LANGUAGES] += 1
        self._shard.add(document)

    def finish(self, name: str) -> ShardFacts:
        """Write the rest; returns the file's entry of the manifest."""
        self._shard.finish()
        self.close()
        size, digest, languages = self._file.size, self._file.digest, dict(sorted(self._languages.items()))
        return ShardFacts(name, self._documents, self._words, self._text_bytes, size, digest, languages, self._tokens)

    def close(self) -> None:
        """End the thread that writes; the caller closes the file itself."""
        self._file.close()
