"""Live logging: the figures of a crawl, sent while it runs to what shows them (LIVE_LOGGING).

``LOGGERS`` names what there is; ``extension`` feeds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

from crawl4llm.base.errors import InputError

LOGGERS = {
    "tensorboard": "crawl4llm.engine.live_logging.tensorboard_logger.TensorBoardLogger",
    "wandb": "crawl4llm.engine.live_logging.wandb_logger.WandbLogger",
}
"""By the word that LIVE_LOGGING takes, which is also the name of the extra that brings its package."""


class LiveLogger(Protocol):
    """Takes figures while a crawl runs."""

    def __init__(self, output: Path, description: Mapping[str, Any]) -> None:
        """Begin: ``output`` is the crawl's directory, ``description`` its ``settings.json``. Raises InputError."""
        ...

    def log(self, crawled: int, figures: Mapping[str, float]) -> None:
        """Take the figures of ``crawl4llm.base.stats``, by their keys, at so many pages crawled."""
        ...

    def close(self) -> None:
        """Bring everything to where it goes."""
        ...


def load_loggers(names: Iterable[str]) -> list[type[LiveLogger]]:
    """The classes of some LOGGERS. Raises InputError where a package is not installed."""
    return [_load(name) for name in names]


def _load(name: str) -> type[LiveLogger]:
    module, _, class_name = LOGGERS[name].rpartition(".")
    try:
        return cast("type[LiveLogger]", getattr(import_module(module), class_name))
    except ImportError as error:
        raise InputError(
            f"LIVE_LOGGING {name} is not installed ({error.name}); pip install 'crawl4llm[{name}]'"
        ) from None
