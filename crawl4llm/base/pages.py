"""What every corpus offers: pages, text and links by document key.

A *document key* is opaque to the crawler: a ClueWeb22-ID in one corpus, a normalised URL in another. A corpus is
read-only, cheap to open and safe to use on both sides of a fork; pickling one yields a corpus that opens its files
anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from crawl4llm.base.capture import Capture


class Link(NamedTuple):
    """One link of a page, as the corpus records it."""

    url: str
    key: str | None
    """Document key of the target (of the source, for an inlink); None where the corpus gives it none."""
    anchor: str
    boilerplate: bool
    """True for a link inside the page's header or footer."""


@dataclass(slots=True)
class PageRecord:
    """One page, as a fetch gives it to the crawler. Fields the corpus does not hold are None."""

    key: str
    url: str
    date: str | None = None
    """When the page was captured, as W3C date-time in UTC (``2022-08-01T12:00:00Z``)."""
    html: bytes | None = None
    """The HTML in UTF-8."""
    text: str | None = None
    """The corpus's own clean text; only read where there is no html."""
    language: str | None = None
    outlinks: list[Link] | None = None
    hops: Sequence[str] = ()
    """Document keys that redirects led to from the key that was asked for, this page's own last; none without any."""
    captures: Sequence[Capture] = ()
    """The exchanges that led to it, redirects first, its own last; none where it comes from a corpus."""


class Corpus(Protocol):
    """A read-only collection of pages. One contract test suite runs against every implementation.

    Look-ups raise :class:`crawl4llm.base.errors.MissingRecord` for a document that is not held and
    :class:`crawl4llm.base.errors.CorruptRecord` for one whose record is damaged, each with a message that names the
    file.
    """

    name: str
    """What kind of corpus this is, for logs and records: ``clueweb22``, ``warc``."""

    def page(self, key: str) -> PageRecord:
        """Everything a fetch gives: html (or, where none is held, text) and the outlinks."""
        ...

    def text(self, key: str) -> str:
        """The corpus's clean text of a page, possibly empty."""
        ...

    def html(self, key: str) -> bytes:
        """The page's HTML in UTF-8."""
        ...

    def outlinks(self, key: str) -> list[Link]:
        """The page's links in page order; empty where none are recorded."""
        ...

    def inlinks(self, key: str) -> list[Link]:
        """The links to the page; empty where none are recorded."""
        ...

    def __contains__(self, key: object) -> bool:
        """Whether the corpus holds the document's content."""
        ...

    def __len__(self) -> int:
        """Number of documents held."""
        ...

    def is_key(self, text: str) -> bool:
        """Whether ``text`` has the shape of a document key, held or not."""
        ...

    def keys(self) -> Iterator[str]:
        """All document keys, in a fixed order."""
        ...

    def sample(self, n: int, seed: int) -> list[str]:
        """``n`` distinct documents drawn uniformly; the same for the same corpus, ``n`` and ``seed``."""
        ...

    def resolve(self, url: str) -> str | None:
        """The key of the document at a URL, through the corpus's URL index; None where it holds none.

        Raises InputError where the index has not been built.
        """
        ...

    def require(self, *parts: str) -> None:
        """Raise InputError unless the corpus holds each of ``parts`` (``text html outlinks inlinks``)."""
        ...

    def identity(self) -> str:
        """A hex digest that is equal for equal corpora, wherever they lie; cheap (names and sizes, not contents)."""
        ...

    def close(self) -> None:
        """Release file handles; a later look-up opens them again."""
        ...
