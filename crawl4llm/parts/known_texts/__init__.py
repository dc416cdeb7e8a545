"""Known texts: which pages have a text that somebody has already."""

from dataclasses import dataclass
from typing import Final

from crawl4llm.base.settings import option, optional_text
from crawl4llm.parts.part import ALONE, Declaration

ALL_KNOWN: Final = "all_known"
"""The reason for which a crawl ends that finds nothing but known texts."""
KNOWN_AT_FIRST: Final = 1000
"""Pages that no seed is, and have text, after which it does."""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Settings:
    """Its settings."""

    known_texts: str | None = option(None, optional_text)
    """Path of a file of texts that you have already, made by `scrapy corpus known`. Pages with such a text, or nearly,
    are counted and noted; the crawl visits places with such pages last ([novelty.md](novelty.md#known-texts))."""


DECLARED: Final = Declaration(
    "known_texts",
    "KNOWN_TEXTS",
    "crawl4llm.parts.known_texts.work.KnownTextsPart",
    asked=lambda options: options.known_texts is not None,
    counts={"pages/known_text": "crawled pages whose text is a known one, word for word or nearly (KNOWN_TEXTS)"},
    ends={ALL_KNOWN: f"the first {KNOWN_AT_FIRST:,} pages beyond the seeds have no new text: KNOWN_TEXTS has them all"},
    partitioned=ALONE,
)
