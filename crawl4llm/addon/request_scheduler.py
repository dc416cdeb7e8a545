"""The add-on's scheduler: hands out the requests of any spider in order of influence."""

from __future__ import annotations

import heapq
from collections import Counter
from itertools import count

from scrapy import Request, Spider
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.dupefilters import BaseDupeFilter
from scrapy.utils.misc import build_from_crawler, load_object
from twisted.internet.defer import Deferred

from crawl4llm.addon.meta import score_of
from crawl4llm.addon.request_budgets import Waiting
from crawl4llm.addon.run import AddonRun
from crawl4llm.base.errors import InputError


class RequestScheduler(BaseScheduler):
    """Hands out the request of highest priority; among equals the best score, then the oldest.

    Like Scrapy's own queue, it chooses among requests whose host is free now: others would wait in the downloader and
    hold up all hosts.

    Requests wait in memory, whole. This is a queue of requests; :mod:`crawl4llm.frontier` is one of documents. Several
    requests may have the same URL, and a redirect or retry comes back as a new request. Scrapy's DUPEFILTER_CLASS drops
    duplicates. With URL_BUDGET, requests are set aside when their turn comes if their owner or URL prefix has no budget
    left.
    """

    def __init__(self, crawler: Crawler, dupefilter: BaseDupeFilter) -> None:
        self._crawler = crawler
        self._run = AddonRun.of(crawler)
        self._dupefilter = dupefilter
        self._heaps: dict[str, list[Waiting]] = {}
        """By downloader slot, which is the host unless the spider says otherwise; none is empty."""
        self._waiting = 0
        self._arrival = count()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RequestScheduler:
        dupefilter = build_from_crawler(load_object(crawler.settings["DUPEFILTER_CLASS"]), crawler)
        return cls(crawler, dupefilter)

    def open(self, spider: Spider) -> Deferred[None] | None:
        self._spider = spider
        self._run.parts_asked = True
        if self._crawler.settings.get("JOBDIR"):
            self._run.refuse(
                InputError("JOBDIR is set, but the add-on cannot keep requests for a later run yet; remove it")
            )
        return self._dupefilter.open()

    def close(self, reason: str) -> Deferred[None] | None:
        return self._dupefilter.close(reason)

    def has_pending_requests(self) -> bool:
        """Requests that are set aside do not count: a crawl without others ends."""
        return len(self) > 0

    def __len__(self) -> int:
        return self._waiting + (len(self._run.budgets.back) if self._run.budgets else 0)

    def enqueue_request(self, request: Request) -> bool:
        try:
            return self._enqueue(request)
        except InputError as error:  # a part raised one
            self._run.stop(error)
            return False

    def _enqueue(self, request: Request) -> bool:
        if not self._run.parts.follows(request):
            return False
        if not request.dont_filter and self._dupefilter.request_seen(request):
            self._dupefilter.log(request, self._spider)
            if self._run.budgets:
                self._run.budgets.found_again(request)
            return False
        if not self._run.may_be_queued(request):
            return False
        if self._run.budgets:
            self._run.budgets.found(request)
        self._push((-request.priority, -score_of(request), next(self._arrival), request))
        self._count("enqueued")
        return True

    def next_request(self) -> Request | None:
        budgets = self._run.budgets
        while True:
            if budgets:
                for one in budgets.take_back():
                    self._push(one)
                self._run.publish("parked/budget", budgets.set_aside)
            slot = self._best_slot()
            if slot is None:
                return None  # Scrapy asks again when a request is done
            waiting = heapq.heappop(self._heaps[slot])
            if not self._heaps[slot]:
                del self._heaps[slot]
            self._waiting -= 1
            if budgets is None or self._run.parts.is_known(waiting[-1]) or budgets.may_be_sent(waiting):
                self._count("dequeued")
                return waiting[-1]

    def _push(self, waiting: Waiting) -> None:
        heap = self._heaps.setdefault(self._crawler.engine.downloader.get_slot_key(waiting[-1]), [])
        heapq.heappush(heap, waiting)
        self._waiting += 1

    def _best_slot(self) -> str | None:
        """Return the slot of the next request; None while the queue is empty, or if too much is being fetched and
        parsed."""
        downloader, parsing = self._crawler.engine.downloader, self._crawler.engine.scraper.slot
        assert parsing is not None
        in_flight = len(downloader.active) + len(parsing.queue) + len(parsing.active)
        if 0 < self._run.concurrent_requests <= in_flight:
            return None
        asked = Counter(map(downloader.get_slot_key, downloader.active))
        free = (slot for slot in self._heaps if asked[slot] < self._concurrency(slot))
        return min(free, key=lambda slot: self._heaps[slot][0], default=None)

    def _concurrency(self, slot: str) -> int:
        """Return how many requests of a slot the downloader sends at the same time."""
        downloader = self._crawler.engine.downloader
        return downloader.slots[slot].concurrency if slot in downloader.slots else downloader.domain_concurrency

    def _count(self, event: str) -> None:
        """Update Scrapy's own figures of a scheduler, and ours."""
        self._run.stats.inc_value(f"scheduler/{event}")
        self._run.stats.inc_value(f"scheduler/{event}/memory")
        self._run.publish("frontier/queued", self._waiting)
