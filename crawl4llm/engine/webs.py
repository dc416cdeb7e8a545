"""The web of the settings, from which their downloader middleware fetches; and visits of it.

On a visit, Scrapy's own commands and other spiders get pages of the corpus.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from scrapy.settings import BaseSettings, default_settings
from scrapy.utils.misc import load_object

from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.engine.components import NO_SPIDER_STATE

if TYPE_CHECKING:
    from crawl4llm.crawl import Web

OURS: Final = "influence"
_MIDDLEWARES = "DOWNLOADER_MIDDLEWARES"
_SCRAPYS: Final = {
    "SCHEDULER": default_settings.SCHEDULER,
    "SPIDER_MIDDLEWARES_BASE": default_settings.SPIDER_MIDDLEWARES_BASE,
    "EXTENSIONS_BASE": {**default_settings.EXTENSIONS_BASE, **NO_SPIDER_STATE},
}
"""Settings that the profiles change for this project's spider, with the values for others."""


def web_class(settings: BaseSettings) -> type[Web]:
    """Return the web whose middleware the settings have. Raises InputError if they have none, or two."""
    given = settings.getwithbase(_MIDDLEWARES).items()
    orders = {_loaded(path): order for path, order in given if not str(path).startswith("scrapy.")}
    fetchers = [one for one, order in orders.items() if order is not None and hasattr(one, "web")]
    if not fetchers:
        raise InputError(
            f"{_MIDDLEWARES} has nothing that fetches pages; begin with a profile of this project, "
            "settings/simulation.py or settings/live.py, and keep its ADDONS"
        )
    if len(fetchers) > 1:
        both = " and ".join(f"{one.__module__}.{one.__qualname__}" for one in fetchers)
        raise InputError(f"{_MIDDLEWARES}: {both} fetch pages, and one may; switch the other off with None")
    return cast("type[Web]", fetchers[0].web)


def _loaded(path: Any) -> Any:
    faults = (ImportError, NameError, ValueError)
    with as_input_error(f"{_MIDDLEWARES}: {path} cannot be loaded", form="{} ({})", errors=faults):
        return load_object(path)


def prepare(settings: BaseSettings, given: str | None = None, spider: str | None = None) -> str | None:
    """Prepare settings for a visit; return the URL at which a document is requested, by its id or URL.

    ``spider`` is the one that takes the pages, if it is named. Raises InputError if the web cannot be visited, and
    PageError for a document that it does not hold.
    """
    if spider == OURS:
        raise InputError(f"the spider {OURS} takes pages of its own crawl alone; name another, or run `crawl {OURS}`")
    url = web_class(settings).visit(settings, given)
    settings.setdict(_SCRAPYS, priority="project")
    return url
