"""The web of the settings: the one that their downloader middlewares fetch from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from scrapy.utils.misc import load_object

from crawl4llm.base.errors import InputError

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawl4llm.crawl.web import Web

_MIDDLEWARES = "DOWNLOADER_MIDDLEWARES"


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
    try:
        return load_object(path)
    except (ImportError, NameError, ValueError) as error:
        raise InputError(f"{_MIDDLEWARES}: {path} cannot be loaded ({error})") from None
