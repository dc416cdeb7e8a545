"""The file of known links, sorted on disk in bounded memory.

Records are appended to one of 256 files by the first bits of their keys' fingerprints. Only the places of the records
are sorted in memory, 32 bytes a page for one of these files at a time. The records are then copied in order. On disk
they are there twice meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from crawl4llm.base.bars import Progress
from crawl4llm.base.files import PreadFile, sync_path
from crawl4llm.base.known_sets import LINKS, SetWriter
from crawl4llm.base.whole_files import writing
from crawl4llm.parts import PAGES, PLACES, RECORDS, SCORES, key_fingerprint, score_bits
from crawl4llm.tools._known_files import AT_ONCE, Records, Spread, read_records

SCORE: Final = np.dtype([("digest", "<u8"), ("score", "<f8")])
_PLACE: Final = np.dtype([("digest", "<u8"), ("date", "<u8"), ("offset", "<u8"), ("size", "<u4"), ("file", "<u4")])
_CHOSEN: Final = np.dtype([("digest", "<u8"), ("score", "<u8"), ("offset", "<u8"), ("size", "<u4"), ("file", "<u4")])
_BITS: Final = 8
_WHAT: Final = "known links"


class LinkedPage(NamedTuple):
    """A page with its links."""

    key: str
    date: int
    """Its date as a number of 14 digits, 0 if it is unknown; of several pages with a key the latest counts."""
    record: bytes


class LinkSpread:
    """Pages with links, and scores of pages, spread over the files of a folder. Processes may add to it at once."""

    def __init__(self, folder: Path, *, show: bool = False) -> None:
        """``show``: whether progress is shown as a bar."""
        self._folder, self._show = folder, show
        with writing(folder, _WHAT):
            folder.mkdir(exist_ok=True)
        self._scores = Spread(folder / "scores", SCORE)

    def add(self, pages: Sequence[LinkedPage]) -> None:
        """Write pages. Raises InputError if that fails (disk full)."""
        of_parts: dict[int, list[tuple[int, LinkedPage]]] = {}
        for page in pages:
            digest = key_fingerprint(page.key)
            of_parts.setdefault(digest >> (64 - _BITS), []).append((digest, page))
        with writing(self._folder, _WHAT):
            for part, some in of_parts.items():
                path = self._folder / f"{part}.{os.getpid()}.records"
                with path.open("ab") as file, path.with_suffix(".places").open("ab") as beside:
                    ends = np.cumsum([file.tell(), *(len(page.record) for _, page in some)])
                    rows = [
                        (digest, page.date, int(start), len(page.record), 0)
                        for (digest, page), start in zip(some, ends, strict=False)
                    ]
                    file.write(b"".join(page.record for _, page in some))
                    beside.write(np.array(rows, _PLACE).tobytes())

    def add_scores(self, scores: Iterable[tuple[str, float]]) -> None:
        """Write influence scores by document key; of several the highest counts. Raises InputError."""
        found = np.array([(key_fingerprint(key), score) for key, score in scores], SCORE)
        for start in range(0, len(found), AT_ONCE):
            self._scores.add(found[start : start + AT_ONCE])

    def parts(self) -> Iterator[tuple[Records, list[Path]]]:
        """Yield, part by part, the chosen pages in the order of fingerprints, and the files of their records."""
        for part in Progress(range(1 << _BITS), "sorting links", unit=" parts", bar=self._show):
            with writing(self._folder, _WHAT):
                paths = sorted(self._folder.glob(f"{part}.*.records"))
                read = [np.fromfile(path.with_suffix(".places"), _PLACE) for path in paths]
                for number, places in enumerate(read):
                    places["file"] = number
            scores = self._scores.part(part)
            if read:
                yield _chosen(np.concatenate(read), scores, paths), paths


def _chosen(places: Records, scores: Records | None, paths: Sequence[Path]) -> Records:
    """Return the latest page of each fingerprint, with its score. Of several of one date the one with the greatest
    record counts, so that the order of the sources does not matter."""
    files = [PreadFile(path) for path in paths]
    places = places[np.lexsort((places["date"], places["digest"]))]
    last = np.flatnonzero(np.append(places["digest"][1:] != places["digest"][:-1], True))
    best = last.copy()
    before = np.maximum(last - 1, 0)
    alike = (places["digest"][before] == places["digest"][last]) & (places["date"][before] == places["date"][last])
    for number in np.flatnonzero(alike & (before < last)):
        end = place = int(last[number])
        while place >= 0 and all(places[name][place] == places[name][end] for name in ("digest", "date")):
            if _record(files, places[place]) > _record(files, places[best[number]]):
                best[number] = place
            place -= 1
    found = np.zeros(len(best), _CHOSEN)
    for name in ("digest", "offset", "size", "file"):
        found[name] = places[name][best]
    found["score"] = score_bits(None)
    if scores is not None:
        scores = scores[np.lexsort((scores["score"], scores["digest"]))]
        at = np.searchsorted(scores["digest"], found["digest"], side="right") - 1
        is_known = (at >= 0) & (scores["digest"][np.maximum(at, 0)] == found["digest"])
        found["score"][is_known] = np.ascontiguousarray(scores["score"][at[is_known]]).view("<u8")
    return found


def _record(files: Sequence[PreadFile], place: Records) -> bytes:
    return files[int(place["file"])].read(int(place["size"]), int(place["offset"]))


def write_links(spread: LinkSpread, scheme: str, scratch: Path, to: Path) -> int:
    """Write the file of known links; return how many pages it has. Raises InputError. ``scheme``: of its keys."""
    sorted_ones, count, of_parts = scratch / "sorted", 0, list[tuple[int, list[Path]]]()
    with writing(to, _WHAT):
        with sorted_ones.open("xb") as file:
            for chosen, paths in spread.parts():
                file.write(chosen.tobytes())
                of_parts.append((len(chosen), paths))
                count += len(chosen)
        with to.open("xb") as file:
            writer = SetWriter(file)
            writer.numbered(PAGES, count, (some["digest"] for some in read_records(sorted_ones, _CHOSEN)))
            writer.column(SCORES, "Q", (some["score"] for some in read_records(sorted_ones, _CHOSEN)))
            writer.column(PLACES, "Q", _ends(sorted_ones))
            writer.data(RECORDS, "B", _copied(sorted_ones, of_parts))
            writer.finish(LINKS, scheme, count)
        sync_path(to)
        sorted_ones.unlink()
    return count


def _ends(path: Path) -> Iterator[Records]:
    """Yield where records begin, and where the last one ends."""
    end = np.zeros(1, np.uint64)
    yield end
    for some in read_records(path, _CHOSEN):
        ends = np.cumsum(some["size"], dtype=np.uint64) + end
        yield ends
        end = ends[-1:]


def _copied(path: Path, of_parts: Sequence[tuple[int, list[Path]]]) -> Iterator[bytes]:
    """Yield the records in order; the files of each part are removed after it."""
    with path.open("rb") as file:
        for count, paths in of_parts:
            files = [PreadFile(one) for one in paths]
            for place in np.fromfile(file, _CHOSEN, count):
                yield _record(files, place)
            for one in paths:
                one.unlink()
