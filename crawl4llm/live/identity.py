"""The identity of a live crawl: a user agent that gives webmasters the crawler's name and its operator's contact."""

from __future__ import annotations

import re
from typing import Final

from scrapy.settings import BaseSettings

from crawl4llm.base.command_lines import docs
from crawl4llm.base.errors import InputError
from crawl4llm.base.urls import parse_url
from crawl4llm.optouts import product_token

_CONTACT = re.compile(r"https?://[^\s/()]+\.[^\s/().]|[^\s@()<>,;:]+@[^\s@()<>,;]+\.[^\s@()<>,;.]", re.IGNORECASE)
"""A URL or mail address, of a host with a dot in its name."""
_WHOLE_CONTACT = re.compile(
    r"https?://[^\s/()]+\.[^\s/().][^\s()]*|mailto:[^\s@()<>,;:]+@[^\s@()<>,;]+\.[^\s@()<>,;.]+", re.IGNORECASE
)
_NAME = re.compile(r"[a-z0-9_][a-z0-9_.-]*")
_ADVICE: Final = (
    f"set one, such as -s USER_AGENT='our-crawler (+https://example.org/crawler)'; see `{docs('fetching')}`"
)


def user_agent(settings: BaseSettings) -> str:
    """Return the user agent of the crawl's requests; empty if it has none."""
    headers = settings.getdict("DEFAULT_REQUEST_HEADERS")
    given = next((value for name, value in headers.items() if name.lower() == "user-agent" and value), None)
    return str(given or settings.get("USER_AGENT") or "")


def crawler_name(settings: BaseSettings) -> str:
    """Return the product token by which robots.txt files name the crawler (RFC 9309, 2.2.1), in lower case."""
    return product_token(str(settings.get("ROBOTSTXT_USER_AGENT") or "").strip() or user_agent(settings))


def contact_in(given: str) -> str:
    """Return the URL of a contact: ``http``, ``https`` or ``mailto``; an address is taken for the latter. Raises
    InputError for anything else."""
    text = given.strip()
    if "@" in text and "/" not in text and not text.lower().startswith("mailto:"):
        text = f"mailto:{text}"
    is_web = text.lower().startswith("http")
    if not (text.isascii() and _WHOLE_CONTACT.fullmatch(text)) or (is_web and parse_url(text) is None):
        raise InputError(
            f"--contact {given!r:.200} is no URL and no mail address; give a page on your crawler, such as "
            "https://example.org/crawler, or an address, such as crawler@example.org"
        )
    return text


def with_contact(agent: str, contact: str) -> str:
    """Return the user agent of the crawler that ``agent`` names, with the URL of a contact."""
    return f"{agent.split(maxsplit=1)[0]} (+{contact})"


def check_identity(settings: BaseSettings) -> None:
    """Raise InputError for a user agent without the crawler's name or its operator's contact."""
    given = user_agent(settings)
    if not settings.getpriority("USER_AGENT") and given == settings.get("USER_AGENT"):
        raise InputError(f"USER_AGENT is not set, and a live crawl must name its operator: {_ADVICE}")
    if not _CONTACT.search(given):
        raise InputError(f"USER_AGENT = {given!r} has no URL or mail address of the crawl's operator; {_ADVICE}")
    if not _NAME.fullmatch(crawler_name(settings)):
        given = str(settings.get("ROBOTSTXT_USER_AGENT") or given)
        raise InputError(f"user agent {given!r} does not begin with the crawler's name; {_ADVICE}")
