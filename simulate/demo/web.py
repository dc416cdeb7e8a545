"""What a planned web consists of: sites, sections, pages and links. Texts and HTML follow from these."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

HOME: Final = "home"
INDEX: Final = "index"
ARTICLE: Final = "article"
PRODUCT: Final = "product"
THREAD: Final = "thread"
LEGAL: Final = "legal"
CALENDAR: Final = "calendar"
GALLERY: Final = "gallery"
THIN: Final = "thin"
FARM: Final = "farm"
CONTENT_KINDS: Final = frozenset({ARTICLE, PRODUCT, THREAD, THIN, GALLERY})
"""Kinds of pages that are listed by an index page."""


@dataclass(slots=True)
class Section:
    """A part of a site under one path."""

    path: str
    title: str
    kind: str
    """Kind of its pages: article, product or thread."""
    level: float
    """How much better (or worse) its pages are than a page of an average site, in standard deviations."""
    language: str
    indexes: list[int] = field(default_factory=list)
    """Its index pages, first to last."""
    pages: list[int] = field(default_factory=list)
    """The pages that its indexes list, and those that nothing lists."""


@dataclass(slots=True)
class Site:
    """A host."""

    number: int
    base: str
    """Scheme and host: ``https://hive-notes.example``."""
    name: str
    kind: str
    subject: int
    language: str
    level: float
    size: int
    sections: list[Section] = field(default_factory=list)
    home: int = -1
    legal: list[int] = field(default_factory=list)
    calendar: list[int] = field(default_factory=list)
    """Its months, newest first."""
    pages: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Page:
    """One page, before it has links."""

    number: int
    site: int
    section: int | None
    kind: str
    url: str
    title: str
    language: str
    topic: str
    """The thing it is about."""
    theme: str
    """The process it is about; of a legal page its path, of a calendar page its year and month."""
    quality: float
    """Share of explanatory text, from 0 to 1. The influence score depends on it, with noise."""
    text_of: int
    """The page whose text it shows: its own number unless it is a duplicate."""
    altered: bool = False
    """Whether a duplicate differs in some sentences."""
    listed: bool = True
    """Whether an index page lists it."""


class OutLink(NamedTuple):
    """A link of a page."""

    target: int | None
    """Number of the page it leads to; None where that is not in the web."""
    url: str
    anchor: str


@dataclass(slots=True)
class PageLinks:
    """The links of a page by the place where they stand, in page order; no target occurs twice."""

    header: tuple[OutLink, ...] = ()
    text: tuple[OutLink, ...] = ()
    listing: tuple[OutLink, ...] = ()
    pager: tuple[OutLink, ...] = ()
    """Next and previous page or month."""
    related: tuple[OutLink, ...] = ()
    sidebar: tuple[OutLink, ...] = ()
    footer: tuple[OutLink, ...] = ()

    def in_order(self) -> list[tuple[OutLink, bool]]:
        """All links in page order, each with whether it stands in a header or footer."""
        middle = (*self.text, *self.listing, *self.pager, *self.related, *self.sidebar)
        return [
            *((link, True) for link in self.header),
            *((link, False) for link in middle),
            *((link, True) for link in self.footer),
        ]


@dataclass(slots=True)
class Web:
    """A planned web."""

    seed: int
    sites: list[Site]
    pages: list[Page]
    links: list[PageLinks]
    """By page number."""
    keys: list[str]
    """ClueWeb22-IDs by page number."""
