"""Aliases: URL parameters and path segments that lead to second URLs of an owner's pages, or to worthless pages."""

from dataclasses import dataclass
from typing import Final

from crawl4llm.base.settings import fixed, whole
from crawl4llm.parts.part import CONTINUOUS, Declaration

ALIAS: Final = "alias"
"""The reason for which documents are dropped."""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Settings:
    """Its settings."""

    url_alias_pairs: int = fixed(0, whole(0))
    """Number of aliases: pages of an owner that their canonical pages show too, at URLs without one parameter or path
    segment. From this number on, links to URLs with that parameter or segment are dropped as `alias`
    ([traps.md](traps.md#aliases)). 0: never. The live profile has 5."""
    url_worthless_pages: int = fixed(0, whole(0))
    """Number of worthless pages of an owner with one URL parameter or path segment. They are near duplicates of pages
    without it, have no text, or ask not to be indexed. From this number on, and from 5 pages without it, links to URLs
    with it are dropped as `alias` ([traps.md](traps.md#aliases)). 0: never. The live profile has 20."""


DECLARED: Final = Declaration(
    "aliases",
    "URL_ALIAS_PAIRS",
    "crawl4llm.parts.aliases.work.Aliases",
    asked=lambda options: bool(options.url_alias_pairs or options.url_worthless_pages),
    reasons={
        ALIAS: "its URL has a parameter or path segment that led to second URLs of its owner's pages, or to worthless "
        "pages (URL_ALIAS_PAIRS, URL_WORTHLESS_PAGES)"
    },
    counts={
        "links/alias/canonical": "documents dropped as `alias`, when found or when their turn came, by URL_ALIAS_PAIRS",
        "links/alias/worthless": "the same, by URL_WORTHLESS_PAGES",
        "links/alias/followed": "links to aliases that were followed to the URL without the parameter",
        "pages/aliases": "crawled pages that are aliases of a crawled page, which they name as canonical",
        "aliases/learnt": "parameters and path segments of owners that were found worthless",
        "aliases/ended": "those of them that were found useful later",
    },
    partitioned=CONTINUOUS,
)
