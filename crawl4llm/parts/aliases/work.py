"""Drops links to URLs with patterns that led to second URLs of an owner's pages, or to worthless pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from crawl4llm.base.domains import owner_of
from crawl4llm.base.errors import Why
from crawl4llm.frontier import Entry
from crawl4llm.parts.aliases import ALIAS, Settings
from crawl4llm.parts.aliases.evidence import CANONICAL, Patterns
from crawl4llm.parts.aliases.pages import Pages, facts_of
from crawl4llm.parts.aliases.patterns import SplitUrl, holds, split_url, without
from crawl4llm.parts.aliases.tables import hashed
from crawl4llm.parts.part import Needs, Part, Rated, Refusal
from crawl4llm.policies import Candidate, CrawledPage, Pieces
from crawl4llm.scoring import require_library

if TYPE_CHECKING:
    from crawl4llm.base.pages import Link

_TESTED: Final = 20
"""One in this many documents with a pattern is fetched to test the pattern."""


class Aliases(Part):
    """See the package. Seeds and targets of redirects are not dropped."""

    name = "aliases"

    def __init__(self, options: Settings) -> None:
        super().__init__(options)
        setting = "URL_ALIAS_PAIRS" if options.url_alias_pairs else "URL_WORTHLESS_PAGES"
        require_library(setting, "set it to 0")

    def begin(self) -> None:
        self._patterns = Patterns(self.options.url_alias_pairs, self.options.url_worthless_pages)
        self._pages = Pages(self._patterns)

    def needs(self) -> Needs:
        return Needs(signature=True)

    def identity(self) -> Mapping[str, Any]:
        return {
            "url_alias_pairs": self.options.url_alias_pairs,
            "url_worthless_pages": self.options.url_worthless_pages,
        }

    def leads(self, page: Rated, links: Sequence[Link]) -> Sequence[Link]:
        """Replace links to aliases of the page's owner by links to the pages themselves, which no other link may lead
        to. For a worthless parameter the page without it may not exist."""
        owner = owner_of(page.url)
        rules = self._patterns.rules_of(owner).items()
        patterns = [pattern for pattern, kind in rules if kind == CANONICAL or pattern.startswith("/")]
        if not patterns:
            return links
        found: list[Link] = []
        for link in links:
            key = link.key or ""
            is_ours = key and hashed(key) % _TESTED and owner_of(key) == owner
            if not is_ours or (plain := without(key, patterns)) == key:
                found.append(link)
            elif plain != page.key:
                self.counts["links/alias/followed"] += 1
                found.append(link._replace(url=plain, key=plain))
        return found

    def admits(self, candidate: Candidate) -> Refusal | None:
        return self._refusal(candidate.key, candidate.url or candidate.key)

    def drops(self, entry: Entry) -> Refusal | None:
        return None if entry.parent is None else self._refusal(entry.key, entry.url or entry.key)

    def rated(self, place: int, page: Rated) -> None:
        """Learn from a page, whether or not it is archived."""
        if page.head is not None and page.head.canonical not in {"", page.key}:
            page.metadata["canonical"] = page.head.canonical
        owner, url = _place_of(page.key, page.url)
        if not owner or url is None or (page.influence is None and not page.noindex):
            return  # a page that could not be rated may have a text
        self.counts["pages/aliases"] += self._pages.add(owner, url, facts_of(page, url))
        self.counts["aliases/learnt"] += self._patterns.learnt
        self.counts["aliases/ended"] += self._patterns.ended
        self._patterns.learnt = self._patterns.ended = 0

    def found(self, page: CrawledPage, new: Sequence[Candidate]) -> None:
        owner, url = _place_of(page.entry.key, page.entry.url)
        if new and owner and url is not None:
            self._pages.led(owner, url, (candidate.url or candidate.key for candidate in new))

    def keep_in(self, pieces: Pieces) -> None:
        self._patterns.keep_in(pieces)
        self._pages.keep_in(pieces)

    def _refusal(self, key: str, url: str) -> Refusal | None:
        """Return why a document is dropped: it has a pattern that is not followed, and is not one of the tests."""
        owner = owner_of(url)
        rules = self._patterns.rules_of(owner)
        if not rules or (split := split_url(url)) is None:
            return None
        words = split.words
        found = next((pattern for pattern in rules if holds(pattern, words)), None)
        if found is None or not hashed(key) % _TESTED:
            return None
        kind = rules[found]
        setting = "URL_ALIAS_PAIRS" if kind == CANONICAL else "URL_WORTHLESS_PAGES"
        return Refusal(ALIAS, Why(f"{setting} {found} of {owner}"), f"links/alias/{kind}")


@lru_cache(maxsize=1024)
def _place_of(key: str, url: str) -> tuple[str, SplitUrl | None]:
    """Return the owner and the parts of a page's URL, which is its key if that is a URL."""
    url = key if "://" in key else url
    return owner_of(url), split_url(url)
