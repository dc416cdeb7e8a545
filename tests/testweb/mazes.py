"""Mazes: endless webs of generated pages, put among the hosts of the demo web, to which a few honest pages link.

Each page is a function of its URL alone and links to 5 to 20 more, so that no crawl comes to an end of them. The kinds,
in turn: ``repeated``, one text under ever longer paths, as relative links gone wrong make them (``/a/b/a/b/``);
``random``, words drawn at random in path and text; ``markov``, sentences by a Markov chain of the best honest pages,
under addresses and anchors like theirs, which score as well as they do. Of five mazes of a kind three have a host of
their own, one is spread over the subdomains of one, and one lies below a path of an honest host.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from random import Random
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from simulate.demo.text import SUBJECTS, Writer, clean_text
from simulate.demo.web import Web, slug, stream
from tests.testweb.pages import DemoPages

REPEATED, RANDOM, MARKOV = KINDS = ("repeated", "random", "markov")
OWN, SPREAD, BELOW = "own host", "subdomains", "below a path"
_PLACES: Final = (OWN, OWN, SPREAD, BELOW, OWN)
_ENTRIES: Final = 4
"""Honest pages that link to each."""
_SUBDOMAINS: Final = 40
_FEWEST, _MOST = 5, 20
"""Links of a page into its maze."""
_DEEPEST: Final = 40
"""Segments of a path that are repeated: servers take no URLs of any length."""
_MODELS: Final = 400
"""Honest pages, the best, of which the Markov chain is made."""
_WORDS: Final = sorted(
    {word for _, words in SUBJECTS[:16] for some in words.values() for word in " ".join(some).split()}
)
_NAMES: Final = sorted({word.lower() for word in _WORDS if word.isascii() and word.isalpha()})


class MazePage(NamedTuple):
    """A page of a maze."""

    url: str
    title: str
    paragraphs: list[str]
    links: list[tuple[str, str]]
    """URL and anchor of each."""

    @property
    def text(self) -> str:
        """Its main text."""
        return "\n".join([self.title, *self.paragraphs])

    def html(self) -> str:
        """Return the whole page."""
        links = "".join(f'<li><a href="{escape(url)}">{escape(anchor)}</a></li>\n' for url, anchor in self.links)
        text = "\n".join(f"<p>{escape(paragraph)}</p>" for paragraph in self.paragraphs)
        title = escape(self.title)
        return (
            f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>\n<body>'
            f"<main><article><h1>{title}</h1>\n{text}\n</article></main>\n<aside><ul>\n{links}</ul></aside></body></html>\n"
        )


class Maze(NamedTuple):
    """One maze."""

    number: int
    kind: str
    place: str
    bases: tuple[str, ...]
    """What its URLs begin with, each with ``/`` at the end: one, or one for each subdomain."""
    honest: int | None
    """The site below whose path it lies."""


class Mazes:
    """``count`` mazes among the hosts of a demo web."""

    def __init__(self, web: Web, count: int = 50, seed: int = 0) -> None:
        self._seed = seed
        self._chain = _Chain(web)
        self.mazes = [self._plan(number, web) for number in range(count)]
        self._by_base = {base: maze for maze in self.mazes for base in maze.bases}
        self.entries: dict[str, list[tuple[str, str]]] = {}
        """By the URL of an honest page, URL and anchor of its links into mazes."""
        for maze in self.mazes:
            random = stream(seed, "entries", maze.number)
            pages = [page.url for page in web.pages if maze.honest in {None, page.site}]
            for url in random.sample(pages, min(_ENTRIES, len(pages))):
                target = random.choice(maze.bases)
                self.entries.setdefault(url, []).append((target, self._title(maze, random)))

    def maze_of(self, url: str) -> Maze | None:
        """Return the maze that a URL is in."""
        parts = url.split("/", 4)
        base = "/".join(parts[:3]) + "/"
        return self._by_base.get(base) or (self._by_base.get(f"{base}{parts[3]}/") if len(parts) > 4 else None)

    def page(self, url: str) -> MazePage | None:
        """Return the page at a URL; None where that is in no maze."""
        maze = self.maze_of(url)
        if maze is None:
            return None
        random = stream(self._seed, "maze", maze.number, url)
        title = self._title(maze, random)
        wanted, links = random.randint(_FEWEST, _MOST), dict[str, str]()
        while len(links) < wanted:
            links.update([self._link(maze, url, random)])
        return MazePage(url, title, list(self._paragraphs(maze, random)), list(links.items()))

    def _plan(self, number: int, web: Web) -> Maze:
        kind, place = KINDS[number % 3], _PLACES[number // 3 % len(_PLACES)]
        random = stream(self._seed, "place", number)
        host = f"{random.choice(_NAMES)}-{random.choice(_NAMES)}-{number}.example"
        if place is OWN:
            return Maze(number, kind, place, (f"https://{host}/",), None)
        if place is SPREAD:
            return Maze(number, kind, place, tuple(f"https://s{sub}.{host}/" for sub in range(_SUBDOMAINS)), None)
        site = random.choice([site for site in web.sites if site.size >= 20 and site.language == "en"])
        return Maze(number, kind, place, (f"{site.base}/{random.choice(_NAMES)}-{number}/",), site.number)

    def _title(self, maze: Maze, random: Random) -> str:
        if maze.kind == MARKOV:
            return self._chain.title(random)
        return " ".join(random.choice(_WORDS) for _ in range(3)).title() if maze.kind == RANDOM else "Archive"

    def _link(self, maze: Maze, url: str, random: Random) -> tuple[str, str]:
        base = random.choice(maze.bases)
        title = self._title(maze, random)
        if maze.kind == MARKOV:
            return f"{base}guide/{slug(title)}-{random.randrange(10**6)}.html", title
        if maze.kind == RANDOM:
            return f"{base}{'/'.join(random.choice(_NAMES) for _ in range(random.randint(2, 4)))}", title
        names = stream(self._seed, "names", maze.number).sample(_NAMES, 5)
        path = urlsplit(url).path.removeprefix(urlsplit(base).path).strip("/").split("/")
        more = random.choices(names, k=random.randint(1, 2))
        return f"{base}{'/'.join([*filter(None, path[-_DEEPEST:]), *more])}/", more[-1]

    def _paragraphs(self, maze: Maze, random: Random) -> Iterator[str]:
        if maze.kind == REPEATED:
            random = stream(self._seed, "text", maze.number)  # whatever the path
        for _ in range(random.randint(4, 9)):
            if maze.kind == RANDOM:
                yield " ".join(random.choice(_WORDS) for _ in range(random.randint(20, 60))) + "."
            else:
                yield " ".join(self._chain.sentence(random) for _ in range(random.randint(1, 5)))


class _Chain:
    """A Markov chain of words, each drawn by the two before it, made of the best articles of a demo web."""

    def __init__(self, web: Web) -> None:
        articles = [
            page for page in web.pages if page.article and web.sites[page.site].language == "en" and page.length
        ]
        articles.sort(key=lambda page: (-page.quality, page.number))
        self._titles = [page.title for page in articles[:_MODELS]]
        self._next: dict[tuple[str, str], list[str]] = {}
        for page in articles[:_MODELS]:
            for block in Writer(stream("chain", page.number), page, web.sites[page.site].subject, "").blocks():
                self._learn(clean_text([block]))

    def _learn(self, text: str) -> None:
        before = ("", "")
        for word in text.split():
            self._next.setdefault(before, []).append(word)
            before = ("", "") if word[-1] in ".!?" else (before[1], word)

    def title(self, random: Random) -> str:
        """Return a title of one of the pages, with a word of another."""
        words = random.choice(self._titles).split()
        return " ".join([*words, "and", random.choice(self._titles).split()[-1]])

    def sentence(self, random: Random) -> str:
        """Return a sentence of up to 40 words."""
        words: list[str] = []
        before = ("", "")
        while len(words) < 40 and (following := self._next.get(before)):
            words.append(random.choice(following))
            before = (before[1], words[-1])
            if words[-1][-1] in ".!?":
                break
        return " ".join(words)


class MazedPages:
    """The pages of a demo web with mazes, for :class:`tests.testweb.LocalWeb`."""

    def __init__(self, pages: int, hosts: int, seed: int, mazes: int) -> None:
        self._honest = DemoPages(pages, hosts, seed)
        self.mazes = Mazes(Web(pages, hosts, seed), mazes)
        self._schemes = {urlsplit(url).hostname or "": urlsplit(url).scheme for url in self.mazes.entries}

    @property
    def homes(self) -> Mapping[str, str]:
        """See :class:`tests.testweb.pages.Pages`; no crawl begins in a maze."""
        bases = [base for maze in self.mazes.mazes if maze.honest is None for base in maze.bases]
        return {**self._honest.homes, **{urlsplit(base).hostname or "": "" for base in bases}}

    def find(self, host: str, path: str) -> bytes | str | None:
        """Return the page of a maze, or an honest one with its links into mazes."""
        for scheme in ("https", "http"):
            if (page := self.mazes.page(f"{scheme}://{host}{path}")) is not None:
                return page.html().encode()
        found = self._honest.find(host, path)
        entries = self.mazes.entries.get(f"{self._schemes.get(host)}://{host}{path}")
        if entries and isinstance(found, bytes):
            links = "".join(f'<p><a href="{escape(url)}">{escape(anchor)}</a></p>' for url, anchor in entries)
            found = found.replace(b"</body>", f"{links}\n</body>".encode())
        return found
