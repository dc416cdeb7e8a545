"""The files of a ClueWeb22 tree: which it holds, whether they are whole, and how they are written.

A full category is some 32,000 files a kind: folders are read by a few threads, so that a slow disk's waits overlap, and
only sizes are looked at.

Files can be written in any order and by any number of processes. Each call writes one data file of one kind and its
offsets under temporary names, which are renamed when the file is whole, the offsets first. So a data file that exists
is complete, and a killed build resumes from these. The bytes are a function of the records alone.

Source of every rule: the dataset's documentation (lemurproject.org, ClueWeb22 document details), as condensed in
``clueweb22-format.md``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from crawl4llm.base.compression import compress_with_zlib
from crawl4llm.base.errors import InputError
from crawl4llm.base.files import PreadFile
from crawl4llm.base.pages import Link
from crawl4llm.base.whole_files import replacing
from simulate.clueweb22 import records as tree

# -- the files of a tree -----------------------------------------------------------------------------------------------

_THREADS = 8
_BATCH = 500  # files that a thread checks in one go
_FILE_ID = re.compile(r"[a-z]+(?:_[a-z]+)*[0-9]{4}-[0-9]{2}")
"""Shape of a file id: ``en0041-36``, ``zh_chs0012-00``."""


class FileSizes(NamedTuple):
    """Bytes of a data file and of its offset file; None for one that is not there."""

    data: int | None
    offsets: int | None

    @property
    def records(self) -> int:
        """Number of records that can be found in the file."""
        if self.data is None or self.offsets is None:
            return 0
        return max(0, self.offsets // tree.OFFSET_WIDTH - 1)


Listing = Mapping[str, Mapping[str, FileSizes]]
"""Files by kind and file id, both in ascending order."""


def kinds_held(root: Path) -> tuple[str, ...]:
    """Return the kinds whose folder a tree holds; none if ``root`` is no tree."""
    return tuple(kind for kind in tree.KINDS if os.path.isdir(root / kind))  # noqa: PTH112 - Path.is_dir may fail


def list_files(root: Path, kinds: Iterable[str]) -> Listing:
    """Return the files of a tree, by their names; other files in the folders are ignored.

    Raises InputError if a folder cannot be read, or a file is a link to nothing.
    """
    listing: dict[str, dict[str, FileSizes]] = {}
    try:
        with ThreadPoolExecutor(_THREADS) as threads:
            for kind in kinds:
                streams = [stream for language in _folders(root / kind) for stream in _folders(language)]
                subdirs = [subdir for found in threads.map(_folders, streams) for subdir in found]
                files = [file for found in threads.map(_files_of, subdirs, [kind] * len(subdirs)) for file in found]
                listing[kind] = dict(sorted(files))
    except OSError as error:
        raise _unreadable(root, error) from None
    return listing


def check_files(root: Path, listing: Listing) -> None:
    """Compare each data file with its offset file.

    Raises InputError that names the first file that is missing or cut short, or the root if it holds no file.
    """
    files = [(kind, file_id, sizes) for kind, held in listing.items() for file_id, sizes in held.items()]
    if not files:
        expected = tree.data_path(Path(), tree.KINDS[0], "en0000-00")
        raise InputError(f"CORPUS {root}: holds no data files; expected {expected}")
    batches = [files[at : at + _BATCH] for at in range(0, len(files), _BATCH)]
    with ThreadPoolExecutor(_THREADS) as threads:
        try:
            found = threads.map(lambda batch: [_fault(root, *file) for file in batch], batches)
            fault = next(filter(None, chain.from_iterable(found)), None)
        except OSError as error:
            raise _unreadable(root, error) from None
    if fault:
        raise InputError(f"CORPUS {fault}; fetch it again")


def _unreadable(root: Path, error: OSError) -> InputError:
    return InputError(f"CORPUS {root}: {error.filename} cannot be read ({error.strerror})")


def _folders(path: Path) -> list[Path]:
    with os.scandir(path) as entries:
        return [Path(entry.path) for entry in entries if entry.is_dir()]


def _files_of(subdir: Path, kind: str) -> list[tuple[str, FileSizes]]:
    sizes: dict[str, dict[str, int]] = {}
    suffixes = (tree.DATA_SUFFIX[kind], tree.OFFSET_SUFFIX[kind])
    with os.scandir(subdir) as entries:
        for entry in entries:
            for suffix in suffixes:
                file_id = entry.name.removesuffix(suffix)
                if file_id != entry.name and _FILE_ID.fullmatch(file_id) and file_id[:-3] == subdir.name:
                    sizes.setdefault(file_id, {})[suffix] = entry.stat().st_size
    return [(file_id, FileSizes(*map(found.get, suffixes))) for file_id, found in sizes.items()]


def _fault(root: Path, kind: str, file_id: str, sizes: FileSizes) -> str | None:
    offsets = tree.offset_path(root, kind, file_id)
    if sizes.data is None:
        return f"{tree.data_path(root, kind, file_id)}: is missing, its offset file is there"
    if sizes.offsets is None:
        return f"{offsets}: is missing, its data file is there"
    if sizes.offsets % tree.OFFSET_WIDTH or not sizes.offsets:
        return f"{offsets}: is cut short: {sizes.offsets} bytes are not whole lines of {tree.OFFSET_WIDTH}"
    last_line = PreadFile(offsets).read(tree.OFFSET_WIDTH, sizes.offsets - tree.OFFSET_WIDTH).strip()
    if not last_line.isdigit():
        return f"{offsets}: its last line is not a number"
    if int(last_line) != sizes.data:
        data = tree.data_path(root, kind, file_id)
        return f"{data}: {sizes.data} bytes, but its offset file ends at {int(last_line)}: one of them is cut short"
    return None


# -- writing -----------------------------------------------------------------------------------------------------------

_COMPRESSION_LEVEL: Final = 6
_STREAMS: Final = 100
_OFFSET_LINE: Final = b"%010d\n"
_NO_LINKS: Final = b"\n"  # what stands in the place of a record for a page without links (format page, quirk 4)
_VDOM_HEADERS: Final = ("Primary", "Heading", "Title", "Paragraph", "Table", "List")


class DocumentHead(NamedTuple):
    """The fields that the records of a page have in common, whatever their kind."""

    key: str  # the ClueWeb22-ID, which has the page's language
    url: str


def url_hash(url: str) -> str:
    """Return 32 upper-case hex digits for a URL. The dataset does not say which digest it takes; this one is MD5."""
    return hashlib.md5(url.encode(), usedforsecurity=False).hexdigest().upper()


class NewIds:
    """Ids for pages in their order: numbered within each language, after those that are taken."""

    def __init__(self, taken: Iterable[str] = (), records_per_file: int = tree.RECORDS_PER_FILE) -> None:
        self._records_per_file = records_per_file
        self._numbers: Counter[str] = Counter()
        """The next number of each language."""
        for key in taken:
            language, number = tree.language_of(key), tree.number_of(key) or 0
            self._numbers[language] = max(self._numbers[language], number + 1)

    def next(self, language: str) -> str:
        """Return the next id of a language, in the next file if one is full. Raises InputError after its last one."""
        file, record = divmod(self._numbers[language], self._records_per_file)
        subdir, file = divmod(file, tree.FILES_PER_SUBDIR)
        stream, subdir = divmod(subdir, tree.SUBDIRS_PER_STREAM)
        if stream == _STREAMS:
            raise InputError(f"the layout has no more ids for language {language}")
        self._numbers[language] += 1
        return tree.format_id(f"{language}{stream:02d}{subdir:02d}-{file:02d}", record)


def txt_record(head: DocumentHead, text: str) -> bytes:
    """Return a record of a page's clean text; as in the dataset, its URL ends with a line feed (quirk 1)."""
    return _json_line(
        {
            "URL": head.url + "\n",
            "URL-hash": url_hash(head.url),
            "Language": tree.language_of(head.key),
            "ClueWeb22-ID": head.key,
            "Clean-Text": text,
        }
    )


def link_record(kind: str, head: DocumentHead, links: Sequence[Link], *, slim: bool = False) -> bytes:
    """Return a record of a page's links, in page order, or of the links to it (``kind``), whose keys are ids of the
    tree; None for a page that is not in it.

    ``slim``: with the id of each alone, as some copies have it.
    """
    if not links:
        return _NO_LINKS
    return _json_line(
        {
            "url": head.url,
            "urlhash": url_hash(head.url),
            "language": tree.language_of(head.key),
            "ClueWeb22-ID": head.key,
            tree.LIST_FIELD[kind]: [[link.key] if slim else _full(link) for link in links],
        }
    )


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
        ("Language", tree.language_of(head.key)),
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
    with whole(data) as file:
        for record in records:
            file.write(compress_with_zlib(record, _COMPRESSION_LEVEL))
            lines.append(_OFFSET_LINE % file.tell())
        with whole(offsets) as offset_file:
            offset_file.writelines(lines)
    return len(lines) - 1


def write_root_files(root: Path, readme: str, counts: Mapping[str, Mapping[str, int]]) -> None:
    """Write the description of the tree: README, version file, and record counts by kind and file id."""
    _write(root / "README.txt", readme)
    _write(root / "version_A_1.0", "")  # names the category (``A``, ``B``, ``L``) and version of the tree
    for kind, files in counts.items():
        streams = defaultdict(list)
        for file_id, count in sorted(files.items()):
            streams[file_id[:-5]].append(f"{file_id},{count}\n")
        for stream, lines in streams.items():
            _write(root / f"record_counts/record_counts/{kind}/{stream}_counts.csv", "".join(lines))


def _json_line(record: Mapping[str, object]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def _full(link: Link) -> list[str | None]:
    language = tree.language_of(link.key) if link.key else ""
    return [link.url, url_hash(link.url), link.anchor, "1" if link.boilerplate else "0", language, link.key]


def whole(path: Path) -> AbstractContextManager[BinaryIO]:
    """Open a file that appears under its name only when the block ends without an error. The processes of a killed
    build, which outlive it for a moment, write others."""
    return replacing(path, path.with_name(f".{path.name}.{os.getpid()}.tmp"))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole(path) as file:
        file.write(text.encode())
