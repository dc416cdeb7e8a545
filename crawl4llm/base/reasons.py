"""Reasons: all words in stats and logs for why a document is dropped, fails, is redirected, or has no score."""

from __future__ import annotations

import re
from typing import Final

BAD_URL, SCHEME = "bad_url", "scheme"
CONNECTION, CUT_SHORT, DNS, REFUSED, TIMEOUT = "connection", "cut_short", "dns", "refused", "timeout"
HELD = "held"
CERTIFICATE, ROBOTS_UNKNOWN = "certificate", "robots_unknown"
CORRUPT_RECORD, DAMAGED, NO_HTML = "corrupt_record", "damaged", "no_html"
BOMB, ERROR, KILLED = "bomb", "error", "killed"
DUPLICATE, FRONTIER_FULL, HOST_FULL, OFF_SCOPE = "duplicate", "frontier_full", "host_full", "off_scope"
BLOCKLIST = "blocklist"
IGNORED, OPT_OUT, REFUSED_ADDRESS, ROBOTS = "ignored", "opt_out", "refused_address", "robots"
DENIED, KNOWN_PAGE, KNOWN_URL, LANGUAGE = "denied", "known_page", "known_url", "language"
NOINDEX = "noindex"
SITE_RULE, TRAP = "site_rule", "trap"
REDIRECT_LOOP, TOO_MANY_REDIRECTS, URL_TOO_LONG = "redirect_loop", "too_many_redirects", "url_too_long"
QUEUED, VISITED = "queued", "visited"
STOPPED: Final = "stopped"
"""Reason of a request, not of a document: it was broken off when the crawl stopped."""
NO_TEXT, NOT_HTML, NOT_TEXT, TOO_LARGE = "no_text", "not_html", "not_text", "too_large"

FAILED: Final = {
    "http_<status>": "the answer had this status; `http_404` also: the corpus lacks the document; `http_599` also: it "
    "had none from 100 to 599",
    CORRUPT_RECORD: "the record of the corpus is damaged",
    NO_HTML: "the corpus holds only its text",
    TIMEOUT: "no answer in DOWNLOAD_TIMEOUT, or no text and score in 30 seconds",
    KILLED: "the worker process died of it, also in the attempts after the first",
    ERROR: "an unanticipated error; errors.log has all of it",
    DNS: "live: the host has no address",
    REFUSED: "live: the host refused the connection",
    CONNECTION: "live: the connection failed, or broke off before the answer",
    HELD: "live: a redirect or retry would have had to wait too long for its owner, at each attempt",
    CERTIFICATE: "live: the host's certificate is not valid, or not for it",
    ROBOTS_UNKNOWN: "live: robots.txt could not be read (429, 5xx, no complete answer), so nothing was requested",
    REDIRECT_LOOP: "live: redirects led back to a URL that was requested on the way",
    TOO_MANY_REDIRECTS: "live: more than REDIRECT_MAX_TIMES redirects, or five to other owners, one after the other",
    CUT_SHORT: "live: the body is shorter than its head said",
    DAMAGED: "live: the body cannot be decoded",
    BOMB: "the body unpacks to more than 1 MiB and a hundred times what was sent",
    BAD_URL: "live: the URL has no host that can be asked, or a user name in it",
    SCHEME: "live: the URL is not of http or https",
}
"""Reasons of failed documents."""
DROPPED: Final[dict[str, str]] = {
    TOO_LARGE: "larger than DOWNLOAD_MAXSIZE",
    IGNORED: "a middleware or extension of Scrapy dropped the request",
    OPT_OUT: "its domain was purged or is blocked; live: an [opt-out](opt-outs.md) keeps it from being fetched or used",
    FRONTIER_FULL: "beyond FRONTIER_MAX_URLS",
    HOST_FULL: "beyond FRONTIER_MAX_URLS_PER_HOST",
    ROBOTS: "live: robots.txt forbids it",
    REFUSED_ADDRESS: "live: its host leads into a private network or to this machine, and NETWORK_ALLOWED does not",
    NOT_HTML: "live: the answer is not HTML",
    DUPLICATE: "live: a redirect led to a document visited before",
    URL_TOO_LONG: "live: a redirect led to another owner's URL of more characters than URLLENGTH_LIMIT",
    NOT_TEXT: "add-on: the response is not text",
}
"""Reasons of dropped documents; :mod:`crawl4llm.parts` adds those of parts."""
REDIRECTED: Final = {
    QUEUED: "live: a redirect led to another owner's document, which was queued",
    VISITED: "live: a redirect led to another owner's document, which had been visited before",
}
"""Documents that ended with a redirect to another owner, by what happened to its target."""
UNSCORED: Final = {
    NOT_HTML: "the response is not HTML",
    TIMEOUT: "no text and score in 30 seconds",
    KILLED: "the worker process died of it",
    ERROR: "an unanticipated error; the log has all of it",
}
"""Add-on: reasons of pages without an influence score."""

PURPOSES: Final = ("document", "redirect", "retry", "robots.txt", "tdmrep.json", "sitemap", "other")
"""The purposes of a live crawl's requests; the first three are for documents."""

TABLES: Final = {"failed": FAILED, "dropped": DROPPED, "redirected": REDIRECTED, "unscored": UNSCORED}
"""Tables by the first word of their stats keys."""


def is_reason(outcome: str, reason: str) -> bool:
    """Return whether a table of TABLES has the reason."""
    return reason in TABLES[outcome] or (outcome == "failed" and re.fullmatch(r"http_\d{3}", reason) is not None)
