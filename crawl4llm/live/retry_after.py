"""The header field Retry-After: how long a server wants to be left alone (RFC 9110, 10.2.3)."""

from __future__ import annotations

import time
from email.utils import mktime_tz, parsedate_tz
from typing import Final

from scrapy.http import Response

_STATUSES: Final = {429, 503}
"""Too Many Requests (RFC 6585, 4) and Service Unavailable (RFC 9110, 15.6.4): the field holds for the server then."""
_LONGEST: Final = 86_400.0
"""Seconds; who asks for more is asked again after a day."""
_LONGEST_FIELD: Final = 64
"""Bytes; a date has up to 33."""


def retry_after(response: Response) -> float:
    """Return the seconds after which a server may be asked again, as it said; 0 where it said nothing that counts."""
    return wait_in(response) if response.status in _STATUSES else 0.0


def wait_in(response: Response) -> float:
    """Return the seconds that the field says, a day at most, whatever the status; 0 where it is missing or is none."""
    given = response.headers.get("Retry-After")
    if given is None or len(given) > _LONGEST_FIELD:
        return 0.0
    text = given.decode("latin-1").strip()
    if text.isascii() and text.isdigit():
        return min(float(text), _LONGEST)
    try:
        date = parsedate_tz(text)
        seconds = mktime_tz(date) - time.time() if date is not None else 0.0
    except (IndexError, OverflowError, TypeError, ValueError):  # no date of any calendar
        return 0.0
    return min(max(seconds, 0.0), _LONGEST)
