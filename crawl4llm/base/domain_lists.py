"""Plain files of domains: block lists, lists of spam hosts, and the domains that a crawl stays within.

A line has one domain, which includes its subdomains; ``#`` begins a comment. Lines of a hosts file, an address and then
names (hosts(5)), are read too; their names of one label belong to this machine and are skipped. A public suffix, such
as ``co.uk``, is refused unless it is written ``.co.uk``, because it covers the sites of many owners.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from io import BytesIO
from ipaddress import ip_address
from pathlib import Path
from typing import IO, Final, cast

from crawl4llm.base.domains import Domain, is_public_suffix, may_be_public_suffix
from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.input_files import read_input
from crawl4llm.base.sorted_file import fingerprint
from crawl4llm.base.terminal import harmless

MOST_BYTES: Final = 1 << 28
"""Most bytes of a file as it lies on the disk."""
_MOST_UNPACKED: Final = 1 << 30
_LONGEST_LINE: Final = 4096
_NAMED: Final = 3
"""Unusable lines that the message quotes; others are only counted."""
_GZIP: Final = b"\x1f\x8b"
_USUAL = re.compile(
    rb"[ \t]*(?:(?:0\.0\.0\.0|127\.0\.0\.1)[ \t]+)?([a-z0-9_-]+(?:\.[a-z0-9_-]+)+)[ \t\r]*(?:#[^\n]*)?\n?"
)
"""Lines of one domain, as nearly all are; this expression reads them in a tenth of the time."""


class DomainList:
    """The domains of a file. Each takes 12 bytes of memory, because a 64-bit hash stands for its name."""

    def __init__(self, path: Path, named_by: str, *, suffixes: bool = False) -> None:
        """Read a file, gzip or not, that a setting or option names; ``suffixes`` allows public suffixes. Unusable lines
        are skipped. Raises InputError if the file cannot be read, or if it has lines but none can be used."""
        self.path = path
        self._told = f"{named_by} {path}"
        with as_input_error(f"{self._told} cannot be read"):
            self.data = read_input(path, MOST_BYTES)
            """The bytes of the file; callers that need them no more may delete them."""
        self.digest = hashlib.sha256(self.data).hexdigest()
        """SHA-256 of the file."""
        self.left_out = 0
        """Lines that cannot be used."""
        self._faults: list[str] = []
        self._suffixes = suffixes
        hashes, lines = array("Q"), array("I")
        for number, name in self._names():
            hashes.append(fingerprint(name))
            lines.append(number)
        if self.left_out and not lines:
            raise InputError(f"{self._told} has no line with a domain: {self._faults[0]}")
        import numpy as np  # not at the start of each crawl, few of which have lists

        order = np.argsort(hashes, kind="stable")
        self._hashes = array("Q", np.array(hashes)[order].tobytes())
        self._lines = array("I", np.array(lines)[order].tobytes())

    def __len__(self) -> int:
        return len(self._hashes)

    def line_of(self, host: str) -> int | None:
        """Return the number of the line with a host or a domain above it; None if there is no such line. The most
        specific domain counts, and of equal ones the first line."""
        name = host.encode("ascii", "replace")
        while name:
            wanted = fingerprint(name)
            place = bisect_left(self._hashes, wanted)
            if place < len(self._hashes) and self._hashes[place] == wanted:
                return self._lines[place]
            name = name.partition(b".")[2]
        return None

    @property
    def fault(self) -> str | None:
        """One line on skipped lines, which quotes the first of them; None if all could be used."""
        if not self.left_out:
            return None
        more = f" and {self.left_out - len(self._faults):,} more" if self.left_out > len(self._faults) else ""
        return f"{self._told}: left out {'; '.join(self._faults)}{more}"

    def _names(self) -> Iterator[tuple[int, bytes]]:
        """Yield the domains with their line numbers."""
        for number, line in self._numbered():
            usual = _USUAL.fullmatch(line)
            if usual is not None and not may_be_public_suffix(usual[1].decode()):
                yield number, usual[1]
                continue
            try:
                for name in _domains(line, suffixes=self._suffixes):
                    yield number, name.encode()
            except InputError as error:
                self.left_out += 1
                if len(self._faults) < _NAMED:
                    self._faults.append(f"line {number} ({error})")

    def _numbered(self) -> Iterator[tuple[int, bytes]]:
        """Yield the lines with their numbers. Raises InputError if the file is damaged or unpacks to too many bytes."""
        packed = cast(IO[bytes], BytesIO(self.data))
        file = cast(IO[bytes], gzip.GzipFile(fileobj=packed)) if self.data.startswith(_GZIP) else packed
        number = size = 0
        is_whole = True
        try:
            while line := file.readline(_LONGEST_LINE):
                size += len(line)
                if size > _MOST_UNPACKED:
                    raise InputError(f"{self._told} unpacks to more than {_MOST_UNPACKED:,} bytes")
                number += is_whole
                if is_whole:
                    yield number, line
                is_whole = line.endswith(b"\n")
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{self._told} is damaged: {error}") from None


def _domains(line: bytes, *, suffixes: bool) -> list[str]:
    """Return the domains of a line: one, or several from a hosts file. Raises InputError."""
    text = line.decode("utf-8-sig", "replace")
    words = text.partition("#")[0].split()
    if len(words) > 1 and _is_address(words[0]):
        return [name for word in words[1:] if "." in (name := Domain(word).name)]
    if len(words) > 1 or len(line) >= _LONGEST_LINE:
        raise InputError(f"{harmless(text.strip()[:60])!r} is not one domain")
    return [domain_of_line(word, suffixes=suffixes) for word in words]


def domain_of_line(word: str, *, suffixes: bool) -> str:
    """Return the domain of a line. Raises InputError if it is not a domain, or is a public suffix and those are not
    allowed."""
    plain = word.removeprefix("*").removeprefix(".")
    try:
        name = Domain(plain).name
    except InputError:
        raise InputError(f"{harmless(word[:60])!r} is not a domain") from None
    if not suffixes and plain == word and is_public_suffix(name):
        raise InputError(f"{name} is a public suffix; .{name} would be all below it")
    return name


def _is_address(word: str) -> bool:
    try:
        ip_address(word.partition("%")[0])
    except ValueError:
        return False
    return True
