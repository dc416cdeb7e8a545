"""A crawl opened by what names it: its output directory, its JOBDIR, or the storage of several workers.

Python reads its log and failures as tables, and its pages with text and links. Of a crawl that ended, was killed, or is
being written; files are read up to their last whole line. A storage gets a view as a run folder, which has logs and
index; the pages stay in the storage.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from importlib import import_module
from os import SEEK_END
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Generic, Literal, TypeVar, get_args, get_type_hints

from crawl4llm.base import crawl_log
from crawl4llm.base.command_lines import merge_command
from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.input_files import given_path, open_input
from crawl4llm.base.object_store import BUCKET_VIEWED, URL_NAME, flat_name, is_storage, views
from crawl4llm.base.run_folder import SETTINGS, STATS, WARC, read_json
from crawl4llm.base.version import __version__
from crawl4llm.base.whole_files import locked, whole_folder, writing
from crawl4llm.base.within import require_within
from crawl4llm.warc import Entry, cdxj

if TYPE_CHECKING:
    from crawl4llm.base.charsets import Html
    from crawl4llm.base.html_tree import HtmlLink
    from crawl4llm.base.received import Given
    from crawl4llm.cluster import History

Form = Literal["arrow", "pandas", "dicts"]
_LONGEST_LINE: Final = 1 << 22
"""Bytes of a line of a log, at most."""
_DEFAULT_EXTRACTOR: Final = "trafilatura"
_AHEAD: Final = 10_000
"""Entries that a file may be ahead of the other one."""
_VIEW: Final = "the view of a storage"
_OLD: Final = 86400
"""Seconds after which a view of an earlier state of a crawl is removed."""

V = TypeVar("V")


@dataclass(frozen=True)
class Page:
    """A page in the archive of a crawl; its content is read from there whenever it is asked for."""

    id: str
    """Document key, as in the crawl log."""
    url: str
    influence: float | None
    """None if it was not computed."""
    _folder: Path = field(repr=False)
    _entry: Entry = field(repr=False)
    _kept_text: Entry | None = field(repr=False)
    _extractor: str = field(repr=False)

    @property
    def html(self) -> bytes | None:
        """The HTML in UTF-8; None if the corpus held only text. Raises PageError if the record is damaged."""
        return self._read(self._entry).data if self._has_html else None

    @property
    def text(self) -> str:
        """The main text: as archived (WARC_TEXT, or the corpus's own), else as the crawl's extractor finds it in the
        HTML. Raises PageError if the record is damaged, InputError if the extractor is not installed."""
        if self._kept_text is not None or not self._has_html:
            return self._read(self._kept_text or self._entry).data.decode("utf-8", "replace")
        # slow to import, and most runs keep their texts
        from crawl4llm.scoring import extract_text, load_extractor

        return extract_text(self._read(self._entry).data, load_extractor(self._extractor))

    @property
    def links(self) -> list[HtmlLink]:
        """The links of the HTML: ``url``, ``anchor``, and whether it is ``boilerplate``. Raises PageError."""
        # seldom needed
        from crawl4llm.base.html_tree import HtmlTree, html_links

        if not self._has_html:
            return []
        html = self._read(self._entry)
        return html_links(HtmlTree(html.data), self.url, html.charset)

    @property
    def _has_html(self) -> bool:
        return not (self._entry.mime == "text/plain" and self._entry.status is None)

    def _read(self, entry: Entry) -> Html:
        # for the content of pages alone
        from crawl4llm.warc import read_page

        return read_page(self._folder, entry)


class OpenedRun:
    """A crawl by its output directory. Nothing is kept in memory: each call reads the files as they are then."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"<crawl {self.path}: {self.settings.get('policy')}, {self.finish_reason or 'not finished'}>"

    @property
    def settings(self) -> Mapping[str, Any]:
        """The run's ``settings.json``; empty without one."""
        return read_json(self.path / SETTINGS)

    @property
    def stats(self) -> Mapping[str, Any]:
        """The counts in ``stats.json``, see docs/stats.md; empty while the crawl runs, or if it was killed."""
        return read_json(self.path / STATS)

    @property
    def finish_reason(self) -> str | None:
        """Why it ended; None while it runs, or if it was killed."""
        reason = self.stats.get("finish_reason")
        return None if reason is None else str(reason)

    def crawl_log(self, form: Form = "arrow") -> Any:
        """Return the crawl log, a row a page in crawl order, as ``pyarrow.Table``, ``pandas.DataFrame``, or a list of
        dicts, which needs neither package.

        Columns are those of :class:`crawl4llm.base.crawl_log.ComparedLine`: always all of them, but ``classes``, which
        is there with MIXTURE alone. Raises InputError if a line cannot be used, or pyarrow or pandas is not
        installed.
        """
        return _table(self.path / crawl_log.NAME, crawl_log.ComparedLine, form)

    def failures(self, form: Form = "arrow") -> Any:
        """Return the documents that ended without a page, as :meth:`crawl_log` does; columns are those of
        :class:`crawl4llm.base.crawl_log.RedirectLine`."""
        return _table(self.path / crawl_log.FAILURES, crawl_log.RedirectLine, form)

    def pages(self) -> Iterator[Page]:
        """Yield the pages of the archive, in crawl order. Raises InputError if there is no archive, or if its index is
        damaged. A damaged page raises an error when its content is read."""
        folder, log = self.path / WARC, self.path / crawl_log.NAME
        index, text_index = folder / cdxj.INDEX_NAME, folder / cdxj.TEXT_INDEX_NAME
        if not index.is_file():
            raise InputError(f"{self.path} has no archive ({WARC}/{cdxj.INDEX_NAME}); was WARC_ENABLED off?")
        require_within(self.path, index, text_index)
        kept = _entries(text_index) if text_index.is_file() else iter(())
        texts = Alongside((entry.id, entry) for entry in kept)
        scores = Alongside((str(line.get("id")), line.get("influence")) for line in crawl_log.read_log(log))
        extractor = str(self.settings.get("extractor") or _DEFAULT_EXTRACTOR)
        for entry in _entries(index):
            text = texts.take(entry.id)
            yield Page(entry.id, entry.url, scores.take(entry.id), folder, entry, text, extractor)

    def page(self, given: str) -> Page:
        """Return the page with an id or a URL. Raises InputError if the archive has none."""
        for page in self.pages():
            if given in {page.id, page.url}:
                return page
        raise InputError(f"{given} is no page of {self.path}; its crawl log lists the crawled pages")


class Alongside(Generic[V]):
    """Values by document from a file in which documents stand in nearly the same order as they are asked for."""

    def __init__(self, items: Iterable[tuple[str, V]]) -> None:
        self._items = iter(items)
        self._following = next(self._items, None)
        self._passed: dict[str, V] = {}

    def take(self, key: str) -> V | None:
        """Return the value of a document, None if it has none near; each can be taken once."""
        following = self._following
        if following is None or following[0] != key:
            return self._search(key)
        self._following = next(self._items, None)
        return following[1]

    def _search(self, key: str) -> V | None:
        while key not in self._passed and self._following is not None and len(self._passed) < _AHEAD:
            self._passed.setdefault(*self._following)
            self._following = next(self._items, None)
        return self._passed.pop(key, None)


def open_run(path: str | Path) -> OpenedRun:
    """Open a crawl by its output directory, or by the JOBDIR that leads there; it may be running.

    Raises InputError if there is no crawl, or one of a version that this one cannot read.
    """
    path = run_folder(str(path), {})
    if (path / crawl_log.NAME).is_file() or read_json(path / SETTINGS).get("crawl_id"):
        return OpenedRun(path)
    # with lmdb, for a JOBDIR alone
    from crawl4llm.crawl import JOB, JobDir, find_output

    if not (path / JOB).is_file():
        raise InputError(f"{path} is no crawl; give its output directory, such as crawls/0001, or its JOBDIR")
    return OpenedRun(find_output(path, JobDir(path, lock=False).job or {}, None))


def _entries(index: Path) -> Iterator[Entry]:
    with open_input(index) as file:
        end = _whole(file)
    return cdxj.read(index, end=end)


def _whole(file: BinaryIO) -> int:
    """Return where the last whole line of a file ends."""
    size = file.seek(0, SEEK_END)
    start = file.seek(max(0, size - _LONGEST_LINE))
    return start + file.read(size - start).rfind(b"\n") + 1


def _table(path: Path, kind: type, form: Form) -> Any:
    """Return a log whose lines have the fields of ``kind``."""
    if form not in get_args(Form):
        raise InputError(f"{form!r} is no form of a table; known are: {', '.join(get_args(Form))}")
    if form == "dicts":
        return list(crawl_log.read_log(path)) if path.exists() else []
    arrow, arrow_json = _library("pyarrow"), import_module("pyarrow.json")
    if form == "pandas":
        _library("pandas")
    types = {int: arrow.int64(), float: arrow.float64(), str: arrow.string(), bool: arrow.bool_()}
    hints = {name: _type_of(hint) for name, hint in get_type_hints(kind).items()}
    schema = arrow.schema([(name, types[hint]) for name, hint in hints.items() if hint in types])
    parsing = arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer")
    reading = arrow_json.ReadOptions(block_size=_LONGEST_LINE)
    require_within(path.parent, path)
    table = schema.empty_table()
    damaged = as_input_error(f"{path} is damaged", errors=arrow.ArrowInvalid)
    # there is no such file if the crawl has just begun
    with as_input_error(f"{path} cannot be read"), damaged, suppress(FileNotFoundError), open_input(path) as file:
        if end := _whole(file):
            table = arrow_json.read_json(arrow.PythonFile(file).get_stream(0, end), reading, parsing)
            table = table.select([name for name in table.column_names if name in hints])
    return table.to_pandas() if form == "pandas" else table


def _type_of(hint: Any) -> type:
    """Return the type of a field's values other than None."""
    found: type = next(part for part in (*get_args(hint), hint) if part is not NoneType)
    return found


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise InputError(f"tables need {name}; pip install {name}") from None


# -- views of storages ------------------------------------------------------------------------------------------------


def run_folder(given: str, settings: Given) -> Path:
    """Return the run folder that an argument names. A storage's URL gets a view as a folder, made again whenever the
    crawl has moved on.

    ``settings`` as :func:`crawl4llm.tools._merging.merge` takes them. Raises InputError.
    """
    if not is_storage(given):
        return given_path(given)
    # obstore is an extra
    from crawl4llm.cluster import History, complaints
    from crawl4llm.crawl import REQUESTS

    url = given.rstrip("/")
    history = History(url)
    beside = [sum(1 for _ in history.storage.names(folder)) for folder in (complaints.FOLDER, REQUESTS)]
    state = [__version__, history.state(), history.end is not None, len(history.pages.compacted), beside]
    crawl, name = (sha256(json.dumps(facts).encode()).hexdigest()[:16] for facts in ([url, history.crawl["id"]], state))
    view = views() / crawl / name
    if not url.startswith("file://"):
        BUCKET_VIEWED.set()
    with locked(view.parent, _VIEW):
        if not view.is_dir():
            with writing(view, _VIEW), whole_folder(view) as folder:
                _make(history, folder, view, settings)
        for path in view.parent.iterdir():
            if path != view and path.is_dir() and path.stat().st_mtime < time.time() - _OLD:
                shutil.rmtree(path, ignore_errors=True)
    return view


def refuse_storage(given: str) -> None:
    """Raise InputError if an argument of a command that changes files names a storage."""
    if is_storage(given):
        raise InputError(f"{given}: this command does not change a storage; merge it first: {merge_command(given)}")


def _make(history: History, folder: Path, view: Path, settings: Given) -> None:
    # obstore is an extra
    from crawl4llm.tools._merging import merge

    merge(history, folder, view, settings, index_only=True, flat=True)
    (folder / URL_NAME).write_text(history.storage.url)
    if (index := folder / WARC / cdxj.INDEX_NAME).exists():
        sizes = {flat_name(name): size for name, size in history.storage.sizes("").items()}
        # not those that were put for a step that has not ended
        for name in sizes.keys() & {entry.filename for entry in cdxj.read(index, redirects=True)}:
            with (folder / WARC / name).open("wb") as file:
                file.truncate(sizes[name])
