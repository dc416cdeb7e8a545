"""The add-on's entries in the ``meta`` of requests and responses."""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

from scrapy import Request
from scrapy.http import Response

from crawl4llm.base.urls import normalise_url
from crawl4llm.live import forget_captures

GIVEN: Final = "influence_score"
"""Key by which a spider scores a request itself."""
INFLUENCE: Final = "influence"
"""Key by which a callback finds the influence score of its page, None if it has none."""
RATED: Final = "crawl4llm_rated"
"""Key of the scorer's whole answer about a page, until the page is archived."""
ASKED: Final = "crawl4llm_asked"
"""Key of the URL under which parts were asked about a request first. Retries and redirects copy it."""
LEFT: Final = "crawl4llm_left"
"""Key of the figure that counts the links of a page, if a part wants them left alone."""
LEADING_NOWHERE: Final = "crawl4llm_leading_nowhere"
"""Key of the URLs to which a page says that its links are not to be followed."""
WORTH: Final = "crawl4llm_worth"
"""Key of the score by which links of a page are queued that does not count."""
KNOWN: Final = "crawl4llm_known"
"""Key of the reason by which a known page is dropped, whose response holds nothing but its links."""
_FOUND: Final = "crawl4llm_found"

FIRST: Final = math.inf
"""Score of a request that was found on no page: a start request."""


class Found(NamedTuple):
    """The origin of a request."""

    influence: float = FIRST
    """Influence score of the page or, without one, the score by which the page itself was requested."""
    page: str | None = None
    """Document key of the page."""
    depth: int = 0
    """Pages from a start request to this one."""


def found(request: Request) -> Found:
    """Return where a request was found; one that no callback made (an errback, an extension) is a start request."""
    return Found(*request.meta.get(_FOUND, ()))


def note_found(request: Request, response: Response | None) -> None:
    """Record the page on which a request was found, None for a start request.

    An earlier value is overwritten, because spiders copy the meta of a response to their requests.
    """
    origin = Found()
    if response is not None:
        assert response.request is not None
        influence = response.meta.get(WORTH, influence_of(response))
        if influence is None:
            influence = score_of(response.request)
        origin = Found(influence, normalise_url(response.url), found(response.request).depth + 1)
    request.meta[_FOUND] = tuple(origin)
    for key in (ASKED, LEFT, LEADING_NOWHERE, WORTH, KNOWN):
        request.meta.pop(key, None)
    forget_captures(request)


def score_of(request: Request) -> float:
    """Return the score by which a request is queued: its own, if the spider gave it one, else by where it was found."""
    given = as_score(request.meta.get(GIVEN))
    return found(request).influence if given is None else given


def as_score(value: Any) -> float | None:
    """Return a value as a number that can be compared with scores; None if it is no number."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return None if math.isnan(number) else number


def influence_of(response: Response) -> float | None:
    """Return the influence score of a page; None if it has none."""
    influence: float | None = response.meta.get(INFLUENCE)
    return influence


def is_page(request: Request, response: Response) -> bool:
    """Return whether a response has the content of a page: not an error, not the head alone."""
    return response.status == 200 and request.method != "HEAD"
