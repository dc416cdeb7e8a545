"""Scrapy's own commands, and spiders of somebody else, in a project of ours: they get the pages of the corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scrapy.settings import default_settings

from crawl4llm.base.errors import InputError
from crawl4llm.engine.components import NO_SPIDER_STATE
from crawl4llm.engine.webs import web_class

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

OURS: Final = "influence"
_SCRAPYS: Final = {
    "SCHEDULER": default_settings.SCHEDULER,
    "SPIDER_MIDDLEWARES_BASE": default_settings.SPIDER_MIDDLEWARES_BASE,
    "EXTENSIONS_BASE": {**default_settings.EXTENSIONS_BASE, **NO_SPIDER_STATE},
}
"""Settings of the profiles that are made for our spider, as they are for others."""


def prepare(settings: BaseSettings, given: str | None = None, spider: str | None = None) -> str | None:
    """Let settings be those of a visit; return the URL under which a document is asked for, by its id or URL.

    ``spider`` is the one that takes the pages, if it is named. Raises InputError if the web is not to be visited,
    and PageError for a document that it does not hold.
    """
    if spider == OURS:
        raise InputError(f"the spider {OURS} takes pages of its own crawl alone; name another, or run `crawl {OURS}`")
    url = web_class(settings).visit(settings, given)
    settings.setdict(_SCRAPYS, priority="project")
    return url
