"""``scrapy settings``: values of settings, as a crawl has them."""

from __future__ import annotations

import argparse

from scrapy.addons import AddonManager
from scrapy.commands.settings import Command as Scrapys


class Command(Scrapys):
    """Shows settings with what add-ons have set: a profile's components come by one."""

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        AddonManager.load_pre_crawler_settings(self.settings)
        super().run(args, opts)
