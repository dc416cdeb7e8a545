"""Pages of a live crawl are read in worker processes: links and scores are those that one process finds."""

from __future__ import annotations

import asyncio
import gzip
import os
import signal
from collections.abc import Iterator, Sequence

import pytest

from crawl4llm.base.errors import InputError, NoPage
from crawl4llm.base.html_tree import HtmlLink, HtmlTree, html_links
from crawl4llm.base.pages import Capture, Link, PageRecord
from crawl4llm.base.reasons import ERROR, KILLED, TIMEOUT
from crawl4llm.crawl.fetched_web import LiveCorpus
from crawl4llm.live.reading import FetchedPage, OfPages, Reader, Unpacking
from crawl4llm.scoring.length import LengthScorer
from crawl4llm.scoring.rating import PageRater, RatedText, Rating
from crawl4llm.scoring.signatures import signature_of
from crawl4llm.scoring.text import EXTRACTORS
from crawl4llm.scoring.workers import PageWorkers
from simulate.demo.text import page_html
from simulate.demo.web import Web


class NanForOne(LengthScorer):
    """Gives one text no finite number."""

    def score(self, texts: Sequence[str]) -> list[float]:
        return [float("nan")] if texts == ["nan"] else super().score(texts)


def extractor(html: str) -> str:
    if html.startswith("kill"):
        os._exit(1)
    if html.startswith("hang"):
        signal.pause()
    return html


def links_but_of_one(page: HtmlTree, url: str, charset: str) -> list[HtmlLink]:
    if "unforeseen" in url:
        raise KeyError(url)
    return html_links(page, url, charset)


@pytest.fixture(scope="module")
def workers() -> Iterator[PageWorkers[PageRater]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(EXTRACTORS, "trafilatura", extractor)
        patch.setattr("crawl4llm.live.reading.html_links", links_but_of_one)
        with PageWorkers(PageRater(LiveCorpus(), NanForOne(), "trafilatura"), processes=2, time_limit=1.0) as workers:
            workers.start()
            yield workers


def unread(name: str, html: str) -> FetchedPage:
    url = f"http://{name}.test/folder/page"
    return FetchedPage(url, url, captures=[sent(url, gzip.compress(html.encode(), mtime=0))])


def sent(url: str, body: bytes) -> Capture:
    headers = [(b"Content-Type", b"text/html"), (b"Content-Encoding", b"gzip")]
    return Capture(url, "2026-11-20T12:00:00Z", "GET", [], b"", 200, "OK", headers, exact_headers=True, body=body)


def html_in(page: PageRecord) -> bytes:
    return gzip.decompress(page.captures[-1].body)


def reader_of(workers: PageWorkers[PageRater], *, text: bool = False, signature: bool = False) -> Reader:
    unpacking, of_pages = Unpacking(10_000_000, is_cut=True), OfPages("testbot", fetched=False)
    return Reader(workers, unpacking, of_pages, text=text, signature=signature)


def read(reader: Reader, pages: list[FetchedPage]) -> None:
    async def read_all() -> None:
        await asyncio.wait_for(asyncio.gather(*map(reader.read, pages)), 20.0)

    asyncio.run(read_all())


@pytest.mark.slow
def test_a_page_that_ends_or_hangs_its_process_has_links_and_harms_no_other(workers: PageWorkers[PageRater]) -> None:
    web = Web(40, 4, 0)
    demo = [page_html(page, web.sites[page.site], web.blocks(page), web.links[page.number]) for page in web.pages]
    link = '<p><a href="../next?a=b#c">next</a> <a href="http://other.test/">other</a> <nav><a href="/">home</a></nav>'
    pages = [unread(f"demo-{number}", html) for number, html in enumerate(demo)]
    pages[3:3] = [unread("kill", f"kill {link}"), unread("hang", f"hang {link}")]
    reader = reader_of(workers, text=True, signature=True)
    read(reader, pages)
    for page in pages:
        found = html_links(HtmlTree(html_in(page)), page.key)
        assert page.outlinks == [Link(one.url, one.url, one.anchor, one.boilerplate) for one in found]
        assert page.outlinks, page.key
    assert all(page.html is None for page in pages), "what waits is what was sent"
    texts = [html_in(page).decode() for page in pages]
    rated = [RatedText(float(len(text)), None, text, signature_of(text)) for text in texts]
    rated[3:5] = [Rating(None, KILLED), Rating(None, TIMEOUT)]
    assert [page.rating for page in pages] == rated
    # What another process had read, and kept for this one, is rated again in its place.
    kept: list[PageRecord] = [
        *pages[:2],
        PageRecord(pages[2].key, pages[2].url, captures=pages[2].captures),
        *pages[3:6],
    ]
    assert asyncio.run(reader.ratings(kept)) == rated[:6]


def test_a_scorer_that_gives_no_number_fails_its_pages(workers: PageWorkers[PageRater]) -> None:
    with pytest.raises(InputError, match=r"nan\.test"):
        read(reader_of(workers), [unread("nan", "nan")])


def test_an_error_that_nobody_foresaw_fails_its_page(workers: PageWorkers[PageRater]) -> None:
    pages = [unread("unforeseen", "text"), unread("other", "text <a href=x>")]
    reader = reader_of(workers)
    with pytest.raises(NoPage) as raised:
        read(reader, pages[:1])
    assert (raised.value.reason, raised.value.wanted) == (ERROR, True)
    read(reader, pages[1:])
    assert [link.url for link in pages[1].outlinks or ()] == ["http://other.test/folder/x"]


def test_a_page_that_says_no_is_not_rated(workers: PageWorkers[PageRater]) -> None:
    page = unread("opted-out", "<meta name=robots content=noarchive><a href=x>")
    reader = reader_of(workers)
    read(reader, [page])
    assert page.rating is None
    assert [one.value for one in page.said] == ["noarchive"]
    asyncio.run(reader.look(other := unread("seen", "<meta name=testbot content=noai>kill")))
    assert [one.value for one in other.said] == ["noai"], "it was not given to the extractor"


def test_no_more_is_asked_for_while_many_pages_wait(workers: PageWorkers[PageRater]) -> None:
    async def lags() -> list[int]:
        reader = reader_of(workers)
        reading = [asyncio.ensure_future(reader.read(unread(f"page-{number}", "text"))) for number in range(100)]
        await asyncio.sleep(0)
        found = [reader.lag()]
        await asyncio.gather(*reading)
        return [*found, reader.lag()]

    assert asyncio.run(lags()) == [96, 0], "four are in the places of the two processes"
