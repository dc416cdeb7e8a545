"""Scrapy sub-commands; each module of this package is one, by its name."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from scrapy.utils.conf import get_config

from crawl4llm.base.installed import tell_missing_packages
from crawl4llm.base.terminal import complain, end_when_interrupted, interrupts_as_ever, open_standard_streams


def _end_early() -> None:
    """Let Ctrl-C end the process in one line while our commands are imported; Scrapy's do with it as ever."""
    asked = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    ours = {path.stem for path in Path(__file__).parent.glob("[a-z]*.py")} - {"crawl"}  # which Scrapy has too
    if asked in ours or (asked == "crawl" and "influence" in sys.argv):
        end_when_interrupted()
    else:
        interrupts_as_ever()


def _refuse_unknown_project() -> None:
    """End the process if SCRAPY_PROJECT names no profile of this project's scrapy.cfg.

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


open_standard_streams()
_end_early()
tell_missing_packages()  # the commands that Scrapy imports next would end in a traceback
_refuse_unknown_project()
