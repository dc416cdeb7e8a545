"""Pages, and the protocol of a corpus: pages, text and links by document key.

A *document key* is opaque to the crawler: a ClueWeb22-ID in one corpus, a normalised URL in another. A corpus is
read-only, cheap to open and safe to use on both sides of a fork; pickling one yields a corpus that opens its files
anew.
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
"""Why a body is not whole (ISO 28500:2017, 5.13)."""


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
    """The response's, as they came over the wire, Content-Encoding and Transfer-Encoding included where known."""
    exact_headers: bool
    """Whether ``headers`` have the order and case of the wire."""
    body: bytes
    """The entity as sent: after transfer-decoding (RFC 9112, 7), before content-decoding (RFC 9110, 8.4)."""
    body_is_decoded: bool = False
    """Whether the body could be had only after content-decoding, so that Content-Encoding in ``headers`` is untrue."""
    protocol: str | None = None
    """``http/1.0``, ``http/1.1``, ``h2``."""
    ip_address: str | None = None
    truncated: Truncation | None = None
    milliseconds: int | None = None
    """Duration, from the request's first byte to the response's last."""
    robots: str | None = None
    """The robots.txt that allowed it: WARC-Payload-Digest and WARC-Date of its record; None where none was obeyed."""


def utc_date(seconds_ago: float = 0.0) -> str:
    """Return the time now, or a little before, to the microsecond, as a WARC-Date has it (ISO 28500:2017, 5.4)."""
    date = datetime.now(timezone.utc) - timedelta(seconds=seconds_ago)
    return date.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Link(NamedTuple):
    """One link of a page, as the corpus records it."""

    url: str
    key: str | None
    """Document key of the target (of the source, for an inlink); None where the corpus gives it none."""
    anchor: str
    boilerplate: bool
    """True for a link inside the page's header or footer."""
    rel: str = ""
    language: str = ""
    """Both as :class:`crawl4llm.base.html_tree.HtmlLink` has them; empty if the corpus does not tell."""


@dataclass(slots=True)
class PageRecord:
    """One page, as a fetch gives it to the crawler. Fields the corpus does not hold are None."""

    key: str
    url: str
    date: str | None = None
    """Date of the capture, as W3C date-time in UTC (``2022-08-01T12:00:00Z``)."""
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
    opt_outs: str = ""
    """What site and page say of the uses of the page, as :func:`crawl4llm.optouts.said.as_text` has it."""
    follows: bool = True
    """Whether its links may be followed."""
    noindex: bool = False
    """Whether it asks, in its head or by X-Robots-Tag, to be kept out of indexes."""
    head: PageHead | None = None
    """What it says of itself; None if the corpus does not tell."""
    beside: int = 0
    """Bytes that wait with it in memory, such as its text, besides its content and links."""


class Corpus(Protocol):
    """A read-only collection of pages. One contract test suite runs against every implementation.

    Look-ups raise :class:`crawl4llm.base.errors.MissingRecord` for a document that is not held and
    :class:`crawl4llm.base.errors.CorruptRecord` for one whose record is damaged, each with a message that names the
    file.
    """

    name: str
    """Kind of corpus, for logs and records: ``clueweb22``, ``warc``."""

    def page(self, key: str) -> PageRecord:
        """Return everything a fetch gives: html (or, where none is held, text) and the outlinks."""

    def text(self, key: str) -> str:
        """Return the corpus's clean text of a page, possibly empty."""

    def html(self, key: str) -> bytes:
        """Return the page's HTML in UTF-8."""

    def outlinks(self, key: str) -> list[Link]:
        """Return the page's links in page order; empty where none are recorded."""

    def inlinks(self, key: str) -> list[Link]:
        """Return the links to the page; empty where none are recorded."""

    def __contains__(self, key: object) -> bool:
        """Return whether the corpus holds the document's content."""

    def __len__(self) -> int:
        """Return the number of documents held."""

    def is_key(self, text: str) -> bool:
        """Return whether ``text`` has the shape of a document key, held or not."""

    def keys(self) -> Iterator[str]:
        """Yield all document keys, in a fixed order."""

    def sample(self, n: int, seed: int) -> list[str]:
        """Return ``n`` distinct documents drawn uniformly; the same for the same corpus, ``n`` and ``seed``."""

    def resolve(self, url: str) -> str | None:
        """Return the key of the document at a URL, if one is held. Raises InputError without an index of URLs."""

    def require(self, *parts: str) -> None:
        """Raise InputError unless the corpus holds each of ``parts`` (``text html outlinks inlinks``)."""

    def identity(self) -> str:
        """Return a hex digest, equal for equal corpora wherever they lie; cheap (names and sizes, not contents)."""

    def check(self) -> None:
        """Raise InputError, naming the file, where one is missing or cut short; quick, for the start of a crawl."""

    def close(self) -> None:
        """Release file handles; a later look-up opens them again."""
