"""Cached robots.txt files: the rules of each site, their age, and how long a failed request is remembered.

A site is a scheme with an authority (RFC 9309, 2.3). Parsed rules are kept in a cache of limited size, with an optional
store on disk behind it. All times are wall-clock seconds since 1970, because they outlast the process.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from crawl4llm.base.reasons import ROBOTS_UNKNOWN, is_reason
from crawl4llm.live.recent import Recent
from crawl4llm.live.robots_store import RobotsStore
from crawl4llm.optouts import ALLOW_ALL, LIMIT, Rules, parse

FRESH: Final = 23 * 3600.0
"""Seconds after which an answer is asked for again. RFC 9309, 2.4, has 24 hours; a request that is allowed may wait in
the downloader for some of the last one."""
HOLDS: Final = 30 * 24 * 3600.0
"""Seconds for which a file holds if no new answer is available (RFC 9309, 2.3.1.4)."""
WAITS: Final = (60.0, 600.0, 3600.0)
"""Seconds for which a failure is remembered: the first one, the second, all others until an answer comes; the default
of RETRY_WAITS."""
LONGEST_WAIT: Final = 24 * 3600.0
"""Seconds that a server may ask us to wait."""

_MOST: Final = 64 << 20
"""Bytes of the cache."""
_BYTES_KNOWN: Final = 800
"""Memory of an entry of the cache, besides its rules; a test measures it."""


@dataclass(slots=True)
class Known:
    """The cached robots.txt of a site."""

    rules: Rules | None = None
    """The rules of the last answer; None before the first. If no answer came in this process, they are of an answer
    whose record was lost: they allow nothing, but their delays hold."""
    fetched: float = -math.inf
    """When that came."""
    is_file: bool = False
    """True for a file, False for an answer that there is no file."""
    failures: int = 0
    """Requests that have failed since; of those in the time of one of RETRY_WAITS only the first counts."""
    counted: float = -math.inf
    """When the last one did that counts, in this process."""
    failed: float = 0.0
    """When the last one did."""
    wait: float = 0.0
    """Seconds from then on in which it is not asked for."""
    reason: str = ""
    """Why it failed."""
    source: str | None = None
    """The record of the archive that has the last answer: its WARC-Payload-Digest and WARC-Date, with a blank between;
    None if nothing is archived."""
    source_of_failure: str | None = None
    """The same of an answer that was a failure, in this process."""

    def rules_at(self, now: float) -> Rules | None:
        """Return the rules that hold; None while they are unknown."""
        age = now - self.fetched
        if 0 <= age < FRESH or (self.failures and self.is_file and 0 <= age < HOLDS):
            return self.rules
        return None

    def waits_until(self, now: float) -> float | None:
        """Return the time at which it may be asked for again after a failure; None if that is now."""
        until = self.failed + self.wait
        return until if self.failures and until > now else None

    def crawl_delay_at(self, now: float) -> float | None:
        """Return the known Crawl-delay in seconds, or None."""
        rules = self.rules_at(now) or (self.rules if self.fetched == -math.inf else None)
        return None if rules is None else rules.crawl_delay

    def must_ask(self, now: float) -> bool:
        """Return whether an answer is wanted, and may be asked for."""
        return not 0 <= now - self.fetched < FRESH and self.waits_until(now) is None


class Copies:
    """The cached robots.txt of all sites; those used last are in memory."""

    def __init__(
        self,
        crawler: str,
        store: RobotsStore | None = None,
        clock: Callable[[], float] = time.time,
        most: int = _MOST,
        waits: Sequence[float] = WAITS,
    ) -> None:
        """``crawler`` is the product token whose rules apply; without a store, copies that exceed the cache are
        forgotten."""
        self._crawler, self.store, self._waits = crawler, store or RobotsStore(None), waits
        self.now = clock
        self.known: Recent[Known] = Recent(most, _size)
        """The cache, by site."""
        self.listener: Callable[..., None] | None = None
        """Called for each file: ``listener(site, file, is_new=...)``; not ``is_new``: the store had it."""

    def of(self, site: str) -> Known:
        """Return the cached copy of a site. If the clock was set back, the wait after a failure starts over."""
        if (known := self.known.recalled(site)) is None:
            known = self._stored(site)
            self.known.note(site, known)
        if known.failed > self.now():
            known.failed = self.now()
            self._store_failure(site, known)
        return known

    def answered(self, site: str, body: bytes | None, source: str | None = None) -> Known:
        """Record the answer to a request for robots.txt: the file, or None if there is no file. ``source``: its record
        in the archive."""
        body = None if body is None else body[: LIMIT + 1]  # the last byte tells that there were more
        known = Known(self._rules(body), self.now(), body is not None, source=source)
        self.known.note(site, known)
        self.store.put(site, known.fetched, body, source or "")
        if self.listener is not None and body is not None:
            self.listener(site, body, is_new=True)
        return known

    def same(self, site: str, other: str) -> Known:
        """Record that the copy of another site holds for a site too, because its robots.txt redirects there."""
        known = replace(self.of(other))
        self.known.note(site, known)
        if (stored := self.store.get(other)) and stored.fetched is not None:
            self.store.put(site, stored.fetched, stored.body, stored.source)
            if known.failures:
                self._store_failure(site, known)
        return known

    def failed(self, site: str, reason: str, wait: float = 0.0, source: str | None = None) -> Known:
        """Note that a request has failed; ``wait`` are the seconds that the server asks us to wait, if it does;
        ``source``: the record of the answer, if there was one."""
        known = self.of(site)
        known.failed = self.now()
        # Who says how long is asked then, and has as much time before its documents fail as who does not.
        if not (known.failures and 0 <= known.failed - known.counted < self._wait(known.failures)):
            known.failures, known.counted = known.failures + 1, known.failed
        known.wait = min(wait, LONGEST_WAIT) or self._wait(known.failures)
        known.reason, known.source_of_failure = reason, source
        self._store_failure(site, known)
        return known

    def _wait(self, failures: int) -> float:
        return self._waits[min(failures, len(self._waits)) - 1]

    def _store_failure(self, site: str, known: Known) -> None:
        self.store.put_failure(site, known.failures, known.failed, known.wait, known.reason)

    def _rules(self, body: bytes | None) -> Rules:
        return ALLOW_ALL if body is None else parse(body, self._crawler)

    def _stored(self, site: str) -> Known:
        """Return the stored copy of a site; an empty one if the store has none, or an impossible one."""
        if (stored := self.store.get(site)) is None:
            return Known()
        known = Known(
            failures=stored.failures,
            failed=stored.failed,
            wait=min(stored.wait, LONGEST_WAIT),
            reason=stored.reason if is_reason("failed", stored.reason) else ROBOTS_UNKNOWN,
        )
        if stored.fetched is not None:
            known.rules = self._rules(stored.body)
            if stored.source or not self.store.proves:
                known.fetched, known.is_file = stored.fetched, stored.body is not None
                known.source = stored.source or None
                if self.listener is not None and stored.body is not None:
                    self.listener(site, stored.body, is_new=False)
        return known


def _size(site: str, known: Known) -> int:
    return _BYTES_KNOWN + len(site) + (0 if known.rules is None else known.rules.size)
