"""Sitemap files: those that a robots.txt names, and the URLs in one (sitemaps.org/protocol.html). Bytes in, URLs out.

Expat reads them as a stream: the result limits the memory, whatever a file holds. Scrapy's own reader keeps all
elements that a sitemap does not define; ultimate-sitemap-parser downloads by itself, and unpacks without a limit
(GHSA-8823-qg2x-pv9f). XML is read up to its first error, and may have no document type.

Files are converted to UTF-8 for expat, which raises ValueError for other encodings of several bytes a character. The
encoding is that of the byte order mark or of the XML declaration (XML 1.0, appendix F.1), else UTF-8.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple
from xml.parsers import expat  # no entities: a document type ends the reading

from crawl4llm.base.charsets import MARKS, UNMARKED, UTF_8, codec_of, declared_charset
from crawl4llm.base.compression import Damaged, inflate_pieces, is_marked
from crawl4llm.base.urls import BLANKS, BaseUrl, normalise_url
from crawl4llm.live.fetching import HAS_HOST
from crawl4llm.optouts import text_of

MOST_BYTES: Final = 10 << 20
"""Of a sitemap, as they come over the wire; one that has as many may be cut."""
MOST_NAMED: Final = 10
"""Sitemaps that are taken of a robots.txt, and of an index."""
_UNPACKED: Final = 52_428_800
"""Bytes that a sitemap may have, uncompressed."""
_LONGEST: Final = 2048
"""Characters of a URL."""
_CHUNK: Final = 1 << 16
_LONGEST_TAG: Final = 1 << 20
"""Bytes, roughly, that expat keeps of one tag or comment."""
_MOST_ALTERNATES: Final = 500
"""Translations that are heeded of an entry."""
_MOST_NAMES: Final = 1000
"""Different names of elements and attributes; expat keeps them all."""
_DECLARED = re.compile(rb"""\s*<\?xml\s[^>]{0,200}?\sencoding\s*=\s*["']([\w.:-]{1,40})["']""", re.ASCII)
_LINE = re.compile(r"^[ \t]*site-?map[ \t]*:[ \t]*([^\s#]+)", re.IGNORECASE | re.MULTILINE)


_ROOTS: Final = {"urlset", "sitemapindex", "rss", "feed", "RDF"}
"""Of sitemaps, and of feeds, which a site may have as sitemaps (sitemaps.org/protocol.html#otherformats): RSS 2.0, Atom
and RSS 1.0."""
_ENTRIES: Final = {"url": "loc", "sitemap": "loc", "item": "link", "entry": "link"}
"""Entries, and the element of each that has the URL; Atom's has it in an attribute (RFC 4287, 4.2.7)."""
_WEB_ADDRESS = re.compile(r"\s*https?://", re.IGNORECASE)
_BEFORE: Final = "\ufeff\0 \t\r\n"


class Listing(NamedTuple):
    """The content of a sitemap; each URL once, as document keys."""

    pages: list[str]
    maps: list[str]
    """Other sitemaps, if it is an index."""
    others: int = 0
    """Pages that it says to be in languages that are not wanted."""


class _Enough(Exception):
    """No more is to be read."""


def named_sitemaps(robots: bytes, site: str) -> list[str]:
    """Return the sitemaps that the robots.txt of a site names, the first ones. They belong to no group (RFC 9309,
    2.2.4)."""
    text = text_of(robots).replace("\r", "\n")
    named = (_key(found[1], f"{site}/robots.txt") for found in _LINE.finditer(text))
    return list(dict.fromkeys(filter(None, named)))[:MOST_NAMED]


def read_sitemap(
    data: bytes,
    url: str,
    most: int,
    is_wanted: Callable[[str], bool],
    speaks: Callable[[Collection[str]], bool] = lambda _: True,
) -> Listing | None:
    """Return the content of a sitemap (XML, a feed or text, gzip or not), even if it is cut: the first ``most`` pages
    of those that are wanted. None if it is no sitemap. ``speaks``: whether a page is wanted that is in one of some
    languages, as ``hreflang`` has them
    (developers.google.com/search/docs/specialty/international/localized-versions#sitemap)."""
    reader = _Reader(url, most, is_wanted, speaks)
    with suppress(_Enough, Damaged, expat.ExpatError):
        for part in _decoded(_parts(data)):
            reader.feed(part)
        if len(data) < MOST_BYTES:
            reader.feed("\n")  # that the last line may lack
    with suppress(_Enough):
        reader.end_entry()
    return Listing(list(reader.pages), list(reader.maps), reader.others) if reader.is_sitemap else None


def _parts(data: bytes) -> Iterator[bytes]:
    """Yield the uncompressed data in parts, as far as a sitemap may go. Raises Damaged."""
    if is_marked(data, "gzip"):
        return inflate_pieces(data, "gzip", _UNPACKED, _CHUNK)
    return (data[start : start + _CHUNK] for start in range(0, len(data), _CHUNK))


def _decoded(parts: Iterator[bytes]) -> Iterator[str]:
    """Yield the text of the parts; undecodable bytes become U+FFFD."""
    first = next(parts, b"")
    while len(first) < _LONGEST and (more := next(parts, b"")):  # a gzip member may hold a byte
        first += more
    decoder = codec_of(_charset(first)).incrementaldecoder("replace")
    yield decoder.decode(first)
    for part in parts:
        yield decoder.decode(part)


def _charset(data: bytes) -> str:
    """Return the charset of a sitemap that begins so."""
    for start, charset in {**MARKS, **UNMARKED}.items():
        if data.startswith(start):
            return charset
    declared = _DECLARED.match(data)
    return (declared and declared_charset(declared[1])) or UTF_8


class _Reader:
    """Collects URLs from the parts of a sitemap."""

    def __init__(
        self, url: str, most: int, is_wanted: Callable[[str], bool], speaks: Callable[[Collection[str]], bool]
    ) -> None:
        self._url, self._most, self._is_wanted, self._speaks = url, most, is_wanted, speaks
        self._own = normalise_url(url)
        """Which an empty element would be resolved to."""
        self.pages: dict[str, None] = {}
        self.maps: dict[str, None] = {}
        self.is_sitemap = False
        self._parser: Any = None
        self._is_text: bool | None = None
        """None before anything but blanks has come."""
        self._rest = ""
        """Of text, the beginning of a line."""
        self._names: set[str] = set()
        self._is_heard = False
        """True if the parser has found anything in the part."""
        self._silent = 0
        """Bytes in which it has not."""
        self._prefix = ""
        """Of a sitemap's own elements."""
        self._within: str | None = None
        """The name of the entry within which the parser is."""
        self._loc: str | None = None
        self._page = ""
        """The URL of the entry, until that ends."""
        self._alternates: list[tuple[str, str]] = []
        """Languages and URLs that the entry names."""
        self.others = 0

    def feed(self, part: str) -> None:
        """Take a part. Raises _Enough and ExpatError."""
        if self._is_text is None:
            part = part.lstrip(_BEFORE)  # which servers put before <?xml
            if not part:
                return
            self._begin(part)
        if self._is_text:
            self._read_lines(part)
            return
        self._is_heard = False
        self._parser.Parse(part.encode(), False)
        self._silent = 0 if self._is_heard else self._silent + len(part)
        if self._silent > _LONGEST_TAG:
            raise _Enough

    def _begin(self, part: str) -> None:
        self._is_text = not part.startswith("<")
        if not self._is_text:
            self._parser = expat.ParserCreate("utf-8", intern=None)
            self._parser.StartDoctypeDeclHandler = self._doctype
            self._parser.StartElementHandler = self._start
            self._parser.EndElementHandler = self._end
            self._parser.CharacterDataHandler = self._characters

    def _read_lines(self, part: str) -> None:
        *lines, rest = (self._rest + part).replace("\r", "\n").split("\n")
        self._rest = rest[: _LONGEST + 1]  # one that is too long stays so
        for line in lines:
            if _WEB_ADDRESS.match(line):
                self.is_sitemap = True
                self._add(self.pages, line)

    def _doctype(self, *_: Any) -> None:
        raise _Enough

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._is_heard = True
        self._names.update((name, *attributes))
        if len(self._names) > _MOST_NAMES:
            raise _Enough
        prefix, _, kind = name.rpartition(":")
        if kind == "link" and self._within == "url" and "hreflang" in attributes:
            self._note_alternate(attributes)
            return
        if not self.is_sitemap:
            if kind not in _ROOTS:
                raise _Enough
            self.is_sitemap, self._prefix = True, "" if kind == "RDF" else prefix
        if prefix != self._prefix:  # such as image:loc
            return
        if kind in _ENTRIES:
            if self._loc is None:  # some write <loc><url>
                self._within = kind
        elif self._within is not None and kind == _ENTRIES[self._within]:
            if "href" not in attributes:
                self._loc = ""
            elif attributes.get("rel", "alternate") == "alternate":
                self._add(self.pages, attributes["href"])

    def _characters(self, text: str) -> None:
        self._is_heard = True
        if self._loc is not None and len(self._loc) <= _LONGEST:  # what is too long stays so
            self._loc += text

    def _end(self, name: str) -> None:
        prefix, _, kind = name.rpartition(":")
        if prefix != self._prefix:
            return
        if self._loc is not None and self._within is not None and kind == _ENTRIES[self._within]:
            given, self._loc = self._loc, None
            if len(given) <= _LONGEST:
                self._take(given)
        elif kind == self._within and self._loc is None:
            self._within = None
            self.end_entry()

    def _take(self, given: str) -> None:
        """Take the URL of an entry; one of a ``url`` when all of the entry is known."""
        if self._within == "url":
            if self._page:
                self.end_entry()
            self._page = given.strip()
        else:
            self._add(self.maps if self._within == "sitemap" else self.pages, given)

    def _note_alternate(self, attributes: dict[str, str]) -> None:
        """Note a translation that an entry names, itself too (``xhtml:link``)."""
        language, url = attributes["hreflang"], attributes.get("href", "")
        if len(self._alternates) < _MOST_ALTERNATES and max(len(language), len(url)) <= _LONGEST:
            self._alternates.append((language.strip().lower(), url.strip()))

    def end_entry(self) -> None:
        """Take the page of an entry, unless that says that it is in another language than those wanted."""
        page, self._page = self._page, ""
        said = [language for language, url in self._alternates if url == page]
        self._alternates = []
        if not page:
            return
        if not said or self._speaks(said):
            self._add(self.pages, page)
        else:
            self.others += 1

    def _add(self, found: dict[str, None], given: str) -> None:
        key = _key(given, self._url)
        if key is None or key == self._own or (found is self.pages and not self._is_wanted(key)):
            return
        found[key] = None
        if len(self.pages) >= self._most or len(self.maps) >= MOST_NAMED:
            raise _Enough


def _key(given: str, base: str) -> str | None:
    """Return the document key of a URL; None if it is not of the web."""
    given = given.strip().strip(BLANKS)
    if len(given) > _LONGEST:
        return None
    key = BaseUrl(base).resolve(given)
    return key if key is not None and HAS_HOST.match(key) else None
