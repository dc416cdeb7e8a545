"""The inflater: whatever the coding, so many bytes and no more, or one error."""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable

import brotli
import pytest
from memory_helpers import little_memory

from crawl4llm.base.compression import (
    CODINGS,
    Damaged,
    InflateError,
    TooMuch,
    gunzip_pieces,
    inflate,
    inflate_start,
    zstd,
)

HUGE = 1 << 27
PARAMETER = zstd.CompressionParameter


def member(data: bytes) -> bytes:
    return gzip.compress(data, 1, mtime=0)


def frame(data: bytes, **options: int) -> bytes:
    """A Zstandard frame; its head does not say how much it holds."""
    one = zstd.ZstdCompressor(options={getattr(PARAMETER, name): value for name, value in options.items()})
    return one.compress(data) + one.flush()


def raw(data: bytes) -> bytes:
    one = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return one.compress(data) + one.flush()


def skippable(data: bytes) -> bytes:
    return b"\x53\x2a\x4d\x18" + len(data).to_bytes(4, "little") + data


def lying(data: bytes, size: int) -> bytes:
    """A frame of more than 64 KiB that says it holds ``size`` bytes."""
    whole = bytearray(zstd.compress(data))
    assert whole[4] >> 6 == 2, "four bytes of content size"
    at = 5 + (0 if whole[4] >> 5 & 1 else 1)
    whole[at : at + 4] = size.to_bytes(4, "little")
    return bytes(whole)


CODE: dict[str, Callable[[bytes], bytes]] = {
    "gzip": member,
    "deflate": zlib.compress,
    "br": lambda data: brotli.compress(data, quality=1),
    "zstd": zstd.compress,
}


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("size", [0, 1, 1000, 1 << 17])
def test_gives_what_was_put_in(coding: str, size: int) -> None:
    data = random.Random(size).randbytes(size // 2) + b"a" * (size - size // 2)
    coded = CODE[coding](data)
    assert inflate(coded, coding, size) == inflate(coded, coding, 1 << 20) == data
    assert inflate_start(coded, coding, 1 << 20) == data
    assert inflate_start(coded, coding, 100) == data[:100]
    assert inflate_start(coded, coding, 100, size) == data[:100]
    assert inflate_start(coded, coding, 1 << 20, size) == data
    if size:
        with pytest.raises(TooMuch, match=f"unpacks to more than {size - 1:,} bytes"):
            inflate(coded, coding, size - 1)
        with pytest.raises(TooMuch, match=f"unpacks to more than {size - 1:,} bytes"):
            inflate_start(coded, coding, 10, size - 1)
        with pytest.raises(Damaged):
            inflate(coded[:-1], coding, size)


@pytest.mark.parametrize(
    ("coding", "coded"),
    [
        ("gzip", member(b"ab") + member(b"") + member(b"c")),
        ("gzip", member(b"ab") + member(b"c") + b"\0" * 5000),
        ("gzip", member(b"ab") + b"\0" * 5000 + member(b"c")),
        ("zstd", zstd.compress(b"ab") + frame(b"c")),
        ("zstd", frame(b"ab") + zstd.compress(b"c")),
        ("zstd", skippable(b"x" * 5000) + frame(b"ab") + skippable(b"") + frame(b"c")),
        ("deflate", raw(b"abc")),
    ],
)
def test_members_and_frames_are_joined(coding: str, coded: bytes) -> None:
    assert inflate(coded, coding, 3) == inflate_start(coded, coding, 3) == b"abc"
    assert inflate_start(coded, coding, 1) == b"a"
    with pytest.raises(TooMuch):
        inflate(coded, coding, 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("coding", "coded"),
    [
        ("gzip", lambda: b"".join(member(b"\0" * (HUGE >> 6)) for _ in range(64))),
        ("deflate", lambda: zlib.compress(b"\0" * HUGE, 1)),
        ("deflate", lambda: raw(b"\0" * HUGE)),
        ("br", lambda: brotli.compress(b"\0" * HUGE, quality=1)),
        ("zstd", lambda: zstd.compress(b"\0" * HUGE)),
        ("zstd", lambda: frame(b"\0" * HUGE)),
        ("zstd", lambda: zstd.compress(b"a") + zstd.compress(b"\0" * HUGE)),
        ("zstd", lambda: zstd.compress(b"\0" * 5000) * 12_000),
    ],
)
def test_a_bomb_takes_no_memory(coding: str, coded: Callable[[], bytes]) -> None:
    data = coded()
    with little_memory():
        with pytest.raises(InflateError):
            inflate(data, coding, 1 << 20)
        assert len(inflate_start(data, coding, 1 << 20)) == 1 << 20
        with pytest.raises(TooMuch):
            inflate_start(data, coding, 1 << 20, 50 << 20)


def test_a_bomb_that_lies_takes_no_memory() -> None:
    data = lying(b"\0" * HUGE, 1 << 17)
    with little_memory():
        for unpack in (inflate, inflate_start):
            with pytest.raises(Damaged):
                unpack(data, "zstd", 1 << 20)


@pytest.mark.parametrize(
    ("coding", "coded"),
    [
        ("gzip", b"no gzip"),
        ("gzip", member(b"one") + b"junk"),
        ("gzip", member(b"one")[:-8] + b"\0" * 8),
        ("zstd", b"no zstd"),
        ("zstd", zstd.compress(b"one") + b"junk"),
        ("zstd", zstd.compress(b"one") + zstd.compress(b"two")[:-1]),
        ("zstd", frame(b"one", window_log=28)),
        ("zstd", lying(b"\0" * (1 << 17), 1 << 18)),
        ("br", b"no brotli"),
        ("deflate", b"no deflate"),
        ("gzip", member(b"") * 70_000),
        ("zstd", frame(b"") * 70_000),
    ],
)
def test_damage_is_one_error(coding: str, coded: bytes) -> None:
    with pytest.raises(Damaged):
        inflate(coded, coding, 1 << 20)


@pytest.mark.parametrize(("coding", "code"), [("gzip", member), ("zstd", zstd.compress)])
def test_of_a_body_what_follows_and_is_no_member_is_left_out(coding: str, code: Callable[[bytes], bytes]) -> None:
    assert inflate_start(code(b"one") + b"junk", coding, 100) == b"one"
    assert inflate_start(code(b"one") + code(b"two") + b"junk", coding, 100) == b"onetwo"


def test_pieces_are_a_megabyte_at_most() -> None:
    stored = iter([member(b"\0" * (5 << 20))])
    pieces = list(gunzip_pieces(lambda: next(stored, b"")))
    assert max(map(len, pieces)) <= 1 << 20
    assert sum(map(len, pieces)) == 5 << 20
    cut = iter([member(b"abc")[:-1]])
    with pytest.raises(Damaged):
        list(gunzip_pieces(lambda: next(cut, b"")))
