"""The writer of a file tree in the ClueWeb22 layout, one data file of one kind at a time.

Files can be written in any order and by any number of processes. Each call writes one data file and its offsets under
temporary names, which are renamed when the file is whole, the offsets first. So a data file that exists is complete,
and a killed build resumes from these. The bytes are a function of the records alone.

Source of every rule: the dataset's documentation (lemurproject.org, ClueWeb22 document details), as condensed in
``clueweb22-format.md``.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from crawl4llm.base.compression import compress_with_zlib
from crawl4llm.base.errors import InputError
from crawl4llm.base.whole_files import replacing
from simulate.clueweb22 import records as tree

_COMPRESSION_LEVEL: Final = 6
_STREAMS: Final = 100
_OFFSET_LINE: Final = b"%010d\n"
_NO_LINKS: Final = b"\n"  # what stands in the place of a record for a page without links (format page, quirk 4)
_VDOM_HEADERS: Final = ("Primary", "Heading", "Title", "Paragraph", "Table", "List")


class DocumentHead(NamedTuple):
    """The fields that the records of a page have in common, whatever their kind."""

    key: str  # the ClueWeb22-ID
    url: str
    language: str


class LinkEnd(NamedTuple):
    """The other end of a link: the target of an outlink, the source of an inlink."""

    url: str
    anchor: str
    boilerplate: bool  # whether the link stands in a header or footer of its page
    language: str  # empty if the other page is not in the tree
    key: str | None


def url_hash(url: str) -> str:
    """Return 32 upper-case hex digits for a URL. The dataset does not say which digest it takes; this one is MD5."""
    return hashlib.md5(url.encode(), usedforsecurity=False).hexdigest().upper()


def next_id(document: tree.DocId, records_per_file: int = tree.RECORDS_PER_FILE) -> tree.DocId:
    """Return the id after an id, in the next file if one is full. Raises InputError after a language's last id."""
    language, stream, subdir, file, record = document
    carry, record = divmod(record + 1, records_per_file)
    carry, file = divmod(file + carry, tree.FILES_PER_SUBDIR)
    carry, subdir = divmod(subdir + carry, tree.SUBDIRS_PER_STREAM)
    if stream + carry == _STREAMS:
        raise InputError(f"{document} is the last id that the layout has for language {language}")
    return tree.DocId(language, stream + carry, subdir, file, record)


def assign_ids(languages: Iterable[str], records_per_file: int = tree.RECORDS_PER_FILE) -> list[str]:
    """Return ids for pages in their order: numbered within each language, ``records_per_file`` to a file. Raises
    InputError as :func:`next_id` does."""
    last: dict[str, tree.DocId] = {}
    ids = []
    for language in languages:
        before = last.get(language)
        last[language] = next_id(before, records_per_file) if before else tree.DocId(language, 0, 0, 0, 0)
        ids.append(str(last[language]))
    return ids


def txt_record(head: DocumentHead, text: str) -> bytes:
    """Return a record of a page's clean text; as in the dataset, its URL ends with a line feed (quirk 1)."""
    return _json_line(
        {
            "URL": head.url + "\n",
            "URL-hash": url_hash(head.url),
            "Language": head.language,
            "ClueWeb22-ID": head.key,
            "Clean-Text": text,
        }
    )


def outlink_record(head: DocumentHead, links: Sequence[LinkEnd], *, slim: bool = False) -> bytes:
    """Return a record of a page's links, in page order; ``slim``: with the id of each alone, as some copies have it."""
    return _link_record(head, "outlinks", links, slim=slim)


def inlink_record(head: DocumentHead, links: Sequence[LinkEnd], *, slim: bool = False) -> bytes:
    """Return a record of the links to a page; ``slim`` as for outlinks."""
    return _link_record(head, "anchors", links, slim=slim)


def html_record(head: DocumentHead, html: bytes, date: str) -> bytes:
    """Return a page's HTML (UTF-8) as a WARC response record without HTTP head, as the dataset has it.

    ``date`` is a W3C date-time in UTC. The record id follows from the document's key, so that it is the same in every
    build. Raises ValueError for a URL or date with a line break, which would end the header early.
    """
    headers = [
        ("WARC-Type", "response"),
        ("WARC-Record-ID", f"<urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, 'clueweb22:' + head.key)}>"),
        ("WARC-Date", date),
        ("WARC-Target-URI", head.url),
        ("WARC-Payload-Digest", f"sha1:{hashlib.sha1(html, usedforsecurity=False).hexdigest()}"),
        ("ClueWeb22-ID", head.key),
        ("URL-Hash", url_hash(head.url)),
        ("Language", head.language),
        *((f"VDOM-{name}", "") for name in _VDOM_HEADERS),
        ("Content-Type", "text/html"),
        ("Content-Length", str(len(html))),
    ]
    for name, value in headers:
        if "\r" in value or "\n" in value:
            raise ValueError(f"{name} of {head.key} contains a line break: {value!r}")
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    return b"WARC/1.0\r\n" + lines.encode() + b"\r\n" + html + b"\r\n\r\n"


def write_data_file(root: Path, kind: str, file_id: str, records: Iterable[bytes]) -> int:
    """Write one data file (``html`` of ``en0000-03``, say) and its offsets; return the number of records.

    Records are compressed each on its own. An existing file is replaced. Raises OSError if the disk does.
    """
    data, offsets = tree.data_path(root, kind, file_id), tree.offset_path(root, kind, file_id)
    data.parent.mkdir(parents=True, exist_ok=True)
    lines = [_OFFSET_LINE % 0]
    with _whole(data) as file:
        for record in records:
            file.write(compress_with_zlib(record, _COMPRESSION_LEVEL))
            lines.append(_OFFSET_LINE % file.tell())
        with _whole(offsets) as offset_file:
            offset_file.writelines(lines)
    return len(lines) - 1


def write_root_files(root: Path, readme: str, counts: Mapping[str, Mapping[str, int]], subset: str = "A") -> None:
    """Write the description of the tree: README, version file, and record counts by kind and file id."""
    root.mkdir(parents=True, exist_ok=True)
    _write(root / "README.txt", readme)
    _write(root / f"version_{subset}_1.0", "")  # names the category (``A``, ``B``, ``L``) and version of the tree
    for kind, files in counts.items():
        streams = defaultdict(list)
        for file_id, count in sorted(files.items()):
            first = tree.DocId.parse(f"clueweb22-{file_id}-00000")
            if first is None:
                raise ValueError(f"not a file id: {file_id}")
            streams[first.language, first.stream].append(f"{file_id},{count}\n")
        for (language, stream), lines in streams.items():
            _write(root / f"record_counts/record_counts/{kind}/{language}{stream:02d}_counts.csv", "".join(lines))


def _json_line(record: Mapping[str, object]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def _link_record(head: DocumentHead, field: str, links: Sequence[LinkEnd], *, slim: bool) -> bytes:
    if not links:
        return _NO_LINKS
    return _json_line(
        {
            "url": head.url,
            "urlhash": url_hash(head.url),
            "language": head.language,
            "ClueWeb22-ID": head.key,
            field: [[link.key] if slim else _full(link) for link in links],
        }
    )


def _full(link: LinkEnd) -> list[str | None]:
    flag = "1" if link.boilerplate else "0"
    return [link.url, url_hash(link.url), link.anchor, flag, link.language, link.key]


def _whole(path: Path) -> AbstractContextManager[BinaryIO]:
    """Open a file that appears under its name only when the block ends without an error."""
    return replacing(path, path.with_name(f".{path.name}.{os.getpid()}.tmp"))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with _whole(path) as file:
        file.write(text.encode())
