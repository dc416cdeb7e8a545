"""The file of known links: pages with their links and scores on disk, of which a look-up reads what it needs.

It is a file of :mod:`crawl4llm.base.known_sets`. A page is found by 64 bits of the BLAKE2b of its document key. In the
order of these fingerprints the file has four columns:

- ``pages``, with ``pages starts``: the fingerprints, 8 bytes a page, as a sorted table;
- ``scores``: the bits of the influence score as a double (IEEE 754), or all ones if it is not known;
- ``places``: the offset of each page's record in ``links``, and the end of the last one;
- ``links``: the records. Each is one gzip member (RFC 1952), so it has a CRC-32, with the JSON ``[KEY, URL, FOLLOWS,
  LINKS]``. An empty URL stands for the key. FOLLOWS is 0 if the page forbids to follow its links, else 1. A link is
  ``[URL, ANCHOR, REL, BOILERPLATE, LANGUAGE, KEY]`` without the empty values at its end.

The file is not mapped and is read with ``pread``: about 2 KB of the table, 24 bytes of the other columns, and the
record. When it is opened, all columns but the records are checked: fingerprints ascend, places ascend and end where the
records end, and scores are finite.
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from crawl4llm.base.compression import InflateError, compress, inflate
from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.files import PreadFile
from crawl4llm.base.input_files import from_json, to_json
from crawl4llm.base.known_sets import LINKS, KnownSet, fingerprint, start_bits, starts_of
from crawl4llm.base.pages import Link, PageRecord
from crawl4llm.base.shapes import Where, fits

NAME: Final = "KNOWN_LINKS"
"""The setting."""
PAGES, SCORES, PLACES, RECORDS = "pages", "scores", "places", "links"
"""Names of columns."""
BY_URL: Final = "blake2b-64 of URLs by the URL Standard and RFC 3986"
"""The scheme of a file whose document keys are URLs."""
BY_ID: Final = "blake2b-64 of document keys of {}"
"""The scheme of a file whose document keys mean something in one kind of corpus only."""
CLUEWEB22: Final = "clueweb22"
"""The only such kind."""
NO_SCORE: Final = (1 << 64) - 1
"""The bits of a score that is not known; they are those of a NaN."""
MOST_LINKS: Final = 10_000
"""Most links of a page, as of a page that is fetched."""
_LONGEST: Final = 8192
"""Most characters of a URL or key."""
_LONGEST_ANCHOR, _LONGEST_REL, _LONGEST_LANGUAGE = 1000, 100, 35
_LARGEST: Final = 1 << 23
"""Most bytes of a record, unpacked."""
_MOST_STORED: Final = _LARGEST + (1 << 20)
_LENGTH: Final = 4
"""Bytes at the end of a gzip member with the length of its content."""
_MOST_WITH_A_START: Final = 4096
"""Most fingerprints with the same first bits; BLAKE2b gives 256 on average."""
_PIECE: Final = 1 << 23
_LINK: Final = Where({list}, lambda link: 0 < len(link) <= 6)
_EMPTY: Final = ("", "", "", 0, "", "")


def key_fingerprint(key: str) -> int:
    """Return the fingerprint of a document key."""
    return fingerprint(key.encode("utf-8", "surrogatepass"))


def scheme_of(corpus: str | None) -> str:
    """Return the scheme of document keys of a kind of corpus; None for URLs."""
    return BY_URL if corpus is None else BY_ID.format(corpus)


def links_record(page: PageRecord, *, follows: bool, by_url: bool) -> bytes | None:
    """Return the record of a page with outlinks; None if its key or URL is too long. ``by_url``: keys are URLs, and
    those of links are not stored. Links beyond MOST_LINKS, beyond 7 MiB, or with longer URLs are left out."""
    if max(len(page.key), len(page.url)) > _LONGEST:
        return None
    links: list[list[Any]] = []
    room = _LARGEST - (1 << 20)
    for link in (page.outlinks or ()) if follows else ():
        told = _packed(link, by_url=by_url)
        room -= len(to_json(told)) + 1
        if len(links) == MOST_LINKS or room < 0:
            break
        if max(len(link.url), len(link.key or "")) <= _LONGEST:
            links.append(told)
    return compress(to_json([page.key, "" if page.url == page.key else page.url, int(follows), links]))


def _packed(link: Link, *, by_url: bool) -> list[Any]:
    key = "" if by_url else link.key or ""
    anchor, rel, language = link.anchor[:_LONGEST_ANCHOR], link.rel[:_LONGEST_REL], link.language[:_LONGEST_LANGUAGE]
    told = [link.url, anchor, rel, int(link.boilerplate), language, key]
    while len(told) > 1 and not told[-1]:
        told.pop()
    return told


def score_bits(score: float | None) -> int:
    """Return the bits of a score, NO_SCORE for None."""
    if score is None:
        return NO_SCORE
    bits: int = struct.unpack("<Q", struct.pack("<d", score))[0]
    return bits


class KnownLinks:
    """An open file of known links. To change it, make another and rename it to its place."""

    def __init__(self, path: Path) -> None:
        """Open it, and check all but the records. Raises InputError if it cannot be used."""
        self.path = path
        schemes = (scheme_of(None), scheme_of(CLUEWEB22))
        self._set = KnownSet(path, LINKS, schemes, NAME, whole=False)
        self.identity = self._set.identity
        """Digest of the file, in hexadecimal."""
        self.corpus = None if self._set.scheme == BY_URL else CLUEWEB22
        """The kind of corpus whose keys it has; None for URLs."""
        with as_input_error(f"{NAME} {path} cannot be read"):
            self._file = PreadFile(path)
        columns = (PAGES, starts_of(PAGES), SCORES, PLACES, RECORDS)
        found = [self._set.place(column) for column in columns]
        self._offsets, counts, kinds = zip(*found, strict=True)
        self._pages, self._starts, self._scores, self._places, self._records = self._offsets
        bits = start_bits(len(self))
        self._first = 64 - bits
        if kinds != ("Q", "Q", "Q", "Q", "B") or counts[:4] != (len(self), (1 << bits) + 1, len(self), len(self) + 1):
            raise self._set.damaged()
        self.unscored = self._checked(counts[-1])
        """Pages without a score."""

    def __len__(self) -> int:
        """Return the number of pages."""
        return len(self._set)

    def find(self, key: str) -> int | None:
        """Return the number of a page by its document key; None if the file does not have it. Raises InputError."""
        wanted = key_fingerprint(key)
        start, end = self._numbers(self._starts, wanted >> self._first, 2)
        entries = self._numbers(self._pages, start, end - start)
        place = bisect_left(entries, wanted)
        return start + place if place < len(entries) and entries[place] == wanted else None

    def score(self, number: int) -> float | None:
        """Return the influence score of a page, None if it is not known. Raises InputError."""
        [bits] = self._numbers(self._scores, number, 1)
        if bits == NO_SCORE:
            return None
        score: float = struct.unpack("<d", struct.pack("<Q", bits))[0]
        if not math.isfinite(score):
            raise self._damaged(f"the score of page {number:,} is {score}")
        return score

    def size(self, number: int) -> int:
        """Return the bytes of a page's record, unpacked, as its end says (RFC 1952, 2.3.1). Raises InputError."""
        start, size = self._place(number)
        return int.from_bytes(self._read(self._records + start + size - _LENGTH, _LENGTH), "little")

    def page(self, number: int, key: str) -> PageRecord:
        """Return a page with its links. It has none if the record is of another key, whose fingerprint is the same. The
        key of a link is None if the file does not tell it. Raises InputError for a damaged record."""
        start, size = self._place(number)
        try:
            values = from_json(inflate(self._read(self._records + start, size), "gzip", _LARGEST))
        except (InflateError, ValueError) as error:
            raise self._damaged(f"the record of page {number:,} cannot be read ({error})") from None
        if not fits([values], ({str}, {str}, {int}, [_LINK])):
            raise self._damaged(f"the record of page {number:,} is no page with links")
        named, url, follows, told = values
        if named != key:
            return PageRecord(key, key, outlinks=[])
        links = [(*link, *_EMPTY[len(link) :]) for link in told[:MOST_LINKS]]
        if not all(map(_is_link, links)):
            raise self._damaged(f"a link of page {number:,} is no link")
        outlinks = [
            Link(target, its_key or None, anchor, bool(boilerplate), rel, language)
            for target, anchor, rel, boilerplate, language, its_key in links
        ]
        return PageRecord(key, url or key, outlinks=outlinks, follows=bool(follows))

    def _place(self, number: int) -> tuple[int, int]:
        """Return where a page's record begins among the records, and its bytes on disk."""
        start, end = self._numbers(self._places, number, 2)
        if not _LENGTH <= end - start <= _MOST_STORED:
            raise self._damaged(f"the record of page {number:,} has {end - start:,} bytes")
        return start, end - start

    def _checked(self, size: int) -> int:
        """Check the columns before the records, which have ``size`` bytes; return the number of pages without a score.
        Raises InputError."""
        import numpy as np  # only for crawls with such a file

        starts = np.fromiter(self._column(self._starts, (1 << (64 - self._first)) + 1), np.uint64)
        counts = np.zeros(len(starts) - 1, np.uint64)
        before, unscored = np.zeros(0, np.uint64), 0
        for piece in self._pieces(self._pages, len(self)):
            fingerprints = np.frombuffer(piece, "<u8")
            both = np.concatenate((before, fingerprints))
            if (both[1:] <= both[:-1]).any():
                raise self._damaged("its pages are not sorted")
            before = fingerprints[-1:]
            firsts = (fingerprints >> np.uint64(self._first)).astype(np.int64)
            found = np.bincount(firsts - firsts[0])
            counts[firsts[0] : firsts[0] + len(found)] += found.astype(np.uint64)
        if starts[0] or (np.cumsum(counts) != starts[1:]).any() or counts.max() > _MOST_WITH_A_START:
            raise self._damaged("its pages are not sorted")
        for piece in self._pieces(self._scores, len(self)):
            bits = np.frombuffer(piece, "<u8")
            known = bits != np.uint64(NO_SCORE)
            unscored += len(bits) - int(known.sum())
            if not np.isfinite(np.frombuffer(piece, "<f8")[known]).all():
                raise self._damaged("a score is not a finite number")
        last = 0
        for piece in self._pieces(self._places, len(self) + 1):
            places = np.concatenate((np.array([last], np.uint64), np.frombuffer(piece, "<u8")))
            if (places[1:] < places[:-1]).any():
                raise self._damaged("the places of its records do not ascend")
            last = int(places[-1])
        if last != size:
            raise self._damaged(f"its records end at {last:,}, not at {size:,}")
        return unscored

    def _column(self, offset: int, count: int) -> Iterator[int]:
        for piece in self._pieces(offset, count):
            yield from memoryview(piece).cast("Q")

    def _pieces(self, offset: int, count: int) -> Iterator[bytes]:
        """Yield a column of numbers in pieces."""
        for start in range(0, 8 * count, _PIECE):
            yield self._read(offset + start, min(_PIECE, 8 * count - start))

    def _numbers(self, offset: int, first: int, count: int) -> Sequence[int]:
        """Return some numbers of a column."""
        return memoryview(self._read(offset + 8 * first, 8 * count)).cast("Q")

    def _read(self, offset: int, size: int) -> bytes:
        with as_input_error(f"{NAME} {self.path} cannot be read"):
            data = self._file.read(size, offset)
        if len(data) != size:
            raise self._damaged("it has become shorter")
        return data

    def _damaged(self, what: str) -> InputError:
        return InputError(f"{NAME} {self.path} is damaged: {what}; copy it again, or make another")


def _is_link(link: Sequence[Any]) -> bool:
    """Return whether values are those of a link, none of them too long."""
    target, anchor, rel, boilerplate, language, key = link
    texts = (target, anchor, rel, language, key)
    return (
        boilerplate in (0, 1)
        and all(type(text) is str for text in texts)
        and max(len(target), len(key)) <= _LONGEST
        and (len(anchor) <= _LONGEST_ANCHOR and len(rel) <= _LONGEST_REL and len(language) <= _LONGEST_LANGUAGE)
    )
