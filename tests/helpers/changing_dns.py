"""A network whose names lead elsewhere with each look-up, as an attacker's do; what it is asked is written down."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from scrapy.crawler import Crawler

from crawl4llm.live.addresses import Rules, system_addresses
from crawl4llm.live.network import Network
from crawl4llm.options import read_options

LOG = "LOOK_UPS"
"""Environment variable with the path of the file that gets a host a line."""
EXTENSIONS = '{"changing_dns.ChangingDns": 0, "crawl4llm.live.network.Network": null}'
"""The setting that puts it in the place of crawl4llm.live.network.Network."""
FIRST, LATER = "127.0.0.1", "127.0.0.2"
"""Addresses of ``rebinding.test``."""
SLOW = 600.0
"""Seconds that a look-up of ``slow.test`` takes."""


class ChangingDns(Network):
    """The real thing, but for the look-ups themselves."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ChangingDns:
        return cls(Rules.of(read_options(crawler.settings)), crawler.settings, look_up)


def look_up(host: str) -> Sequence[str]:
    """Return the addresses of a host, for some of them others than before."""
    log = Path(os.environ[LOG])
    before = log.read_text().split() if log.exists() else []
    with log.open("a") as file:
        file.write(f"{host}\n")
    if host == "slow.test":
        time.sleep(SLOW)
    if host == "both.test":
        return [LATER, FIRST]
    if host == "rebinding.test":
        return [LATER if host in before else FIRST]
    return [] if host == "dead.test" else system_addresses(host)
