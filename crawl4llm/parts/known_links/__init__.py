"""Known links: known pages whose links are followed without a request."""

from dataclasses import dataclass
from typing import Final

from crawl4llm.base.reasons import KNOWN_PAGE
from crawl4llm.base.settings import option, optional_text
from crawl4llm.parts.part import Declaration


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Settings:
    """Its settings."""

    known_links: str | None = option(None, optional_text)
    """Path of a file of pages with their links, made by `scrapy corpus known --links`. When the turn of such a page
    comes, its links are followed without a request, and it is dropped as `known_page`
    ([novelty.md](novelty.md#known-links)). It costs no budget and does not count towards `CRAWL_MAX_PAGES`."""


DECLARED: Final = Declaration(
    "known_links",
    "KNOWN_LINKS",
    "crawl4llm.parts.known_links.work.KnownLinksPart",
    asked=lambda options: options.known_links is not None,
    reasons={KNOWN_PAGE: "KNOWN_LINKS has it: its links were followed, and nothing was requested"},
)
