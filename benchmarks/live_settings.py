"""The live profile with a meter, for benchmarks of live crawls (``SCRAPY_SETTINGS_MODULE``)."""

from settings.live import *  # noqa: F403

USER_AGENT = "benchmark (+mailto:benchmark@example.org)"
NETWORK_ALLOWED = "127.0.0.0/8"
SCORER = "length"
DELAY_FACTOR = 0
IP_RATE = 0
URL_BUDGET = 0
CONCURRENT_REQUESTS = 128
EXTENSIONS = {"benchmarks.live_runs.Meter": 0}
