"""Skips translations into languages that CRAWL_LANGUAGES does not have.

Pages state languages by ``hreflang`` of their links, and by the alternates in their heads, which include themselves. A
page without such statements is crawled, and its links are followed. From a page in another language, only links to its
translations are followed within its owner, because its other links lead to pages in its language and seldom say so.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from crawl4llm.base.domains import owner_of
from crawl4llm.base.errors import Why
from crawl4llm.base.page_heads import PageHead
from crawl4llm.base.pages import Link
from crawl4llm.base.reasons import LANGUAGE
from crawl4llm.base.urls import normalise_url
from crawl4llm.parts.languages import Settings
from crawl4llm.parts.part import Part, Rated, Refusal

_TAG: Final = re.compile(r"[a-z]{2,3}(-[a-z0-9]{1,8})*")
"""A language tag with a language (RFC 5646, 2.1), in lower case; not ``x-default``."""


class Languages(Part):
    """See the module."""

    name = "languages"

    def __init__(self, options: Settings) -> None:
        super().__init__(options)
        self._ranges = options.crawl_languages

    def identity(self) -> Mapping[str, Any]:
        return {"crawl_languages": sorted(self._ranges)}

    def rated(self, place: int, page: Rated) -> None:
        if page.head is None or not page.head.alternates:
            return
        own = _languages_of(page.head, normalise_url(page.url)) or _languages_of(page.head, page.head.canonical)
        if own and not self.wants(own):
            page.is_counted = False
            said = ", ".join(own)
            page.dropped = Refusal(LANGUAGE, Why(f"CRAWL_LANGUAGES {','.join(self._ranges)}: hreflang {said}"))

    def leads(self, page: Rated, links: Sequence[Link]) -> Sequence[Link]:
        named = _by_url(page.head)
        if not named and not any(link.language for link in links):
            return links
        is_other = page.dropped is not None and page.dropped.reason == LANGUAGE
        owner = owner_of(page.url) if is_other else ""
        kept = []
        for link in links:
            said = named.get(link.url) or ([link.language] if link.language else [])
            if self.wants(said) if said else not (is_other and owner_of(link.url) == owner):
                kept.append(link)
        self.counts["links/language"] += len(links) - len(kept)
        return kept

    def wants(self, languages: Collection[str]) -> bool:
        """A malformed tag, or ``x-default``, does not count against a page."""
        return any(not _TAG.fullmatch(tag) or self._has(tag) for tag in map(_hyphened, languages))

    def _has(self, tag: str) -> bool:
        """Return whether a language tag matches one of the ranges by basic filtering (RFC 4647, 3.3.1)."""
        return any(tag == one or tag.startswith(f"{one}-") for one in self._ranges)


def _hyphened(tag: str) -> str:
    """Return a tag in the form of RFC 5646; many pages have ``en_US``."""
    return tag.replace("_", "-")


def _by_url(head: PageHead | None) -> Mapping[str, list[str]]:
    """Return the languages that a head gives each URL."""
    named = defaultdict(list)
    for language, url in head.alternates if head is not None else ():
        named[url].append(language)
    return named


def _languages_of(head: PageHead, url: str) -> list[str]:
    return [language for language, one in head.alternates if one == url]
