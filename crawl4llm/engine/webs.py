"""The web of the settings: finds it, and gives its downloader middleware what it works with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from scrapy.utils.misc import load_object

from crawl4llm.base.errors import InputError

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawl4llm.crawl.web import Web

_MIDDLEWARES = "DOWNLOADER_MIDDLEWARES"


def web_class(settings: BaseSettings) -> type[Web]:
    """Return the web whose middleware the settings have. Raises InputError where they have none."""
    return cast("type[Web]", _middleware(settings)[1].web)


def hand_in(settings: BaseSettings, argument: Any) -> None:
    """Let Scrapy make the web's middleware of what it works with; the settings must not be frozen yet."""
    path, middleware = _middleware(settings)

    def make() -> Any:
        return middleware(argument)

    middlewares: dict[Any, Any] = dict(settings.getdict(_MIDDLEWARES))
    middlewares = {make if key == path else key: order for key, order in middlewares.items()}
    settings.set(_MIDDLEWARES, middlewares, priority=settings.getpriority(_MIDDLEWARES) or "spider")


def _middleware(settings: BaseSettings) -> tuple[Any, Any]:
    """Return the web's middleware, as the settings name it and as a class."""
    used = {path: order for path, order in settings.getdict(_MIDDLEWARES).items() if order is not None}
    for path in sorted(used, key=lambda path: used[path]):
        try:
            found = load_object(path)
        except (ImportError, NameError, ValueError) as error:
            raise InputError(f"{_MIDDLEWARES}: {path} cannot be loaded ({error})") from None
        if hasattr(found, "web"):
            return path, found
    raise InputError(
        f"{_MIDDLEWARES} has nothing that fetches pages; begin with a profile of this project, settings/simulation.py "
        "or settings/live.py"
    )
