"""The second and third pass of a build: the data files, one of one kind at a time."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from crawl4llm.base.errors import PageError
from crawl4llm.base.pages import Corpus, Link
from simulate.build.links import LinkSpill, SpilledLinks
from simulate.build.pages import ChunkStore, Page, Unreadable
from simulate.build.plan import Plan, PlannedFile
from simulate.clueweb22.layout import HTML, INLINK, OUTLINK, TXT, format_id, language_of
from simulate.clueweb22.writer import (
    DocumentHead,
    LinkEnd,
    html_record,
    inlink_record,
    outlink_record,
    txt_record,
    write_data_file,
)

PAGE_KINDS: Final = (TXT, HTML, OUTLINK)
"""What is written of a page by itself; ``inlink`` needs the outlinks of all pages."""

_NO_RECORD: Final = b""
"""A member without content stands where a number has no record: readers of lines do not see it."""
_NO_HTML: Final = b"\r\n"
"""The same among WARC records: FastWARC takes a member without content for the end of the file."""


class DataFiles:
    """Writes the data files of a tree from what the first pass has read."""

    def __init__(
        self, root: Path, work: Path, plan: Plan, source: Corpus, default_date: str, *, slim_links: bool = False
    ) -> None:
        self._root = root
        self._slim_links = slim_links
        self._plan = plan
        self._source = source
        self._default_date = default_date
        self._chunks = ChunkStore(work / "pages")
        self._done = work / "done"
        self._links = work / "links"
        for folder in (self._done, self._links):
            folder.mkdir(exist_ok=True)

    def counts(self, kind: str, file: PlannedFile) -> Counter[str] | None:
        """What was counted when a file was written; None where it has not been, or not to its end."""
        try:
            return Counter(json.loads(self._marker(kind, file).read_bytes()))
        except (FileNotFoundError, ValueError):
            return None

    def write(self, kind: str, file: PlannedFile) -> None:
        """Write a file of one kind and note that it is done."""
        counts: Counter[str] = Counter()
        records = {TXT: self._txt, HTML: self._html, OUTLINK: self._outlink, INLINK: self._inlink}[kind](file, counts)
        if kind != HTML or self._has_html(file):
            counts["records"] = write_data_file(self._root, kind, file.file_id, records)
        self._marker(kind, file).write_text(json.dumps(counts))

    def drop_pages(self, file: PlannedFile) -> None:
        """Remove what the first pass has read of a file's pages."""
        self._chunks.drop(file)

    def _marker(self, kind: str, file: PlannedFile) -> Path:
        return self._done / f"{file.file_id}.{kind}"

    def _pages(self, file: PlannedFile) -> Iterator[tuple[DocumentHead, Page | Unreadable | None]]:
        for record, entry in enumerate(self._chunks.read(file)):
            key = format_id(file.file_id, record)
            yield DocumentHead(key, entry.url if isinstance(entry, Page) else "", language_of(key)), entry

    def _has_html(self, file: PlannedFile) -> bool:
        return any(isinstance(entry, Page) and entry.has_html for entry in self._chunks.read(file))

    def _txt(self, file: PlannedFile, counts: Counter[str]) -> Iterator[bytes]:
        for head, entry in self._pages(file):
            if isinstance(entry, Page):
                counts["documents"] += 1
                if entry.remark:
                    counts[f"without text: {entry.remark}"] += 1
                yield txt_record(head, entry.text)
            else:
                if entry:
                    counts[f"unreadable: {entry.reason}"] += 1
                yield _NO_RECORD

    def _html(self, file: PlannedFile, counts: Counter[str]) -> Iterator[bytes]:
        keys = self._plan.keys(file)
        for (head, entry), key in zip(self._pages(file), keys, strict=True):
            if not isinstance(entry, Page) or not entry.has_html:
                yield _NO_HTML
                continue
            assert key is not None
            try:
                html = self._source.html(key)
            except PageError as error:
                counts[f"without html: {error.reason}"] += 1
                yield _NO_HTML
            else:
                counts["pages with html"] += 1
                yield html_record(head, html, entry.date or self._default_date)

    def _outlink(self, file: PlannedFile, counts: Counter[str]) -> Iterator[bytes]:
        spill = LinkSpill(self._links, self._plan, file.file_id)
        urls = []
        for head, entry in self._pages(file):
            urls.append(head.url)
            if not isinstance(entry, Page):
                yield _NO_RECORD
                continue
            spill.add(head, entry.links)
            counts["links"] += len(entry.links)
            counts["links to pages of the tree"] += sum(link.key is not None for link in entry.links)
            yield outlink_record(head, [_target(link) for link in entry.links], slim=self._slim_links)
        spill.finish()
        self._urls_path(file).write_bytes(zlib.compress(json.dumps(urls).encode(), 1))

    def _inlink(self, file: PlannedFile, _: Counter[str]) -> Iterator[bytes]:
        urls = json.loads(zlib.decompress(self._urls_path(file).read_bytes()))
        inlinks = SpilledLinks(self._links, self._plan).inlinks(file)
        for record, (url, links) in enumerate(zip(urls, inlinks, strict=True)):
            key = format_id(file.file_id, record)
            # Nobody is told of links to a page that the tree does not hold after all.
            head = DocumentHead(key, url, language_of(key))
            yield inlink_record(head, links, slim=self._slim_links) if url else _NO_RECORD

    def _urls_path(self, file: PlannedFile) -> Path:
        return self._links / f"{file.file_id}.urls"


def _target(link: Link) -> LinkEnd:
    return LinkEnd(link.url, link.anchor, link.boilerplate, language_of(link.key) if link.key else "", link.key)
