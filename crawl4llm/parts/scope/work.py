"""Follows the links that CRAWL_SCOPE and SCOPE_* allow.

The rules for URLs are written here and not taken from courlan. Its checks take 14 microseconds a link, and its normal
forms differ from those of RFC 3986: docs/scope.md has the figures.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from crawl4llm.base.domain_lists import DomainList
from crawl4llm.base.domains import ascii_host, domain_of_url
from crawl4llm.base.errors import Why
from crawl4llm.base.expressions import Expressions
from crawl4llm.base.input_files import given_path
from crawl4llm.base.pages import Link
from crawl4llm.base.reasons import DENIED, OFF_SCOPE
from crawl4llm.frontier import Entry
from crawl4llm.parts.part import Part, Refusal
from crawl4llm.parts.scope import FILE_TYPES, Settings, has_rules
from crawl4llm.policies import Candidate

SCHEME, FILE_TYPE, DOMAIN = "scheme", "file_type", "domain"
"""Rules, by which links are counted."""
_HOSTS: Final = 65_536
"""Most hosts that are remembered."""


class UrlRules:
    """Tells which URLs may be followed, visited before or not."""

    def __init__(self, options: Settings) -> None:
        """Read the files that the settings name. Raises InputError."""
        self._https_only = options.scope_https_only
        self._endings = _endings(options.scope_skipped_types)
        self._domains = frozenset(given for given in options.scope_domains if "/" not in given)
        self._files = [
            DomainList(given_path(given), "SCOPE_DOMAINS", suffixes=True)
            for given in options.scope_domains
            if "/" in given
        ]
        for one in self._files:
            one.data = b""
        self._is_within = lru_cache(maxsize=_HOSTS)(self._look_up) if options.scope_domains else None
        self.faults = [one.fault for one in self._files if one.fault]
        """A line on each file with unusable lines."""

    @property
    def identity(self) -> dict[str, Any]:
        """The values that decide which URLs are followed, in JSON values."""
        return {
            "domains": sorted(self._domains),
            "domain_files": [one.digest for one in self._files],
            "https_only": self._https_only,
            "skipped": sorted(set(map(str.lower, self._endings))),
        }

    def off_scope(self, url: str) -> str | None:
        """Return the rule, SCHEME, FILE_TYPE or DOMAIN, by which a URL is not followed; None if it may be."""
        if self._https_only and not url.startswith("https://"):
            return SCHEME
        if self._endings:
            path = url.partition("?")[0] if "?" in url else url
            if path.rpartition(".")[2] in self._endings and self._ending(url):
                return FILE_TYPE
        if self._is_within is not None and not self._is_within(ascii_host(url)):
            return DOMAIN
        return None

    def why(self, url: str) -> Why | None:
        """Return the rule by which a URL is not followed; None if it may be followed."""
        rules = {SCHEME: "SCOPE_HTTPS_ONLY", FILE_TYPE: f"SCOPE_SKIPPED_TYPES .{self._ending(url)}"}
        return None if (kind := self.off_scope(url)) is None else Why(rules.get(kind, "SCOPE_DOMAINS"))

    def _ending(self, url: str) -> str:
        """Return the ending of the file name in a URL's path, if files with it are skipped; otherwise an empty string.

        A name with a colon is a page about a file: ``/wiki/File:Map.png`` in MediaWiki.
        """
        path = url.partition("?")[0]
        ending = path.rpartition(".")[2]
        name = path[path.rfind("/") + 1 :]
        return "" if ending not in self._endings or ":" in name or "%3A" in name else ending.lower()

    def _look_up(self, host: str) -> bool:
        rest = host
        while rest and rest not in self._domains:
            rest = rest.partition(".")[2]
        return bool(rest) or any(one.line_of(host) is not None for one in self._files)


def _endings(given: Collection[str]) -> frozenset[str]:
    """Return the endings for names of FILE_TYPES and for endings with a dot, in their usual spellings: in lower case,
    in upper case, and with a capital."""
    endings = [one[1:] if one.startswith(".") else FILE_TYPES[one] for one in given]
    return frozenset(form for one in " ".join(endings).split() for form in (one, one.upper(), one.capitalize()))


logger = logging.getLogger(__name__)


class ScopePart(Part):
    """See the module."""

    name = "scope"

    def __init__(self, options: Settings) -> None:
        super().__init__(options)
        self._within_domain = options.crawl_scope == "domain"
        self._rules = UrlRules(options) if has_rules(options) else None
        self._deny, self._allow = (
            Expressions(given, name) if options.scope_deny and given else None
            for given, name in ((options.scope_deny, "SCOPE_DENY"), (options.scope_allow, "SCOPE_ALLOW"))
        )
        for fault in self._rules.faults if self._rules is not None else ():
            logger.warning("%s", fault)

    def identity(self) -> Mapping[str, Any]:
        told: dict[str, Any] = {} if self._rules is None else {"url_rules": self._rules.identity}
        lists = {"denied": self._deny, "allowed": self._allow}
        return told | {name: one.digest for name, one in lists.items() if one is not None}

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
        if (refusal := self.seeds(url)) is not None or (denied := self._denied(url)) is None:
            return refusal
        return None if denied == self._denied(source.url or source.key) else Refusal(DENIED, Why(denied))

    def admits(self, candidate: Candidate) -> Refusal | None:
        denied = self._denied(candidate.url or candidate.key)
        return None if denied is None else Refusal(DENIED, Why(denied))

    def seeds(self, url: str) -> Refusal | None:
        if self._rules is None or self._rules.off_scope(url) is None:
            return None
        return Refusal(OFF_SCOPE, self._rules.why(url))

    def may_list(self, site: str, url: str) -> bool:
        """Any ending of its name is allowed, because archives of sitemaps are read."""
        if self._within_domain and domain_of_url(url) != domain_of_url(site):
            return False
        return self._rules is None or self._rules.off_scope(url) in {None, FILE_TYPE}

    def _denied(self, url: str) -> str | None:
        """Return the expression of SCOPE_DENY by which a URL is denied, and its place; None if it is allowed."""
        if self._deny is None or (denied := self._deny.first_in(url)) is None:
            return None
        return None if self._allow is not None and self._allow.first_in(url) is not None else denied

    def _within_rules(self, links: Sequence[Link], rules: UrlRules) -> Sequence[Link]:
        """Return the links that the rules allow; count the others by rule."""
        off = [None if link.key is None else rules.off_scope(link.url) for link in links]
        if not any(off):
            return links
        self.counts.update(f"links/{rule}" for rule in off if rule is not None)
        return [link for link, rule in zip(links, off, strict=True) if rule is None]
