"""Corpora held in memory, for crawls of them by many policies: all pages, or those of some hosts alone."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from crawl4llm.base.bars import Progress
from crawl4llm.base.errors import InputError, MissingRecord, PageError
from crawl4llm.base.pages import Corpus, Link, PageRecord
from crawl4llm.base.urls import host_of

ORACLE_SHARE = 10
"""One page in this many belongs to the oracle set, those of the highest influence (Craw4LLM, section 3)."""
INLINKS = "inlinks"

W = TypeVar("W", bound="MemoryWeb")


class MemoryWeb:
    """A corpus like any other: the readable pages of one, or some of them, and their links to each other.

    ``text`` gives the text of a page by its key.
    """

    name = "memory"

    def __init__(
        self, name: str, pages: Mapping[str, PageRecord], inlinks: Mapping[str, list[Link]], text: Callable[[str], str]
    ) -> None:
        self.title = name
        self._pages = pages
        self._inlinks = inlinks
        self._text = text

    @classmethod
    def read(cls: type[W], name: str, corpus: Corpus, text: Callable[[str], str], *, bar: bool | None = False) -> W:
        """Return the readable pages of a corpus, and the links between them; texts are not read now.

        Links to redirects lead to their targets. If the corpus records no inlinks, they are the links of its pages.
        ``bar`` as for :class:`~crawl4llm.base.bars.Progress`.
        """
        pages: dict[str, PageRecord] = {}
        for key in Progress[str](sorted(corpus.keys()), f"reading {name}", unit=" pages", bar=bar):
            with suppress(PageError):
                page = corpus.page(key)
                pages[key] = PageRecord(key, page.url, outlinks=page.outlinks)
        targets: dict[str | None, str | None] = {None: None, **{key: key for key in pages}}
        for page in pages.values():
            links = page.outlinks or ()
            targets.update({link.key: _target(corpus, link.key) for link in links if link.key not in targets})
            page.outlinks = _within(pages, [link._replace(key=targets[link.key]) for link in links])
        try:
            corpus.require(INLINKS)
            inlinks = {key: _within(pages, corpus.inlinks(key)) for key in pages}
        except InputError:
            inlinks = _turned_round(pages)
        return cls(name, pages, inlinks, text)

    def of_hosts(self: W, name: str, wanted: Callable[[str], bool]) -> W:
        """Return the web that some hosts are by themselves."""
        held = {key for key, page in self._pages.items() if wanted(host_of(page.url))}
        pages = {
            key: PageRecord(key, page.url, outlinks=_within(held, page.outlinks or ()))
            for key, page in self._pages.items()
            if key in held
        }
        return type(self)(name, pages, {key: _within(held, self._inlinks[key]) for key in pages}, self._text)

    def page(self, key: str) -> PageRecord:
        """See :class:`~crawl4llm.base.pages.Corpus`, as for the other look-ups."""
        try:
            return self._pages[key]
        except KeyError:
            raise MissingRecord(f"{self.title} does not hold {key}") from None

    def fetch(self, key: str) -> PageRecord:
        """Return a page that is crawled."""
        return self.page(key)

    def text(self, key: str) -> str:
        return self._text(self.page(key).key)

    def html(self, key: str) -> bytes:
        raise MissingRecord(f"{self.title} holds no html")

    def outlinks(self, key: str) -> list[Link]:
        return self.page(key).outlinks or []

    def inlinks(self, key: str) -> list[Link]:
        return self._inlinks[key]

    def __contains__(self, key: object) -> bool:
        return key in self._pages

    def __len__(self) -> int:
        return len(self._pages)

    def is_key(self, text: str) -> bool:
        return text in self._pages

    def keys(self) -> Iterator[str]:
        return iter(self._pages)

    def check(self) -> None:
        """Do nothing: it is in memory, whole."""

    def sample(self, n: int, seed: int) -> list[str]:
        return random.Random(seed).sample(list(self._pages), min(n, len(self._pages)))

    def resolve(self, url: str) -> str | None:
        return None

    def require(self, *parts: str) -> None:
        """Do nothing: it has all that policies ask for."""

    def identity(self) -> str:
        return hashlib.sha256("\n".join(self._pages).encode()).hexdigest()

    def close(self) -> None:
        """Do nothing: no file is open."""

    def hosts(self) -> set[str]:
        """Return the hosts of all its pages."""
        return {host_of(page.url) for page in self._pages.values()}

    def reachable(self, seeds: Sequence[str]) -> set[str]:
        """Return the documents to which links lead from the seeds, and these."""
        reached, waiting = set(seeds), list(seeds)
        while waiting:
            for link in self.outlinks(waiting.pop()):
                if link.key is not None and link.key not in reached:
                    reached.add(link.key)
                    waiting.append(link.key)
        return reached

    def digest(self, scores: Mapping[str, float | None]) -> str:
        """Return the SHA-256, in hex, of all that decides a crawl: keys, URLs, scores, and links with their anchors."""
        whole = hashlib.sha256()
        for key, page in self._pages.items():
            whole.update(json.dumps([key, page.url, scores[key], page.outlinks]).encode() + b"\n")
        return whole.hexdigest()


class FetchedPages(MemoryWeb):
    """The part of a web that a policy which does not look ahead may read: pages that were fetched.

    It may also read what its ``corpus_parts`` name of all pages. Raises InputError for all else.
    """

    def __init__(self, web: MemoryWeb, corpus_parts: Collection[str]) -> None:
        super().__init__(web.title, web._pages, web._inlinks, web._text)
        self._parts = corpus_parts
        self._fetched: set[str] = set()

    def fetch(self, key: str) -> PageRecord:
        """Return a page that is crawled, and from now on may be read."""
        self._fetched.add(key)
        return self.page(key)

    def page(self, key: str) -> PageRecord:
        if key not in self._fetched:
            raise InputError(f"it reads the page {key} before its fetch; such a policy must set looks_ahead = True")
        return super().page(key)

    def inlinks(self, key: str) -> list[Link]:
        if INLINKS not in self._parts:
            raise InputError(f"it reads links to {key}; such a policy must name inlinks in its corpus_parts")
        return super().inlinks(key)


def half_of(host: str) -> int:
    """Return 0 for the half of the hosts on which policies are tuned, 1 for the half that they are reported on."""
    return hashlib.sha256(host.encode()).digest()[-1] % 2


def best_tenth(scores: Mapping[str, float | None]) -> set[str]:
    """Return the oracle set: a tenth of the pages, rounded down, with the highest scores; ties by key."""
    ordered = sorted(scores, key=lambda key: (-(scores[key] or 0.0), key))
    return set(ordered[: len(scores) // ORACLE_SHARE])


def hashed_seeds(web: MemoryWeb, count: int, number: int) -> list[str]:
    """Return the seeds of a set by its number: the keys with the least SHA-256 of ``NUMBER``, a line feed, the key."""

    def place(key: str) -> bytes:
        return hashlib.sha256(f"{number}\n{key}".encode("utf-8", "surrogatepass")).digest()

    return sorted(web.keys(), key=place)[:count]


def _target(corpus: Corpus, key: str | None) -> str | None:
    """Return the key of the page to which a key leads that may be one of a redirect; None if there is no such page."""
    with suppress(PageError):
        if key in corpus:  # the replay of a live crawl follows a redirect when it is fetched
            return corpus.page(str(key)).key
    return None


def _within(held: Collection[str], links: Sequence[Link]) -> list[Link]:
    return [link for link in links if link.key in held]


def _turned_round(pages: Mapping[str, PageRecord]) -> dict[str, list[Link]]:
    """Return the links to each page."""
    found: dict[str, list[Link]] = {key: [] for key in pages}
    for key, page in pages.items():
        for link in page.outlinks or ():
            found[str(link.key)].append(Link(page.url, key, link.anchor, link.boilerplate))
    return found
