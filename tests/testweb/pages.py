"""The pages of a web, by host and path: of the real web's sample, of the demo web, or a few that are given."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urljoin, urlsplit

from crawl4llm.base.urls import lookup_form
from simulate import WarcCorpus, index_folder
from simulate.demo.text import page_html
from simulate.demo.web import Web

_HREF: Final = re.compile(rb"""(\bhref\s*=\s*["'])([^"'#][^"']*)(["'])""", re.IGNORECASE)


class Pages(Protocol):
    """What a web shows."""

    @property
    def homes(self) -> Mapping[str, str]:
        """The path to begin at, by host, for all hosts; empty where no crawl begins."""

    def find(self, host: str, path: str) -> bytes | str | None:
        """Return the HTML at a path with its query, in UTF-8; a path, of a redirect; None where there is nothing."""


class FewPages:
    """Pages that are given by host and path."""

    def __init__(self, pages: Mapping[str, Mapping[str, bytes]]) -> None:
        self._pages = pages
        self.homes = {host: next(iter(of_host), "/") for host, of_host in pages.items()}

    def find(self, host: str, path: str) -> bytes | None:
        return self._pages.get(host, {}).get(path)


class DemoPages:
    """The pages that ``build_demo`` would write, made when they are asked for; no file is needed."""

    def __init__(self, pages: int, hosts: int, seed: int) -> None:
        self._web = Web(pages, hosts, seed)
        self._numbers = {place_of(page.url): page.number for page in self._web.pages}
        self.homes = _homes(self._numbers)

    def find(self, host: str, path: str) -> bytes | None:
        number = self._numbers.get((host, path))
        if number is None:
            return None
        web, page = self._web, self._web.pages[number]
        return page_html(page, web.sites[page.site], web.blocks(page), web.links[number]).encode()


class RealPages:
    """The pages of a collection of WARC files; its index is made once, in the project's ``.scrapy``.

    As on the sites themselves, ``/folder`` leads to ``/folder/`` where that is a page, and the other way round.
    """

    def __init__(self, folder: Path, most_hosts: int | None = None) -> None:
        self._corpus = WarcCorpus(folder, index_folder(folder))
        keys = {place_of(key): key for key in self._corpus.keys()}
        kept = set(list(dict.fromkeys(host for host, _ in keys))[:most_hosts])
        self._keys = {place: key for place, key in keys.items() if place[0] in kept}
        self._forms = {lookup_form(f"http://{host}{path}"): path for host, path in self._keys}
        self.homes = _homes(self._keys)

    def find(self, host: str, path: str) -> bytes | str | None:
        key = self._keys.get((host, path))
        return self._corpus.html(key) if key else self._forms.get(lookup_form(f"http://{host}{path}"))

    @property
    def places(self) -> Iterable[tuple[str, str]]:
        """Host and path of each page."""
        return self._keys.keys()

    def leads(self, host: str, path: str) -> bool:
        """Return whether there is something at a path."""
        return (host, path) in self._keys or lookup_form(f"http://{host}{path}") in self._forms


class ClosedPages:
    """The pages of a web without their links to what it does not have, so that nearly each request finds a page.

    All are read at once, as servers that are measured had better only send them: those of the real web's sample take
    half a gigabyte and 13 seconds.
    """

    def __init__(self, pages: RealPages) -> None:
        self.homes = pages.homes
        self._pages = pages
        self._closed = {place: self._without_dead_links(place) for place in pages.places}

    def find(self, host: str, path: str) -> bytes | str | None:
        return self._closed.get((host, path)) or self._pages.find(host, path)

    def _without_dead_links(self, place: tuple[str, str]) -> bytes:
        """Return a page whose links to nothing lead to its own top."""
        base = f"http://{place[0]}{place[1]}"

        def kept(link: re.Match[bytes]) -> bytes:
            try:
                host, path = place_of(urljoin(base, html.unescape(link[2].decode())))
            except ValueError:
                return link[1] + b"#" + link[3]
            return link[0] if self._pages.leads(host, path) else link[1] + b"#" + link[3]

        found = self._pages.find(*place)
        assert isinstance(found, bytes)
        return _HREF.sub(kept, found)


def place_of(url: str) -> tuple[str, str]:
    """Return the host of a URL, and its path with the query."""
    parts = urlsplit(url)
    return parts.hostname or "", f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"


def _homes(places: Iterable[Sequence[str]]) -> dict[str, str]:
    """Return the shortest path of each host."""
    homes: dict[str, str] = {}
    for host, path in places:
        homes[host] = min(homes.get(host, path), path, key=lambda one: (len(one), one))
    return homes
