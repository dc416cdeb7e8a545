"""Golden text of whole records, as the archive stores them."""

from __future__ import annotations

from uuid import UUID, uuid5

import pytest
from archive_helpers import INFO

from crawl4llm.base.pages import PageRecord
from crawl4llm.warc.page_records import RecordBuilder, Values, record_id

FILE = "crawl-00000.warc.gz"
FILE_ID = "<urn:uuid:73cf6cd3-f702-57ee-a559-2dd9e5757801>"
KEY = "clueweb22-en0000-00-00001"
FIELDS: Values = {"influence": 0.1 + 0.2, "priority": -0.0, "order": 0, "policy": "influence", "parent": None}


@pytest.fixture
def records() -> RecordBuilder:
    return RecordBuilder(INFO.crawl_id, INFO.start_date)


def text(record: bytes) -> str:
    """A record with CRLF shown as LF; fails where a line ends otherwise."""
    decoded = record.decode()
    assert "\n" not in decoded.replace("\r\n", "")
    return decoded.replace("\r\n", "\n")


WARCINFO = """\
WARC/1.1
WARC-Type: warcinfo
WARC-Record-ID: <urn:uuid:73cf6cd3-f702-57ee-a559-2dd9e5757801>
WARC-Date: 2022-08-01T12:00:00Z
WARC-Filename: crawl-00000.warc.gz
WARC-Block-Digest: sha1:URAWRKHFSWOPXOV3OPKDMU6VBF6FLDLP
Content-Type: application/warc-fields
Content-Length: 89

software: crawl4llm/0.1.0 Scrapy/2.19.0
robots: simulation: no requests sent
pages: 0


"""

RESPONSE = """\
WARC/1.1
WARC-Type: response
WARC-Record-ID: <urn:uuid:abe60f0e-61c6-574d-bd6b-74c66b8f6318>
WARC-Date: 2022-08-01T09:08:07.123Z
WARC-Target-URI: http://example.org/a?b=c
WARC-Warcinfo-ID: <urn:uuid:73cf6cd3-f702-57ee-a559-2dd9e5757801>
Crawl4LLM-HTTP-Headers: reconstructed
WARC-Payload-Digest: sha1:SGQIVLRJVHX3VSGS3JSGWILZSKVFAYYY
WARC-Block-Digest: sha1:RUI2IXCED3NZF6HZTKGJB2XMMY3DYJTP
Content-Type: application/http; msgtype=response
Content-Length: 83

HTTP/1.1 200 OK
Content-Type: text/html; charset=utf-8
Content-Length: 5

<p>é

"""

RESPONSE_METADATA = """\
WARC/1.1
WARC-Type: metadata
WARC-Record-ID: <urn:uuid:93ccc696-914e-57da-b799-202c6ec6ccc4>
WARC-Date: 2022-08-01T09:08:07.123Z
WARC-Target-URI: http://example.org/a?b=c
WARC-Warcinfo-ID: <urn:uuid:73cf6cd3-f702-57ee-a559-2dd9e5757801>
WARC-Concurrent-To: <urn:uuid:abe60f0e-61c6-574d-bd6b-74c66b8f6318>
WARC-Block-Digest: sha1:JGT4FNS6X5D3TI6MDRWRGZQ7V63HK2OX
Content-Type: application/warc-fields
Content-Length: 77

influence: 0.30000000000000004
priority: -0.0
order: 0
policy: influence


"""

RESOURCE = """\
WARC/1.1
WARC-Type: resource
WARC-Record-ID: <urn:uuid:8e63228d-2b79-5efc-aa91-18e3da097ff4>
WARC-Date: 2022-08-01T12:00:00Z
WARC-Target-URI: ftp://example.org/a
WARC-Warcinfo-ID: <urn:uuid:73cf6cd3-f702-57ee-a559-2dd9e5757801>
WARC-Payload-Digest: sha1:SGQIVLRJVHX3VSGS3JSGWILZSKVFAYYY
WARC-Block-Digest: sha1:SGQIVLRJVHX3VSGS3JSGWILZSKVFAYYY
Content-Type: text/html; charset=utf-8
Content-Length: 5

<p>é

"""

CONVERSION = """\
WARC/1.1
WARC-Type: conversion
WARC-Record-ID: <urn:uuid:24a8773c-449b-57d6-80ff-531509a8af23>
WARC-Date: 2022-08-01T12:00:00Z
WARC-Target-URI: http://example.org/a?b=c
WARC-Warcinfo-ID: <urn:uuid:73cf6cd3-f702-57ee-a559-2dd9e5757801>
WARC-Payload-Digest: sha1:X4K344L2YGYIBNHRYRLGSKBFREP7KBZ5
WARC-Block-Digest: sha1:X4K344L2YGYIBNHRYRLGSKBFREP7KBZ5
Content-Type: text/plain
Content-Length: 2

é

"""

CONVERSION_METADATA = """\
WARC/1.1
WARC-Type: metadata
WARC-Record-ID: <urn:uuid:93ccc696-914e-57da-b799-202c6ec6ccc4>
WARC-Date: 2022-08-01T12:00:00Z
WARC-Target-URI: http://example.org/a?b=c
WARC-Warcinfo-ID: <urn:uuid:73cf6cd3-f702-57ee-a559-2dd9e5757801>
WARC-Refers-To: <urn:uuid:24a8773c-449b-57d6-80ff-531509a8af23>
WARC-Block-Digest: sha1:JGT4FNS6X5D3TI6MDRWRGZQ7V63HK2OX
Content-Type: application/warc-fields
Content-Length: 77

influence: 0.30000000000000004
priority: -0.0
order: 0
policy: influence


"""

EMPTY = """\
WARC/1.1
WARC-Type: conversion
WARC-Record-ID: <urn:uuid:24a8773c-449b-57d6-80ff-531509a8af23>
WARC-Date: 2022-08-01T12:00:00Z
WARC-Target-URI: urn:uuid:24a8773c-449b-57d6-80ff-531509a8af23
WARC-Warcinfo-ID: <urn:uuid:73cf6cd3-f702-57ee-a559-2dd9e5757801>
WARC-Payload-Digest: sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ
WARC-Block-Digest: sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ
Content-Type: text/plain
Content-Length: 0



"""


def test_warcinfo(records: RecordBuilder) -> None:
    assert text(records.warcinfo(FILE, {**INFO.fields, "pages": 0})) == WARCINFO


def test_html_with_its_own_date_becomes_a_response(records: RecordBuilder) -> None:
    page = PageRecord(KEY, "http://example.org/a?b=c", "2022-08-01T09:08:07.123Z", html="<p>é".encode())
    content = records.content(page, FILE_ID)
    assert text(content.data) == RESPONSE
    assert (content.mime, content.status) == ("text/html", "200")
    assert text(records.metadata(KEY, content, FILE_ID, FIELDS)) == RESPONSE_METADATA


def test_html_of_another_scheme_becomes_a_resource(records: RecordBuilder) -> None:
    content = records.content(PageRecord(KEY, "ftp://example.org/a", html="<p>é".encode()), FILE_ID)
    assert text(content.data) == RESOURCE
    assert (content.mime, content.status) == ("text/html", None)


def test_text_becomes_a_conversion(records: RecordBuilder) -> None:
    content = records.content(PageRecord(KEY, "http://example.org/a?b=c\n", text="é"), FILE_ID)
    assert text(content.data) == CONVERSION
    assert (content.mime, content.status) == ("text/plain", None)
    assert text(records.metadata(KEY, content, FILE_ID, FIELDS)) == CONVERSION_METADATA


def test_a_page_without_content_or_url_becomes_an_empty_conversion(records: RecordBuilder) -> None:
    assert text(records.content(PageRecord(KEY, ""), FILE_ID).data) == EMPTY


@pytest.mark.parametrize("date", ["2022-08-01", "2022-13-01T00:00:00Z", "2022-08-01T00:00:00+02:00", "x\r\nA: b", ""])
def test_a_date_that_warc_does_not_know_gives_way_to_the_start_of_the_crawl(records: RecordBuilder, date: str) -> None:
    assert records.content(PageRecord(KEY, "http://example.org/", date, text=""), FILE_ID).date == INFO.start_date


def test_record_ids_are_name_based_uuids() -> None:
    crawl = UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
    assert record_id(crawl, "response", "é") == f"<urn:uuid:{uuid5(crawl, 'response é')}>"
    assert record_id(crawl, "response", "\ud800").startswith("<urn:uuid:")
    ids = {record_id(crawl, kind, key) for kind in ("response", "metadata") for key in ("a", "b")}
    assert len(ids) == 4
