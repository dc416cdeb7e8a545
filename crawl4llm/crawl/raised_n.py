"""What a crawl keeps for the case that N is raised, so that it then goes on as if N had always been as large."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple
from typing import Any

from crawl4llm.base.pages import Link
from crawl4llm.frontier import Entry
from crawl4llm.policies import CrawledPage


class RaisedN:
    """The part of the last batch that N cut off: places that were not filled, and pages whose links wait.

    The links of pages that may be the crawl's last ones are not followed, since nobody would crawl where they lead.
    They are followed after all where others of these pages fail, so that N is not reached, or where N is raised.
    """

    def __init__(self) -> None:
        self.places = 0
        """Places of this batch left unfilled because of N; used first when a resumed run raises it."""
        self._pages: list[CrawledPage] = []

    def __bool__(self) -> bool:
        """Whether there are pages whose links wait."""
        return bool(self._pages)

    def fill(self, places: int, missing: int) -> int:
        """Return how many of a batch's places may be filled while ``missing`` pages are missing to N."""
        places = self.places or places
        filled = min(places, missing)
        self.places = places - filled
        return filled

    def hold_back(self, page: CrawledPage) -> None:
        """Keep a page whose links are not followed now."""
        self._pages.append(page)

    def release(self) -> list[CrawledPage]:
        """Return the pages held back, in crawl order; their links are followed now."""
        pages, self._pages = self._pages, []
        return pages

    def save(self) -> dict[str, Any]:
        """Return its state as JSON takes it."""
        return {
            "kept_out": self.places,
            "held_back": [[*astuple(page.entry), page.influence, page.links] for page in self._pages],
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from what :meth:`save` returned."""
        self.places = state["kept_out"]
        held_back: Iterable[Any] = state["held_back"]
        self._pages = [
            CrawledPage(Entry(*entry), influence, [Link(*link) for link in links])
            for *entry, influence, links in held_back
        ]
