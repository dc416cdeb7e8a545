"""New quality: the number of pages of the wanted quality with a new text."""

from dataclasses import dataclass
from typing import Final

from crawl4llm.base.settings import fixed, optional_number
from crawl4llm.parts.part import Declaration


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Settings:
    """Its settings."""

    quality_threshold: float | None = fixed(None, optional_number)
    """Least influence of a quality document, for the figure of new quality documents per 1,000 fetches
    ([novelty.md](novelty.md#what-is-counted)). Default: the figure is left out, but `scrapy evaluate` uses the
    influence of the corpus's best tenth."""


DECLARED: Final = Declaration(
    "quality",
    "QUALITY_THRESHOLD",
    "crawl4llm.parts.quality.work.Quality",
    asked=lambda options: options.quality_threshold is not None,
    counts={
        "pages/new_quality": "crawled pages with an influence of QUALITY_THRESHOLD or more whose text is new: neither "
        "known nor like that of an earlier page, as far as texts are compared (KNOWN_TEXTS, NEAR_DUPLICATES)",
        "new_quality/per_1000_fetches": "these for each 1,000 of pages/fetched",
        "new_quality/per_gb": "live: these for each GB (10^9 bytes) received, since the crawl was begun or resumed",
        "new_quality/per_cpu_hour": "live: these for each hour of CPU time, worker processes included, since then",
    },
)
