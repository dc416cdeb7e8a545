"""The sources of ``scrapy corpus known``, and what jobs take of them.

Files with a row a line, or in columns (JSON Lines, Parquet, CDXJ, lists of URLs), give URLs and texts. Archives give
the URLs of their pages and, if they are wanted, the texts. WAT files, archives, ClueWeb22 trees and crawls of such a
tree give pages with their links, crawl logs the influence scores.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeAlias

import orjson

from crawl4llm.base import crawl_log
from crawl4llm.base.errors import InputError, PageError, as_input_error
from crawl4llm.base.pages import Corpus, Link, PageRecord
from crawl4llm.base.run_folder import SETTINGS, read_json, run_of_archive
from crawl4llm.base.urls import normalise_url
from crawl4llm.engine import take_over
from crawl4llm.optouts import Action, Said, decide, from_text, said_in_head, said_in_metas
from crawl4llm.parts import CLUEWEB22, is_web_url, links_record, listed_urls, record_of, url_fingerprint
from crawl4llm.scoring import PageWorkers, Rating, load_extractor
from crawl4llm.tools._known_files import LinkedPage, LinkSpread
from crawl4llm.tools._text_sources import TextTaker, lines_of_rows, page_text, parquet_rows, row_kind
from crawl4llm.warc import DATE, UnreadableFile, WarcReader, parse_stored, wat_page
from simulate import FAILED, WarcIndex, date_as_number, index_folder, is_clueweb22, open_corpus

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


# -- what is taken ----------------------------------------------------------------------------------------------------

URLS, TEXTS, LINKS = "urls", "texts", "links"
"""Files of a job, and the names of their counts."""
DAMAGED: Final = "damaged records"


@dataclass
class Taken:
    """URLs, texts and pages taken from a source: the files that a job fills with them, their counts, and faults."""

    files: Mapping[str, BinaryIO]
    counts: Counter[str] = field(default_factory=Counter)
    """URLs, texts and pages with links, and the reasons why others were left out."""
    fault: str = ""
    """The first thing that was left out: its place, and the reason."""
    damaged: str = ""
    """An archive file with a record that is damaged or cut short."""

    def add_url(self, url: str) -> None:
        """Take a URL."""
        self.files[URLS].write(url_fingerprint(url).to_bytes(8, "little"))
        self.counts[URLS] += 1

    def add_text(self, record: bytes) -> None:
        """Take the record of a text, which is empty for a blank one."""
        self.files[TEXTS].write(record)
        self.counts[TEXTS if record else "blank texts"] += 1

    def add_page(self, page: LinkedPage) -> None:
        """Take a page with its links."""
        self.files[LINKS].write(page.packed())
        self.counts[LINKS] += 1

    def leave_out(self, why: str, at: str) -> None:
        """Count something that cannot be used."""
        self.counts[why] += 1
        self.fault = self.fault or f"{at}: {why}"


# -- rows -------------------------------------------------------------------------------------------------------------

_Row: TypeAlias = "tuple[str, tuple[Any, Any] | str]"
"""A row's place, and its URL and text, or why it has none."""


@dataclass(frozen=True)
class RowFile:
    """A file of rows."""

    path: Path
    url_field: str
    text_field: str
    near: bool
    """True if texts need a signature, by which near duplicates are found."""

    def read(self, taken: Taken) -> None:
        """Take the rows that can be used. Raises InputError if the file cannot be read to its end, or has rows and none
        that can be used."""
        kind = row_kind(self.path)
        rows = {"parquet": self._of_parquet, "cdxj": self._of_cdxj, "": self._of_list}.get(kind, self._of_json)
        for at, values in rows():
            if isinstance(values, str):
                taken.leave_out(values, at)
            else:
                self._take(at, values, taken)
        if taken.fault and not taken.counts.keys() & {URLS, TEXTS, "blank texts"}:
            raise InputError(f"{self.path}: no row can be used: {taken.fault}")
        taken.fault = taken.fault and f"{self.path}, {taken.fault}"

    def _take(self, at: str, values: tuple[Any, Any], taken: Taken) -> None:
        """Take the URL and text of a row, which may be any values."""
        url, text = values
        if isinstance(url, str) and is_web_url(url.lstrip()):
            taken.add_url(url)
        elif url is not None:
            taken.leave_out(f"no URL in {self.url_field!r}", at)
        if isinstance(text, str):
            taken.add_text(record_of(text, near=self.near))
        elif text is not None:
            taken.leave_out(f"no text in {self.text_field!r}", at)
        elif url is None:
            taken.leave_out(f"neither {self.url_field!r} nor {self.text_field!r} (--url-field, --text-field)", at)

    def _of_json(self) -> Iterator[_Row]:
        for number, line in lines_of_rows(self.path):
            at = f"line {number}"
            try:
                row = orjson.loads(line)
            except (ValueError, RecursionError):
                yield at, "no JSON"
                continue
            is_object = isinstance(row, dict)
            yield at, (row.get(self.url_field), row.get(self.text_field)) if is_object else "no JSON object"

    def _of_cdxj(self) -> Iterator[_Row]:
        for number, line in lines_of_rows(self.path):
            if line.startswith(("!", " CDX")):
                continue
            at = f"line {number}"
            try:
                fields = orjson.loads(line.split(" ", 2)[2])
                url, failed = fields["url"], str(fields.get("status")).startswith(("4", "5"))
            except (ValueError, LookupError, TypeError, AttributeError):
                yield at, "no CDXJ entry with a URL"
            else:
                yield at, "a response with status 4xx or 5xx" if failed else (url, None)

    def _of_list(self) -> Iterator[_Row]:
        for number, url in listed_urls(self.path, "the list"):
            yield f"line {number}", (url, None) if is_web_url(url) else "no URL"

    def _of_parquet(self) -> Iterator[_Row]:
        fields = (self.url_field, self.text_field)
        for number, values in parquet_rows(self.path, fields, "name the columns: --url-field, --text-field"):
            yield f"row {number}", (values[0], values[1])


# -- pages ------------------------------------------------------------------------------------------------------------

_AT_ONCE: Final = 1024
_FOLLOWED: Final = (Action.FETCH, Action.ARCHIVE, Action.EXPAND)
"""Actions that a page must allow if its links are to be followed: otherwise a live crawl would drop it."""


@dataclass(frozen=True)
class PageSource(TextTaker):
    """Pages of archive files, of a ClueWeb22 tree, or of a crawl of such a tree; worker processes have a copy."""

    path: Path
    texts: bool
    """True to take texts; a tree gives none."""
    links: bool
    near: bool
    fetch_opted_out: bool

    @property
    def by_url(self) -> bool:
        """True if document keys are URLs."""
        return self.corpus.name != CLUEWEB22

    @property
    def logged(self) -> bool:
        """True for a crawl of a tree."""
        return not self.by_url and not is_clueweb22(self.path)

    def __len__(self) -> int:
        """Return the number of the pages, failed documents of a live crawl included."""
        return sum(1 for _ in _logged(self.path)) if self.logged else len(self.corpus)

    def load(self) -> None:
        """Load what a process needs."""
        if self.texts:
            load_extractor(self.extractor)

    def keys(self) -> Iterator[str]:
        """Yield the keys of the pages, without the failed documents of a live crawl."""
        if self.logged:
            yield from (key for key, _ in _logged(self.path))
        elif not self.by_url:
            yield from self.corpus.keys()
        else:
            index = WarcIndex(index_folder(self.path))
            documents = map(index.document, range(len(index)))
            yield from (document.key for document in documents if document.kind != FAILED)

    def take(self, keys: Sequence[str], workers: PageWorkers[PageSource], taken: Taken) -> None:
        """Take pages."""
        for key in keys if self.by_url else ():
            taken.add_url(key)
        for text in workers.run_all(_text_of, keys) if self.texts else ():
            if isinstance(text, bytes):
                taken.add_text(text)
            else:
                taken.counts[str(text.reason)] += 1
        for found in workers.run_all(_page_of, keys) if self.links else ():
            if isinstance(found, Rating):
                taken.counts[str(found.reason)] += 1
                continue
            url, page = found
            if not self.by_url and is_web_url(url):
                taken.add_url(url)
            if isinstance(page, str):
                taken.counts[page] += 1
            else:
                taken.add_page(page)


def _text_of(source: PageSource, key: str) -> bytes:
    """Return the record of a page's text, as :func:`record_of`. Raises PageError."""
    return record_of(page_text(source, key), near=source.near)


def _page_of(source: PageSource, key: str) -> tuple[str, LinkedPage | str]:
    """Return a page's URL, and the page with its links, or why it is left out. Raises PageError."""
    page = source.corpus.page(key)
    if page.outlinks is None:
        return page.url, "pages without HTML"
    if source.by_url:  # links of the corpus lead to its own documents only, those of a crawl to any
        page.outlinks = [link._replace(key=link.url) for link in page.outlinks]
        page.key = page.url = key
    may_follow = page.follows and _follows(from_text(page.opt_outs), fetch_opted_out=source.fetch_opted_out)
    record = links_record(page, follows=may_follow, by_url=source.by_url)
    date = date_as_number((page.date or "").encode())
    return page.url, "URLs too long" if record is None else LinkedPage(page.key, date, record)


def _follows(said: Sequence[Said], *, fetch_opted_out: bool) -> bool:
    """Return whether the links of a page with these signals may be followed."""
    verdict = decide(said, fetch_opted_out=fetch_opted_out)
    return not any(map(verdict.forbids, _FOLLOWED))


# -- ClueWeb22 and crawls ---------------------------------------------------------------------------------------------


def is_of_clueweb22(path: Path) -> bool:
    """Return whether a path is a ClueWeb22 tree, or the folder of a crawl of one. Raises InputError."""
    return is_clueweb22(path) or read_json(path / SETTINGS).get("corpus") == CLUEWEB22


def open_clueweb22(path: Path, settings: BaseSettings) -> tuple[Corpus, BaseSettings]:
    """Open a ClueWeb22 tree, or that of a crawl; return also the crawl's settings. Raises InputError."""
    settings = settings.copy()
    if is_clueweb22(path):
        settings.set("CORPUS", str(path), priority="cmdline")
    else:
        take_over(settings, read_json(path / SETTINGS), path)
    corpus = open_corpus(settings)
    if corpus.name != CLUEWEB22:
        raise InputError(f"{path}: is the crawl of a ClueWeb22 tree; name that: -s CORPUS=TREE")
    corpus.check()
    corpus.require("outlinks")
    return corpus, settings


def take_scores(path: Path, spread: LinkSpread) -> None:
    """Take the influence scores in the crawl log of a run folder, or of that whose archive a folder is. Raises
    InputError."""
    folder = path if (path / crawl_log.NAME).is_file() else run_of_archive(path)
    if not path.is_dir() or folder is None or is_clueweb22(path):
        return
    scores = ((key, score) for key, score in _logged(folder) if score is not None)
    while some := list(islice(scores, _AT_ONCE)):
        spread.add_scores(some)


def _logged(folder: Path) -> Iterator[tuple[str, float | None]]:
    """Yield the keys and influence scores of crawled pages; a score that is no finite number is None."""
    log = folder / crawl_log.NAME
    for line in crawl_log.read_log(log):
        key, score = line.get("id"), line.get("influence")
        if not isinstance(key, str):
            raise InputError(f"{log} is damaged: a line has no id")
        is_score = isinstance(score, float) and math.isfinite(score)
        yield key, score if is_score else None


# -- WAT files --------------------------------------------------------------------------------------------------------

WAT_NAME: Final = re.compile(r"(.+\.w?arc)\.wat((?:\.gz|\.zst)?)", re.IGNORECASE)
_LARGEST_WAT: Final = 1 << 26
"""Most bytes of a record of a WAT file."""


@dataclass(frozen=True)
class WatFile:
    """A WAT file."""

    path: Path
    crawler: str
    """Product token by which pages address the crawler."""
    fetch_opted_out: bool

    def read(self, taken: Taken) -> None:
        """Take the pages with their links, and count the records that cannot be used. Raises InputError if the file
        cannot be read, or has no page."""
        for page in self._pages(taken):
            taken.add_url(page.key)
            taken.add_page(page)
        if not taken.counts[LINKS]:
            raise InputError(f"{self.path}: has no page of a WAT file")

    def _pages(self, taken: Taken) -> Iterator[LinkedPage]:
        with as_input_error(f"{self.path}: cannot be read"), as_input_error("", form="{1}", errors=UnreadableFile):
            reader = WarcReader(self.path)
            for stretch in reader.stretches():
                record = None if stretch.frame is None else stretch.frame.record
                at = f"{self.path}, record at {stretch.offset}"
                if record is None:
                    taken.leave_out(DAMAGED, at)
                elif record.kind == "metadata":
                    try:
                        page = self._page(reader.read(stretch.offset, stretch.length, _LARGEST_WAT))
                    except (PageError, ValueError):
                        taken.leave_out("records that are not of a WAT file", at)
                        continue
                    if page is not None:
                        yield page

    def _page(self, data: bytes) -> LinkedPage | None:
        """Return the page that a record describes, None if it is no page. Raises CorruptRecord, and ValueError for
        other JSON."""
        stored = parse_stored(data, str(self.path))
        if not is_web_url(stored.record.url):
            return None
        key = normalise_url(stored.record.url)
        if (told := wat_page(stored.record.block(stored.data), key)) is None:
            return None
        said = [*said_in_head(told.headers, self.crawler), *said_in_metas(told.metas, self.crawler)]
        links = [Link(link.url, link.url, *link[1:]) for link in told.links]
        may_follow = _follows(said, fetch_opted_out=self.fetch_opted_out)
        record = links_record(PageRecord(key, key, outlinks=links), follows=may_follow, by_url=True)
        return None if record is None else LinkedPage(key, date_as_number(stored.record.fields.get(DATE)), record)
