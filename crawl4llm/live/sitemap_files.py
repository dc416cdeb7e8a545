"""Sitemaps: which ones a robots.txt names, and the URLs in one (sitemaps.org/protocol.html). Bytes in, URLs out.

Read by expat, as a stream: memory is bounded by what is returned, whatever a file holds. Scrapy's own reader keeps all
elements that are none of a sitemap's; ultimate-sitemap-parser downloads by itself, and unpacks without a bound
(GHSA-8823-qg2x-pv9f). XML is read up to its first fault, and has no document type.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple
from xml.parsers import expat  # no entities: a document type ends the reading

from crawl4llm.base.references import BaseUrl
from crawl4llm.base.urls import BLANKS
from crawl4llm.live.fetching import HAS_HOST
from crawl4llm.optouts.robots_rules import text_of

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
_MOST_NAMES: Final = 1000
"""Different names of elements and attributes; expat keeps them all."""
_LINE = re.compile(r"^[ \t]*site-?map[ \t]*:[ \t]*([^\s#]+)", re.IGNORECASE | re.MULTILINE)


class Listing(NamedTuple):
    """What a sitemap has; each URL once, as document keys."""

    pages: list[str]
    maps: list[str]
    """Other sitemaps, where it is an index."""


class _Enough(Exception):
    """No more is to be read."""


def named_sitemaps(robots: bytes, site: str) -> list[str]:
    """Return the sitemaps that the robots.txt of a site names, the first ones. They belong to no group (RFC 9309,
    2.2.4)."""
    text = text_of(robots).replace("\r", "\n")
    named = (_key(found[1], f"{site}/robots.txt") for found in _LINE.finditer(text))
    return list(dict.fromkeys(filter(None, named)))[:MOST_NAMED]


def read_sitemap(data: bytes, url: str, most: int, is_wanted: Callable[[str], bool]) -> Listing | None:
    """Return what a sitemap has, XML or text, gzip or not, also where it is cut: the first ``most`` pages of those that
    are wanted. None where it is no sitemap."""
    reader = _Reader(url, most, is_wanted)
    with suppress(_Enough, zlib.error, expat.ExpatError):
        for part in _parts(data):
            reader.feed(part)
    return Listing(list(reader.pages), list(reader.maps)) if reader.is_sitemap else None


def _parts(data: bytes) -> Iterator[bytes]:
    """Yield the uncompressed data in parts, as far as a sitemap may go."""
    packed = zlib.decompressobj(wbits=31) if data.startswith(b"\x1f\x8b") else None
    size = 0
    for start in range(0, len(data), _CHUNK):
        part = data[start : start + _CHUNK]
        while part and size < _UNPACKED:
            unpacked = part if packed is None else packed.decompress(part, _CHUNK)
            part = b"" if packed is None else packed.unconsumed_tail
            size += len(unpacked)
            yield unpacked
    if len(data) < MOST_BYTES:
        yield b"\n"  # that the last line may lack


class _Reader:
    """Collects URLs from the parts of a sitemap."""

    def __init__(self, url: str, most: int, is_wanted: Callable[[str], bool]) -> None:
        self._url, self._most, self._is_wanted = url, most, is_wanted
        self.pages: dict[str, None] = {}
        self.maps: dict[str, None] = {}
        self.is_sitemap = False
        self._parser: Any = None
        self._is_text = False
        self._rest = b""
        """Of text, the beginning of a line."""
        self._names: set[str] = set()
        self._is_heard = False
        """Whether the parser has found anything in the part."""
        self._silent = 0
        """Bytes in which it has not."""
        self._prefix = ""
        """Of a sitemap's own elements."""
        self._within: str | None = None
        """``url`` or ``sitemap``, within such an element."""
        self._loc: list[str] | None = None
        self._length = 0

    def feed(self, part: bytes) -> None:
        """Take a part. Raises _Enough and ExpatError."""
        if self._parser is None and not self._is_text:
            self._begin(part)
        if not self._is_text:
            if not self.is_sitemap and self._silent == 0 and not part.startswith((b"\xff", b"\xfe")):
                part = part.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")  # which servers put before <?xml
            self._is_heard = False
            self._parser.Parse(part, False)
            self._silent = 0 if self._is_heard else self._silent + len(part)
            if self._silent > _LONGEST_TAG:
                raise _Enough
            return
        *lines, rest = (self._rest + part).split(b"\n")
        self._rest = rest[: _LONGEST + 1]  # one that is too long stays so
        for line in lines:
            if line.lstrip().startswith((b"http://", b"https://")):
                self.is_sitemap = True
                self._add(self.pages, line.decode("utf-8", "replace"))

    def _begin(self, part: bytes) -> None:
        self._is_text = not part.lstrip(b"\xef\xbb\xbf\xff\xfe\x00 \t\r\n").startswith(b"<")
        if not self._is_text:
            self._parser = expat.ParserCreate(intern=None)
            self._parser.StartDoctypeDeclHandler = self._doctype
            self._parser.StartElementHandler = self._start
            self._parser.EndElementHandler = self._end
            self._parser.CharacterDataHandler = self._characters

    def _doctype(self, *_: Any) -> None:
        raise _Enough

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._is_heard = True
        self._names.update((name, *attributes))
        if len(self._names) > _MOST_NAMES:
            raise _Enough
        prefix, _, kind = name.rpartition(":")
        if not self.is_sitemap:
            if kind not in {"urlset", "sitemapindex"}:
                raise _Enough
            self.is_sitemap, self._prefix = True, prefix
        if prefix != self._prefix:  # such as image:loc
            return
        if kind in {"url", "sitemap"}:
            self._within = kind
        elif kind == "loc" and self._within is not None:
            self._loc, self._length = [], 0

    def _characters(self, text: str) -> None:
        self._is_heard = True
        if self._loc is not None:
            self._length += len(text)
            if self._length <= _LONGEST:
                self._loc.append(text)

    def _end(self, name: str) -> None:
        prefix, _, kind = name.rpartition(":")
        if prefix != self._prefix:
            return
        if kind == "loc" and self._loc is not None:
            if self._length <= _LONGEST:
                self._add(self.pages if self._within == "url" else self.maps, "".join(self._loc))
            self._loc = None
        elif kind == self._within:
            self._within = None

    def _add(self, found: dict[str, None], given: str) -> None:
        key = _key(given, self._url)
        if key is None or (found is self.pages and not self._is_wanted(key)):
            return
        found[key] = None
        if len(self.pages) >= self._most or len(self.maps) >= MOST_NAMED:
            raise _Enough


def _key(given: str, base: str) -> str | None:
    """Return the document key of a URL; None where it is none of the web."""
    given = given.strip(BLANKS)
    if len(given) > _LONGEST:
        return None
    key = BaseUrl(base).resolve(given)
    return key if key is not None and HAS_HOST.match(key) else None
