"""Simulation: pages come from a corpus, and no requests are sent. The default profile."""

from .base import *  # noqa: F403

# The corpus in the place of the downloader. Components of your own go into EXTENSIONS and so on, beside these; None
# switches one of them off: EXTENSIONS = {"crawl4llm.engine.series.Series": None}.
ADDONS = {"crawl4llm.engine.components.SimulationComponents": 0}

# `demo`, the root of a ClueWeb22 tree, or WARC files.
CORPUS = "demo"

# The strict best-first order in continuous order: a fetch takes no time.
CRAWL_CONCURRENT_LEASES = 1

# Scrapy starts so many tasks for each response; the spider yields nothing that would need them.
CONCURRENT_ITEMS = 1
CONCURRENT_REQUESTS = 32

# Links of any length, as the corpus has them.
URLLENGTH_LIMIT = 0
