"""Sitemaps of a live crawl's sites: their URLs are treated as links, with the scores that the policy gives.

The sitemaps that a robots.txt names are requested one at a time per owner, among its other exchanges. To the policy a
sitemap is a page without an influence score.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Collection
from functools import partial
from typing import Final

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import DontCloseSpider, NotConfigured
from scrapy.http.request import NO_CALLBACK

from crawl4llm.base.domains import owner_of
from crawl4llm.base.errors import InputError
from crawl4llm.base.pages import Link
from crawl4llm.crawl import Driven
from crawl4llm.frontier import Entry
from crawl4llm.live.bodies import MOST_RECEIVED, MOST_UNPACKED
from crawl4llm.live.places import Later
from crawl4llm.live.recent import Recent
from crawl4llm.live.request_log import SITEMAP
from crawl4llm.live.robots import Robots
from crawl4llm.live.sitemap_files import MOST_BYTES, Listing, named_sitemaps, read_sitemap
from crawl4llm.live.stopping import crawl_of, is_stopping
from crawl4llm.live.verdicts import machine_error, verdict
from crawl4llm.options import read_options
from crawl4llm.policies import CrawledPage

logger = logging.getLogger(__name__)

_FILES: Final = 10
"""Sitemaps of a site, indexes among them."""
_LEVELS: Final = 3
"""A sitemap in an index in an index; sitemaps.org has no more than one."""
_REDIRECTS: Final = 3
_ATTEMPTS: Final = 3
_LONGEST_WAIT: Final = 300.0
"""Seconds for which an owner is waited for."""
_AT_ONCE: Final = 16
"""Sites whose sitemaps are read."""
_WAITING: Final = 10_000
"""Sites that wait for that; sitemaps of others are passed over."""
_REMEMBERED: Final = 100_000
"""Sites and owners that are remembered; of one that is forgotten sitemaps may be read once more."""


class Sitemaps:
    """Scrapy extension. Nothing of it is written down: a crawl that goes on reads the sitemaps of a site once more,
    when it first needs its robots.txt."""

    def __init__(self, crawler: Crawler, crawl: Driven, most: int) -> None:
        """``most``: URLs that are taken of an owner."""
        self._crawler, self._crawl, self._most = crawler, crawl, most
        self._wants = crawl.parts.having("wants")
        self._waiting: dict[str, list[tuple[str, list[str]]]] = {}
        """Sites and their sitemaps, by owner."""
        self._sites: Recent[None] = Recent(_REMEMBERED)
        """Whose sitemaps were read, or wait."""
        self._taken: Recent[int] = Recent(_REMEMBERED)
        """URLs, by owner."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """By owner."""
        crawler.signals.connect(self._opened, signal=signals.spider_opened)
        crawler.signals.connect(self._keep_open, signal=signals.spider_idle)
        crawler.signals.connect(self._closed, signal=signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Sitemaps:
        """Build it for the spider's crawl. Raises NotConfigured if SITEMAPS is 0."""
        crawl, most = crawl_of(crawler), read_options(crawler.settings).sitemaps
        if crawl is None or not most:
            raise NotConfigured
        return cls(crawler, crawl, most)

    def _opened(self) -> None:
        if (robots := self._crawler.get_downloader_middleware(Robots)) is None:
            logger.warning("SITEMAPS is ignored: sitemaps are named in robots.txt, and ROBOTSTXT_OBEY is off")
        else:
            robots.copies.listener = self._noticed

    def _noticed(self, site: str, robots: bytes, *, is_new: bool) -> None:
        """Let the sitemaps be read that a site's robots.txt names; once, unless it ``is_new``."""
        if (site in self._sites and not is_new) or not (urls := named_sitemaps(robots, site)):
            return
        if len(self._waiting) >= _WAITING or self._is_over:
            self._crawl.counters.counts["sitemaps/passed_over"] += len(urls)
            return
        self._sites.note(site, None)
        self._waiting.setdefault(owner_of(f"{site}/"), []).append((site, urls))
        self._begin()

    def _begin(self) -> None:
        """Begin with owners that wait, as many as may be at once."""
        for owner in [one for one in self._waiting if one not in self._tasks][: _AT_ONCE - len(self._tasks)]:
            task = self._tasks[owner] = asyncio.ensure_future(self._read_all(owner, self._waiting.pop(owner)))
            task.add_done_callback(partial(self._end, owner))
        self._crawl.expects = bool(self._tasks)

    def _end(self, owner: str, task: asyncio.Task[None]) -> None:
        del self._tasks[owner]
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("Cannot read the sitemaps of %s", owner, exc_info=error)
        if self._is_over:
            self._waiting.clear()
        self._begin()
        self._crawl.wake()

    async def _read_all(self, owner: str, sites: list[tuple[str, list[str]]]) -> None:
        for site, urls in sites:
            await self._read_site(owner, site, urls)

    async def _read_site(self, owner: str, site: str, urls: list[str]) -> None:
        """Read the sitemaps of a site, and those that they name, breadth first."""
        waiting = deque((url, 1) for url in urls)
        seen = set(urls)
        for _ in range(_FILES):
            left = self._most - self._taken.get(owner, 0)
            if not waiting or left <= 0 or self._is_over:
                return
            url, level = waiting.popleft()
            counts = self._crawl.counters.counts
            if not self._crawl.scope.may_list(site, url):
                counts["sitemaps/passed_over"] += 1
                continue
            listing = await self._listing(owner, url, left)
            counts["sitemaps/failed" if listing is None else "sitemaps/read"] += 1
            if listing is None:
                continue
            if listing.others:
                counts["links/language"] += listing.others
            self._take(owner, url, listing.pages)
            new = [one for one in listing.maps if one not in seen] if level < _LEVELS else []
            seen.update(new)
            waiting.extend((one, level + 1) for one in new)

    async def _listing(self, owner: str, url: str, most: int) -> Listing | None:
        """Return the content of a sitemap; None if it cannot be fetched or read. Raises errors of this machine."""
        try:
            if (data := await self._download(url)) is None:
                return None
            return await asyncio.to_thread(
                read_sitemap, data, url, most, lambda key: owner_of(key) == owner, self._speaks
            )
        except (InputError, MemoryError, OSError):
            raise
        except Exception:
            logger.exception("Cannot read the sitemap %s", url)
            return None

    def _speaks(self, languages: Collection[str]) -> bool:
        return all(wants(languages) for wants in self._wants)

    def _take(self, owner: str, url: str, pages: list[str]) -> None:
        """Let the crawl follow the URLs of a sitemap."""
        if not pages:
            return
        self._taken.note(owner, self._taken.get(owner, 0) + len(pages))
        self._crawl.counters.counts["links/sitemap"] += len(pages)
        links = [Link(key, key, "", False) for key in pages]
        self._crawl.follow(CrawledPage(Entry(url, url, 0.0, 0, None), None, links, archived=False))
        self._crawl.wake()

    async def _download(self, url: str) -> bytes | None:
        """Return the body of a sitemap, cut if it is too long; None if it cannot be fetched. Raises errors that are not
        the sitemap's fault."""
        meta = {"dont_retry": True, "download_maxsize": 0, "redirect_ttl": _REDIRECTS, SITEMAP: True}
        meta |= {MOST_RECEIVED: MOST_BYTES, MOST_UNPACKED: MOST_BYTES}
        headers = {"Accept": "application/xml,text/xml,text/plain,*/*;q=0.5", "Accept-Encoding": "identity"}
        for _ in range(_ATTEMPTS):
            request = Request(url, callback=NO_CALLBACK, headers=headers, meta=dict(meta))
            try:
                response = await self._crawler.engine.download_async(request)
            except Later as error:
                if error.final or not 0 < error.wait <= _LONGEST_WAIT:
                    return None
                await asyncio.sleep(error.wait)
            except Exception as error:
                if isinstance(error, InputError) or machine_error(error) or verdict(error) is None:
                    raise
                logger.debug("%s is unavailable: %s", url, error)
                return None
            else:
                return response.body[:MOST_BYTES] if response.status == 200 else None
            if self._is_over:
                break
        return None

    @property
    def _is_over(self) -> bool:
        """True if the crawl is ending."""
        return is_stopping(self._crawler) or self._crawl.failure is not None or self._crawl.finished is not None

    def _keep_open(self) -> None:
        """Let a crawl that has nothing else to do wait for sitemaps."""
        if self._tasks and not self._is_over:
            raise DontCloseSpider

    def _closed(self) -> None:
        for task in self._tasks.values():
            task.cancel()
