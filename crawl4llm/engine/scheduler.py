"""The scheduler of a crawl: hands Scrapy's engine the documents that Algorithm 1 takes from the frontier."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.exceptions import CloseSpider, DontCloseSpider
from scrapy.utils.defer import deferred_from_coro

from crawl4llm.base.errors import InputError
from crawl4llm.base.reasons import ERROR, IGNORED
from crawl4llm.base.stats import PREFIX
from crawl4llm.base.terminal import harmless
from crawl4llm.crawl import (
    BAD_INPUT,
    INTERNAL_ERROR,
    TOO_MANY_ERRORS,
    is_leased,
    lease_of,
    leased_together,
    leases_of,
    may_try,
)

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.internet.defer import Deferred

    from crawl4llm.crawl import Driven
    from crawl4llm.frontier import Lease

logger = logging.getLogger(__name__)

_PUBLISH_SECONDS: Final = 1.0
"""In continuous order the stats are at most this many seconds old, until the crawl ends."""

_SAID_SECONDS: Final = 600.0
"""Least seconds between two log lines that name the owners for which the crawl waits."""
_MOST_NAMED: Final = 5
"""Most owners in such a line."""

_SEE_NO_REQUESTS: Final = ("crawl4llm.", "scrapy.core.downloader", "scrapy.extensions.corestats")
"""Modules of components that work the same for any number of documents in a request."""

iteration_done = object()
"""Scrapy signal: a batch is logged and its outlinks are enqueued; sent with ``crawl``."""


class InfluenceScheduler(BaseScheduler):
    """Drives a :class:`crawl4llm.crawl.driven.Driven` from within Scrapy's engine.

    The engine asks for requests. When the crawl can advance, it does so in its own task, during which the engine is
    told that more is pending. The lease of a request that Scrapy drops silently ends when the engine has run dry.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._ready: deque[Request] = deque()
        self._advancing: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._ending = False
        """True once Scrapy has closed the scheduler; then only the present call of advance() and that of wind_up()
        remain."""
        self._accepted = False
        self._is_open = False
        """True once the engine has asked for a request."""
        self._published = -math.inf
        """Time of the last update of the stats, by the monotonic clock."""
        self._wake: asyncio.TimerHandle | None = None
        """Timer for when the next owner may be asked, or when the crawl ends after a long wait."""
        self._waits: tuple[str, float] | None = None
        """If the crawl only waits: the reason, and the time on its clock at which it ends for that."""
        self._said = -math.inf
        """Time of the last log line about waiting."""
        crawler.signals.connect(self._when_idle, signal=signals.spider_idle)
        crawler.signals.connect(self._when_callback_fails, signal=signals.spider_error)
        crawler.signals.connect(self._when_owners_are_ready, signal=may_try)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> InfluenceScheduler:
        return cls(crawler)

    # -- Scrapy's interface ---------------------------------------------------------------------------------------

    def open(self, spider: Spider) -> Deferred[None]:
        """Score the seeds and hand out the first documents."""
        self._spider = cast("Any", spider)  # crawl4llm.spiders.influence, which stands above
        self._crawl: Driven = self._spider.crawl
        self._together = self._documents_of_a_request()
        self._crawl.wake = self._when_steered
        return deferred_from_coro(self._begin())

    def close(self, reason: str) -> Deferred[None]:
        """Merge fetched pages; documents that were not requested stay in the frontier."""
        return deferred_from_coro(self._end())

    def has_pending_requests(self) -> bool:
        return bool(self._ready) or self._advancing is not None

    def enqueue_request(self, request: Request) -> bool:
        """Take back a leased document (a retry, a redirect), or accept another request of a spider."""
        self._accepted = True
        if leases_of(request):
            self._ready.appendleft(request)
        else:
            self._ready.append(request)
        return True

    def next_request(self) -> Request | None:
        self._is_open = True
        errors = self._crawl.counters.errors_in_row
        if errors >= self._crawl.options.crawl_max_errors and self._crawl.failure is None:
            self._crawl.stop(TOO_MANY_ERRORS, f"{errors} unanticipated errors in a row, see errors.log in the output")
        if self._crawl.failure is not None:
            self._ready.clear()
        elif self._crawl.stopped is not None:
            if self._closing is None:
                self._close(self._crawl.stopped.reason)
            return None
        self._advance_if_possible()
        if self._advancing is not None and self._crawl.must_wait:
            return None
        return self._ready.popleft() if self._ready else None

    # -- driving the crawl ----------------------------------------------------------------------------------------

    async def _begin(self) -> None:
        try:
            await self._crawl.begin(self._spider.run.seeds.keys, self._spider.run.added_seeds)
        except InputError as error:
            self._crawl.failure = str(error)  # the engine finds nothing to do; it could not be stopped here yet
            return
        self._ask_for(self._crawl.unanswered())
        self._dequeue()

    def _documents_of_a_request(self) -> int:
        """Return how many documents a request may be for, because Scrapy takes longer for a request than a corpus for a
        page.

        In batches CONCURRENT_REQUESTS, if the middleware that answers supports it, and only Scrapy and this project see
        requests and responses; otherwise one.
        """
        engine = self._crawler.engine
        fetching = engine.downloader.middleware.middlewares
        others = [*self._crawler.extensions.middlewares, *engine.scraper.spidermw.middlewares]
        others += [*engine.scraper.itemproc.middlewares, engine.downloader, self._spider]
        if self._crawl.continuous or not all(getattr(one, "takes_several", False) for one in fetching):
            return 1
        if not all(type(one).__module__.startswith(_SEE_NO_REQUESTS) for one in others):
            return 1
        return self._crawler.settings.getint("CONCURRENT_REQUESTS")

    def _ask_for(self, leases: Sequence[Lease]) -> None:
        if self._together > 1:
            for start in range(0, len(leases), self._together):
                meta = leased_together(leases[start : start + self._together])
                several, failed = self._spider.parse_several, self._spider.on_failure
                self._ready.append(Request("corpus://batch", several, meta=meta, errback=failed, dont_filter=True))
            return
        for lease in leases:
            request = self._spider.request_for(lease)
            hop = self._crawl.hop_of(lease)
            if hop is not None:
                from crawl4llm.live import go_on  # live only

                request = go_on(request, hop)
            self._ready.append(request)

    def _dequeue(self) -> None:
        """Lease the best documents; if owners must wait, try again when the first of them may be asked."""
        owners = self._crawl.owners
        if owners is None:
            self._ask_for(self._leased())
            self._merge_known()
            return
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None
        clock = self._crawl.clock
        due = None
        if self._crawl.may_lease:
            clock.tick(owners)
            self._ask_for(self._leased())
            if self._merge_known():
                return
            due = owners.next_ready() if self._crawl.may_lease else None
        self._see_whether_it_waits(clock.now())
        if self._waits is not None and not self._crawl.doubts_network:
            due = min(self._waits[1], math.inf if due is None else due)
        if due is not None:
            seconds = clock.seconds_until(due)
            self._wake = asyncio.get_running_loop().call_later(seconds, self._when_owners_are_ready)

    def _merge_known(self) -> bool:
        """Advance if leased documents were answered without a request; return whether they were. They are merged before
        the clock goes on; before the engine runs, its first call does that."""
        if self._advancing is not None or self._crawl.stopped is not None or not self._crawl.can_advance:
            return False
        if self._is_open:
            self._advancing = asyncio.ensure_future(self._advance())
        return True

    def _see_whether_it_waits(self, now: float) -> None:
        """Note since when the crawl only waits, and log for which owners."""
        if (reason := self._crawl.waits_only) is None:
            self._waits = None
            return
        until = now + self._crawl.options.crawl_wait if self._waits is None else self._waits[1]
        self._waits = reason, until
        sites, any_wait = self._crawl.sites, self._crawl.unanswered_sites
        if sites is not None and any_wait and not self._crawl.in_flight and now >= self._said + _SAID_SECONDS:
            self._said = now
            number, owners, left, tried = sites.next_tries(_MOST_NAMED)
            named = ", ".join(map(harmless, owners)) + (f" and {left:,} more" if left else "")
            next_one = f" The next one is tried at {_wall(tried - now)}." if tried < until else ""
            logger.info(
                "Nothing is left but %s documents of sites that never answered, of %s.%s If none answers, the crawl "
                "ends at %s (CRAWL_WAIT). The documents stay in its JOBDIR",
                *(f"{number:,}", named, next_one, _wall(until - now)),
            )

    def _when_owners_are_ready(self) -> None:
        self._wake = None
        if self._closing is not None or self._ending or self._crawl.failure is not None:
            return
        if self._crawl.stopped is not None:  # the engine would ask for a request within 5 seconds
            self._close(self._crawl.stopped.reason)
            return
        if not self._may_dequeue:
            return  # what advances looks again at its end
        self._dequeue()
        is_late = self._waits is not None and self._crawl.clock.now() >= self._waits[1]
        if self._waits is not None and is_late and not self._crawl.doubts_network:
            self._close(self._waits[0])
        elif self._ready:
            self._wake_engine()
        elif finished := self._crawl.finished:
            self._close(finished)

    def _when_steered(self) -> None:
        """Visit injected seeds, and use raised limits."""
        if self._advancing is None and self._closing is None and not self._ending:
            self._advance_if_possible()
            if self._advancing is None and self._ready:
                self._wake_engine()

    @property
    def _may_dequeue(self) -> bool:
        """True if more documents may be leased in continuous order. With a frontier of owners also while pages are
        scored, so that a slow page holds up no owner, but not with a clock that stands still meanwhile."""
        if self._advancing is None:
            return True
        crawl = self._crawl
        return crawl.owners is not None and crawl.clock.most_leases is None and not crawl.must_wait

    def _advance_if_possible(self) -> None:
        if self._crawl.failure is not None or self._crawl.stopped is not None:
            return
        if self._advancing is None and self._crawl.can_advance:
            self._advancing = asyncio.ensure_future(self._advance())
        if self._crawl.continuous and self._may_dequeue:
            self._dequeue()

    async def _advance(self) -> None:
        iteration = self._crawl.iteration
        try:
            await self._crawl.advance()
        except InputError as error:
            self._stop(BAD_INPUT, str(error))
        except Exception as error:
            logger.exception("Cannot go on")
            self._break_off(error)
        else:
            if not self._ending:
                self._dequeue()
            if self._crawl.iteration > iteration or time.monotonic() >= self._published + _PUBLISH_SECONDS:
                self._publish()
            if self._crawl.iteration > iteration:
                self._crawler.signals.send_catch_log(iteration_done, crawl=self._crawl)
        finally:
            self._advancing = None
        if self._ending or self._crawl.stopped is not None:
            return
        if self._crawl.can_advance:
            self._advance_if_possible()
        elif self._ready:
            self._wake_engine()
        elif finished := self._crawl.finished:
            self._close(finished)

    def _leased(self) -> list[Lease]:
        """Return the next leased documents; none if an error breaks the crawl off."""
        try:
            return self._crawl.dequeue()
        except InputError as error:
            self._stop(BAD_INPUT, str(error))
            return []
        except Exception as error:
            logger.exception("Cannot go on")
            self._break_off(error)
            return []

    def _break_off(self, error: Exception) -> None:
        """End the crawl after an unanticipated error; the last commit remains valid."""
        self._crawl.counters.counts["errors"] += 1
        self._stop(INTERNAL_ERROR, f"{self._crawl.parts.whose(error)}, see errors.log in the output")

    def _wake_engine(self) -> None:
        """Pass one request through the engine's front door, because the engine checks for requests only every 5
        seconds."""
        request = self._ready.popleft()
        self._accepted = False
        self._crawler.engine.crawl(request)
        if not self._accepted:
            for lease in leases_of(request):
                self._crawl.dropped(lease, IGNORED)

    def _when_idle(self) -> None:
        """End the crawl, unless it can continue after the leases of requests that Scrapy dropped silently are ended."""
        for lease in self._crawl.unanswered():
            self._crawl.dropped(lease, IGNORED)
        self._advance_if_possible()
        if self.has_pending_requests():
            raise DontCloseSpider
        if self._crawl.failure is not None:
            raise CloseSpider(BAD_INPUT)
        if self._crawl.stopped is not None:
            raise CloseSpider(self._crawl.stopped.reason)
        if self._owners_wait:
            raise DontCloseSpider
        raise CloseSpider(self._crawl.finished or INTERNAL_ERROR)

    @property
    def _owners_wait(self) -> bool:
        """True if the crawl can only wait for owners, which may be asked later or are parked."""
        owners = self._crawl.owners
        if owners is None or self._crawl.finished is not None:
            return False
        if owners.counts.parked > 0 or self._crawl.waits_only is not None:
            return True
        return owners.next_ready() is not None

    def _when_callback_fails(self, response: Response) -> None:
        """Give up the page of a callback that raised an error, which Scrapy logs in full."""
        for lease in leases_of(response.request):
            self._crawl.failed(lease, ERROR)

    def _stop(self, reason: str, failure: str) -> None:
        self._crawl.failure = failure
        self._ready.clear()
        self._close(reason)

    def _close(self, reason: str) -> None:
        self._closing = asyncio.ensure_future(self._crawler.engine.close_spider_async(reason=reason))

    async def _end(self) -> None:
        self._ending = True
        if self._wake is not None:
            self._wake.cancel()
        self._crawl.leave()
        if self._advancing is not None:
            await self._advancing
        leased_ones = [request for request in self._ready if is_leased(request)]
        if leased_ones and self._crawl.failure is None:
            from crawl4llm.live import hop_of  # live only

            for request in leased_ones:
                if hop := hop_of(request):
                    self._crawl.broken_off(lease_of(request), hop)
        if self._crawl.failure is None:
            try:
                await self._crawl.wind_up()
            except InputError as error:
                self._crawl.failure = str(error)
            except Exception as error:
                logger.exception("Cannot save the crawl")
                whose = self._crawl.parts.whose(error)
                self._crawl.failure = f"{whose} while the crawl was saved (errors.log); its last commit stands"
        self._publish()

    def _publish(self) -> None:
        self._published = time.monotonic()
        for key, value in self._crawl.statistics().items():
            self._crawler.stats.set_value(PREFIX + key, value)


def _wall(seconds: float) -> str:
    """Return the time of day in UTC, ``seconds`` from now."""
    return time.strftime("%H:%M:%S UTC", time.gmtime(time.time() + max(seconds, 0.0)))
