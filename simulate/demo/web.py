"""The web as a whole: its sites, their pages with subjects and quality, and the links between these.

A page's level is its site's, plus its section's, plus its own, in standard deviations above an average page. Its
quality follows from that, and is the share of its text that explains something.

Links within a site: menus, lists, neighbours, related and popular pages. Across sites: links in texts and of home
pages. Targets are chosen by popularity, whose distribution has a power-law tail, and by their likeness to the linking
page's quality. The paper measures this assortative mixing (Craw4LLM, section 4.2 and figure 5).
"""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from random import Random
from statistics import NormalDist
from typing import Final

from simulate.demo.text import LANGUAGES, SUBJECTS, Block, Link, Page, PageLinks, Section, Sentences, Site, Writer

# -- sites and pages --------------------------------------------------------------------------------------------------

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


class _PagePlanner:
    """Plans the pages of all sites, by number, and enters their numbers in the sites."""

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


# -- links ------------------------------------------------------------------------------------------------------------

_TAIL: Final = 1.15  # exponent of the popularity's Pareto distribution
_TILT: Final = 3.0  # how much popularity grows with quality. Lists and legal pages, poor and much linked, outweigh it
_COMPETING: Final = 12  # pages of about equal quality of which the popular ones get most of the links
_SPREAD: Final = 0.15  # standard deviation of a target's quality rank from its page's, as a share of all ranks
_TEXT_LINKS, _RELATED = (0, 0, 1, 1, 2, 3), (2, 7)  # numbers of links in a text, to choose from; least and most beside
_IN_TEXT, _BESIDE = (43, 16, 11, 30), (88, 0, 0, 12)
"""Percentage of them that lead into the page's site, its subject, the rest of its language, and nowhere."""


class Web:
    """A planned web: a function of the number of pages, the number of hosts and the seed."""

    def __init__(self, pages: int, hosts: int, seed: object) -> None:
        self.seed = seed
        self.sites = plan_sites(seed, pages, hosts)
        planner = _PagePlanner(stream(seed, "pages"))
        for site in self.sites:
            planner.plan(site)
        self.pages = planner.pages
        self.links = _LinkPlanner(seed, self.sites, self.pages).plan()  # by page number

    def blocks(self, page: Page) -> list[Block]:
        """Return the content of a page; a copy has its original's, perhaps without the last paragraph."""
        shown, links = self.pages[page.text_of] if page.text_of != page.number else page, self.links[page.number]
        blocks = self._writer(shown).blocks(links.text, links.listing)
        if page.altered and blocks and blocks[-1].link is None:
            blocks[-1] = self._writer(page).paragraph()
        return blocks

    def _writer(self, page: Page) -> Writer:
        site = self.sites[page.site]
        return Writer(stream(self.seed, "text", page.number), page, site.subject, site.name)


class _Shelf:
    """Pages in order of quality."""

    def __init__(self, pages: Sequence[Page], popularity: Sequence[float], random: Random) -> None:
        self._pages = sorted(pages, key=lambda page: (page.quality, page.number))
        self._qualities = [page.quality for page in self._pages]
        self._weights = [popularity[page.number] for page in self._pages]
        self._sums = list(accumulate(self._weights))
        self._random = random

    def near(self, quality: float) -> int:
        """Draw one of the pages of about this quality, by popularity."""
        place = bisect(self._qualities, quality) + round(self._random.gauss(0, _SPREAD) * len(self._pages))
        start = min(max(place - _COMPETING // 2, 0), max(len(self._pages) - _COMPETING, 0))
        near = slice(start, start + _COMPETING)
        return self._random.choices(self._pages[near], self._weights[near])[0].number

    def popular(self, count: int) -> list[int]:
        """Draw pages of any quality by popularity."""
        return [page.number for page in self._random.choices(self._pages, cum_weights=self._sums, k=count)]


class _LinkPlanner:
    def __init__(self, seed: object, sites: Sequence[Site], pages: Sequence[Page]) -> None:
        self._random = random = stream(seed, "links")
        self._sites, self._pages = sites, pages
        self._links = [Link(page.number, page.url, page.title) for page in pages]
        self._popularity = [random.paretovariate(_TAIL) * math.exp(_TILT * page.quality) for page in pages]
        scopes: defaultdict[tuple[str, object], list[Page]] = defaultdict(list)
        for page in pages:
            if page.article and page.text_of == page.number:
                for scope in self._scopes(page):
                    scopes[scope].append(page)
        self._shelves = {scope: _Shelf(members, self._popularity, random) for scope, members in scopes.items()}

    def plan(self) -> list[PageLinks]:
        """Return the links of each page, by its number."""
        listings = self._listings()
        menus = [
            self._to([site.home, *(section.indexes[0] for section in site.sections), *site.calendar[:1]])
            for site in self._sites
        ]
        planned: list[PageLinks] = []
        for page in self._pages:
            site, seen, parts = self._sites[page.site], {page.url}, []
            text, aside = [], []
            if page.article:
                text = self._draw(page, min(self._random.choice(_TEXT_LINKS), page.length), _IN_TEXT)
                aside = self._draw(page, self._random.randint(*_RELATED), _BESIDE)
                aside += self._to(self._shelves["site", page.site].popular(3))
            if page.text_of != page.number:
                text = list(planned[page.text_of].text)
            for links in (text, menus[page.site], listings[page.number], aside, self._to(site.legal)):
                new = {link.url: link for link in links if link.url not in seen}
                seen.update(new)
                parts.append(tuple(new.values()))
            planned.append(PageLinks(parts[1], parts[0], *parts[2:]))
        return planned

    def _scopes(self, page: Page) -> list[tuple[str, object]]:
        site = self._sites[page.site]
        return [("site", site.number), ("subject", site.subject), ("language", site.language)]

    def _to(self, numbers: Sequence[int]) -> list[Link]:
        return [self._links[number] for number in numbers]

    def _listings(self) -> defaultdict[int, list[Link]]:
        """Return the links of home pages, indexes and months, of which each leads to the next and the one before."""
        found: defaultdict[int, list[Link]] = defaultdict(list)
        homes = _Shelf([self._pages[site.home] for site in self._sites], self._popularity, self._random)
        for site in self._sites:
            partners = [homes.near(self._pages[site.home].quality) for _ in range(self._random.randint(1, 6))]
            popular = self._shelves["site", site.number].popular
            found[site.home] += self._to(popular(8) + partners)
            for month in site.calendar:
                found[month] += self._to(popular(self._random.randrange(4)))
            for section in site.sections:
                for place, index in enumerate(section.indexes):
                    found[index] += self._to(section.pages[place * PAGES_LISTED : (place + 1) * PAGES_LISTED])
            for series in (site.calendar, *(section.indexes for section in site.sections)):
                for newer, older in pairwise(series):
                    found[newer].append(self._links[older])
                    found[older].append(self._links[newer])
        return found

    def _draw(self, page: Page, count: int, shares: Sequence[int]) -> list[Link]:
        scopes = self._random.choices([*self._scopes(page), None], shares, k=count)
        return [self._links[self._shelves[s].near(page.quality)] if s else self._dead(page) for s in scopes]

    def _dead(self, page: Page) -> Link:
        """Return a link to a page that its site no longer has, or to a host that is not in the web."""
        topic, number = slug(page.topic), self._random.randrange(1000)
        base = self._sites[page.site].base if number % 3 == 0 else f"http://{topic}-pages.example"
        return Link(None, f"{base}/old/{topic}-{number}.html", page.topic)
