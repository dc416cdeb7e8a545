"""Compares the text of each page with those of earlier ones (NEAR_DUPLICATES)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from crawl4llm.parts.near_duplicates import LEAVE, Settings
from crawl4llm.parts.near_duplicates.texts import NearDuplicates
from crawl4llm.parts.part import Needs, Part, Rated
from crawl4llm.scoring import require_library

if TYPE_CHECKING:
    from crawl4llm.policies import Pieces


class NearDuplicatesPart(Part):
    """See the module."""

    name = "near_duplicates"

    def __init__(self, options: Settings) -> None:
        super().__init__(options)
        require_library()
        self._leaves = options.near_duplicates == LEAVE

    def begin(self) -> None:
        self._texts = NearDuplicates()

    def needs(self) -> Needs:
        return Needs(signature=True)

    def identity(self) -> Mapping[str, Any]:
        return {"near_duplicates": self.options.near_duplicates}

    def rated(self, place: int, page: Rated) -> None:
        like = self._texts.add(place, page.signature)
        self.counts["pages/near_duplicates"] += like is not None
        page.compare(is_new=like is None)
        page.line["near_duplicate_of"] = like
        if like is not None:
            page.metadata["near-duplicate-of"] = like
            if self._leaves:
                page.left = "links/near_duplicate"

    def keep_in(self, pieces: Pieces) -> None:
        self._texts.keep_in(pieces)
