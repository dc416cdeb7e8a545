"""Names, paths and widths of the ClueWeb22 file tree, for its reader and its writer.

Source: the dataset's documentation (lemurproject.org, ClueWeb22 document details), condensed in
``clueweb22-format.md``. An id such as ``clueweb22-en0041-36-03476`` names language ``en``, stream ``00``, subdirectory
``41``, file ``36`` and record ``03476``; a *file id* is the middle of it, ``en0041-36``, and is the same in every kind.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

LANGUAGES: Final = ("de", "en", "es", "fr", "it", "ja", "nl", "po", "pt", "zh_chs", "other")

TXT: Final = "txt"
HTML: Final = "html"
INLINK: Final = "inlink"
OUTLINK: Final = "outlink"
KINDS: Final = (TXT, HTML, INLINK, OUTLINK)
"""The kinds of records that are handled; each is a folder of the tree. (``vdom`` and ``jpg`` are not.)"""

RECORDS_PER_FILE: Final = 20_000
"""How many records the publisher puts into one file at most."""
FILES_PER_SUBDIR: Final = 100
SUBDIRS_PER_STREAM: Final = 81

OFFSET_WIDTH: Final = 11
"""Bytes of one line of an offset file: ten digits and a line feed."""

DATA_SUFFIX: Final = {TXT: ".json.gz", HTML: ".warc.gz", INLINK: ".json.gz", OUTLINK: ".json.gz"}
OFFSET_SUFFIX: Final = {TXT: ".offset", HTML: ".warc.offset", INLINK: ".offset", OUTLINK: ".offset"}
_ID = re.compile(r"clueweb22-([a-z]+(?:_[a-z]+)*)([0-9]{2})([0-9]{2})-([0-9]{2})-([0-9]{5})")
_FILE_ID = re.compile(r"[a-z]+(?:_[a-z]+)*[0-9]{4}-[0-9]{2}")


class DocId(NamedTuple):
    """A ClueWeb22-ID in its parts; ``str()`` gives the id back."""

    language: str
    stream: int
    subdir: int
    file: int
    record: int

    @classmethod
    def parse(cls, text: str) -> DocId | None:
        """Return the parts of an id, or None for anything that is not exactly one."""
        match = _ID.fullmatch(text)
        if match is None:
            return None
        language, stream, subdir, file, record = match.groups()
        return cls(language, int(stream), int(subdir), int(file), int(record))

    @property
    def file_id(self) -> str:
        """The file that holds the document: ``en0041-36``."""
        return f"{self.language}{self.stream:02d}{self.subdir:02d}-{self.file:02d}"

    def __str__(self) -> str:
        return format_id(self.file_id, self.record)


def format_id(file_id: str, record: int) -> str:
    """Return the ClueWeb22-ID of a file's record."""
    return f"clueweb22-{file_id}-{record:05d}"


def split_id(text: str) -> tuple[str, int] | None:
    """Return file id and record number of a ClueWeb22-ID, or None; quicker than :meth:`DocId.parse`."""
    match = _ID.fullmatch(text)
    return (text[10:-6], int(match[5])) if match else None


def is_file_id(text: str) -> bool:
    """Return whether ``text`` has the shape of a file id (``en0041-36``, ``zh_chs0012-00``)."""
    return _FILE_ID.fullmatch(text) is not None


def language_of(key: str) -> str:
    """Return the language in a ClueWeb22-ID: ``zh_chs`` of ``clueweb22-zh_chs0012-00-00000``."""
    return key[10:-13]


def data_path(root: Path, kind: str, file_id: str) -> Path:
    """Return where the records of a file lie."""
    return _path_in(root, kind, file_id, DATA_SUFFIX[kind])


def offset_path(root: Path, kind: str, file_id: str) -> Path:
    """Return where a file's offsets lie: line i is the start of record i, the last line the end of the last."""
    return _path_in(root, kind, file_id, OFFSET_SUFFIX[kind])


def counts_path(root: Path, kind: str, language: str, stream: int) -> Path:
    """Return where a stream's record counts lie: lines ``{file id},{records}``."""
    return root / "record_counts" / "record_counts" / kind / f"{language}{stream:02d}_counts.csv"


def version_path(root: Path, subset: str, version: str = "1.0") -> Path:
    """Return the path of the empty file that names the category (``A``, ``B``, ``L``) and version of a tree."""
    return root / f"version_{subset}_{version}"


def offset_line(offset: int) -> bytes:
    """Return one line of an offset file."""
    return b"%010d\n" % offset


def _path_in(root: Path, kind: str, file_id: str, suffix: str) -> Path:
    # One join: a tree has tens of thousands of files, and joining is most of what it takes to check one.
    return root / f"{kind}/{file_id[:-7]}/{file_id[:-5]}/{file_id[:-3]}/{file_id}{suffix}"
