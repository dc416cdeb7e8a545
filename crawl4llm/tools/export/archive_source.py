"""The source of documents in our own archives: nothing but their index and the crawl log is read. Opens others too."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from crawl4llm.base import crawl_log
from crawl4llm.base.command_lines import command
from crawl4llm.base.errors import InputError, PageError, as_input_error
from crawl4llm.base.input_files import LONGEST_LINE, digest_of, open_input, parse_json
from crawl4llm.base.jobs import UNDIVIDED, Executor
from crawl4llm.base.object_store import open_archive_file
from crawl4llm.base.reasons import BLOCKLIST, NO_TEXT
from crawl4llm.base.received import Given
from crawl4llm.base.run_folder import WARC, run_of_archive
from crawl4llm.base.shapes import If, Maybe, fits
from crawl4llm.base.within import require_within
from crawl4llm.crawl import read_blocked
from crawl4llm.optouts import FILES, LARGEST_FILE, OfDomain, OfPage, OptOut, product_token
from crawl4llm.parts import published
from crawl4llm.tools.export.documents import Row, SourceFile, load_all, locate
from crawl4llm.tools.export.sources import Source, WarcSource, first_warcinfo, run_settings, source_file
from crawl4llm.tools.opened_run import Alongside, run_folder
from crawl4llm.warc import OPEN_SUFFIX, Frame, Record, RecordReader, UnreadableFile, cdxj, field_name, scan
from simulate import is_clueweb22, read_site_file

NOT_INDEXED, REVISIT, NOT_HTML, DAMAGED = "not_indexed", "revisit", "not_html", "damaged"
_MAY_HAVE_TEXT = {REVISIT, NOT_HTML}
_HTML_TYPES = {"text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"}
_CONTENT_KINDS = {"response", "resource", "conversion", "revisit"}
_REFERS_TO = field_name("WARC-Refers-To")
_NO_TEXT_DIGEST = "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
"""Digest of the empty text."""
_CHUNK = 1 << 20
_LARGEST_FILE = 2**62
_ENDINGS: Final = (".warc", ".warc.gz", ".warc.zst")
"""Ends of the names of archive files, not of the bytes that a repair cut off."""
_FIELDS = {"id", "url", "digest", "mime", "filename", "offset", "length"}
"""Fields of each entry of an index, which may have more."""

V = TypeVar("V")
Fault = Callable[[Exception], str]
_LINES_AT_ONCE = 256
_MARKS: Final = tuple(f'"{name}": '.encode() for name in (cdxj.PURPOSE, cdxj.SIGNALS))
"""Parts of the lines of exchanges that are no page's, and of pages with signals."""
_PAGE: Final = {
    **{name: {str} for name in ("id", "url", "digest", "mime")},
    **{name: If(Maybe({str})) for name in ("status", *cdxj.ABOUT)},
}
_TEXT: Final = {"id": {str}, "digest": {str}, "language": If(Maybe({str}))}
"""The fields of the lines of both indexes, besides the place."""


class _Entry(NamedTuple):
    """A line of an index."""

    date: str
    fields: Mapping[str, Any]
    file: int
    offset: int
    length: int

    @property
    def end(self) -> int:
        return self.offset + self.length


class ArchiveSource(Source):
    """The archive in a folder of WARC files with ``index.cdxj``, and the crawl log of the run it is of.

    Pages of domains that its block lists have at last are left out. Raises InputError if a file that the index names is
    missing, or is a link to another place.
    """

    def __init__(self, given: str, folder: Path, run: Path | None) -> None:
        self.given = given
        self.run = run
        self.settings = run_settings(run)
        self.left_out = Counter()
        self._log = None if run is None else run / crawl_log.NAME
        self._index, self._texts = folder / cdxj.INDEX_NAME, folder / cdxj.TEXT_INDEX_NAME
        self._blocked = read_blocked(run or folder)  # a copy of an archive has these files too
        self._lists = published(run or folder)
        found = (path for path in folder.rglob("*.warc*") if path.is_file())  # ClueWeb12's layout has folders
        paths = sorted(path for path in found if path.name.removesuffix(OPEN_SUFFIX).endswith(_ENDINGS))
        names = [path.relative_to(folder).as_posix() for path in paths]
        self._numbers = {name.removesuffix(OPEN_SUFFIX): number for number, name in enumerate(names)}
        self.files = [source_file(path, folder / "points", named=True) for path in paths]
        read = [path for path in (self._index, self._texts, self._log) if path is not None and path.exists()]
        require_within(run or folder, folder, *paths, *read)
        self.facts = {
            "given": given,
            "kind": "archive" if run is None else "run",
            "crawl_id": self.settings.get("crawl_id"),
            "model_digest": self.settings.get("model_digest"),
            "digests": {path.name: f"sha256:{digest_of(path)}" for path in read},
            "files": {name: file.size for name, file in zip(names, self.files, strict=True)},
            **({"blocked": self._blocked} if self._blocked else {}),
            **({"blocklists": [one.digest for one in self._lists.lists]} if self._lists else {}),
        }
        self.warcinfo = first_warcinfo(self.files[0]) if self.files else {}
        self._crawler = product_token(self.warcinfo.get("http-header-user-agent", ""))

    def rows(self, first_file: int) -> Iterator[Row]:
        influences = Alongside(self._influences())
        texts = Alongside((text.fields["id"], text) for text in self._entries(self._texts, _TEXT))
        ends = [0] * len(self.files)
        entries = self._entries(self._index, _PAGE)
        for entry, following in pairwise(chain(entries, [None])):
            assert entry is not None
            key, url, mime = (entry.fields[name] for name in ("id", "url", "mime"))
            ends[entry.file] = max(ends[entry.file], entry.end)
            next_at = self.files[entry.file].size
            if following and following.file == entry.file and following.offset >= entry.end:
                next_at = following.offset  # in the storage of a cluster they are not in crawl order
            reason = BLOCKLIST if self._lists.find(url) else _reason(mime, entry.fields.get("status"))
            text = texts.take(key) if reason is None or reason in _MAY_HAVE_TEXT else None
            language = text and text.fields.get("language")
            if text is not None:
                reason = None
                ends[text.file] = text.end
            elif mime == "text/plain":
                text = entry
            if text is not None and text.fields["digest"] == _NO_TEXT_DIGEST:
                reason = NO_TEXT
            score = influences.take(key) if reason is None else None
            if key:  # a redirect on the way to a page has none
                yield Row(
                    id=key,
                    url=url,
                    date=entry.date,
                    digest=entry.fields["digest"],
                    file=first_file + entry.file,
                    offset=entry.offset,
                    length=entry.length,
                    after=max(next_at - entry.end, 0),
                    text=(first_file + text.file, text.offset, text.length) if text else None,
                    influence=score[0] if score else None,
                    language=language or None,
                    scored=score is not None,
                    reason=reason,
                    signals=entry.fields.get(cdxj.SIGNALS) or "",
                )
        for left in map(_content_after, self.files, ends):
            self.left_out.update(left)

    def heard(self) -> Iterator[OptOut]:
        """Yield blocked domains, the records of robots.txt and tdmrep.json, and the signals of pages. Raises
        InputError."""
        yield from map(OfDomain, self._blocked)
        records = RecordReader(partial(locate, self.files), LARGEST_FILE)
        for entry in self._entries(self._index, _PAGE, _MARKS):
            url, purpose, site, signals = (entry.fields.get(name) or "" for name in ("url", *cdxj.ABOUT))
            if purpose in FILES:
                with suppress(PageError, OSError):  # a damaged one says nothing
                    stored = records.read(entry.file, entry.offset, entry.length)
                    if found := read_site_file(stored, purpose, site, entry.date, self._crawler):
                        yield found
            elif signals:
                yield OfPage(url, entry.date, signals)

    def _entries(self, path: Path, shape: Mapping[str, Any], marks: Sequence[bytes] = ()) -> Iterator[_Entry]:
        """Return the entries of an index, parsed many at once to save time; none if there is no such file. With
        ``marks``: only those of lines with one. Raises InputError."""

        def parse(lines: Sequence[bytes]) -> list[_Entry]:
            wanted = [line for line in lines if any(mark in line for mark in marks)] if marks else lines
            parsed = list(cdxj.parse_many(wanted))
            if not fits([fields for _, fields in parsed], shape):
                raise ValueError("no entry of this index")
            return [self._entry(stamp, fields) for stamp, fields in parsed]

        def fault(error: Exception) -> str:
            if isinstance(error, KeyError) and error.args[0] not in _FIELDS:
                return f"names {error.args[0]}, which is not in {path.parent}"
            return "is not an entry of an index; is the file damaged?"

        return read_values(path, parse, fault)

    def _entry(self, stamp: bytes, fields: Mapping[str, Any]) -> _Entry:
        """Return an entry. Raises ValueError if it has no time stamp, or names no place in a file."""
        file, offset, length = self._numbers[fields["filename"]], int(fields["offset"]), int(fields["length"])
        if not (stamp.isdigit() and 0 <= offset <= _LARGEST_FILE and 0 <= length <= _LARGEST_FILE):
            raise ValueError("no time stamp or place")
        return _Entry(_date(stamp), fields, file, offset, length)

    def _influences(self) -> Iterator[tuple[str, tuple[float | None]]]:
        if self._log is None:
            return iter(())
        return read_values(self._log, _id_and_influence, lambda _: "is not one of a crawl log; is the file damaged?")


def _id_and_influence(lines: Sequence[bytes]) -> list[tuple[str, tuple[float | None]]]:
    found = load_all(lines)
    if not fits(found, {"id": {str}, "influence": Maybe({int, float})}):
        raise ValueError("no line of a log")
    return [(fields["id"], (fields["influence"],)) for fields in found]


@lru_cache(maxsize=1024)
def _reason(mime: str, status: str | None) -> str | None:
    """Return why an entry is no page with content for a text; None if it is one."""
    if mime == "warc/revisit":
        return REVISIT
    if status is not None and not status.startswith("2"):
        return f"http_{status}"
    return None if mime in _HTML_TYPES or (mime == "text/plain" and status is None) else NOT_HTML


@lru_cache(maxsize=64)
def _date(stamp: bytes) -> str:
    """Return a time stamp of an index as W3C date-time; pages near each other often have the same."""
    at = stamp.decode()
    return f"{at[:4]}-{at[4:6]}-{at[6:8]}T{at[8:10]}:{at[10:12]}:{at[12:14]}Z"


def _content_after(file: SourceFile, end: int) -> Counter[str]:
    """Count the pages in a file from offset ``end`` on, which the index does not name, and damaged records.

    There are some after a crawl that was killed, and while one runs.
    """
    if file.size <= end:
        return Counter()

    def count(frames: Iterable[Frame]) -> Counter[str]:
        records = [frame.record for frame in frames]
        return Counter(NOT_INDEXED if record else DAMAGED for record in records if record is None or _is_page(record))

    reading = as_input_error(f"{file.path} cannot be read")
    with reading, suppress(UnreadableFile), tempfile.TemporaryDirectory(prefix="crawl4llm-") as folder:
        rest, source = Path(folder) / "rest", open_archive_file(Path(file.path))
        with rest.open("wb") as copy:
            while data := source.read(_CHUNK, end):
                copy.write(data)
                end += len(data)
        return scan(rest, Path(folder) / "points", count)
    return Counter({DAMAGED: 1})


def _is_page(record: Record) -> bool:
    """Return whether a record of ours holds a page; a text that was taken from one refers to it."""
    return record.kind in _CONTENT_KINDS and not (record.kind == "conversion" and record.fields.get(_REFERS_TO))


def read_values(path: Path, parse: Callable[[Sequence[bytes]], list[V]], fault: Fault) -> Iterator[V]:
    """Yield the lines of a file as ``parse`` returns them, a value per line; none if there is no such file.

    The last line counts only when it is whole. Raises InputError if the file cannot be read, and if ``parse`` raises
    LookupError, TypeError or ValueError: it names the line, and says what ``fault`` says of the error.
    """
    with as_input_error(f"{path} cannot be read"), suppress(FileNotFoundError), open_input(path) as file:
        number = 1
        while lines := list(islice(file, _LINES_AT_ONCE)):
            if not lines[-1].endswith(b"\n"):
                lines.pop()
            if not lines:
                return
            try:
                values = parse(lines)
            except (LookupError, TypeError, ValueError):
                _find_fault(path, number, lines, parse, fault)
                raise
            number += len(lines)
            yield from values


def _find_fault(
    path: Path, first: int, lines: Sequence[bytes], parse: Callable[[Sequence[bytes]], object], fault: Fault
) -> None:
    """Raise InputError that names the first line which cannot be parsed."""
    for number, line in enumerate(lines, first):
        try:
            parse([line])
        except (LookupError, TypeError, ValueError) as error:
            raise InputError(f"{path} line {number}: {fault(error)}") from None


def open_source(given: str, settings: Given, processes: int, executor: Executor = UNDIVIDED) -> Source:
    """Open a source by its name; ``processes``, or the tasks of ``executor``, index it if it has no index.

    Raises InputError.
    """
    path = run_folder(given, settings)
    if (path / crawl_log.NAME).is_file():
        if not (path / WARC / cdxj.INDEX_NAME).is_file():
            raise InputError(f"{given}: {_without_index(path)}")
        return ArchiveSource(given, path / WARC, path)
    if _is_ours(path / cdxj.INDEX_NAME):
        return ArchiveSource(given, path, run_of_archive(path))
    if is_clueweb22(path):
        raise InputError(f"{given}: is a ClueWeb22 tree; give the OUTPUT_DIR of a crawl of it, which has its opt-outs")
    return WarcSource(given, processes, executor)


def _is_ours(index: Path) -> bool:
    """Return whether a file is an index as our archives have them: its lines name documents."""
    try:
        with open_input(index) as lines:
            line = lines.readline(LONGEST_LINE)
        return not line or "id" in parse_json(line.split(b" ", 2)[2])
    except (OSError, LookupError, TypeError, ValueError):
        return False


def _without_index(run: Path) -> str:
    folder = run / WARC
    if folder.is_dir() and any(".warc" in path.suffixes for path in folder.iterdir()):
        return f"{WARC}/{cdxj.INDEX_NAME} is missing; make it again: {command('archive', 'repair', run)}"
    return f"this crawl has no archive ({WARC}/{cdxj.INDEX_NAME}); WARC_ENABLED was off"
