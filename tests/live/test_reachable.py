"""The checks before a live crawl: contact and network."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from ipaddress import IPv4Network
from typing import Any

import pytest
from addon_site import Answer, serve

from crawl4llm.base.errors import InputError
from crawl4llm.live import reachable
from crawl4llm.live.addresses import Rules
from crawl4llm.live.identity import contact_in, with_contact
from crawl4llm.live.reachable import check_network, fault_of_page

URLS = [f"https://{name}.example/" for name in ("one", "two", "three")]


@pytest.mark.parametrize(
    ("given", "contact"),
    [
        ("https://example.org/crawler", "https://example.org/crawler"),
        (" HTTP://example.org ", "HTTP://example.org"),
        ("mailto:me@example.org", "mailto:me@example.org"),
        ("me+crawl@example.org", "mailto:me+crawl@example.org"),
    ],
)
def test_contacts(given: str, contact: str) -> None:
    assert contact_in(given) == contact
    assert with_contact("ours/2.0 (+https://example.org/old)", contact) == f"ours/2.0 (+{contact})"


@pytest.mark.parametrize(
    "given",
    [
        *("", "nobody", "example.org/crawler", "https://localhost/", "ftp://example.org/", "a@b", "mailto:", "me@"),
        *("https://example.org/ (me)", "https://example.org/\nX: y", "https://exa mple.org/", "https://example.org/)"),
        *("\x1b[31mhttps://example.org/", "https://ex\u00e4mple.org/", "https://example.org:port/", "https://[::1/x.y"),
    ],
)
def test_no_contacts(given: str) -> None:
    with pytest.raises(InputError, match="is no URL and no mail address"):
        contact_in(given)


def resolver(monkeypatch: pytest.MonkeyPatch, answers: dict[str, list[str] | int]) -> list[str]:
    """Let the system know these hosts alone, or fail with these errors; returns those that are looked up."""
    asked: list[str] = []

    def getaddrinfo(host: str, *_: Any, flags: int = 0, **__: Any) -> list[Any]:
        if flags & socket.AI_NUMERICHOST:
            raise socket.gaierror(socket.EAI_NONAME, "no address")
        asked.append(host)
        found = answers.get(host, socket.EAI_NONAME)
        if isinstance(found, int):
            raise socket.gaierror(found, "failed")
        return [(0, 0, 0, "", (address, 0)) for address in found]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return asked


def refusal(rules: Rules, urls: list[str]) -> str:
    with pytest.raises(InputError) as raised:
        check_network(rules, urls)
    return str(raised.value)


def test_one_host_that_can_be_asked_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = resolver(monkeypatch, {"two.example": ["127.0.0.1"]})
    check_network(Rules([IPv4Network("127.0.0.0/8")]), [*URLS[:1], *URLS])
    assert asked == ["one.example", "two.example"]


def test_a_name_server_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = resolver(monkeypatch, dict.fromkeys(("one.example", "two.example", "three.example"), socket.EAI_AGAIN))
    assert refusal(Rules(), URLS).startswith("no network: nobody answers a look-up of names (")
    assert asked == ["one.example", "two.example"]  # each may take ten seconds


def test_hosts_without_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver(monkeypatch, {})
    said = refusal(Rules(), URLS)
    assert said == "one.example has no address by DNS (likewise 2 more hosts of seeds); nothing can be asked"


def test_no_route(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver(monkeypatch, {"one.example": ["8.8.8.8"]})
    monkeypatch.setattr(reachable.socket, "socket", Unrouted)
    said = refusal(Rules(), URLS[:1])
    assert said == "no network: there is no route to 8.8.8.8, the address of one.example; nothing can be asked"


class Unrouted:
    """A socket of a machine without a network."""

    def __init__(self, *_: Any) -> None:
        pass

    def __enter__(self) -> Unrouted:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def connect(self, _address: object) -> None:
        raise OSError(101, "Network is unreachable")


def test_private_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver(monkeypatch, {"one.example": ["10.0.0.1"]})
    assert "has the address 10.0.0.1, which NETWORK_ALLOWED does not allow" in refusal(Rules(), URLS[:1])


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def test_the_page_on_the_crawler(closed_port: int) -> None:
    with serve({"/about": Answer(b"<p>our crawler")}) as site:
        assert fault_of_page(f"{site.url}/about", "ours (+me@example.org)") is None
        assert fault_of_page(f"{site.url}/none", "ours") == "it is answered with status 404"
        assert site.paths() == ["/about", "/none"]
    assert "refused" in (fault_of_page(f"http://127.0.0.1:{closed_port}/", "ours") or "").lower()
