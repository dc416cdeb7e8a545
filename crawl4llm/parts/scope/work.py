"""Follows the links that CRAWL_SCOPE and SCOPE_* let it follow."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from crawl4llm.base.domains import domain_of_url
from crawl4llm.base.errors import Why
from crawl4llm.base.reasons import OFF_SCOPE
from crawl4llm.parts.part import Part, Refusal
from crawl4llm.parts.scope import Settings, has_rules
from crawl4llm.parts.scope.rules import FILE_TYPE, UrlRules

if TYPE_CHECKING:
    from crawl4llm.base.pages import Link
    from crawl4llm.frontier import Entry

logger = logging.getLogger(__name__)


class ScopePart(Part):
    """See the module."""

    name = "scope"

    def __init__(self, options: Settings) -> None:
        super().__init__(options)
        self._within_domain = options.crawl_scope == "domain"
        self._rules = UrlRules(options) if has_rules(options) else None
        for fault in self._rules.faults if self._rules is not None else ():
            logger.warning("%s", fault)

    def identity(self) -> Mapping[str, Any]:
        return {} if self._rules is None else {"url_rules": self._rules.identity}

    def follows(self, source: Entry, links: Sequence[Link]) -> Sequence[Link]:
        if self._within_domain:
            domain = domain_of_url(source.url)
            kept = [link for link in links if link.key is None or domain_of_url(link.url) == domain]
            self.counts["links/off_scope"] += len(links) - len(kept)
            links = kept
        return links if self._rules is None else self._within_rules(links, self._rules)

    def redirects(self, source: Entry, url: str) -> Refusal | None:
        if self._within_domain and domain_of_url(url) != domain_of_url(source.url or source.key):
            return Refusal(OFF_SCOPE, Why("CRAWL_SCOPE domain"))
        return self.seeds(url)

    def seeds(self, url: str) -> Refusal | None:
        if self._rules is None or self._rules.off_scope(url) is None:
            return None
        return Refusal(OFF_SCOPE, self._rules.why(url))

    def may_list(self, site: str, url: str) -> bool:
        """Whatever the ending of its name: archives of sitemaps are read."""
        if self._within_domain and domain_of_url(url) != domain_of_url(site):
            return False
        return self._rules is None or self._rules.off_scope(url) in {None, FILE_TYPE}

    def _within_rules(self, links: Sequence[Link], rules: UrlRules) -> Sequence[Link]:
        """Return the links that the rules let it follow; count the others by rule."""
        off = [None if link.key is None else rules.off_scope(link.url) for link in links]
        if not any(off):
            return links
        self.counts.update(f"links/{rule}" for rule in off if rule is not None)
        return [link for link, rule in zip(links, off, strict=True) if rule is None]
