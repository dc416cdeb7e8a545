"""Scrapy sub-commands; each module of this package is one, by its name."""

from __future__ import annotations

import os
import sys

from scrapy.utils.conf import get_config

from crawl4llm.base.installed import tell_missing_packages
from crawl4llm.base.terminal import complain


def _refuse_unknown_project() -> None:
    """End the process where SCRAPY_PROJECT names no profile of this project's scrapy.cfg.

    Scrapy would pass over that and go on without any settings. It imports the commands of installed packages before it
    looks at anything else, so this is the first place where it can be said.
    """
    name, config = os.environ.get("SCRAPY_PROJECT"), get_config()
    if not name or "SCRAPY_SETTINGS_MODULE" in os.environ or not config.has_section("settings"):
        return
    ours = config.get("settings", "default", fallback="") == "settings.simulation"
    if ours and not config.has_option("settings", name):
        complain(f"SCRAPY_PROJECT={name} is not known; known are: {', '.join(config.options('settings'))}")
        sys.exit(1)


tell_missing_packages()  # the commands that Scrapy imports next would end in a traceback
_refuse_unknown_project()
