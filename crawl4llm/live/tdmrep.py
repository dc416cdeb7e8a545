"""``/.well-known/tdmrep.json`` in live crawls: when a site is asked for it, and how its last answer applies to a URL.

A site (a scheme with an authority) is asked for it as soon as a page of the site is to be kept: that page waits for the
answer. A site without such a page, for example one with redirects and errors alone, is not asked. From then on the file
is asked for once a day, before a page is. While there is no answer, the last file holds, if there was one.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from scrapy.http import Response

from crawl4llm.base.domains import owner_of
from crawl4llm.base.errors import InputError
from crawl4llm.base.reasons import HELD
from crawl4llm.base.urls import redirect_target, site_of
from crawl4llm.live.capturing import REDIRECTS
from crawl4llm.live.places import Later
from crawl4llm.live.recent import Recent
from crawl4llm.live.robots_copies import FRESH
from crawl4llm.live.robots_store import RobotsStore
from crawl4llm.live.stopping import Withdrawn
from crawl4llm.live.verdicts import machine_error, verdict
from crawl4llm.optouts import NOTHING_RESERVED, PATH, Rules, Said, TdmRules

logger = logging.getLogger(__name__)

_Sent = tuple["Response", str | None]
"""A response, and its record in the archive."""

_MOST_REDIRECTS: Final = 5
_MOST: Final = 16 << 20
"""Bytes of memory for the answers of sites; the store has the others."""
_BYTES_A_SITE: Final = 600


class _Known(NamedTuple):
    """The last answer of a site."""

    fetched: float | None = None
    """When it was last asked for, in seconds since 1970; minus infinity if the record of that was lost."""
    rules: TdmRules = NOTHING_RESERVED
    source: str | None = None
    """The record of the archive that has them: digest and date."""


class TdmFiles:
    """The files of all sites. ``send`` sends a request like those for robots.txt, and raises the same errors."""

    def __init__(
        self, send: Callable[[str, str], Awaitable[_Sent]], store: RobotsStore | None, clock: Callable[[], float]
    ) -> None:
        self._send, self._store, self._now = send, store or RobotsStore(None), clock
        self._known: Recent[_Known] = Recent(_MOST, lambda _, known: _BYTES_A_SITE + known.rules.size)
        self._asking: dict[str, asyncio.Task[None]] = {}

    async def said(self, url: str, rules: Rules) -> tuple[list[Said], str | None]:
        """Return the rules of a site's file for a URL that may be requested, and its record in the archive. A file that
        is known and a day old is asked for first, if ``rules`` allow that. Raises errors that tell nothing about the
        file, and Later if the owner is to be left alone now."""
        known = self._of(site := site_of(url))
        if known.fetched is not None and not 0 <= self._now() - known.fetched < FRESH:
            await self._asked(site, rules)
        return self._said(site, url)

    def is_known(self, url: str) -> bool:
        """Return whether the site of a URL was asked for its file before."""
        return self._of(site_of(url)).fetched is not None

    async def said_of_page(self, url: str, rules: Rules) -> tuple[list[Said], str | None]:
        """Return the same for a page that has come and is to be kept. If the file was never asked for, it is asked for
        first. If the site does not answer, the page is kept. Raises errors that tell nothing about the file."""
        if self._of(site := site_of(url)).fetched is None:
            try:
                await self._asked(site, rules)
            except Later as error:
                if error.reason in {None, HELD}:
                    raise
        return self._said(site, url)

    def _said(self, site: str, url: str) -> tuple[list[Said], str | None]:
        known = self._of(site)
        return known.rules.of(url), known.source

    async def _asked(self, site: str, rules: Rules) -> None:
        """Request a site's file, once for all callers that wait for it."""
        if (task := self._asking.get(site)) is None:
            task = self._asking[site] = asyncio.ensure_future(self._ask(site, rules))
            task.add_done_callback(lambda done: (self._asking.pop(site), done.cancelled() or done.exception()))
        await asyncio.shield(task)

    async def _ask(self, site: str, rules: Rules) -> None:
        """Request a site's file. Raises errors that say nothing about the file, so it is requested again: Withdrawn,
        and Later if no request was sent. Raises Later too if its owner must be left alone after a failure, which is
        recorded."""
        try:
            body, source = await self._body(site, rules)
        except Exception as error:
            if isinstance(error, (Withdrawn, InputError)) or machine_error(error) is not None:
                raise
            if isinstance(error, Later) and error.reason in {None, HELD}:
                raise
            self._answered(site, None, None)
            if isinstance(error, Later):
                raise
            unforeseen = verdict(error) is None
            level = logging.ERROR if unforeseen else logging.DEBUG
            logger.log(level, "%s%s is unavailable: %r", site, PATH, error, exc_info=unforeseen)
        else:
            self._answered(site, body, source)

    async def _body(self, site: str, rules: Rules) -> tuple[bytes | None, str | None]:
        """Return the file and its record: no bytes if there is no file, None if the server gives no conclusive answer
        now. Redirects are followed within the owner."""
        url, source = site + PATH, None
        for _ in range(1 + _MOST_REDIRECTS):
            if site_of(url) == site and not rules.allows(url):
                return b"", source
            response, source = await self._send(url, site)
            if response.status not in REDIRECTS:
                if response.status == 429 or response.status >= 500 or "dataloss" in response.flags:
                    return None, source
                return response.body if response.status == 200 else b"", source
            target = redirect_target(url, response.headers.get("Location") or b"")
            if target is None or owner_of(target) != owner_of(site):
                return b"", source
            url = target
        return b"", source

    def _answered(self, site: str, body: bytes | None, source: str | None) -> None:
        """Record an answer; without a ``body`` the server gave no answer, and the earlier one holds."""
        now, before = self._now(), self._of(site)
        rules, source = (before.rules, before.source) if body is None else (_rules(body), source)
        stored = self._store.get(site + PATH) if body is None else None
        self._store.put(site + PATH, now, stored.body if stored else body, source or "")
        self._known.note(site, _Known(now, rules, source))

    def _of(self, site: str) -> _Known:
        if (known := self._known.recalled(site)) is None:
            stored, known = self._store.get(site + PATH), _Known()
            if stored is not None and stored.fetched is not None and not stored.source and self._store.proves:
                known = _Known(-math.inf)
            elif stored is not None:
                known = _Known(stored.fetched, _rules(stored.body), stored.source or None)
            self._known.note(site, known)
        return known


def _rules(body: bytes | None) -> TdmRules:
    return TdmRules(body) if body else NOTHING_RESERVED
