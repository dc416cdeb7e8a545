"""The main part of a page: a sequence of blocks, and the clean text that a main-text extractor takes from them.

A page's quality is the chance that a paragraph explains something; the others tell, sell or are debris. So pages of all
qualities share all words and most kinds of sentences, in different proportions.
"""

from __future__ import annotations

import calendar
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Final, NamedTuple

from simulate.demo import english, web
from simulate.demo.foreign import LANGUAGES
from simulate.demo.sentences import Sentences
from simulate.demo.web import OutLink, Page
from simulate.demo.words import MEASURES

_PLAIN_SHARE: Final = 0.35
_FLOOR: Final = 0.04
"""Least share of each style, so that no page is of one style alone by rule."""
_TITLES: Final = (english.TITLES_EXPLAINING, english.TITLES_PLAIN, english.TITLES_SELLING)


class Line(NamedTuple):
    """Text with at most one link inside."""

    text: str
    link: OutLink | None = None
    after: str = ""

    def plain(self) -> str:
        """The line as it is read."""
        return self.text + (self.link.anchor if self.link else "") + self.after


class Heading(NamedTuple):
    """A heading; level 1 is the page's title."""

    text: str
    level: int = 2


class Paragraph(NamedTuple):
    """A paragraph."""

    line: Line


class Bullets(NamedTuple):
    """A list."""

    lines: tuple[Line, ...]

    def only_links(self) -> bool:
        """Whether there is nothing to read but anchors; extractors of main text leave such lists out."""
        return all(line.link and not line.text and not line.after for line in self.lines)


class Table(NamedTuple):
    """Cells by row; the first row is the head."""

    rows: tuple[tuple[str, ...], ...]


class Images(NamedTuple):
    """Pictures without a word."""

    names: tuple[str, ...]


Block = Heading | Paragraph | Bullets | Table | Images


def clean_text(blocks: Iterable[Block]) -> str:
    """The text of blocks, one line each, lists and tables marked as trafilatura marks them."""
    lines: list[str] = []
    for block in blocks:
        if isinstance(block, Heading):
            lines.append(block.text)
        elif isinstance(block, Paragraph):
            lines.append(block.line.plain())
        elif isinstance(block, Bullets) and not block.only_links():
            lines.extend("- " + line.plain() for line in block.lines)
        elif isinstance(block, Table):
            lines.extend("| " + " | ".join(row) + " |" for row in block.rows)
    return "\n".join(lines)


def legal_pages(language: str) -> Mapping[str, tuple[str, tuple[str, ...]]]:
    """Title and sentences by path of the pages that sites in a language have besides their contents."""
    return english.BOILERPLATE if language == "en" else LANGUAGES[language].legal


class Composer:
    """Writes the main part of one page."""

    def __init__(self, random: Random, page: Page, subject: int, site: str) -> None:
        self._random = random
        self._page = page
        self._sentences = Sentences(random, subject, page.language, page.topic, page.theme, site)
        explain, plain = page.quality + _FLOOR, _PLAIN_SHARE
        poor = 1 - page.quality + _FLOOR
        self._styles = self._style_patterns()
        total = explain + plain + poor
        self._explain_below, self._plain_below = explain / total, (explain + plain) / total

    def _style_patterns(self) -> tuple[Sequence[str], Sequence[str], Sequence[Sequence[str]]]:
        if self._page.language != "en":
            foreign = LANGUAGES[self._page.language]
            return foreign.explanations, foreign.plain, (foreign.offers,)
        debris = (english.FRAGMENTS, english.KEYWORDS) if self._page.kind == web.THREAD else (english.OFFERS,)
        return english.EXPLANATIONS, english.PLAIN, (*debris, english.OFFERS, english.FRAGMENTS, english.KEYWORDS)

    def blocks(self, links: web.PageLinks) -> list[Block]:
        """The page's blocks, with its ``text`` and ``listing`` links in them, in that order."""
        body = {
            web.HOME: self._home,
            web.INDEX: self._index,
            web.PRODUCT: self._product,
            web.THREAD: self._thread,
            web.LEGAL: self._legal,
            web.CALENDAR: self._calendar,
            web.FARM: self._farm,
            web.THIN: self._thin,
            web.GALLERY: self._gallery,
        }.get(self._page.kind, self._article)
        return body(links)

    def _title(self) -> Heading:
        return Heading(self._page.title, level=1)

    def _article(self, links: web.PageLinks) -> list[Block]:
        blocks: list[Block] = [self._title()]
        for paragraph in self._paragraphs(links.text, self._random.randint(4, 9), longest=5):
            if len(blocks) > 1 and self._random.random() < 0.25:
                blocks.append(Heading(self._subheading()))
            blocks.append(paragraph)
        if self._random.random() < 0.15:
            blocks.append(self._measurements())
        if self._random.random() < 0.2:
            blocks.append(self._bullets(4))
        return blocks

    def _product(self, links: web.PageLinks) -> list[Block]:
        offer = self._sentences.fill(
            "{adj} {topic} {code}, ${n}.95" if self._page.language == "en" else "{thing} {code}"
        )
        return [
            self._title(),
            Paragraph(Line(offer)),
            *self._paragraphs(links.text, self._random.randint(3, 6), longest=4),
            self._measurements(),
            self._bullets(3),
        ]

    def _thread(self, links: web.PageLinks) -> list[Block]:
        byline = "{name}, {month} {recent}" if self._page.language == "en" else "{name}, {recent}"
        blocks: list[Block] = [self._title()]
        for post in self._paragraphs(links.text, self._random.randint(3, 9), longest=4):
            blocks += [Heading(self._sentences.fill(byline)), post]
        return blocks

    def _thin(self, links: web.PageLinks) -> list[Block]:
        return [self._title(), *self._paragraphs(links.text, 1, longest=1)]

    def _gallery(self, links: web.PageLinks) -> list[Block]:
        assert not links.text
        return [Images(tuple(f"{self._page.number}-{i}" for i in range(self._random.randint(6, 15))))]

    def _home(self, links: web.PageLinks) -> list[Block]:
        return [self._title(), *self._paragraphs((), 2, longest=3), *self._teasers(links.listing)]

    def _index(self, links: web.PageLinks) -> list[Block]:
        return [self._title(), *self._teasers(links.listing)]

    def _teasers(self, links: Sequence[OutLink]) -> list[Block]:
        lines = [Line("", link, ". " + self._sentences.one_of(self._patterns())) for link in links]
        return [Bullets(tuple(lines))] if lines else []

    def _legal(self, links: web.PageLinks) -> list[Block]:
        assert not links.text
        _, patterns = legal_pages(self._page.language)[self._page.theme]
        sentences = [self._sentences.fill(pattern) for pattern in patterns]
        return [self._title(), *(Paragraph(Line(sentence)) for sentence in sentences)]

    def _calendar(self, links: web.PageLinks) -> list[Block]:
        year, month = map(int, self._page.theme.split("-"))
        weeks = [tuple(str(day or "") for day in week) for week in calendar.monthcalendar(year, month)]
        events = [Line("", link, self._sentences.fill(" in {city}, {n} {month}")) for link in links.listing]
        blocks: list[Block] = [self._title(), Table((("Mo", "Tu", "We", "Th", "Fr", "Sa", "Su"), *weeks))]
        return [*blocks, Bullets(tuple(events))] if events else blocks

    def _farm(self, links: web.PageLinks) -> list[Block]:
        spam = [Paragraph(Line(self._sentences.some_of(english.KEYWORDS, 2))) for _ in range(3)]
        return [self._title(), *spam, Bullets(tuple(Line("", link) for link in links.listing))]

    def _paragraphs(self, links: Sequence[OutLink], count: int, longest: int) -> list[Paragraph]:
        """At least ``count`` paragraphs of up to ``longest`` sentences; each link ends one of them."""
        count = max(count, len(links))
        with_link = dict(zip(sorted(self._random.sample(range(count), len(links))), links, strict=True))
        return [self.paragraph(with_link.get(number), longest) for number in range(count)]

    def paragraph(self, link: OutLink | None = None, longest: int = 5) -> Paragraph:
        """One paragraph of up to ``longest`` sentences, all of one style."""
        text = self._sentences.some_of(self._patterns(), self._random.randint(1, longest))
        if link is None:
            return Paragraph(Line(text))
        language = self._page.language
        patterns = english.READ_ON if language == "en" else (LANGUAGES[language].read_on,)
        before, after = patterns[int(self._random.random() * len(patterns))].split("{link}")
        return Paragraph(Line(f"{text} {before}", link, after))

    def _patterns(self) -> Sequence[str]:
        """The patterns of one paragraph, by the page's quality."""
        explanations, plain, poor = self._styles
        return (explanations, plain, poor[int(self._random.random() * len(poor))])[self._style()]

    def _style(self) -> int:
        draw = self._random.random()
        return 0 if draw < self._explain_below else 1 if draw < self._plain_below else 2

    def _subheading(self) -> str:
        if self._page.language != "en":
            return self._sentences.one_of(LANGUAGES[self._page.language].titles)
        return self._sentences.one_of(_TITLES[self._style()])

    def _bullets(self, count: int) -> Bullets:
        return Bullets(tuple(Line(self._sentences.one_of(self._patterns())) for _ in range(count)))

    def _measurements(self) -> Table:
        language = self._page.language
        names = self._random.sample(MEASURES if language == "en" else LANGUAGES[language].processes, 5)
        rows = [(name.capitalize(), self._sentences["n"], self._sentences["n"]) for name in names]
        return Table((("", self._sentences["recent"], self._sentences["recent"]), *rows))
