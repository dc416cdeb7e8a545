"""Skips links because of their ``rel`` (SKIPPED_LINK_TYPES).

Within a site ``nofollow`` marks pages that its software considers useless: answers to a comment, sorted lists, forms.
To other sites it says that their owners did not ask for the link, as in MediaWiki for every one; it does not judge
their pages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from crawl4llm.base.domains import owner_of
from crawl4llm.base.pages import Link
from crawl4llm.parts.link_types import COUNTS, NOFOLLOW, NOFOLLOW_ELSEWHERE, Settings
from crawl4llm.parts.part import Part, Rated


class LinkTypes(Part):
    """See the module."""

    name = "link_types"

    def __init__(self, options: Settings) -> None:
        super().__init__(options)
        self._skipped = frozenset(options.skipped_link_types)

    def identity(self) -> Mapping[str, Any]:
        return {"skipped_link_types": sorted(self._skipped)}

    def leads(self, page: Rated, links: Sequence[Link]) -> Sequence[Link]:
        if not any(link.rel for link in links):
            return links
        owner, kept = owner_of(page.url), []
        for link in links:
            if link.rel and (kind := self._kind(link, owner)) is not None:
                self.counts[COUNTS[kind]] += 1
            else:
                kept.append(link)
        return kept

    def _kind(self, link: Link, owner: str) -> str | None:
        """Return the type because of which a link on a page of an owner is not followed; None if it is followed."""
        kinds = link.rel.split()
        if NOFOLLOW in kinds and owner_of(link.url) != owner:
            kinds[kinds.index(NOFOLLOW)] = NOFOLLOW_ELSEWHERE
        return next((kind for kind in kinds if kind in self._skipped), None)
