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
from typing import Any, NamedTuple

from crawl4llm.base.charsets import Html
from crawl4llm.base.errors import NoPage
from crawl4llm.base.html_tree import HtmlTree, html_links, link_texts
from crawl4llm.base.page_heads import PageHead, page_head, with_cookies
from crawl4llm.base.pages import Capture, Link, PageRecord
from crawl4llm.base.reasons import DAMAGED, ERROR
from crawl4llm.base.session_links import without_sessions
from crawl4llm.optouts import Action, Said, decide, said_in_tree
from crawl4llm.scoring import HtmlPage, PageRater, PageTasks, RatedText, Raters, Rating, influence_task
from crawl4llm.warc import Fields, html_of, may_unpack_to

_Rate = Callable[[PageRater, HtmlPage], Rating | RatedText]
_CHARACTER_BYTES = 2
"""Bytes of a character of a text in memory, about: one in Latin-1, four at most."""


@dataclass(slots=True)
class FetchedPage(PageRecord):
    """A page from the network: its HTML is in the body of its last exchange, packed as it was received."""

    rating: Rating | RatedText | None = None
    """None before it was read, and if its own signals forbid to keep it."""
    said: Sequence[Said] = ()
    """The signals in its HTML."""


class Unpacking(NamedTuple):
    """How far the bodies of a crawl are unpacked."""

    most: int | None
    """Bytes of HTML that are read of a page (DOWNLOAD_MAXSIZE); None for no limit."""
    is_cut: bool
    """True if a longer page is cut there, False if it is dropped (BODY_LIMIT)."""


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

    def html(self) -> Html:
        """Return the HTML in UTF-8. Raises NoPage."""
        try:
            return html_of(self.body, Fields(self.head), self.unpacking.most, as_sent=self.unpacking.is_cut)
        except ValueError as error:
            raise NoPage(str(error), DAMAGED) from error


class Reading(NamedTuple):
    """The rating and the links of a page."""

    rating: Rating | RatedText | None
    """None if it was not wanted, or the page's own signals forbid to keep it."""
    links: Sequence[tuple[str, str, bool, str, str]]
    """See :class:`crawl4llm.base.html_tree.HtmlLink`; plain tuples take a third of the time between processes."""
    said: Sequence[Said]
    head: tuple[Any, ...]
    """The fields of a :class:`crawl4llm.base.page_heads.PageHead`."""


class Unread(NamedTuple):
    """Why a body is no page; of :class:`crawl4llm.base.errors.NoPage`, which would not come whole from a process."""

    message: str
    reason: str
    wanted: bool


def head_fields(capture: Capture) -> bytes:
    """Return the fields of a response's head, as :class:`crawl4llm.warc.records.Fields` takes them."""
    return b"".join(b"\n%b: %b" % one for one in capture.headers)


def _read(rater: PageRater, page: SentPage, rate: _Rate | None, opt_outs: OfPages) -> Reading | Unread:
    """The task of a worker: unpack and parse a page once, find its signals and links, and rate it unless ``rate`` is
    None."""
    try:
        html = page.html()
    except NoPage as error:
        return Unread(str(error), error.reason, error.wanted)
    tree = HtmlTree(html.data)
    said = said_in_tree(tree, opt_outs.crawler)
    headers = Fields(page.head).pairs()
    links = [link[:] for link in without_sessions(html_links(tree, page.url, html.charset), page.url, headers)]
    head = with_cookies(page_head(tree, page.url, html.charset), headers)[:]
    texts = link_texts(tree) if rater.lines else None
    del tree  # a large one is not to stand beside the extractor's
    is_kept = not decide(said, fetch_opted_out=opt_outs.fetched).forbids(Action.ARCHIVE)
    rating = rate(rater, HtmlPage(page.url, html.data, texts)) if rate and is_kept else None
    return Reading(rating, links, said, head)


def _rate(rater: PageRater, page: SentPage, rate: _Rate) -> Rating | RatedText:
    """The task of a worker: rate a page that an earlier process has read."""
    return rate(rater, HtmlPage(page.url, page.html().data))


class OfPages(NamedTuple):
    """Decides about opt-out signals in pages."""

    crawler: str
    """Product token in lower case."""
    fetched: bool
    """What OPT_OUT_FETCH says."""


class Reader:
    """Reads pages in the processes of PageWorkers; if wanted, ratings come with main text and signature."""

    def __init__(
        self, workers: Raters[PageRater], unpacking: Unpacking, opt_outs: OfPages, *, text: bool, signature: bool
    ) -> None:
        self._workers, self._unpacking = workers, unpacking
        self._rate = influence_task(text=text, signature=signature, more=workers.rater.tells_more)
        self._reading = PageTasks(workers, partial(_read, rate=self._rate, opt_outs=opt_outs))
        self._looking = PageTasks(workers, partial(_read, rate=None, opt_outs=opt_outs))

    def lag(self) -> int:
        """Return the number of waiting pages if no more should be requested: their content should decide which document
        is next."""
        return self._reading.lag()

    async def look(self, page: FetchedPage) -> None:
        """Give a page its links and its signals, but no rating. Raises NoPage if its body cannot be unpacked, or it
        cannot be parsed."""
        self._note(page, await self._looking.run(self._sent(page)))

    async def read(self, page: FetchedPage) -> None:
        """Give a page its links, its signals and its rating. Raises NoPage as :meth:`look` does, and InputError if the
        scorer does.

        A page that kills or hangs its worker still gets links and signals: another task finds them.
        """
        found = await self._reading.run(self._sent(page))
        if isinstance(found, Rating):
            page.rating = found
            await self.look(page)
        else:
            self._note(page, found)

    def _note(self, page: FetchedPage, found: Reading | Unread | Rating) -> None:
        if isinstance(found, Rating):
            raise NoPage(f"{page.url}: cannot be parsed", found.reason or ERROR)
        if isinstance(found, Unread):
            raise NoPage(f"{page.url}: {found.message}", found.reason, wanted=found.wanted)
        page.rating, page.said = page.rating or found.rating, found.said
        page.outlinks = [Link(link[0], *link) for link in found.links]
        page.head = PageHead(*found.head)
        if isinstance(page.rating, RatedText) and page.rating.text:
            page.beside = _CHARACTER_BYTES * len(page.rating.text)

    async def ratings(self, pages: Sequence[PageRecord]) -> list[Rating | RatedText]:
        """Return the ratings of pages, in their order; pages that an earlier process read are rated again."""
        known = [page.rating if isinstance(page, FetchedPage) else None for page in pages]
        kept = [self._sent(page) for page, rating in zip(pages, known, strict=True) if rating is None]
        if not kept:
            return [rating for rating in known if rating is not None]
        anew = iter(await self._workers.run(partial(_rate, rate=self._rate), kept))
        return [rating or next(anew) for rating in known]

    def _sent(self, page: PageRecord) -> SentPage:
        capture = page.captures[-1]
        return SentPage(page.key, head_fields(capture), capture.body, self._unpacking)
