"""``scrapy settings``: values of settings, as a crawl has them."""

from __future__ import annotations

import argparse

from scrapy.addons import AddonManager
from scrapy.commands.settings import Command as Scrapys


class Command(Scrapys):
    """Shows settings with those of add-ons: an add-on sets a profile's components."""

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        AddonManager.load_pre_crawler_settings(self.settings)
        super().run(args, opts)
