"""The union of an index's parts: columns and sorted tables, made with a byte of memory for each document."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, compress
from operator import not_
from pathlib import Path
from typing import Any, Final

from crawl4llm.optouts import Heard, as_text
from simulate.indexes import Columns, StoredPart
from simulate.tables import TableWriter
from simulate.warcs.index import FINAL_COLUMNS
from simulate.warcs.opt_outs import date_of
from simulate.warcs.part import DOCUMENT_COLUMNS, FAILED, HTML, LINK_COLUMNS, REVISITED, TEXT, TEXT_COLUMNS
from simulate.warcs.scan import REVISIT, REVISIT_BY_DIGEST

_COPIED: Final = (*DOCUMENT_COLUMNS, "keys", "aliases", "targets")
_IN_SOME_PARTS: Final = (*TEXT_COLUMNS, *LINK_COLUMNS)
_ENDS: Final = {"key_ends": "key_lengths", "alias_ends": "alias_lengths", "target_ends": "target_lengths"}
"""Columns of ends, and the parts' columns of lengths that they are made of."""


def write_columns(folder: Path, parts: Callable[[], Iterator[StoredPart]], heard: Heard) -> dict[str, Any]:
    """Write the columns over all parts, which are gone through twice, and once more if opt-outs are known.

    Return counts for the manifest. ``duplicates`` are documents left out because another one has their key; ``counts``
    has records by kind, or by the reason why they are left out. Of ``opt_outs_unknown`` documents the files do not tell
    the opt-outs. ``texts`` counts documents whose text is held besides.

    Of documents with one key the first is held; but one with HTML in any case, and a text rather than none. The text of
    a page that is held as HTML can be found by the page.
    """
    items: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    unknown = 0
    for part in parts():
        items.update(part.items)
        counts.update(part.facts["counts"])
        unknown += part.facts["opt_outs_unknown"]
    writer = _Writer(folder, items, by_digest=bool(counts[REVISIT_BY_DIGEST] or counts[REVISIT]))
    for part in parts():
        writer.add(part)
    chosen = writer.finish(parts() if heard else (), heard)
    return {
        "documents": items["offsets"] - sum(chosen.dropped),
        "duplicates": chosen.count - chosen.texts,
        "counts": dict(sorted(counts.items())),
        "opt_outs_unknown": unknown,
        "texts": chosen.texts,
    }


class _Writer:
    def __init__(self, folder: Path, items: Counter[str], *, by_digest: bool) -> None:
        self._folder = folder
        self._items = items
        self._by_digest = by_digest
        self._files = {name: (folder / name).open("wb") for name in FINAL_COLUMNS}
        self._forms = TableWriter(folder, items["forms"])
        self._names = TableWriter(folder, items["names"] + by_digest * items["digests"])
        self._alias_forms = TableWriter(folder, items["alias_forms"])
        self._ends = dict.fromkeys(_ENDS, 0)
        self._documents = self._aliases = 0

    def add(self, part: StoredPart) -> None:
        """Add a part's documents and aliases after those of the parts before."""
        documents = part.items["offsets"]
        for name in _COPIED:
            part.column(name).tofile(self._files[name])
        for name in _IN_SOME_PARTS:
            if self._items[name]:
                (part.column(name) or array("Q", bytes(8 * documents))).tofile(self._files[name])
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

    def finish(self, parts: Iterable[StoredPart], heard: Heard) -> _Duplicates:
        """Write the tables and the columns known only at the end; returns the choice of documents."""
        array("Q", [self._documents]).tofile(self._files["file_starts"])
        for name in (*_COPIED, "key_ends"):
            self._files[name].flush()
        duplicates = _Duplicates(Columns(self._folder, FINAL_COLUMNS), self._documents)
        self._forms.write(self._files["forms"], self._files["form_documents"], duplicates.choose)
        self._names.write(self._files["names"], self._files["name_documents"])
        self._alias_forms.write(self._files["alias_forms"], self._files["alias_numbers"])
        duplicates.drop_failed()
        if any(duplicates.dropped):
            held = compress(range(self._documents), map(not_, duplicates.dropped))
            array("I", held).tofile(self._files["held"])
        duplicates.text_numbers.tofile(self._files["texts"])
        self._write_signals(parts, heard, Columns(self._folder, FINAL_COLUMNS), duplicates.dropped)
        for file in self._files.values():
            file.close()
        return duplicates

    def _write_signals(
        self, parts: Iterable[StoredPart], heard: Heard, columns: Columns, dropped: Sequence[int]
    ) -> None:
        """Write the opt-out signals of each held document."""
        number = end = 0
        for part in parts:
            for date in part.column("dates"):
                if not dropped[number]:
                    key = columns.text("keys", "key_ends", number)
                    if text := as_text(heard.said(key, key, date_of(date))).encode():
                        end += len(text)
                        array("I", [number]).tofile(self._files["said"])
                        array("Q", [end]).tofile(self._files["said_ends"])
                        self._files["said_texts"].write(text)
                number += 1


class _Duplicates:
    """The choice of one document among those with one key."""

    def __init__(self, columns: Columns, documents: int) -> None:
        self._columns = columns
        self.dropped = bytearray(documents)
        self.count = 0
        self.texts = 0
        self.text_numbers = array("I")

    def choose(self, group: Sequence[int]) -> Iterable[int]:
        """Return the documents that are held, of some that share the hash of a lookup form."""
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
        for wanted in ({HTML, REVISITED}, {TEXT}):
            if candidates := [number for number in numbers if kinds[number] in wanted]:
                if TEXT not in wanted and (texts := [number for number in numbers if kinds[number] == TEXT]):
                    self._note_text(candidates[0], texts[0])
                return candidates[0]
        return numbers[0]

    def _note_text(self, number: int, text: int) -> None:
        if not self.text_numbers:
            self.text_numbers = array("I", bytes(4 * len(self.dropped)))
        self.text_numbers[number] = text + 1
        self.texts += 1

    def drop_failed(self) -> None:
        """Leave documents without a page out of those that are held; look-ups still find them."""
        kinds = self._columns["kinds"].tobytes()
        number = kinds.find(FAILED)
        while number >= 0:
            self.dropped[number] = True
            number = kinds.find(FAILED, number + 1)
