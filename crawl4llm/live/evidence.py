"""Evidence: exchanges that gave no page, archived so that the crawl can be explained from its archive.

Answers for robots.txt and the like are archived whole, and so are answers whose bodies unpack to far too much. If a
server refused a document, or the head of its answer opts it out, only that head is archived. It shows who forbade to
keep the document, without the document.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from scrapy import Request
from scrapy.crawler import Crawler

from crawl4llm.base.errors import Why
from crawl4llm.base.pages import Capture
from crawl4llm.crawl.driven import Driven
from crawl4llm.live.capturing import captures_of
from crawl4llm.live.stopping import crawl_of
from crawl4llm.warc.page_records import digest

BOMB, REFUSAL, OPT_OUT_HEAD = "bomb", "refusal", "opt-out"
"""Purposes of exchanges, besides the names of files."""
REFUSALS: Final = {401, 402, 403, 451}
"""Statuses by which a server says that this crawler may not have a document, and not that there is none."""


def keep(crawler: Crawler, request: Request, purpose: str, site: str) -> str | None:
    """Archive the exchange that a request has led to; ``site``: what the answer is for.

    Returns the digest and date by which its record is found; None where there was no exchange: an answer of a cache.
    """
    captures = captures_of(request)
    if not captures:
        return None
    capture = captures[-1]
    if capture.truncated == "unspecified":  # Scrapy's, of a download that was stopped: we do that at a length only
        capture = replace(capture, truncated="length")
    if (crawl := crawl_of(crawler)) is not None:
        crawl.keep_exchange(capture, purpose, {"site": site})
    return source_of(capture)


def keep_head(
    crawl: Driven, request: Request, purpose: str, rule: str, about: Mapping[str, str] = MappingProxyType({})
) -> Why | None:
    """Archive the head of the answer to a request for a document that is not to be kept itself.

    Redirects that led there are left out. ``about``: more for the record's metadata. Returns the rule with the place of
    the record; None if nothing was sent.
    """
    captures = captures_of(request)
    if not captures:
        return None
    head = replace(captures[-1], body=b"", truncated="unspecified" if captures[-1].body else None)
    crawl.keep_exchange(head, purpose, {"said": rule, **about})
    return why(rule, source_of(head))


def keep_bomb(crawl: Driven, request: Request) -> Why | None:
    """Archive the answer to a request for a document as it was sent, because its body unpacks to far too much.

    Redirects that led there are left out. Returns the rule with the place of the record; None if nothing was sent.
    """
    captures = captures_of(request)
    if not captures:
        return None
    rule = f"{len(captures[-1].body):,} bytes that unpack to far more"
    crawl.keep_exchange(captures[-1], BOMB, {"said": rule})
    return why(rule, source_of(captures[-1]))


def source_of(capture: Capture) -> str:
    """Return payload digest and date of a capture's record, with a blank between: what its index has of it."""
    return f"{digest(capture.body)} {capture.date}"


def of_target(rule: str, request: Request) -> str:
    """Return a rule against a request, with its URL where redirects led to it: the document itself was allowed."""
    return f"{rule}, for {request.url}" if request.meta.get("redirect_times") else rule


def why(rule: str, source: str | None) -> Why:
    """Return a rule with the place of the record that says so."""
    if not source:
        return Why(rule)
    payload_digest, _, date = source.partition(" ")
    return Why(rule, payload_digest, date)
