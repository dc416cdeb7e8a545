"""``scrapy corpus known``: makes files of known URLs, texts and links from exports and archives, for KNOWN_URLS,
KNOWN_TEXTS and KNOWN_LINKS."""

from __future__ import annotations

import argparse
import glob
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from crawl4llm.base.bars import Progress
from crawl4llm.base.command_lines import command, given_settings
from crawl4llm.base.crawl_log import FAILURES
from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import given_path, open_input
from crawl4llm.base.jobs import run_jobs
from crawl4llm.base.processes import cores
from crawl4llm.base.spread import Spread
from crawl4llm.base.tables import Fact, Part
from crawl4llm.base.terminal import harmless, wants_bar
from crawl4llm.base.whole_files import check_free, whole_folder, writing
from crawl4llm.options import read_options
from crawl4llm.parts import CLUEWEB22, record_of, scheme_of, url_fingerprint
from crawl4llm.scoring import PageWorkers, load_extractor, require_library
from crawl4llm.tools._action import Action
from crawl4llm.tools._known_files import (
    AT_ONCE,
    TEXT,
    URL,
    LinkedPage,
    LinkSpread,
    write_links,
    write_texts,
    write_urls,
)
from crawl4llm.tools._text_sources import TextTaker, open_archives, page_text
from crawl4llm.tools.corpus.known_sources import (
    WAT_NAME,
    RowFile,
    WatJob,
    is_of_clueweb22,
    is_row_file,
    take_clueweb22,
    take_corpus,
    take_scores,
    wat_job,
    wat_pages,
)
from crawl4llm.warc import begins_like_archive
from simulate import FAILED, PAGE, WarcIndex, index_folder, is_clueweb22

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

URLS_FILE, TEXTS_FILE, LINKS_FILE = "urls.known", "texts.known", "links.known"
_SETTING_OF: Final = {URLS_FILE: "KNOWN_URLS", TEXTS_FILE: "KNOWN_TEXTS", LINKS_FILE: "KNOWN_LINKS"}
_SCRATCH: Final = "scratch"
_KINDS: Final = {"urls": URL, "texts": TEXT}
_PAGES_AT_ONCE: Final = 1024
_ARCHIVE_NAME: Final = re.compile(r".+\.w?arc(?:\.wet|\.wat)?(?:\.gz|\.zst)?", re.IGNORECASE)
_KILLED: Final = "a process was killed; run the same command with fewer --jobs"


class _Sink:
    """Takes URLs and texts in one process, and spreads them over the files of a folder."""

    def __init__(self, scratch: Path, *, show: bool = False) -> None:
        """``show``: whether sorting shows a bar."""
        self._urls, self._texts = (Spread(scratch / name, kind, show=show) for name, kind in _KINDS.items())
        self._waiting: list[int] = []
        self._records = bytearray()

    def add_url(self, url: str) -> None:
        """Take a URL."""
        self._waiting.append(url_fingerprint(url))
        if len(self._waiting) == AT_ONCE:
            self.flush()

    def add_record(self, record: bytes) -> None:
        """Take the record of a text; nothing for a blank one."""
        self._records += record
        if len(self._records) >= AT_ONCE * TEXT.itemsize:
            self.flush()

    def flush(self) -> None:
        """Write the waiting records. Raises InputError if that fails."""
        if self._waiting:
            self._urls.add(np.array(self._waiting, dtype=URL))
        if self._records:
            self._texts.add(np.frombuffer(bytes(self._records), dtype=TEXT))
        self._waiting.clear()
        self._records.clear()

    def write(self, folder: Path, scratch: Path, *, near: bool) -> Iterator[tuple[str, int]]:
        """Write the two files, each if it has any content; yield their names and counts."""
        self.flush()
        for name, write in ((URLS_FILE, partial(write_urls, self._urls)), (TEXTS_FILE, partial(self._write, near))):
            if count := write(scratch, folder / name):
                yield name, count
            else:
                (folder / name).unlink()

    def _write(self, near: bool, scratch: Path, to: Path) -> int:
        return write_texts(self._texts, scratch, to, near=near)


@dataclass(frozen=True)
class _RowJob:
    """A file of rows to be read."""

    path: Path
    size: int
    fields: tuple[str, str]
    near: bool
    scratch: Path


@dataclass(frozen=True)
class _Taken:
    """The findings in a source."""

    counts: Counter[str]
    """``urls`` and ``texts``, and the reasons why others were left out."""
    fault: str = ""
    """The first thing that was left out."""
    damaged: str = ""
    """An archive file with a record that is damaged or cut short."""


def _take_rows(job: _RowJob) -> _Taken:
    """Read a file of rows. Raises InputError."""
    source, sink = RowFile(job.path, *job.fields), _Sink(job.scratch)
    counts: Counter[str] = Counter()
    for url, text in source.rows():
        if url is not None:
            sink.add_url(url)
            counts["urls"] += 1
        if text is not None:
            record = record_of(text, near=job.near)
            sink.add_record(record)
            counts["texts" if record else "blank texts"] += 1
    sink.flush()
    return _Taken(counts + source.counts, f"{job.path}, {source.first_fault}" if source.first_fault else "")


def _take_wat(job: WatJob) -> _Taken:
    """Take the pages of a WAT file, with their links. Raises InputError."""
    spread, sink, counts = LinkSpread(job.folder), _Sink(job.folder.parent), Counter[str]()
    waiting: list[LinkedPage] = []
    for url, page in wat_pages(job, counts):
        sink.add_url(url)
        waiting.append(page)
        if len(waiting) == _PAGES_AT_ONCE:
            spread.add(waiting)
            waiting.clear()
        counts["urls"] += 1
        counts["links"] += 1
    spread.add(waiting)
    sink.flush()
    if not counts["links"]:
        raise InputError(f"{job.path}: has no page of a WAT file")
    fault = f"{job.path}: {sum(counts.values()) - 2 * counts['links']:,} records"
    damaged = str(job.path) if counts["damaged records"] else ""
    return _Taken(counts, fault if len(counts) > 2 else "", damaged)


def _take_text(taker: TextTaker, key: str, near: bool) -> bytes:
    """Return the record of a page's text, as :func:`record_of`. Raises PageError."""
    return record_of(page_text(taker, key), near=near)


def _take_archives(
    path: Path, settings: BaseSettings, sink: _Sink, links: LinkSpread | None, *, texts: bool, near: bool
) -> _Taken:
    """Take the URLs of the pages in archive files, and with ``texts`` their texts. ``links`` takes them with their
    links. Raises InputError."""
    options = read_options(settings)
    corpus, found = open_archives(path, settings)
    counts: Counter[str] = Counter({"unreadable files": len(found.unreadable)})
    taker = TextTaker(corpus, options.text_extractor, clean_text=not found.counts.get(PAGE))
    if texts:
        load_extractor(taker.extractor)
    with closing(corpus), PageWorkers(taker, options.workers if texts else 0) as workers:
        workers.start()
        keys = iter(_pages(path, wants_bar(options.progress_bar)))
        while some := list(islice(keys, _PAGES_AT_ONCE)):
            for key in some:
                sink.add_url(key)
            counts["urls"] += len(some)
            for record in workers.run_all(partial(_take_text, near=near), some) if texts else ():
                if isinstance(record, bytes):
                    sink.add_record(record)
                    counts["texts" if record else "blank texts"] += 1
                else:
                    counts[str(record.reason)] += 1
    if links is not None:
        keys = iter(_pages(path, wants_bar(options.progress_bar)))
        corpus, _ = open_archives(path, settings)
        with closing(corpus):
            counts += take_corpus(corpus, keys, settings, links)
        take_scores(path, links)
    damaged = [path if path.is_file() else path / name for name in found.damaged]
    faults = [*found.unreadable, *(f"{name}: a record is damaged or cut short" for name in damaged)]
    counts["files with damaged records"] = len(damaged)
    return _Taken(counts, faults[0] if faults else "", str(damaged[0]) if damaged else "")


def _pages(path: Path, show: bool) -> Iterator[str]:
    """Yield the keys of the pages in archive files, without the failed documents of a live crawl."""
    index = WarcIndex(index_folder(path))
    for place in Progress(range(len(index)), f"pages of {path.name}", unit=" pages", bar=show):
        document = index.document(place)
        if document.kind != FAILED:
            yield document.key


class _Sources(NamedTuple):
    """The files and folders that sources name, by kind."""

    rows: list[Path]
    archives: list[Path]
    """Files or folders."""
    wats: list[Path]
    """WAT files without the archive files from which they were made."""
    clueweb22: list[Path]
    """Trees, and crawls of such trees."""


def _find(given: str, *, links: bool) -> _Sources:
    """Return what a source names. Raises InputError."""
    path = given_path(given)
    try:
        if links and is_of_clueweb22(path):
            return _Sources([], [], [], [path])
        if is_clueweb22(path):
            raise InputError(f"{given}: is a ClueWeb22 tree; give JSON Lines, Parquet, or WARC files, or --links")
        if path.is_dir():
            return _in_folder(path, links=links)
        if not path.exists() and glob.has_magic(str(path)):
            matches = sorted(glob.glob(str(path)))  # noqa: PTH207 - the pattern may begin anywhere
            if not matches:
                raise InputError(f"{given}: matches no file")
            return _together([_find(match, links=links) for match in matches])
        with open_input(path):  # says why it cannot be read
            pass
        others = is_row_file(path) or path.suffix.lower() == ".zst"  # whatever begins so is like a WARC file
        is_archive = _ARCHIVE_NAME.fullmatch(path.name) or (not others and begins_like_archive(path))
    except OSError as error:
        raise InputError(f"{given}: cannot be read: {error.strerror}") from None
    if links and WAT_NAME.fullmatch(path.name):
        return _Sources([], [], [path], [])
    return _Sources([], [path], [], []) if is_archive else _Sources([path], [], [], [])


def _together(found: list[_Sources]) -> _Sources:
    return _Sources(*([path for one in kind for path in one] for kind in zip(*found, strict=True)))


def _in_folder(folder: Path, *, links: bool) -> _Sources:
    """Return the files in a folder: archives, as in a crawl's folder, or else files of rows, as in an export."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    archives = [path for path in paths if _ARCHIVE_NAME.fullmatch(path.name)]
    if archives:
        wats = [path for path in archives if WAT_NAME.fullmatch(path.name)] if links else []
        return _Sources([], [folder], [], []) if len(wats) < len(archives) else _Sources([], [], wats, [])
    rows = [path for path in paths if is_row_file(path) and path.name != FAILURES and path.suffix.lower() != ".json"]
    if not rows:
        raise InputError(f"{folder}: holds no archive files, JSON Lines, Parquet or CDXJ; name lists of URLs singly")
    return _Sources(rows, [], [], [])


def _run(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    out, *given = opts.arguments
    to, near = given_path(out).absolute(), not opts.exact
    check_free(to, "OUT")
    if near:
        require_library("scrapy corpus known", "give --exact")
    found = _together([_find(source, links=opts.links) for source in given])
    if opts.links and found.clueweb22 and (found.archives or found.wats):
        raise InputError(f"{found.clueweb22[0]}: names documents by ids, and the other sources by URLs; make two files")
    if opts.links and not (found.archives or found.wats or found.clueweb22):
        raise InputError("--links: no source has links; give WARC or WAT files, or a ClueWeb22 tree")
    counts: Counter[str] = Counter()
    faults: list[str] = []
    with writing(to, "the known sets"), whole_folder(to) as folder:
        scratch = folder / _SCRATCH
        scratch.mkdir()
        show = wants_bar(read_options(settings).progress_bar)
        sink = _Sink(scratch, show=show)
        links = LinkSpread(scratch / "links", show=show) if opts.links else None
        fields, processes = (opts.url_field, opts.text_field), opts.jobs or cores()
        jobs = [_RowJob(path, path.stat().st_size, fields, near, scratch) for path in found.rows]
        taken = [one for _, one in run_jobs(_take_rows, jobs, processes, "B", "reading", _KILLED, show)]
        taken += [_take_archives(path, settings, sink, links, texts=opts.extract, near=near) for path in found.archives]
        if links is not None:
            wats = [wat_job(path, scratch / "links", settings) for path in found.wats]
            taken += [one for _, one in run_jobs(_take_wat, wats, processes, "B", "reading", _KILLED, show)]
            taken += [_Taken(take_clueweb22(path, settings, links, sink.add_url)) for path in found.clueweb22]
        for one in taken:
            counts += one.counts
            faults += [one.fault] if one.fault else []
        written = dict(sink.write(folder, scratch, near=near))
        if links is not None:
            scheme = scheme_of(CLUEWEB22 if found.clueweb22 else None)
            written[LINKS_FILE] = write_links(links, scheme, scratch, folder / LINKS_FILE)
        shutil.rmtree(scratch)
        sizes = {name: (folder / name).stat().st_size for name in written}
        if not written:
            raise InputError(f"OUT {out}: the sources have neither URLs nor texts")
    for name, count in written.items():
        what = name.partition(".")[0]
        read, each = counts.pop(what), sizes[name] / count
        value = {"count": count, "read": read, "bytes": sizes[name], "path": to / name}
        yield Fact(what, value, f"{count:,} of {read:,} read ({each:,.1f} bytes each): {to / name}", width=8)
    if faults:
        left_out = ", ".join(f"{count:,} {reason}" for reason, count in sorted(counts.items()) if count)
        yield f"left out {left_out}; the first: {harmless(min(faults))}"
    if damaged := [one.damaged for one in taken if one.damaged]:
        mend = command("archive", "repair", Path(damaged[0]).parent)
        raise InputError(
            f"{damaged[0]}: a record is damaged or cut short; {to} has the records before it. Get the file again and "
            f"rebuild the sets, or repair an archive of your own: {mend}"
        )
    settings_for = given_settings(settings) | {_SETTING_OF[name]: to / name for name in written}
    yield f"Next: {command('crawl', 'influence', **settings_for)}"


def _add_options(parser: argparse._ArgumentGroup) -> None:
    """Add the options; ``--jobs`` another action has added."""
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
        help=f"also write {LINKS_FILE}: archived pages with their links, and the scores in crawl logs; takes WAT files "
        "and ClueWeb22 trees too",
    )
    parser.add_argument(
        "--exact",
        action="store_true",
        help="recognise only exact copies of texts: 4 bytes per text, not 148, and no MinHash",
    )


KNOWN = Action(
    f"Write the folder OUT with {URLS_FILE} for KNOWN_URLS, {TEXTS_FILE} for KNOWN_TEXTS and, with --links, "
    f"{LINKS_FILE} for KNOWN_LINKS. Each SOURCE is a file, a "
    f"folder or a glob pattern: JSON Lines or Parquet files with URLs and texts, such as exports; CDXJ indexes, WARC "
    f"files or lists of URLs (also takes --jobs).",
    _run,
    "OUT SOURCE...",
    _add_options,
)
