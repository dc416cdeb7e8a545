"""The reference pages docs/settings.md and docs/stats.md, and the tables of docs/opt-outs.md, from the code:
``python -m crawl4llm.commands.reference``."""

from __future__ import annotations

from dataclasses import fields
from importlib import import_module
from pathlib import Path

from crawl4llm import options
from crawl4llm.base import stats
from crawl4llm.engine import scrapy_settings
from crawl4llm.optouts import table

DOCS = Path(__file__).resolve().parents[2] / "docs"

_SETTINGS = """# Settings

Set in `settings/`, on the command line (`-s NAME=VALUE`), or in the settings of your own project. They are checked
when a crawl starts; a wrong one ends it with one line that names it, and so does a name that is one of these but for a
slip (`crawl_max_pages`, `MAX_PAGES`). Which of [Scrapy's own](#scrapys-own-settings) hold is said below. This page is
written from `crawl4llm/options.py`, `crawl4llm/engine/scrapy_settings.py` and `settings/` by
`python -m crawl4llm.commands.reference`.

The profiles of this project set some to other values than the defaults:

"""

_SCRAPYS = """
## Scrapy's own settings

Those that Scrapy documents for requests, downloads and depth, and whether they hold in a simulation, in a live crawl,
and with the [add-on](addon.md). One on the command line that does not hold brings a warning. The profiles in
`settings/` set some to other values than Scrapy's defaults.

"""

_STATS = """# Statistics

What a crawl counts, in Scrapy's stats and in `OUTPUT_DIR/stats.json`. This page is written from
`crawl4llm/base/stats.py` by `python -m crawl4llm.commands.reference`.

"""

_OPT_OUTS = "<!-- What follows is written by python -m crawl4llm.commands.reference. -->\n"


def _profiles() -> str:
    """Return what each profile sets, as a Markdown list."""
    lines = []
    for profile in ("simulation", "live"):
        given = vars(import_module(f"settings.{profile}"))
        defaults = {options.setting_name(option): option.default for option in fields(options.Options)}
        own = [f"`{name} = {given[name]!r}`" for name in defaults if given.get(name, defaults[name]) != defaults[name]]
        lines.append(f"- `{profile}`: {', '.join(own)}\n")
    return "".join(lines)


def _opt_outs() -> str:
    """Return the page on opt-outs, whose first part is written by hand."""
    prose, mark, _ = (DOCS / "opt-outs.md").read_text(encoding="utf-8").partition(_OPT_OUTS)
    return f"{prose}{mark}\n{table.reference()}"


def pages() -> dict[Path, str]:
    """Return each reference page and what it should say."""
    return {
        DOCS / "settings.md": f"{_SETTINGS}{_profiles()}\n{options.reference()}{_SCRAPYS}{scrapy_settings.reference()}",
        DOCS / "stats.md": _STATS + stats.reference(),
        DOCS / "opt-outs.md": _opt_outs(),
    }


if __name__ == "__main__":
    for page, content in pages().items():
        page.write_text(content, encoding="utf-8")
