"""crawl4llm: a Scrapy crawler that fetches first the pages that matter most for LLM pretraining.

The public Python API is listed in ``__all__``: :func:`open_run` reads a crawl, :func:`simulate` makes one. Slow modules
are imported when they are first used, so that ``import crawl4llm`` is cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from crawl4llm.base.errors import InputError, PageError
from crawl4llm.base.version import __version__

if TYPE_CHECKING:
    from crawl4llm.tools.opened_run import OpenedRun, Page, open_run
    from crawl4llm.tools.simulating import simulate

__all__ = ["InputError", "OpenedRun", "Page", "PageError", "__version__", "open_run", "simulate"]

_PLACES: Final = {
    "OpenedRun": "tools.opened_run",
    "Page": "tools.opened_run",
    "open_run": "tools.opened_run",
    "simulate": "tools.simulating",
}
"""Modules of the public names that are imported when they are first used."""


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used (PEP 562)."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
