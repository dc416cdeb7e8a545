"""A part of an index, of one archive file: columns, in memory while it is scanned."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from crawl4llm.base.known_sets import fingerprint
from crawl4llm.base.urls import lookup_form
from simulate.indexes import Code, PartIdentity, part_bytes

FORMAT: Final = 4
"""Version of all files of the index; files of another version are rebuilt."""
HTML, TEXT, REVISITED, FAILED = 0, 1, 2, 3
"""Kinds of documents: pages with their HTML, texts of pages, pages whose HTML is held as another one's (a crawl's own
revisits), documents that a crawl could not have."""

DOCUMENT_COLUMNS: Final[Mapping[str, Code]] = {"offsets": "Q", "lengths": "Q", "kinds": "B"}
TEXT_COLUMNS: Final[Mapping[str, Code]] = {"text_offsets": "Q", "text_lengths": "Q"}
"""Place of each document's text in the WET file."""
LINK_COLUMNS: Final[Mapping[str, Code]] = {"link_offsets": "Q", "link_lengths": "Q"}
"""Place of each document's links in the WAT file."""
COLUMNS: Final[Mapping[str, Code]] = {
    **DOCUMENT_COLUMNS,
    **TEXT_COLUMNS,
    **LINK_COLUMNS,
    "forms": "Q",  # hash of the key's lookup form
    "dates": "Q",  # 14 digits; 0 for none
    "digests": "Q",  # the last 8 characters of the payload digest
    "key_lengths": "I",
    "names": "Q",  # hash of another name of a document, such as a WARC-TREC-ID
    "named": "I",  # the document's number in the part
    "alias_forms": "Q",  # an alias is a URL that leads to another: its target
    "alias_lengths": "I",
    "target_lengths": "I",
    "keys": "B",  # text in UTF-8
    "aliases": "B",
    "targets": "B",
    "opt_outs": "B",  # lines of JSON, as simulate.warcs.opt_outs has them
}
"""Columns by name, and the types of their items."""


def digest_end(digest: bytes) -> int:
    """Return the number under which a payload digest is filed: its last characters differ like a hash's."""
    return int.from_bytes(digest[-8:], "little")


class PartColumns:
    """The columns of a part, and counts: of documents by kind, of aliases, of all else by the reason it is left out."""

    def __init__(self) -> None:
        self.columns: dict[str, array[int]] = {name: array(code) for name, code in COLUMNS.items()}
        self.counts: Counter[str] = Counter()
        self.opt_outs_unknown = 0
        """Documents whose opt-out signals the file does not have."""

    def __len__(self) -> int:
        return len(self.columns["offsets"])

    def add_document(
        self, place: tuple[int, int], kind: int, key: str, digest: bytes, name: bytes, date: int = 0
    ) -> None:
        """Add a document; ``digest`` and ``name`` may be empty."""
        columns = self.columns
        if name:
            columns["names"].append(fingerprint(name))
            columns["named"].append(len(self))
        columns["offsets"].append(place[0])
        columns["lengths"].append(place[1])
        columns["kinds"].append(kind)
        columns["dates"].append(date)
        columns["digests"].append(digest_end(digest))
        columns["forms"].append(fingerprint(lookup_form(key).encode()))
        self._add_text("key_lengths", "keys", key)

    def add_alias(self, key: str, target: str) -> None:
        """Add a URL that leads to another one, or to a payload digest."""
        self.columns["alias_forms"].append(fingerprint(lookup_form(key).encode()))
        self._add_text("alias_lengths", "aliases", key)
        self._add_text("target_lengths", "targets", target)

    def note_opt_outs(self, lines: Iterable[str], unknown: int) -> None:
        """Add the notes of opt-outs, and count the documents without any way to know of them."""
        self.columns["opt_outs"].frombytes("".join(f"{line}\n" for line in lines).encode())
        self.opt_outs_unknown += unknown

    def _add_text(self, lengths: str, texts: str, text: str) -> None:
        data = text.encode()
        self.columns[lengths].append(len(data))
        self.columns[texts].frombytes(data)

    def to_bytes(self, identity: PartIdentity) -> bytes:
        """Return the part's file."""
        counts = dict(sorted(self.counts.items()))
        return part_bytes(identity, self.columns, counts=counts, opt_outs_unknown=self.opt_outs_unknown)
