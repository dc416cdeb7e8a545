"""The files of a collection: archive files, Common Crawl's WET and WAT files beside them, a live crawl's failures."""

from __future__ import annotations

import glob
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from crawl4llm.base.compression import zstd
from crawl4llm.base.crawl_log import FAILURES
from crawl4llm.base.errors import CorruptRecord, InputError, MissingRecord, NoPage, Why, as_input_error
from crawl4llm.base.files import PreadFile
from crawl4llm.base.input_files import LONGEST_LINE, given_path, input_lines, json_or_none, open_input
from crawl4llm.base.reasons import FRONTIER_FULL, HOST_FULL, OPT_OUT
from crawl4llm.base.run_folder import LIVE, SETTINGS, read_json
from crawl4llm.base.shapes import fits
from crawl4llm.base.urls import normalise_url
from crawl4llm.crawl import blocked_around
from crawl4llm.warc import begins_like_archive
from simulate.warcs.index import FAILED, PartColumns

_ARCHIVE_NAME = re.compile(r"(.+\.w?arc)(?:\.(wet|wat))?(?:\.gz|\.zst)?(?:\.open)?", re.IGNORECASE)
"""``.open``: unfinished, as crawlers name files that they still write."""
_COMMENT = re.compile(r"(?:^|\s)#.*")
_MOST_LISTED: Final = 1_000_000
_LONGEST_LINE: Final = 8192
"""Characters of a line in a list; a path takes no more than 4096 bytes."""
_COMPRESSIONS: Final = (".gz", ".zst", "")
_WET, _WAT, _WARC = "wet", "wat", "warc"


class WarcFile(NamedTuple):
    """An archive file, with the WET and WAT files that were made from it.

    Names are paths below the collection's root; those of files elsewhere are absolute.
    """

    name: str
    size: int
    signature: str
    """Sizes and times of change of the files; another one means that they are to be read again."""
    wet: str | None
    wat: str | None


class Collection(NamedTuple):
    """The archive files of a corpus, in the order of their names."""

    given: str
    """As the user named it."""
    root: Path
    files: list[WarcFile]
    blocked: tuple[str, ...]
    """The domains that were blocked in the crawls that the files are of."""
    replay: bool = False
    """True if all of them are of live crawls; the logs of failures of those are among the files."""


def list_files(given: str | Path) -> Collection:
    """Return the files of a collection: a file, a folder with all below it, a glob pattern, or a list of paths.

    A file is an archive file if its name or its first bytes are those of one. Any other file is a list of paths
    relative to the list's folder, one per line, with ``#`` comments, gzip or not. A WET file belongs to the archive
    file that it was made from (in the same folder, or in ``warc`` next to its ``wet``); without that it is an archive
    file itself. Hidden files in folders are ignored.

    Raises InputError if nothing is found.
    """
    path = _absolute(given_path(given))
    folders = _Folders()
    try:
        root, found = _find(path, folders)
        files = _group(root, set(found), folders)
    except OSError as error:
        raise InputError(f"CORPUS {given}: {error.filename} cannot be read ({error.strerror})") from None
    if not files:
        raise InputError(
            f"CORPUS {given}: holds neither a ClueWeb22 tree (txt/, html/, outlink/, inlink/) "
            "nor WARC or ARC files (*.warc, *.warc.gz, *.warc.zst, *.arc, *.arc.gz)"
        )
    places = {(root / file.name).parent for file in files}
    logs = set(map(failures_of, places))
    live = {log for log in logs if log is not None} if None not in logs else set()
    # Names of logs are the same wherever the run lies.
    files += [_described(log, Path(os.path.relpath(log, root)).as_posix(), None, None, root) for log in live]
    return Collection(str(given), root, sorted(files), blocked_around(places), replay=bool(live))


def _find(path: Path, folders: _Folders) -> tuple[Path, Iterable[Path]]:
    """Return the root of the collection at a path, and all its files."""
    if path.is_dir():
        return path, folders.walk([path])
    if path.exists():
        return path.parent, [path] if _is_archive(path) else _read_list(path, folders)
    if glob.has_magic(str(path)):
        return next(parent for parent in path.parents if not glob.has_magic(str(parent))), _glob(path, folders)
    if path.is_symlink():
        path.stat()  # says whether it leads nowhere or in a circle
    raise InputError(f"CORPUS {path}: no such file or folder")


class _Folders:
    """Folders, each read once."""

    def __init__(self) -> None:
        self.entries = cache(_entries)
        self._walked: set[tuple[int, int]] = set()

    def walk(self, paths: Iterable[Path]) -> Iterator[Path]:
        """Yield files, and for each folder the archive files below it. One that symbolic links lead to by several ways
        is entered once."""
        for path in paths:
            if path.is_dir():
                yield from self._below(path)
            else:
                yield path

    def _below(self, folder: Path) -> Iterator[Path]:
        stat = folder.stat()
        if (stat.st_dev, stat.st_ino) in self._walked:
            return
        self._walked.add((stat.st_dev, stat.st_ino))
        for name, entry in sorted(self.entries(folder).items()):
            if name.startswith("."):
                continue
            if entry.is_dir():
                yield from self._below(folder / name)
            elif _ARCHIVE_NAME.fullmatch(name) and entry.is_file():
                yield folder / name


def _entries(folder: Path) -> dict[str, os.DirEntry[str]]:
    """Return the entries of a folder by name; none for a folder that is not there."""
    try:
        with os.scandir(folder) as entries:
            return {entry.name: entry for entry in entries}
    except (FileNotFoundError, NotADirectoryError):
        return {}


def _glob(pattern: Path, folders: _Folders) -> Iterator[Path]:
    matches = glob.glob(str(pattern), recursive=True)  # noqa: PTH207 - the pattern may begin anywhere
    if not matches:
        raise InputError(f"CORPUS {pattern}: matches no file")
    return folders.walk([_absolute(Path(match)) for match in matches])


def _is_archive(path: Path) -> bool:
    return _ARCHIVE_NAME.fullmatch(path.name) is not None or begins_like_archive(path)


def _read_list(path: Path, folders: _Folders) -> Iterator[Path]:
    listed: dict[Path, int] = {}
    no_list = f"CORPUS {path}: is neither a WARC or ARC file nor a list of such files"
    errors = (OSError, EOFError, UnicodeDecodeError, zlib.error, zstd.ZstdError)
    with as_input_error(no_list, form="{} ({})", errors=errors):
        for number, line in enumerate(input_lines(path, longest=_LONGEST_LINE), 1):
            if name := _COMMENT.sub("", line).strip():
                listed.setdefault(_absolute(path.parent / name), number)
            if len(listed) > _MOST_LISTED:
                many = f"lists more than {_MOST_LISTED:,} files; list folders, or a glob pattern"
                raise InputError(f"CORPUS {path}: {many}")
    for file, number in listed.items():
        if not file.exists():
            raise InputError(f"CORPUS {path}, line {number}: no such file: {file}")
    return folders.walk(listed)


def _group(root: Path, found: set[Path], folders: _Folders) -> list[WarcFile]:
    """Group WET and WAT files with the archive files that they were made from."""
    files = []
    for path in found:
        kind = _kind(path)
        if kind == _WAT or (kind == _WET and not found.isdisjoint(_siblings(path, _WARC, folders))):
            continue
        wet = None if kind == _WET else next(_siblings(path, _WET, folders), None)
        wat = next(_siblings(path, _WAT, folders), None)
        files.append(_described(path, _name(root, path), wet, wat, root))
    return files


def _described(path: Path, name: str, wet: Path | None, wat: Path | None, root: Path) -> WarcFile:
    stats = [part.stat() for part in (path, wet, wat) if part]
    signature = " ".join(f"{stat.st_size}@{stat.st_mtime_ns}" for stat in stats)
    beside = (None if part is None else _name(root, part) for part in (wet, wat))
    return WarcFile(name, stats[0].st_size, signature, *beside)


def _kind(path: Path) -> str:
    parts = _ARCHIVE_NAME.fullmatch(path.name)
    return ((parts and parts[2]) or _WARC).lower()


def _siblings(path: Path, kind: str, folders: _Folders) -> Iterator[Path]:
    """Yield the files of another kind that belong to ``path``, as ``X.warc.wet.gz`` does to ``X.warc.gz``."""
    parts = _ARCHIVE_NAME.fullmatch(path.name)
    stem = parts[1] if parts else path.name
    infix = "" if kind == _WARC else f".{kind}"
    for folder in (path.parent, path.parent.parent / kind):
        for compression in _COMPRESSIONS:
            name = f"{stem}{infix}{compression}"
            if name in folders.entries(folder):
                yield folder / name


def _absolute(path: Path) -> Path:
    """Return a path with no ``..`` in it, so that one file has one path; symbolic links stay."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - Path.resolve() would follow symbolic links


def _name(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


_NEVER_ASKED_FOR: Final = {FRONTIER_FULL, HOST_FULL, OPT_OUT}
_REDIRECTED: Final = "redirected"
"""The outcome of documents whose redirects are in the archive, like those on the way to a page."""
_COUNT: Final = "not_had"


def failures_of(folder: Path) -> Path | None:
    """Return the log of failures of the live crawl that wrote the archive files in a folder; None if no live crawl did.

    Without the log, links to failed documents would lead nowhere. The crawl took these documents from its frontier, and
    so does a simulation.
    """
    run = folder.parent
    log = run / FAILURES
    return log if log.is_file() and read_json(run / SETTINGS).get("corpus") == LIVE else None


def is_failures(name: str) -> bool:
    """Return whether a file of a collection is a log of failures."""
    return Path(name).name == FAILURES


def scan_failures(path: Path) -> PartColumns:
    """Index a log of failures. Raises OSError if it cannot be read; lines cut short are counted as damaged."""
    part = PartColumns()
    offset = 0
    with open_input(path) as lines:
        while line := lines.readline(LONGEST_LINE):
            failure = _parse(line)
            if failure is None:
                part.counts["damaged"] += 1
            elif failure["reason"] not in _NEVER_ASKED_FOR and failure["outcome"] != _REDIRECTED:
                part.add_document((offset, len(line)), FAILED, normalise_url(failure["id"]), digest=b"", name=b"")
                part.counts[_COUNT] += 1
            offset += len(line)
    return part


def read_failure(path: Path, offset: int, length: int, make: str) -> NoPage:
    """Return the crawl's failure of a document. Raises MissingRecord, and CorruptRecord if the log has changed."""
    try:
        failure = _parse(PreadFile(path).read(length, offset))
    except FileNotFoundError:
        raise MissingRecord(f"{path}: was removed after indexing; run {make}") from None
    if failure is None:
        raise CorruptRecord(f"{path}: no line at {offset}; if the file has changed, run {make}")
    rule = failure.get("rule")
    why = Why(rule, failure.get("digest"), failure.get("time")) if isinstance(rule, str) else None
    message = f"{failure['id']}: {failure['reason']}"
    return NoPage(message, failure["reason"], wanted=failure["outcome"] == "failed", why=why)


def _parse(line: bytes) -> dict[str, Any] | None:
    failure = json_or_none(line)
    return failure if fits([failure], {"id": {str}, "reason": {str}, "outcome": {str}}) else None
