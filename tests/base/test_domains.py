"""Domains of URLs, which are compared as browsers read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawl4llm.base.domain_lists import DomainList
from crawl4llm.base.domains import Domain, ascii_host, is_below, owner_of
from crawl4llm.base.errors import InputError
from crawl4llm.live.addresses import read_hosts


@pytest.mark.parametrize(
    ("url", "owner"),
    [
        ("http://www.fa\xdf.example/", "xn--fa-hia.example"),
        ("http://a.fass.example/", "fass.example"),
        ("http://%65xample.com\\@other.com/", "example.com"),
        ("http:www.example.com", "example.com"),
        ("http://0x7f.1/", "127.0.0.1"),
        ("http://\uff11\uff12\uff17.1/", "127.0.0.1"),
        ("http://[::ffff:127.0.0.1]/", "127.0.0.1"),
        ("http://www.example.com./", "example.com"),
        ("http://" + "a" * 300 + ".example.com/", ""),
    ],
)
def test_owners(url: str, owner: str) -> None:
    assert owner_of(url) == owner


def test_a_domain_that_is_given() -> None:
    domain = Domain("Fa\xdf.Example.")
    assert domain.name == "xn--fa-hia.example"
    assert domain.holds("http://www.fa\xdf.example\\x")
    assert not domain.holds("http://fass.example/")
    for given in ("http://a.example", "a.example:80", "a/b", "a\\b", "a b", "u@a.example", "[::1]", ""):
        with pytest.raises(InputError, match="is not a domain"):
            Domain(given)


def test_block_lists_and_hosts_files_have_hosts_as_urls_do(tmp_path: Path) -> None:
    listed, hosts = tmp_path / "list", tmp_path / "hosts"
    listed.write_text("fa\xdf.example\n")
    hosts.write_text("10.0.0.1 fa\xdf.example\n")
    assert DomainList(listed, "LIST").line_of(ascii_host("http://fa\xdf.example/")) == 1
    assert DomainList(listed, "LIST").line_of(ascii_host("http://fass.example/")) is None
    assert read_hosts(hosts) == {"xn--fa-hia.example": ["10.0.0.1"]}
    assert is_below("http:/a.fa%C3%9F.example", {"xn--fa-hia.example"})
