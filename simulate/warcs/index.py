"""The index of a collection of archive files, opened for look-ups: from a URL to the document at it.

:mod:`simulate.indexes` says what an index is. Documents are numbered in corpus order: files by name, records by offset.
Three tables of sorted hashes lead to documents by the lookup forms of their keys, to documents by other names (a
WARC-TREC-ID), and to aliases. :mod:`simulate.warcs.index_build` writes it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from crawl4llm.base.known_sets import fingerprint
from crawl4llm.base.urls import lookup_form
from simulate.indexes import MAKE, Code, open_columns, read_manifest
from simulate.warcs.part import DOCUMENT_COLUMNS, FORMAT, LINK_COLUMNS, TEXT_COLUMNS

FINAL_COLUMNS: Final[Mapping[str, Code]] = {
    **DOCUMENT_COLUMNS,
    **TEXT_COLUMNS,
    **LINK_COLUMNS,
    "keys": "B",
    "key_ends": "Q",
    "file_starts": "Q",  # the number of the first document of each file; at the end, all documents
    "held": "I",  # the documents that are pages and no duplicates; empty where all are
    "texts": "I",  # for each document the number, plus one, of the text that is held besides; empty where none are
    "forms": "Q",
    "form_documents": "I",
    "names": "Q",
    "name_documents": "I",
    "alias_forms": "Q",
    "alias_numbers": "I",
    "aliases": "B",
    "alias_ends": "Q",
    "targets": "B",
    "target_ends": "Q",
    "said": "I",  # the documents with signals of opt-outs, ascending
    "said_ends": "Q",
    "said_texts": "B",  # as crawl4llm.optouts.said.as_text has them
}
"""Columns by name, and the types of their items."""


class Place(NamedTuple):
    """The place of a record."""

    file: int
    """The number of the file, in the order of the manifest."""
    offset: int
    length: int
    """0 for a record that is not there."""


_DOCUMENTS: Final = ("forms", "form_documents", "keys", "key_ends")
"""Columns of a look-up by key: hashes, numbers, texts and their ends."""
_ALIASES: Final = ("alias_forms", "alias_numbers", "aliases", "alias_ends")


class WarcIndex:
    """An index, opened. Raises InputError if the folder holds none, or one of another format."""

    def __init__(self, folder: Path, make: str = MAKE) -> None:
        """``make``: the command that makes it, for errors."""
        self.folder = folder
        self.manifest = read_manifest(folder, FORMAT, make)
        self._columns = open_columns(folder, self.manifest, FINAL_COLUMNS, make)

    def __len__(self) -> int:
        documents: int = self.manifest["documents"]
        return documents

    def close(self) -> None:
        """Release the columns; a later look-up maps them again."""
        self._columns.close()

    def document(self, position: int) -> int:
        """Return the number of the document at a position in the order of those held."""
        held = self._columns["held"]
        return held[position] if len(held) else position

    def key(self, number: int) -> str:
        """Return the key of a document."""
        return self._columns.text("keys", "key_ends", number)

    def kind(self, number: int) -> int:
        """Return the kind of a document, one of :mod:`simulate.warcs.part`."""
        return self._columns["kinds"][number]

    def place(self, number: int) -> Place:
        """Return where a document's record lies."""
        return self._place(number, "offsets", "lengths")

    def text_place(self, number: int) -> Place:
        """Return where a document's text lies in the WET file of its file."""
        return self._place(number, *TEXT_COLUMNS)

    def links_place(self, number: int) -> Place:
        """Return where a document's links lie in the WAT file of its file."""
        return self._place(number, *LINK_COLUMNS)

    def text_of(self, number: int) -> int | None:
        """Return the document that is the text of another one, from a ``conversion`` record."""
        texts = self._columns["texts"]
        return texts[number] - 1 if len(texts) and texts[number] else None

    def signals(self, number: int) -> str:
        """Return the known signals about the uses of a document, without those in its HTML: one line, as
        :func:`crawl4llm.optouts.said.as_text` has it."""
        said = self._columns["said"]
        at = bisect_left(said, number)
        return self._columns.text("said_texts", "said_ends", at) if at < len(said) and said[at] == number else ""

    def alias(self, key: str) -> str | None:
        """Return the key to which a URL of just this key leads."""
        alias, _ = self._choose(_ALIASES, key, lookup_form(key))
        return None if alias is None else self._target(alias)

    def find(self, key: str) -> int | None:
        """Return the document with a key."""
        return self._choose(_DOCUMENTS, key, lookup_form(key))[0]

    def look_up(self, key: str) -> int | str | None:
        """Return the document at a URL, given as a key; or the key or payload digest to which an alias leads.

        Records of the URL itself come before those of one that is spelt otherwise.
        """
        form = lookup_form(key)
        document, forgiven = self._choose(_DOCUMENTS, key, form)
        if document is not None:
            return document
        alias, forgiven_alias = self._choose(_ALIASES, key, form)
        if alias is None and forgiven is not None:
            return forgiven
        alias = forgiven_alias if alias is None else alias
        return None if alias is None else self._target(alias)

    def named(self, name: int) -> Iterator[int]:
        """Yield documents that may have a name, given by its hash or end."""
        return self._columns.found("names", "name_documents", name)

    def _choose(self, table: tuple[str, str, str, str], key: str, form: str) -> tuple[int | None, int | None]:
        """Return the first number under the exact spelling of a key, and under one that is forgiven."""
        hashes, numbers, texts, ends = table
        first = None
        for number in self._columns.found(hashes, numbers, fingerprint(form.encode())) if self._columns[hashes] else ():
            text = self._columns.text(texts, ends, number)
            if text == key:
                return number, number
            if first is None and lookup_form(text) == form:  # two forms may share a hash
                first = number
        return None, first

    def _target(self, alias: int) -> str:
        return self._columns.text("targets", "target_ends", alias)

    def _place(self, number: int, offsets: str, lengths: str) -> Place:
        file = bisect_right(self._columns["file_starts"], number) - 1
        if not len(self._columns[offsets]):
            return Place(file, 0, 0)
        return Place(file, self._columns[offsets][number], self._columns[lengths][number])
