"""Known URLs: documents that are known already, and are not fetched again."""

from dataclasses import dataclass
from typing import Final

from crawl4llm.base.reasons import KNOWN_URL
from crawl4llm.base.settings import files, option
from crawl4llm.parts.part import Declaration


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Settings:
    """Its settings."""

    known_urls: tuple[str, ...] = option((), files)
    """Sets of URLs made by `scrapy corpus known`, or lists of URLs, divided by commas: documents in them are dropped as
    `known_url` ([novelty.md](novelty.md#known-urls)). Seeds are not."""


DECLARED: Final = Declaration(
    "known_urls",
    "KNOWN_URLS",
    "crawl4llm.parts.known_urls.work.KnownUrlsPart",
    asked=lambda options: bool(options.known_urls),
    reasons={KNOWN_URL: "KNOWN_URLS has its URL, and it is no seed"},
    counts={
        "links/taken_for_known": "documents dropped as `known_url` that are not known, to be expected by the error "
        "rate of the sets"
    },
)
