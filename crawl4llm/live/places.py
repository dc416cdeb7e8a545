"""The places in which exchanges with owners wait for each other, and how a document ends that must be asked for later.

The header field Retry-After says how long a server wants to be left alone (RFC 9110, 10.2.3).
"""

from __future__ import annotations

import asyncio
import math
import time
from email.utils import mktime_tz, parsedate_tz
from typing import Final, NamedTuple

from scrapy.http import Response

from crawl4llm.frontier import Lease, Owners

TRY: Final = "crawl4llm_try"
"""In the meta of a try: the seconds in which it has to have a connection."""
LONGEST_TRY: Final = 5.0
"""Seconds for which its connection is waited for at most, look-up and TLS included."""
PATIENT: Final = "crawl4llm_patient"
"""In the meta of requests that a page may wait for which has come: they may wait for as long as any Crawl-delay is."""
_RETRY_STATUSES: Final = {429, 503}
"""Too Many Requests (RFC 6585, 4) and Service Unavailable (RFC 9110, 15.6.4): the field holds for the server then."""
_LONGEST_RETRY: Final = 86_400.0
"""Seconds; a server that asks for more gets its next request after a day."""
_LONGEST_FIELD: Final = 64
"""Bytes; a date has up to 33."""


class Later(Exception):
    """The document goes back to the frontier. Without a ``reason`` no request was sent; otherwise it counts as a failed
    attempt, the last one if ``final``. ``wait``: seconds in which its owner should get no request."""

    def __init__(self, message: str, reason: str | None = None, *, final: bool = False, wait: float = 0.0) -> None:
        super().__init__(message)
        self.reason, self.final, self.wait = reason, final, wait


class Place:
    """The place in which all exchanges with an owner wait for each other, while the owner is held."""

    __slots__ = ("ended", "lease", "send_at", "turn", "users")

    def __init__(self, ended: float) -> None:
        self.ended = ended
        """Monotonic time at which the last exchange ended; of those before this lease, at the latest."""
        self.lease: Lease | None = None
        """The lease that holds it; None: an exchange without a lease of the owner's documents."""
        self.users = 0
        """Exchanges that go on or wait."""
        self.turn = asyncio.Lock()
        self.send_at = -math.inf
        """Monotonic time from which the next request may be sent."""

    @property
    def attempts(self) -> int:
        """Number of leases of the document so far, including this one; 0 without a lease."""
        return 0 if self.lease is None else self.lease.entry.attempts


class Places(dict[str, Place]):
    """The places of all owners that are held, by owner."""

    def __init__(self, owners: Owners, since: float) -> None:
        """``since``: monotonic time at which this process began, or a delay was last made longer. Any exchange with an
        owner who is not kept ended then, at the latest."""
        super().__init__()
        self._owners, self.since = owners, since

    def taken(self, owner: str) -> Place:
        """Return the place of an owner, which is held from now on."""
        return self.setdefault(owner, Place(self.since))

    def wait(self, owner: str, seconds: float) -> None:
        """Let an owner that is held wait for some seconds from now."""
        if place := self.get(owner):
            place.send_at = max(place.send_at, time.monotonic() + seconds)

    def leave(self, owner: str, place: Place, *, users: int = 0) -> None:
        """Release an owner that is no longer held. ``users``: number of exchanges that have just left its place."""
        place.users -= users
        if place.lease is None and not place.users:
            del self[owner]
            self._owners.release(owner, place.send_at)


class Exchange(NamedTuple):
    """An exchange that goes on."""

    owner: str
    url: str
    place: Place
    began: float
    """Monotonic time."""


def retry_after(response: Response) -> float:
    """Return the seconds after which the server accepts another request, as it said; 0 if it said nothing valid."""
    return wait_in(response) if response.status in _RETRY_STATUSES else 0.0


def wait_in(response: Response) -> float:
    """Return the seconds of the Retry-After field, a day at most, for any status; 0 if it is missing or invalid."""
    given = response.headers.get("Retry-After")
    if given is None or len(given) > _LONGEST_FIELD:
        return 0.0
    text = given.decode("latin-1").strip()
    if text.isascii() and text.isdigit():
        return min(float(text), _LONGEST_RETRY)
    try:
        date = parsedate_tz(text)
        seconds = mktime_tz(date) - time.time() if date is not None else 0.0
    except (IndexError, OverflowError, TypeError, ValueError):  # no date of any calendar
        return 0.0
    return min(max(seconds, 0.0), _LONGEST_RETRY)
