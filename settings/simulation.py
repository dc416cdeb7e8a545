"""Simulation: pages come from a corpus, nothing is sent to the network. The default profile."""

from .base import *  # noqa: F403

# `demo`, the root of a ClueWeb22 tree, or WARC files.
CORPUS = "demo"

# The strict best-first order in continuous order: a fetch takes no time.
CRAWL_CONCURRENT_LEASES = 1

# Scrapy starts so many tasks for each response; the spider yields nothing that would need them.
CONCURRENT_ITEMS = 1
CONCURRENT_REQUESTS = 32

# Links of any length, as the corpus has them.
URLLENGTH_LIMIT = 0

# Nothing is downloaded; Scrapy would load what it downloads with, which takes a tenth of the start.
DOWNLOAD_HANDLERS_BASE: dict[str, str] = {}

# FetchPages. What Scrapy's own middlewares do is done, or not wanted, when nothing is downloaded, and each takes its
# time for every page.
DOWNLOADER_MIDDLEWARES_BASE: dict[str, int] = {}
DOWNLOADER_MIDDLEWARES = {"simulate.middleware.SimulationMiddleware": 0}
SPIDER_MIDDLEWARES_BASE: dict[str, int] = {}
EXTENSIONS_BASE = {"scrapy.extensions.corestats.CoreStats": 0}
