"""Removes session ids from links: a server writes them there for clients that send no cookies, by PHP's
``session.use_trans_sid`` or URL rewriting of Java servlets (Jakarta Servlet 6.0, 7.1.3).

The answer also sets the id as a cookie. A parameter with the name and value of a cookie of the same answer is no part
of a page's address, because each answer sets another id.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from crawl4llm.base.html_tree import HtmlLink
    from crawl4llm.base.pages import HeaderFields

_COOKIE = re.compile(rb"\s*([\w.-]{1,64})=([\w,.-]{16,256})\s*(?:;|$)", re.ASCII)
"""A cookie's name and a value that can be a session id: PHP's has 22 characters or more, a servlet's usually 32."""
_MOST_COOKIES: Final = 20
_IN_PATH = re.compile(r";([a-z]{2,20})=([\w,.-]{16,256})(?=$|[/?;])", re.ASCII | re.IGNORECASE)


def without_sessions(links: Sequence[HtmlLink], url: str, headers: HeaderFields) -> Sequence[HtmlLink]:
    """Return the links of a page, one for each target; links to its own host lose the session that the answer begins.
    ``url``: the page's; ``headers``: of its answer."""
    sessions = _sessions(headers)
    if not sessions:
        return links
    host = urlsplit(url).netloc
    found: dict[str, HtmlLink] = {}
    for link in links:
        own = "=" in link.url and urlsplit(link.url).netloc == host
        target = _without(link.url, sessions) if own else link.url
        found.setdefault(target, link._replace(url=target))
    found.pop(url, None)
    return list(found.values())


def _sessions(headers: HeaderFields) -> Collection[tuple[str, str]]:
    """Return names, in lower case, and values of the cookies of an answer that can be session ids."""
    cookies = [value for name, value in headers if name.lower() == b"set-cookie"][:_MOST_COOKIES]
    found = (_COOKIE.match(cookie) for cookie in cookies)
    return {(one[1].decode().lower(), one[2].decode()) for one in found if one is not None}


def _without(url: str, sessions: Collection[tuple[str, str]]) -> str:
    path, mark, query = url.partition("?")
    path = _IN_PATH.sub(lambda one: "" if (one[1].lower(), one[2]) in sessions else one[0], path)
    kept = [part for part in query.split("&") if _pair(part) not in sessions]
    return f"{path}{mark}{'&'.join(kept)}" if kept and mark else path


def _pair(parameter: str) -> tuple[str, str]:
    name, _, value = parameter.partition("=")
    return name.lower(), value
