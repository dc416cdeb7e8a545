"""Files of domains are read as they come: a broken line is named, and costs no other."""

from __future__ import annotations

import gzip
import random
import tracemalloc
from pathlib import Path

import pytest

from crawl4llm.base.domain_lists import DomainList
from crawl4llm.base.domains import domain_of, is_public_suffix, may_be_public_suffix
from crawl4llm.base.errors import InputError

LINES = """\
# spam.example
bad.example
  Sub.Worse.Example.  # with a comment
0.0.0.0 hosts.example other.example # as in /etc/hosts
127.0.0.1\tlocalhost
::1 ip6-localhost ip6-loopback
https://page.example/
two words.example
münchen.example
co.uk
github.io
.zip
*.wild.example
||adblock.example^
bad.example
10.1.2.3
0.0.0.0 one.example
"""


@pytest.fixture(params=[False, True], ids=["plain", "gzip"])
def given(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    path = tmp_path / "list"
    path.write_bytes(gzip.compress(LINES.encode()) if request.param else LINES.encode())
    return path


def test_each_line_that_can_be_used_is(given: Path) -> None:
    domains = DomainList(given, "LIST")
    expected = {
        "bad.example": 2,
        "a.b.bad.example": 2,
        "sub.worse.example": 3,
        "hosts.example": 4,
        "other.example": 4,
        "xn--mnchen-3ya.example": 9,
        "any.zip": 12,
        "wild.example": 13,
        "10.1.2.3": 16,
        "one.example": 17,
        **dict.fromkeys(["worse.example", "notbad.example", "example", "a.co.uk", "a.github.io", "localhost", ""]),
    }
    assert {host: domains.line_of(host) for host in expected} == expected
    assert len(domains) == 10, "one of them twice"


def test_lines_that_cannot_be_used_are_named(given: Path) -> None:
    """The first three, with what is wrong; the others are counted."""
    assert DomainList(given, "LIST").fault == (
        f"LIST {given}: left out line 7 ('https://page.example/' is not a domain); line 8 ('two words.example' is not "
        "one domain); line 10 (co.uk is a public suffix; .co.uk would be all below it) and 2 more"
    )
    assert DomainList(given, "LIST", suffixes=True).line_of("a.co.uk") == 10


def test_what_is_no_list_is_refused_in_one_line(tmp_path: Path) -> None:
    page, cut, none = (tmp_path / name for name in ("page", "cut", "none"))
    page.write_text("<!DOCTYPE html>\n<p>not found\n")
    cut.write_bytes(gzip.compress(LINES.encode())[:-9])
    for path, fault in (
        (page, "has no line with a domain: line 1 ('<!DOCTYPE html>' is not one domain)"),
        (cut, "is damaged: Compressed file ended before the end-of-stream marker was reached"),
        (none, "cannot be read: No such file or directory"),
        (tmp_path, "cannot be read: Is a directory"),
    ):
        with pytest.raises(InputError) as error:
            DomainList(path, "LIST")
        assert str(error.value) == f"LIST {path} {fault}"
    none.write_bytes(b"# nothing yet\n\n")
    assert len(DomainList(none, "LIST")) == 0


def test_hostile_lines(tmp_path: Path) -> None:
    """Long ones, controls and bytes that are no text are lines that cannot be used, and no end of the list."""
    path = tmp_path / "list"
    path.write_bytes(b"x" * 10_000_000 + b".example\n\xff\xfe.example\n\x1b[31m.example\ngood.example\n\x00")
    domains = DomainList(path, "LIST")
    assert [domains.line_of(host) for host in ("good.example", "x.example")] == [4, None]
    assert domains.fault is not None
    assert "\x1b" not in domains.fault
    assert len(domains.fault) < 500


def test_a_long_list_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_text("".join(f"host-{number}.number{number % 97}.example\n" for number in range(30_000)))
    domains = DomainList(path, "LIST")
    tracemalloc.start()
    domains = DomainList(path, "LIST")
    domains.data = b""
    kept, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 13 * len(domains) == 13 * 30_000
    assert most < 100 * len(domains)
    draw = random.Random(5)
    for number in draw.sample(range(30_000), 1000):
        assert domains.line_of(f"www.host-{number}.number{number % 97}.example") == number + 1
        assert domains.line_of(f"host-{number}.number{number % 97 + 1}.example") is None


def test_the_short_way_to_know_a_public_suffix() -> None:
    names = ["co.uk", "uk", "a.uk", "github.io", "kawasaki.jp", "a.kawasaki.jp", "city.kawasaki.jp", "x.a.kawasaki.jp"]
    names += ["example", "a.example", "xn--p1ai", "xn--90ais", "a.xn--p1ai", "example.com", "s3.amazonaws.com"]
    for name in names:
        assert may_be_public_suffix(name) or not is_public_suffix(name), name
    assert not may_be_public_suffix("example.com")
    assert domain_of("a.example.com") == "example.com"
