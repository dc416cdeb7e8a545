"""Any collection of WARC files as a corpus: Common Crawl's, ClueWeb09/12, this project's archives, any writer's."""

from __future__ import annotations

import hashlib
import json
import logging
import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Final

from crawl4llm.base.charsets import Html
from crawl4llm.base.command_lines import command, index_command
from crawl4llm.base.errors import CorruptRecord, InputError, MissingRecord, NoHtml, PageError, reading
from crawl4llm.base.html_tree import HtmlLink, HtmlTree, html_links
from crawl4llm.base.page_heads import page_head, with_cookies
from crawl4llm.base.pages import HeaderFields, Link, PageRecord
from crawl4llm.base.session_links import without_sessions
from crawl4llm.base.urls import normalise_url
from crawl4llm.optouts import as_text, from_text, is_noindex, said_in_tree
from crawl4llm.warc import (
    PAYLOAD_DIGEST,
    TARGET_URI,
    Name,
    RecordReader,
    StoredRecord,
    field_name,
    html_of_record,
    wat_links,
)
from simulate.warcs.files import list_files, read_failure
from simulate.warcs.index import FAILED, REVISITED, TEXT, Document, WarcIndex
from simulate.warcs.index_build import build_warc_index, is_current, points_path, settings_of, state_digest
from simulate.warcs.scan import PAGE, REFERS_TO_URI, TREC_ID

logger = logging.getLogger(__name__)

_MOST_HOPS: Final = 20
"""Redirects that are followed, as in browsers (Fetch Standard, 4.4)."""
_LANGUAGES: Final = (field_name("Language"), field_name("WARC-Identified-Content-Language"))


class WarcCorpus:
    """A collection of archive files, as :func:`simulate.warcs.files.list_files` finds them; keys are normalised URLs.

    Documents are pages: HTML with status 200, and the texts of ``conversion`` records. Their links come from the WAT
    file beside the archive file or, without one, from the HTML. A link has the key of the document that its URL leads
    to after redirects, or None if the collection lacks it. As in the paper, a simulated crawl sees the sampled pages,
    and spends no fetches on others.

    The archive of a live crawl is replayed as that crawl saw the web: each URL is a document of its own, redirects come
    at its fetch, and documents that failed in the crawl fail again.

    ``index`` is the folder of the index, which is made at the first opening, and updated when files have changed, with
    a progress bar. At most ``largest`` bytes of a page are read; a look-up of a larger page raises TooLarge.

    Raises InputError if there are no files or no pages, or if the index cannot be written.
    """

    name = "warc"

    def __init__(
        self,
        given: str | Path,
        index: Path,
        canonical_links: bool = False,
        *,
        largest: int | None = None,
    ) -> None:
        collection = list_files(given)
        if not is_current(collection, index, canonical_links):
            logger.info("Making the index of %s in %s", given, index)
            for fault in build_warc_index(collection, index, canonical_links).unreadable:
                logger.warning("Left out: %s", fault)
        self.__setstate__((str(given), collection.root, index, canonical_links, largest))

    def __getstate__(self) -> tuple[str, Path, Path, bool, int | None]:
        return self._opened_with

    def __setstate__(self, state: tuple[str, Path, Path, bool, int | None]) -> None:
        self._opened_with = given, root, index, canonical_links, largest = state
        self.given, self._canonical_links = given, canonical_links
        self._make = index_command(given, **settings_of(canonical_links))
        self._index_folder = index
        self._files: list[tuple[str, str | None, str | None, int]] = self._index.manifest["files"]
        self._replay: bool = self._index.manifest["replay"]
        self._root = root
        self._largest = largest
        self._reader: RecordReader[str] = RecordReader(
            lambda file: (root / file, points_path(index, file)), largest, f"; run {self._make}"
        )

    # -- one document -------------------------------------------------------------------------------------------------

    def page(self, key: str) -> PageRecord:
        """Return the page with its html, or text if none is held; outlinks are None without HTML and WAT."""
        document, hops = self._reach(key)
        key, stored = document.key, self._content(document)
        page = PageRecord(key, stored.record.url, stored.record.date, hops=hops)
        page.language = next(filter(None, map(stored.record.fields.text, _LANGUAGES)), None)
        said = from_text(document.signals)
        with reading(stored.at):
            page.outlinks = self._wat_links(document)
            if document.kind == TEXT:
                page.text = _text(stored)
            else:
                html = self._html(document, stored)
                page.html, tree = html.data, HtmlTree(html.data)
                said += said_in_tree(tree, "")
                page.head = with_cookies(page_head(tree, key, html.charset), _headers(stored))
                if page.outlinks is None:
                    page.outlinks = self._html_links(tree, key, html, stored)
        page.opt_outs, page.noindex = as_text(said) if said else "", is_noindex(said)
        return page

    def text(self, key: str) -> str:
        """Return the page's text in the WET file or a ``conversion`` record, possibly empty.

        Raises MissingRecord if there is neither.
        """
        document, _ = self._reach(key)
        if document.kind == TEXT:
            return _text(self._content(document))
        if (wet := self._files[document.file][1]) is not None:
            length = document.text_length
            return _text(self._reader.read(wet, document.text_offset, length)) if length else ""
        text = self._index.text_of(document)
        if text is None and document.kind == REVISITED:
            text = self._index.text_of(self._original(self._content(document))[0])
        if text is not None:
            return _text(self._content(text))
        if self._index.manifest["without_text"]:
            of = document.key
            raise MissingRecord(f"CORPUS {self.given}: neither a WET file nor a conversion has the text of {of}")
        return ""

    def html(self, key: str) -> bytes:
        """Return the page's HTML in UTF-8. Raises NoHtml if only its text is held."""
        document, _ = self._reach(key)
        if document.kind == TEXT:
            raise NoHtml(f"CORPUS {self.given}: holds only the text of {key}")
        return self._html(document, self._content(document)).data

    def outlinks(self, key: str) -> list[Link]:
        """Return the page's links in page order; empty without HTML and WAT."""
        document, _ = self._reach(key)
        if (links := self._wat_links(document)) is not None:
            return links
        if document.kind == TEXT:
            return []
        stored = self._content(document)
        with reading(stored.at):
            html = self._html(document, stored)
            return self._html_links(HtmlTree(html.data), document.key, html, stored)

    def inlinks(self, key: str) -> list[Link]:
        """Return an empty list: WARC files do not record inlinks."""
        self._reach(key)
        return []

    @property
    def knows_opt_outs(self) -> bool:
        """True if the files have the opt-outs of all documents: they hold the heads of all responses."""
        return not self._index.manifest["opt_outs_unknown"]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._is_known(key)

    def is_key(self, text: str) -> bool:
        """Return whether ``text`` is a normalised URL."""
        return "://" in text and normalise_url(text) == text

    # -- all documents ------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._index)

    def keys(self) -> Iterator[str]:
        """Yield all keys: files by name, records by offset."""
        return map(self._key_at, range(len(self)))

    def sample(self, n: int, seed: int) -> list[str]:
        """Return ``n`` distinct documents in the order drawn. Raises InputError if fewer are held."""
        if n > len(self):
            raise InputError(f"CORPUS {self.given}: holds {len(self)} documents; {n} cannot be drawn")
        return list(map(self._key_at, random.Random(seed).sample(range(len(self)), n)))

    def _key_at(self, position: int) -> str:
        return self._index.document(position).key

    def require(self, *parts: str) -> None:
        """Raise InputError unless the collection holds each of ``parts`` (``text html outlinks inlinks``)."""
        holds_html = PAGE in self._index.manifest["counts"]
        without_text = self._index.manifest["without_text"]
        settings = settings_of(self._canonical_links)
        build = command("corpus", "build", "--to", "DIR", simulation=True, CORPUS=self.given, **settings)
        faults = {
            "html": "" if holds_html else "holds no HTML; set SIMULATION_TEXT=corpus to use its texts",
            "text": without_text and f"{without_text} has no WET file with texts; set SIMULATION_TEXT=extracted",
            "outlinks": "" if holds_html or any(wat for _, _, wat, _ in self._files) else "holds neither HTML nor WAT",
            "inlinks": f"WARC files record no inlinks; make a ClueWeb22 tree that does: {build}",
        }
        for part in parts:
            if faults[part]:
                raise InputError(f"CORPUS {self.given}: {faults[part]}")

    def check(self) -> None:
        """Raise InputError if files have come, gone or changed since the corpus was opened."""
        if state_digest(list_files(self.given), self._canonical_links) != self._index.manifest["digest"]:
            raise InputError(f"CORPUS {self.given}: has changed since it was indexed; run {self._make}")

    def identity(self) -> str:
        """Return the SHA-256 of names and sizes of all files and of the options that decide on documents."""
        return hashlib.sha256(json.dumps([self._files, ("first", self._canonical_links)]).encode()).hexdigest()

    def close(self) -> None:
        """Release file handles; a later look-up opens them again."""
        self._reader.close()
        self.__dict__.pop("_index", None)

    # -- URLs ---------------------------------------------------------------------------------------------------------

    def resolve(self, url: str) -> str | None:
        """Return the key of the document at a URL, or with a WARC-TREC-ID.

        It accepts the variants of :func:`~crawl4llm.base.urls.lookup_form`, and a missing scheme. It follows redirects,
        revisits and indexed canonical links.
        """
        if "://" in url:
            key = normalise_url(url)
            return key if self._is_known(key) else self._follow(key)
        return self._named(url, TREC_ID) or self._follow(normalise_url(f"http://{url}"))

    def _is_known(self, key: str) -> bool:
        """Return whether there is a document of just this key; in a replay, also one that redirects."""
        return self._index.find(key) is not None or (self._replay and self._index.alias(key) is not None)

    def _link_target(self, url: str) -> str | None:
        if self._replay:
            return url if self._is_known(url) else None
        return self._follow(url)

    def _follow(self, key: str) -> str | None:
        for _ in range(_MOST_HOPS):
            found = self._index.look_up(key)
            if found is None:
                return None
            if isinstance(found, Document):
                return found.key
            if "://" not in found:
                return self._named(found, PAYLOAD_DIGEST)
            key = found
        return None

    def _named(self, name: str, field: Name) -> str | None:
        """Return the first document whose record has a name in a field."""
        for document in self._index.named(name):
            with suppress(PageError):
                if self._content(document).record.fields.text(field) == name:
                    return document.key
        return None

    # -- inside -------------------------------------------------------------------------------------------------------

    @cached_property
    def _index(self) -> WarcIndex:
        return WarcIndex(self._index_folder, self._make)

    def _reach(self, key: str) -> tuple[Document, tuple[str, ...]]:
        """Return the page at a key, and all keys to which redirects lead until there, in a replay.

        Raises MissingRecord, and NoPage if the crawl had none.
        """
        at, hops = key, tuple[str, ...]()
        while (document := self._index.find(at)) is None:
            target = self._index.alias(at) if self._replay and len(hops) < _MOST_HOPS else None
            if target is None:
                raise MissingRecord(f"CORPUS {self.given}: does not hold {key}")
            at, hops = target, (*hops, target)
        if document.kind == FAILED:
            log = self._root / self._files[document.file][0]
            raise read_failure(log, document.offset, document.length, self._make)
        return document, hops

    def _html(self, document: Document, stored: StoredRecord) -> Html:
        """Return the HTML in a record or, if it has none, in the record to which it refers."""
        try:
            if document.kind != REVISITED:
                return html_of_record(stored, self._largest)
            return html_of_record(self._original(stored)[1], self._largest, stored)
        except ValueError as error:
            raise CorruptRecord(f"{stored.at}: {error}") from error

    def _original(self, revisit: StoredRecord) -> tuple[Document, StoredRecord]:
        """Return the page that has the payload of a revisit; of several, the one at the URL that it names."""
        digest = revisit.record.fields.get(PAYLOAD_DIGEST)
        named = revisit.record.fields.get(REFERS_TO_URI).strip(b"<>")
        found: tuple[Document, StoredRecord] | None = None
        for document in self._index.named(digest):
            stored = self._content(document)
            if stored.record.fields.get(PAYLOAD_DIGEST) == digest:
                found = document, stored
                if stored.record.fields.get(TARGET_URI).strip(b"<>") == named:
                    break
        if found is None:
            url = named.decode("utf-8", "replace")
            raise MissingRecord(f"{revisit.at}: the page that it repeats, {url}, is not held")
        return found

    def _content(self, document: Document) -> StoredRecord:
        stored = self._reader.read(self._files[document.file][0], document.offset, document.length)
        if normalise_url(stored.record.url) != document.key:
            raise CorruptRecord(f"{stored.at}: is of another page; if the file has changed, run {self._make}")
        return stored

    def _wat_links(self, document: Document) -> list[Link] | None:
        """Return the links in the WAT file; None if the file is missing or does not have the page."""
        wat, key = self._files[document.file][2], document.key
        if wat is None or not document.links_length:
            return None
        stored = self._reader.read(wat, document.links_offset, document.links_length)
        try:
            links = wat_links(stored.record.block(stored.data), key)
        except ValueError as error:
            raise CorruptRecord(f"{stored.at}: not the JSON of a WAT file ({error})") from error
        return self._resolved(links, key)

    def _html_links(self, tree: HtmlTree, key: str, html: Html, stored: StoredRecord) -> list[Link]:
        """Return the links of a page as a live crawl follows them."""
        links = html_links(tree, key, html.charset)
        return self._resolved(without_sessions(links, key, _headers(stored)), key)

    def _resolved(self, links: Sequence[HtmlLink], key: str) -> list[Link]:
        resolved = ((link, self._link_target(link.url)) for link in links)
        return [Link(link.url, target, *link[1:]) for link, target in resolved if target != key]


def _headers(stored: StoredRecord) -> HeaderFields:
    """Return the fields of the HTTP head in a record; none if it has no such head."""
    return stored.http.fields.pairs() if stored.http else ()


def _text(stored: StoredRecord) -> str:
    return stored.record.block(stored.data).decode("utf-8", "replace")
