"""The union of an index's parts: columns and sorted tables, made with a byte of memory for each document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from crawl4llm.base.input_files import from_json, to_json
from crawl4llm.base.sorted_file import SortedFile
from crawl4llm.base.sorted_writer import SortedWriter, WrittenRows
from crawl4llm.base.spread import Contents, Rows, SpreadRecords, records_in, spread_bits
from crawl4llm.optouts import Heard, as_text
from simulate.indexes import PartJob, TableWriter
from simulate.warcs.files import is_failures
from simulate.warcs.index import BESIDE, HTML, REVISITED, TEXT
from simulate.warcs.scan import date_of

_AT_ONCE: Final = 1 << 20


class Union:
    """The documents, aliases and names of all parts.

    Of documents with one key the first is held; but one with HTML in any case, and a text rather than none. The text of
    a page that is held as HTML can be found by the page. Documents without a page are not held; look-ups find them.
    """

    def __init__(self, scratch: Path, jobs: Sequence[PartJob[Any]], *, by_digest: bool) -> None:
        """Take the parts. ``by_digest``: whether documents can be found by their payload digests."""
        self._scratch = scratch
        sizes = [[job.stored().column(name)[1] for name in ("forms", "names", "alias_forms")] for job in jobs]
        documents, names, aliases = map(list, zip(*sizes, strict=True)) if sizes else ([], [], [])
        self._starts: list[int] = [*accumulate(documents, initial=0)]
        self.documents = self._starts[-1]
        self._dropped = bytearray(self.documents)
        self.duplicates = self.texts = 0
        """Documents left out because another one has their key; documents whose text is held besides."""
        self._texts: dict[int, int] = {}
        """The texts of documents, of the part that is being written."""
        of_names = sum(names) + by_digest * self.documents
        self._rows = SpreadRecords(scratch / "documents", spread_bits(self.documents), what="the index")
        self._aliases = SpreadRecords(scratch / "aliases", spread_bits(sum(aliases)), what="the index")
        self._names = TableWriter(scratch / "names", of_names)
        first_aliases = accumulate(aliases, initial=0)
        for job, (first, end), first_alias in zip(jobs, pairwise(self._starts), first_aliases, strict=False):
            part = job.stored()
            if is_failures(job.name):
                self._dropped[first:end] = bytes([1]) * (end - first)
            self._rows.add(_rows(part, first, "forms", "sizes", "records", BESIDE))
            self._aliases.add(_rows(part, first_alias, "alias_forms", "alias_sizes", "aliases"))
            self._add_names(part, first, by_digest=by_digest)

    def _add_names(self, part: SortedFile, first: int, *, by_digest: bool) -> None:
        self._names.add(part.numbers("names"), part.numbers("named"), first)
        if by_digest:
            digests = np.asarray(part.numbers("digests"))
            self._names.add(digests[digests > 0], np.flatnonzero(digests), first)

    @property
    def held(self) -> int:
        """The number of documents that are pages and no duplicates, once they are written."""
        return self.documents - sum(self._dropped)

    def write(self, writer: SortedWriter, heard: Heard) -> None:
        """Write the columns, once."""
        self._places = np.memmap(self._scratch / "places", "<u4", "w+", shape=max(self.documents, 1))
        writer.records("documents", self._in_order(heard), self._scratch / "entries")
        writer.records("aliases", self._all_aliases(), self._scratch / "entries")
        self._names.write(writer, "names")
        starts = range(0, self.documents, _AT_ONCE)
        writer.column("places", "I", (self._places[start : start + _AT_ONCE].tobytes() for start in starts))
        writer.column("held", "I", map(self._held_from, starts if any(self._dropped) else ()))

    def _all_aliases(self) -> WrittenRows:
        for _, places, contents in self._aliases.parts():
            yield from ((entry, record, ()) for entry, _, record in records_in(places, contents))

    def _held_from(self, start: int) -> bytes:
        held = np.flatnonzero(np.frombuffer(self._dropped, np.uint8)[start : start + _AT_ONCE] == 0) + start
        return held.astype("<u4").tobytes()

    def _in_order(self, heard: Heard) -> WrittenRows:
        """Yield the records of all documents by their hashes; of one hash those held first, in corpus order."""
        end, any_heard = 0, heard or None
        for _, found, contents in self._rows.parts():
            places = self._arranged(found, contents)
            self._places[places["rank"]] = np.arange(end, end + len(places))
            end += len(places)
            files = np.searchsorted(self._starts, places["rank"], "right") - 1
            for file, (entry, number, record) in zip(files.tolist(), records_in(places, contents), strict=True):
                yield entry, self._completed(file, number, record, any_heard), ()
            self._texts.clear()

    def _completed(self, file: int, number: int, record: bytes, heard: Heard | None) -> bytes:
        """Return the record of a document, with what only all parts together tell."""
        signals = b'""'
        if heard is not None and not self._dropped[number]:
            key, _, date, *_ = from_json(record)
            signals = to_json(as_text(heard.said(key, key, date_of(date))))
        return b"[%d,%d,%b,%b" % (file, self._texts.get(number, 0), signals, record[1:])

    def _arranged(self, places: Rows, contents: Contents) -> Rows:
        """Return places in another order: of documents with one hash, those that are not held come last."""
        hashes = places["hash"]
        starts = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1]))
        ends = np.append(starts[1:], len(places))
        for start, end in zip(starts[ends - starts > 1].tolist(), ends[ends - starts > 1].tolist(), strict=True):
            group = places[start:end]
            same_key: dict[str, list[tuple[int, int]]] = {}
            for _, number, record in records_in(group, contents):
                key, kind, *_ = from_json(record)
                same_key.setdefault(key, []).append((number, kind))
            held = {self._chosen(documents) for documents in same_key.values()}
            is_held = np.array([number in held for number in group["rank"].tolist()])
            for number in group["rank"][~is_held].tolist():
                self._dropped[number] = True
            self.duplicates += len(group) - len(held)
            places[start:end] = np.concatenate((group[is_held], group[~is_held]))
        return places

    def _chosen(self, documents: Sequence[tuple[int, int]]) -> int:
        """Return the one that is held of documents with one key, given with their kinds; note its text."""
        for wanted in ({HTML, REVISITED}, {TEXT}):
            if found := [number for number, kind in documents if kind in wanted]:
                texts = [number for number, kind in documents if kind == TEXT]
                if TEXT not in wanted and texts:
                    self._texts[found[0]] = texts[0] + 1
                    self.texts += 1
                    self.duplicates -= 1
                return found[0]
        return documents[0][0]


def _rows(
    part: SortedFile, first: int, hashes: str, sizes: str, records: str, beside: Sequence[str] = ()
) -> Iterator[tuple[int, int, bytes]]:
    """Yield hash, number and JSON of the records of a part, and numbers ``beside`` them if there are any."""
    content, entries = bytes(part.numbers(records)), part.numbers(hashes)
    ends = pairwise(accumulate(part.numbers(sizes), initial=0))
    numbers_beside = [part.numbers(name) for name in beside]
    numbers_of_all = range(first, first + len(entries))
    rows = zip(entries, numbers_of_all, (content[start:end] for start, end in ends), strict=True)
    if not any(numbers_beside):
        yield from rows
        return
    for one, number, record in rows:
        places = [numbers[number - first] if numbers else 0 for numbers in numbers_beside]
        yield one, number, record[:-1] + b"," + to_json(places)[1:]
