"""``scrapy corpus known``: makes files of known URLs, texts and links from exports and archives, for KNOWN_URLS,
KNOWN_TEXTS and KNOWN_LINKS.

A job reads a file, or a block of pages, into a folder. The folders stay until the sets are complete. They take as much
disk as the spread rows.
"""

from __future__ import annotations

import glob
import hashlib
import json
import shutil
from argparse import Namespace, _ArgumentGroup
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from crawl4llm.base.command_lines import command, given_settings
from crawl4llm.base.crawl_log import FAILURES
from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.files import sync_path
from crawl4llm.base.input_files import LARGEST_JSON, given_path, json_or_none, open_input, read_input
from crawl4llm.base.jobs import KILLED, Jobs, Told, run_missing
from crawl4llm.base.shapes import fits, whole
from crawl4llm.base.spread import Spread
from crawl4llm.base.tables import Fact, Part
from crawl4llm.base.terminal import harmless, wants_bar
from crawl4llm.base.version import __version__
from crawl4llm.base.whole_files import check_free, locked, whole_folder, writing
from crawl4llm.options import read_options
from crawl4llm.optouts import product_token
from crawl4llm.parts import CLUEWEB22, scheme_of
from crawl4llm.scoring import PageWorkers, require_library
from crawl4llm.tools import _known_files as sets
from crawl4llm.tools._action import Action
from crawl4llm.tools._text_sources import ARCHIVE_NAME, open_archives, row_kind
from crawl4llm.tools.corpus import known_sources as sources
from crawl4llm.tools.corpus.known_sources import DAMAGED, LINKS, TEXTS, URLS
from crawl4llm.warc import begins_like_archive
from simulate import PAGE, is_clueweb22, largest_page

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawl4llm.base.pages import Corpus

_SETTINGS: Final = {URLS: "KNOWN_URLS", TEXTS: "KNOWN_TEXTS", LINKS: "KNOWN_LINKS"}
_TOLD: Final = "told.json"
_COUNTS_AND_FAULTS: Final = ({...: whole()}, {str}, {str})
_BLOCK: Final = 1 << 14
"""Pages of a job."""
_AT_ONCE: Final = 1024
"""Pages, with their links."""
_WHAT: Final = "the known sets"
_Work: TypeAlias = "Callable[[Sequence[_Job]], Iterable[None]]"


# -- jobs -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Job:
    """A file, or a block of pages, to be read into a folder."""

    folder: Path
    source: Any
    """A RowFile, WatFile or PageSource."""
    size: int
    """Bytes or pages."""
    start: int = 0
    """The first page."""

    def is_done(self) -> bool:
        """Return whether the folder is there."""
        return self.folder.exists()

    def told(self) -> sources.Taken:
        """Return the counts and faults of a job that is done. Raises InputError if the folder is damaged."""
        with as_input_error(f"{self.folder} cannot be read"):
            found = json_or_none(read_input(self.folder / _TOLD, LARGEST_JSON))
        if not fits([found], _COUNTS_AND_FAULTS):
            raise InputError(
                f"{self.folder / _TOLD} is damaged; remove {self.folder.parent}, and run the command again"
            )
        counts, *faults = found
        return sources.Taken({}, Counter(counts), *faults)

    @contextmanager
    def taking(self) -> Iterator[sources.Taken]:
        """Put the folder in place if the block ends well. Raises InputError if it cannot be written."""
        with writing(self.folder, _WHAT), whole_folder(self.folder) as folder:
            with ExitStack() as opened:
                taken = sources.Taken({name: opened.enter_context((folder / name).open("wb")) for name in _SETTINGS})
                yield taken
            taken.damaged = str(self.source.path) if taken.counts[DAMAGED] else ""
            (folder / _TOLD).write_text(json.dumps([taken.counts, taken.fault, taken.damaged]))
            for path in folder.iterdir():
                sync_path(path)


def _folder(work: Path, *facts: object) -> Path:
    """Return the folder of a job, by all facts that decide what is taken."""
    named = repr((__version__, *facts)).encode("utf-8", "surrogatepass")
    return work / hashlib.sha256(named).hexdigest()[:32]


def _read_file(job: _Job) -> None:
    """Read a file of rows, or a WAT file. Raises InputError."""
    with job.taking() as taken:
        job.source.read(taken)


def _read_pages(source: sources.PageSource, processes: int, jobs: Sequence[_Job]) -> Iterator[None]:
    """Read blocks of pages, in their order. Raises InputError."""
    workers = PageWorkers(source, processes if source.texts or source.links else 0)
    with closing(source.corpus), workers:
        workers.start()
        keys, at = source.keys(), 0
        for job in jobs:
            block, at = islice(keys, job.start - at, job.start - at + job.size), job.start + job.size
            with job.taking() as taken:
                while some := list(islice(block, _AT_ONCE)):
                    source.take(some, workers, taken)
            yield


# -- sources ----------------------------------------------------------------------------------------------------------

_ROWS, _ARCHIVES, _WATS, _TREES = "rows", "archives", "wats", "trees"
"""Kinds of sources: files of rows; archive files or folders; WAT files without the archive files from which they were
made; ClueWeb22 trees, and crawls of such trees."""


def _find(given: str, *, links: bool) -> Iterator[tuple[str, Path]]:
    """Yield the files and folders that a source names, with their kinds. Raises InputError."""
    path = given_path(given)
    with as_input_error(f"{given}: cannot be read"):
        if links and sources.is_of_clueweb22(path):
            yield _TREES, path
        elif is_clueweb22(path):
            raise InputError(f"{given}: is a ClueWeb22 tree; give JSON Lines, Parquet, or WARC files, or --links")
        elif path.is_dir():
            yield from _in_folder(path, links=links)
        elif not path.exists() and glob.has_magic(str(path)):
            matches = sorted(glob.glob(str(path)))  # noqa: PTH207 - the pattern may begin anywhere
            if not matches:
                raise InputError(f"{given}: matches no file")
            for match in matches:
                yield from _find(match, links=links)
        else:
            with open_input(path):  # says why it cannot be read
                pass
            yield _kind_of(path, links=links), path


def _kind_of(path: Path, *, links: bool) -> str:
    if links and sources.WAT_NAME.fullmatch(path.name):
        return _WATS
    others = row_kind(path) != "" or path.suffix.lower() == ".zst"  # whatever begins so is like a WARC file
    is_archive = ARCHIVE_NAME.fullmatch(path.name) or (not others and begins_like_archive(path))
    return _ARCHIVES if is_archive else _ROWS


def _in_folder(folder: Path, *, links: bool) -> Iterator[tuple[str, Path]]:
    """Yield the files in a folder: archives, as in a crawl's folder, or else files of rows, as in an export."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    archives = [path for path in paths if ARCHIVE_NAME.fullmatch(path.name)]
    wats = [path for path in archives if links and sources.WAT_NAME.fullmatch(path.name)]
    named = [path for path in paths if path.name != FAILURES and path.suffix.lower() != ".json"]
    rows = [path for path in named if row_kind(path)]
    if len(wats) < len(archives):
        yield _ARCHIVES, folder
    elif wats:
        yield from ((_WATS, path) for path in wats)
    elif rows:
        yield from ((_ROWS, path) for path in rows)
    else:
        raise InputError(f"{folder}: holds no archive files, JSON Lines, Parquet or CDXJ; name lists of URLs singly")


def _found(given: Sequence[str], *, links: bool) -> Mapping[str, Sequence[Path]]:
    """Return what all sources name, by kind. Raises InputError."""
    named = dict.fromkeys(pair for source in given for pair in _find(source, links=links))  # patterns may overlap
    found = {kind: [path for one, path in named if one == kind] for kind in (_ROWS, _ARCHIVES, _WATS, _TREES)}
    by_url, trees = found[_ARCHIVES] + found[_WATS], found[_TREES]
    if trees and by_url:
        raise InputError(f"{trees[0]}: names documents by ids, and the other sources by URLs; make two files")
    if links and not (trees or by_url):
        raise InputError("--links: no source has links; give WARC or WAT files, or a ClueWeb22 tree")
    return found


# -- the sets ---------------------------------------------------------------------------------------------------------


class _Known:
    """The sources of the sets, read in jobs, and their counts."""

    def __init__(
        self, found: Mapping[str, Sequence[Path]], work: Path, settings: BaseSettings, opts: Namespace
    ) -> None:
        self._found, self._work, self._settings, self._opts = found, work, settings, opts
        self._options = read_options(settings)
        self._executor, self._processes = self._options.tasks(opts.tasks), opts.jobs
        self._show = wants_bar(self._options.progress_bar)
        self._jobs: list[_Job] = []
        self.told: list[sources.Taken] = []

    def read(self) -> None:
        """Do the jobs that are missing. Raises InputError."""
        opts, crawler = self._opts, product_token(str(self._settings.get("USER_AGENT") or ""))
        files: list[sources.RowFile | sources.WatFile] = []
        files += [sources.RowFile(path, opts.url_field, opts.text_field, not opts.exact) for path in self._found[_ROWS]]
        files += [sources.WatFile(path, crawler, self._options.opt_out_fetch) for path in self._found[_WATS]]
        states = [(one, one.path.stat()) for one in files]
        jobs = [_Job(_folder(self._work, one, at.st_size, at.st_mtime_ns), one, at.st_size) for one, at in states]
        self._do(partial(map, _read_file), jobs, self._processes, "B", "reading")
        for path in self._found[_ARCHIVES]:
            corpus, summary = open_archives(path, self._settings)
            damaged = [path if path.is_file() else path / name for name in summary.damaged]
            faults = [*summary.unreadable, *(f"{name}: a record is damaged or cut short" for name in damaged), ""]
            counts = {"unreadable files": len(summary.unreadable), "files with damaged records": len(damaged)}
            self.told.append(sources.Taken({}, Counter(counts), faults[0], str(damaged[0]) if damaged else ""))
            self._read_pages(path, corpus, self._settings, clean_text=not summary.counts.get(PAGE))
        for path in self._found[_TREES]:
            self._read_pages(path, *sources.open_clueweb22(path, self._settings))
        self.told += [job.told() for job in self._jobs]

    def _read_pages(self, path: Path, corpus: Corpus, settings: BaseSettings, *, clean_text: bool = False) -> None:
        opts, options = self._opts, read_options(settings)
        extract = opts.extract and corpus.name != CLUEWEB22
        asked = extract, opts.links, not opts.exact, options.opt_out_fetch
        source = sources.PageSource(corpus, options.text_extractor, clean_text, path, *asked)
        count = len(source)
        facts = corpus.identity(), source.extractor, clean_text, path, *asked, largest_page(settings), count
        starts = range(0, count, _BLOCK)
        jobs = [_Job(_folder(self._work, *facts, at), source, min(_BLOCK, count - at), at) for at in starts]
        work = partial(_read_pages, source, self._executor.processes(options.workers))
        at_once = 1 if self._executor.tasks is None else self._processes  # the work has processes of its own
        self._do(work, jobs, at_once, " pages", f"pages of {path.name}")

    def _do(self, work: _Work, jobs: Sequence[_Job], processes: int | None, unit: str, label: str) -> None:
        tasks = self._work / f"tasks-{len(self._jobs)}"
        told = Told(unit, KILLED, label, self._show)
        for _ in run_missing(Jobs(work, jobs, tasks), self._executor, processes, told):
            pass
        self._jobs += jobs

    def write(self, folder: Path) -> Mapping[str, int]:
        """Write each set that is not empty; return their counts. Raises InputError."""
        scratch = folder / "scratch"
        scratch.mkdir()
        kinds = {URLS: sets.URL, TEXTS: sets.TEXT}
        urls, texts = (Spread(scratch / name, kind, show=self._show) for name, kind in kinds.items())
        pages = sets.LinkSpread(scratch / LINKS, show=self._show)
        for job in self._jobs:
            for spread, (name, kind) in zip((urls, texts), kinds.items(), strict=True):
                for rows in sets.read_rows(job.folder / name, kind):
                    spread.add(rows)
            linked = sets.packed_pages(job.folder / LINKS)
            while some := list(islice(linked, _AT_ONCE)):
                pages.add(some)
        counts = {
            URLS: sets.write_urls(urls, scratch, _file(folder, URLS)),
            TEXTS: sets.write_texts(texts, scratch, _file(folder, TEXTS), near=not self._opts.exact),
        }
        if self._opts.links:
            for path in (*self._found[_ARCHIVES], *self._found[_TREES]):
                sources.take_scores(path, pages)
            scheme = scheme_of(CLUEWEB22 if self._found[_TREES] else None)
            counts[LINKS] = sets.write_links(pages, scheme, scratch, _file(folder, LINKS))
        shutil.rmtree(scratch)
        for name, count in counts.items():
            if not count:
                _file(folder, name).unlink()
        return {name: count for name, count in counts.items() if count}


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.known"


def _run(settings: BaseSettings, opts: Namespace) -> Iterator[Part]:
    out, *given = opts.arguments
    to = given_path(out).absolute()
    check_free(to, "OUT")
    if not opts.exact:
        require_library("scrapy corpus known", "give --exact")
    found = _found(given, links=opts.links)
    work = to.with_name(f".{to.name}.work")
    with writing(to, _WHAT):
        work.mkdir(parents=True, exist_ok=True)
        with locked(work, _WHAT):
            check_free(to, "OUT")  # the process that had the lock may have made it
            known = _Known(found, work, settings, opts)
            known.read()
            with whole_folder(to) as folder:
                written = known.write(folder)
                shutil.rmtree(work)
                if not written:
                    raise InputError(f"OUT {out}: the sources have neither URLs nor texts")
    counts: Counter[str] = Counter()
    for one in known.told:
        counts.update(one.counts)
    for name, count in written.items():
        read, size = counts.pop(name), _file(to, name).stat().st_size
        value = {"count": count, "read": read, "bytes": size, "path": _file(to, name)}
        shown = f"{count:,} of {read:,} read ({size / count:,.1f} bytes each): {_file(to, name)}"
        yield Fact(name, value, shown, width=8)
    if left_out := ", ".join(f"{count:,} {reason}" for reason, count in sorted(counts.items()) if count):
        faults = [one.fault for one in known.told if one.fault]
        yield f"left out {left_out}" + (f"; the first: {harmless(min(faults))}" if faults else "")
    if damaged := [one.damaged for one in known.told if one.damaged]:
        mend = command("archive", "repair", Path(damaged[0]).parent)
        raise InputError(
            f"{damaged[0]}: a record is damaged or cut short; {to} has the records before it. Get the file again and "
            f"rebuild the sets, or repair an archive of your own: {mend}"
        )
    settings_for = given_settings(settings) | {_SETTINGS[name]: _file(to, name) for name in written}
    yield f"Next: {command('crawl', 'influence', **settings_for)}"


def _add_options(parser: _ArgumentGroup) -> None:
    """Add the options; ``--jobs`` and ``--tasks`` another action has added."""
    parser.add_argument("--url-field", default="url", metavar="NAME", help="field or column of URLs (default: url)")
    parser.add_argument("--text-field", default="text", metavar="NAME", help="field or column of texts (default: text)")
    parser.add_argument(
        "--extract",
        action="store_true",
        help="take the texts of archived pages, extracted by TEXT_EXTRACTOR; otherwise only their URLs",
    )
    parser.add_argument(
        "--links",
        action="store_true",
        help="also write links.known: archived pages with their links, and the scores in crawl logs; takes WAT files "
        "and ClueWeb22 trees too",
    )
    parser.add_argument(
        "--exact",
        action="store_true",
        help="recognise only exact copies of texts: 4 bytes per text, not 148, and no MinHash",
    )


KNOWN = Action(
    "Write the folder OUT with urls.known for KNOWN_URLS, texts.known for KNOWN_TEXTS and, with --links, links.known "
    "for KNOWN_LINKS. Each SOURCE is a file, a folder or a glob pattern: JSON Lines or Parquet files with URLs and "
    "texts, such as exports; CDXJ indexes, WARC files or lists of URLs (also takes --jobs and --tasks). After an "
    "interruption the same command continues.",
    _run,
    "OUT SOURCE...",
    _add_options,
)
