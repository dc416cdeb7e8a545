"""The texts of pages: their blocks, and from these their clean text and their HTML.

A page's quality is the chance that a paragraph explains something; the others tell, or are poor. So pages of all
qualities share all words and all sentences, in different proportions.

A language has a file of patterns: explaining, plain and poor sentences, titles from explaining to selling ones, and
phrases before a link. A line of ``subjects.txt`` has a subject's language, things, processes and people. Names in
braces are drawn separately at each place; ``topic`` and ``theme`` are the page's own thing and process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

_PLAIN_SHARE, _LEAST_SHARE = 0.35, 0.04
"""Weight of plain paragraphs beside the others, and the least weight of these: no page is of one style by rule."""


class Language(NamedTuple):
    """Patterns of sentences."""

    explaining: Sequence[str]
    plain: Sequence[str]
    poor: Sequence[str]
    titles: Sequence[str]  # from those that promise an explanation to those that sell
    read_on: Sequence[str]


class Subject(NamedTuple):
    """A field of interest of one language."""

    language: str
    words: Mapping[str, Sequence[str]]  # words by their name in patterns


def _read(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


LANGUAGES: Final = {
    code: Language(*(part.splitlines() for part in _read(f"{code}.txt").split("\n\n"))) for code in ("en", "de")
}
_ANY_SUBJECT: Final = {
    "measure": "temperature, pressure, weight, length, depth, speed, humidity, angle, thickness, cost, volume",
    "adj": "small, large, modern, traditional, simple, heavy, light, reliable, common, rare, steady, narrow, plain",
    "city": "Norwick, Easton Bay, Harrowgate, Milford, Port Allen, Kingsbridge, Stonehaven, Westmere, Brackley",
    "name": "Anna Berg, Ben Abbot, Carla Dorn, David Gale, Elena Sato, Frank Lomax, Grace Okafor, Henry Pryce",
    "month": "January, February, March, April, May, June, July, August, September, October, November, December",
    "n": ", ".join(map(str, range(2, 60))),
    "year": ", ".join(map(str, range(1900, 2022))),
}


def _subject(line: str) -> Subject:
    language, things, processes, people = (part.strip() for part in line.split("|"))
    words = {**_ANY_SUBJECT, "thing": things, "process": processes, "people": people}
    return Subject(language, {name: text.split(", ") for name, text in words.items()})


SUBJECTS: Final = tuple(map(_subject, _read("subjects.txt").splitlines()))


class Sentences(dict[str, str]):
    """Fills patterns; a name that is not given is drawn separately at each place."""

    def __init__(self, random: Random, subject: int, **given: str) -> None:
        super().__init__(given)
        self._random = random
        self._words = SUBJECTS[subject].words

    def __missing__(self, name: str) -> str:
        words = self._words[name]
        return words[int(self._random.random() * len(words))]

    def fill(self, pattern: str) -> str:
        """Return one sentence, with a capital at its start."""
        sentence = pattern.format_map(self)
        return sentence[0].upper() + sentence[1:]


@dataclass(slots=True)
class Page:
    """One page, before it has links."""

    number: int
    site: int
    url: str
    title: str
    topic: str  # the thing it is about
    theme: str  # the process it is about
    quality: float
    length: int  # paragraphs, besides a list of links
    text_of: int  # the page whose text it shows: its own number unless it is a copy
    article: bool = False
    altered: bool = False  # whether a copy differs in a paragraph


class Link(NamedTuple):
    """A link of a page."""

    target: int | None  # number of the page it leads to; None if that is not in the web
    url: str
    anchor: str


class PageLinks(NamedTuple):
    """The links of a page by the place where they stand; no target occurs twice."""

    header: Sequence[Link]
    text: Sequence[Link]
    listing: Sequence[Link]
    aside: Sequence[Link]
    footer: Sequence[Link]

    def in_order(self) -> Iterator[tuple[Link, bool]]:
        """Yield all links in page order, each with whether it stands in the header or footer."""
        return ((link, part is self.header or part is self.footer) for part in self for link in part)


class Section(NamedTuple):
    """A part of a site under one path: its index pages, first to last, and the pages that they list."""

    indexes: list[int]
    pages: list[int]


@dataclass(slots=True)
class Site:
    """A host, with its pages by number."""

    number: int
    base: str  # scheme and host: ``https://norwick-hive.example``
    name: str
    subject: int
    language: str
    level: float
    size: int
    home: int = -1
    legal: list[int] = field(default_factory=list)  # what all its pages link to at their end
    calendar: list[int] = field(default_factory=list)  # months, newest first: a trap for crawlers
    sections: list[Section] = field(default_factory=list)


class Block(NamedTuple):
    """A heading, a paragraph or an item of a list, with at most one link inside."""

    tag: str
    text: str
    link: Link | None = None
    after: str = ""

    def plain(self) -> str:
        """Return the block as it is read; list items are marked as trafilatura marks them."""
        return ("- " if self.tag == "li" else "") + self.text + (self.link.anchor if self.link else "") + self.after

    def html(self, base: str) -> str:
        """Return the block as HTML of a page of the site at ``base``."""
        link = anchor(self.link, base) if self.link else ""
        return f"<{self.tag}>{escape(self.text)}{link}{escape(self.after)}</{self.tag}>"


class Writer:
    """Writes the main part of one page."""

    def __init__(self, random: Random, page: Page, subject: int, site: str) -> None:
        self._random = random
        self._page = page
        self._sentences = Sentences(random, subject, topic=page.topic, theme=page.theme, site=site)
        self._language = LANGUAGES[SUBJECTS[subject].language]
        self._weights = (page.quality + _LEAST_SHARE, _PLAIN_SHARE, 1 - page.quality + _LEAST_SHARE)

    def blocks(self, text: Sequence[Link] = (), listing: Iterable[Link] = ()) -> list[Block]:
        """Return the page's blocks: its title, paragraphs, of which some end with a link, and a list of links."""
        links = dict(zip(sorted(self._random.sample(range(self._page.length), len(text))), text, strict=True))
        blocks = [self.paragraph(links.get(place)) for place in range(self._page.length)]
        blocks += [Block("li", "", link, ". " + self._sentence()) for link in listing]
        return [Block("h1", self._page.title), *blocks] if blocks else []

    def paragraph(self, link: Link | None = None) -> Block:
        """Return a paragraph, which ends with the link if there is one."""
        text = " ".join([self._sentence() for _ in range(self._random.randint(1, 5 if self._page.length > 1 else 1))])
        if link is None:
            return Block("p", text)
        before, after = self._language.read_on[0].split("{link}")
        return Block("p", f"{text} {before}", link, after)

    def _sentence(self) -> str:
        """Return a sentence of some style, by the page's quality."""
        styles = (self._language.explaining, self._language.plain, self._language.poor)
        patterns = self._random.choices(styles, self._weights)[0]
        return self._sentences.fill(patterns[int(self._random.random() * len(patterns))])


def clean_text(blocks: Iterable[Block]) -> str:
    """Return the text of blocks, one line each."""
    return "\n".join(block.plain() for block in blocks)


_HTML: Final = Path(__file__).with_name("page.html").read_text(encoding="utf-8")


def page_html(page: Page, site: Site, blocks: Sequence[Block], links: PageLinks) -> str:
    """Return the whole page; its links stand in the order of ``links.in_order()``."""
    main = [block.html(site.base) for block in blocks if block.tag != "li"]
    main.append(_list([block.html(site.base) for block in blocks if block.tag == "li"]))
    parts = {"header": links.header, "aside": links.aside, "footer": links.footer}
    return _HTML.format(
        language=site.language,
        title=escape(page.title),
        site=escape(site.name),
        main="\n".join(main) if blocks else '<img src="/picture.jpg" alt="">',
        **{name: _list([f"<li>{anchor(link, site.base)}</li>" for link in part]) for name, part in parts.items()},
    )


def anchor(link: Link, base: str) -> str:
    """Return the link as HTML, relative within its site as most links on the web are."""
    url = link.url[len(base) :] if link.url.startswith(base + "/") else link.url
    return f'<a href="{escape(url)}">{escape(link.anchor)}</a>'


def _list(items: Sequence[str]) -> str:
    return "\n".join(["<ul>", *items, "</ul>"]) if items else ""
