"""The file of known links: pages with their links and scores on disk, of which a look-up reads what it needs.

It is a file of :mod:`crawl4llm.base.sorted_file`, with the records ``pages``. A page is found by 64 bits of the BLAKE2b
of its document key. An entry of the table has this fingerprint, the place of the record, and the bits of the influence
score as a double (IEEE 754), or all ones if it is not known.

A record is one gzip member (RFC 1952), so it has a CRC-32, with the JSON ``[KEY, URL, FOLLOWS, LINKS]``. An empty URL
stands for the key. FOLLOWS is 0 if the page forbids to follow its links, else 1. A link is ``[URL, ANCHOR, REL,
BOILERPLATE, LANGUAGE, KEY]`` without the empty values at its end.

A look-up reads about 5 KB of the table, and the record. When the file is opened, the table is checked: fingerprints and
places ascend, and scores are finite.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from crawl4llm.base.compression import InflateError, compress, inflate
from crawl4llm.base.input_files import from_json, to_json
from crawl4llm.base.pages import Link, PageRecord
from crawl4llm.base.shapes import Where, fits
from crawl4llm.base.sorted_file import (
    Kind,
    Records,
    SortedFile,
    fingerprint,
    known,
    records_of,
    start_bits,
    starts_of,
)

NAME: Final = "KNOWN_LINKS"
"""The setting."""
PAGES, CODE = "pages", "QQQ"
"""Name of the records, and type of an entry: fingerprint, place and score."""
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
_LINK: Final = Where({list}, lambda link: 0 < len(link) <= 6)
_EMPTY: Final = ("", "", "", 0, "", "")


def links_kind() -> Kind:
    """Return the kind of the file."""
    return known("links", "--links")


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
        self._set = SortedFile(path, links_kind(), schemes, NAME, whole=False)
        self.identity = self._set.identity
        """Digest of the file, in hexadecimal."""
        self.corpus = None if self._set.scheme == BY_URL else CLUEWEB22
        """The kind of corpus whose keys it has; None for URLs."""
        self._records = Records(self._set, PAGES)
        if len(self._records) != len(self) or self._set.column(PAGES)[2] != CODE:
            raise self._set.damaged()
        self.unscored = self._checked()
        """Pages without a score."""

    def __len__(self) -> int:
        """Return the number of pages."""
        return len(self._set)

    def find(self, key: str) -> int | None:
        """Return the number of a page by its document key; None if the file does not have it. Raises InputError."""
        return self._records.find(key_fingerprint(key))

    def score(self, number: int) -> float | None:
        """Return the influence score of a page, None if it is not known. Raises InputError."""
        _, bits = self._records.values(number)
        if bits == NO_SCORE:
            return None
        score: float = struct.unpack("<d", struct.pack("<Q", bits))[0]
        if not math.isfinite(score):
            raise self._set.damaged(f"the score of page {number:,} is {score}")
        return score

    def size(self, number: int) -> int:
        """Return the bytes of a page's record, unpacked, as its end says (RFC 1952, 2.3.1). Raises InputError."""
        _, end = self._place(number)
        return int.from_bytes(self._records.read(end - _LENGTH, end), "little")

    def page(self, number: int, key: str) -> PageRecord:
        """Return a page with its links. It has none if the record is of another key, whose fingerprint is the same. The
        key of a link is None if the file does not tell it. Raises InputError for a damaged record."""
        record = self._records.read(*self._place(number))
        try:
            values = from_json(inflate(record, "gzip", _LARGEST))
        except (InflateError, ValueError) as error:
            raise self._set.damaged(f"the record of page {number:,} cannot be read ({error})") from None
        if not fits([values], ({str}, {str}, {int}, [_LINK])):
            raise self._set.damaged(f"the record of page {number:,} is no page with links")
        named, url, follows, told = values
        if named != key:
            return PageRecord(key, key, outlinks=[])
        links = [(*link, *_EMPTY[len(link) :]) for link in told[:MOST_LINKS]]
        if not all(map(_is_link, links)):
            raise self._set.damaged(f"a link of page {number:,} is no link")
        outlinks = [
            Link(target, its_key or None, anchor, bool(boilerplate), rel, language)
            for target, anchor, rel, boilerplate, language, its_key in links
        ]
        return PageRecord(key, url or key, outlinks=outlinks, follows=bool(follows))

    def _place(self, number: int) -> tuple[int, int]:
        """Return where a page's record begins and ends among the records."""
        start, end = self._records.span(number)
        if not _LENGTH <= end - start <= _MOST_STORED:
            raise self._set.damaged(f"the record of page {number:,} has {end - start:,} bytes")
        return start, end

    def _checked(self) -> int:
        """Check the table; return the number of pages without a score. Raises InputError."""
        import numpy as np  # only for crawls with such a file

        starts = np.concatenate([*map(np.asarray, self._set.pieces(starts_of(PAGES)))])
        counts, first_bits = np.zeros(len(starts) - 1, np.uint64), np.uint64(64 - start_bits(len(self)))
        last, unscored = np.zeros((0, len(CODE)), np.uint64), 0
        for piece in self._set.pieces(PAGES):
            entries = np.asarray(piece).reshape(-1, len(CODE))
            fingerprints, places, _ = np.concatenate((last, entries)).T
            if (fingerprints[1:] <= fingerprints[:-1]).any():
                raise self._set.damaged("its pages are not sorted")
            if (places[1:] < places[:-1]).any() or places[-1] > self._set.column(records_of(PAGES))[1]:
                raise self._set.damaged("the places of its records do not ascend")
            known = entries[:, 2] != np.uint64(NO_SCORE)
            if not np.isfinite(np.ascontiguousarray(entries[:, 2]).view("<f8")[known]).all():
                raise self._set.damaged("a score is not a finite number")
            last, unscored = entries[-1:], unscored + len(known) - int(known.sum())
            firsts = (entries[:, 0] >> first_bits).astype(np.int64)
            found = np.bincount(firsts - firsts[0])
            counts[firsts[0] : firsts[0] + len(found)] += found.astype(np.uint64)
        if starts[0] or (np.cumsum(counts) != starts[1:]).any():
            raise self._set.damaged("its pages are not sorted")
        return unscored


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
