"""Looks for the text of each page among those of KNOWN_TEXTS, and ends a crawl that finds nothing else.

A text is known word for word by 64 bits of the BLAKE2b of its words, divided by single blanks, in UTF-8: white space
makes no difference, case does. It is known nearly by the rule of :mod:`crawl4llm.parts.near_duplicates.work`: for each
of its bands, those with the same checksum are compared with it bit by bit.

A file (:mod:`crawl4llm.base.known_sets`) has the set of digests, 4 bytes a text, and unless it was made without, the
bits of all texts in the order of their digests, 16 bytes, and a sorted table for each band, 8 bytes: 148 bytes a text
in all. So the same texts give the same file, in whatever order they come.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from crawl4llm.base.errors import InputError
from crawl4llm.base.known_sets import Fingerprints, KnownSet, Numbered, fingerprint
from crawl4llm.frontier import Entry
from crawl4llm.parts.known_texts import ALL_KNOWN, KNOWN_AT_FIRST, Settings
from crawl4llm.parts.part import Needs, Part, Rated
from crawl4llm.scoring import BANDS, SCHEME, SIGNATURE, TextSet, are_alike, require_library, signature_of

TEXTS: Final = "texts"
TEXT_SCHEME: Final = f"blake2b-64 of words; {SCHEME}"
DIGESTS, BITS = "digests", "bits"
"""Names of columns; ``bits`` are two numbers a text."""
RECORD: Final = struct.Struct(f"<Q{SIGNATURE.size}s")
"""A text on its way into a file: its digest, and its signature."""
_MOST_COMPARED: Final = 64
"""Texts that are compared for a band, so that a passage which many texts share costs no more. Of two texts that are
nearly the same some other band is rarer."""


class KnownTexts:
    """A file of known texts that ``scrapy corpus known`` has written. Processes may share it: pickled, it is its path,
    and is opened again."""

    def __init__(self, path: Path, *, named: str = "KNOWN_TEXTS", whole: bool = True) -> None:
        """Open a file; ``named``: by which setting or option. It is read to the end once if ``whole``. Raises
        InputError where it is none, of another format or version, cut short or damaged."""
        self._set = KnownSet(path, TEXTS, TEXT_SCHEME, named, whole=whole)
        self.identity = self._set.identity
        """Digest of the file, in hexadecimal: files of the same texts have the same."""
        self._digests = Fingerprints(*self._set.table(DIGESTS))
        self.near = self._set.has(BITS)
        """True if it has signatures: without, texts are known word for word only."""
        if self.near:
            self._bits = self._set.column(BITS)
            if len(self._bits) != 2 * len(self):
                raise self._set.damaged()
            self._bands = [Numbered(*self._set.table(band_name(band))) for band in range(BANDS)]

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self._set)

    def __reduce__(self) -> tuple[Callable[[Path, str], KnownTexts], tuple[Path, str]]:
        return _reopened, (self._set.path, self.identity)

    def knows(self, text: str, signature: bytes) -> bool:
        """Return whether a text is among them: word for word, or nearly, by its signature (``signature_of``); with an
        empty signature word for word only. A blank text is not."""
        if (words := _words(text)) and fingerprint(words) in self._digests:
            return True
        if not signature or not self.near:
            return False
        bits = self._bits
        first, second, *checksums = SIGNATURE.unpack(signature)
        for band, checksum in zip(self._bands, checksums, strict=True):
            for number in band.under(checksum, _MOST_COMPARED):
                if number < len(self) and are_alike(first, second, bits[2 * number], bits[2 * number + 1]):
                    return True
        return False


def band_name(band: int) -> str:
    """Return the name of a band's table."""
    return f"band {band}"


def record_of(text: str, *, near: bool) -> bytes:
    """Return what a file is made of for a text: its RECORD, where not ``near`` without a signature; empty if it is
    blank."""
    if not (words := _words(text)):
        return b""
    return RECORD.pack(fingerprint(words), signature_of(text) if near else b"")


def _words(text: str) -> bytes:
    return " ".join(text.split()).encode("utf-8", "replace")


def _reopened(path: Path, identity: str) -> KnownTexts:
    """Open a file again that was read and checked before. Raises InputError if it is another one."""
    again = KnownTexts(path, whole=False)
    if again.identity != identity:
        raise InputError(f"KNOWN_TEXTS {path} is another file than it was when the crawl began; begin it anew")
    return again


class KnownTextsPart(Part):
    """See the module."""

    name = "known_texts"

    def __init__(self, options: Settings, texts: TextSet | None = None) -> None:
        """``texts``: in place of those in the file that the settings name. Raises InputError."""
        super().__init__(options)
        require_library("KNOWN_TEXTS", "leave it out")
        self._texts: TextSet = KnownTexts(Path(str(options.known_texts))) if texts is None else texts

    def begin(self) -> None:
        self._all_known: int | None = 0
        """Pages that no seed is whose texts were looked up, all of them known; None if one is not."""

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
