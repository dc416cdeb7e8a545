"""robots.txt by RFC 9309: a downloader middleware that asks for it, and holds each request to it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest, NotConfigured
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK

from crawl4llm.base.errors import NoPage, PageError
from crawl4llm.base.reasons import CERTIFICATE, DNS, HELD, REFUSED, ROBOTS, ROBOTS_UNKNOWN
from crawl4llm.base.urls import normalise_url, redirect_target, site_of
from crawl4llm.crawl import is_leased
from crawl4llm.live.bodies import MOST_RECEIVED, MOST_UNPACKED
from crawl4llm.live.capturing import ALLOWED_BY, REDIRECTS, WANTED, keep, of_target, why
from crawl4llm.live.fetching import HAS_HOST
from crawl4llm.live.identity import crawler_name
from crawl4llm.live.opt_outs import OptOuts
from crawl4llm.live.places import PATIENT, Later, wait_in
from crawl4llm.live.request_log import FILE, LED
from crawl4llm.live.robots_copies import Copies, Known
from crawl4llm.live.robots_store import RobotsStore
from crawl4llm.live.stopping import Withdrawn, crawl_of
from crawl4llm.live.tdmrep import TdmFiles
from crawl4llm.live.verdicts import machine_error, verdict
from crawl4llm.options import read_options
from crawl4llm.optouts import LIMIT, ROBOTS_TXT, TDMREP, Rules

logger = logging.getLogger(__name__)

_MOST_REDIRECTS: Final = 5
"""RFC 9309, 2.3.1.2; beyond, there is no robots.txt."""
_LONGEST_ELSEWHERE: Final = 10.0
"""Seconds for which a document keeps its place while another site's robots.txt is waited for."""
_PAUSE: Final = 30.0
"""Seconds for which its owner is then left alone, at least."""
_LONGEST_PAUSE: Final = 600.0
"""Seconds; a site that gets no request for longer has an unavailable robots.txt."""
_LARGEST: Final = 16 << 20
"""Bytes, by its own head, of a robots.txt that is read at all."""
_CODINGS: Final = (b"aes", b"br", b"compress", b"dc", b"deflate", b"exi", b"gzip", b"zstd")
"""Beginnings of content codings that bodies really come in (IANA's registry); servers put other words there too."""
_OF_THE_HOST: Final = {CERTIFICATE, DNS, REFUSED}
"""Failures that say more of a host than that its robots.txt is unknown: its documents fail with them too."""


class Forbidden(NoPage, IgnoreRequest):
    """A document that robots.txt forbids, with the line that does. Scrapy's own requests are dropped for it too."""


class RobotsUnknown(NoPage):
    """A document that is not requested, because its site's robots.txt is unavailable.

    The reason is ROBOTS_UNKNOWN, and the document is requeued; or a reason that says more of the host.
    """

    def __init__(self, site: str, known: Known, now: float, *, is_new: bool) -> None:
        """``now`` is by the clock on the wall."""
        message = f"{site}/robots.txt is unavailable"
        because = why(message, known.source_of_failure) if known.source_of_failure else None
        super().__init__(message, known.reason or ROBOTS_UNKNOWN, why=because)
        self.wait = min(max(known.failed + known.wait - now, 0.0), known.wait)
        """Seconds in which robots.txt is not asked for; no more than were noted, however the clock was changed."""
        self.failures = known.failures
        """Requests for it that have failed in a row."""
        self.is_new = is_new
        """True if it was requested just now."""


class _Answer(NamedTuple):
    """The answer to a request for robots.txt: a file, its absence, or a failure with its reason."""

    body: bytes | None = None
    reason: str | None = None
    wait: float = 0.0
    """Seconds that the server asks us to wait."""
    elsewhere: tuple[str, int] | None = None
    """Another site whose robots.txt holds, and the redirects that led there."""
    source: str | None = None
    """The record of the archive that has it, as :attr:`crawl4llm.live.robots_copies.Known.source`."""


class Robots:
    """Requests the robots.txt of each site (a scheme with an authority) once, and passes the requests that it allows.

    Its requests go through the downloader in the slot of their host, like others, but not through Scrapy's retries and
    redirects: this class decides about both. The answers are archived, but are not pages. A stop of the crawl withdraws
    them, and the requests that wait for them.
    """

    def __init__(self, crawler: Crawler, clock: Callable[[], float] = time.time) -> None:
        """``clock`` gives seconds since 1970. Raises NotConfigured if ROBOTSTXT_OBEY is off."""
        if not crawler.settings.getbool("ROBOTSTXT_OBEY"):
            raise NotConfigured
        self._crawler = crawler
        jobdir = crawler.settings.get("JOBDIR")
        store = RobotsStore(Path(jobdir) if jobdir else None)
        waits = read_options(crawler.settings).retry_waits
        self.copies = Copies(crawler_name(crawler.settings), store, clock, waits=waits)
        crawl = crawl_of(crawler)
        if jobdir and crawl is not None and crawl.lasting:
            store.wait_for_commits()
            crawl.after_commit.append(store.committed)
        self._opt_outs = OptOuts(crawler.settings)
        self._tdm_files = TdmFiles(partial(self._download, file=TDMREP), store, clock)
        self._asking: dict[str, asyncio.Task[Known]] = {}
        """By site."""
        self._leads_to: dict[str, str] = {}
        """Sites whose robots.txt is waited for, by those that redirect there."""
        crawler.signals.connect(store.close, signal=signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Robots:
        """Build it with the clock of this machine."""
        return cls(crawler)

    async def process_request(self, request: Request) -> None:
        """Raise Forbidden if robots.txt forbids the request, RobotsUnknown while it is unavailable, and OptedOut if
        opt-outs in robots.txt and tdmrep.json forbid to fetch."""
        if request.meta.get("dont_obey_robotstxt") or not request.url.startswith(("http://", "https://")):
            return
        rules, source = await self._rules(site_of(request.url))
        if (line := rules.line_against(request.url)) is not None:
            self._count("forbidden")
            because = why(of_target(line, request), source)
            raise Forbidden(f"{request.url}: robots.txt forbids it", ROBOTS, wanted=False, why=because)
        request.meta[ALLOWED_BY] = source
        if is_leased(request):
            of_tdm, tdm_source = await self._tdm_files.said(request.url, rules)
            sources = {ROBOTS_TXT: source, TDMREP: tdm_source}
            is_known = self._tdm_files.is_known(request.url)
            ask = None if is_known else partial(self._tdm_files.said_of_page, request.url, rules)
            self._opt_outs.check_site(request, [*rules.said(request.url), *of_tdm], sources, ask)

    def age(self, url: str) -> float:
        """Return the seconds since the robots.txt of a URL's site came last; infinite if it never did."""
        return max(self.copies.now() - self.copies.of(site_of(url)).fetched, 0.0)

    def crawl_delay(self, url: str) -> float | None:
        """Return the Crawl-delay of a URL's site, in seconds; None if it has none, or none is known of."""
        return self.copies.of(site_of(url)).crawl_delay_at(self.copies.now())

    async def _rules(self, site: str) -> tuple[Rules, str | None]:
        """Return the current rules of a site, and their record. The first caller requests robots.txt, and others wait
        for that answer."""
        known = self.copies.of(site)
        if is_new := known.must_ask(self.copies.now()):
            task = self._asked(site)
            while not task.done():
                await asyncio.wait({task}, timeout=_LONGEST_ELSEWHERE)
                if not task.done() and site in self._leads_to:
                    why = f"{site}/robots.txt redirects to another site, whose robots.txt is awaited"
                    raise Later(why, wait=_PAUSE)
            known = task.result()
        rules = known.rules_at(self.copies.now())
        if rules is None:
            raise RobotsUnknown(site, known, self.copies.now(), is_new=is_new)
        return rules, known.source

    def _asked(self, site: str, hops: int = 0) -> asyncio.Task[Known]:
        """Return the task that requests a site's robots.txt, after as many redirects."""
        if (task := self._asking.get(site)) is None:
            task = self._asking[site] = asyncio.ensure_future(self._ask(site, hops))
            task.add_done_callback(lambda done: (self._asking.pop(site), done.cancelled() or done.exception()))
        return task

    async def _ask(self, site: str, hops: int) -> Known:
        """Request a site's robots.txt, and record the answer. Raises errors that say nothing about it, such as
        Withdrawn."""
        answer = await self._answer(site, hops)
        if answer.elsewhere is not None:
            try:
                answer = await self._follow(site, *answer.elsewhere, answer.source)
            finally:
                self._leads_to.pop(site, None)
            if answer.elsewhere is not None:
                return self.copies.same(site, answer.elsewhere[0])
        if answer.reason is None:
            return self.copies.answered(site, answer.body, answer.source)
        logger.debug("%s/robots.txt is unavailable: %s", site, answer.reason)
        return self.copies.failed(site, answer.reason, answer.wait, answer.source)

    async def _answer(self, site: str, hops: int) -> _Answer:
        """Follow redirects to the robots.txt that holds for a site (RFC 9309, 2.3.1), as far as they lead to no other
        site's."""
        url: str | None = f"{site}/robots.txt"
        for number in range(hops, 1 + _MOST_REDIRECTS):
            assert url is not None
            try:
                response, source = await self._download(url, site, led=number > 0)
            except Exception as error:  # noqa: BLE001 - of whatever kind: raised again where it tells nothing
                return self._failure(error, at_home=site_of(url) == site)
            if response.status not in REDIRECTS:
                return _answer(response, source)
            url = redirect_target(response.url, response.headers.get("Location") or b"")
            if url is None or not HAS_HOST.match(url):
                break
            if (other := site_of(url)) != site and normalise_url(url) == f"{other}/robots.txt":
                return _Answer(elsewhere=(other, number + 1), source=source)
        return _Answer(source=source)

    async def _follow(self, site: str, other: str, hops: int, source: str | None) -> _Answer:
        """Return what is known of another site, to whose robots.txt a site's redirects: ``elsewhere`` where it has
        rules. One request for it is enough for all that wait. ``source`` is the record of the redirect. Raises Later
        if it may not be asked soon."""
        ahead: str | None = other
        while ahead is not None and ahead != site:
            ahead = self._leads_to.get(ahead)
        known = self.copies.of(other)
        if known.must_ask(self.copies.now()):
            if ahead == site or hops > _MOST_REDIRECTS:  # there is no end
                return _Answer(source=source)
            self._leads_to[site] = other
            try:
                known = await asyncio.shield(self._asked(other, hops))
            except Exception as error:
                if isinstance(error, Later) and error.reason == HELD and error.wait <= _LONGEST_PAUSE:
                    raise Later(str(error), wait=max(error.wait, _PAUSE)) from error
                return self._failure(error, at_home=False)
        if known.rules_at(now := self.copies.now()) is None:
            wait = max((known.waits_until(now) or now) - now, 0.0)
            return _Answer(reason=ROBOTS_UNKNOWN, wait=wait, source=known.source_of_failure)
        return _Answer(elsewhere=(other, hops))

    def _failure(self, error: Exception, *, at_home: bool) -> _Answer:
        """Return the answer that a failed request stands for. Raises the error if it says nothing about robots.txt.

        ``at_home``: the request was for the site itself, not for the target of a redirect.
        """
        if isinstance(error, Withdrawn) or machine_error(error) is not None:
            raise error
        known = verdict(error)
        if at_home and (known is None or isinstance(error, PageError)):  # its documents will meet with the same
            raise error
        self._count(f"exception_count/{type(error).__name__}")
        is_told = at_home and known is not None and known[1] in _OF_THE_HOST
        return _Answer(reason=known[1] if known is not None and is_told else ROBOTS_UNKNOWN)

    async def _download(
        self, url: str, site: str, file: str = ROBOTS_TXT, *, led: bool = False
    ) -> tuple[Response, str | None]:
        """Return the response to a request for a site's robots.txt or tdmrep.json, a redirect too, with no more of its
        body than is used; and its record. ``led``: a redirect leads there."""
        request = Request(
            url,
            callback=NO_CALLBACK,
            # Not compressed, as only part of it may be read.
            headers={"Accept": "text/plain,*/*;q=0.8", "Accept-Encoding": "identity"},
            meta={
                "dont_obey_robotstxt": True,
                "dont_redirect": True,
                "dont_retry": True,
                "download_maxsize": _LARGEST,
                MOST_UNPACKED: LIMIT + 1,
                MOST_RECEIVED: LIMIT,
                WANTED: True,
                FILE: file,
                **({LED: True} if led else {}),
                **({PATIENT: True} if file == TDMREP else {}),
            },
        )
        self._count("request_count")
        try:
            response = await self._crawler.engine.download_async(request)
        finally:
            source = keep(self._crawler, request, file, site)  # also of an answer that cannot be decoded
        self._count("response_count")
        self._count(f"response_status_count/{response.status}")
        return response, source

    def _count(self, key: str) -> None:
        """Count under Scrapy's keys for its own middleware of this kind."""
        self._crawler.stats.inc_value(f"robotstxt/{key}")


def _answer(response: Response, source: str | None) -> _Answer:
    """Return the answer in a response that is no redirect (RFC 9309, 2.3.1.1, 2.3.1.3 and 2.3.1.4)."""
    status = response.status
    if status == 429 or not 200 <= status < 500:
        return _Answer(reason=ROBOTS_UNKNOWN, wait=wait_in(response), source=source)
    if status >= 300:
        return _Answer(source=source)
    codings = b",".join(response.headers.getlist("Content-Encoding")).lower()  # that Scrapy could not undo
    if "dataloss" in response.flags or any(coding in codings for coding in _CODINGS):
        return _Answer(reason=ROBOTS_UNKNOWN, source=source)
    return _Answer(response.body, source=source)
