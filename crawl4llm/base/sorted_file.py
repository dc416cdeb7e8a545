"""The sorted file: tables of hashes with their values or records, and other columns, in one file that is read by place.

A file begins with a head of 4 KiB: a magic line, a line of JSON, a line with the SHA-256 of the JSON, and blanks. The
JSON has the kind of file, the version of the format, the scheme of its hashes and the number of entries. It also has
the place of each column and the SHA-256 of all columns. A column is bytes, or entries of one or several numbers of 4 or
8 bytes, little-endian.

A table is two columns. Its entries are sorted by 64 bits of a hash, and may have values beside it. For each value of
the first bits of a hash, ``NAME starts`` has the number of the first entry. The number of first bits is chosen so that
each value has 128 to 256 entries on average. So a look-up in a table of any size reads two places: 4 KiB of starts, and
one or two KiB of entries. Entries of 4 bytes have the 32 bits after the first ones. A false positive then has a
probability of at most 256 in 2^32 (6e-8), and an entry takes 4.03 to 4.06 bytes. Records are a table with the place of
each record, which lie in ``NAME records``.

Nothing is mapped: a file that is cut while it is read gives an error. Small tables, of up to two million entries, are
kept in memory as far as they have been read. Of others only starts are, up to 4 MiB.
"""

from __future__ import annotations

import hashlib
import sys
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from functools import cache, lru_cache, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple

from crawl4llm.base.command_lines import command
from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.files import PreadFile
from crawl4llm.base.formats import require_format
from crawl4llm.base.input_files import open_input, parse_json

MAGIC: Final = b"crawl4llm known set\n"
"""The first line, as files of format 1 have it."""
FORMAT: Final = 2
HEAD: Final = 4096
SIZES: Final = {"B": 1, "I": 4, "Q": 8}
_A_START: Final = 256
"""Most entries for a value of the first bits, on average."""
KEPT: Final = 32
"""Bits of a hash that an entry of 4 bytes has, after the first ones."""
_PIECE: Final = 1 << 20
_STARTS: Final = 512
"""Starts that are read at once."""
_PIECES_KEPT, _STARTS_KEPT = 8192, 1024
_LARGEST: Final = 4096
"""Entries with the same first bits from which they are searched on disk, not in memory."""
_MOST: Final = 1 << 48
"""More entries than any file has."""


def fingerprint(data: bytes) -> int:
    """Return 64 bits of BLAKE2b (RFC 7693) that stand for some bytes."""
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")


def start_bits(count: int) -> int:
    """Return how many first bits index a table of ``count`` entries."""
    return max((count // _A_START).bit_length(), 1)


def starts_of(name: str) -> str:
    """Return the name of the column ``starts`` of a table."""
    return f"{name} starts"


def records_of(name: str) -> str:
    """Return the name of the column with the records of a table."""
    return f"{name} records"


# -- what a file is ---------------------------------------------------------------------------------------------------


class Kind(NamedTuple):
    """A kind of sorted file."""

    name: str
    what: str
    """Its name in errors."""
    make: str
    """The command that makes one."""
    mend: str = "copy it again, or make another"
    """The advice for a damaged one."""

    @property
    def advice(self) -> str:
        """The advice to make one."""
        return f"make one: {self.make}"


def known(name: str, *options: str, out: object = "OUT", source: object = "SOURCE...") -> Kind:
    """Return the kind of a file of known things, made with some options of ``scrapy corpus known``."""
    what = f"file of known {name}" if options else "set of known URLs or texts"
    return Kind(name, what, command("corpus", "known", *options, out, source))


class Head(NamedTuple):
    """The head of a file."""

    kind: str
    scheme: str
    """How hashes are made; files of another scheme cannot be used."""
    entries: int
    columns: dict[str, tuple[int, int, str]]
    """Columns by name: offset, number of entries, and B, I or Q for each number of an entry."""
    size: int
    sha256: str
    """The SHA-256 of all bytes after the head."""


def is_sorted_file(path: Path) -> bool:
    """Return whether a file begins like a sorted file of any kind and version. Raises OSError."""
    with open_input(path) as file:
        return file.read(len(MAGIC)) == MAGIC


# -- reading ----------------------------------------------------------------------------------------------------------


class SortedFile:
    """An open file. To change it, make another and rename it to its place."""

    def __init__(
        self, path: Path, kind: Kind, scheme: str | Collection[str], named_by: str = "", *, whole: bool = True
    ) -> None:
        """Open it; with ``whole``, read all of it to check it. ``scheme``: the one that its reader knows, or several.
        ``named_by``: the setting or option that names it. Raises InputError if it cannot be used."""
        self.path = path
        self._told, self._kind = f"{named_by} {path}".lstrip(), kind
        if sys.byteorder != "little":
            raise InputError(f"{self._told} cannot be read on a machine with this order of bytes")
        with as_input_error(f"{self._told} cannot be read"):
            self._file = PreadFile(path)
            data = self._file.read(HEAD, 0)
        self._head, self.identity = self._read_head(data)
        if self._head.kind != kind.name:
            raise InputError(f"{self._told} is a file of {self._head.kind:.60}, not of {kind.name}")
        if self._head.scheme not in ((scheme,) if isinstance(scheme, str) else scheme):
            raise InputError(
                f"{self._told} was made by {self._head.scheme!r:.60}, not by {scheme!r}; make it again: {kind.make}"
            )
        if self._file.size != self._head.size:
            raise self.damaged(f"it has {self._file.size:,} bytes of {self._head.size:,}")
        if whole and self._digest() != self._head.sha256:
            raise self.damaged("its content is not what its head says")

    def __len__(self) -> int:
        return self._head.entries

    @property
    def scheme(self) -> str:
        """How its hashes are made."""
        return self._head.scheme

    def has(self, name: str) -> bool:
        """Return whether the file has a column of that name."""
        return name in self._head.columns

    def column(self, name: str) -> tuple[int, int, str]:
        """Return offset, number of entries and type of a column. Raises InputError if the file has no such column."""
        try:
            return self._head.columns[name]
        except KeyError:
            raise self.damaged() from None

    def numbers(self, name: str, first: int = 0, count: int | None = None) -> memoryview[int]:
        """Return the numbers of some entries of a column, or of all after the first. Raises InputError if the file does
        not have them."""
        offset, held, code = self.column(name)
        count = held - first if count is None else count
        if not 0 <= first <= first + count <= held:
            raise self.damaged(f"{name} {first:,} is not there")
        size = entry_size(code)
        return memoryview(self.read(offset + first * size, count * size)).cast(code[0])  # type: ignore[call-overload, no-any-return]

    def pieces(self, name: str) -> Iterator[memoryview[int]]:
        """Yield the numbers of a column in pieces of about a million."""
        _, held, code = self.column(name)
        at_once = _PIECE // len(code)
        for first in range(0, held, at_once):
            yield self.numbers(name, first, min(at_once, held - first))

    def read(self, offset: int, size: int) -> bytes:
        """Return some bytes of the file. Raises InputError."""
        try:  # no context manager, which would take as long as the reading
            data = self._file.read(size, offset)
        except OSError as error:
            raise InputError(f"{self._told} cannot be read: {error.strerror}") from error
        if len(data) != size:
            raise self.damaged("it has become shorter")
        return data

    def damaged(self, why: str = "its head cannot be read") -> InputError:
        """Return the error for a damaged file."""
        return InputError(f"{self._told} is damaged: {why}; {self._kind.mend}")

    def _digest(self) -> str:
        digest = hashlib.sha256()
        for offset in range(HEAD, self._head.size, _PIECE):
            digest.update(self.read(offset, min(_PIECE, self._head.size - offset)))
        return digest.hexdigest()

    def _read_head(self, data: bytes) -> tuple[Head, str]:
        """Return the head and its SHA-256, which identifies the file. Raises InputError."""
        if not data.startswith(MAGIC):
            raise InputError(f"{self._told} is no {self._kind.what}; {self._kind.advice}")
        said, _, rest = data[len(MAGIC) :].partition(b"\n")
        identity = hashlib.sha256(said).hexdigest()
        if len(data) < HEAD or rest[: len(identity)] != identity.encode():
            raise self.damaged("its head is not whole")
        try:
            values: dict[str, Any] = parse_json(said)
            require_format(self._told, values.pop("format"), FORMAT, self._kind.make)
            head = Head(**values)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise self.damaged() from None
        kinds = (str, str, int, dict, int, str)
        if tuple(map(type, head)) != kinds or not 0 <= head.entries < _MOST:
            raise self.damaged()
        if not all(_is_column(place, head.size) for place in head.columns.values()):
            raise self.damaged()
        columns = {name: (place[0], place[1], place[2]) for name, place in head.columns.items()}
        return head._replace(columns=columns), identity


def entry_size(code: str) -> int:
    """Return the bytes of an entry."""
    return SIZES[code[0]] * len(code)


def _is_column(place: object, size: int) -> bool:
    """Return whether a column of a file of this size can be at a place."""
    if not isinstance(place, list) or [*map(type, place)] != [int, int, str]:
        return False
    offset, count, code = place
    is_code = code[:1] in SIZES and code == code[:1] * len(code) and len(code) < 9
    return is_code and offset >= HEAD and count >= 0 and offset + count * entry_size(code) <= size


class HashTable:
    """A sorted table of a file. Raises InputError if its columns do not belong together."""

    def __init__(self, file: SortedFile, name: str) -> None:
        _, self._count, code = file.column(name)
        bits = start_bits(self._count)
        _, starts, of_starts = file.column(starts_of(name))
        if starts != (1 << bits) + 1 or of_starts != "Q" or code[0] == "B":
            raise file.damaged()
        is_short = code[0] == "I"
        self._first, self._left_out = 64 - bits, 64 - bits - KEPT if is_short else 0
        self._mask = (1 << 8 * SIZES[code[0]]) - 1
        self.error_rate = self._count / 2.0 ** (bits + KEPT) if is_short else 0.0
        """The probability of a false positive."""
        read = _Pieces(file, name).read
        self._piece = cache(read) if 1 << bits <= _PIECES_KEPT else read

    def __len__(self) -> int:
        return self._count

    def __contains__(self, wanted: int) -> bool:
        kept = wanted >> self._left_out & self._mask
        _, hashes, _ = self._piece(wanted >> self._first)
        place = bisect_left(hashes, kept)
        return place < len(hashes) and hashes[place] == kept

    def find(self, wanted: int) -> int | None:
        """Return the number of the first entry of a hash. Raises InputError."""
        return next((number for number, _ in self.under(wanted)), None)

    def under(self, wanted: int) -> Iterator[tuple[int, int]]:
        """Yield number and first value (0 if it has none) of each entry of a hash, in order. Raises InputError."""
        kept = wanted >> self._left_out & self._mask
        start, hashes, values = self._piece(wanted >> self._first)
        place = bisect_left(hashes, kept)
        while place < len(hashes) and hashes[place] == kept:
            yield start + place, values[place] if values else 0
            place += 1


class _Pieces:
    """The entries of a table by their first bits."""

    def __init__(self, file: SortedFile, name: str) -> None:
        self._file, self._name = file, name
        self._offset, self._count, code = file.column(name)
        self._code, self._width, self._size = code[0], len(code), entry_size(code)
        self._starts = lru_cache(_STARTS_KEPT)(partial(_starts, file, starts_of(name)))

    def read(self, first: int) -> tuple[int, Sequence[int], Sequence[int] | None]:
        """Return the entries with the same first bits: the number of the first one, hashes, and first values."""
        starts, at = self._starts(first // _STARTS), first % _STARTS
        start, end = starts[at], starts[at + 1]
        if not start <= end <= self._count:
            raise self._file.damaged(f"{self._name} {start:,} is not there")
        if end - start > _LARGEST:
            columns = [_OnDisk(self._file, self._name, column, start, end) for column in range(self._width)]
            return start, columns[0], columns[1] if self._width > 1 else None
        data = self._file.read(self._offset + start * self._size, (end - start) * self._size)
        numbers = memoryview(data).cast(self._code)  # type: ignore[call-overload]
        if self._width == 1:
            return start, numbers, None
        return start, numbers[:: self._width], numbers[1 :: self._width]


def _starts(file: SortedFile, name: str, number: int) -> memoryview[int]:
    first = number * _STARTS
    return file.numbers(name, first, min(_STARTS + 1, file.column(name)[1] - first))


class _OnDisk(Sequence[int]):
    """A number of each of some entries, read one by one: many texts may have a passage in common."""

    def __init__(self, file: SortedFile, name: str, column: int, start: int, end: int) -> None:
        self._file, self._name, self._column, self._start, self._end = file, name, column, start, end

    def __len__(self) -> int:
        return self._end - self._start

    def __getitem__(self, place: Any) -> Any:
        return self._file.numbers(self._name, self._start + place, 1)[self._column]


class Records:
    """A table of records, of any number under one hash."""

    def __init__(self, file: SortedFile, name: str) -> None:
        """Raises InputError if its columns do not belong together."""
        self._file, self._name = file, name
        self._offset, self._size, code = file.column(records_of(name))
        if code != "B" or file.column(name)[2][:2] != "QQ":
            raise file.damaged()
        self._table = HashTable(file, name)

    def __len__(self) -> int:
        return len(self._table)

    def under(self, wanted: int) -> Iterator[int]:
        """Yield the numbers of the records under a hash. Raises InputError."""
        return (number for number, _ in self._table.under(wanted))

    def find(self, wanted: int) -> int | None:
        """Return the number of the first record under a hash. Raises InputError."""
        return self._table.find(wanted)

    def values(self, number: int) -> Sequence[int]:
        """Return what stands beside the hash of a record: its place, and further values. Raises InputError."""
        return self._file.numbers(self._name, number, 1)[1:]

    def span(self, number: int) -> tuple[int, int]:
        """Return where a record begins among the records, and where it ends. Raises InputError."""
        found = self._file.numbers(self._name, number, min(2, len(self) - number))
        width = len(found) if number == len(self) - 1 else len(found) // 2
        return found[1], found[width + 1] if len(found) > width else self._size

    def record(self, number: int) -> bytes:
        """Return a record. Raises InputError."""
        return self.read(*self.span(number))

    def read(self, start: int, end: int) -> bytes:
        """Return some bytes of the records. Raises InputError."""
        if not 0 <= start <= end <= self._size:
            raise self._file.damaged("the places of its records do not ascend")
        return self._file.read(self._offset + start, end - start)
