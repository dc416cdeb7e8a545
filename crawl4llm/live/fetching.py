"""The fetching of pages on the live web: downloader middlewares that make pages of downloads, and follow redirects."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urldefrag

from scrapy import Request
from scrapy.core.downloader import Downloader
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.redirect import RedirectMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.settings import BaseSettings

from crawl4llm.base.errors import NoPage
from crawl4llm.base.pages import Capture, PageRecord
from crawl4llm.base.reasons import BAD_URL, NOT_HTML, REDIRECT_LOOP, TOO_MANY_REDIRECTS
from crawl4llm.base.urls import normalise_url, redirect_target
from crawl4llm.crawl import Scope, attach_page, crawl_on, is_leased, lease_of
from crawl4llm.live.capturing import REDIRECTS, captures_of
from crawl4llm.live.opt_outs import OptOuts
from crawl4llm.live.reading import FetchedPage, Reader, head_fields
from crawl4llm.live.web import LiveWeb
from crawl4llm.optouts import Action, as_text, is_noindex, said_in_head
from crawl4llm.warc import CONTENT_TYPE, Fields, is_html

HAS_HOST = re.compile(r"https?://([\w.-]+|\[[0-9a-f:.]+\])(:\d*)?([/?#]|\Z)", re.ASCII | re.IGNORECASE)
"""URLs with a host that can be looked up, and without a user's name or password: nobody gave us any."""


class Elsewhere(Exception):
    """A redirect led to another owner, or to a URL that may not be requested soon. No request was sent; the lease
    ends."""

    def __init__(self, page: PageRecord) -> None:
        """``page``: as :meth:`crawl4llm.crawl.driven.Driven.redirected` takes it."""
        super().__init__(f"{page.key}: redirected to {page.hops[-1]}")
        self.page = page


class Fetching:
    """Downloader middleware, the outermost: request in, page out, as in a simulation.

    Links and HTML are read from the capture, exactly as they will be read from the archive.
    """

    web = LiveWeb

    def __init__(self, scope: Scope, opt_outs: OptOuts, reader: Reader) -> None:
        """``scope`` judges targets of redirects, ``opt_outs`` the signals of sites; ``reader`` rates pages."""
        self._scope, self._opt_outs, self._reader = scope, opt_outs, reader

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Fetching:
        """Return one for the crawl that a crawler runs. Raises InputError if it runs none."""
        if (found := crawl_on(LiveWeb, crawler)) is None:
            LiveWeb.visit(crawler.settings, None)
        web, crawl = found
        crawl.lag = web.reader.lag
        return cls(crawl.scope, OptOuts(crawler.settings), web.reader)

    def process_request(self, request: Request) -> None:
        """Raise NoPage for a URL without a host, of a domain that is blocked, and for a redirect to where the crawl
        would not follow; Elsewhere for one that ends the lease."""
        if not is_leased(request):
            return
        if not HAS_HOST.match(request.url):
            raise NoPage(f"{request.url}: the host does not exist", BAD_URL)
        if "redirect_times" not in request.meta:  # Scrapy's
            if (refusal := self._scope.blocked(request.url)) is not None:
                raise NoPage(f"{request.url}: its domain is blocked", refusal.reason, wanted=False, why=refusal.why)
        else:
            entry, key = lease_of(request).entry, normalise_url(request.url)
            if self._scope.ends_lease(entry, key):
                raise elsewhere(request)
            if (refusal := self._scope.refusal(entry, key)) is not None:
                raise NoPage(f"{request.url}: {refusal.reason}", refusal.reason, wanted=False, why=refusal.why)

    async def process_response(self, request: Request, response: Response) -> Response:
        """Attach the page; only a response with status 200 has one. Raises OptedOut if it may not be kept, and NoPage
        if its body cannot be unpacked. Raises Later if its site's opt-outs cannot be fetched now, and InputError if the
        page cannot be rated."""
        if is_leased(request) and response.status == 200:
            capture = (captures := captures_of(request))[-1]
            if not is_html(Fields(head_fields(capture)).listed(CONTENT_TYPE), capture.body):
                raise NoPage(f"{capture.url}: is not HTML", NOT_HTML, wanted=False)
            hops, opt_outs = _keys_behind(captures), self._opt_outs
            key = hops[-1] if hops else lease_of(request).entry.key
            page = FetchedPage(key, capture.url, capture.date, captures=captures, hops=hops)
            in_head = said_in_head(capture.headers, opt_outs.of_pages.crawler)
            opt_outs.verdict(request, *in_head)  # nothing is read, and no site asked, for what is opted out already
            if opt_outs.asks_site(request):
                await self._reader.look(page)
                opt_outs.verdict(request, *in_head, *page.said)
                await opt_outs.ask_site(request)
                opt_outs.verdict(request, *in_head, *page.said)
            await self._reader.read(page)
            verdict = opt_outs.verdict(request, *in_head, *page.said)
            page.opt_outs, page.follows = as_text(verdict.said), not verdict.forbids(Action.EXPAND)
            page.noindex = is_noindex(verdict.said)
            attach_page(request, page)
        return response


class Redirecting(RedirectMiddleware):
    """Follows a redirect as a browser does. A redirect without a valid URL is an answer without a page. A redirect to
    another host goes to that host's slot of the downloader; Scrapy would leave it in the old slot. A loop ends at the
    first URL that was requested before."""

    def __init__(self, settings: BaseSettings) -> None:
        super().__init__(settings)
        self._ends_loops = not settings.getbool("COOKIES_ENABLED")
        """With a cookie the same URL may be answered otherwise, and REDIRECT_MAX_TIMES alone ends a loop."""

    # Scrapy's takes the spider too, which is deprecated and asked of no middleware any more.
    def process_response(self, request: Request, response: Response) -> Request | Response:  # type: ignore[override]
        """Return the request for where a redirect leads, or the answer itself. Raises NoPage if redirects have no
        end."""
        target = redirect_target(request.url, response.headers.get("Location") or b"")
        if target is None:  # such as javascript:, or a port that is none
            return response
        headers = response.headers.copy()
        headers["Location"] = target
        try:
            result = super().process_response(request, response.replace(headers=headers))
        except IgnoreRequest as error:
            raise NoPage(f"{request.url}: {error}", TOO_MANY_REDIRECTS) from error
        if isinstance(result, Request):
            before = {urldefrag(url).url for url in result.meta["redirect_urls"]}
            if self._ends_loops and urldefrag(result.url).url in before:
                raise NoPage(f"{request.url}: redirects to {result.url} again", REDIRECT_LOOP)
            result.meta.pop(Downloader.DOWNLOAD_SLOT, None)  # the new host has a delay of its own
            return result
        return response


def elsewhere(request: Request) -> Elsewhere:
    """Return the exception that ends the lease of a document if redirects have led to a request."""
    entry = lease_of(request).entry
    captures = [capture for capture in captures_of(request) if capture.status in REDIRECTS]
    hops = [*_keys_behind(captures), normalise_url(request.url)]
    return Elsewhere(PageRecord(entry.key, entry.url, captures=captures, hops=hops))


def leads_on(request: Request) -> bool:
    """Return whether redirects have led to a request for another document than those that were asked for before."""
    if not is_leased(request) or "redirect_times" not in request.meta:  # Scrapy's
        return False
    asked_for = {normalise_url(capture.url) for capture in captures_of(request)}
    return normalise_url(request.url) not in {lease_of(request).entry.key, *asked_for}


def _keys_behind(captures: Sequence[Capture]) -> list[str]:
    """Return the keys of the documents that redirects led to, by the exchanges."""
    return [normalise_url(capture.url) for capture in captures[1:]]
