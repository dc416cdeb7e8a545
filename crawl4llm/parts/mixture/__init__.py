"""Mixture: the wanted classes of the pages of a crawl."""

from dataclasses import dataclass
from typing import Final

from crawl4llm.base.settings import option, optional_text
from crawl4llm.parts.part import ALONE, Declaration


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Settings:
    """Its settings."""

    mixture: str | None = option(None, optional_text)
    """Path of a JSON file with classifiers of texts, and the wanted share of each of their classes among the pages. The
    class furthest below its share is crawled next ([mixture.md](mixture.md))."""


DECLARED: Final = Declaration(
    "mixture",
    "MIXTURE",
    "crawl4llm.parts.mixture.work.Mixture",
    asked=lambda options: options.mixture is not None,
    counts={
        "mixture/share/<classifier>/<label>": "share of a class among the crawled pages that have text (MIXTURE); "
        "`*`: all labels that the mixture does not name",
        "mixture/wanted/<classifier>/<label>": "the share that the mixture wants",
    },
    partitioned=ALONE,
)
