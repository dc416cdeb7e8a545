"""What an export is to hold: what the options of ``scrapy export`` ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from crawl4llm.base.errors import InputError

CRAWL, INFLUENCE = "crawl", "influence"


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which documents, in which order, in files of which format and size."""

    format: str = "jsonl.zst"
    order: str = CRAWL
    """CRAWL: as they were crawled, sources one after the other. INFLUENCE: the best first."""
    min_influence: float | None = None
    top: int | None = None
    """So many of the best."""
    top_share: float | None = None
    """The best of what the other rules leave: this share, rounded up."""
    oracle: bool = False
    """Only pages of the oracle set of the crawls' corpus."""
    languages: tuple[str, ...] = ()
    min_words: int | None = None
    max_words: int | None = None
    keep_duplicates: bool = False
    near_duplicates: float | None = None
    """Jaccard similarity from which on texts count as the same."""
    shard_documents: int = 100_000
    shard_bytes: int | None = None
    """Bytes of text in a file, at most; a text that is longer has a file to itself."""

    def check(self) -> None:
        """Raise InputError where no document can be what is asked for."""
        if self.min_words is not None and self.max_words is not None and self.min_words > self.max_words:
            raise InputError(
                f"--min-words {self.min_words} is more than --max-words {self.max_words}; no text fits both"
            )

    @property
    def selects_by_influence(self) -> bool:
        """Whether which pages are exported depends on influence, but for which of several equal ones."""
        return self.min_influence is not None or bool(self.top or self.top_share or self.oracle)

    @property
    def measures_text(self) -> bool:
        """Whether texts must be read before any is written."""
        limits = (self.min_words, self.max_words, self.near_duplicates, self.shard_bytes)
        return any(limit is not None for limit in limits)

    def settings(self) -> Mapping[str, Any]:
        """All of it, for the manifest."""
        return {**asdict(self), "languages": list(self.languages)}
