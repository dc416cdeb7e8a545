"""The sites and pages of the web: their URLs, subjects and quality.

A page's level is its site's, plus its section's, plus its own, in standard deviations above an average page. Its
quality follows from that, and is the share of its text that explains something.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from statistics import NormalDist
from typing import Final, NamedTuple

from simulate.demo.words import LANGUAGES, SUBJECTS, Sentences

SMALLEST_SITE, PAGES_LISTED = 4, 25  # pages of a site at least; entries of an index page
_SIZE_EXPONENT: Final = 0.9  # sizes fall as a power of the rank, as those of real hosts do
_SECTIONS: Final = (("guide", 0.6), ("blog", 0.0), ("news", -0.3), ("forum", -0.6), ("shop", -1.1))
"""Path and level of a site's sections."""
_SITE_SPREAD, _SECTION_SPREAD, _PAGE_SPREAD = 1.1, 0.25, 0.6
_CYCLE: Final = 25  # sites among which each level occurs once, so that the large sites are as good as the small ones
_LEVELS: Final = [_SITE_SPREAD * NormalDist().inv_cdf((i + 0.5) / _CYCLE) for i in range(_CYCLE)]
_POOR, _LIST_SHIFT, _CENTRE = -2.0, -1.0, 0.9
"""Level of calendars and legal pages; how much poorer than its contents a list is; level of quality one half."""
_CALENDAR_SHARE, _COPIES, _ALTERED = 0.4, 0.06, 0.3
"""Share of a site that its calendar is; of articles that are copies; of copies that differ in a paragraph."""
_LENGTHS: Final = {0: 1, 1: 5, 4: 13, 5: 15, 6: 17, 7: 17, 8: 16, 9: 16}
"""Paragraphs of an article, and how often, in percent: there are galleries without a word, and stubs."""


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


def stream(*name: object) -> Random:
    """Return random numbers that depend on the name alone, not on ``PYTHONHASHSEED`` or on other streams."""
    return Random("/".join(map(str, name)))


def slug(title: str) -> str:
    """Return a title as a part of a URL."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")


def plan_sites(seed: object, pages: int, count: int) -> list[Site]:
    """Return ``count`` sites with ``pages`` pages in all, the largest first; the pages are not planned yet."""
    random = stream(seed, "sites")
    weights = [(rank + 15) ** -_SIZE_EXPONENT for rank in range(count)]
    spare = (pages - SMALLEST_SITE * count) / math.fsum(weights)
    sizes = [SMALLEST_SITE + int(spare * weight) for weight in weights]
    sizes[0] += pages - sum(sizes)
    levels = [level for _ in range(0, count, _CYCLE) for level in random.sample(_LEVELS, _CYCLE)]
    english = [number for number, subject in enumerate(SUBJECTS) if subject.language == "en"]
    foreign = [number for number, subject in enumerate(SUBJECTS) if subject.language != "en"]
    names: set[str] = set()
    sites = []
    for number, (size, level) in enumerate(zip(sizes, levels, strict=False)):
        subject = foreign[number // 10 % len(foreign)] if number % 10 == 9 else random.choice(english)
        language, words = SUBJECTS[subject]
        name = f"{random.choice(words['city'])} {random.choice(words['thing'])}"
        label = slug(name) if name not in names else f"{slug(name)}-{number}"
        names.add(name)
        base = f"{random.choice(('https://', 'https://www.', 'http://'))}{label}.{random.choice(('example', 'test'))}"
        sites.append(Site(number, base, name.title(), subject, language, level, size))
    return sites


def plan_pages(seed: object, sites: list[Site]) -> list[Page]:
    """Return the pages of all sites, by number, and enter their numbers in the sites."""
    planner = _PagePlanner(stream(seed, "pages"))
    for site in sites:
        planner.plan(site)
    return planner.pages


class _PagePlanner:
    def __init__(self, random: Random) -> None:
        self.pages: list[Page] = []
        self._random = random
        self._originals: dict[str, list[Page]] = {language: [] for language in LANGUAGES}

    def plan(self, site: Site) -> None:
        site.home = self._add(site, "/", site.name, site.level + _LIST_SHIFT, 3)
        if site.size >= 8:
            site.legal.append(self._add(site, "/legal", "{site}", _POOR, 4))
        for month in range(int(site.size * _CALENDAR_SHARE) if site.number % _CYCLE == 4 else 0):
            date = f"{2022 - month // 12}/{12 - month % 12:02d}"
            site.calendar.append(self._add(site, f"/calendar/{date}/", f"Events {date}", _POOR, 1))
        size = site.size - (len(self.pages) - site.home)
        chosen = self._random.sample(_SECTIONS, min(1 + site.size // 12, 4))
        weights = [self._random.uniform(0.5, 1.5) / (place + 1) for place in range(len(chosen))]
        sizes = [max(2, int(size * weight / math.fsum(weights))) for weight in weights]
        sizes[0] = size - sum(sizes[1:])
        for (path, shift), section_size in zip(chosen, sizes, strict=True):
            level = self._random.gauss(site.level + shift, _SECTION_SPREAD)
            site.sections.append(self._section(site, f"/{path}/", level, section_size))

    def _section(self, site: Site, path: str, level: float, size: int) -> Section:
        section, originals = Section([], []), self._originals[site.language]
        for number in range(math.ceil(size / (PAGES_LISTED + 1))):
            where, title = (f"{path}?page={number + 1}", f"{path[1:-1]} {number + 1}") if number else (path, path[1:-1])
            section.indexes.append(
                self._add(site, where, title, self._random.gauss(level, _PAGE_SPREAD) + _LIST_SHIFT, 0)
            )
        for _ in range(size - len(section.indexes)):
            number = len(self.pages)
            if section.pages and self._random.random() < _COPIES:
                source, altered = self._random.choice(originals), self._random.random() < _ALTERED
                self.pages.append(replace(source, number=number, site=site.number, altered=altered))
            else:
                self._article(site, self._random.gauss(level, _PAGE_SPREAD))
                originals.append(self.pages[number])
            page = self.pages[number]
            page.url = f"{site.base}{path}{slug(page.title)}-{number}.html"
            section.pages.append(number)
        return section

    def _article(self, site: Site, level: float) -> None:
        titles = LANGUAGES[site.language].titles
        place = NormalDist(0, 1.5).cdf(self._random.gauss(-level, 1))  # the title hints at the level, often wrongly
        length = self._random.choices(list(_LENGTHS), list(_LENGTHS.values()))[0]
        self._add(site, "", titles[int(place * len(titles))], level, length, article=True)

    def _add(self, site: Site, path: str, title: str, level: float, length: int, article: bool = False) -> int:
        """Add a page, whose title may be a pattern, and return its number."""
        number, sentences = len(self.pages), Sentences(self._random, site.subject)
        topic, theme = sentences["thing"], sentences["process"]
        sentences.update(topic=topic, theme=theme, site=site.name)
        quality = 1 / (1 + math.exp(_CENTRE - level))
        title, url = sentences.fill(title), site.base + path
        self.pages.append(Page(number, site.number, url, title, topic, theme, quality, length, number, article))
        return number
