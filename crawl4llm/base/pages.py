"""Pages, and the protocol of a corpus: pages, text and links by document key.

A *document key* is opaque to the crawler: a ClueWeb22-ID in one corpus, a normalised URL in another. A corpus is
read-only, cheap to open and safe to use on both sides of a fork. A pickled corpus opens its own files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from crawl4llm.base.page_heads import PageHead

HeaderFields = Sequence[tuple[bytes, bytes]]
"""Names and values of a message's header fields, in order."""

Truncation = Literal["length", "time", "disconnect", "unspecified"]
"""Why a body is incomplete (ISO 28500:2017, 5.13)."""


@dataclass(frozen=True, slots=True)
class Capture:
    """A request and its response."""

    url: str
    """The URL that was asked for, without its fragment."""
    date: str
    """Time at which the request was sent, UTC: ``2026-11-20T12:00:00.123456Z``."""
    method: str
    request_headers: HeaderFields
    request_body: bytes
    status: int
    reason: str
    headers: HeaderFields
    """The response's header fields as they came over the wire, with Content-Encoding and Transfer-Encoding if they are
    known."""
    exact_headers: bool
    """True if ``headers`` have the order and case of the wire."""
    body: bytes
    """The entity as sent: after transfer-decoding (RFC 9112, 7), before content-decoding (RFC 9110, 8.4)."""
    body_is_decoded: bool = False
    """True if only the content-decoded body is known, so that Content-Encoding in ``headers`` is untrue."""
    protocol: str | None = None
    """``http/1.0``, ``http/1.1``, ``h2``."""
    ip_address: str | None = None
    truncated: Truncation | None = None
    milliseconds: int | None = None
    """Duration from the request's first byte to the response's last, in milliseconds."""
    robots: str | None = None
    """WARC-Payload-Digest and WARC-Date of the record with the robots.txt that allowed the request; None if no
    robots.txt was obeyed."""


def utc_date(seconds_ago: float = 0.0) -> str:
    """Return the time now, or ``seconds_ago``, to the microsecond, in the form of a WARC-Date (ISO 28500:2017, 5.4)."""
    date = datetime.now(timezone.utc) - timedelta(seconds=seconds_ago)
    return date.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Link(NamedTuple):
    """A link of a page as the corpus records it."""

    url: str
    key: str | None
    """Document key of the target (for an inlink, of the source); None if the corpus gives it none."""
    anchor: str
    boilerplate: bool
    """True for a link inside the page's header or footer."""
    rel: str = ""
    language: str = ""
    """See :class:`crawl4llm.base.html_tree.HtmlLink` for both; empty if the corpus does not tell."""


@dataclass(slots=True)
class PageRecord:
    """A page as a fetch gives it to the crawler. Fields that the corpus does not hold are None."""

    key: str
    url: str
    date: str | None = None
    """Date of the capture, as W3C date-time in UTC (``2022-08-01T12:00:00Z``)."""
    html: bytes | None = None
    """The HTML in UTF-8."""
    text: str | None = None
    """The corpus's own clean text; only read if there is no html."""
    language: str | None = None
    outlinks: list[Link] | None = None
    hops: Sequence[str] = ()
    """Document keys to which redirects led from the requested key, this page's own last; empty without redirects."""
    captures: Sequence[Capture] = ()
    """The exchanges that led to the page, redirects first; empty for a page of a corpus."""
    opt_outs: str = ""
    """Opt-outs of the site and the page, in the form of :func:`crawl4llm.optouts.said.as_text`."""
    follows: bool = True
    """True if its links may be followed."""
    noindex: bool = False
    """True if its head or X-Robots-Tag asks not to be indexed."""
    head: PageHead | None = None
    """Its head; None if the corpus does not tell."""
    beside: int = 0
    """Memory in bytes that the page takes besides its content and links, for example for its text."""


class Corpus(Protocol):
    """A read-only collection of pages. One contract test suite runs against every implementation.

    Look-ups raise :class:`crawl4llm.base.errors.MissingRecord` for a document that is not held, and
    :class:`crawl4llm.base.errors.CorruptRecord` for a damaged record. Both messages name the file.
    """

    name: str
    """Kind of corpus, for logs and records: ``clueweb22``, ``warc``."""

    def page(self, key: str) -> PageRecord:
        """Return all that a fetch gives: html (or text, if no html is held) and the outlinks."""

    def text(self, key: str) -> str:
        """Return the corpus's clean text of a page, possibly empty."""

    def html(self, key: str) -> bytes:
        """Return the page's HTML in UTF-8."""

    def outlinks(self, key: str) -> list[Link]:
        """Return the page's links in page order; empty if none are recorded."""

    def inlinks(self, key: str) -> list[Link]:
        """Return the links to the page; empty if none are recorded."""

    def __contains__(self, key: object) -> bool:
        """Return whether the corpus holds the document's content."""

    def __len__(self) -> int:
        """Return the number of documents held."""

    def is_key(self, text: str) -> bool:
        """Return whether ``text`` has the shape of a document key, held or not."""

    def keys(self) -> Iterator[str]:
        """Yield all document keys, in a fixed order."""

    def sample(self, n: int, seed: int) -> list[str]:
        """Return ``n`` distinct documents drawn uniformly; equal for an equal corpus, ``n`` and ``seed``."""

    def resolve(self, url: str) -> str | None:
        """Return the key of the document at a URL, if one is held. Raises InputError without an index of URLs."""

    def require(self, *parts: str) -> None:
        """Raise InputError unless the corpus holds each of ``parts`` (``text html outlinks inlinks``)."""

    def identity(self) -> str:
        """Return a hex digest, equal for equal corpora at any place; cheap, because it reads names and sizes only."""

    def check(self) -> None:
        """Raise InputError, naming the file, if a file is missing or cut short; quick, for the start of a crawl."""

    def close(self) -> None:
        """Close all files; a later look-up opens them again."""
