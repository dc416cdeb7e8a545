"""Opt-outs in archives beyond those that stand with a page: in files of its site, in later answers, and by operators.

A robots.txt or tdmrep.json covers paths of its site. The head of a later answer for a page covers that page. Each
counts for the pages that were fetched before it, so a later opt-out applies to existing copies. An opt-out that was
withdrawn later still counts. A domain that the operator of a crawl blocked is opted out with all its pages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

from crawl4llm.base.domains import is_below
from crawl4llm.base.urls import BaseUrl, normalise_url, site_of
from crawl4llm.optouts.robots_rules import RobotsSignals, signals_of
from crawl4llm.optouts.said import Said, from_text
from crawl4llm.optouts.table import BLOCKED, OPERATOR, ROBOTS_TXT, TDMREP
from crawl4llm.optouts.tdmrep import TdmRules

FILES: Final = frozenset({ROBOTS_TXT, TDMREP})
"""The files of a site, by the names of the places in which signals stand."""
LARGEST_FILE: Final = 1 << 24
"""Most bytes of such a file, decoded, that are read; a crawl keeps less."""

_BLOCKED: Final = Said(BLOCKED, "domain", OPERATOR, "/")
_ROBOTS_PATH: Final = "/robots.txt"
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_TO_THE_SECOND: Final = len("2026-01-31T12:00:00")


class OfPage(NamedTuple):
    """The signals that stood with a page at some time."""

    url: str
    date: str
    """W3C date-time in UTC."""
    signals: str
    """In the form of :func:`crawl4llm.optouts.said.as_text`."""


class OfSite(NamedTuple):
    """A site's file at some time."""

    site: str
    date: str
    rules: RobotsSignals | TdmRules | None
    leads_to: str = ""
    """The site whose robots.txt a redirect names in the place of this one."""


class OfDomain(NamedTuple):
    """A domain that the operator of a crawl blocked, with all hosts below it."""

    domain: str


OptOut: TypeAlias = OfPage | OfSite | OfDomain


def of_site(purpose: str, site: str, date: str, status: int, location: str, body: bytes, crawler: str) -> OfSite | None:
    """Return the site file in an answer; None if the answer says nothing about opt-outs.

    ``body``: decoded. ``crawler``: the product token of the crawler that requested it.
    """
    if status in _REDIRECTS:
        target = BaseUrl(f"{site}{_ROBOTS_PATH}").resolve(location)
        if target and target.endswith(_ROBOTS_PATH) and (other := site_of(target)) != site:
            return OfSite(site, date, None, other)
        return None
    if not 200 <= status < 300:
        return None
    if purpose == ROBOTS_TXT:
        of_robots = signals_of(body, crawler)
        return OfSite(site, date, of_robots) if of_robots else None
    of_tdm = TdmRules(body)
    return OfSite(site, date, of_tdm) if purpose == TDMREP and of_tdm.size else None


class Heard:
    """The opt-outs in some archives."""

    def __init__(self, heard: Iterable[OptOut]) -> None:
        self._blocked: set[str] = set()
        self._of_sites: defaultdict[str, list[OfSite]] = defaultdict(list)
        self._of_pages: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        """By document key of the URL: date and signals."""
        leads_to: defaultdict[str, set[str]] = defaultdict(set)
        for one in heard:
            if isinstance(one, OfDomain):
                self._blocked.add(one.domain)
            elif isinstance(one, OfPage):
                self._of_pages[normalise_url(one.url)].append((one.date, one.signals))
            elif one.leads_to:
                leads_to[one.leads_to].add(one.site)
            else:
                self._of_sites[one.site].append(one)
        for target, sites in leads_to.items():
            for site in sites - {target}:
                self._of_sites[site] += self._of_sites.get(target, [])

    def __bool__(self) -> bool:
        return bool(self._of_sites or self._of_pages or self._blocked)

    def said(self, key: str, url: str, date: str) -> list[Said]:
        """Return the signals that count for a page of this date, whose key may be no URL; without a date all count."""
        date = date[:_TO_THE_SECOND]
        found = [_BLOCKED] if is_below(url, self._blocked) else []
        names = dict.fromkeys((key, key if url == key else normalise_url(url)))
        for heard, signals in chain.from_iterable(self._of_pages.get(name, ()) for name in names):
            if heard[:_TO_THE_SECOND] >= date:
                found += from_text(signals)
        for one in self._of_sites.get(site_of(url), ()):
            if one.date[:_TO_THE_SECOND] >= date and one.rules is not None:
                found += one.rules.of(url)
        return list(dict.fromkeys(found))
