"""The archive writer: each page becomes a content record, a metadata record and a line of the index.

Redirects to another owner, and exchanges that are no page's (robots.txt), have such records too; their lines have no
document key.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import count
from pathlib import Path

from crawl4llm.base.compression import COMPRESSIONS
from crawl4llm.base.files import ArchiveError, sync_path
from crawl4llm.base.pages import Capture, PageRecord
from crawl4llm.base.within import require_within
from crawl4llm.warc import cdxj
from crawl4llm.warc.archive import ArchiveFormat, ArchiveInfo, ArchivePosition
from crawl4llm.warc.cdxj import INDEX_NAME, TEXT_INDEX_NAME
from crawl4llm.warc.exchanges import ExchangeBuilder, StoredPayloads, has_uri
from crawl4llm.warc.page_records import FORMAT_FIELDS, ContentRecord, Fields, RecordBuilder
from crawl4llm.warc.series import FileNames, IndexedFiles, Member, Position, SeriesPosition, WarcFiles

_USUAL = ArchiveFormat()


class ArchiveWriter:
    """Writes WARC files and their index ``index.cdxj`` to a directory; the pages' text to others, with ``text.cdxj``.

    A page's records stand side by side in one file of at most ``max_bytes``; a page larger than that has a file to
    itself. A page is in the archive wholly, with its lines in the indexes, or not at all.
    """

    def __init__(
        self,
        directory: Path,
        info: ArchiveInfo,
        max_bytes: int,
        at: ArchivePosition | None = None,
        form: ArchiveFormat = _USUAL,
    ) -> None:
        """Create the directory where needed, or, with ``at``, go on with the archive in it as it was at that position.

        Raises ArchiveError: without ``at`` where the directory holds an archive already, with it where less than that
        is left of one. Equal arguments make the archive of a crawl that never stopped, the names of a live one's files
        apart.
        """
        try:
            if at is not None:
                require_within(directory.parent, directory)
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise ArchiveError.of("create", directory, exc) from exc
        self.keeps_text = form.text
        self._directory, self._info, self._max_bytes, self._form = directory, info, max_bytes, form
        self._compress = COMPRESSIONS[form.compression].compress
        self._records = RecordBuilder(info.crawl_id, info.start_date)
        self._exchanges = ExchangeBuilder(self._records, credentials=form.credentials)
        self._pages = self._open(INDEX_NAME, info.prefix, at.pages if at else None)
        self._texts = (
            self._open(TEXT_INDEX_NAME, f"{info.prefix}-text", at.texts if at else None) if form.text else None
        )
        resumed = form.revisits and at is not None
        self._payloads = StoredPayloads(directory, form.revisits, cdxj.read(directory / INDEX_NAME) if resumed else ())

    def write(self, page: PageRecord, fields: Fields, text: str | None = None) -> None:
        """Keep a page, as :meth:`Archive.write` says. A text of white space alone has no record."""
        added = self._pages.add(partial(self._page_members, page, fields))
        if self._texts is not None and text is not None and text.strip():
            try:
                self._texts.add(partial(self._text_members, page, _last_content(added.members), text))
            except ArchiveError:
                self._pages.take_back(added)
                raise
        for entry in added.entries if page.captures else ():  # of others no payload is ever looked up
            self._payloads.add(entry)

    def write_redirects(self, page: PageRecord, fields: Fields) -> None:
        """Keep redirects, as :meth:`Archive.write_redirects` says; those whose URLs fit into no record are left out."""
        captures = [capture for capture in page.captures if has_uri(capture)]
        if captures:
            self._pages.add(partial(self._redirect_members, page.key, captures, fields))

    def write_exchange(self, capture: Capture, purpose: str, fields: Fields) -> None:
        """Keep an exchange, as :meth:`Archive.write_exchange` says; never as a revisit, so that each can be read by
        itself. One whose URL fits into no record is left out."""
        if has_uri(capture):
            self._pages.add(partial(self._exchange_of_no_page, capture, purpose, fields))

    def flush(self, *, fsync: bool = False) -> None:
        for series in self._series:
            series.flush(fsync=fsync)
        if fsync:
            self._sync_name()

    def position(self) -> ArchivePosition:
        return ArchivePosition(*(place for series in self._series for place in series.position))

    def close(self, *, fsync: bool = False) -> None:
        for series in self._series:
            series.close(fsync=fsync)
        if fsync:
            self._sync_name()

    @property
    def _series(self) -> list[IndexedFiles]:
        return [self._pages] if self._texts is None else [self._pages, self._texts]

    def _open(self, index: str, prefix: str, at: SeriesPosition | None) -> IndexedFiles:
        names = FileNames(prefix, COMPRESSIONS[self._form.compression].suffix, self._info.host)

        def open_files(position: Position | None) -> WarcFiles:
            form = self._form
            private = form.credentials and index == INDEX_NAME
            return WarcFiles(self._directory, names, self._max_bytes, self._warcinfo, position, form.max_age, private)

        return IndexedFiles(self._directory / index, open_files, at)

    def _sync_name(self) -> None:
        sync_path(self._directory.parent)  # where the directory's own name may be new

    def _page_members(self, page: PageRecord, fields: Fields, filename: str) -> list[Member]:
        """Return a page's records: of redirects to it, of its content, of the request for it, and about it."""
        warcinfo_id = self._records.warcinfo_id(filename)
        if page.captures and has_uri(page.captures[-1]):
            captures = [capture for capture in page.captures if has_uri(capture)]
            members = self._exchange_members(captures, page.key, warcinfo_id, hops=len(captures) - 1)
            fields = {**fields, "fetchTimeMs": captures[-1].milliseconds, "robots": _allowed_by(captures)}
        else:
            content = self._records.content(page, warcinfo_id)
            members = [Member(self._compress(content.data), content, page.key)]
        return self._described(members, page.key, warcinfo_id, fields)

    def _redirect_members(self, key: str, captures: Sequence[Capture], fields: Fields, filename: str) -> list[Member]:
        """Return the records of redirects from a document, and the one about them."""
        warcinfo_id = self._records.warcinfo_id(filename)
        members = self._exchange_members(captures, key, warcinfo_id, hops=len(captures))
        return self._described(members, key, warcinfo_id, {**fields, "robots": _allowed_by(captures)})

    def _exchange_of_no_page(self, capture: Capture, purpose: str, fields: Fields, filename: str) -> list[Member]:
        """Return the records of an exchange that is no page's. The URL may be asked for again: the date tells apart."""
        warcinfo_id = self._records.warcinfo_id(filename)
        key = f"{purpose} {capture.url} {capture.date}"
        content, request = self._exchanges.exchange(
            capture, key, warcinfo_id, hop=0, find=lambda _: None, purpose=purpose
        )
        members = [Member(self._compress(content.data), content), Member(self._compress(request))]
        return self._described(members, key, warcinfo_id, {"purpose": purpose, **fields})

    def _exchange_members(self, captures: Sequence[Capture], key: str, warcinfo_id: str, *, hops: int) -> list[Member]:
        """Return the records of exchanges, the first of which is so many hops away from the page."""
        members: list[Member] = []
        for hop, capture in zip(count(hops, -1), captures, strict=False):
            content, request = self._exchanges.exchange(capture, key, warcinfo_id, hop=hop, find=self._payloads.find)
            members.append(Member(self._compress(content.data), content, "" if hop else key))
            members.append(Member(self._compress(request)))
        return members

    def _described(self, members: list[Member], key: str, warcinfo_id: str, fields: Fields) -> list[Member]:
        """Return records with one more, about the last of them that has content."""
        content = _last_content(members)
        if about := {name: str(fields[name]) for name in cdxj.ABOUT if fields.get(name)}:
            members = [one._replace(about=about) if one.content is content else one for one in members]
        return [*members, Member(self._compress(self._records.metadata(key, content, warcinfo_id, fields)))]

    def _text_members(self, page: PageRecord, content: ContentRecord, text: str, filename: str) -> list[Member]:
        record = self._records.text(page, content, self._records.warcinfo_id(filename), text)
        return [Member(self._compress(record.data), record, page.key)]

    def _warcinfo(self, filename: str) -> bytes:
        fields = {**self._info.fields, "isPartOf": self._info.crawl_id.urn, **FORMAT_FIELDS}
        return self._compress(self._records.warcinfo(filename, fields))


def _allowed_by(captures: Sequence[Capture]) -> str | None:
    """Return what allowed some exchanges, each robots.txt once; None where none was obeyed."""
    return ", ".join(dict.fromkeys(capture.robots for capture in captures if capture.robots)) or None


def _last_content(members: Sequence[Member]) -> ContentRecord:
    return [member.content for member in members if member.content][-1]
