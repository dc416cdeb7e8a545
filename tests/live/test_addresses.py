"""Which addresses are public, in which forms hosts write them, and what a hosts file says."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path

import pytest

from crawl4llm.base.errors import InputError
from crawl4llm.base.settings import networks
from crawl4llm.live.addresses import Rules, is_public, read_hosts, system_addresses, written_addresses
from crawl4llm.options import Options

PUBLIC = """
    1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255 172.15.255.255
    172.32.0.0 192.0.1.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 203.0.114.0 223.255.255.255
    2001:200:: 2606:2800:220:1:248:1893:25c8:1946 2a00:1450:4001::1 ::ffff:1.1.1.1 64:ff9b::101:101 2002:101:101::1
""".split()
NOT_PUBLIC = """
    0.0.0.0 0.1.2.3 10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.1 127.255.255.255 169.254.169.254
    172.16.0.0 172.31.255.255 192.0.0.1 192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.0 198.19.255.255 198.51.100.1
    203.0.113.255 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
    :: ::1 ::127.0.0.1 fe80::1 fe80::1%lo fec0::1 fc00::1 fd12:3456::1 ff02::1 100::1 2001::1 2001:2::1 2001:db8::1
    3fff::1 5f00::1 4000::1 64:ff9b:1::101:101
    ::ffff:127.0.0.1 ::ffff:10.1.2.3 ::ffff:0:127.0.0.1 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 2002:7f00:1:: 2002:a00:1::1
""".split()


@pytest.mark.parametrize("address", PUBLIC)
def test_public(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_not_public(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "2130706433", "0x7f000001", "0x7F.1", "0177.0.0.1", "017700000001", "127.1", "127.0.1"),
        *("0177.0x0.0.1", "127.0.0.01"),
    ],
)
def test_forms_of_an_address(host: str) -> None:
    assert written_addresses(host) == ["127.0.0.1"]
    assert not Rules().permit(written_addresses(host)[0])


@pytest.mark.parametrize("host", ["", "localhost", "example.org", "1.example", "127.0.0.1.nip.io", "a..b", "a" * 300])
def test_names_are_no_addresses(host: str) -> None:
    assert written_addresses(host) == []


def test_what_has_no_address() -> None:
    """Names that nobody can have are no errors."""
    assert [system_addresses(host) for host in ("a" * 64 + ".test", "a..b", "nul\0", "xn--\udcff")] == [[]] * 4


def test_allowed_networks() -> None:
    rules = Rules.of(Options(network_allowed=networks("127.0.0.1/32, fd00::/8,10.0.0.0/30,::1")))
    allowed = ("127.0.0.1", "::ffff:127.0.0.1", "fd00::1", "10.0.0.3", "::1", "1.1.1.1")
    assert [rules.permit(address) for address in allowed] == [True] * 6
    refused = ("127.0.0.2", "10.0.0.4", "fe80::1", "::ffff:127.0.0.2", "64:ff9b::7f00:1")
    assert [rules.permit(address) for address in refused] == [False] * 5


def test_with_a_hosts_file_no_address_in_a_url_is_known() -> None:
    rules = Rules.of(Options(network_allowed=("127.0.0.0/8",)))
    assert rules.permit("1.1.1.1", in_url=True)
    closed = Rules(rules.allowed, {})
    assert not closed.permit("1.1.1.1", in_url=True)
    assert closed.permit("1.1.1.1")
    assert closed.permit("127.0.0.1", in_url=True)


@pytest.mark.parametrize("given", ["127.0.0.1/33", "127.0.0.1/8", "local", "127.0.0.0/8 10.0.0.0/8", "10.0.0.0/8,x", 7])
def test_broken_networks(given: object) -> None:
    with pytest.raises(ValueError, match=r"^must be networks"):
        networks(given)


def test_networks_as_settings_have_them() -> None:
    assert networks("") == networks([]) == ()
    assert networks(["10.0.0.0/8", " ::1"]) == networks("10.0.0.0/8,::1/128,10.0.0.0/8") == ("10.0.0.0/8", "::1/128")


def test_hosts_file(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text(
        "\ufeff# a comment\n\n127.0.0.1  A.test b.test # more\n::1\tb.test\n127.0.0.1 b.test\n10.0.0.1 münchen.test\n"
        + "".join(f"10.1.0.{number} many.test\n" for number in range(100))
    )
    hosts = read_hosts(file)
    assert {name: hosts[name] for name in ("a.test", "b.test", "xn--mnchen-3ya.test")} == {
        "a.test": ["127.0.0.1"],
        "b.test": ["127.0.0.1", "::1"],
        "xn--mnchen-3ya.test": ["10.0.0.1"],
    }
    assert len(hosts["many.test"]) == 8


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("127.0.0 a.test", "'127.0.0' is not an address"),
        ("a.test 127.0.0.1", "'a.test' is not an address"),
        ("127.0.0.1", "it has no host"),
        ("127.0.0.1 # a.test", "it has no host"),
        ("127.0.0.1 a.test http://b.test/", "'http://b.test/' is not the name of a host"),
        ("127.0.0.1 10.0.0.1", "'10.0.0.1' is not the name of a host"),
        ("127.0.0.1 a..test", "'a..test' is not the name of a host"),
        ("127.0.0.1 a.test:80", "'a.test:80' is not the name of a host"),
    ],
)
def test_broken_line_of_a_hosts_file(tmp_path: Path, line: str, fault: str) -> None:
    file = tmp_path / "hosts"
    file.write_text(f"127.0.0.1 good.test\n{line}\n")
    with pytest.raises(InputError) as refused:
        read_hosts(file)
    assert str(refused.value) == f"DNS_HOSTS {file}, line 2: {fault}; write ADDRESS HOST ..."


def test_hosts_file_that_cannot_be_read(tmp_path: Path) -> None:
    binary, long = tmp_path / "binary", tmp_path / "long"
    binary.write_bytes(b"\xff\xfe1\x00")
    long.write_text("127.0.0.1 " + "a" * 100_000)
    words = {tmp_path / "none": "No such file", tmp_path: "Is a directory", binary: "not text", long: "line 1 has more"}
    for file, said in words.items():
        with pytest.raises(InputError, match=f"^DNS_HOSTS {file} cannot be read: .*{said}"):
            read_hosts(file)
