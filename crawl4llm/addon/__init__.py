"""The add-on: crawl4llm in a Scrapy project that is not this one, with one line in its settings.

- ``run``: opens the parts of the crawl, and closes them.
- ``middlewares``: score, archive and log pages; note where requests were found.
- ``request_scheduler``: hands out requests in order of influence; ``request_budgets``: those that have a budget.
- ``request_parts``: what the parts of a crawl say of requests and pages.
- ``meta``: what travels in the meta of requests.
"""

from __future__ import annotations

import logging

from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object

from crawl4llm.addon.middlewares import LinkScoring, PageRecording, PageScoring
from crawl4llm.addon.request_scheduler import RequestScheduler
from crawl4llm.addon.run import AddonRun
from crawl4llm.live import Capturing, WireHandler

logger = logging.getLogger(__name__)

_SCRAPYS_HANDLER = (HTTP11DownloadHandler, f"{HTTP11DownloadHandler.__module__}.{HTTP11DownloadHandler.__qualname__}")


class Addon:
    """``ADDONS = {"crawl4llm.addon.Addon": 500}``: pages are scored and archived, requests wait in order of influence.

    It adds components and replaces Scrapy's handler of http and https by one that does the same and records the
    exchange. The project's own settings stay: its SCHEDULER, and the order that it gave one of these components.
    docs/addon.md is the user's guide.
    """

    def update_settings(self, settings: BaseSettings) -> None:
        """Add the components; Scrapy calls this when a crawl is set up."""
        settings.set("SCHEDULER", RequestScheduler, "addon")
        if load_object(settings["SCHEDULER"]) is not RequestScheduler:
            logger.warning("SCHEDULER is %s: requests are not in order of influence", settings["SCHEDULER"])
        settings.setdefault_in_component_priority_dict("EXTENSIONS", AddonRun, 500)
        # Outside of all that Scrapy brings: it sees what retries, redirects, decompression and the cache have left.
        settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", PageScoring, 25)
        # Inside of them all: it sees what goes over the network.
        settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", Capturing, 950)
        handlers = settings.getwithbase("DOWNLOAD_HANDLERS")
        for scheme in ("http", "https"):
            if handlers.get(scheme) in _SCRAPYS_HANDLER:
                settings["DOWNLOAD_HANDLERS"].set(scheme, WireHandler, "addon")
        # Just inside Scrapy's HttpError: responses that it holds back are no pages of the crawl, and all requests that
        # a spider or its middlewares make pass on their way out.
        settings.setdefault_in_component_priority_dict("SPIDER_MIDDLEWARES", PageRecording, 60)
        settings.setdefault_in_component_priority_dict("SPIDER_MIDDLEWARES", LinkScoring, 61)
