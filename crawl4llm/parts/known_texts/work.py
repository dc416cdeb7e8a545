"""Looks up the text of each page in KNOWN_TEXTS, and ends a crawl that finds only known texts.

A text is known word for word by 64 bits of the BLAKE2b of its words, divided by single blanks, in UTF-8: white space
makes no difference, case does. It is nearly known by the rule of :mod:`crawl4llm.parts.near_duplicates.work`: for each
of its bands, texts with the same checksum are compared with it bit by bit.

A file (:mod:`crawl4llm.base.sorted_file`) has the digests, 4 bytes a text. Unless it was made without signatures, it
also has the bits of all texts in the order of their digests, 16 bytes a text. A sorted table for each band has 8
bytes a text: 148 bytes in all. The same texts give the same file, in any order.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final

from crawl4llm.base.errors import InputError
from crawl4llm.base.sorted_file import HashTable, SortedFile, fingerprint, known
from crawl4llm.frontier import Entry
from crawl4llm.parts.known_texts import ALL_KNOWN, KNOWN_AT_FIRST, Settings
from crawl4llm.parts.part import Needs, Part, Rated
from crawl4llm.scoring import BANDS, SCHEME, SIGNATURE, TextSet, are_alike, require_library, signature_of

TEXTS: Final = "texts"
TEXT_SCHEME: Final = f"blake2b-64 of words; {SCHEME}"
DIGESTS, BITS = "digests", "bits"
"""Names of columns; ``bits`` has two numbers for each text."""
RECORD: Final = struct.Struct(f"<Q{SIGNATURE.size}s")
"""A text before it is written to a file: its digest, and its signature."""
_MOST_COMPARED: Final = 64
"""Most texts that are compared for a band, so that a passage in many texts costs no more. Of two nearly equal texts
some other band is rarer."""


class KnownTexts:
    """A file of known texts, written by ``scrapy corpus known``. Processes may share it: it is pickled as its path, and
    opened again."""

    def __init__(self, path: Path, *, named: str = "KNOWN_TEXTS", whole: bool = True) -> None:
        """Open a file; ``named``: the setting or option that names it. With ``whole`` all of it is read once. Raises
        InputError if it is another kind of file, has another format or version, is cut short or damaged."""
        self._set = SortedFile(path, known(TEXTS), TEXT_SCHEME, named, whole=whole)
        self.identity = self._set.identity
        """Digest of the file, in hexadecimal, equal for files of the same texts."""
        self._digests = HashTable(self._set, DIGESTS)
        self.near = self._set.has(BITS)
        """True if it has signatures; otherwise texts are known word for word only."""
        if self.near:
            if self._set.column(BITS)[1:] != (len(self), "QQ"):
                raise self._set.damaged()
            self._bands = [HashTable(self._set, band_name(band)) for band in range(BANDS)]

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self._set)

    def __reduce__(self) -> tuple[Callable[[Path, str], KnownTexts], tuple[Path, str]]:
        return _reopened, (self._set.path, self.identity)

    def knows(self, text: str, signature: bytes) -> bool:
        """Return whether a text is in the file: word for word or, by its signature (``signature_of``), nearly. An empty
        signature allows word for word only. A blank text is never known."""
        if (words := _words(text)) and fingerprint(words) in self._digests:
            return True
        if not signature or not self.near:
            return False
        first, second, *checksums = SIGNATURE.unpack(signature)
        for band, checksum in zip(self._bands, checksums, strict=True):
            for _, number in islice(band.under(checksum << 32), _MOST_COMPARED):
                if are_alike(first, second, *self._set.numbers(BITS, number, 1)):
                    return True
        return False


def band_name(band: int) -> str:
    """Return the name of a band's table."""
    return f"band {band}"


def record_of(text: str, *, near: bool) -> bytes:
    """Return the RECORD of a text, without a signature unless ``near``; empty for a blank text."""
    if not (words := _words(text)):
        return b""
    return RECORD.pack(fingerprint(words), signature_of(text) if near else b"")


def _words(text: str) -> bytes:
    return " ".join(text.split()).encode("utf-8", "replace")


def _reopened(path: Path, identity: str) -> KnownTexts:
    """Open a file again that was read and checked before. Raises InputError if it has changed."""
    again = KnownTexts(path, whole=False)
    if again.identity != identity:
        raise InputError(f"KNOWN_TEXTS {path} has changed since the crawl began; begin a new crawl")
    return again


class KnownTextsPart(Part):
    """See the module."""

    name = "known_texts"

    def __init__(self, options: Settings, texts: TextSet | None = None) -> None:
        """``texts``: replace the file that the settings name. Raises InputError."""
        super().__init__(options)
        require_library("KNOWN_TEXTS", "leave it out")
        self._texts: TextSet = KnownTexts(Path(str(options.known_texts))) if texts is None else texts

    def begin(self) -> None:
        self._all_known: int | None = 0
        """Pages other than seeds whose texts were looked up, while all of them are known; None once one is not."""

    def needs(self) -> Needs:
        return Needs(signature=True, known_texts=self._texts)

    def identity(self) -> Mapping[str, Any]:
        return {"known_texts": self._texts.identity}

    def rated(self, place: int, page: Rated) -> None:
        if page.dropped is not None:
            return
        self.counts["pages/known_text"] += page.known
        page.compare(is_new=not page.known)
        page.line["known_text"] = page.known
        if page.known:
            page.metadata["known-text"] = "true"

    def crawled(self, entry: Entry, page: Rated) -> None:
        if self._all_known is not None and entry.parent is not None and page.novel is not None:
            self._all_known = self._all_known + 1 if page.known else None

    def finished(self) -> str | None:
        return ALL_KNOWN if self._all_known is not None and self._all_known >= KNOWN_AT_FIRST else None

    def lines(self, figures: Mapping[str, float | None]) -> Iterator[str]:
        known, crawled = (int(figures.get(f"pages/{name}") or 0) for name in ("known_text", "crawled"))
        yield f"  known texts      {known:,} of {crawled:,} pages"

    def save(self) -> Any:
        return {"all_known": self._all_known}

    def load(self, state: Any) -> None:
        self._all_known = state["all_known"]
