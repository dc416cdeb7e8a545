"""The shipped live profile on the web of real software, with a shorter delay (``SCRAPY_SETTINGS_MODULE``)."""

from settings.live import *  # noqa: F403

NETWORK_ALLOWED = "127.0.0.0/8"
SCORER = "fasttext"
IP_RATE = 0
DELAY_FACTOR = 0
CRAWL_MAX_PAGES = 1_000_000
EXTENSIONS = {"benchmarks.websoftware.stopping.StopAfter": 0}
