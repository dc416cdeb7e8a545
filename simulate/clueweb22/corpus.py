"""The corpus of ClueWeb22, as the publisher distributes it, or of any tree in its layout."""

from __future__ import annotations

import hashlib
import os
import random
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property, partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from crawl4llm.base.command_lines import index_command
from crawl4llm.base.errors import CorruptRecord, InputError, MissingRecord, PageError, TooLarge
from crawl4llm.base.pages import Link, PageRecord
from simulate.clueweb22 import records as tree
from simulate.clueweb22.files import Listing, check_files, kinds_held, list_files
from simulate.clueweb22.opt_outs import NAME as OPT_OUTS, OptOuts

if TYPE_CHECKING:
    from simulate.clueweb22.url_index import UrlIndex

_KIND_OF_PART: Final = {"text": tree.TXT, "html": tree.HTML, "outlinks": tree.OUTLINK, "inlinks": tree.INLINK}
_LARGEST_HEAD: Final = 1 << 20  # bytes that the head of an ``html`` record may have
_LARGEST_INLINKS: Final = 1 << 28


class ClueWeb22Corpus:
    """A ClueWeb22 tree: document keys are ClueWeb22-IDs.

    Any subset of the kinds' folders may be present, and in a folder any file may be missing. Its documents are the
    pages with content (``txt`` or ``html``; links, if neither folder exists). ``clueweb22-format.md`` lists quirks of
    the real data.

    ``link_id_position`` is the place of the id in a link, and ``target_prefix`` the beginning of the ids of links that
    count (see :func:`simulate.clueweb22.records.parse_links`). ``url_index`` is the folder of the URL index. At most
    ``largest`` bytes each of a page's HTML, text and outlinks are read; look-ups of larger ones raise TooLarge. Inlinks
    are no part of the page, and popular pages have many.

    Raises InputError if ``root`` is not such a tree.
    """

    name = "clueweb22"

    def __init__(
        self, root: str | Path, *, target_prefix: str = "", url_index: Path | None = None, largest: int | None = None
    ) -> None:
        self.root = Path(root)
        self._options: dict[str, Any] = {"target_prefix": target_prefix, "url_index": url_index, "largest": largest}
        self._largest = largest
        self._most: dict[str, int | None] = dict.fromkeys(tree.KINDS, largest)
        """Bytes that a record may have, by its kind."""
        if largest is not None:
            self._most |= {tree.HTML: largest + _LARGEST_HEAD, tree.INLINK: max(largest, _LARGEST_INLINKS)}
        self._url_index: UrlIndex | None = None
        self._kinds = kinds_held(self.root)
        if not self._kinds:
            expected = ", ".join(f"{kind}/" for kind in tree.KINDS)
            raise InputError(f"CORPUS {root}: not a ClueWeb22 tree: expected a folder with one of {expected}")
        content = tuple(kind for kind in self._kinds if kind in {tree.TXT, tree.HTML})
        self._document_kinds = content or self._kinds
        self._holds_only_links = not content
        self._files = tree.RecordFiles(self.root)
        self._parse_links = {
            kind: partial(tree.parse_links, kind=kind, target_prefix=target_prefix) for kind in tree.LIST_FIELD
        }

    def __reduce__(self) -> tuple[Callable[[], ClueWeb22Corpus], tuple[()]]:
        return partial(type(self), self.root, **self._options), ()

    # -- one document -------------------------------------------------------------------------------------------------

    def page(self, key: str) -> PageRecord:
        """Return the page with its html or, without it, its text; outlinks are None without their folder."""
        html = self._html(key)
        text = None if html else self._text(key)
        links = self._links(tree.OUTLINK, key)
        if html is None and text is None and not self._holds_only_links:
            raise self._missing(key)
        page = self._linked(key, links)
        for record in (text, html):  # of what several say, the last one's counts
            page.language = (record and record.language) or page.language
        if html:
            page.html, page.date, page.url = html.html, html.date, html.url
        if text:
            page.text = text.text
        if self._opt_outs is not None:
            page.opt_outs = self._opt_outs.of(key)
        page.url = page.url or self._url_beside_html(key, text or self._text(key), links)
        return page

    def outline(self, key: str, part: str) -> PageRecord:
        """Return the page for a caller that has already read its ``text`` or ``html`` (``part``). That part is left
        out, and only its URL is read. If the page's content is the other part, the page is whole."""
        kind = tree.HTML if tree.HTML in self._kinds else tree.TXT
        named = self._url_at_start(kind, key) if kind == _KIND_OF_PART[part] else ""
        if not named:
            return self.page(key)
        links = self._links(tree.OUTLINK, key)
        page = self._linked(key, links)
        page.url = named if kind == tree.HTML else self._url_beside_html(key, tree.TextRecord(named, "", ""), links)
        return page

    def text(self, key: str) -> str:
        """Return the clean text of a page, possibly empty."""
        return self._held(self._text(key), key, "text").text

    def html(self, key: str) -> bytes:
        """Return the page's HTML in UTF-8."""
        return self._held(self._html(key), key, "html").html

    def outlinks(self, key: str) -> list[Link]:
        """Return the page's links in page order; empty if the record is an empty line or the file is missing."""
        return self._links_of_document(tree.OUTLINK, key)

    def inlinks(self, key: str) -> list[Link]:
        """Return the links to the page, each with the key and URL of its source; empty as for outlinks."""
        return self._links_of_document(tree.INLINK, key)

    def url(self, key: str) -> str:
        """Return the page's URL: that of the html record; without one, the ``txt`` URL, completed if it is cut.

        ``txt`` URLs are cut at their first comma; ``outlink`` and ``inlink`` URLs are whole, but may be another page's
        (quirks 1 to 3). So a link record's URL counts if it begins like the ``txt`` URL, or without ``txt``.
        """
        html = self._html(key)
        return (html and html.url) or self._url_beside_html(key, self._text(key), self._links(tree.OUTLINK, key))

    def site(self, key: str) -> str:
        """Return a URL of the page's owner: :meth:`url`, perhaps cut at its first comma, which no host has."""
        return self._url_at_start(tree.HTML, key) or self._url_at_start(tree.TXT, key) or self.url(key)

    def __contains__(self, key: object) -> bool:
        place = tree.split_id(key) if isinstance(key, str) else None
        return place is not None and any(place[1] < self._files.count(kind, place[0]) for kind in self._document_kinds)

    def is_key(self, text: str) -> bool:
        """Return whether ``text`` has the shape of a ClueWeb22-ID."""
        return tree.split_id(text) is not None

    # -- all documents ------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self._first_numbers[-1]

    def keys(self) -> Iterator[str]:
        """Yield all ids, in ascending order."""
        for file_id, records in self._records:
            yield from (tree.format_id(file_id, record) for record in range(records))

    def sample(self, n: int, seed: int) -> list[str]:
        """Return ``n`` distinct documents in the order drawn. Raises InputError if fewer are held."""
        if n > len(self):
            raise InputError(f"CORPUS {self.root}: holds {len(self)} documents; {n} cannot be drawn")
        return list(map(self.key_at, random.Random(seed).sample(range(len(self)), n)))

    def key_at(self, number: int) -> str:
        """Return the id of a document by its number among all, in ascending order."""
        file = bisect_right(self._first_numbers, number) - 1
        return tree.format_id(self._records[file][0], number - self._first_numbers[file])

    def require(self, *parts: str) -> None:
        """Raise InputError unless the tree has the folder of each of ``parts`` (``text html outlinks inlinks``)."""
        for part in parts:
            kind = _KIND_OF_PART[part]
            if kind not in self._kinds:
                reason = f"the folder {kind}/ is missing, and a setting in use needs {part}"
                raise InputError(f"CORPUS {self.root}: {reason}")

    def check(self) -> None:
        """Raise InputError, naming the file, unless every data file is as long as its offset file says, and the side
        file of opt-outs is sound."""
        check_files(self.root, self._listing)
        if self._opt_outs is not None:
            self._opt_outs.check()

    @property
    def knows_opt_outs(self) -> bool:
        """True if a side file has the opt-outs of all pages."""
        return self._opt_outs is not None and self._opt_outs.known

    def identity(self) -> str:
        """Return the SHA-256 of the names and sizes of all data files and of the options for links."""
        digest = hashlib.sha256(repr((tree.FULL_ID_POSITION, self._options["target_prefix"])).encode())
        for kind, files in self._listing.items():
            for file_id, sizes in files.items():
                digest.update(f"\n{tree.data_path(Path(), kind, file_id).as_posix()} {sizes.data}".encode())
        return digest.hexdigest()

    def close(self) -> None:
        """Release file handles; a later look-up opens them again."""
        self._files.close()
        self._url_index = None
        self.__dict__.pop("_opt_outs", None)

    # -- URLs (for simulate.clueweb22.url_index) -------------------------------------------------------------------

    def resolve(self, url: str) -> str | None:
        """Return the id of the document at a URL; of several, the smallest. Raises InputError without an index."""
        if self._url_index is None:
            make = index_command(self.root)
            if (folder := self._options["url_index"]) is None:
                raise InputError(f"CORPUS {self.root}: no URL index; make it: {make}")
            from simulate.clueweb22.url_index import UrlIndex  # slow to import, and few crawls look URLs up

            self._url_index = UrlIndex(folder, self, make)
        return self._url_index.find(url)

    def url_files(self) -> list[tuple[str, str, int]]:
        """Return the data files that hold documents, with their records; the signature of each is its sizes in every
        kind."""
        held = self._listing.items()
        return [
            (name, " ".join(f"{kind}={files[name].data}" for kind, files in held if name in files), records)
            for name, records in self._records
        ]

    def urls_in(self, file: str) -> Iterator[tuple[int, str | None]]:
        """Yield record number and URL of the documents of a file; None for a damaged one."""
        records = max(self._files.count(kind, file) for kind in self._document_kinds)
        for record in range(records):
            url = None
            with suppress(PageError):
                url = self.url(tree.format_id(file, record))
            yield record, url

    # -- inside -------------------------------------------------------------------------------------------------------

    @cached_property
    def _opt_outs(self) -> OptOuts | None:
        """The side file of opt-outs; None if the tree has none. Raises InputError if it is damaged."""
        path = self.root / OPT_OUTS
        return OptOuts(path) if os.path.lexists(path) else None

    @cached_property
    def _listing(self) -> Listing:
        return list_files(self.root, self._kinds)

    @cached_property
    def _records(self) -> list[tuple[str, int]]:
        """File ids in ascending order, with their documents; the kind with the most records of a file counts."""
        records: dict[str, int] = {}
        for kind in self._document_kinds:
            for file_id, sizes in self._listing[kind].items():
                records[file_id] = max(sizes.records, records.get(file_id, 0))
        return sorted(records.items())

    @cached_property
    def _first_numbers(self) -> list[int]:
        """For each file, the documents in the files before it; at the end, all documents."""
        return list(accumulate((records for _, records in self._records), initial=0))

    def _html(self, key: str) -> tree.HtmlRecord | None:
        record = self._record(tree.HTML, key, tree.parse_html)
        if record is not None and self._largest is not None and len(record.html) > self._largest:
            raise self._files.too_large(tree.HTML, key)
        return record

    def _text(self, key: str) -> tree.TextRecord | None:
        return self._record(tree.TXT, key, tree.parse_text)

    def _links(self, kind: str, key: str) -> tree.LinkRecord | None:
        return self._record(kind, key, self._parse_links[kind])

    def _linked(self, key: str, links: tree.LinkRecord | None) -> PageRecord:
        page = PageRecord(key, url="", language=(links and links.language) or tree.language_of(key))
        if tree.OUTLINK in self._kinds:
            page.outlinks = links.links if links else []
        return page

    def _links_of_document(self, kind: str, key: str) -> list[Link]:
        record = self._links(kind, key)
        if record is None and key not in self:
            raise self._missing(key)
        return record.links if record else []

    def _url_at_start(self, kind: str, key: str) -> str:
        """Return the URL that a record names at its beginning; empty if there is none."""
        return tree.url_at_start(kind, self._files.start(kind, key), key) if kind in self._kinds else ""

    def _record(self, kind: str, key: str, parse: Callable[[bytes, str], tree.Record]) -> tree.Record | None:
        """Return a document's record of a kind; None if it has none. Raises as :meth:`RecordFiles.read` does."""
        if kind not in self._kinds and tree.split_id(key) is not None:
            return None
        return self._files.read(kind, key, parse, self._most[kind])

    def _url_beside_html(self, key: str, text: tree.TextRecord | None, outlinks: tree.LinkRecord | None) -> str:
        """Return the URL by the rule of :meth:`url`, for a page without html."""
        cut = text.url if text else ""
        if outlinks and _completes(outlinks.url, cut):
            return outlinks.url
        with suppress(CorruptRecord, TooLarge):  # no reason to lose the page: nothing else of it is read from there
            inlinks = self._links(tree.INLINK, key)
            if inlinks and _completes(inlinks.url, cut):
                return inlinks.url
        if not cut:
            raise self._missing(key, "URL")
        return cut

    def _held(self, record: tree.Record | None, key: str, part: str) -> tree.Record:
        """Return a record of the document. Raises MissingRecord if there is none."""
        if record is None:
            raise self._missing(key, part)
        return record

    def _missing(self, key: str, part: str = "") -> MissingRecord:
        return MissingRecord(f"CORPUS {self.root}: does not hold {f'the {part} of ' if part else ''}{key}")


def _completes(url: str, cut: str) -> bool:
    """Return whether ``url`` is ``cut``, or its form before it was cut at its first comma."""
    return bool(url) and (not cut or url == cut or url.startswith(f"{cut},"))
