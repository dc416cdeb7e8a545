"""The pages of the web: kind, address, title and quality of each, and which of them are duplicates."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from random import Random
from typing import Final

from simulate.demo import english, web
from simulate.demo.content import legal_pages
from simulate.demo.foreign import LANGUAGES
from simulate.demo.sentences import Sentences, vocabulary
from simulate.demo.sites import EVENTS_SITE, FARM_SITE, MIRROR_SITE
from simulate.demo.web import Page, Section, Site
from simulate.demo.words import MONTHS

PAGES_LISTED: Final = 25
"""Entries of an index page."""
_THIN, _GALLERY, _UNLISTED, _PRINT, _SYNDICATED, _ALTERED = 0.05, 0.01, 0.04, 0.02, 0.04, 0.7
_LEGAL_LEVEL: Final = -2.0
_CALENDAR_SHARE: Final = 0.4
_LAST_MONTH: Final = 2022 * 12 + 6
_LIST_SHIFT: Final = -1.0
"""How much poorer than its contents the texts around a list of them are."""
_SLOPE, _CENTRE, _PAGE_SPREAD = 1.3, 1.6, 0.6


def slug(title: str) -> str:
    """A title as the last part of a path."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")


def quality(level: float) -> float:
    """The share of explanatory text for a level in standard deviations above the average page."""
    return 1 / (1 + math.exp(-_SLOPE * (level - _CENTRE)))


class PagePlanner:
    """Plans the pages of one site after another."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._pages: list[Page] = []
        self._urls: set[str] = set()
        self._articles: list[int] = []
        """English articles so far, which others may copy."""

    def plan(self, sites: Sequence[Site]) -> list[Page]:
        """The pages of all sites, those that mirror others last."""
        for site in sorted(sites, key=lambda site: site.kind == MIRROR_SITE):
            self._plan_site(site)
        return self._pages

    def _plan_site(self, site: Site) -> None:
        if site.kind == FARM_SITE:
            site.home = self._add(site, None, web.FARM, "/", site.name, site.level)
            for _ in range(site.size - 1):
                self._original(site, None, web.FARM)
            return
        site.home = self._add(site, None, web.HOME, "/", site.name, self._level(site, None) + _LIST_SHIFT)
        for (path, (title, _)), smallest in zip(legal_pages(site.language).items(), (8, 40, 100), strict=False):
            if site.size >= smallest:
                site.legal.append(self._add(site, None, web.LEGAL, f"/{path}", title, _LEGAL_LEVEL, theme=path))
        if site.kind == EVENTS_SITE:
            self._plan_calendar(site, int(site.size * _CALENDAR_SHARE))
        self._plan_sections(site, site.size - len(site.pages))

    def _plan_calendar(self, site: Site, months: int) -> None:
        for month in range(_LAST_MONTH, _LAST_MONTH - months, -1):
            year, number = month // 12, month % 12 + 1
            title = f"Events in {MONTHS[number - 1]} {year}"
            path, date = f"/calendar/{year}/{number:02d}/", f"{year}-{number}"
            site.calendar.append(self._add(site, None, web.CALENDAR, path, title, _LEGAL_LEVEL, theme=date))

    def _plan_sections(self, site: Site, size: int) -> None:
        weights = [self._random.uniform(0.5, 1.5) / (place + 1) for place in range(len(site.sections))]
        sizes = [max(2, int(size * weight / math.fsum(weights))) for weight in weights]
        sizes[0] = size - sum(sizes[1:])
        sources = iter(self._mirrored(site))
        for section, section_size in zip(site.sections, sizes, strict=True):
            self._plan_section(site, section, section_size, sources)

    def _plan_section(self, site: Site, section: Section, size: int, sources: Iterator[int]) -> None:
        index_count = math.ceil(size / (PAGES_LISTED + 1))
        for number in range(1, index_count + 1):
            path = f"/{section.path}/" + (f"page/{number}/" if number > 1 else "")
            title = section.title + (f", page {number}" if number > 1 else "")
            level = self._level(site, section) + _LIST_SHIFT
            section.indexes.append(self._add(site, section, web.INDEX, path, title, level))
        for _ in range(size - index_count):
            section.pages.append(self._member(site, section, next(sources, None)))

    def _mirrored(self, site: Site) -> list[int]:
        """What a mirror copies: a run of articles, which are those of one site or of a few."""
        if site.kind != MIRROR_SITE or not self._articles:
            return []
        start = self._random.randrange(len(self._articles))
        return self._articles[start : start + site.size]

    def _member(self, site: Site, section: Section, mirrored: int | None) -> int:
        """A page of a section: a copy or an original."""
        draw = self._random.random()
        english_article = section.kind == web.ARTICLE and section.language == "en"
        if mirrored is not None:
            number = self._copy(site, section, mirrored, f"/{section.path}/{slug(self._pages[mirrored].title)}")
        elif draw < _PRINT and section.pages:
            original = section.pages[-1]
            path = self._pages[original].url[len(site.base) :]
            number = self._copy(site, section, original, path + ("&" if "?" in path else "?") + "print=1")
        elif draw < _PRINT + _SYNDICATED and english_article and self._articles:
            original = self._random.choice(self._articles)
            number = self._copy(site, section, original, f"/{section.path}/{slug(self._pages[original].title)}")
            self._pages[number].altered = self._random.random() < _ALTERED
        else:
            number = self._original(site, section, self._kind(section))
            if english_article and self._pages[number].kind == web.ARTICLE:
                self._articles.append(number)
        self._pages[number].listed = self._random.random() >= _UNLISTED
        return number

    def _kind(self, section: Section) -> str:
        draw = self._random.random()
        return web.GALLERY if draw < _GALLERY else web.THIN if draw < _GALLERY + _THIN else section.kind

    def _original(self, site: Site, section: Section | None, kind: str) -> int:
        level = self._level(site, section)
        language = section.language if section else site.language
        words = vocabulary(site.subject, language)
        topic, theme = self._random.choice(words["thing"]), self._random.choice(words["process"])
        title = self._title(Sentences(self._random, site.subject, language, topic, theme, site.name), language, level)
        return self._add(site, section, kind, self._path(site, section, kind, slug(title)), title, level, topic, theme)

    def _level(self, site: Site, section: Section | None) -> float:
        return site.level + (section.level if section else 0) + _PAGE_SPREAD * self._random.gauss(0, 1)

    def _title(self, sentences: Sentences, language: str, level: float) -> str:
        """A title that hints at the level, often wrongly."""
        if language != "en":
            return sentences.one_of(LANGUAGES[language].titles)
        hint = level + self._random.gauss(0, 1)
        if hint > 0.7:
            return sentences.one_of(english.TITLES_EXPLAINING)
        return sentences.one_of(english.TITLES_PLAIN if hint > -0.5 else english.TITLES_SELLING)

    def _path(self, site: Site, section: Section | None, kind: str, name: str) -> str:
        number = len(self._pages)
        if section is None:
            return f"/{name}-{number}.html"
        if kind == web.THREAD:
            return f"/{section.path}/thread.php?id={number}"
        if kind == web.PRODUCT:
            return f"/{section.path}/{name}-{number}.html"
        if site.number % 3 == 0:
            return f"/{section.path}/{number}-{name}"
        year, month = 2005 + number % 17, 1 + number % 12
        folder = f"/{section.path}/" if site.number % 3 == 1 else f"/{section.path}/{year}/{month:02d}/"
        path = f"{folder}{name}.html"
        return path if site.base + path not in self._urls else f"{folder}{name}-{number}.html"

    def _copy(self, site: Site, section: Section, source: int, path: str) -> int:
        original = self._pages[self._pages[source].text_of]
        number = self._add(site, section, original.kind, path, original.title, 0.0, original.topic, original.theme)
        page = self._pages[number]
        page.quality, page.text_of = original.quality, original.number
        return number

    def _add(
        self,
        site: Site,
        section: Section | None,
        kind: str,
        path: str,
        title: str,
        level: float,
        topic: str = "",
        theme: str = "",
    ) -> int:
        """One more page; its number."""
        number = len(self._pages)
        language = section.language if section else site.language
        words = vocabulary(site.subject, language)
        url = site.base + path
        if url in self._urls:
            url += f"{'&' if '?' in url else '?'}v={number}"
        self._urls.add(url)
        page = Page(
            number=number,
            site=site.number,
            section=site.sections.index(section) if section else None,
            kind=kind,
            url=url,
            title=title,
            language=language,
            topic=topic or self._random.choice(words["thing"]),
            theme=theme or self._random.choice(words["process"]),
            quality=quality(level),
            text_of=number,
        )
        self._pages.append(page)
        site.pages.append(number)
        return number
