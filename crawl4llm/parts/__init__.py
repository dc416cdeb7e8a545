"""Parts: what a crawl may also do.

Each is a folder with a declaration, which is always imported, and its work, which is imported if the settings ask for
it.

- ``part``: the hooks by which a part meets the crawl (:class:`Part`), and what it is told by them;
- ``opened``: the parts of one crawl;
- ``scope``, ``blocklists``, ``url_traps``, ``known_urls``: which links are followed, and where nothing is sent;
- ``near_duplicates``, ``known_texts``, ``mixture``: what is new among the texts of pages, and of which class they are;
- ``quality``: which pages count as good; ``budgets``: how many fetches owners and URL prefixes have.

CRAWL_PARTS names parts of somebody else by their dotted paths (docs/extending.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from crawl4llm.base import reasons, stats
from crawl4llm.base.errors import InputError
from crawl4llm.parts import (
    blocklists,
    budgets,
    known_texts,
    known_urls,
    mixture,
    near_duplicates,
    quality,
    scope,
    url_traps,
)
from crawl4llm.parts.opened import Parts as Parts
from crawl4llm.parts.part import ALONE as ALONE
from crawl4llm.parts.part import CONTINUOUS as CONTINUOUS
from crawl4llm.parts.part import EVERYWHERE as EVERYWHERE
from crawl4llm.parts.part import Declaration as Declaration
from crawl4llm.parts.part import Needs as Needs
from crawl4llm.parts.part import Part as Part
from crawl4llm.parts.part import Rated as Rated
from crawl4llm.parts.part import Refusal as Refusal
from crawl4llm.parts.part import Shelf as Shelf

ORDER: Final = (
    scope.DECLARED,  # first what is not even visited: another link may lead there
    blocklists.DECLARED,  # whose operator wants nothing sent is told so, whatever else holds of the URL
    url_traps.DECLARED,  # a look at the URL
    known_urls.DECLARED,  # a look-up on disk
    near_duplicates.DECLARED,  # what is new of a page's text, before the parts that go by it
    known_texts.DECLARED,
    quality.DECLARED,  # of what is new
    budgets.DECLARED,  # earned by it
    mixture.DECLARED,  # places last what is queued
)
"""The parts in the order in which their hooks are called; those of CRAWL_PARTS come after them."""


@dataclass(frozen=True, kw_only=True)
class Settings(
    scope.Settings,
    blocklists.Settings,
    url_traps.Settings,
    known_urls.Settings,
    near_duplicates.Settings,
    known_texts.Settings,
    quality.Settings,
    budgets.Settings,
    mixture.Settings,
):
    """The settings of all parts."""


ENDS: Final[dict[str, str]] = {}
"""Reasons for which parts end a crawl that has done what it was to do, with their meanings."""


def _note(dropped: Mapping[str, str], counts: Mapping[str, str], ends: Mapping[str, str]) -> None:
    """Put what a part declares into the tables of all."""
    reasons.DROPPED.update(dropped)
    stats.KEYS.update(counts)
    ENDS.update(ends)


for _declared in ORDER:
    _note(_declared.reasons, _declared.counts, _declared.ends)


def open_parts(options: Any) -> Parts:
    """Return the parts that settings ask for. Raises InputError."""
    kinds = [load_part(path) for path in options.crawl_parts]
    names = [declared.name for declared in ORDER] + [kind.name for kind in kinds]
    if twice := next((kind for kind in kinds if names.count(kind.name) > 1), None):
        raise InputError(
            f"CRAWL_PARTS: {twice.__module__}.{twice.__qualname__} has the name of another part, {twice.name}"
        )
    ours = [load_part(declared.work) for declared in ORDER if declared.asked(options)]
    return Parts(kind(options) for kind in [*ours, *kinds])


def load_part(dotted: str) -> type[Part]:
    """Return the class of a part by its dotted path. Raises InputError."""
    module, _, name = dotted.rpartition(".")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise InputError(f"CRAWL_PARTS = {dotted!r} cannot be loaded ({error})") from None
    if not (isinstance(found, type) and issubclass(found, Part)):
        raise InputError(f"CRAWL_PARTS = {dotted!r} is no part: it does not inherit crawl4llm.parts.Part")
    if not isinstance(getattr(found, "name", None), str):
        raise InputError(f"CRAWL_PARTS = {dotted!r} has no name, by which its state is saved")
    _note(found.REASONS, found.COUNTS, found.ENDS)
    return found
