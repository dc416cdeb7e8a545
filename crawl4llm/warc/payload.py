"""Payloads of archived HTTP responses, decoded: transfer coding, content coding, charset.

Archives hold bodies as they came, or decoded under the head of the coded ones; so a coding is undone only if the body
has it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from types import NoneType
from typing import Any, Final, NamedTuple

from crawl4llm.base import charsets
from crawl4llm.base.chunked import joined
from crawl4llm.base.compression import CODINGS, Damaged, InflateError, TooMuch, inflate_start, is_marked
from crawl4llm.base.errors import Bomb, TooLarge
from crawl4llm.base.html_tree import FoundLink, HtmlLink, distinct_links, refresh_target, relations
from crawl4llm.base.input_files import parse_json
from crawl4llm.warc.records import CONTENT_TYPE, Fields, HttpHead, Record, field_name

_TRANSFER_ENCODING: Final = field_name("Transfer-Encoding")
_CONTENT_ENCODING: Final = field_name("Content-Encoding")
_LARGEST_BODY: Final = 1 << 28
"""Most bytes of an inflated body if no limit is given; the rest is cut off."""
_NO_BOMB, _MOST_RATIO = 1 << 20, 100
"""Bytes to which any body may unpack, and the largest ratio; of 2,500 real bodies the highest ratio is 29."""
_CHUNKED = re.compile(rb"(?:^|,)[ \t]*chunked[ \t]*(?:,|$)", re.IGNORECASE)
_QUOTED = re.compile(rb'"[^"]*"?')
_MEDIA_TYPE = re.compile(rb"[\w!#$%&'*+.^`|~-]+/[\w!#$%&'*+.^`|~-]+")
_LONGEST_CACHED: Final = 128
"""Most bytes of a Content-Type that is cached; a collection has few different ones."""
_HTML_TYPES: Final = {b"text/html", b"application/xhtml+xml", b"application/vnd.wap.xhtml+xml"}
_LOOKS_LIKE_HTML = re.compile(rb"[\s\xef\xbb\xbf]*<(?:!doctype html|html|head|title|body|!--)", re.IGNORECASE)
_MOST_CODINGS: Final = 5
"""Most codings of one body; servers send one or two, and each can unpack to as much as the limit (curl has this bound
too)."""


def html_of(body: bytes, fields: Fields, most: int | None = None, *, as_sent: bool = False) -> charsets.Html:
    """Return the HTML of a response's body, in UTF-8, as :func:`crawl4llm.base.charsets.html_in_utf8` does.

    ``fields`` are those of the response's head. Raises ValueError if a coding is damaged or there are too many. Raises
    Bomb for a body that unpacks to far more than its own size, and TooLarge for one of more than ``most`` bytes, coded
    or not.

    A coded body that breaks off is decoded as far as possible. A body from a server, ``as_sent``, is cut at ``most``
    bytes instead, and must be in the codings of its head.
    """
    return charsets.html_in_utf8(
        decoded(body, fields, most, as_sent=as_sent), fields.listed(CONTENT_TYPE).decode("latin-1")
    )


def decoded(body: bytes, fields: Fields, most: int | None = None, *, as_sent: bool = False) -> bytes:
    """Return a response's body without its content codings. Arguments and errors are those of :func:`html_of`."""
    bomb = _bomb(len(body))
    largest = _LARGEST_BODY if most is None else most
    body = _within(body, most, as_sent=as_sent)
    for coding in _codings(fields):
        inner = _decode(body, coding, largest + 1, bomb)
        if as_sent and body and inner is body and coding in CODINGS:
            raise ValueError(f"content coding {coding}: the body is not in it")
        body = inner if inner is body else _within(inner, largest, as_sent=as_sent or most is None)
    return body


def may_unpack_to(body: bytes, fields: Fields, most: int | None) -> int:
    """Return the most bytes that :func:`decoded` may return for a body."""
    if not fields.text(_CONTENT_ENCODING):
        return len(body)
    return min(_bomb(len(body)), _LARGEST_BODY if most is None else most)


def _bomb(received: int) -> int:
    """Return the most bytes to which ``received`` bytes may unpack."""
    return max(_NO_BOMB, _MOST_RATIO * received)


def _codings(fields: Fields) -> list[str]:
    """Return the content codings of a body, the outermost first. Raises ValueError if there are too many."""
    codings = fields.listed(_CONTENT_ENCODING).decode("latin-1").lower().split(",")
    if len(codings) > _MOST_CODINGS:
        raise ValueError(f"{len(codings)} content codings")
    return [coding.strip().removeprefix("x-") for coding in reversed(codings)]


def all_known(codings: bytes) -> bool:
    """Return whether :func:`decoded` can undo all codings of a Content-Encoding."""
    return all(coding.strip().removeprefix("x-") in CODINGS for coding in codings.decode("latin-1").lower().split(","))


def entity(data: bytes, record: Record, http: HttpHead | None) -> bytes:
    """Return the body in a record, after transfer-decoding and before content-decoding."""
    if http is None:
        return record.block(data)
    body = data[http.body_at : record.size]
    return joined(body) if _CHUNKED.search(http.fields.listed(_TRANSFER_ENCODING)) else body


def is_html(content_type: bytes, data: bytes, body_at: int = 0) -> bool:
    """Return whether a body, beginning in ``data``, is of an HTML media type or, without a media type, looks like
    HTML."""
    kind = media_type(content_type)
    return kind in _HTML_TYPES or (not kind and _LOOKS_LIKE_HTML.match(data, body_at) is not None)


def may_be_html(content_type: bytes) -> bool:
    """Return whether a body of a media type is HTML by :func:`is_html`, or may be, because without a media type its
    bytes decide."""
    kind = media_type(content_type)
    return not kind or kind in _HTML_TYPES


def media_type(content_type: bytes) -> bytes:
    """Return the media type in a Content-Type; of several the last valid one (Fetch, "extract a MIME type"). Empty if
    there is no valid one, and for that of HTTP messages, which says nothing about the payload."""
    read = _media_type if len(content_type) < _LONGEST_CACHED else _media_type.__wrapped__
    return read(content_type)


@lru_cache(maxsize=1024)
def _media_type(content_type: bytes) -> bytes:
    kinds = (one.partition(b";")[0].strip().lower() for one in _QUOTED.sub(b"", content_type).split(b","))
    types = [kind for kind in kinds if _MEDIA_TYPE.fullmatch(kind) and kind != b"*/*"]
    return b"" if not types or types[-1] == b"application/http" else types[-1]


def _within(body: bytes, most: int | None, *, as_sent: bool) -> bytes:
    if most is None or len(body) <= most:
        return body
    if not as_sent:
        raise TooLarge("the page is larger than DOWNLOAD_MAXSIZE")
    return body[:most]


def _decode(body: bytes, coding: str, most: int, bomb: int | None = None) -> bytes:
    """Undo a content coding (RFC 9110, 8.4.1), up to ``most`` bytes. Raises ValueError if it is damaged, and Bomb if it
    holds more than ``bomb`` bytes.

    Deflate and Brotli have no magic number, so a body that cannot be decoded counts as decoded already.
    """
    if coding not in CODINGS or not is_marked(body, coding):
        return body
    try:
        return inflate_start(body, coding, most, bomb)
    except TooMuch as error:
        raise Bomb(f"the body is a bomb: {error}") from None
    except InflateError as error:
        if isinstance(error, Damaged) and is_marked(b"", coding):
            return body
        raise ValueError(f"content coding {coding}: {error}") from error


_LINKS: Final = {"A@/href", "AREA@/href"}


class WatPage(NamedTuple):
    """A page in a WAT file."""

    links: list[HtmlLink]
    metas: list[dict[str, str]]
    """The attributes of its ``meta`` elements."""
    headers: list[tuple[bytes, bytes]]
    """The fields of the response's head."""


def wat_page(block: bytes, url: str) -> WatPage | None:
    """Return the page that a metadata record in a WAT file of Common Crawl describes; None if it describes another
    record than an HTML response with status 200. Raises ValueError for other JSON."""
    envelope = _dict(_dict(parse_json(block)).get("Envelope"))
    response = _dict(_dict(envelope.get("Payload-Metadata")).get("HTTP-Response-Metadata"))
    html, status = response.get("HTML-Metadata"), _dict(response.get("Response-Message")).get("Status")
    kind = _text(_dict(envelope.get("WARC-Header-Metadata")).get("WARC-Type"))
    if html is None or kind not in {"response", ""} or str(status) != "200":
        return None
    metas = [
        {str(name): value for name, value in meta.items() if isinstance(value, str)}
        for meta in map(_dict, _list(_dict(_dict(html).get("Head")).get("Metas")))
    ]
    headers = [
        (name.encode("utf-8", "replace"), value.encode("utf-8", "replace"))
        for name, values in _dict(response.get("Headers")).items()
        for value in (values if isinstance(values, list) else [values])
        if isinstance(value, str)
    ]
    return WatPage(_wat_links(html, url), metas, headers)


def wat_links(block: bytes, url: str) -> list[HtmlLink]:
    """Return a page's links like :func:`crawl4llm.base.html_tree.html_links`, none of them as boilerplate.

    ``block``: of a metadata record in a WAT file of Common Crawl. Raises ValueError for other JSON.
    """
    html = parse_json(block)
    for name in ("Envelope", "Payload-Metadata", "HTTP-Response-Metadata", "HTML-Metadata"):
        html = _dict(html).get(name)
    return _wat_links(html, url)


def _wat_links(html: object, url: str) -> list[HtmlLink]:
    head = _dict(_dict(html).get("Head"))
    links: list[FoundLink] = [
        (refresh_target(_text(meta.get("content"))), "", False, "", "")
        for meta in map(_dict, _list(head.get("Metas")))
        if _text(meta.get("http-equiv")).lower() == "refresh"
    ]
    links += [
        (
            _text(link.get("url")),
            _text(link.get("text") or link.get("alt")),
            False,
            relations(_text(link.get("rel"))),
            _text(link.get("hreflang")).lower(),
        )
        for link in map(_dict, _list(_dict(html).get("Links")))
        if _text(link.get("path")) in _LINKS
    ]
    return distinct_links(links, url, _text(head.get("Base")))


def _dict(value: object) -> dict[str, Any]:
    if not isinstance(value, (dict, NoneType)):
        raise ValueError(f"{type(value).__name__} in the place of an object")  # noqa: TRY004 - the data is at fault
    return value or {}


def _list(value: object) -> list[Any]:
    if not isinstance(value, (list, NoneType)):
        raise ValueError(f"{type(value).__name__} in the place of a list")  # noqa: TRY004 - as above
    return value or []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
