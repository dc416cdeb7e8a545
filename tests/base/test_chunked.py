"""The chunked coding: what browsers take is taken, in whatever parts it comes."""

from __future__ import annotations

import pytest

from crawl4llm.base.chunked import Chunks, NotChunked, joined

ENDLESS = b"5\r\nhello\r\n0\r\n" + b"a: b\r\n" * 20_000


@pytest.mark.parametrize(
    ("body", "data"),
    [
        (b"3\r\nabc\r\n0004\r\ndefg\r\n0\r\n\r\n", b"abcdefg"),
        (b"3  \r\nabc\r\n\t4 \r\ndefg\r\n000\r\n\r\n", b"abcdefg"),
        (b'3;a="b\x01"; c\r\nabc\r\n4 ;\xff\r\ndefg\r\n0;x\r\n\r\n', b"abcdefg"),
        (b"3\nabc\n4\ndefg\n0\n\n", b"abcdefg"),
        (b"A\r\n0123456789\r\n0\r\nDigest: x\r\nMore: y\r\n\r\n", b"0123456789"),
        (b"0\r\n\r\n", b""),
    ],
    ids=["plain", "padded", "extensions", "line feeds", "trailer", "empty"],
)
def test_chunks(body: bytes, data: bytes) -> None:
    assert joined(body) == joined(body + b"HTTP/1.1 200 OK") == data
    for step in (1, 2, 3, 7):
        chunks = Chunks()
        found = b"".join(part for at in range(0, len(body), step) for part in chunks.feed(body[at : at + step]))
        assert (found, chunks.beyond) == (data, b""), step
    chunks = Chunks()
    assert (b"".join(chunks.feed(body + b"next")), chunks.beyond) == (data, b"next")


@pytest.mark.parametrize(
    ("body", "data"),
    [
        (b"<html>", b"<html>"),
        (b"3\r\nabcd\r\n0\r\n\r\n", b"3\r\nabcd\r\n0\r\n\r\n"),
        (b"3\r\nabc\r\nzz\r\nde", b"abc"),
        (b"3\r\nabc\r\n+4\r\ndefg", b"abc"),
        (b"3\r\nabc\r\n0x4\r\ndefg", b"abc"),
        (b"3\r\nabc\r\n" + b"4" * 16 + b"\r\ndefg", b"abc"),
        (b"3\r\nabc\r\n4" + b" " * 5000 + b"\r\ndefg", b"abc"),
        (ENDLESS, b"hello"),
    ],
    ids=["none", "too long", "no size", "plus", "hex", "digits", "long line", "trailer"],
)
def test_what_is_not_chunked(body: bytes, data: bytes) -> None:
    """In an archive it is read as far as it goes."""
    assert joined(body) == data
    with pytest.raises(NotChunked):
        b"".join(Chunks().feed(body + b"\r\n"))


@pytest.mark.parametrize(
    ("body", "data"), [(b"5\r\nab", b"ab"), (b"3\r\nabc\r\n4", b"abc"), (b"0\r\n", b""), (b"", b"")]
)
def test_a_body_that_breaks_off(body: bytes, data: bytes) -> None:
    chunks = Chunks()
    assert (joined(body), b"".join(chunks.feed(body)), chunks.beyond) == (data, data, None)
