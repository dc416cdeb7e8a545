"""The pages of a web, by host and path: of the real web's sample, of the demo web, or a few that are given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from crawl4llm.base.urls import lookup_form
from simulate.demo.text import page_html
from simulate.demo.web import Web
from simulate.open import WarcCorpus, index_folder


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
        self._numbers = {_place(page.url): page.number for page in self._web.pages}
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
        keys = {_place(key): key for key in self._corpus.keys()}
        kept = set(list(dict.fromkeys(host for host, _ in keys))[:most_hosts])
        self._keys = {place: key for place, key in keys.items() if place[0] in kept}
        self._forms = {lookup_form(f"http://{host}{path}"): path for host, path in self._keys}
        self.homes = _homes(self._keys)

    def find(self, host: str, path: str) -> bytes | str | None:
        key = self._keys.get((host, path))
        return self._corpus.html(key) if key else self._forms.get(lookup_form(f"http://{host}{path}"))


def _place(url: str) -> tuple[str, str]:
    """Return the host of a URL, and its path with the query."""
    parts = urlsplit(url)
    return parts.hostname or "", f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"


def _homes(places: Iterable[Sequence[str]]) -> dict[str, str]:
    """Return the shortest path of each host."""
    homes: dict[str, str] = {}
    for host, path in places:
        homes[host] = min(homes.get(host, path), path, key=lambda one: (len(one), one))
    return homes
