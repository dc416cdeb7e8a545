"""Drops what KNOWN_URLS has."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from crawl4llm.base.reasons import KNOWN_URL
from crawl4llm.parts.known_urls import Settings
from crawl4llm.parts.known_urls.urls import KnownUrls
from crawl4llm.parts.part import Part, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crawl4llm.frontier import Entry
    from crawl4llm.policies import Candidate

logger = logging.getLogger(__name__)


class KnownUrlsPart(Part):
    """See the module. Seeds are crawled although they are known, and so is what a seed redirects to."""

    name = "known_urls"

    def __init__(self, options: Settings) -> None:
        super().__init__(options)
        self._known = KnownUrls(options.known_urls)
        for line in self._known.lines:
            logger.info("%s", line)

    def identity(self) -> Mapping[str, Any]:
        return {"known_urls": self._known.identity}

    def admits(self, candidate: Candidate) -> Refusal | None:
        return self._refusal(candidate.key if "://" in candidate.key else candidate.url)  # keys may be ids

    def redirects(self, source: Entry, url: str) -> Refusal | None:
        return self._refusal(url) if source.depth else None

    def figures(self, figures: Mapping[str, float | None]) -> Mapping[str, float | None]:
        new = self.counts["links/new"] - self.counts[f"dropped/{KNOWN_URL}"]
        return {"links/taken_for_known": self._known.error_rate * new}

    def lines(self, figures: Mapping[str, float | None]) -> Iterator[str]:
        known, lost = int(figures.get(f"dropped/{KNOWN_URL}") or 0), figures["links/taken_for_known"]
        yield f"  known URLs       {known:,} dropped, of which {lost:.2g} are not known, by expectation"

    def _refusal(self, url: str) -> Refusal | None:
        return None if (why := self._known.why(url)) is None else Refusal(KNOWN_URL, why)
