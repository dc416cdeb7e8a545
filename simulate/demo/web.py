"""The web as a whole: its sites, their pages, and the links between these.

Within a site: menus, lists, neighbours, related and popular pages. Across sites: links in texts and of home pages.
Targets are chosen by popularity, whose distribution has a power-law tail, and by their likeness to the linking page's
quality. The paper measures this assortative mixing (Craw4LLM, section 4.2 and figure 5).
"""

from __future__ import annotations

import math
from bisect import bisect
from collections import defaultdict
from collections.abc import Sequence
from itertools import accumulate, pairwise
from random import Random
from typing import Final

from simulate.demo.sites import PAGES_LISTED, Link, Page, PageLinks, Site, plan_pages, plan_sites, slug, stream
from simulate.demo.text import Block, Writer

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
        self.pages = plan_pages(seed, self.sites)
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
