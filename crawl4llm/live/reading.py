"""Reading pages of a live crawl: worker processes unpack a page, find its links and rate its text as soon as it is
fetched.

A body waits as it was received, in the main process and in the workers, and is unpacked by the process that parses it.
So 400 bodies of 60 KB take 24 MB, whatever they unpack to. A page that waits is still in flight to crawl and
downloader, so that CONCURRENT_REQUESTS bounds how many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from crawl4llm.base.errors import NoPage
from crawl4llm.base.html_links import html_links
from crawl4llm.base.pages import Capture, Link, PageRecord
from crawl4llm.base.reasons import DAMAGED
from crawl4llm.scoring.rating import HtmlPage, PageRater, RatedText, Rating, html_task
from crawl4llm.scoring.workers import PageTasks, PageWorkers
from crawl4llm.warc.payload import html_of, may_unpack_to
from crawl4llm.warc.records import Fields

_Rate = Callable[[PageRater, HtmlPage], Rating | RatedText]
_CHARACTER_BYTES = 2
"""Bytes of a character of a text in memory, about: one in Latin-1, four at most."""


@dataclass(slots=True)
class FetchedPage(PageRecord):
    """A page from the network: its HTML is in the body of its last exchange, packed as it was received."""

    rating: Rating | RatedText | None = None
    """None before it was read."""


class Unpacking(NamedTuple):
    """How far the bodies of a crawl are unpacked."""

    most: int | None
    """Bytes of HTML that are read of a page (DOWNLOAD_MAXSIZE); None for no limit."""
    is_cut: bool
    """Whether a page is cut there, and not dropped (BODY_LIMIT)."""


@dataclass(frozen=True, order=True)
class SentPage:
    """A page as it was sent; logs show it without its body."""

    url: str
    head: bytes = field(repr=False)
    """The fields of the response's head."""
    body: bytes = field(repr=False)
    unpacking: Unpacking

    @property
    def weight(self) -> int:
        """Bytes that it may have when it is unpacked."""
        return may_unpack_to(self.body, Fields(self.head), self.unpacking.most)

    def html(self) -> bytes:
        """Return the HTML in UTF-8. Raises NoPage."""
        try:
            return html_of(self.body, Fields(self.head), self.unpacking.most, as_sent=self.unpacking.is_cut)
        except ValueError as error:
            raise NoPage(str(error), DAMAGED) from error


class Reading(NamedTuple):
    """The rating and the links of a page."""

    rating: Rating | RatedText | None
    """None if only its links were wanted."""
    links: Sequence[tuple[str, str, bool]]
    """See :class:`crawl4llm.base.html_links.HtmlLink`; plain tuples take a third of the time between processes."""


class Unread(NamedTuple):
    """Why a body is no page; of :class:`crawl4llm.base.errors.NoPage`, which would not come whole from a process."""

    message: str
    reason: str
    wanted: bool


def head_fields(capture: Capture) -> bytes:
    """Return the fields of a response's head, as :class:`crawl4llm.warc.records.Fields` takes them."""
    return b"".join(b"\n%b: %b" % one for one in capture.headers)


def _read(rater: PageRater, page: SentPage, rate: _Rate | None) -> Reading | Unread:
    """The task of a worker: unpack a page, rate it unless ``rate`` is None, find its links."""
    try:
        html = page.html()
    except NoPage as error:
        return Unread(str(error), error.reason, error.wanted)
    rating = None if rate is None else rate(rater, HtmlPage(page.url, html))
    return Reading(rating, [link[:] for link in html_links(html, page.url)])


def _rate(rater: PageRater, page: SentPage, rate: _Rate) -> Rating | RatedText:
    """The task of a worker: rate a page that an earlier process has read."""
    return rate(rater, HtmlPage(page.url, page.html()))


class Reader:
    """Reads pages in the processes of PageWorkers; if wanted, ratings come with main text and signature."""

    def __init__(self, workers: PageWorkers[PageRater], unpacking: Unpacking, *, text: bool, signature: bool) -> None:
        self._workers, self._unpacking = workers, unpacking
        self._rate = html_task(text=text, signature=signature, classes=bool(workers.rater.classifiers))
        self._reading = PageTasks(workers, partial(_read, rate=self._rate))
        self._links = PageTasks(workers, partial(_read, rate=None))

    def lag(self) -> int:
        """Return how many pages wait, if more should not be asked for: what is next had better be chosen by what is in
        them."""
        return self._reading.lag()

    async def read(self, page: FetchedPage) -> None:
        """Give a page its links and its rating. Raises NoPage if its body cannot be unpacked, and InputError if the
        scorer does.

        A page that ends or hangs its worker has its links all the same: another task finds them. If it ends that too,
        it has none.
        """
        sent = self._sent(page)
        found = await self._reading.run(sent)
        if isinstance(found, Rating):
            page.rating, found = found, await self._links.run(sent)
        if isinstance(found, Unread):
            raise NoPage(f"{page.url}: {found.message}", found.reason, wanted=found.wanted)
        links: Sequence[tuple[str, str, bool]] = ()
        if isinstance(found, Reading):
            page.rating, links = page.rating or found.rating, found.links
        page.outlinks = [Link(url, url, anchor, boilerplate) for url, anchor, boilerplate in links]
        if isinstance(page.rating, RatedText) and page.rating.text:
            page.beside = _CHARACTER_BYTES * len(page.rating.text)

    async def ratings(self, pages: Sequence[PageRecord]) -> list[Rating | RatedText]:
        """Return the ratings of pages, in their order; those that were read by an earlier process are rated anew."""
        known = [page.rating if isinstance(page, FetchedPage) else None for page in pages]
        kept = [self._sent(page) for page, rating in zip(pages, known, strict=True) if rating is None]
        if not kept:
            return [rating for rating in known if rating is not None]
        anew = iter(await self._workers.run(partial(_rate, rate=self._rate), kept))
        return [rating or next(anew) for rating in known]

    def _sent(self, page: PageRecord) -> SentPage:
        capture = page.captures[-1]
        return SentPage(page.key, head_fields(capture), capture.body, self._unpacking)
