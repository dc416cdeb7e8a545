"""The main part of each page of a planned web."""

from __future__ import annotations

from simulate.demo.content import Block, Composer, Paragraph
from simulate.demo.streams import stream
from simulate.demo.web import Page, Web


def page_blocks(web: Web, number: int) -> list[Block]:
    """The blocks of a page; those of the page it copies, where it is a duplicate."""
    page = web.pages[number]
    shown = web.pages[page.text_of]
    blocks = _composer(web, shown, "text").blocks(web.links[number])
    if page.altered:
        _alter(blocks, _composer(web, page, "altered"))
    return blocks


def _composer(web: Web, page: Page, purpose: str) -> Composer:
    site = web.sites[page.site]
    return Composer(stream(web.seed, purpose, page.number), page, site.subject, site.name)


def _alter(blocks: list[Block], composer: Composer) -> None:
    """Replace the last paragraph without links, in which a near duplicate differs from its original."""
    for place in range(len(blocks) - 1, -1, -1):
        block = blocks[place]
        if isinstance(block, Paragraph) and block.line.link is None:
            blocks[place] = composer.paragraph()
            return
