"""The archive writer: each page becomes a content record, a metadata record and a line of the index.

Redirects to another owner, and exchanges that belong to no page (robots.txt), have such records too; their lines have
no document key.

Records go to a numbered series of WARC files, each filled to a size limit, with an index; an addition is in both or in
neither.

The name of a file ends in ``.open`` until it is full, or the series is closed; the next flush then renames it. A file
without ``.open`` changes no more, unless the series is opened again at a place within it. The ends of files depend on
the records alone, never on flushing, closing or reopening the series. The exception are files of bounded age: a flush
ends one that is too old.

To go back to a position, its file is cut to its offset, and files of higher serial are removed. After a flush with
``fsync`` the series can always go back to that position, even if the process is killed or the power is cut, also while
going back. To ensure this, data is synced before its file is renamed, and the names after that. Going back accepts
either name of a file, and can stop anywhere and start again.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple

from crawl4llm.base.compression import COMPRESSIONS
from crawl4llm.base.files import AppendFile, ArchiveError, archiving, lost, remove, rename, sync_path
from crawl4llm.base.pages import Capture, PageRecord
from crawl4llm.base.within import require_within
from crawl4llm.warc import cdxj
from crawl4llm.warc.archive import OPEN_SUFFIX, ArchiveFormat, ArchiveInfo, ArchivePosition, SeriesPosition
from crawl4llm.warc.cdxj import INDEX_NAME, TEXT_INDEX_NAME
from crawl4llm.warc.exchanges import StoredPayloads, exchange, has_uri
from crawl4llm.warc.page_records import FORMAT_FIELDS, ContentRecord, Entry, RecordBuilder, Values, timestamp

_TIMESTAMP = "%Y%m%d%H%M%S"
_USUAL = ArchiveFormat()


class ArchiveWriter:
    """Writes WARC files and their index ``index.cdxj`` to a directory; the pages' text to others, with ``text.cdxj``.

    A page's records stand together in one file of at most ``max_bytes``; a larger page has its own file. A page is in
    the archive completely, with its lines in the indexes, or not at all.
    """

    def __init__(
        self,
        directory: Path,
        info: ArchiveInfo,
        max_bytes: int,
        at: ArchivePosition | None = None,
        form: ArchiveFormat = _USUAL,
    ) -> None:
        """Create the directory if needed; with ``at``, open the archive in it at that position.

        Raises ArchiveError: without ``at`` if the directory holds an archive already, with ``at`` if the archive is
        shorter. Equal arguments give the same archive as a crawl that never stopped, except for file names of a live
        crawl.
        """
        with archiving("create", directory):
            if at is not None:
                require_within(directory.parent, directory)
            directory.mkdir(parents=True, exist_ok=True)
        self.keeps_text = form.text
        self._directory, self._info, self._max_bytes, self._form = directory, info, max_bytes, form
        self._compress = COMPRESSIONS[form.compression].compress
        self._records = RecordBuilder(info.crawl_id, info.start_date)
        self._exchange = partial(exchange, self._records, credentials=form.credentials)
        self._pages = self._open(INDEX_NAME, info.prefix, at.pages if at else None)
        self._texts = (
            self._open(TEXT_INDEX_NAME, f"{info.prefix}-text", at.texts if at else None) if form.text else None
        )
        resumed = form.revisits and at is not None
        self._payloads = StoredPayloads(directory, form.revisits, cdxj.read(directory / INDEX_NAME) if resumed else ())

    def write(self, page: PageRecord, fields: Values, text: str | None = None) -> None:
        """Keep a page; see :meth:`Archive.write`. A text of white space alone has no record."""
        added = self._pages.add(partial(self._page_members, page, fields))
        if self._texts is not None and text is not None and text.strip():
            try:
                self._texts.add(partial(self._text_members, page, _last_content(added.members), text))
            except ArchiveError:
                self._pages.take_back(added)
                raise
        for entry in added.entries if page.captures else ():  # of others no payload is ever looked up
            self._payloads.add(entry)

    def write_redirects(self, page: PageRecord, fields: Values) -> None:
        """Keep redirects; see :meth:`Archive.write_redirects`. Those whose URLs fit into no record are left out."""
        captures = [capture for capture in page.captures if has_uri(capture)]
        if captures:
            self._pages.add(partial(self._redirect_members, page.key, captures, fields))

    def write_exchange(self, capture: Capture, purpose: str, fields: Values) -> None:
        """Keep an exchange; see :meth:`Archive.write_exchange`. It is never a revisit, so that it can be read by
        itself. One whose URL fits into no record is left out."""
        if has_uri(capture):
            self._pages.add(partial(self._exchange_of_no_page, capture, purpose, fields))

    def flush(self, *, fsync: bool = False) -> None:
        for series in self._series:
            series.flush(fsync=fsync)
        if fsync:
            self._sync_name()

    def position(self) -> ArchivePosition:
        return ArchivePosition(*(place for series in self._series for place in series.position))

    def close(self, *, fsync: bool = False) -> None:
        for series in self._series:
            series.close(fsync=fsync)
        if fsync:
            self._sync_name()

    @property
    def _series(self) -> list[IndexedFiles]:
        return [self._pages] if self._texts is None else [self._pages, self._texts]

    def _open(self, index: str, prefix: str, at: SeriesPosition | None) -> IndexedFiles:
        form = self._form
        names = FileNames(prefix, COMPRESSIONS[form.compression].suffix, self._info.host)
        index_file = AppendFile(self._directory / index, None if at is None else at.index_offset)
        private = form.credentials and index == INDEX_NAME
        files = WarcFiles(self._directory, names, self._max_bytes, self._warcinfo, at, form.max_age, private)
        return IndexedFiles(index_file, files)

    def _sync_name(self) -> None:
        sync_path(self._directory.parent)  # where the directory's own name may be new

    def _page_members(self, page: PageRecord, fields: Values, filename: str) -> list[Member]:
        """Return a page's records: of redirects to it, of its content, of the request for it, and its metadata."""
        warcinfo_id = self._records.warcinfo_id(filename)
        if page.captures and has_uri(page.captures[-1]):
            captures = [capture for capture in page.captures if has_uri(capture)]
            members = self._exchange_members(captures, page.key, warcinfo_id, hops=len(captures) - 1)
            fields = {**fields, "fetchTimeMs": captures[-1].milliseconds, "robots": _allowed_by(captures)}
        else:
            content = self._records.content(page, warcinfo_id)
            members = [Member(self._compress(content.data), content, page.key)]
        return self._described(members, page.key, warcinfo_id, fields)

    def _redirect_members(self, key: str, captures: Sequence[Capture], fields: Values, filename: str) -> list[Member]:
        """Return the records of redirects from a document, and their metadata record."""
        warcinfo_id = self._records.warcinfo_id(filename)
        members = self._exchange_members(captures, key, warcinfo_id, hops=len(captures))
        return self._described(members, key, warcinfo_id, {**fields, "robots": _allowed_by(captures)})

    def _exchange_of_no_page(self, capture: Capture, purpose: str, fields: Values, filename: str) -> list[Member]:
        """Return the records of an exchange that belongs to no page. Its date distinguishes it from others with the
        same URL."""
        warcinfo_id = self._records.warcinfo_id(filename)
        key = f"{purpose} {capture.url} {capture.date}"
        content, request = self._exchange(capture, key, warcinfo_id, hop=0, find=lambda _: None, purpose=purpose)
        members = [Member(self._compress(content.data), content), Member(self._compress(request))]
        return self._described(members, key, warcinfo_id, {"purpose": purpose, **fields})

    def _exchange_members(self, captures: Sequence[Capture], key: str, warcinfo_id: str, *, hops: int) -> list[Member]:
        """Return the records of exchanges, the first of which is ``hops`` hops away from the page."""
        members: list[Member] = []
        for hop, capture in zip(count(hops, -1), captures, strict=False):
            content, request = self._exchange(capture, key, warcinfo_id, hop=hop, find=self._payloads.find)
            members.append(Member(self._compress(content.data), content, "" if hop else key))
            members.append(Member(self._compress(request)))
        return members

    def _described(self, members: list[Member], key: str, warcinfo_id: str, fields: Values) -> list[Member]:
        """Return records with a metadata record about the last one that has content."""
        content = _last_content(members)
        if about := {name: str(fields[name]) for name in cdxj.ABOUT if fields.get(name)}:
            members = [one._replace(about=about) if one.content is content else one for one in members]
        return [*members, Member(self._compress(self._records.metadata(key, content, warcinfo_id, fields)))]

    def _text_members(self, page: PageRecord, content: ContentRecord, text: str, filename: str) -> list[Member]:
        record = self._records.text(page, content, self._records.warcinfo_id(filename), text)
        return [Member(self._compress(record.data), record, page.key)]

    def _warcinfo(self, filename: str) -> bytes:
        fields = {**self._info.fields, "isPartOf": self._info.crawl_id.urn, **FORMAT_FIELDS}
        return self._compress(self._records.warcinfo(filename, fields))


def _allowed_by(captures: Sequence[Capture]) -> str | None:
    """Return the robots.txt that allowed some exchanges, each once; None if no robots.txt was obeyed."""
    return ", ".join(dict.fromkeys(capture.robots for capture in captures if capture.robots)) or None


def _last_content(members: Sequence[Member]) -> ContentRecord:
    return [member.content for member in members if member.content][-1]


# -- the series -------------------------------------------------------------------------------------------------------


class FileNames:
    """``PREFIX-00000.warc.gz`` and so on; with ``host``, for live crawls, ``PREFIX-TIMESTAMP-00000-HOST.warc.gz``.

    The latter form is that of ISO 28500:2017, annex C.1; its time is the beginning of the file, in UTC. The former has
    no time, so that equal crawls make equal files.
    """

    def __init__(self, prefix: str, suffix: str, host: str | None = None) -> None:
        self.prefix, self.suffix, self.host = prefix, suffix, host
        start, end = re.escape(prefix), re.escape(suffix)
        form = rf"{start}-(\d{{5,}}){end}" if host is None else rf"{start}-(\d{{14}})-(\d{{5,}})-[\w.-]+{end}"
        self._form = re.compile(form, re.ASCII)

    def new(self, serial: int) -> str:
        """Return the name of a file that begins now."""
        if self.host is None:
            return f"{self.prefix}-{serial:05d}{self.suffix}"
        return f"{self.prefix}-{datetime.now(timezone.utc):{_TIMESTAMP}}-{serial:05d}-{self.host}{self.suffix}"

    def pattern(self, serial: int) -> str:
        """Return a pattern of the names of a file, for any time and host of its beginning."""
        return self.new(serial) if self.host is None else f"{self.prefix}-*-{serial:05d}-*{self.suffix}"

    def serial(self, name: str) -> int | None:
        """Return the number of the file with this name; None if it is not of the series. Any host is accepted."""
        found = self._form.fullmatch(name)
        digits = found.groups()[-1] if found else ""
        return int(digits) if digits and digits == f"{int(digits):05d}" else None

    def age(self, name: str) -> float:
        """Return the seconds since a file began; 0 if its name does not tell."""
        found = self._form.fullmatch(name) if self.host is not None else None
        if found is None:
            return 0.0
        began = datetime.strptime(found[1], _TIMESTAMP).replace(tzinfo=timezone.utc)
        return (datetime.now(timezone.utc) - began).total_seconds()


class WarcFiles:
    """Appends compressed records to the series of files in a directory.

    ``first_record`` makes the compressed record that begins the file of a given name. ``max_bytes`` bounds a file; an
    addition that is larger has a file of its own. ``max_age``, unless it is 0, is the number of seconds after which a
    flush ends a file, as far as the names tell. ``private``: only their owner may read them.
    """

    def __init__(
        self,
        directory: Path,
        names: FileNames,
        max_bytes: int,
        first_record: Callable[[str], bytes],
        at: SeriesPosition | None = None,
        max_age: float = 0,
        private: bool = False,
    ) -> None:
        """Begin a series, or open one at a position and drop the rest.

        Raises ArchiveError, and drops nothing, if files before that position are missing or short.
        """
        self._directory, self._names, self._first_record = directory, names, first_record
        self._max_bytes, self._max_age, self._private = max_bytes, max_age, private
        self._serial = 0
        self._name: str | None = None
        self._file: AppendFile | None = None
        self._begin = 0
        self._full: list[AppendFile] = []
        self._unsynced: list[Path] = []  # finished files whose bytes may not be on the disk
        if at is not None:
            self._reopen(at)

    @property
    def name(self) -> str:
        """Final name of the file for the next record."""
        if self._name is None:
            self._name = self._names.new(self._serial)
        return self._name

    @property
    def position(self) -> tuple[int, int]:
        """Serial of the file for the next record, and its size in bytes; 0 if it does not exist yet."""
        return self._serial, self._file.size if self._file else 0

    def fits(self, size: int) -> bool:
        """Return whether ``size`` more bytes keep the present file within its limit, or it is new."""
        if self._file is None or self._file.size == self._begin:
            return True
        return self._file.size + size <= self._max_bytes

    def append(self, data: bytes) -> int:
        """Add compressed records that belong together to the present file; returns the offset of the first.

        If they cannot be written completely, ArchiveError is raised and the file is left as it was.
        """
        if self._file is None:
            self._file = self._open()
        return self._file.append(data)

    def cut(self, offset: int) -> None:
        """Remove the end of the present file from ``offset`` on."""
        if self._file is not None:
            self._file.cut(offset)

    def rotate(self) -> None:
        """Treat the present file as full: the next record begins another, and the next flush renames this one."""
        if self._file is not None:
            self._full.append(self._file)
            self._file, self._name = None, None
            self._serial += 1

    def flush(self, *, fsync: bool = False) -> None:
        """Rename the full files; with ``fsync``, return once all before the position is on the disk."""
        if self._max_age and self._file and self._names.age(self.name) >= self._max_age:
            self.rotate()
        if self._file is not None:
            self._file.check()
            if fsync:
                self._file.sync()
        while self._full:
            self._finish(self._full[0], fsync=fsync)
        if fsync:
            while self._unsynced:
                sync_path(self._unsynced[-1])
                self._unsynced.pop()
            sync_path(self._directory)

    def close(self, *, fsync: bool = False) -> None:
        """Finish all files, ``fsync`` as in :meth:`flush`. The position does not change: the last file may have room
        for more."""
        if self._file is not None:
            self._full.append(self._file)
        self.flush(fsync=fsync)

    def _open(self) -> AppendFile:
        final = self._directory / self.name
        if final.exists():
            raise ArchiveError(f"{final} exists already; archive into a new directory")
        file = AppendFile(final.with_name(final.name + OPEN_SUFFIX), private=self._private)
        try:
            file.append(self._first_record(self.name))
        except ArchiveError:
            file.close()
            remove(file.path)
            raise
        self._begin = file.size
        return file

    def _finish(self, file: AppendFile, *, fsync: bool) -> None:
        """Rename and release the first of the full files; if that fails, it stays among them."""
        file.check()
        if fsync:
            file.sync()
        path = rename(file.path, file.path.stem)
        if not fsync:
            self._unsynced.append(path)
        del self._full[0]
        file.close()

    def _reopen(self, at: SeriesPosition) -> None:
        """Restore the series at a position."""
        found = self._found()
        before = [self._committed(serial, found) for serial in range(at.serial)]
        self._serial = at.serial
        if at.offset:
            path = self._committed(at.serial, found)
            del found[at.serial]
            self._name = path.name.removesuffix(OPEN_SUFFIX)
            self._file = AppendFile(_renamed(path, self.name + OPEN_SUFFIX), at.offset)
            self._begin = len(self._first_record(self.name))
        self._unsynced = [_renamed(path, path.name.removesuffix(OPEN_SUFFIX)) for path in before]
        for serial, paths in found.items():
            if serial >= at.serial:
                for path in paths:
                    remove(path)

    def _found(self) -> dict[int, list[Path]]:
        """Return the existing files of the series, under either name, by serial."""
        found = defaultdict(list)
        with archiving("read", self._directory):
            for path in self._directory.iterdir():
                serial = self._names.serial(path.name.removesuffix(OPEN_SUFFIX))
                if serial is not None:
                    found[serial].append(path)
        return found

    def _committed(self, serial: int, found: dict[int, list[Path]]) -> Path:
        """Return the file of a serial, under either name."""
        paths = sorted(found.get(serial, []))
        if not paths:
            raise lost(self._directory / self._names.pattern(serial), "is missing", "pages in it")
        if len(paths) > 1:
            raise ArchiveError(f"{paths[0]} and {paths[1].name} both exist; remove the one that is not of this series")
        return paths[0]


def _renamed(path: Path, name: str) -> Path:
    return path if path.name == name else rename(path, name)


class Member(NamedTuple):
    """A compressed record."""

    data: bytes
    content: ContentRecord | None = None
    """The record, for its line of the index; None without a line."""
    key: str = ""
    """Document key; empty for a redirect, and for an exchange that belongs to no page."""
    about: Mapping[str, str] | None = None
    """Further fields of its line."""


class Addition(NamedTuple):
    """The last addition; :meth:`IndexedFiles.take_back` undoes it."""

    members: Sequence[Member]
    entries: list[Entry]
    offset: int
    index_offset: int


class IndexedFiles:
    """A series and its index."""

    def __init__(self, index: AppendFile, files: WarcFiles) -> None:
        self._index, self.files = index, files

    @property
    def position(self) -> SeriesPosition:
        """The end of all additions."""
        return SeriesPosition(*self.files.position, self._index.size)

    def add(self, build: Callable[[str], Sequence[Member]]) -> Addition:
        """Add records, made by ``build`` for a file's name, to one file. If that fails, ArchiveError is raised and none
        is added."""
        members = build(self.files.name)
        size = sum([len(member.data) for member in members])
        if not self.files.fits(size):
            self.files.rotate()
            members = build(self.files.name)  # anew: records name the warcinfo record of their file
        offset = self.files.append(b"".join([member.data for member in members]))
        entries = _entries(members, offset, self.files.name)
        try:
            index_offset = self._index.append(b"".join([entry.line() for entry in entries]))
        except ArchiveError:
            self.files.cut(offset)
            raise
        return Addition(members, entries, offset, index_offset)

    def take_back(self, addition: Addition) -> None:
        """Undo the last addition."""
        self._index.cut(addition.index_offset)
        self.files.cut(addition.offset)

    def flush(self, *, fsync: bool = False) -> None:
        """Finish the full files; with ``fsync``, return once all before the position is on the disk.

        Raises ArchiveError, also if somebody else has changed the files.
        """
        self.files.flush(fsync=fsync)
        self._index.check()
        if fsync:
            self._index.sync()

    def close(self, *, fsync: bool = False) -> None:
        """Finish all files, ``fsync`` as in :meth:`flush`."""
        self.files.close(fsync=fsync)
        if fsync:
            self._index.sync()
        self._index.close()


def _entries(members: Sequence[Member], offset: int, filename: str) -> list[Entry]:
    entries = []
    for data, content, key, about in members:
        if content is not None:
            url, mime, status, digest = content.url, content.mime, content.status, content.digest
            place = len(data), offset, filename
            entries.append(
                Entry(url, timestamp(content.date), mime, status, digest, *place, key, content.language, about)
            )
        offset += len(data)
    return entries
