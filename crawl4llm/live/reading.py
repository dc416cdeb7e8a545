"""Reading pages of a live crawl: worker processes find a page's links and rate its text as soon as it is fetched.

The main process has no HTML to parse, and the workers need not wait until a page is merged. A page that waits for them
is still in flight to crawl and downloader, so that CONCURRENT_REQUESTS bounds how many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crawl4llm.base.html_links import html_links
from crawl4llm.base.pages import Link, PageRecord
from crawl4llm.scoring.rating import HtmlPage, PageRater, RatedText, Rating, Reading, reading_task
from crawl4llm.scoring.workers import HtmlWorkers, PageWorkers, rate_by_html


@dataclass(slots=True)
class FetchedPage(PageRecord):
    """A page from the network."""

    rating: Rating | RatedText | None = None
    """None before it was read."""


class Reader:
    """Reads pages in the processes of PageWorkers; if wanted, ratings come with main text and signature."""

    def __init__(self, workers: PageWorkers[PageRater], *, text: bool, signature: bool) -> None:
        self._workers, self._text, self._signature = workers, text, signature
        self._reading = HtmlWorkers(
            workers, reading_task(text=text, signature=signature, classes=bool(workers.rater.classifiers))
        )

    def lag(self) -> int:
        """Return how many pages wait, if more should not be asked for: what is next had better be chosen by what is in
        them."""
        return self._reading.lag()

    async def read(self, page: FetchedPage) -> None:
        """Give a page its links and its rating. Raises InputError where the scorer does.

        A page that ends or hangs its worker has its links all the same: they are found in this process.
        """
        html = page.html or b""
        found = await self._reading.run(HtmlPage(page.key, html))
        page.rating, links = found if isinstance(found, Reading) else (found, html_links(html, page.key))
        page.outlinks = [Link(url, url, anchor, boilerplate) for url, anchor, boilerplate in links]

    async def ratings(self, pages: Sequence[PageRecord]) -> list[Rating | RatedText]:
        """Return the ratings of pages, in their order; those that were read by an earlier process are rated anew."""
        known = [page.rating if isinstance(page, FetchedPage) else None for page in pages]
        kept = [page for page, rating in zip(pages, known, strict=True) if rating is None]
        if not kept:
            return [rating for rating in known if rating is not None]
        anew = iter(await rate_by_html(self._workers, kept, text=self._text, signature=self._signature))
        return [rating or next(anew) for rating in known]
