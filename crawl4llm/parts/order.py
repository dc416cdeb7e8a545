"""The parts of the project, in the order in which their hooks are called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from crawl4llm.base import reasons, stats
from crawl4llm.base.errors import InputError
from crawl4llm.base.settings import loaded
from crawl4llm.parts import (
    aliases,
    blocklists,
    budgets,
    known_links,
    known_texts,
    known_urls,
    languages,
    left_overs,
    link_types,
    mixture,
    near_duplicates,
    noindex,
    quality,
    scope,
    site_rules,
    url_traps,
)
from crawl4llm.parts.opened import Parts
from crawl4llm.parts.part import Part

ORDER: Final = (
    scope.DECLARED,  # first what is not even visited: another link may lead there
    blocklists.DECLARED,  # whose operator wants nothing sent is told so, whatever else holds of the URL
    url_traps.DECLARED,  # a look at the URL
    site_rules.DECLARED,  # and one at its host
    known_urls.DECLARED,  # a look-up on disk
    known_links.DECLARED,
    link_types.DECLARED,  # what links say of themselves
    noindex.DECLARED,  # which pages count, before the parts that go by it
    languages.DECLARED,
    near_duplicates.DECLARED,  # what is new of a page's text, before the parts that go by it
    aliases.DECLARED,  # which go by that
    known_texts.DECLARED,
    left_overs.DECLARED,  # what a page is worth, before the parts that go by it
    quality.DECLARED,  # of what is new
    budgets.DECLARED,  # earned by it
    mixture.DECLARED,  # places last what is queued
)
"""The parts in the order in which their hooks are called; those of CRAWL_PARTS come after them."""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Settings(
    scope.Settings,
    blocklists.Settings,
    url_traps.Settings,
    site_rules.Settings,
    known_urls.Settings,
    known_links.Settings,
    link_types.Settings,
    noindex.Settings,
    languages.Settings,
    near_duplicates.Settings,
    aliases.Settings,
    known_texts.Settings,
    left_overs.Settings,
    quality.Settings,
    budgets.Settings,
    mixture.Settings,
):
    """The settings of all parts."""


ENDS: Final[dict[str, str]] = {}
"""Reasons of parts to end a crawl as complete, with their meanings."""


def _note(dropped: Mapping[str, str], counts: Mapping[str, str], ends: Mapping[str, str]) -> None:
    """Add the declarations of a part to the common tables."""
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
    found = loaded(dotted, f"CRAWL_PARTS = {dotted!r} cannot be loaded")
    if not (isinstance(found, type) and issubclass(found, Part)):
        raise InputError(f"CRAWL_PARTS = {dotted!r} is no part: it does not inherit crawl4llm.parts.Part")
    if not isinstance(getattr(found, "name", None), str):
        raise InputError(f"CRAWL_PARTS = {dotted!r} has no name, by which its state is saved")
    _note(found.REASONS, found.COUNTS, found.ENDS)
    return found
