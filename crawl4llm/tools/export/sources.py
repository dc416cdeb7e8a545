"""The sources of an export: run folders, folders of our own WARC files, and WARC files of any origin."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Protocol

from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.input_files import given_path
from crawl4llm.base.jobs import UNDIVIDED, Executor
from crawl4llm.base.run_folder import SETTINGS, read_json
from crawl4llm.optouts import OfPage, OfSite, is_known
from crawl4llm.tools.export.card import OPT_OUT_FIELDS
from crawl4llm.tools.export.documents import Row, SourceFile
from crawl4llm.tools.export.filters import DUPLICATE_ID, judged
from crawl4llm.warc import Frame, UnreadableFile, scan
from simulate import (
    DAMAGED,
    FAILED,
    HTML,
    NO_LENGTH,
    NO_URL,
    NOT_HTML,
    REVISIT,
    REVISITED,
    UNTYPED,
    Document,
    WarcIndex,
    build_warc_index,
    index_folder,
    is_current,
    list_files,
    points_path,
)

_LARGEST_WARCINFO = 1 << 16
UNREADABLE_FILE = "unreadable_file"
_LEFT_OUT = {DAMAGED, NO_LENGTH, NO_URL, NOT_HTML, UNTYPED}


class Source(Protocol):
    """A source of documents."""

    given: str
    """As the user named it."""
    run: Path | None
    """The output directory of the crawl it is of, None if it is of none."""
    files: Sequence[SourceFile]
    facts: Mapping[str, Any]
    """Its entry of the manifest: equal for equal sources."""
    settings: Mapping[str, Any]
    """``settings.json`` of the run it is from; empty without one."""
    left_out: Counter[str]
    """Records that are no documents, by reason; complete once :meth:`rows` has ended."""

    def rows(self, first_file: int) -> Iterator[Row]:
        """Yield the documents in the order of the archive; ``first_file`` is the number of its first file."""
        ...

    def heard(self) -> Iterator[OfPage | OfSite]:
        """Yield its opt-outs that may be later than a page."""
        ...

    @property
    def knows_opt_outs(self) -> bool:
        """True if it has the opt-outs of all its pages: those in heads of responses and in files of sites."""
        return is_known(opt_out_notes(self).get("opt-out"))


def opt_out_notes(source: Source) -> dict[str, str]:
    """Return the fields about robots.txt (ISO 28500:2017, 6.2) and opt-outs in the warcinfo of an archive of ours.

    Empty if there are none: other archives name them differently, or say nothing.
    """
    return {name: value for name, value in warcinfo_of(source).items() if name in OPT_OUT_FIELDS}


def warcinfo_of(source: Source) -> dict[str, str]:
    """Return the fields of the first warcinfo record of an archive of ours; empty for those of others."""
    if not source.files or not source.files[0].named:
        return {}
    path = Path(source.files[0].path)
    with suppress(OSError, UnreadableFile), tempfile.TemporaryDirectory(prefix="crawl4llm-") as folder:
        return scan(path, Path(folder) / "points", _first_warcinfo)
    return {}


def _first_warcinfo(frames: Iterable[Frame]) -> dict[str, str]:
    frame = next(iter(frames), None)
    if frame is None or frame.record is None or frame.record.kind != "warcinfo":
        return {}
    while len(frame.opening.data) < min(frame.record.size or 0, _LARGEST_WARCINFO) and frame.opening.grow():
        pass
    block = frame.record.block(frame.opening.data).decode("utf-8", "replace")
    fields = (line.partition(":") for line in block.splitlines())
    return {name: value.strip() for name, _, value in fields}


def changed_file(files: Sequence[SourceFile]) -> str | None:
    """Return the first of some files that has changed; None if none has."""
    for file in files:
        try:
            stat = Path(file.path).stat()
        except OSError:
            return file.path
        if (stat.st_size, stat.st_mtime_ns) != (file.size, file.changed):
            return file.path
    return None


def source_file(path: Path, points: Path, *, named: bool) -> SourceFile:
    """Describe a file as it is now. Raises InputError if it cannot be read."""
    with as_input_error(f"{path} cannot be read"):
        stat = path.stat()
    return SourceFile(str(path), stat.st_size, stat.st_mtime_ns, str(points), named)


def run_settings(run: Path | None) -> Mapping[str, Any]:
    """Read ``settings.json`` of a run, if there is one. Raises InputError if it is damaged."""
    settings = {} if run is None else read_json(run / SETTINGS)
    if run is not None and not settings and (run / SETTINGS).exists():
        raise InputError(f"{run / SETTINGS} is damaged; restore the crawl's own, or remove it to export without it")
    return settings


class WarcSource(Source):
    """Archive files as ``CORPUS`` names them; their texts are those of the WET files beside them, if any.

    The first of several pages with one URL is taken. Raises InputError if there are no files or no pages.
    """

    def __init__(self, given: str, processes: int, executor: Executor = UNDIVIDED) -> None:
        self.given = given
        self.run = None
        self.settings = {}
        folder = index_folder(given_path(given))
        try:
            collection = list_files(given)
            if not is_current(collection, folder):
                build_warc_index(collection, folder, processes=processes, executor=executor)
        except InputError as error:
            raise InputError(str(error).removeprefix("CORPUS ")) from None
        self._index = WarcIndex(folder)
        manifest = self._index.manifest
        counts = {what: count for what, count in manifest["counts"].items() if what in _LEFT_OUT or what[:5] == "http_"}
        self.left_out = Counter(counts)
        self.left_out += Counter({DUPLICATE_ID: manifest["duplicates"], UNREADABLE_FILE: len(manifest["unreadable"])})
        names = [name for names in manifest["files"] for name in names[:2] if name]
        self._numbers = {name: number for number, name in enumerate(names)}
        self.files = [source_file(collection.root / name, points_path(folder, name), named=False) for name in names]
        sizes = {name: file.size for name, file in zip(names, self.files, strict=True)}
        self.facts = {"given": given, "kind": "warc", "files": sizes}

    def heard(self) -> Iterator[OfPage | OfSite]:
        """Yield nothing: the index has given each page the signals in its files."""
        return iter(())

    @property
    def knows_opt_outs(self) -> bool:
        return not self._index.manifest["opt_outs_unknown"]

    def rows(self, first_file: int) -> Iterator[Row]:
        index = self._index
        documents = (index.document(position) for position in range(len(index)))
        pages = (document for document in documents if document.kind != FAILED)
        for document, following in pairwise(chain(pages, [None])):
            assert document is not None
            offset, length = document.offset, document.length
            file = self._file(document, wet=False)
            next_at = following.offset if following and following.file == document.file else self.files[file].size
            text_at = None
            if document.kind not in {HTML, REVISITED}:
                text_at = [first_file + file, offset, length]
            elif document.text_length:
                text_file = first_file + self._file(document, wet=True)
                text_at = [text_file, document.text_offset, document.text_length]
            key = document.key.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            row = Row(
                id=key,
                url=key,
                date=None,
                digest=None,
                file=first_file + file,
                offset=offset,
                length=length,
                after=max(next_at - offset - length, 0),
                text=text_at,
                reason=REVISIT if document.kind == REVISITED and text_at is None else None,
                signals=document.signals,
            )
            yield judged(row) if row.reason is None else row

    def _file(self, document: Document, *, wet: bool) -> int:
        """Return the number of its file, or of the WET file of that, among those of this source."""
        return self._numbers[self._index.manifest["files"][document.file][1 if wet else 0]]
