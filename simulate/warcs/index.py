"""The index of a collection of archive files: a part for each file, and all parts together, opened for look-ups.

:mod:`simulate.indexes` says what an index is. Documents are numbered in corpus order: files by name, records by offset.
The index has these columns:

- ``documents``: records of all documents by the hashes of their keys' lookup forms. A record is the JSON of a
  :class:`Document`. Of documents with one hash those that are held come first.
- ``aliases``: records ``[URL, TARGET]`` by the hashes of lookup forms;
- ``names``: a table of the hashes of other names (a WARC-TREC-ID, a payload digest) with documents' numbers;
- ``places``: for each number of a document that of its record;
- ``held``: the numbers of those that are pages and no duplicates; empty if all are.

:mod:`simulate.warcs.index_build` writes it.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from crawl4llm.base.input_files import from_json, to_json
from crawl4llm.base.sorted_file import HashTable, Records, fingerprint
from crawl4llm.base.urls import lookup_form
from simulate.indexes import MAKE, open_columns, read_manifest, text_hash

T = TypeVar("T")

HTML, TEXT, REVISITED, FAILED = 0, 1, 2, 3
"""Kinds of documents: pages with their HTML, texts of pages, pages whose HTML is held as another one's (a crawl's own
revisits), documents that a crawl could not have."""
_MOST_KEPT: Final = 4096
"""Documents that are kept in memory, those looked up last."""


class Document(NamedTuple):
    """A document. A part has its values from the key on, without the places beside its record."""

    file: int
    """The number of its file, in the order of the manifest."""
    text: int
    """The number, plus one, of the text that is held besides; 0 for none."""
    signals: str
    """Known signals about its uses, without those in its HTML: one line, as :func:`crawl4llm.optouts.said.as_text` has
    it."""
    key: str
    kind: int
    """HTML, TEXT, REVISITED or FAILED."""
    date: int
    """14 digits; 0 for none."""
    offset: int
    length: int
    text_offset: int = 0
    """The place of its text in the WET file of its file, and of its links in the WAT file; with length 0, there are
    none."""
    text_length: int = 0
    links_offset: int = 0
    links_length: int = 0


BESIDE: Final = ("text_offsets", "text_lengths", "links_offsets", "links_lengths")
"""Columns of a part: places of each document's text in the WET file, and of its links in the WAT file."""
_COLUMNS: Final[Mapping[str, str]] = {
    "forms": "Q",
    "digests": "Q",
    "sizes": "I",
    "records": "B",  # of each document; 0 without a digest
    "names": "Q",
    "named": "I",  # hashes of other names of documents, and their numbers in the part
    "alias_forms": "Q",
    "alias_sizes": "I",
    "aliases": "B",
    **dict.fromkeys(BESIDE, "Q"),
    "opt_outs": "B",  # lines of JSON, as simulate.warcs.scan has them
}
"""Columns of a part by name, and the types of their items."""


class PartColumns:
    """The columns of a part, and counts: of documents by kind, of aliases, of all else by the reason it is left out."""

    def __init__(self) -> None:
        self.columns: dict[str, array[int]] = {name: array(code) for name, code in _COLUMNS.items()}
        self.counts: Counter[str] = Counter()
        self.opt_outs_unknown = 0
        """Documents whose opt-out signals the file does not have."""

    def __len__(self) -> int:
        return len(self.columns["forms"])

    def add_document(
        self, place: tuple[int, int], kind: int, key: str, digest: bytes, name: bytes, date: int = 0
    ) -> None:
        """Add a document; ``digest`` and ``name`` may be empty."""
        if name:
            self.columns["names"].append(fingerprint(name))
            self.columns["named"].append(len(self))
        self.columns["digests"].append(fingerprint(digest) if digest else 0)
        self.columns["forms"].append(text_hash(lookup_form(key)))
        self._add_record("sizes", "records", [key, kind, date, *place])

    def add_alias(self, key: str, target: str) -> None:
        """Add a URL that leads to another one, or to a payload digest."""
        self.columns["alias_forms"].append(text_hash(lookup_form(key)))
        self._add_record("alias_sizes", "aliases", [key, target])

    def _add_record(self, sizes: str, records: str, values: list[Any]) -> None:
        record = to_json(values)
        self.columns[sizes].append(len(record))
        self.columns[records].frombytes(record)


class WarcIndex:
    """An index, opened. Raises InputError if the folder holds none, or one of another format."""

    def __init__(self, folder: Path, make: str = MAKE) -> None:
        """``make``: the command that makes it, for errors."""
        self.folder, self.manifest = folder, read_manifest(folder, make)
        self._file = open_columns(folder, self.manifest, make)
        self._documents, self._aliases = Records(self._file, "documents"), Records(self._file, "aliases")
        self._names = HashTable(self._file, "names")
        self._read = lru_cache(_MOST_KEPT)(partial(_document, self._documents))

    def __len__(self) -> int:
        documents: int = self.manifest["documents"]
        return documents

    def document(self, position: int) -> Document:
        """Return the document at a position in the order of those held."""
        return self._numbered(self._file.numbers("held", position, 1)[0] if self.manifest["left_out"] else position)

    def text_of(self, document: Document) -> Document | None:
        """Return the document that is the text of another one, from a ``conversion`` record."""
        return self._numbered(document.text - 1) if document.text else None

    def alias(self, key: str) -> str | None:
        """Return the key to which a URL of just this key leads."""
        return self._alias(key, lookup_form(key))[0]

    def find(self, key: str) -> Document | None:
        """Return the document with a key."""
        return self._find(key, lookup_form(key))[0]

    def look_up(self, key: str) -> Document | str | None:
        """Return the document at a URL, given as a key; or the key or payload digest to which an alias leads.

        Records of the URL itself come before those of one that is spelt otherwise.
        """
        form = lookup_form(key)
        document, forgiven = self._find(key, form)
        if document is not None:
            return document
        target, forgiven_target = self._alias(key, form)
        if target is None and forgiven is not None:
            return forgiven
        return forgiven_target if target is None else target

    def named(self, name: str | bytes) -> Iterator[Document]:
        """Yield documents that may have a name or a payload digest."""
        data = name.encode() if isinstance(name, str) else name
        return (self._numbered(number) for _, number in self._names.under(fingerprint(data)))

    def _find(self, key: str, form: str) -> tuple[Document | None, Document | None]:
        """Return the first document under the exact spelling of a key, and under one that is forgiven."""
        documents = map(self._read, self._documents.under(text_hash(form)))
        return _chosen(key, form, ((document.key, document) for document in documents))

    def _alias(self, key: str, form: str) -> tuple[str | None, str | None]:
        """Return the target of the first alias of the exact spelling of a key, and of one that is forgiven."""
        numbers = self._aliases.under(text_hash(form))
        return _chosen(key, form, (from_json(self._aliases.record(number)) for number in numbers))

    def _numbered(self, place: int) -> Document:
        """Return a document by its number in corpus order."""
        return self._read(self._file.numbers("places", place, 1)[0])


def _document(documents: Records, number: int) -> Document:
    return Document(*from_json(documents.record(number)))


def _chosen(key: str, form: str, found: Iterable[tuple[str, T]]) -> tuple[T | None, T | None]:
    """Return what is found under the exact spelling of a key, and what is found first under one that is forgiven."""
    first = None
    for spelling, value in found:
        if spelling == key:
            return value, value
        if first is None and lookup_form(spelling) == form:  # two forms may share a hash
            first = value
    return None, first
