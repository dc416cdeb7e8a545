"""The sources of ``scrapy corpus known``.

Files with a row a line, or in columns (JSON Lines, Parquet, CDXJ, lists of URLs), give URLs and texts. With ``--links``
archives, WAT files, ClueWeb22 trees and crawls of such a tree give pages with their links, and crawl logs the influence
scores."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from crawl4llm.base import crawl_log
from crawl4llm.base.bars import Progress
from crawl4llm.base.errors import InputError, PageError
from crawl4llm.base.pages import Corpus, Link, PageRecord
from crawl4llm.base.run_folder import SETTINGS, read_json
from crawl4llm.base.terminal import wants_bar
from crawl4llm.base.urls import normalise_url
from crawl4llm.base.within import require_within
from crawl4llm.engine import take_over
from crawl4llm.options import read_options
from crawl4llm.optouts import Action, Said, decide, from_text, product_token, said_in_head, said_in_metas
from crawl4llm.parts import CLUEWEB22, is_web_url, links_record, listed_urls
from crawl4llm.scoring import PageWorkers, Rating
from crawl4llm.tools._known_files import LinkedPage, LinkSpread
from crawl4llm.tools._text_sources import lines_of_rows, parquet_rows, row_kind
from crawl4llm.warc import DATE, UnreadableFile, WarcReader, parse_stored, wat_page
from simulate import is_clueweb22, open_corpus

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


# -- rows -------------------------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """The URL and text of a document."""

    url: str | None
    text: str | None


@dataclass
class RowFile:
    """A file of rows; has their counts once :meth:`rows` has ended."""

    path: Path
    url_field: str
    text_field: str
    counts: Counter[str] = field(default_factory=Counter)
    """Rows that cannot be used, by reason."""
    first_fault: str = ""
    """The first of them: its line and its fault."""

    def rows(self) -> Iterator[Row]:
        """Yield the rows that can be used. Raises InputError if the file cannot be read to its end, or has rows and
        none that can be used."""
        kind, count = row_kind(self.path), 0
        rows = {"parquet": self._of_parquet, "cdxj": self._of_cdxj, "": self._of_list}.get(kind, self._of_json)
        for at, values in rows():
            if isinstance(values, str):
                self._note(at, values)
            elif (row := self._checked(at, values)) is not None:
                count += 1
                yield row
        if not count and self.counts:
            raise InputError(f"{self.path}: no row can be used: {self.first_fault}")

    def _note(self, at: str, what: str) -> None:
        self.counts[what] += 1
        self.first_fault = self.first_fault or f"{at}: {what}"

    def _checked(self, at: str, values: Row) -> Row | None:
        """Return a row from a file's values of any kind; None if it cannot be used."""
        url, text = values
        if url is not None and not (isinstance(url, str) and is_web_url(url.lstrip())):
            self._note(at, f"no URL in {self.url_field!r}")
            url = None
        if text is not None and not isinstance(text, str):
            self._note(at, f"no text in {self.text_field!r}")
            text = None
        if url is None and text is None:
            if values == (None, None):
                self._note(at, f"neither {self.url_field!r} nor {self.text_field!r} (--url-field, --text-field)")
            return None
        return Row(url, text)

    def _of_json(self) -> Iterator[tuple[str, Row | str]]:
        for number, line in lines_of_rows(self.path):
            at = f"line {number}"
            try:
                row = orjson.loads(line)
            except (ValueError, RecursionError):
                yield at, "no JSON"
                continue
            is_object = isinstance(row, dict)
            yield at, Row(row.get(self.url_field), row.get(self.text_field)) if is_object else "no JSON object"

    def _of_cdxj(self) -> Iterator[tuple[str, Row | str]]:
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
                yield at, "a response with status 4xx or 5xx" if failed else Row(url, None)

    def _of_list(self) -> Iterator[tuple[str, Row | str]]:
        for number, url in listed_urls(self.path, "the list"):
            yield f"line {number}", Row(url, None) if is_web_url(url) else "no URL"

    def _of_parquet(self) -> Iterator[tuple[str, Row | str]]:
        fields = (self.url_field, self.text_field)
        for number, values in parquet_rows(self.path, fields, "name the columns: --url-field, --text-field"):
            yield f"row {number}", Row(*values)


# -- pages with links -------------------------------------------------------------------------------------------------

WAT_NAME: Final = re.compile(r"(.+\.w?arc)\.wat((?:\.gz|\.zst)?)", re.IGNORECASE)
_DIGITS: Final = re.compile(r"\D")
_AT_ONCE: Final = 1024
_LARGEST_WAT: Final = 1 << 26
"""Most bytes of a record of a WAT file."""
_FOLLOWED: Final = (Action.FETCH, Action.ARCHIVE, Action.EXPAND)
"""Actions that a page must allow if its links are to be followed: otherwise a live crawl would drop it."""


@dataclass(frozen=True)
class LinkTaker:
    """Settings of a worker process: pickled if processes are spawned, inherited if they are forked."""

    corpus: Corpus
    by_url: bool
    """True if document keys are URLs."""
    fetch_opted_out: bool


def follows(said: Sequence[Said], *, fetch_opted_out: bool) -> bool:
    """Return whether the links of a page with these signals may be followed."""
    verdict = decide(said, fetch_opted_out=fetch_opted_out)
    return not any(map(verdict.forbids, _FOLLOWED))


def take_links(taker: LinkTaker, key: str) -> tuple[str, LinkedPage | str]:
    """Return a page's URL, and the page with its links, or why it is left out. Raises PageError."""
    page = taker.corpus.page(key)
    if page.outlinks is None:
        return page.url, "pages without HTML"
    if taker.by_url:  # links of the corpus lead to its own documents only, those of a crawl to any
        page.outlinks = [link._replace(key=link.url) for link in page.outlinks]
        page.key = page.url = key
    may_follow = page.follows and follows(from_text(page.opt_outs), fetch_opted_out=taker.fetch_opted_out)
    record = links_record(page, follows=may_follow, by_url=taker.by_url)
    return page.url, "URLs too long" if record is None else LinkedPage(page.key, date_number(page.date), record)


def date_number(date: str | None) -> int:
    """Return a date as a number of 14 digits, 0 without one."""
    digits = _DIGITS.sub("", date or "")[:14]
    return int(digits) if len(digits) == 14 and digits.isascii() else 0


def take_corpus(
    corpus: Corpus,
    keys: Iterator[str],
    settings: BaseSettings,
    spread: LinkSpread,
    add_url: Callable[[str], None] | None = None,
) -> Counter[str]:
    """Take pages of a corpus with their links; return counts. ``add_url`` is called for the URL of each. Raises
    InputError."""
    options, counts = read_options(settings), Counter[str]()
    taker = LinkTaker(corpus, corpus.name != CLUEWEB22, options.opt_out_fetch)
    with PageWorkers(taker, options.workers) as workers:
        workers.start()
        while some := list(islice(keys, _AT_ONCE)):
            pages: list[LinkedPage] = []
            for taken in workers.run_all(take_links, some):
                if isinstance(taken, Rating):
                    counts[str(taken.reason)] += 1
                    continue
                url, page = taken
                if add_url is not None and is_web_url(url):
                    add_url(url)
                    counts["urls"] += 1
                if isinstance(page, str):
                    counts[page] += 1
                else:
                    pages.append(page)
            counts["links"] += len(pages)
            spread.add(pages)
    return counts


# -- ClueWeb22 --------------------------------------------------------------------------------------------------------


def is_of_clueweb22(path: Path) -> bool:
    """Return whether a path is a ClueWeb22 tree, or the folder of a crawl of one. Raises InputError."""
    return is_clueweb22(path) or _facts(path).get("corpus") == CLUEWEB22


def take_clueweb22(
    path: Path, settings: BaseSettings, spread: LinkSpread, add_url: Callable[[str], None]
) -> Counter[str]:
    """Take all pages of a ClueWeb22 tree, or those that a crawl of one has archived, from the tree. Raises
    InputError."""
    settings, crawled = settings.copy(), not is_clueweb22(path)
    if crawled:
        take_over(settings, _facts(path), path)
    else:
        settings.set("CORPUS", str(path), priority="cmdline")
    with closing(open_corpus(settings)) as corpus:
        if corpus.name != CLUEWEB22:
            raise InputError(f"{path}: is the crawl of a ClueWeb22 tree; name that: -s CORPUS=TREE")
        corpus.check()
        corpus.require("outlinks")
        keys = (key for key, _ in _logged(path)) if crawled else corpus.keys()
        bar = wants_bar(read_options(settings).progress_bar)
        if crawled:
            take_scores(path, spread)
        shown = Progress(keys, f"pages of {path.name}", None if crawled else len(corpus), unit=" pages", bar=bar)
        return take_corpus(corpus, iter(shown), settings, spread, add_url)


# -- runs -------------------------------------------------------------------------------------------------------------


def take_scores(path: Path, spread: LinkSpread) -> int:
    """Take the influence scores in the crawl log of a run folder, or of that whose archive a folder is; return their
    number. Raises InputError."""
    folder = next((one for one in (path, path.parent) if (one / crawl_log.NAME).is_file()), None)
    if not path.is_dir() or folder is None:
        return 0
    number, scores = 0, ((key, score) for key, score in _logged(folder) if score is not None)
    while some := list(islice(scores, _AT_ONCE)):
        spread.add_scores(some)
        number += len(some)
    return number


def _logged(folder: Path) -> Iterator[tuple[str, float | None]]:
    """Yield the keys and influence scores of crawled pages; a score that is no finite number is None."""
    log = folder / crawl_log.NAME
    for line in crawl_log.read_log(log):
        key, score = line.get("id"), line.get("influence")
        if not isinstance(key, str):
            raise InputError(f"{log} is damaged: a line has no id")
        is_score = isinstance(score, float) and math.isfinite(score)
        yield key, score if is_score else None


def _facts(path: Path) -> dict[str, object]:
    """Return the content of a run folder's settings file; empty if there is no such file. Raises InputError."""
    if not (path / SETTINGS).is_file():
        return {}
    require_within(path, path / SETTINGS)
    try:
        facts = read_json(path / SETTINGS)
    except (OSError, ValueError) as error:
        raise InputError(f"{path / SETTINGS} cannot be read: {error}") from None
    return facts if isinstance(facts, dict) else {}


# -- WAT files --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WatJob:
    """A WAT file to be read."""

    path: Path
    size: int
    folder: Path
    """Folder of the spread of links."""
    crawler: str
    """Product token by which pages address the crawler."""
    fetch_opted_out: bool


def wat_job(path: Path, folder: Path, settings: BaseSettings) -> WatJob:
    """Return the job of reading a WAT file."""
    crawler = product_token(str(settings.get("USER_AGENT") or ""))
    return WatJob(path, path.stat().st_size, folder, crawler, read_options(settings).opt_out_fetch)


def wat_pages(job: WatJob, counts: Counter[str]) -> Iterator[tuple[str, LinkedPage]]:
    """Yield the pages of a WAT file with their URLs, and count the records that cannot be used. Raises InputError if it
    cannot be read."""
    try:
        reader = WarcReader(job.path)
        for stretch in reader.stretches():
            record = None if stretch.frame is None else stretch.frame.record
            if record is None:
                counts["damaged records"] += 1
            elif record.kind == "metadata":
                try:
                    stored = parse_stored(reader.read(stretch.offset, stretch.length, _LARGEST_WAT), str(job.path))
                    page = wat_record(stored.record.url, stored.record.block(stored.data), job)
                except (PageError, ValueError):
                    counts["records that are not of a WAT file"] += 1
                    continue
                if page is not None:
                    yield page.key, page._replace(date=date_number(stored.record.fields.text(DATE)))
    except UnreadableFile as error:
        raise InputError(str(error)) from None
    except OSError as error:
        raise InputError(f"{job.path}: cannot be read: {error.strerror}") from None


def wat_record(url: str, block: bytes, job: WatJob) -> LinkedPage | None:
    """Return the page that a record of a WAT file describes, None if it is no page. Raises ValueError for other
    JSON."""
    if not is_web_url(url):
        return None
    key = normalise_url(url)
    if (told := wat_page(block, key)) is None:
        return None
    said = [*said_in_head(told.headers, job.crawler), *said_in_metas(told.metas, job.crawler)]
    links = [Link(link.url, link.url, *link[1:]) for link in told.links]
    may_follow = follows(said, fetch_opted_out=job.fetch_opted_out)
    record = links_record(PageRecord(key, key, outlinks=links), follows=may_follow, by_url=True)
    return None if record is None else LinkedPage(key, 0, record)
