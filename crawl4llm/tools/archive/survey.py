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

from crawl4llm import warc
from crawl4llm.base.errors import CorruptRecord, as_input_error
from crawl4llm.base.files import sync_path
from crawl4llm.base.jobs import KILLED, UNDIVIDED, Executor, Jobs, Told, run_missing
from crawl4llm.base.object_store import open_archive_file
from crawl4llm.base.version import __version__
from crawl4llm.tools.archive.facts import OF_NO_PAGE, TEXT, UNREADABLE, Facts, Row, hashed
from crawl4llm.tools.archive.folder import Dataset, writing
from crawl4llm.tools.export.folder import exclusive
from simulate import data_dir

_RECORD_ID, _REFERS_TO = warc.field_name("WARC-Record-ID"), warc.field_name("WARC-Refers-To")
_NUMBER_OF_DOCUMENTS, _FILE_LENGTH = warc.field_name("WARC-Number-of-Documents"), warc.field_name("WARC-File-Length")
LINE_ENDS: Final = 4
"""Bytes behind a record's block (ISO 28500:2017, 4)."""
_DOCUMENT = re.compile(rb"(?m)^id: ?([^\r\n]*)")
_OF_NO_PAGE = re.compile(rb"(?m)^(?:redirected-to|purpose):")
_REPEATED: Final = (*warc.ABOUT, "language", "influence")
"""Fields of metadata records that the indexes or the crawl log repeat."""
_ABOUT = re.compile(rb"(?m)^(%b): ([^\r\n]+)" % "|".join(_REPEATED).encode())
_CONCURRENT = re.compile(rb"(?im)^WARC-Concurrent-To:([^\n]*)")
"""A field that may be repeated (ISO 28500:2017, 5.7)."""
_LARGEST_METADATA: Final = 1 << 20
_HASHED: Final = 1 << 22
_KINDS: Final = {"warcinfo", "response", "resource", "request", "metadata", "revisit", "conversion", "continuation"}
BLOCK_DIGEST, PAYLOAD_DIGEST = warc.field_name("WARC-Block-Digest"), warc.field_name("WARC-Payload-Digest")
_WITH_PAYLOAD: Final = frozenset({"response", "resource", "conversion"})
"""Records that hold a payload of which we know where it begins; a revisit's digest is of another record's."""
_END: Final = b"\r\n\r\n"
CHANGED: Final = "changed while it was read"


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
    """Read a WARC file into a database of its own, which is put in place whole. Raises InputError."""
    temporary = job.part.with_name(f"{job.part.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    with Facts(temporary) as facts, as_input_error(f"{job.path} cannot be read"):
        before = job.path.stat()
        md5 = md5_of(job.path) if job.md5 else None
        try:
            stated = _survey(job, facts)
        except warc.UnreadableFile as error:
            facts.problem(job.name, 0, str(error).removeprefix(f"{job.path}: "))
            facts.add("damage", [(job.number, 0, job.size)])
            stated = 0, "", ""
        facts.add("files", [(job.number, job.name, before.st_mtime_ns, md5, *stated)])
        after = job.path.stat()
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            facts.problem(job.name, None, CHANGED)
    sync_path(temporary)
    temporary.replace(job.part)


def md5_of(path: Path) -> str:
    md5 = hashlib.md5(usedforsecurity=False)
    file, at = open_archive_file(path), 0
    while data := file.read(_HASHED, at):
        md5.update(data)
        at += len(data)
    return md5.hexdigest()


def _survey(job: FileJob, facts: Facts) -> tuple[int, str, str]:
    """Note all records; returns bytes, decompressed, and the counts in the file's warcinfo, as in ClueWeb12."""
    reader = warc.WarcReader(job.path)
    read, page, documents, length = 0, 0, "", ""
    for stretch in reader.stretches():
        if stretch.frame is None:
            at_end = stretch.offset + stretch.length >= reader.size
            what = f"{stretch.length:,} bytes hold no whole record"
            facts.problem(job.name, stretch.offset, f"cut short: the last {what}" if at_end else f"damaged: {what}")
            facts.add("damage", [(job.number, stretch.offset, stretch.length)])
            page += 1
            continue
        record = stretch.frame.record
        assert record is not None
        row, targets, found = _inspect(job, reader, stretch, stretch.frame, record)
        row = row._replace(page=page)
        page += row.doc is not None or row.kind in {OF_NO_PAGE, UNREADABLE}
        read += row.size + LINE_ENDS
        if row.kind == "warcinfo":
            documents, length = record.fields.text(_NUMBER_OF_DOCUMENTS), record.fields.text(_FILE_LENGTH)
        facts.add("records", [row])
        facts.add("refs", [(job.number, stretch.offset, target) for target in targets])
        for what in found:
            facts.problem(job.name, stretch.offset, f"{row.kind or 'record'} {what}")
    return read, documents, length


def _inspect(
    job: FileJob, reader: warc.WarcReader, stretch: warc.Stretch, frame: warc.Frame, record: warc.Record
) -> tuple[Row, Sequence[bytes], Sequence[str]]:
    """Return a record's row, the hashes of the records that it belongs to, and its faults."""
    get, http = record.fields.get, frame.http
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
        doc, of_no_page, about = _described(frame, record) if kind == "metadata" else (None, False, None)
        if of_no_page:
            kind = OF_NO_PAGE
        if job.digests:
            found += faults(frame, record, reader.pieces(stretch.offset, stretch.length))
    except CorruptRecord as error:
        found.append(str(error))
        kind, doc, about = UNREADABLE, None, None
    mime = warc.index_mime((http.fields if http else record.fields).text(warc.CONTENT_TYPE))
    row = Row(
        file=job.number,
        offset=stretch.offset,
        length=stretch.length,
        kind=kind,
        name=name.decode("utf-8", "replace"),
        refers=hashed(refers) if refers else None,
        url=get(warc.TARGET_URI).strip(b"<>").decode("utf-8", "replace"),
        date=record.fields.text(warc.DATE),
        digest=record.fields.text(PAYLOAD_DIGEST),
        mime=warc.REVISIT_MIME if kind == "revisit" else mime,
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


def _described(frame: warc.Frame, record: warc.Record) -> tuple[str | None, bool, str | None]:
    """Return the document key in a metadata record of a crawl, whether it belongs to an exchange without a page, and
    the fields that indexes and log repeat."""
    opening, size = frame.opening, min(record.size or 0, _LARGEST_METADATA)
    while len(opening.data) < size and opening.grow():
        pass
    key = _DOCUMENT.search(opening.data, record.block_at, size)
    of_no_page = key is None and _OF_NO_PAGE.search(opening.data, record.block_at, size) is not None
    found = {name.decode(): value.decode("utf-8", "replace") for name, value in _ABOUT.findall(opening.data[:size])}
    about = json.dumps({name: found[name] for name in _REPEATED if name in found}) if found else None
    return key[1].decode("utf-8", "replace") if key else None, of_no_page, about


@contextmanager
def surveyed(
    dataset: Dataset, processes: int | None, *, digests: bool = False, md5: bool = False, executor: Executor = UNDIVIDED
) -> Iterator[Facts]:
    """Read all WARC files of a dataset, with a progress bar; ``digests`` and ``md5`` as in FileJob.

    The findings in each file stay in Scrapy's data dir until all files are read, also if other files change meanwhile.
    Raises InputError if a file cannot be read at all, or another process reads the same.
    """
    files = [(name, path, path.stat()) for name, path in dataset.warc_files().items()]
    states = [_short(name, stat.st_size, stat.st_mtime_ns) for name, _, stat in files]
    folder = data_dir() / "archive" / _short(__version__, str(dataset.root.resolve()), digests, md5)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with Facts() as facts:
        with exclusive(folder):
            jobs = [
                FileJob(number, name, path, stat.st_size, folder / f"{number}.{states[number]}.db", digests, md5)
                for number, (name, path, stat) in enumerate(files)
            ]
            work = Jobs(partial(map, survey_file), jobs, folder / f"tasks.{_short(*states)}")
            for _ in run_missing(work, executor, processes, Told("B", KILLED, "reading")):
                pass
            for job in jobs:
                facts.merge(job.part)
            shutil.rmtree(folder, ignore_errors=True)
        facts.index()
        yield facts


def _short(*state: object) -> str:
    return hashlib.sha256(json.dumps(state).encode()).hexdigest()[:24]


def faults(frame: warc.Frame, record: warc.Record, pieces: Iterable[bytes]) -> list[str]:
    """Return the faults of a whole record. Raises CorruptRecord if it cannot be read to its end."""
    if record.size is None:
        for _ in pieces:
            pass
        return ["has no Content-Length, or one that is no number"]
    digests, found = _stated_digests(frame, record)
    read, rest = 0, b""
    for piece in pieces:
        end = max(0, record.size - read)
        for _, digest, _, start in digests:
            digest.update(memoryview(piece)[max(0, start - read) : end])
        rest = (rest + piece[end : end + len(_END) + 1])[: len(_END) + 1]
        read += len(piece)
    if read < record.size:
        raise CorruptRecord(f"Content-Length is {record.length:,}, but the block has {read - record.block_at:,} bytes")
    if rest != _END:
        found.append("is not followed by two line ends only: its Content-Length is wrong")
    for name, digest, value, _ in digests:  # in Base32, or in hexadecimal digits as some writers have it
        if value.upper() not in {base64.b32encode(digest.digest()).decode(), digest.hexdigest().upper()}:
            found.append(f"has another {name} than its {name} digest says")
    return found


def _stated_digests(frame: warc.Frame, record: warc.Record) -> tuple[list[tuple[str, Any, str, int]], list[str]]:
    """Return name, hash, value and first byte of each digest of a record, and the faults of others."""
    digests, found = [], []
    places = [("block", BLOCK_DIGEST, record.block_at)]
    if record.kind in _WITH_PAYLOAD:
        places.append(("payload", PAYLOAD_DIGEST, frame.http.body_at if frame.http else record.block_at))
    for name, field, start in places:
        stated = record.fields.get(field)
        digest, value = _digest(stated)
        if not stated:
            found.append(f"has no {name} digest")
        elif digest is None:
            found.append(f"has a {name} digest of an unknown kind")
        else:
            digests.append((name, digest, value, start))
    return digests, found


def _digest(stated: bytes) -> tuple[Any, str]:
    """Return a hash of the algorithm of a digest, None for an unknown one, and the digest's value."""
    algorithm, _, value = stated.decode("ascii", "replace").partition(":")
    with suppress(TypeError, ValueError):  # no algorithm, one that this machine does not have, or a NUL in its name
        digest = hashlib.new(algorithm.lower(), usedforsecurity=False)
        if digest.digest_size:  # SHAKE: any length, and the field tells none
            return digest, value
    return None, value
