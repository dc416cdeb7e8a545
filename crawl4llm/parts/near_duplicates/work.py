"""Compares the text of each page with those of earlier ones (NEAR_DUPLICATES)."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from mmap import mmap
from typing import Any, Final

from crawl4llm.parts.near_duplicates import LEAVE, Settings
from crawl4llm.parts.part import Needs, Part, Rated
from crawl4llm.policies import Pieces
from crawl4llm.scoring import BANDS, SCHEME, SIGNATURE, are_alike, require_library

TEXTS: Final = 1 << 18
"""Number of last new texts that are remembered."""


class NearDuplicates:
    """The last ``texts`` new texts, in 88 bytes each: 23 MB for TEXTS.

    Locality-sensitive hashing finds the texts to compare: a table for each band has the last text with a checksum. Its
    answers depend only on the added texts and their order.
    """

    def __init__(self, texts: int = TEXTS) -> None:
        self._texts = texts
        self._starts = tuple(band * texts for band in range(BANDS))
        """Start of each table; the tables are stored one after the other."""
        self._kept = 0
        """Number of all new texts so far, by which each is identified."""
        self._tables = memoryview(mmap(-1, 4 * BANDS * texts)).cast("I")
        self._bits = memoryview(mmap(-1, 16 * texts)).cast("Q")
        self._pages = memoryview(mmap(-1, 8 * texts)).cast("Q")
        self._stored: MutableMapping[str, Any] | None = None

    def keep_in(self, pieces: Pieces) -> None:
        """Restore the remembered texts from ``pieces``, and keep them there. Raises StoreError."""
        self._stored = stored = pieces.mapping(f"near_duplicates/{SCHEME}", _is_row, seldom_read=True)
        last = max((number for number, _, _ in stored.values()), default=0)
        for number in range(max(last - self._texts, 0) + 1, last + 1):
            if (row := stored.get(str(number % self._texts))) is not None:
                self._kept = number - 1
                self._remember(row[1], bytes.fromhex(row[2]))

    def add(self, page: int, signature: bytes) -> int | None:
        """Return the earlier page that a page's text is like; None if it is new, and then remember it.

        Pages are identified by their place in the crawl. An empty signature, of a page without text, is like nothing.
        """
        if not signature:
            return None
        first, second, *bands = SIGNATURE.unpack(signature)
        tables, bits, texts = self._tables, self._bits, self._texts
        last_forgotten = max(self._kept - texts, 0)
        for start, band in zip(self._starts, bands, strict=True):
            number = tables[start + band % texts]
            if number > last_forgotten:
                place = number % texts
                if are_alike(first, second, bits[2 * place], bits[2 * place + 1]):
                    return int(self._pages[place])
        self._remember(page, signature)
        if self._stored is not None:
            self._stored[str(self._kept % texts)] = [self._kept, page, signature.hex()]
        return None

    def _remember(self, page: int, signature: bytes) -> None:
        self._kept = number = self._kept + 1
        place = number % self._texts
        self._bits[2 * place], self._bits[2 * place + 1], *bands = SIGNATURE.unpack(signature)
        self._pages[place] = page
        for start, band in zip(self._starts, bands, strict=True):
            self._tables[start + band % self._texts] = number


def _is_row(value: Any) -> bool:
    """Return whether a value of the store is a text: its number, its page, its signature."""
    if not (isinstance(value, list) and len(value) == 3 and all(type(number) is int for number in value[:2])):
        return False
    number, page, signature = value
    if not (0 < number < 1 << 32 and 0 <= page < 1 << 63 and isinstance(signature, str)):
        return False
    try:
        return len(bytes.fromhex(signature)) == SIGNATURE.size
    except ValueError:
        return False


class NearDuplicatesPart(Part):
    """See the module."""

    name = "near_duplicates"

    def __init__(self, options: Settings) -> None:
        super().__init__(options)
        require_library()
        self._leaves, self._worthless = options.near_duplicates == LEAVE, options.near_duplicates_worthless

    def begin(self) -> None:
        self._texts = NearDuplicates()

    def needs(self) -> Needs:
        return Needs(signature=True)

    def identity(self) -> Mapping[str, Any]:
        worthless = {"near_duplicates_worthless": True} if self._worthless else {}
        return {"near_duplicates": self.options.near_duplicates, **worthless}

    def rated(self, place: int, page: Rated) -> None:
        """A page that does not count is not remembered, so that a page that counts cannot be its duplicate."""
        if not page.is_counted:
            page.line["near_duplicate_of"] = None
            return
        like = self._texts.add(place, page.signature)
        self.counts["pages/near_duplicates"] += like is not None
        page.compare(is_new=like is None)
        page.line["near_duplicate_of"] = like
        if like is not None:
            page.metadata["near-duplicate-of"] = like
            page.is_vain = page.is_vain or self._worthless
            if self._leaves:
                page.left = "links/near_duplicate"

    def keep_in(self, pieces: Pieces) -> None:
        self._texts.keep_in(pieces)
