"""The texts of pages: their blocks, and from these their clean text and their HTML.

A page's quality is the chance that a paragraph explains something; the others tell, or are poor. So pages of all
qualities share all words and all sentences, in different proportions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from simulate.demo.sites import Link, Page, PageLinks, Site
from simulate.demo.words import LANGUAGES, SUBJECTS, Sentences

_PLAIN_SHARE, _LEAST_SHARE = 0.35, 0.04
"""Weight of plain paragraphs beside the others, and the least weight of these: no page is of one style by rule."""


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
