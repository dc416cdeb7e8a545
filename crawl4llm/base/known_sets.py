"""Files of known things: sets of fingerprints, and tables by hash, sorted and mapped into memory or read by place.

A file begins with a head of 4 KiB: a magic line, a line of JSON, a line with the SHA-256 of the JSON, and blanks. The
JSON has the kind of set, the version of the format, the scheme of fingerprints and the number of entries. It also has
the place of each column and the SHA-256 of all columns. A column is bytes, or numbers of 4 or 8 bytes, little-endian.

A sorted table has two columns. Entries are sorted by 64 bits of a hash; for each value of their first bits, ``starts``
has the number of the first entry. The number of first bits is chosen so that each value has 128 to 256 entries on
average. A look-up in a table of any size reads one page of ``starts`` and one or two of the entries. Of a fingerprint
only the next 32 bits are stored, because its place tells the first ones. A false positive has a probability of at most
256 in 2^32 (6e-8), at 4.03 to 4.06 bytes an entry.
"""

from __future__ import annotations

import hashlib
import json
import mmap
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple

from crawl4llm.base.command_lines import command
from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.formats import require_format
from crawl4llm.base.input_files import open_input, parse_json

if TYPE_CHECKING:
    from numpy import uint64
    from numpy.typing import NDArray

    Numbers = NDArray[uint64]

MAGIC: Final = b"crawl4llm known set\n"
LINKS: Final = "links"
"""The kind of a file of known links."""
FORMAT: Final = 1
_HEAD: Final = 4096
_SIZES: Final = {"B": 1, "I": 4, "Q": 8}
_A_START: Final = 256
"""Most entries for a value of the first bits, on average."""
_KEPT: Final = 32
"""Bits of a fingerprint that are stored, after the first ones."""
_PIECE: Final = 1 << 20
_MOST: Final = 1 << 48
"""More entries than any file has."""


def fingerprint(data: bytes) -> int:
    """Return 64 bits of BLAKE2b (RFC 7693) that stand for some bytes."""
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")


def start_bits(count: int) -> int:
    """Return how many first bits index a table of ``count`` entries."""
    return max((count // _A_START).bit_length(), 1)


class Fingerprints:
    """A set of fingerprints: a sorted table of the bits after the first ones."""

    def __init__(self, entries: memoryview[int], starts: memoryview[int]) -> None:
        self._entries, self._starts = entries, starts
        bits = (len(starts) - 1).bit_length() - 1
        self._first, self._next = 64 - bits, 64 - bits - _KEPT
        self.error_rate = len(entries) / 2.0 ** (bits + _KEPT)
        """The probability of a false positive."""

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, wanted: int) -> bool:
        first = wanted >> self._first
        end = min(self._starts[first + 1], len(self._entries))
        kept = wanted >> self._next & 0xFFFFFFFF
        place = bisect_left(self._entries, kept, self._starts[first], end)
        return place < end and self._entries[place] == kept


class Numbered:
    """A sorted table of 32-bit hashes, each with a number of 32 bits."""

    def __init__(self, entries: memoryview[int], starts: memoryview[int]) -> None:
        self._entries, self._starts = entries, starts
        self._first = 64 - ((len(starts) - 1).bit_length() - 1)

    def under(self, wanted: int, most: int) -> Iterator[int]:
        """Yield the first ``most`` numbers of a hash, ascending."""
        entry = wanted << 32
        first = entry >> self._first
        end = min(self._starts[first + 1], len(self._entries))
        place = bisect_left(self._entries, entry, self._starts[first], end)
        for at in range(place, min(place + most, end)):
            if (found := self._entries[at]) >> 32 != wanted:
                return
            yield found & 0xFFFFFFFF


class Head(NamedTuple):
    """The head of a file."""

    kind: str
    """``urls``, ``texts`` or ``links``."""
    scheme: str
    """How fingerprints and hashes are made; sets of another scheme cannot be used."""
    entries: int
    columns: dict[str, tuple[int, int, str]]
    """Columns by name: offset, count, and type, B, I or Q."""
    size: int
    sha256: str
    """The SHA-256 of all bytes after the head."""


class KnownSet:
    """An open file of known things. To change it, make another and rename it to its place; it must not be written
    to."""

    def __init__(
        self, path: Path, kind: str, scheme: str | Collection[str], named_by: str, *, whole: bool = True
    ) -> None:
        """Open it; with ``whole``, read all of it to check it. ``scheme``: the one that its reader knows, or several.
        ``named_by``: the setting or option that names it. Raises InputError if it cannot be used."""
        self.path = path
        told = f"{named_by} {path}"
        with as_input_error(f"{told} cannot be read"), open_input(path) as file:
            head, self.identity = _head(file.read(_HEAD), told, kind)
            size = file.seek(0, 2)
            self._data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        if head.kind != kind:
            raise InputError(f"{told} is a set of known {head.kind}, not of known {kind}")
        if head.scheme not in ((scheme,) if isinstance(scheme, str) else scheme):
            raise InputError(
                f"{told} was made by {head.scheme!r:.60}, not by {scheme!r}; make it again: {_making(kind=kind)}"
            )
        if size != head.size:
            raise InputError(
                f"{told} is damaged: it has {size:,} bytes of {head.size:,}; copy it again, or make another"
            )
        if whole and self._digest() != head.sha256:
            raise InputError(
                f"{told} is damaged: its content is not what its head says; copy it again, or make another"
            )
        self._head, self._told = head, told

    def __len__(self) -> int:
        return self._head.entries

    @property
    def scheme(self) -> str:
        """How its fingerprints are made."""
        return self._head.scheme

    def has(self, name: str) -> bool:
        """Return whether the file has a column of that name."""
        return name in self._head.columns

    def column(self, name: str) -> memoryview[int]:
        """Return the numbers of a column. Raises InputError if the file does not hold all of them."""
        offset, count, kind = self.place(name)
        data = self._data[offset : offset + count * _SIZES[kind]]
        return data.cast("I") if kind == "I" else data.cast("Q") if kind == "Q" else data

    def place(self, name: str) -> tuple[int, int, str]:
        """Return offset, count and type of a column, for readers that do not map it. Raises InputError if the file does
        not hold all of it."""
        try:
            offset, count, kind = self._head.columns[name]
            if min(offset - _HEAD, count) >= 0 and offset + count * _SIZES[kind] <= len(self._data):
                return offset, count, kind
        except (KeyError, TypeError, ValueError):  # what is said of it is nothing that a column has
            pass
        raise self.damaged()

    def table(self, name: str) -> tuple[memoryview[int], memoryview[int]]:
        """Return the two columns of a sorted table. Raises InputError if they do not belong together."""
        entries, starts = self.column(name), self.column(starts_of(name))
        if len(starts) - 1 == 1 << start_bits(len(entries)) and starts[-1] == len(entries):
            return entries, starts
        raise self.damaged()

    def damaged(self) -> InputError:
        """Return the error for a file whose content does not match its head."""
        return InputError(f"{self._told} is damaged: its head cannot be read; copy it again, or make another")

    def _digest(self) -> str:
        digest = hashlib.sha256()
        for start in range(_HEAD, len(self._data), _PIECE):
            digest.update(self._data[start : start + _PIECE])
        return digest.hexdigest()


def starts_of(name: str) -> str:
    """Return the name of the column ``starts`` of a table."""
    return f"{name} starts"


def make_known(to: object = "OUT", *sources: object, kind: str = "") -> str:
    """Return the advice to make a set of a kind, with its command."""
    return f"make one: {_making(to, *sources, kind=kind)}"


def _making(to: object = "OUT", *sources: object, kind: str = "") -> str:
    return command("corpus", "known", *(["--links"] if kind == LINKS else []), to, *(sources or ["SOURCE..."]))


def is_known_set(path: Path) -> bool:
    """Return whether a file begins like a set of any kind and version. Raises OSError."""
    with open_input(path) as file:
        return file.read(len(MAGIC)) == MAGIC


def _head(data: bytes, told: str, kind: str) -> tuple[Head, str]:
    """Return the head and its SHA-256, which identifies the file. Raises InputError."""
    if not data.startswith(MAGIC):
        what = "file of known links" if kind == LINKS else "set of known URLs or texts"
        raise InputError(f"{told} is no {what}; {make_known(kind=kind)}")
    said, _, rest = data[len(MAGIC) :].partition(b"\n")
    identity = hashlib.sha256(said).hexdigest()
    if len(data) < _HEAD or rest[: len(identity)] != identity.encode():
        raise InputError(f"{told} is damaged: its head is not whole; copy it again, or make another")
    head: Head | None
    try:
        values: dict[str, Any] = parse_json(said)
        require_format(told, values.pop("format"), FORMAT, _making(kind=kind))
        head = Head(**values)
    except (AttributeError, KeyError, TypeError, ValueError):
        head = None
    kinds = (str, str, int, dict, int, str)
    if head is None or tuple(map(type, head)) != kinds or not 0 <= head.entries < _MOST:
        raise InputError(f"{told} is damaged: its head cannot be read; copy it again, or make another")
    return head, identity


class SetWriter:
    """Writes such a file, column by column."""

    def __init__(self, file: BinaryIO) -> None:
        """Write to a new file, which the caller closes."""
        self._file = file
        self._digest = hashlib.sha256()
        self._columns: dict[str, tuple[int, int, str]] = {}
        self.size = _HEAD
        file.write(bytes(_HEAD))

    def column(self, name: str, kind: str, pieces: Iterable[NDArray[Any]]) -> None:
        """Write the numbers of a column. Raises OSError."""
        self.data(name, kind, (piece.astype(f"<u{_SIZES[kind]}").tobytes() for piece in pieces))

    def data(self, name: str, kind: str, pieces: Iterable[bytes]) -> None:
        """Write a column that is given as bytes. Raises OSError."""
        start = self.size
        for piece in pieces:
            self._write(piece)
        self._columns[name] = (start, (self.size - start) // _SIZES[kind], kind)
        self._write(bytes(-self.size % 8))

    def fingerprints(self, name: str, count: int, pieces: Iterable[Numbers]) -> None:
        """Write the set of ``count`` fingerprints, given in sorted order. Raises OSError."""
        self._sorted(name, "I", 64 - start_bits(count) - _KEPT, count, pieces)

    def numbered(self, name: str, count: int, pieces: Iterable[Numbers]) -> None:
        """Write the table of ``count`` sorted entries, each a hash and its number. Raises OSError."""
        self._sorted(name, "Q", 0, count, pieces)

    def _sorted(self, name: str, kind: str, left_out: int, count: int, pieces: Iterable[Numbers]) -> None:
        """Write a sorted table without the last bits of its entries."""
        import numpy as np  # not where sets are only read

        bits = start_bits(count)
        under = np.zeros((1 << bits) + 1, dtype=np.uint64)

        def kept() -> Iterator[NDArray[Any]]:
            for piece in pieces:
                if len(piece):
                    firsts = (piece >> np.uint64(64 - bits)).astype(np.int64)
                    numbers = np.bincount(firsts - firsts[0])
                    under[firsts[0] + 1 : firsts[0] + 1 + len(numbers)] += numbers.astype(np.uint64)
                    yield piece >> np.uint64(left_out) & np.uint64((1 << 8 * _SIZES[kind]) - 1)

        self.column(name, kind, kept())
        self.column(starts_of(name), "Q", [np.cumsum(under)])

    def finish(self, kind: str, scheme: str, count: int) -> None:
        """Write the head, which completes the file. Raises OSError."""
        head = Head(kind, scheme, count, self._columns, self.size, self._digest.hexdigest())
        said = json.dumps({"format": FORMAT, **head._asdict()}, sort_keys=True).encode()
        data = b"%b%b\n%b\n" % (MAGIC, said, hashlib.sha256(said).hexdigest().encode())
        self._file.seek(0)
        self._file.write(data.ljust(_HEAD))

    def _write(self, data: bytes) -> None:
        self._file.write(data)
        self._digest.update(data)
        self.size += len(data)
