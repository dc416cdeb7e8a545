"""Turns a planned web into the files of the ClueWeb22 layout."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Final

from simulate.clueweb22.layout import HTML, INLINK, KINDS, OUTLINK, TXT, DocId
from simulate.clueweb22.tree_writer import (
    DocumentHead,
    LinkEnd,
    html_record,
    inlink_record,
    outlink_record,
    txt_record,
    write_data_file,
    write_root_files,
)
from simulate.demo.content import clean_text
from simulate.demo.markup import page_html
from simulate.demo.streams import stream
from simulate.demo.texts import page_blocks
from simulate.demo.web import OutLink, Page, Web

_README: Final = """\
A generated web in the layout of ClueWeb22-A; not ClueWeb22 data. Made by `scrapy corpus demo` of crawl4llm:
{pages} pages, {hosts} hosts, seed {seed}. All hosts are under reserved top-level domains (RFC 2606).
"""
_FIRST_START: Final = datetime(2022, 8, 1, tzinfo=timezone.utc)
_LATEST_START: Final = 28 * 86_400
_SECONDS_PER_PAGE: Final = 3


class Tree:
    """The file tree of a web. Its data files can be written in any order, by any number of processes."""

    def __init__(self, web: Web, root: Path) -> None:
        self._web = web
        self._root = root
        self._heads = [
            DocumentHead(key, page.url, page.language) for key, page in zip(web.keys, web.pages, strict=True)
        ]
        self._inlinks = self._gather_inlinks()
        self._start = _FIRST_START + timedelta(seconds=stream(web.seed, "dates").randrange(_LATEST_START))
        self.files = self._page_numbers()
        """Page numbers of each file by file id, in the order of their records."""

    def write_file(self, file_id: str) -> int:
        """Write a file in all four kinds; returns the number of its pages."""
        records = [self._records(number) for number in self.files[file_id]]
        for kind in KINDS:
            write_data_file(self._root, kind, file_id, (record[kind] for record in records))
        return len(records)

    def write_root_files(self) -> None:
        """Write the README, the version file and the record counts."""
        counts = {file_id: len(numbers) for file_id, numbers in self.files.items()}
        readme = _README.format(pages=len(self._web.pages), hosts=len(self._web.sites), seed=self._web.seed)
        write_root_files(self._root, readme, dict.fromkeys(KINDS, counts))

    def _page_numbers(self) -> dict[str, list[int]]:
        files: dict[str, list[int]] = {}
        for key, number in sorted((key, number) for number, key in enumerate(self._web.keys)):
            document = DocId.parse(key)
            assert document is not None
            files.setdefault(document.file_id, []).append(number)
        return files

    def _gather_inlinks(self) -> list[list[LinkEnd]]:
        """The links to each page, in the order of the linking pages."""
        inlinks: list[list[LinkEnd]] = [[] for _ in self._web.pages]
        for head, links in zip(self._heads, self._web.links, strict=True):
            for link, boilerplate in links.in_order():
                if link.target is not None:
                    inlinks[link.target].append(LinkEnd(head.url, link.anchor, boilerplate, head.language, head.key))
        return inlinks

    def _records(self, number: int) -> dict[str, bytes]:
        """A page's record of each kind."""
        web, head, links = self._web, self._heads[number], self._web.links[number]
        page = web.pages[number]
        blocks = page_blocks(web, number)
        html = page_html(web.sites[page.site], page, blocks, links, self._canonical(page))
        date = self._start + timedelta(seconds=_SECONDS_PER_PAGE * number)
        return {
            TXT: txt_record(head, clean_text(blocks)),
            HTML: html_record(head, html.encode(), date.strftime("%Y-%m-%dT%H:%M:%S.%fZ")),
            OUTLINK: outlink_record(head, [self._target(link, boilerplate) for link, boilerplate in links.in_order()]),
            INLINK: inlink_record(head, self._inlinks[number]),
        }

    def _target(self, link: OutLink, boilerplate: bool) -> LinkEnd:
        if link.target is None:
            return LinkEnd(link.url, link.anchor, boilerplate, "", None)
        head = self._heads[link.target]
        return LinkEnd(head.url, link.anchor, boilerplate, head.language, head.key)

    def _canonical(self, page: Page) -> str | None:
        """The address a copy names as the original's: only copies on the same site are so honest."""
        original = self._web.pages[page.text_of]
        return original.url if original.number != page.number and original.site == page.site else None
