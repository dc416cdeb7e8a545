"""Opt-outs in an export: pages that may not be trained on, by what they said themselves, and what was heard later.

What a page and its site said until it was fetched stands in its metadata, and in the index. What a site said later, for
which pages of its were fetched already, stands in later records of the same archives: a robots.txt or tdmrep.json,
which covers paths of its site, or a page that says so when it is fetched again. Each counts for pages no younger.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from crawl4llm.base.errors import PageError
from crawl4llm.base.reasons import OPT_OUT
from crawl4llm.base.urls import normalise_url, site_of
from crawl4llm.live.robots_rules import Rules, parse
from crawl4llm.optouts.decision import decide
from crawl4llm.optouts.head_fields import said_in_head
from crawl4llm.optouts.html_meta import said_in_html
from crawl4llm.optouts.said import Said, from_text
from crawl4llm.optouts.table import ROBOTS_TXT, TDMREP, Action
from crawl4llm.optouts.tdmrep import TdmRules
from crawl4llm.tools.export.rows import Row
from crawl4llm.warc.payload import decoded, entity
from crawl4llm.warc.reader import StoredRecord
from crawl4llm.warc.records import field_name

LARGEST_FILE: Final = 1 << 24
"""Bytes of a site's file, decoded; a crawl keeps less."""
_REDIRECTS: Final = {301, 302, 303, 307, 308}
_LOCATION: Final = field_name("Location")
_TO_THE_SECOND: Final = len("2026-01-31T12:00:00")


class Heard(NamedTuple):
    """What an archive holds of opt-outs that may be later than a page: a file of a site, or a page's own signals."""

    url: str
    date: str
    signals: str = ""
    """Of a page, as :func:`crawl4llm.optouts.said.as_text` has them."""
    purpose: str = ""
    """``robots.txt`` or ``tdmrep.json``."""
    site: str = ""
    record: StoredRecord | None = None
    """The file."""
    crawler: str = ""
    """The name by which signals are addressed to the crawl that asked for it."""


def reason_of(said: Iterable[Said]) -> str | None:
    """Return the reason for which a page is left out, with the signal that decides; None where it is not."""
    decides = decide(said, fetch_opted_out=True).forbidden.get(Action.EXPORT)  # that it was fetched is no matter here
    return None if decides is None else f"{OPT_OUT}/{decides.signal}"


def said_by(stored: StoredRecord, html: bytes | None) -> list[Said]:
    """Return the signals in a page of others' archives, which tell none: in its heads, for crawlers of any name."""
    if stored.http is None:
        return said_in_html(html or b"", "")
    lines = stored.data[stored.record.block_at : stored.http.body_at].splitlines()[1:]
    fields = [(name.strip(), value.strip()) for name, colon, value in (line.partition(b":") for line in lines) if colon]
    return said_in_head(fields, "") + said_in_html(html or b"", "")


class Later:
    """What all sources of an export have heard."""

    def __init__(self, heard: Iterable[Heard]) -> None:
        self._of_sites: defaultdict[str, list[tuple[str, Rules | TdmRules]]] = defaultdict(list)
        """By site: date and rules."""
        self._of_pages: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        """By document key: date and reason."""
        leads_to: defaultdict[str, set[str]] = defaultdict(set)
        for one in heard:
            http = None if one.record is None else one.record.http
            if one.record is None:
                if reason := reason_of(from_text(one.signals)):
                    self._of_pages[normalise_url(one.url)].append((one.date, reason))
            elif http is not None and http.status in _REDIRECTS:
                target = http.fields.text(_LOCATION)
                if target.endswith("/robots.txt") and target.startswith(("http://", "https://")):
                    leads_to[site_of(target)].add(one.site)
            elif http is not None and 200 <= http.status < 300 and (rules := _rules(one)):
                self._of_sites[one.site].append((one.date, rules))
        for target, sites in leads_to.items():
            for site in sites - {target}:
                self._of_sites[site] += self._of_sites.get(target, [])

    def judged(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield rows, with a reason for those that may not be trained on. Of a row without a date all counts."""
        if not self._of_sites and not self._of_pages:
            yield from rows
            return
        for row in rows:
            yield row if row.reason is not None else row._replace(reason=self._reason(row))

    def _reason(self, row: Row) -> str | None:
        date = (row.date or "")[:_TO_THE_SECOND]
        for heard, reason in self._of_pages.get(row.id, ()):
            if heard[:_TO_THE_SECOND] >= date:
                return reason
        scheme, _, rest = row.url.partition("://")
        for heard, rules in self._of_sites.get(f"{scheme}://{rest.partition('/')[0]}", ()):
            said = rules.said(row.url) if isinstance(rules, Rules) else rules.of(row.url)
            if heard[:_TO_THE_SECOND] >= date and (found := reason_of(said)):
                return found
        return None


def _rules(one: Heard) -> Rules | TdmRules | None:
    """Return what a file of a site says; None where that is nothing, or it cannot be read."""
    assert one.record is not None
    record, http, data, _ = one.record
    assert http is not None
    try:
        body = decoded(entity(data, record, http), http.fields, LARGEST_FILE)
    except (ValueError, PageError):
        return None
    if one.purpose == ROBOTS_TXT:
        rules = parse(body, one.crawler)
        return rules if rules.has_signals else None
    of_tdm = TdmRules(body if one.purpose == TDMREP else b"")
    return of_tdm if of_tdm.size else None
