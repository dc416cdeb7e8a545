"""The URL rules of a crawl: which URLs the settings SCOPE_* leave alone.

Written here and not taken from courlan, whose checks take 14 microseconds a link, and whose normal forms are others
than RFC 3986's: docs/scope.md has the figures.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from crawl4llm.base.domain_lists import DomainList
from crawl4llm.base.domains import ascii_host
from crawl4llm.base.errors import Why
from crawl4llm.base.input_files import given_path
from crawl4llm.parts.scope import FILE_TYPES

if TYPE_CHECKING:
    from crawl4llm.parts.scope import Settings

SCHEME, FILE_TYPE, DOMAIN = "scheme", "file_type", "domain"
"""Rules, by which links are counted."""
_HOSTS: Final = 65_536
"""Hosts that are remembered."""


class UrlRules:
    """Says which URLs are followed at all; whether they were visited before makes no difference."""

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
        """A line on each file that could not be used to the last line."""

    @property
    def identity(self) -> dict[str, Any]:
        """What decides which URLs are followed, as JSON takes it."""
        return {
            "domains": sorted(self._domains),
            "domain_files": [one.digest for one in self._files],
            "https_only": self._https_only,
            "skipped": sorted(set(map(str.lower, self._endings))),
        }

    def off_scope(self, url: str) -> str | None:
        """Return the rule, SCHEME, FILE_TYPE or DOMAIN, by which a URL is not followed; None where it may be."""
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
        """Return the rule by which a URL is not followed; None if there is none."""
        rules = {SCHEME: "SCOPE_HTTPS_ONLY", FILE_TYPE: f"SCOPE_SKIPPED_TYPES .{self._ending(url)}"}
        return None if (kind := self.off_scope(url)) is None else Why(rules.get(kind, "SCOPE_DOMAINS"))

    def _ending(self, url: str) -> str:
        """Return the ending of the file name in a URL's path, if it is one that is skipped; else an empty string.

        A name with a colon is a page about a file: ``/wiki/File:Map.png`` of MediaWiki.
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
    """Return the endings that are meant by names of FILE_TYPES and by endings with a dot, as they are usually written:
    in lower case, in upper case, and with a capital."""
    endings = [one[1:] if one.startswith(".") else FILE_TYPES[one] for one in given]
    return frozenset(form for one in " ".join(endings).split() for form in (one, one.upper(), one.capitalize()))
