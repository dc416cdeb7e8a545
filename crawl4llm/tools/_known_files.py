"""The files of known URLs, texts and links, sorted on disk in bounded memory (:mod:`crawl4llm.base.spread`).

At 10^9 entries a part in memory takes 0.1 GB for URLs, and 1 GB for texts. On disk the spread rows take 8 bytes per
URL, and 88 bytes per text (268 while its bands are sorted). Records of links are there twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from struct import Struct
from typing import Any, Final, NamedTuple

import numpy as np

from crawl4llm import parts
from crawl4llm.base.errors import InputError
from crawl4llm.base.files import sync_path
from crawl4llm.base.sorted_file import known
from crawl4llm.base.sorted_writer import SortedWriter, WrittenRows
from crawl4llm.base.spread import Rows, Spread, SpreadRecords, hashes_of, records_in, spread_bits
from crawl4llm.base.whole_files import writing
from crawl4llm.scoring import BANDS

URL: Final = np.dtype("<u8")
TEXT: Final = np.dtype([("hash", "<u8"), ("bits", "<u8", 2), ("bands", "<u4", BANDS)])
"""A RECORD, as numpy reads it."""
SCORE: Final = np.dtype([("hash", "<u8"), ("score", "<f8")])
_BAND: Final = np.dtype([("hash", "<u8"), ("number", "<u4")])
AT_ONCE: Final = 1 << 18
"""Rows that are handed on at once."""
_WHAT: Final = "known sets"
_PACKED: Final = Struct("<IQQ")
"""Three numbers of a page with its links: bytes of its key, date, bytes of its record."""

assert TEXT.itemsize == parts.RECORD.size


# -- URLs and texts ---------------------------------------------------------------------------------------------------


def write_urls(spread: Spread, scratch: Path, to: Path) -> int:
    """Write the file of known URLs; return how many there are. Raises InputError."""
    return _write(spread, URL, (parts.URLS, parts.URLS, parts.URL_SCHEME), scratch, to)


def write_texts(spread: Spread, scratch: Path, to: Path, *, near: bool) -> int:
    """Write the file of known texts; return how many there are. Raises InputError."""
    return _write(spread, TEXT, (parts.TEXTS, parts.DIGESTS, parts.TEXT_SCHEME), scratch, to, near=near)


def _write(
    spread: Spread, of: np.dtype[Any], called: tuple[str, str, str], scratch: Path, to: Path, *, near: bool = False
) -> int:
    """Write a file of rows ``of`` a type. ``called``: its kind, its table of hashes, and their scheme. ``near``: write
    the bits and the bands of the rows too."""
    kind, name, scheme = called
    path = scratch / "sorted"
    with writing(to, _WHAT):
        count = _sort(spread, path)
        with to.open("xb") as file:
            writer = SortedWriter(file)
            writer.table(name, "I", count, ([hashes_of(rows)] for rows in read_rows(path, of)))
            if near:
                writer.column(parts.BITS, "QQ", (rows["bits"].tobytes() for rows in read_rows(path, of)))
                for band, entries in enumerate(_spread_bands(path, scratch, count)):
                    ordered = (np.sort(rows, order=["hash", "number"]) for rows in entries.parts())
                    writer.table(
                        parts.band_name(band), "II", count, ([rows["hash"], rows["number"]] for rows in ordered)
                    )
            writer.finish(known(kind), scheme, count)
        sync_path(to)
        path.unlink()
    return count


def _sort(spread: Spread, to: Path) -> int:
    """Write rows to one file, in the order of their hashes, each hash once; return how many there are."""
    count = 0
    with to.open("xb") as file:
        for rows in spread.parts():
            _, first = np.unique(hashes_of(rows), return_index=True)
            file.write(rows[first].tobytes())
            count += len(first)
    return count


def _spread_bands(path: Path, scratch: Path, count: int) -> list[Spread]:
    """Return for each band the checksums with the numbers of their texts."""
    bands = [Spread(scratch / f"band{band}", _BAND, spread_bits(count)) for band in range(BANDS)]
    start = 0
    for rows in read_rows(path, TEXT):
        entries = np.empty(len(rows), _BAND)
        entries["number"] = np.arange(start, start + len(rows), dtype=np.uint32)
        start += len(rows)
        for band, spread in enumerate(bands):
            entries["hash"] = rows["bands"][:, band].astype(np.uint64) << np.uint64(32)
            spread.add(entries)
    return bands


def read_rows(path: Path, kind: np.dtype[Any]) -> Iterator[Rows]:
    """Yield the rows of a file, AT_ONCE at a time."""
    with path.open("rb") as file:
        while len(rows := np.fromfile(file, kind, AT_ONCE)):
            yield rows


# -- links ------------------------------------------------------------------------------------------------------------


class LinkedPage(NamedTuple):
    """A page with its links."""

    key: str
    date: int
    """Its date as a number of 14 digits, 0 if it is unknown; of several pages with a key the latest counts."""
    record: bytes

    def packed(self) -> bytes:
        """Return it as :func:`packed_pages` reads it."""
        key = self.key.encode("utf-8", "surrogatepass")
        return _PACKED.pack(len(key), self.date, len(self.record)) + key + self.record


def packed_pages(path: Path) -> Iterator[LinkedPage]:
    """Yield the pages that a file has one after the other. Raises InputError if it is damaged."""
    damaged = InputError(f"{path} is damaged; remove {path.parents[1]}, and run the command again")
    most = path.stat().st_size
    with path.open("rb") as file:
        while numbers := file.read(_PACKED.size):
            if len(numbers) < _PACKED.size:
                raise damaged
            length, date, size = _PACKED.unpack(numbers)
            if length + size > most:
                raise damaged
            try:
                key = file.read(length).decode("utf-8", "surrogatepass")
            except UnicodeDecodeError:
                raise damaged from None
            yield LinkedPage(key, date, file.read(size))


class LinkSpread:
    """Pages with links, and scores of pages, spread over the files of a folder. Processes may add to it at once."""

    def __init__(self, folder: Path, *, show: bool = False) -> None:
        """``show``: whether progress is shown as a bar."""
        self._pages = SpreadRecords(folder, show=show)
        self._scores = Spread(folder / "scores", SCORE)

    def add(self, pages: Sequence[LinkedPage]) -> None:
        """Write pages. Raises InputError if that fails (disk full)."""
        self._pages.add((parts.key_fingerprint(page.key), page.date, page.record) for page in pages)

    def add_scores(self, scores: Iterable[tuple[str, float]]) -> None:
        """Write influence scores by document key; of several the highest counts. Raises InputError."""
        found = np.array([(parts.key_fingerprint(key), score) for key, score in scores], SCORE)
        self._scores.add(found)

    def chosen(self) -> WrittenRows:
        """Yield fingerprint, record and score of the latest page of each fingerprint, in their order. Of several of one
        date the one with the greatest record counts, so that the order of the sources does not matter."""
        for part, places, contents in self._pages.parts():
            first = np.flatnonzero(np.append(True, places["hash"][1:] != places["hash"][:-1]))
            scores = _score_bits(places["hash"][first], self._scores.part(part)).tolist()
            pages = groupby(records_in(places, contents), itemgetter(0))
            for (entry, of_one), bits in zip(pages, scores, strict=True):
                yield entry, max(of_one, key=itemgetter(1, 2))[2], (bits,)


def _score_bits(hashes: Rows, scores: Rows | None) -> Rows:
    """Return the bits of the scores of sorted fingerprints."""
    found = np.full(len(hashes), parts.score_bits(None), np.uint64)
    if scores is not None:
        scores = scores[np.lexsort((scores["score"], scores["hash"]))]
        at = np.searchsorted(scores["hash"], hashes, side="right") - 1
        is_known = (at >= 0) & (scores["hash"][np.maximum(at, 0)] == hashes)
        found[is_known] = np.ascontiguousarray(scores["score"][at[is_known]]).view("<u8")
    return found


def write_links(spread: LinkSpread, scheme: str, scratch: Path, to: Path) -> int:
    """Write the file of known links; return how many pages it has. Raises InputError. ``scheme``: of its keys."""
    with writing(to, "known links"):
        with to.open("xb") as file:
            writer = SortedWriter(file)
            count = writer.records(parts.PAGES, spread.chosen(), scratch / "entries", parts.CODE)
            writer.finish(parts.links_kind(), scheme, count)
        sync_path(to)
    return count
