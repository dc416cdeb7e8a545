"""References (RFC 3986, 4.1): the URLs to which a page's links and a server's redirects lead."""

from __future__ import annotations

from crawl4llm.base.urls import NORMAL_REFERENCE, normalise_url, parse_url


class BaseUrl:
    """The URL that references are relative to. If the parser refuses it, only absolute references lead anywhere."""

    def __init__(self, url: str, charset: str = "utf-8") -> None:
        """``charset``: of the page, in which queries are encoded, as :func:`crawl4llm.base.urls.parse_url` takes it."""
        self._charset = charset
        self._url = parse_url(url)
        without_query = (self._url or "").partition("?")[0]
        self._folder = without_query[: without_query.rfind("/") + 1]
        self._origin = "/".join(without_query.split("/", 3)[:3])

    def resolve(self, reference: str) -> str | None:
        """Return the document key of where a reference leads (URL Standard, 4.4); None if that is not on the web."""
        if reference.startswith("#"):
            return self._url
        if (normal := NORMAL_REFERENCE.fullmatch(reference)) and (self._url or normal[1]):
            origin, rest = normal.groups()
            url = (origin or (self._origin if rest.startswith("/") else self._folder)) + rest
            return normalise_url(url) if "/." in url else url
        return parse_url(reference, self._url, self._charset)


def redirect_target(url: str, location: bytes) -> str | None:
    """Return the document key of where a redirect leads from a URL, by its Location (RFC 9110, 10.2.2); None if that is
    not on the web."""
    return BaseUrl(url).resolve(location.decode("utf-8", "surrogateescape")) if location else None
