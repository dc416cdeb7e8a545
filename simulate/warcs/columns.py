"""Writes the columns of an index from its parts, with a byte of memory for each document."""

from __future__ import annotations

import os
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, compress, groupby, islice
from operator import eq, itemgetter, not_
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from simulate.warcs.index import FINAL_COLUMNS, Columns
from simulate.warcs.part import DOCUMENT_COLUMNS, FAILED, HTML, LINK_COLUMNS, REVISITED, TEXT, TEXT_COLUMNS, StoredPart
from simulate.warcs.scan import REVISIT, REVISIT_BY_DIGEST

_COPIED: Final = (*DOCUMENT_COLUMNS, "keys", "aliases", "targets")
_IN_SOME_PARTS: Final = (*TEXT_COLUMNS, *LINK_COLUMNS)
_ENDS: Final = {"key_ends": "key_lengths", "alias_ends": "alias_lengths", "target_ends": "target_lengths"}
"""Columns of ends, and the parts' columns of lengths that they are made of."""


class Merged(NamedTuple):
    """What the columns hold."""

    documents: int
    duplicates: int
    """Documents left out because another one has their key."""
    texts: int
    """Documents whose text is held besides."""
    counts: Counter[str]
    """Records by what they are, or why they are left out."""


def write_columns(folder: Path, parts: Callable[[], Iterator[StoredPart]], *, keep_last: bool) -> Merged:
    """Write the columns over all parts, which are gone through twice.

    Of documents with one key the first is held, or the last where ``keep_last``; but one with HTML in any case, and a
    text rather than none. The text of a page that is held as HTML can be found by the page.
    """
    items: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for part in parts():
        items.update(part.items)
        counts.update(part.counts)
    writer = _Writer(folder, items, by_digest=bool(counts[REVISIT_BY_DIGEST] or counts[REVISIT]))
    for part in parts():
        writer.add(part)
    chosen = writer.finish(keep_last=keep_last)
    return Merged(items["offsets"] - sum(chosen.dropped), chosen.count - chosen.texts, chosen.texts, counts)


class _Writer:
    def __init__(self, folder: Path, items: Counter[str], *, by_digest: bool) -> None:
        self._folder = folder
        self._items = items
        self._by_digest = by_digest
        self._files = {name: (folder / name).open("wb") for name in FINAL_COLUMNS}
        self._forms = TableWriter(folder / "forms", items["forms"])
        self._names = TableWriter(folder / "names", items["names"] + by_digest * items["digests"])
        self._alias_forms = TableWriter(folder / "alias_forms", items["alias_forms"])
        self._ends = dict.fromkeys(_ENDS, 0)
        self._documents = self._aliases = 0

    def add(self, part: StoredPart) -> None:
        """Add a part's documents and aliases after those of the parts before."""
        documents = part.items["offsets"]
        for name in _COPIED:
            part.column(name).tofile(self._files[name])
        for name in _IN_SOME_PARTS:
            if self._items[name]:
                column = part.column(name) or array("Q", bytes(8 * documents))
                column.tofile(self._files[name])
        for name, lengths in _ENDS.items():
            ends = array("Q", accumulate(part.column(lengths), initial=self._ends[name]))
            self._ends[name] = ends[-1]
            ends[1:].tofile(self._files[name])
        array("Q", [self._documents]).tofile(self._files["file_starts"])
        self._add_to_tables(part, range(self._documents, self._documents + documents))
        self._documents += documents

    def _add_to_tables(self, part: StoredPart, numbers: range) -> None:
        self._forms.add(part.column("forms"), numbers)
        self._names.add(part.column("names"), [numbers[row] for row in part.column("named")])
        if self._by_digest:
            digests = part.column("digests")
            self._names.add(array("Q", filter(None, digests)), list(compress(numbers, digests)))
        aliases = part.column("alias_forms")
        self._alias_forms.add(aliases, range(self._aliases, self._aliases + len(aliases)))
        self._aliases += len(aliases)

    def finish(self, *, keep_last: bool) -> _Duplicates:
        """Write the tables, and what is known only at the end; returns which documents were chosen."""
        array("Q", [self._documents]).tofile(self._files["file_starts"])
        for name in (*_COPIED, "key_ends"):
            self._files[name].flush()
        duplicates = _Duplicates(Columns(self._folder), self._documents, keep_last)
        self._forms.write(self._files["forms"], self._files["form_documents"], duplicates.choose)
        self._names.write(self._files["names"], self._files["name_documents"])
        self._alias_forms.write(self._files["alias_forms"], self._files["alias_numbers"])
        duplicates.drop_failed()
        if any(duplicates.dropped):
            held = compress(range(self._documents), map(not_, duplicates.dropped))
            array("I", held).tofile(self._files["held"])
        duplicates.text_numbers.tofile(self._files["texts"])
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
            file.close()
        return duplicates


class _Duplicates:
    """Finds documents with one key, and chooses which one stays."""

    def __init__(self, columns: Columns, documents: int, keep_last: bool) -> None:
        self._columns = columns
        self._keep_last = keep_last
        self.dropped = bytearray(documents)
        self.count = 0
        self.texts = 0
        self.text_numbers = array("I")

    def choose(self, group: Sequence[int]) -> Iterable[int]:
        """Of documents that share the hash of a lookup form, those that are held."""
        same_key: dict[str, list[int]] = {}
        for number in group:
            same_key.setdefault(self._columns.text("keys", "key_ends", number), []).append(number)
        staying = {self._held(numbers) for numbers in same_key.values()}
        for number in group:
            self.dropped[number] = number not in staying
        self.count += len(group) - len(staying)
        return sorted(staying)

    def _held(self, numbers: Sequence[int]) -> int:
        kinds = self._columns["kinds"]
        place = -1 if self._keep_last else 0
        for wanted in ({HTML, REVISITED}, {TEXT}):
            if candidates := [number for number in numbers if kinds[number] in wanted]:
                if TEXT not in wanted and (texts := [number for number in numbers if kinds[number] == TEXT]):
                    self._note_text(candidates[place], texts[place])
                return candidates[place]
        return numbers[place]

    def _note_text(self, number: int, text: int) -> None:
        if not self.text_numbers:
            self.text_numbers = array("I", bytes(4 * len(self.dropped)))
        self.text_numbers[number] = text + 1
        self.texts += 1

    def drop_failed(self) -> None:
        """Leave documents without a page out of those that are held; they are found all the same."""
        kinds = self._columns["kinds"].tobytes()
        number = kinds.find(FAILED)
        while number >= 0:
            self.dropped[number] = True
            number = kinds.find(FAILED, number + 1)


SORTED_AT_ONCE: Final = 1 << 19
"""Entries, about, that are sorted in memory, where they take some 150 bytes each."""
_HASH_BITS: Final = 64

Choose = Callable[[Sequence[int]], Iterable[int]]
"""Of several numbers under one hash, given in ascending order: those that stay, in that order."""


class TableWriter:
    """Writes one table of ``expected`` entries. Files whose names begin with ``scratch`` take what is not in memory."""

    def __init__(self, scratch: Path, expected: int, sorted_at_once: int = SORTED_AT_ONCE) -> None:
        bits = (expected // sorted_at_once).bit_length()
        self._shift = _HASH_BITS - bits
        self._buckets = [_Bucket(scratch.with_name(f"{scratch.name}-{number}")) for number in range(1 << bits)]
        self._buffered_at_once = sorted_at_once
        self._buffered = 0

    def add(self, hashes: array[int], numbers: Sequence[int]) -> None:
        """Add entries; over all calls, numbers must ascend."""
        if len(self._buckets) == 1:
            self._buckets[0].hashes.extend(hashes)
            self._buckets[0].numbers.extend(numbers)
            return
        for hashed, number in zip(hashes, numbers, strict=True):
            bucket = self._buckets[hashed >> self._shift]
            bucket.hashes.append(hashed)
            bucket.numbers.append(number)
        self._buffered += len(hashes)
        if self._buffered >= self._buffered_at_once:
            for bucket in self._buckets:
                bucket.spill()
            self._buffered = 0

    def write(self, hashes: BinaryIO, numbers: BinaryIO, choose: Choose | None = None) -> None:
        """Write the columns; ``choose`` is asked wherever numbers share a hash."""
        for bucket in self._buckets:
            for column, file in zip(bucket.take(choose), (hashes, numbers), strict=True):
                column.tofile(file)


class _Bucket:
    """Entries, in memory and in files."""

    def __init__(self, path: Path) -> None:
        self._spilt = 0
        self._hash_file, self._number_file = (path.with_suffix(suffix) for suffix in (".hashes.tmp", ".numbers.tmp"))
        self.hashes, self.numbers = array("Q"), array("I")

    def spill(self) -> None:
        """Move the entries from memory to the files."""
        self._spilt += len(self.hashes)
        for column, path in ((self.hashes, self._hash_file), (self.numbers, self._number_file)):
            with path.open("ab") as file:
                column.tofile(file)
            del column[:]

    def take(self, choose: Choose | None) -> tuple[array[int], array[int]]:
        """All entries, sorted; they leave the bucket."""
        if self._spilt:
            self.spill()
            for column, path in ((self.hashes, self._hash_file), (self.numbers, self._number_file)):
                with path.open("rb") as file:
                    column.fromfile(file, self._spilt)
                path.unlink()
        order = sorted(range(len(self.hashes)), key=self.hashes.__getitem__)
        hashes = array("Q", map(self.hashes.__getitem__, order))
        numbers = array("I", map(self.numbers.__getitem__, order))
        self.hashes, self.numbers = array("Q"), array("I")
        if choose is None or not any(map(eq, hashes, islice(hashes, 1, None))):
            return hashes, numbers
        return _chosen(hashes, numbers, choose)


def _chosen(hashes: array[int], numbers: array[int], choose: Choose) -> tuple[array[int], array[int]]:
    chosen = array("Q"), array("I")
    for hashed, entries in groupby(zip(hashes, numbers, strict=True), key=itemgetter(0)):
        group = [number for _, number in entries]
        staying = list(choose(group)) if len(group) > 1 else group
        chosen[0].extend([hashed] * len(staying))
        chosen[1].extend(staying)
    return chosen
