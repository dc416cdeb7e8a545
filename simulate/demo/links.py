"""The links of the web.

Within a site: menus, lists, pagers, related and popular pages. Across sites: links in texts, partners on home pages.
Pages are chosen by popularity, whose distribution has a power-law tail, and near the linking page's own quality: the
assortative mixing that the paper measures (Craw4LLM, section 4.2 and figure 5).
"""

from __future__ import annotations

import math
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate
from random import Random
from typing import Final

from simulate.demo import web
from simulate.demo.foreign import LANGUAGES
from simulate.demo.pages import PAGES_LISTED, slug
from simulate.demo.sites import FARM_SITE
from simulate.demo.web import OutLink, Page, PageLinks, Site

_TAIL: Final = 1.15
"""Exponent of the popularity's Pareto distribution."""
_APPEAL: Final = {web.THIN: 0.3, web.GALLERY: 0.3}
"""Popularity by kind, where it is not 1."""
_COMPETING: Final = 12
"""Pages of about equal quality of which the popular ones get most of the links."""
_TILT: Final = 4.0
"""How much popularity grows with quality. Lists and legal pages, poor and much linked, outweigh it."""
_SPREAD: Final = 0.2
"""How far from its own a page's links go in quality rank, as a share of all ranks (standard deviation)."""

_TEXT_LINKS: Final = {web.ARTICLE: (0, 1, 1, 2, 3, 4), web.PRODUCT: (0, 0, 0, 1), web.THREAD: (0, 0, 1, 2, 3)}
_DEAD_SHARE, _GONE_SHARE, _ACROSS_SHARE, _SAME_SUBJECT_SHARE = 0.2, 0.04, 0.4, 0.6
_SOCIAL_HOSTS: Final = ("photos.example", "videos.example", "social.test")


class Shelf:
    """Pages in order of quality, to be drawn near a given quality, and there by popularity."""

    def __init__(self, pages: Sequence[Page], popularity: Sequence[float]) -> None:
        ordered = sorted(pages, key=lambda page: (page.quality, page.number))
        self._boards = [ordered[start : start + _COMPETING] for start in range(0, len(ordered), _COMPETING)]
        self._weights = [list(accumulate(popularity[page.number] for page in board)) for board in self._boards]
        self._starts = [board[0].quality for board in self._boards]

    def draw(self, random: Random, quality: float) -> Page:
        """A page of about this quality."""
        board = bisect(self._starts, quality) - 1 + round(random.gauss(0, _SPREAD) * len(self._boards))
        board = min(max(board, 0), len(self._boards) - 1)
        return random.choices(self._boards[board], cum_weights=self._weights[board])[0]


class LinkPlanner:
    """Plans the links of all pages."""

    def __init__(self, random: Random, sites: Sequence[Site], pages: Sequence[Page]) -> None:
        self._random = random
        self._sites = sites
        self._pages = pages
        popularity = [
            random.paretovariate(_TAIL) * math.exp(_TILT * page.quality) * _APPEAL.get(page.kind, 1) for page in pages
        ]
        groups: defaultdict[tuple[str, int, str], list[Page]] = defaultdict(list)
        for page in pages:
            if page.kind in web.CONTENT_KINDS:
                groups["site", page.site, page.language].append(page)
                groups["subject", sites[page.site].subject, page.language].append(page)
                groups["all", 0, page.language].append(page)
        self._shelves = {key: Shelf(group, popularity) for key, group in groups.items()}
        self._members = groups
        self._popularity = {
            key: list(accumulate(popularity[page.number] for page in group)) for key, group in groups.items()
        }
        self._farms = [page for page in pages if page.kind == web.FARM]
        self._partners = self._plan_partners()
        self._headers = [self._header(site) for site in sites]
        self._footers = [self._footer(site) for site in sites]

    def plan(self) -> list[PageLinks]:
        """The links of each page, by its number."""
        planned: list[PageLinks] = []
        for page in self._pages:
            copied = page.text_of != page.number
            text = planned[page.text_of].text if copied else self._text(page)
            planned.append(self._page_links(page, text))
        return planned

    def _page_links(self, page: Page, text: tuple[OutLink, ...]) -> PageLinks:
        seen = {page.url, *(link.url for link in text)}

        def new(links: Iterable[OutLink]) -> tuple[OutLink, ...]:
            found = []
            for link in links:
                if link.url not in seen:
                    seen.add(link.url)
                    found.append(link)
            return tuple(found)

        return PageLinks(
            text=text,
            header=new(self._headers[page.site]),
            footer=new(self._footers[page.site]),
            listing=new(self._listing(page)),
            pager=new(self._pager(page)),
            related=new(self._related(page)),
            sidebar=new(self._sidebar(page)),
        )

    def _to(self, number: int, anchor: str = "") -> OutLink:
        page = self._pages[number]
        return OutLink(number, page.url, anchor or page.title)

    def _header(self, site: Site) -> list[OutLink]:
        home = LANGUAGES[site.language].home if site.language in LANGUAGES else "Home"
        links = [self._to(site.home, home)]
        links += [self._to(section.indexes[0], section.title) for section in site.sections]
        links += [self._to(month, "Calendar") for month in site.calendar[:1]]
        return [] if site.kind == FARM_SITE else links

    def _footer(self, site: Site) -> list[OutLink]:
        name = slug(site.name)
        social = [OutLink(None, f"https://{host}/{name}", host.split(".")[0].title()) for host in _SOCIAL_HOSTS]
        return [*(self._to(page) for page in site.legal), *social[: max(0, site.number % 6 - 2)]]

    def _plan_partners(self) -> list[list[int]]:
        """For each site the homes that its own home links to; each home is linked from some other site."""
        partners: list[list[int]] = [[] for _ in self._sites]
        by_level = sorted(self._sites, key=lambda site: (site.level, site.number))
        for place, site in enumerate(by_level):
            for _ in range(self._random.randint(1, 6)):
                other = place + round(self._random.gauss(0, _SPREAD) * len(by_level))
                partners[site.number].append(by_level[min(max(other, 0), len(by_level) - 1)].home)
            partners[self._random.randrange(len(self._sites))].append(site.home)
        return partners

    def _text(self, page: Page) -> tuple[OutLink, ...]:
        """Links in the page's text, no target twice."""
        links = {}
        for _ in range(self._random.choice(_TEXT_LINKS.get(page.kind, (0,)))):
            link = self._dead(page) if self._random.random() < _DEAD_SHARE else self._reference(page)
            if link.url != page.url:
                links[link.url] = link
        return tuple(links.values())

    def _reference(self, page: Page) -> OutLink:
        if self._random.random() >= _ACROSS_SHARE:
            return self._near(page, "site", page.site)
        if self._random.random() < _SAME_SUBJECT_SHARE:
            return self._near(page, "subject", self._sites[page.site].subject)
        return self._near(page, "all", 0)

    def _near(self, page: Page, scope: str, number: int) -> OutLink:
        return self._to(self._shelves[scope, number, page.language].draw(self._random, page.quality).number)

    def _dead(self, page: Page) -> OutLink:
        """A link to a page that is gone, or lies outside the web."""
        if self._random.random() < 0.5:
            return self._gone(page)
        host = f"{slug(page.topic)}-pages.example"  # no site of the web has a name like that
        return OutLink(None, f"http://{host}/{slug(page.theme)}/{self._random.randrange(100)}", page.theme.capitalize())

    def _gone(self, page: Page) -> OutLink:
        """A link to a page that its own site no longer has."""
        path = f"/old/{slug(page.topic)}-{self._random.randrange(1000)}.html"
        return OutLink(None, self._sites[page.site].base + path, page.topic.capitalize())

    def _listing(self, page: Page) -> list[OutLink]:
        site = self._sites[page.site]
        if page.kind == web.INDEX and page.section is not None:
            section = site.sections[page.section]
            start = section.indexes.index(page.number) * PAGES_LISTED
            members = section.pages[start : start + PAGES_LISTED]
            return [self._to(number) for number in members if self._pages[number].listed]
        if page.kind == web.HOME:
            return self._draw_popular(page, 8) + [
                self._to(home, self._sites[self._pages[home].site].name) for home in self._partners[site.number]
            ]
        if page.kind == web.CALENDAR:
            return self._draw_popular(page, self._random.randrange(4))
        if page.kind == web.FARM:
            own = [self._to(number) for number in self._random.choices(site.pages, k=14)]
            return own + [self._to(farm.number) for farm in self._random.choices(self._farms, k=8)]
        return []

    def _pager(self, page: Page) -> list[OutLink]:
        """Links to the pages before and after this one in its calendar, list or section."""
        site = self._sites[page.site]
        if page.kind == web.CALENDAR:
            series, names = site.calendar, ("Next month", "Previous month")
        elif page.kind == web.INDEX and page.section is not None:
            series, names = site.sections[page.section].indexes, ("Newer", "Older")
        else:
            return []
        place = series.index(page.number)
        before = [self._to(number, names[0]) for number in series[max(place - 1, 0) : place]]
        return before + [self._to(number, names[1]) for number in series[place + 1 : place + 2]]

    def _related(self, page: Page) -> list[OutLink]:
        if page.kind not in web.CONTENT_KINDS:
            return []
        return [
            self._gone(page) if self._random.random() < _GONE_SHARE else self._near(page, "site", page.site)
            for _ in range(self._random.randint(1, 6))
        ]

    def _sidebar(self, page: Page) -> list[OutLink]:
        return self._draw_popular(page, 3) if page.kind in web.CONTENT_KINDS else []

    def _draw_popular(self, page: Page, count: int) -> list[OutLink]:
        key = ("site", page.site, page.language)
        drawn = self._random.choices(self._members[key], cum_weights=self._popularity[key], k=count)
        return [self._to(target.number) for target in drawn]
