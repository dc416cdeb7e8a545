"""The sources of an export: run folders, folders of our own WARC files, and WARC files of any origin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Protocol

import simulate
from crawl4llm.base.errors import InputError, PageError, as_input_error
from crawl4llm.base.input_files import given_path
from crawl4llm.base.jobs import UNDIVIDED, Executor
from crawl4llm.base.run_folder import SETTINGS, read_json
from crawl4llm.optouts import OptOut, is_known
from crawl4llm.tools.export.card import OPT_OUT_FIELDS
from crawl4llm.tools.export.documents import Row, SourceFile
from crawl4llm.tools.export.filters import DUPLICATE_ID
from crawl4llm.warc import UnreadableFile, WarcReader

_LARGEST_WARCINFO = 1 << 16
UNREADABLE_FILE = "unreadable_file"
_LEFT_OUT = {simulate.DAMAGED, simulate.NO_LENGTH, simulate.NO_URL, simulate.NOT_HTML, simulate.UNTYPED}


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
    warcinfo: Mapping[str, str]
    """Fields of the first warcinfo record of an archive of ours; empty for those of others."""
    left_out: Counter[str]
    """Records that are no documents, by reason; complete once :meth:`rows` has ended."""

    def rows(self, first_file: int) -> Iterator[Row]:
        """Yield the documents in the order of the archive; ``first_file`` is the number of its first file."""
        ...

    def heard(self) -> Iterator[OptOut]:
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
    return {name: value for name, value in source.warcinfo.items() if name in OPT_OUT_FIELDS}


def first_warcinfo(file: SourceFile) -> dict[str, str]:
    """Return the fields of the first warcinfo record of a file; empty if it begins otherwise, or cannot be read."""
    with suppress(OSError, PageError, StopIteration, UnreadableFile):
        reader = WarcReader(Path(file.path))
        offset, length, frame = next(reader.stretches())
        if frame is not None and frame.record is not None and frame.record.kind == "warcinfo":
            block = frame.record.block(reader.read(offset, length, _LARGEST_WARCINFO))
            fields = (line.partition(":") for line in block.decode("utf-8", "replace").splitlines())
            return {name: value.strip() for name, _, value in fields}
    return {}


def changed_file(files: Sequence[SourceFile]) -> str | None:
    """Return the first of some files that has changed; None if none has."""
    for file in files:
        with suppress(InputError):
            if source_file(Path(file.path), Path(file.points), named=file.named) == file:
                continue
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
        self.settings = self.warcinfo = {}
        folder = simulate.index_folder(given_path(given))
        try:
            self._collection = collection = simulate.list_files(given)
            if not simulate.is_current(collection, folder):
                simulate.build_warc_index(collection, folder, processes=processes, executor=executor)
        except InputError as error:
            raise InputError(str(error).removeprefix("CORPUS ")) from None
        self._index = simulate.WarcIndex(folder)
        manifest = self._index.manifest
        counts = {what: count for what, count in manifest["counts"].items() if what in _LEFT_OUT or what[:5] == "http_"}
        self.left_out = Counter(counts)
        self.left_out += Counter({DUPLICATE_ID: manifest["duplicates"], UNREADABLE_FILE: len(manifest["unreadable"])})
        names = [name for names in manifest["files"] for name in names[:2] if name]
        self._numbers = {name: number for number, name in enumerate(names)}
        self.files = [
            source_file(collection.root / name, simulate.points_path(folder, name), named=False) for name in names
        ]
        sizes = {name: file.size for name, file in zip(names, self.files, strict=True)}
        self.facts = {"given": given, "kind": "warc", "files": sizes}

    def heard(self) -> Iterator[OptOut]:
        """Yield the signals in its files, which may be about pages of other sources."""
        return simulate.opt_outs_in(self._collection, self._index)

    @property
    def knows_opt_outs(self) -> bool:
        return not self._index.manifest["opt_outs_unknown"]

    def rows(self, first_file: int) -> Iterator[Row]:
        index = self._index
        documents = (index.document(position) for position in range(len(index)))
        pages = (document for document in documents if document.kind != simulate.FAILED)
        for document, following in pairwise(chain(pages, [None])):
            assert document is not None
            offset, length = document.offset, document.length
            file = self._file(document, wet=False)
            next_at = following.offset if following and following.file == document.file else self.files[file].size
            text_at = None
            if document.kind not in {simulate.HTML, simulate.REVISITED}:
                text_at = [first_file + file, offset, length]
            elif document.text_length:
                text_file = first_file + self._file(document, wet=True)
                text_at = [text_file, document.text_offset, document.text_length]
            key = document.key.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            yield Row(
                id=key,
                url=key,
                date=simulate.date_of(document.date) or None,
                digest=None,
                file=first_file + file,
                offset=offset,
                length=length,
                after=max(next_at - offset - length, 0),
                text=text_at,
                reason=simulate.REVISIT if document.kind == simulate.REVISITED and text_at is None else None,
                signals=document.signals,
            )

    def _file(self, document: simulate.Document, *, wet: bool) -> int:
        """Return the number of its file, or of the WET file of that, among those of this source."""
        return self._numbers[self._index.manifest["files"][document.file][1 if wet else 0]]
