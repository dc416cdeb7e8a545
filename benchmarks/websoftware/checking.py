"""Whether each text is where the table says: asks the servers for each URL once, and looks for words of the text."""

from __future__ import annotations

import html
import re
import socket
import ssl
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from benchmarks.websoftware.site import Fill, Site

_SECONDS = 60
_REDIRECTS = 4
_RUN = 5
"""Words that stand together in a text."""
_TAGS = re.compile(r"<script.*?</script>|<style.*?</style>|<[^>]+>", re.DOTALL)


class Browser:
    """Asks the servers of the web, which have the names of a table."""

    def __init__(self, authority: Path, addresses: Mapping[str, str]) -> None:
        self._context = ssl.create_default_context(cafile=str(authority))
        self._addresses = addresses

    def get(self, url: str) -> tuple[int, str, str]:
        """Return status, URL and HTML of what a URL leads to."""
        for _ in range(_REDIRECTS):
            status, location, body = self._ask(url)
            if status not in {301, 302, 303, 307, 308}:
                break
            url = urljoin(url, location)
        return status, url, body

    def _ask(self, url: str) -> tuple[int, str, str]:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = 443 if parts.scheme == "https" else 80
        plain = socket.create_connection((self._addresses[host], port), _SECONDS)
        if port == 443:
            connection: HTTPConnection = HTTPSConnection(host, context=self._context)
            connection.sock = self._context.wrap_socket(plain, server_hostname=host)
        else:
            connection = HTTPConnection(host)
            connection.sock = plain
        try:
            target = parts.path or "/"
            connection.request(
                "GET", f"{target}?{parts.query}" if parts.query else target, headers={"User-Agent": "check"}
            )
            answer = connection.getresponse()
            return answer.status, answer.getheader("Location", ""), answer.read().decode("utf-8", "replace")
        finally:
            connection.close()


def runs(fill: Fill) -> list[str]:
    """Return runs of words that a page with the text shows."""
    found: list[str] = []
    for block in fill.text.blocks:
        if block.kind != "code":
            found += re.findall(rf"(?:\b[A-Za-z]+ ){{{_RUN - 1}}}[A-Za-z]+\b", block.text)
    return sorted(found, key=len, reverse=True)[:8]


def shows(page: str, fill: Fill) -> bool:
    """Tell whether a page shows most of a text's runs; a text without any is taken to be there."""
    text = re.sub(r"[\W\d_]+", " ", html.unescape(_TAGS.sub(" ", page)))
    wanted = runs(fill)
    return not wanted or 2 * sum(run in text for run in wanted) >= len(wanted)


def faults(browser: Browser, site: Site, fills: Sequence[Fill]) -> Iterator[str]:
    """Yield the URLs of good texts that do not show them, each with what they show."""
    for fill in fills:
        if not fill.text.good:
            continue
        status, url, page = browser.get(site.url + fill.path)
        if status != 200:
            yield f"{site.url}{fill.path}: status {status} at {url}"
        elif not shows(page, fill):
            yield f"{site.url}{fill.path}: does not show {fill.text.id}, {runs(fill)[:1]}"
