"""The components of each profile, as a Scrapy add-on that its ``ADDONS`` names.

They go into the ``_BASE`` of each setting, like Scrapy's own. So EXTENSIONS, DOWNLOADER_MIDDLEWARES and so on are left
to the project, the command line and the spider. An entry there adds a component, gives one of these another number, or
switches it off with None. Other projects use :class:`crawl4llm.addon.Addon`.
"""

from __future__ import annotations

from typing import Final

from scrapy.settings import BaseSettings, default_settings

# The frontier replaces Scrapy's queues and its duplicate filter.
_SCHEDULER: Final = "crawl4llm.engine.scheduler.InfluenceScheduler"
NO_SPIDER_STATE: Final = {"scrapy.extensions.spiderstate.SpiderState": None}
"""Scrapy's extension would unpickle a file of JOBDIR, which may run code that somebody put there."""
_EXTENSIONS: Final = {
    "crawl4llm.engine.progress.Progress": 0,
    "crawl4llm.engine.live_logging.LiveLogging": 0,
    "crawl4llm.engine.series.Series": 0,
    "crawl4llm.engine.metrics.Metrics": 0,
}
_WIRE: Final = "crawl4llm.live.wire.WireHandler"


class SimulationComponents:
    """The components of a simulation, without those of Scrapy that are useless if nothing is downloaded; each takes
    time for every page."""

    @classmethod
    def update_pre_crawler_settings(cls, settings: BaseSettings) -> None:
        """Set them; Scrapy calls this before it uses the settings."""
        values = {
            "SCHEDULER": _SCHEDULER,
            "EXTENSIONS_BASE": {"scrapy.extensions.corestats.CoreStats": 0, **_EXTENSIONS},
            "DOWNLOADER_MIDDLEWARES_BASE": {"simulate.middleware.SimulationMiddleware": 0},
            # Scrapy would load what it downloads with, which takes a tenth of the start.
            "DOWNLOAD_HANDLERS_BASE": {},
            "SPIDER_MIDDLEWARES_BASE": {},
        }
        settings.setdict(values, "addon")


class LiveComponents:
    """The components of a live crawl."""

    @classmethod
    def update_pre_crawler_settings(cls, settings: BaseSettings) -> None:
        """Set them; Scrapy calls this before it uses the settings."""
        values = {
            "SCHEDULER": _SCHEDULER,
            "EXTENSIONS_BASE": {
                **default_settings.EXTENSIONS_BASE,
                **NO_SPIDER_STATE,
                **_EXTENSIONS,
                "crawl4llm.live.network.Network": 0,
                "crawl4llm.live.stopping.Stopping": 0,
                "crawl4llm.live.stalls.Stalls": 0,
                "crawl4llm.live.steering.Steering": 0,
                "crawl4llm.live.request_log.RequestLog": 0,
                "crawl4llm.live.sitemaps.Sitemaps": 0,
            },
            # The outermost makes pages of responses; Capturing keeps for the archive what went over the wire, Bodies
            # ends it at BODY_LIMIT bytes, or at a head that says it is no page, and Pace lets each request wait for
            # its turn.
            "DOWNLOADER_MIDDLEWARES_BASE": {
                **default_settings.DOWNLOADER_MIDDLEWARES_BASE,
                "crawl4llm.live.fetching.Fetching": 25,
                "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
                "crawl4llm.live.robots.Robots": 100,
                "scrapy.downloadermiddlewares.httpcompression.HttpCompressionMiddleware": None,
                "crawl4llm.live.bodies.Decompressing": 590,
                "scrapy.downloadermiddlewares.redirect.RedirectMiddleware": None,
                "crawl4llm.live.fetching.Redirecting": 600,
                "crawl4llm.live.capturing.Capturing": 950,
                "crawl4llm.live.bodies.Bodies": 955,
                "crawl4llm.live.pace.Pace": 960,
            },
            "DOWNLOAD_HANDLERS_BASE": {**default_settings.DOWNLOAD_HANDLERS_BASE, "http": _WIRE, "https": _WIRE},
            # The crawl itself takes what was fetched, errors included; redirects ask for the referer.
            "SPIDER_MIDDLEWARES_BASE": {"scrapy.spidermiddlewares.referer.RefererMiddleware": 700},
        }
        settings.setdict(values, "addon")
