"""Links as Common Crawl's WAT files hold them: metadata records whose block is JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from crawl4llm.base.html_links import HtmlLink, distinct_links, refresh_target
from crawl4llm.base.input_files import parse_json

_TO_HTML: Final = ("Envelope", "Payload-Metadata", "HTTP-Response-Metadata", "HTML-Metadata")
_LINKS: Final = {"A@/href", "AREA@/href"}


def wat_links(block: bytes, url: str) -> list[HtmlLink]:
    """The links of a page, as :func:`crawl4llm.base.html_links.html_links` gives them; none is known to be boilerplate.

    Raises ValueError for a block that is not WAT's JSON.
    """
    html = parse_json(block)
    for name in _TO_HTML:
        html = _dict(html).get(name)
    head = _dict(_dict(html).get("Head"))
    links = (*_refreshes(head), *_links(_dict(html)))
    return distinct_links(links, url, _text(head.get("Base")))


def _refreshes(head: dict[str, Any]) -> Iterator[tuple[str | None, str, bool]]:
    for meta in head.get("Metas") or ():
        if _text(_dict(meta).get("http-equiv")).lower() == "refresh":
            yield refresh_target(_text(meta.get("content"))), "", False


def _links(html: dict[str, Any]) -> Iterator[tuple[str | None, str, bool]]:
    for link in html.get("Links") or ():
        if _dict(link).get("path") in _LINKS:
            yield _text(link.get("url")), _text(link.get("text") or link.get("alt")), False


def _dict(value: object) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"{type(value).__name__} in the place of an object")  # noqa: TRY004 - the data is at fault
    return value


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
