"""The export's working table: one row a document, with random access; and its columns for selecting, in memory."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice
from math import nan
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from crawl4llm.base.errors import InputError
from crawl4llm.base.files import AppendFile
from crawl4llm.tools.evaluate.documents import Fingerprints, Floats, Integers, as_array, fingerprints

SPOOL: Final = -1
"""Number of the file of texts that this export has extracted; tasks have files of their own, below it."""
LISTED_ROWS, PREPARED_ROWS, TO_PREPARE = "listed.jsonl", "prepared.jsonl", "to_prepare"
"""Files of a work folder: rows as listed; those prepared for selecting that no reason leaves out; and the numbers of
these, ascending."""
NUMBER: Final = np.dtype("<i8")
"""The stored form of a document's number."""
_END_BYTES: Final = 8
_TOGETHER: Final = 256
"""Rows that are read at once."""
_DIGEST_CHARACTERS = len("sha1:") + 32
_ROWS_AT_ONCE = 4096


def spool_path(work: Path, number: int) -> Path:
    """Return the path of a file of texts in a work folder."""
    return work / ("texts" if number == SPOOL else f"texts.{SPOOL - number}")


def load_all(lines: Sequence[bytes]) -> list[Any]:
    """Parse some lines of JSON at once. Raises ValueError if one of them is not JSON."""
    values: list[Any] = orjson.loads(b"[%b]" % b",".join(lines))
    if len(values) != len(lines):  # one holds a comma between two values
        raise ValueError("a line holds more than one value")
    return values


class Row(NamedTuple):
    """A document, by its number: its place in the order of the sources."""

    id: str
    """The document key; a normalised URL if the archive has none."""
    url: str
    date: str | None
    """Date of the capture: W3C date-time in UTC."""
    digest: str | None
    """WARC-Payload-Digest of the record that holds the page."""
    file: int
    """Number of the source file in which that record lies."""
    offset: int
    length: int
    after: int
    """Bytes from its end to the next document or the end of the file: records about it stand there."""
    text: Sequence[int] | None
    """File, offset and length of the record that holds the text; None if it is still to be extracted."""
    text_digest: str | None = None
    """``sha1:`` and Base32, over the text in UTF-8; None if it is not known yet."""
    influence: float | None = None
    language: str | None = None
    scored: bool = False
    """True if influence is that of a crawl log, which may be null."""
    reason: str | None = None
    """The reason for leaving it out, if that is known already."""
    text_bytes: int = 0
    words: int = 0
    link_share: float | None = None
    """Share of the text's words that stand in links; None if the archive has no HTML of the page."""
    signature: str | None = None
    """Signature of the text (:mod:`crawl4llm.scoring.signatures`), in hex; None if texts are not compared."""
    signals: str = ""
    """The opt-out signals about the uses of the page, as :func:`crawl4llm.optouts.said.as_text` has it."""


class RowWriter:
    """A writer that appends rows. Those before a :meth:`sync` survive a kill or a power cut, and none in part."""

    def __init__(self, path: Path, at: int = 0) -> None:
        """Open the file behind row ``at``. Raises InputError."""
        ends = _read_ends(path)[:at] if at else np.zeros(0, "<u8")
        self._rows = AppendFile(path, at=int(ends[-1]) if len(ends) else 0)
        self._ends = AppendFile(_ends_path(path), at=len(ends) * _END_BYTES)
        self._waiting = bytearray()

    def append(self, rows: Iterable[Row]) -> None:
        """Write rows. Raises InputError if that fails (disk full)."""
        lines = [orjson.dumps([*row], option=orjson.OPT_APPEND_NEWLINE) for row in rows]
        ends = list(accumulate(map(len, lines), initial=self._rows.size))[1:]
        self._rows.append(b"".join(lines))
        self._waiting += np.array(ends, "<u8").tobytes()

    def sync(self) -> None:
        """Wait until all rows are on the disk, then their ends: a row without one does not count."""
        self._rows.sync()
        self._ends.append(bytes(self._waiting))
        self._ends.sync()
        self._waiting.clear()

    def close(self) -> None:
        """Close the files."""
        self._rows.close()
        self._ends.close()


class RowFile:
    """A file of rows, read by number or all. Raises InputError if it cannot be read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ends = _read_ends(path)
        try:
            self._file = path.open("rb")
            self._size = os.fstat(self._file.fileno()).st_size
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}") from None

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, number: int) -> Row:
        return next(self.several([number]))

    def several(self, numbers: Sequence[int]) -> Iterator[Row]:
        """Yield rows by their numbers, in that order; those that lie together are read together."""
        start = 0
        for stop in range(1, len(numbers) + 1):
            if stop == len(numbers) or numbers[stop] != numbers[stop - 1] + 1 or stop - start == _TOGETHER:
                first, last = numbers[start], numbers[stop - 1]
                begin, end = int(self._ends[first - 1]) if first else 0, int(self._ends[last])
                if not begin <= end <= self._size:
                    raise InputError(f"{_ends_path(self._path)} is damaged; remove the export and make it again")
                lines = os.pread(self._file.fileno(), end - begin, begin)
                yield from self._parse(lines.splitlines())
                start = stop

    def __iter__(self) -> Iterator[Row]:
        return self.several(range(len(self)))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _parse(self, lines: Sequence[bytes]) -> list[Row]:
        try:
            return [Row(*values) for values in load_all(lines)]
        except (TypeError, ValueError):
            raise InputError(f"{self._path} is damaged; remove the output directory and export again") from None


class Rows:
    """All rows of an export in a work folder, prepared or as listed. Raises InputError if they cannot be read."""

    def __init__(self, folder: Path) -> None:
        self._listed = RowFile(folder / LISTED_ROWS)
        try:
            self._numbers = _mapped(folder / TO_PREPARE, NUMBER)
        except OSError as error:
            raise InputError(f"{folder / TO_PREPARE} cannot be read: {error.strerror}") from None
        self._prepared = RowFile(folder / PREPARED_ROWS) if len(self._numbers) else None

    def __len__(self) -> int:
        return len(self._listed)

    def __getitem__(self, number: int) -> Row:
        if self._prepared is not None:
            place = int(np.searchsorted(self._numbers, number))
            if place < len(self._numbers) and self._numbers[place] == number:
                return self._prepared[place]
        return self._listed[number]

    def several(self, numbers: Sequence[int]) -> Iterator[Row]:
        """Yield rows by their numbers, in that order."""
        return self._listed.several(numbers) if self._prepared is None else map(self.__getitem__, numbers)

    def __iter__(self) -> Iterator[Row]:
        numbers = iter(self._numbers.tolist())
        prepared = iter(self._prepared or ())
        following = next(numbers, None)
        for number, row in enumerate(self._listed):
            if number == following:
                following = next(numbers, None)
                yield next(prepared)
            else:
                yield row

    def close(self) -> None:
        """Close the files."""
        self._listed.close()
        if self._prepared is not None:
            self._prepared.close()


def _ends_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.ends")


def _read_ends(path: Path) -> NDArray[np.uint64]:
    """Read the ends of a file's rows, if there is such a file. A piece that was cut off does not count."""
    try:
        ends: NDArray[np.uint64] = _mapped(_ends_path(path), np.dtype("<u8"))
    except FileNotFoundError:
        return np.zeros(0, "<u8")
    except OSError as error:
        raise InputError(f"{_ends_path(path)} cannot be read: {error.strerror}") from None
    return ends


def _mapped(path: Path, kind: np.dtype[Any]) -> NDArray[Any]:
    """Return the numbers in a file, which are read as they are looked at. Raises OSError."""
    whole = path.stat().st_size // kind.itemsize
    return np.memmap(path, kind, "r", shape=(whole,)) if whole else np.zeros(0, kind)


class Columns:
    """Columns by document number, while they are filled."""

    def __init__(self) -> None:
        self.influence = array("d")
        self.numbers = array("q")
        self.ids, self.digests = bytearray(), bytearray()
        self.languages: dict[str | None, int] = {}
        self.reasons: dict[int, str] = {}

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Columns:
        """Return the columns of all rows."""
        columns, remaining = cls(), iter(rows)
        while some := list(islice(remaining, _ROWS_AT_ONCE)):
            columns.add(some)
        return columns

    def add(self, rows: Sequence[Row]) -> None:
        """Add the next documents."""
        for number, row in enumerate(rows, len(self.influence)):
            if row.reason is not None:
                self.reasons[number] = row.reason
            self.influence.append(nan if row.influence is None else row.influence)
            language = self.languages.setdefault(row.language, len(self.languages))
            self.numbers.extend((row.file, row.offset, row.words, row.text_bytes, language))
        self.ids += fingerprints(row.id for row in rows)
        self.digests += b"".join([fitting(row.text_digest or "") for row in rows])


def fitting(digest: str) -> bytes:
    """Return a digest of our length, longer ones cut: their beginnings differ as well."""
    return digest[:_DIGEST_CHARACTERS].ljust(_DIGEST_CHARACTERS).encode("ascii", "replace")


class Table:
    """Columns by document number, all filled."""

    def __init__(self, columns: Columns) -> None:
        self.languages = columns.languages
        """Numbers of languages by name."""
        self.reasons = columns.reasons
        """Reasons why documents are left out, by number."""
        self.influence: Floats = np.array(columns.influence, dtype=np.float64)
        """NaN if missing."""
        self.ids: Fingerprints = as_array(bytes(columns.ids))
        self.digests = np.frombuffer(bytes(columns.digests), dtype=f"S{_DIGEST_CHARACTERS}")
        """Digests of texts."""
        files, offsets, words, text_bytes, language = np.array(columns.numbers, dtype=np.int64).reshape(-1, 5).T
        self.words: Integers = words
        self.text_bytes: Integers = text_bytes
        self.language: Integers = language
        self.crawl_order: Integers = np.lexsort((offsets, files)).astype(np.int64)
        """All documents as they lie in the files."""

    def __len__(self) -> int:
        return len(self.influence)

    @property
    def has_influence(self) -> bool:
        """True if any document has an influence score."""
        return not np.isnan(self.influence).all()

    @property
    def best_first(self) -> Integers:
        """All documents by falling influence; equal ones in crawl order, those without any at the end."""
        ordered = np.nan_to_num(self.influence[self.crawl_order], nan=-np.inf)
        return self.crawl_order[np.argsort(-ordered, kind="stable")]
