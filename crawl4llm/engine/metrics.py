"""Metrics for Prometheus: serves the statistics of a running crawl at ``/metrics`` (METRICS_PORT).

A key of :mod:`crawl4llm.base.stats` becomes a metric of its name: ``pages/crawled`` is
``crawl4llm_pages_crawled_total``, ``failed/<reason>`` is ``crawl4llm_failed_total`` with the label ``reason``.
"""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from twisted.internet.error import CannotListenError

from crawl4llm.base.errors import InputError
from crawl4llm.base.installed import to_install
from crawl4llm.base.stats import KEYS
from crawl4llm.crawl import BAD_INPUT
from crawl4llm.engine.run import Run

_GAUGES: Final = (
    *("frontier/queued", "frontier/leased", "frontier/parked", "parked/", "owners/"),
    *("influence/", "new_quality/", "links/taken_for_known"),
)
"""Keys of figures that can also fall; all others are counters."""
_OWNERS, _DISK, _ANSWERS = "crawl4llm_owners", "crawl4llm_disk_free_bytes", "crawl4llm_answers_waiting"
OTHERS: Final = {
    _OWNERS: "owners by state: ready, waiting, busy or parked",
    _DISK: "bytes that are free on the disk of the output, and on that of the JOBDIR",
    _ANSWERS: "answers that wait for a worker process, or for earlier answers",
}
"""Gauges that are no statistics."""


class Family(NamedTuple):
    """A metric with a value for each value of its label."""

    name: str
    """Name without ``_total``, which samples of a counter have."""
    is_counter: bool
    label: str | None
    meaning: str


def families() -> dict[str, Family]:
    """Return the metrics of all statistics, by key, or by the part of the key before the label's value."""
    found = {}
    for key, meaning in KEYS.items():
        plain, _, label = key.partition("<")
        name = "crawl4llm_" + re.sub(r"\W", "_", plain.rstrip("/"))
        found[plain] = Family(name, not key.startswith(_GAUGES), label.rstrip(">") or None, meaning)
    return found


class Metrics:
    """Scrapy extension: listens as long as the crawl runs. If it cannot, the crawl ends before its first page as
    ``bad_input``."""

    def __init__(self, crawler: Crawler, run: Run) -> None:
        self._crawler, self._run = crawler, run
        self._families = families()
        self._folders = {"output": run.output}
        if crawler.settings.get("JOBDIR"):
            self._folders["jobdir"] = Path(crawler.settings["JOBDIR"])
        self._port: Any = None
        self._closing: asyncio.Task[None] | None = None
        crawler.signals.connect(self._opened, signal=signals.spider_opened)
        crawler.signals.connect(self._closed, signal=signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Metrics:
        """Build it for the spider's run. Raises NotConfigured if METRICS_PORT is not set."""
        run: Run | None = getattr(crawler.spider, "run", None)
        if run is None or run.crawl.options.metrics_port is None or run.crawl.options.dry_run:
            raise NotConfigured
        return cls(crawler, run)

    def _opened(self) -> None:
        try:
            self._listen(self._run.crawl.options.metrics_port or "")
        except InputError as error:
            self._run.crawl.failure = str(error)
            self._closing = asyncio.ensure_future(self._crawler.engine.close_spider_async(reason=BAD_INPUT))

    def _listen(self, address: str) -> None:
        """Serve in the reactor, between the steps of the crawl, because another thread would see them half done."""
        try:
            import prometheus_client  # prometheus_client is an extra
        except ImportError:
            raise InputError(f"METRICS_PORT needs prometheus_client; {to_install('metrics')}") from None
        from twisted.internet import reactor  # to import it is to install it
        from twisted.web import resource, server  # slow to import: 30 ms

        host, _, port = address.rpartition(":")
        registry = prometheus_client.CollectorRegistry()
        registry.register(self)
        prometheus_client.ProcessCollector(registry=registry)

        class Page(resource.Resource):
            def render_GET(self, request: Any) -> Any:  # noqa: N802 - Twisted's name
                request.setHeader("Content-Type", prometheus_client.CONTENT_TYPE_PLAIN_0_0_4)
                return prometheus_client.generate_latest(registry)

        untyped: Any = resource, server, Page, reactor
        resources, servers, page, listening = untyped
        root = resources.Resource()
        root.putChild(b"metrics", page())
        site = servers.Site(root)
        site.noisy = False
        try:
            self._port = listening.listenTCP(int(port), site, interface=host)
        except (CannotListenError, OSError) as error:
            reason = getattr(error, "socketError", error)
            raise InputError(f"METRICS_PORT {address} cannot be used ({reason}); give another") from None

    def collect(self) -> Iterator[Any]:
        """Yield the metrics with their present values (prometheus_client calls this)."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily  # prometheus_client is an extra

        made: dict[str, Any] = {}
        for key, value in self._run.crawl.statistics().items():
            plain = key if key in self._families else key.rpartition("/")[0] + "/"
            if (family := self._families.get(plain)) is None or value is None:
                continue
            if plain not in made:
                kind = CounterMetricFamily if family.is_counter else GaugeMetricFamily
                made[plain] = kind(family.name, family.meaning, labels=[family.label] if family.label else [])
            made[plain].add_metric([key[len(plain) :]] if family.label else [], value)
        yield from made.values()
        for name, label, values in self._others():
            gauge = GaugeMetricFamily(name, OTHERS[name], labels=[label] if label else [])
            for one, value in values:
                gauge.add_metric([one] if label else [], value)
            yield gauge

    def describe(self) -> Iterable[Any]:
        """Return nothing, because prometheus_client asks before the crawl has figures."""
        return []

    def _others(self) -> Iterator[tuple[str, str, list[tuple[str, float]]]]:
        crawl = self._run.crawl
        yield _ANSWERS, "", [("", crawl.lag() + crawl.answered)]
        if crawl.owners is not None:
            yield _OWNERS, "state", list(crawl.owners.counts._asdict().items())
        free = []
        for name, folder in self._folders.items():
            with suppress(OSError):
                free.append((name, float(shutil.disk_usage(folder).free)))
        yield _DISK, "folder", free

    def _closed(self) -> None:
        if self._port is not None:
            self._port.stopListening()
