"""Known texts: pages whose text the user already has."""

from dataclasses import dataclass
from typing import Final

from crawl4llm.base.settings import option, optional_text
from crawl4llm.parts.part import ALONE, Declaration

ALL_KNOWN: Final = "all_known"
"""The finish reason of a crawl that finds only known texts."""
KNOWN_AT_FIRST: Final = 1000
"""Pages with text, other than seeds, after which such a crawl ends."""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Settings:
    """Its settings."""

    known_texts: str | None = option(None, optional_text)
    """Path of a file of texts that you already have, made by `scrapy corpus known`. Pages with an equal or nearly equal
    text are counted and marked; the crawl visits places with such pages last ([novelty.md](novelty.md#known-texts))."""


DECLARED: Final = Declaration(
    "known_texts",
    "KNOWN_TEXTS",
    "crawl4llm.parts.known_texts.work.KnownTextsPart",
    asked=lambda options: options.known_texts is not None,
    counts={"pages/known_text": "crawled pages whose text is a known one, word for word or nearly (KNOWN_TEXTS)"},
    ends={ALL_KNOWN: f"the first {KNOWN_AT_FIRST:,} pages beyond the seeds have no new text: KNOWN_TEXTS has them all"},
    partitioned=ALONE,
)
