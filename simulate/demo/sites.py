"""The sites of the web: names, subjects, sizes, and how good they are."""

from __future__ import annotations

import math
from collections.abc import Container
from random import Random
from statistics import NormalDist
from typing import Final, NamedTuple

from simulate.demo.foreign import LANGUAGES
from simulate.demo.web import ARTICLE, PRODUCT, THREAD, Section, Site
from simulate.demo.words import CITIES, SUBJECTS, SURNAMES, plural

FOREIGN_TONGUES: Final = tuple(LANGUAGES)
SMALLEST_SITE: Final = 4
_LEVEL_SPREAD: Final = 1.1
_SIZE_EXPONENT: Final = 0.9
"""Sizes fall as a power of the rank, as those of real hosts do."""
_SECTION_SHIFT: Final = 0.25
_FOREIGN_SECTION_CHANCE: Final = 0.05


class SiteKind(NamedTuple):
    """What sites of one kind have in common."""

    of_fifty: int
    """How many of fifty sites are of this kind."""
    level: float
    sections: tuple[tuple[str, str, float], ...]
    """Path, kind of page, and level relative to the site's."""


FARM_SITE: Final = "farm"
EVENTS_SITE: Final = "events"
MIRROR_SITE: Final = "mirror"
_SITE_KINDS: Final = {
    "guide": SiteKind(
        8,
        1.0,
        (("guide", ARTICLE, 0.3), ("basics", ARTICLE, 0.0), ("history", ARTICLE, 0.1), ("news", ARTICLE, -0.6),
         ("shop", PRODUCT, -1.4)),
    ),
    "blog": SiteKind(
        9,
        0.0,
        (("blog", ARTICLE, 0.0), ("reviews", ARTICLE, -0.4), ("notes", ARTICLE, 0.4), ("guestbook", THREAD, -0.8)),
    ),
    "news": SiteKind(
        6,
        -0.1,
        (("news", ARTICLE, 0.0), ("local", ARTICLE, -0.3), ("features", ARTICLE, 0.6), ("comments", THREAD, -0.6)),
    ),
    "shop": SiteKind(
        12,
        -0.8,
        (("shop", PRODUCT, 0.0), ("accessories", PRODUCT, -0.1), ("offers", PRODUCT, -0.4), ("advice", ARTICLE, 1.2)),
    ),
    "forum": SiteKind(
        6,
        -0.5,
        (("forum", THREAD, 0.0), ("help", THREAD, 0.3), ("off-topic", THREAD, -0.5), ("howto", ARTICLE, 1.0)),
    ),
    EVENTS_SITE: SiteKind(2, -0.3, (("events", ARTICLE, 0.0), ("reports", ARTICLE, 0.5))),
    FARM_SITE: SiteKind(1, -2.0, ()),
    "foreign": SiteKind(5, -0.2, ()),
    MIRROR_SITE: SiteKind(1, 0.3, (("mirror", ARTICLE, 0.0),)),
}  # fmt: skip

_NAME_ENDINGS: Final = {
    "guide": ("guide", "handbook", "institute", "library"),
    "blog": ("notes", "blog", "diary", "journal"),
    "news": ("news", "gazette", "weekly", "post"),
    "shop": ("shop", "store", "direct", "outlet"),
    "forum": ("forum", "talk", "community", "board"),
    EVENTS_SITE: ("events", "club", "society", "association"),
    FARM_SITE: ("deals", "best", "cheap", "top10"),
    "foreign": ("portal", "magazin", "info", "net"),
    MIRROR_SITE: ("mirror", "archive", "copy", "cache"),
}


def plan_sites(random: Random, pages: int, count: int) -> list[Site]:
    """``count`` sites with ``pages`` pages in all, largest first."""
    hosts: set[str] = set()
    sites = []
    for number, (size, (kind, level)) in enumerate(zip(_sizes(pages, count), _deal(random, count), strict=True)):
        language = FOREIGN_TONGUES[number % len(FOREIGN_TONGUES)] if kind == "foreign" else "en"
        subject = random.randrange(len(SUBJECTS))
        host, name = _host(random, kind, subject, hosts)
        hosts.add(host)
        scheme = "https" if random.random() < 0.8 else "http"
        site = Site(number, f"{scheme}://{host}", name, kind, subject, language, _SITE_KINDS[kind].level + level, size)
        site.sections = _sections(random, site)
        sites.append(site)
    return sites


def _sizes(pages: int, count: int) -> list[int]:
    weights = [(rank + 15) ** -_SIZE_EXPONENT for rank in range(count)]
    spare = (pages - SMALLEST_SITE * count) / math.fsum(weights)
    sizes = [SMALLEST_SITE + int(spare * weight) for weight in weights]
    sizes[0] += pages - sum(sizes)
    return sizes


def _deal(random: Random, count: int) -> list[tuple[str, float]]:
    """Kind and level of each site, dealt out so that the sites of each size class have all kinds and levels."""
    dealt: list[tuple[str, float]] = []
    while len(dealt) < count:
        kinds = [name for name, kind in _SITE_KINDS.items() for _ in range(kind.of_fifty)]
        levels = [_LEVEL_SPREAD * NormalDist().inv_cdf((i + 0.5) / len(kinds)) for i in range(len(kinds))]
        random.shuffle(kinds)
        random.shuffle(levels)
        dealt += zip(kinds, levels, strict=True)
    return dealt[:count]


def _host(random: Random, kind: str, subject: int, taken: Container[str]) -> tuple[str, str]:
    """An unused host under a reserved top-level domain (RFC 2606, section 2), and the site's name."""
    noun = random.choice(SUBJECTS[subject].things).replace("'", "")
    ending = random.choice(_NAME_ENDINGS[kind])
    words = random.choice(
        (f"{noun} {ending}", f"{random.choice(SURNAMES)} {plural(noun)}", f"{random.choice(CITIES)} {ending}")
    )
    label = words.lower().replace(" ", "-")
    top = "example" if random.random() < 0.7 else "test"
    prefix = random.choice(("", "", "www.", f"{ending}."))
    host, number = f"{prefix}{label}.{top}", 1
    while host in taken:
        number += 1
        host = f"{prefix}{label}{number}.{top}"
    return host, words.title()


def _sections(random: Random, site: Site) -> list[Section]:
    if site.language != "en":
        kinds = (ARTICLE, ARTICLE, PRODUCT, THREAD)
        names = LANGUAGES[site.language].sections
        templates = [
            (path, kind, 0.3 - 0.4 * place) for place, (path, kind) in enumerate(zip(names, kinds, strict=True))
        ]
    else:
        templates = list(_SITE_KINDS[site.kind].sections)
    sections = [
        Section(path, path.title(), kind, shift + _SECTION_SHIFT * random.gauss(0, 1), site.language)
        for path, kind, shift in templates[: 1 + site.size // 12]
    ]
    if site.language == "en" and sections and site.size > 40 and random.random() < _FOREIGN_SECTION_CHANCE:
        language = random.choice(FOREIGN_TONGUES)
        sections.append(Section(language, language.upper(), ARTICLE, 0.0, language))
    return sections
