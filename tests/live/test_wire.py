"""The wire: names it leans on, in Scrapy and in Twisted's private modules, are where it looks; what is not written."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from addon_site import serve
from continuous_cluster import begin, storage_at
from crawl_helpers import python
from live_helpers import live_args, text_page, wait_for
from tls_helpers import make_certificate, serve_tls
from twisted.protocols import tls
from twisted.web import _newclient, client

_HANDLER = """
from scrapy.crawler import Crawler
from scrapy.utils.reactor import install_reactor
install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy import Spider
from scrapy.utils.test import get_crawler
from twisted.web.client import HTTPConnectionPool
assert isinstance(getattr(HTTP11DownloadHandler(get_crawler(Spider)), "_pool", None), HTTPConnectionPool)
"""


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (client.HTTPConnectionPool, "_factory"),
        (_newclient.HTTP11ClientProtocol, "_parser"),
        (_newclient.Request, "absoluteURI"),
        (tls.TLSMemoryBIOProtocol, "_handshakeDone"),
        (_newclient.HTTP11ClientProtocol, "request"),
        (_newclient.Request, "writeTo"),
        (_newclient.HTTPClientParser, "dataReceived"),
        (_newclient.HTTPClientParser, "line_mode"),
        (_newclient.HTTPClientParser, "lineReceived"),
        (_newclient.HTTPClientParser, "statusReceived"),
        (_newclient.HTTPClientParser, "headerReceived"),
        (_newclient.HTTPClientParser, "allHeadersReceived"),
        (_newclient.HTTPClientParser, "rawDataReceived"),
        (_newclient.HTTPClientParser, "lineLengthExceeded"),
        (_newclient.HTTPClientParser, "MAX_LENGTH"),
        (_newclient.HTTPClientParser, "_transferDecoders"),
        (_newclient.HTTPClientParser, "connectionLost"),
        (_newclient.Response, "_bodyDataReceived"),
        (_newclient.Response, "_bodyDataFinished"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_twisted_has_the_names(owner: type, name: str) -> None:
    assert hasattr(owner, name), f"Twisted moved {owner.__qualname__}.{name}, on which crawl4llm/live leans"


def test_scrapys_handler_has_its_pool() -> None:
    """In a process of its own, as a handler needs a reactor."""
    result = python("-c", _HANDLER)
    assert result.returncode == 0, (
        f"Scrapy moved HTTP11DownloadHandler._pool, on which crawl4llm/live/wire.py leans: {result.stderr}"
    )


def test_a_request_is_written_and_an_answer_read_as_the_tap_expects() -> None:
    """The head in one writeSequence; the answer by lines, its fields by name and value, the body by a decoder."""
    from twisted.internet.testing import StringTransport
    from twisted.web.http_headers import Headers

    class Transport(StringTransport):
        wrote: list[bytes]

        def writeSequence(self, data: object) -> None:
            self.wrote = list(data)  # type: ignore[call-overload]
            super().writeSequence(self.wrote)

    connection = _newclient.HTTP11ClientProtocol(lambda _: None)
    connection.makeConnection(transport := Transport())
    connection.request(_newclient.Request(b"GET", b"/x", Headers({b"host": [b"a.test"]}), None))
    moved = "Twisted %s no longer as crawl4llm/live/wire.py expects"
    assert transport.value() == b"".join(transport.wrote), moved % "writes requests"
    assert transport.value().startswith(b"GET /x HTTP/1.1\r\n"), moved % "writes requests"
    parser = connection._parser
    assert parser is not None, moved % "makes parsers"
    noted: list[bytes] = []
    began, line = parser.statusReceived, parser.lineReceived
    parser.statusReceived = lambda text: (noted.append(text), began(text))  # type: ignore[assignment, method-assign]
    line(b"HTTP/1.1 200 Fine\r")
    parser.headerReceived(b"X-One", b"1")
    parser.headerReceived(b"Transfer-Encoding", b"chunked")
    assert noted == [b"HTTP/1.1 200 Fine"], moved % "parses answers"
    assert list(parser.connHeaders.getAllRawHeaders()) == [(b"Transfer-Encoding", [b"chunked"])], moved % "keeps fields"

    class Decoder:
        def __init__(self, take: object, finish: object) -> None:
            noted.append(b"decoder")

        def dataReceived(self, data: bytes) -> None:
            noted.append(data)

    parser._transferDecoders = {b"chunked": Decoder}  # type: ignore[dict-item]
    parser.allHeadersReceived()
    parser.rawDataReceived(b"3\r\n")
    assert noted[1:] == [b"decoder", b"3\r\n"], moved % "decodes bodies"


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_request_is_not_written_when_its_owner_may_be_another_workers(scheme: str, tmp_path: Path) -> None:
    """When its connection was made it was still this one's. It is asked for later."""
    lost, pages = tmp_path / "lost", {"/a": text_page(1, [])}
    settings = {**storage_at(tmp_path / "storage"), "CRAWL_BATCH_SIZE": 0, "DOWNLOAD_VERIFY_CERTIFICATES": 0}
    settings["DOWNLOAD_HANDLERS"] = json.dumps({scheme: "hostile.LosesItsTurn"})
    with serve_tls(make_certificate(tmp_path), pages) if scheme == "https" else serve(pages) as site:
        url, asked = site if isinstance(site, tuple) else (site.url, site.asked)
        arguments = live_args([f"{url}/a"], tmp_path / "run", **settings)
        crawling = begin(arguments, SCRAPY_PROJECT="live", LOST=str(lost))
        wait_for(lost.exists)
        time.sleep(1)
        assert list(asked) == []
        _, errors = crawling.communicate(timeout=600)
    assert (crawling.returncode, "Traceback" in errors) == (0, False), errors
    assert len(asked) == 3, "robots.txt, the page, and tdmrep.json"
