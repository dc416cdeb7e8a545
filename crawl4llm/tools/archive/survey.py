"""The survey: all WARC files read in parallel into the database, with the faults of each record, digests included."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from crawl4llm.base.errors import CorruptRecord, InputError
from crawl4llm.base.jobs import UNDIVIDED, Executor, Jobs, run_missing
from crawl4llm.base.object_store import open_archive_file
from crawl4llm.base.version import __version__
from crawl4llm.tools.archive.facts import OF_NO_PAGE, TEXT, UNREADABLE, Facts, Row, hashed
from crawl4llm.tools.archive.folder import Dataset
from crawl4llm.warc import (
    ABOUT,
    CONTENT_TYPE,
    DATE,
    TARGET_URI,
    Frame,
    Stretch,
    UnreadableFile,
    WarcReader,
    field_name,
    index_mime,
)
from simulate import data_dir

_RECORD_ID, _REFERS_TO = field_name("WARC-Record-ID"), field_name("WARC-Refers-To")
_NUMBER_OF_DOCUMENTS, _FILE_LENGTH = field_name("WARC-Number-of-Documents"), field_name("WARC-File-Length")
LINE_ENDS: Final = 4
"""Bytes behind a record's block (ISO 28500:2017, 4)."""
_DOCUMENT = re.compile(rb"(?m)^id: ?([^\r\n]*)")
_OF_NO_PAGE = re.compile(rb"(?m)^(?:redirected-to|purpose):")
_ABOUT = re.compile(rb"(?m)^(%b): ([^\r\n]+)" % "|".join(ABOUT).encode())
_CONCURRENT = re.compile(rb"(?im)^WARC-Concurrent-To:([^\n]*)")
"""A field that may be repeated (ISO 28500:2017, 5.7)."""
_LARGEST_METADATA: Final = 1 << 20
_HASHED: Final = 1 << 22
_KINDS: Final = {"warcinfo", "response", "resource", "request", "metadata", "revisit", "conversion", "continuation"}
BLOCK_DIGEST, PAYLOAD_DIGEST = field_name("WARC-Block-Digest"), field_name("WARC-Payload-Digest")
_WITH_PAYLOAD: Final = frozenset({"response", "resource", "conversion"})
"""Records that hold a payload of which we know where it begins; a revisit's digest is of another record's."""
_END: Final = b"\r\n\r\n"


class FileJob(NamedTuple):
    """A WARC file to be read."""

    number: int
    name: str
    path: Path
    size: int
    part: Path
    """Path of the database for the findings."""
    digests: bool
    """True if records are read to their end."""
    md5: bool

    def is_done(self) -> bool:
        """Return whether it has been read."""
        return self.part.exists()


def survey_file(job: FileJob) -> None:
    """Read a WARC file into a database of its own, which is put in place whole."""
    temporary = job.part.with_name(f"{job.part.name}.{os.getpid()}.tmp")
    with suppress(FileNotFoundError):
        temporary.unlink()
    _survey_into(job, temporary)
    temporary.replace(job.part)


def _survey_into(job: FileJob, part: Path) -> None:
    with Facts(part) as facts:
        try:
            before = job.path.stat()
            md5 = md5_of(job.path) if job.md5 else None
            stated = _survey(job, facts)
            facts.add("files", [(job.number, job.name, before.st_mtime_ns, md5, *stated)])
            after = job.path.stat()
        except UnreadableFile as error:
            facts.problem(job.name, 0, str(error).removeprefix(f"{job.path}: "))
            facts.add("damage", [(job.number, 0, job.size)])
            facts.add("files", [(job.number, job.name, before.st_mtime_ns, md5, 0, "", "")])
            return
        except OSError as error:
            raise InputError(f"{job.path} cannot be read: {error.strerror}") from error
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            facts.problem(job.name, None, "changed while it was read")


def md5_of(path: Path) -> str:
    md5 = hashlib.md5(usedforsecurity=False)
    file, at = open_archive_file(path), 0
    while data := file.read(_HASHED, at):
        md5.update(data)
        at += len(data)
    return md5.hexdigest()


def _survey(job: FileJob, facts: Facts) -> tuple[int, str, str]:
    """Note all records; returns bytes, decompressed, and the counts in the file's warcinfo, as in ClueWeb12."""
    reader = WarcReader(job.path)
    read, page, documents, length = 0, 0, "", ""
    for stretch in reader.stretches():
        if stretch.frame is None:
            at_end = stretch.offset + stretch.length >= reader.size
            what = f"{stretch.length:,} bytes hold no whole record"
            facts.problem(job.name, stretch.offset, f"cut short: the last {what}" if at_end else f"damaged: {what}")
            facts.add("damage", [(job.number, stretch.offset, stretch.length)])
            page += 1
            continue
        row, targets, found = _inspect(job, reader, stretch, stretch.frame)
        row = row._replace(page=page)
        page += row.doc is not None or row.kind in {OF_NO_PAGE, UNREADABLE}
        read += row.size + LINE_ENDS
        if row.kind == "warcinfo" and stretch.frame.record is not None:
            fields = stretch.frame.record.fields
            documents, length = fields.text(_NUMBER_OF_DOCUMENTS), fields.text(_FILE_LENGTH)
        facts.add("records", [row])
        facts.add("refs", [(job.number, stretch.offset, target) for target in targets])
        for what in found:
            facts.problem(job.name, stretch.offset, f"{row.kind or 'record'} {what}")
    return read, documents, length


def _inspect(
    job: FileJob, reader: WarcReader, stretch: Stretch, frame: Frame
) -> tuple[Row, Sequence[bytes], Sequence[str]]:
    """Return a record's row, the hashes of the records that it belongs to, and its faults."""
    record = frame.record
    assert record is not None
    get = record.fields.get
    head = frame.opening.data[: record.block_at]
    refers = get(_REFERS_TO)
    kind = TEXT if record.kind == "conversion" and refers else record.kind
    found = []
    if kind not in _KINDS and kind != TEXT:
        found.append("has no known WARC-Type")
    name = get(_RECORD_ID)
    if not name:
        found.append("has no WARC-Record-ID")
    try:
        doc, of_no_page, about = _described(frame) if kind == "metadata" else (None, False, None)
        if of_no_page:
            kind = OF_NO_PAGE
        if job.digests:
            found += faults(frame, reader.pieces(stretch.offset, stretch.length))
    except CorruptRecord as error:
        found.append(str(error))
        kind, doc, about = UNREADABLE, None, None
    http = frame.http
    row = Row(
        file=job.number,
        offset=stretch.offset,
        length=stretch.length,
        kind=kind,
        name=name.decode("utf-8", "replace"),
        refers=hashed(refers) if refers else None,
        url=get(TARGET_URI).strip(b"<>").decode("utf-8", "replace"),
        date=record.fields.text(DATE),
        digest=record.fields.text(PAYLOAD_DIGEST),
        mime="warc/revisit" if kind == "revisit" else _mime(frame),
        status=str(http.status) if http else None,
        doc=doc,
        page=0,
        size=record.size or 0,
        rid=hashed(name),
        about=about,
    )
    targets = [hashed(target.strip()) for target in _CONCURRENT.findall(head)]
    if refers and record.kind == "metadata":
        targets.append(hashed(refers))
    return row, targets, found


def _mime(frame: Frame) -> str:
    assert frame.record is not None
    fields = frame.http.fields if frame.http else frame.record.fields
    return index_mime(fields.text(CONTENT_TYPE))


def _described(frame: Frame) -> tuple[str | None, bool, str | None]:
    """Return three facts of a metadata record of a crawl: the document key of its page, whether it belongs to an
    exchange without a page, and the other fields that the index has."""
    record, opening = frame.record, frame.opening
    assert record is not None
    size = min(record.size or 0, _LARGEST_METADATA)
    while len(opening.data) < size and opening.grow():
        pass
    key = _DOCUMENT.search(opening.data, record.block_at, size)
    of_no_page = key is None and _OF_NO_PAGE.search(opening.data, record.block_at, size) is not None
    found = {name.decode(): value.decode("utf-8", "replace") for name, value in _ABOUT.findall(opening.data[:size])}
    about = json.dumps({name: found[name] for name in ABOUT if name in found}) if found else None
    return key[1].decode("utf-8", "replace") if key else None, of_no_page, about


@contextmanager
def surveyed(
    dataset: Dataset,
    processes: int,
    *,
    digests: bool = False,
    md5: bool = False,
    label: str,
    executor: Executor = UNDIVIDED,
) -> Iterator[Facts]:
    """Read all WARC files of a dataset, with a progress bar; ``digests`` and ``md5`` as in FileJob.

    The results of the tasks of ``executor`` are kept until all tasks are done. Raises InputError if a file cannot be
    read at all.
    """
    with Facts() as facts:
        assert facts.folder is not None
        files = [(name, path, path.stat()) for name, path in dataset.warc_files().items()]
        folder = facts.folder
        if executor.tasks is not None:
            state = [
                str(dataset.root.resolve()),
                digests,
                md5,
                *((name, s.st_size, s.st_mtime_ns) for name, _, s in files),
            ]
            named = hashlib.sha256(json.dumps([__version__, state]).encode()).hexdigest()[:24]
            folder = data_dir() / "archive" / named
            folder.mkdir(parents=True, exist_ok=True)
        jobs = [
            FileJob(number, name, path, stat.st_size, folder / f"{number}.db", digests, md5)
            for number, (name, path, stat) in enumerate(files)
        ]
        work = Jobs(partial(map, survey_file), jobs, folder / "tasks")
        for job, _ in run_missing(work, executor, processes, "B", f"a process was killed while {label}", label):
            if executor.tasks is None:
                facts.merge(job.part)
        for job in filter(FileJob.is_done, jobs):
            facts.merge(job.part)
        if folder != facts.folder:
            shutil.rmtree(folder, ignore_errors=True)
        facts.index()
        yield facts


class _Digest:
    """The digest of the bytes from a place on, with the stated one."""

    def __init__(self, name: str, stated: bytes, start: int) -> None:
        self.name = name
        algorithm, _, self._value = stated.decode("ascii", "replace").partition(":")
        self._start = start
        self._hash: Any = None
        with suppress(TypeError, ValueError):  # no algorithm, one that this machine does not have, or a NUL in its name
            self._hash = hashlib.new(algorithm.lower(), usedforsecurity=False)
        if self._hash is not None and not self._hash.digest_size:  # SHAKE: any length, and the field tells none
            self._hash = None
        self.known = self._hash is not None

    def update(self, piece: bytes, at: int, end: int) -> None:
        """Take the bytes of a piece at ``at`` that lie before ``end``."""
        if self._hash is not None:
            first = max(0, self._start - at)
            last = end - at
            self._hash.update(piece if first == 0 and last >= len(piece) else memoryview(piece)[first : max(0, last)])

    def agrees(self) -> bool:
        """Return whether it is as stated: in Base32, or in hexadecimal digits as some writers have it."""
        return self._value.upper() in {base64.b32encode(self._hash.digest()).decode(), self._hash.hexdigest().upper()}


def faults(frame: Frame, pieces: Iterable[bytes]) -> list[str]:
    """Return the faults of a whole record. Raises CorruptRecord if it cannot be read to its end."""
    record = frame.record
    assert record is not None
    if record.size is None:
        for _ in pieces:
            pass
        return ["has no Content-Length, or one that is no number"]
    digests = []
    found = []
    places = [("block", BLOCK_DIGEST, record.block_at)]
    if record.kind in _WITH_PAYLOAD:
        places.append(("payload", PAYLOAD_DIGEST, frame.http.body_at if frame.http else record.block_at))
    for name, field, start in places:
        stated = record.fields.get(field)
        digest = _Digest(name, stated, start)
        if not stated:
            found.append(f"has no {name} digest")
        elif not digest.known:
            found.append(f"has a {name} digest of an unknown kind")
        else:
            digests.append(digest)
    read, rest = _read(pieces, digests, record.size)
    if read < record.size:
        raise CorruptRecord(f"Content-Length is {record.length:,}, but the block has {read - record.block_at:,} bytes")
    if rest != _END:
        found.append("is not followed by two line ends only: its Content-Length is wrong")
    return found + [
        f"has another {digest.name} than its {digest.name} digest says" for digest in digests if not digest.agrees()
    ]


def _read(pieces: Iterable[bytes], digests: list[_Digest], size: int) -> tuple[int, bytes]:
    """Feed digests with the bytes before ``size``; returns how many bytes there are, and the first ones behind."""
    read, rest = 0, b""
    for piece in pieces:
        for digest in digests:
            digest.update(piece, read, size)
        if read + len(piece) > size and len(rest) <= len(_END):
            rest += piece[max(0, size - read) :][: len(_END) + 1]
        read += len(piece)
    return read, rest
