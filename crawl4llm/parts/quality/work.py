"""Counts the pages that reach QUALITY_THRESHOLD and have a new text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from crawl4llm.frontier import Entry
from crawl4llm.parts.part import Part, Rated

_COSTS: Final = {"new_quality/per_gb": "per GB", "new_quality/per_cpu_hour": "per CPU hour"}


class Quality(Part):
    """See the module."""

    name = "quality"

    def crawled(self, entry: Entry, page: Rated) -> None:
        if page.has_worth:
            good = page.influence is not None and page.influence >= self.options.quality_threshold
            self.counts["pages/new_quality"] += good

    def figures(self, figures: Mapping[str, float | None]) -> Mapping[str, float | None]:
        if not (fetched := figures.get("pages/fetched")):
            return {}
        return {"new_quality/per_1000_fetches": 1000 * (figures.get("pages/new_quality") or 0) / fetched}

    def lines(self, figures: Mapping[str, float | None]) -> Iterator[str]:
        if (rate := figures.get("new_quality/per_1000_fetches")) is not None:
            number = int(figures.get("pages/new_quality") or 0)
            costs = [f", {figures[key]:,.0f} {what}" for key, what in _COSTS.items() if figures.get(key) is not None]
            yield f"  new quality      {number:,} documents, {rate:,.1f} per 1,000 fetches{''.join(costs)}"
