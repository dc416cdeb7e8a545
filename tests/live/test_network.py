"""No page leads a crawl into a private network: each way there is tried, on real sockets."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from addon_site import Site, serve
from changing_dns import EXTENSIONS, LATER, LOG, SLOW
from crawl_helpers import PROJECT, crawl_log, error_of, stats
from live_helpers import crawl_live, moved, text_page
from scrapy.settings import Settings
from twisted.internet.address import IPv4Address, IPv6Address

from crawl4llm.base.urls import normalise_url
from crawl4llm.live import network
from crawl4llm.live.addresses import NoAnswer, Rules
from crawl4llm.live.network import Network

PRIVATE = "127.0.0.1/32"


@pytest.fixture
def site() -> Iterator[Site]:
    """A server at 127.0.0.1; each connection has one request, so that each request has a look-up."""
    closing = {"Connection": "close"}
    pages = {f"/{name}": text_page(number, [])._replace(headers=closing) for number, name in enumerate("abcdefghijklm")}
    with serve({"/": text_page(0, []), **pages}) as site:
        yield site


@pytest.fixture
def inside(site: Site) -> Iterator[Site]:
    """Another one at the same port of 127.0.0.2, at which nobody should look."""
    with serve({"/a": text_page(0, []), "/b": text_page(1, [])}, LATER, port_of(site)) as inside:
        yield inside


def port_of(site: Site) -> int:
    return int(site.url.rpartition(":")[2])


def reasons(output: Path) -> dict[str, str]:
    """How documents ended that were not crawled, by key."""
    lines = map(json.loads, (output / "failures.jsonl").read_text().splitlines())
    return {line["id"]: f"{line['outcome']}/{line['reason']}" for line in lines}


def hosts_file(tmp_path: Path, *lines: str) -> Path:
    file = tmp_path / "hosts"
    file.write_text("".join(f"{line}\n" for line in lines))
    return file


# -- ways in ----------------------------------------------------------------------------------------------------------

FORMS = (
    *("127.0.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]"),
    *("localhost", "0x7F.0.0.1", "0"),
)
"""Hosts that lead to 127.0.0.1, the last but for the system's own idea of 0.0.0.0."""
OTHERS = ("[::1]", "[::]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "169.254.169.254", "10.0.0.1", "[fe80::1]")


def test_private_addresses_in_any_form_are_not_asked(tmp_path: Path, site: Site) -> None:
    urls = [f"http://{host}:{port_of(site)}/" for host in (*FORMS, *OTHERS)]
    urls.append(f"https://127.0.0.1:{port_of(site)}/")
    result = crawl_live(urls, tmp_path / "run", NETWORK_ALLOWED="", ROBOTSTXT_OBEY=0)
    assert error_of(result).startswith("no page was crawled")
    assert site.asked == []
    ended = reasons(tmp_path / "run")
    assert set(ended) == set(map(normalise_url, urls))
    assert set(ended.values()) == {"dropped/refused_address"}
    assert stats(tmp_path / "run")["dropped/refused_address"] == len(ended) == len(urls) - 6
    assert "Traceback" not in result.stderr


def test_they_are_asked_where_they_are_allowed(tmp_path: Path, site: Site) -> None:
    """So that what is said above of each form can fail."""
    urls = [f"http://{host}:{port_of(site)}/{name}" for host, name in zip(FORMS, "abcdefghij", strict=True)]
    result = crawl_live(urls, tmp_path / "run", NETWORK_ALLOWED="127.0.0.1,0.0.0.0")
    assert result.returncode == 0, result.stderr
    assert sorted(site.paths()) == [f"/{name}" for name in "abcdefghij"]


def test_a_redirect_leads_no_further_than_a_link(tmp_path: Path, site: Site, inside: Site) -> None:
    port = port_of(site)
    ways = [f"http://{host}:{port}/a" for host in ("127.0.0.2", "2130706434", "[::ffff:127.0.0.2]", "127.2")]
    with serve({f"/{number}": moved(way) for number, way in enumerate(ways)}) as outside:
        urls = [f"{outside.url}/{number}" for number in range(len(ways))]
        result = crawl_live([*urls, f"{site.url}/"], tmp_path / "run", NETWORK_ALLOWED=PRIVATE)
    assert result.returncode == 0, result.stderr
    assert sorted(outside.paths()) == [f"/{number}" for number in range(len(ways))]
    assert inside.asked == []
    assert reasons(tmp_path / "run") == dict.fromkeys(urls, "dropped/refused_address")


def test_a_name_that_leads_inside(tmp_path: Path, site: Site) -> None:
    hosts = hosts_file(tmp_path, "127.0.0.1 inward.test", "::ffff:127.0.0.1 mapped.test", "169.254.169.254 cloud.test")
    urls = [f"http://{name}.test:{port_of(site)}/" for name in ("inward", "mapped", "cloud")]
    crawl_live(urls, tmp_path / "run", NETWORK_ALLOWED="10.0.0.0/8", DNS_HOSTS=hosts, ROBOTSTXT_OBEY=0)
    assert reasons(tmp_path / "run") == dict.fromkeys(urls, "dropped/refused_address")
    assert site.asked == []


def test_rebinding(tmp_path: Path, site: Site, inside: Site) -> None:
    """The first look-up of a host leads outside and all later ones inside: what was checked is what is asked."""
    log = tmp_path / "look-ups"
    urls = [f"http://rebinding.test:{port_of(site)}/{name}" for name in "ab"]
    settings = {"NETWORK_ALLOWED": PRIVATE, "EXTENSIONS": EXTENSIONS, "DNSCACHE_ENABLED": 0, "ROBOTSTXT_OBEY": 0}
    settings["CONCURRENT_REQUESTS"] = 1
    result = crawl_live(urls, tmp_path / "run", {LOG: str(log)}, **settings)
    assert result.returncode == 0, result.stderr
    assert site.paths() == ["/a"]
    assert inside.asked == []
    assert reasons(tmp_path / "run") == {urls[1]: "dropped/refused_address"}
    assert log.read_text().split() == ["rebinding.test"] * 2, "one look-up for each connection"


def test_of_several_addresses_only_those_that_may_be_asked_are(tmp_path: Path, site: Site, inside: Site) -> None:
    hosts = hosts_file(tmp_path, "127.0.0.2 both.test", "127.0.0.1 both.test", "10.0.0.1 both.test")
    url = f"http://both.test:{port_of(site)}/a"
    result = crawl_live([url], tmp_path / "run", NETWORK_ALLOWED=PRIVATE, DNS_HOSTS=hosts)
    assert result.returncode == 0, result.stderr
    assert site.paths() == ["/a"]
    assert inside.asked == []


# -- look-ups ---------------------------------------------------------------------------------------------------------


def test_a_hosts_file_has_the_only_hosts(tmp_path: Path, site: Site) -> None:
    port = port_of(site)
    hosts = hosts_file(tmp_path, "127.0.0.1 A.test b.test # and no others")
    known = [f"http://{host}.test:{port}/{host}" for host in "ab"]
    unknown = [f"http://localhost:{port}/", f"http://c.test:{port}/"]
    addresses = ["http://8.8.8.8/", f"http://127.0.0.2:{port}/"]
    result = crawl_live(
        [*known, *unknown, *addresses], tmp_path / "run", NETWORK_ALLOWED=PRIVATE, DNS_HOSTS=hosts, ROBOTSTXT_OBEY=0
    )
    assert result.returncode == 0, result.stderr
    assert sorted(site.paths()) == ["/a", "/b"]
    expected = {**dict.fromkeys(unknown, "failed/dns"), **dict.fromkeys(addresses, "dropped/refused_address")}
    assert reasons(tmp_path / "run") == expected


def test_a_look_up_blocks_nothing_but_its_own_host(tmp_path: Path, site: Site) -> None:
    """A look-up that takes ten minutes ends in DNS_TIMEOUT; others go on meanwhile; the crawl's end does not wait."""
    port, log = port_of(site), tmp_path / "look-ups"
    slow = f"http://slow.test:{port}/"
    dead = [f"http://dead.test:{port}/{number}" for number in range(20)]
    settings = {"EXTENSIONS": EXTENSIONS, "DNS_TIMEOUT": 1, "ROBOTSTXT_OBEY": 0, "CRAWL_BATCH_SIZE": 0}
    settings |= {"RETRY_WAITS": "0.1", "DELAY_FACTOR": 0}
    started = time.monotonic()
    result = crawl_live([slow, *dead, f"http://localhost:{port}/a"], tmp_path / "run", {LOG: str(log)}, **settings)
    assert result.returncode == 0, result.stderr
    assert time.monotonic() - started < SLOW / 2
    assert len(crawl_log(tmp_path / "run")) == 1
    assert reasons(tmp_path / "run") == dict.fromkeys([slow, *dead], "failed/dns")
    assert Counter(log.read_text().split()) == {"slow.test": 1, "dead.test": 1, "localhost": 1}


class Receiver:
    """Gets the answer to a look-up, as Twisted's endpoint does."""

    def __init__(self) -> None:
        self.addresses: list[IPv4Address | IPv6Address] = []
        self.complete = asyncio.Event()

    def resolutionBegan(self, resolution: object) -> None:
        assert not self.addresses

    def addressResolved(self, address: IPv4Address | IPv6Address) -> None:
        self.addresses.append(address)

    def resolutionComplete(self) -> None:
        self.complete.set()


async def resolve(resolver: Network, host: str, **kwargs: Any) -> list[str]:
    receiver = Receiver()
    resolver.resolveHostName(receiver, host, 80, **kwargs)
    await asyncio.wait_for(receiver.complete.wait(), 5)
    assert all(address.port == 80 for address in receiver.addresses)
    return [address.host for address in receiver.addresses]


def resolver(look_up: Any, **settings: object) -> Network:
    return Network(Rules(), Settings(settings), look_up)


def test_answers_are_kept_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def look_up(host: str) -> Sequence[str]:
        asked.append(host)
        return [] if "dead" in host else ["192.168.0.1"] if host == "inside.test" else ["1.1.1.1", "2a00::1"]

    async def ask(*hosts: str) -> list[str]:
        asked.clear()
        for host in hosts:
            await resolve(network_, host)
        return list(asked)

    async def scenario() -> None:
        assert await resolve(network_, "a.test") == ["1.1.1.1", "2a00::1"]
        assert await resolve(network_, "A.test", addressTypes=[IPv4Address]) == ["1.1.1.1"]
        assert asked == ["a.test"]
        assert await ask("b.test", "a.test", "c.test", "a.test", "b.test") == ["b.test", "c.test", "b.test"]
        assert network_.refused("a.test") is None
        assert await ask("inside.test", "dead.test", "inside.test", "dead.test") == ["inside.test", "dead.test"]
        assert network_.refused("inside.test") == "192.168.0.1"
        assert network_.refused("dead.test") is None
        assert network_.refused("0x7f.1") == "127.0.0.1"
        monkeypatch.setattr(network, "_FAILURE_KEPT_SECONDS", 0.05)
        monkeypatch.setattr(network, "_KEPT_SECONDS", 0.3)
        await ask("d.test", "dead2.test")
        assert await ask("dead2.test") == []
        await asyncio.sleep(0.1)
        assert await ask("d.test", "dead2.test") == ["dead2.test"]
        await asyncio.sleep(0.3)
        assert await ask("d.test") == ["d.test"]

    network_ = resolver(look_up, DNSCACHE_SIZE=2)
    asyncio.run(scenario())


def test_who_asks_while_a_host_is_looked_up_gets_the_same_answer() -> None:
    asked: list[str] = []
    running: list[str] = []
    most: list[int] = []

    def look_up(host: str) -> Sequence[str]:
        asked.append(host)
        running.append(host)
        most.append(len(running))
        time.sleep(0.2)
        running.remove(host)
        return ["1.1.1.1"]

    async def scenario() -> None:
        resolving = resolver(look_up, DNSCACHE_ENABLED=False)
        hosts = [f"{number}.test" for number in range(40)]
        assert await asyncio.gather(*(resolve(resolving, host) for host in hosts * 3)) == [["1.1.1.1"]] * 120
        assert max(most) > 4, "several at a time"
        assert sorted(asked) == sorted(hosts)
        await resolve(resolving, hosts[0])
        assert len(asked) == 41, "nothing is kept"

    asyncio.run(scenario())


def test_look_ups_that_hang_hold_up_no_others() -> None:
    """Each of those has a thread; another takes its place when its time is up. None of that is kept as an answer."""
    asked: list[str] = []
    answers = threading.Event()

    def look_up(host: str) -> Sequence[str]:
        asked.append(host)
        if "slow" in host:
            answers.wait(10)
        if host == "later.test" and asked.count(host) == 1:
            raise NoAnswer(host)
        return ["1.1.1.1"]

    async def scenario() -> None:
        resolving = resolver(look_up, DNS_TIMEOUT=0.3, DNSCACHE_SIZE=1000)
        slow = [f"slow{number}.test" for number in range(network._THREADS)]
        hanging = asyncio.gather(*(resolve(resolving, host) for host in slow))
        assert await resolve(resolving, "good.test") == ["1.1.1.1"], "its time begins with its look-up"
        assert await hanging == [[]] * len(slow)
        assert await resolve(resolving, slow[0]) == [], "waits for the same look-up again"
        assert asked.count(slow[0]) == 1
        answers.set()
        await asyncio.sleep(0.1)
        assert await resolve(resolving, slow[0]) == ["1.1.1.1"], "which came after all"
        assert asked.count(slow[0]) == 1
        assert await resolve(resolving, "later.test") == []
        assert await resolve(resolving, "later.test") == ["1.1.1.1"]

    asyncio.run(scenario())


def test_no_answer_is_not_no_address() -> None:
    """In a process without any network: its nameservers cannot be reached, which says nothing of a host."""
    code = "from crawl4llm.live.addresses import system_addresses as ask; print(ask('localhost')); ask('example.org')"
    alone = ["unshare", "--user", "--map-root-user", "--net", sys.executable, "-c", code]
    result = subprocess.run(alone, cwd=PROJECT, capture_output=True, text=True, check=False)
    if "unshare" in result.stderr:
        pytest.skip("needs a network namespace")
    assert "NoAnswer: example.org: Temporary failure in name resolution" in result.stderr


# -- proxies ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("enabled", [False, True])
def test_a_proxy_of_the_environment_is_asked_only_if_that_is_set(tmp_path: Path, site: Site, enabled: bool) -> None:
    through = {f"{site.url}/a": text_page(3, [])}
    with serve(through) as proxy:
        env = dict.fromkeys(["http_proxy", "HTTP_PROXY", "all_proxy"], proxy.url)
        given: dict[str, object] = {"HTTPPROXY_ENABLED": 1} if enabled else {}
        result = crawl_live([f"{site.url}/a"], tmp_path / "run", {**env, "no_proxy": ""}, **given)
    assert result.returncode == 0, result.stderr
    assert [asked.path for asked in proxy.asked if not asked.path.endswith((".txt", ".json"))] == [*through] * enabled
    assert site.paths() == ["/a"] * (not enabled)


def test_a_proxy_inside_must_be_allowed(tmp_path: Path, site: Site) -> None:
    with serve({}) as proxy:
        url = "http://example.org/"
        env = {"http_proxy": proxy.url.replace("127.0.0.1", "localhost"), "no_proxy": ""}
        given = {"HTTPPROXY_ENABLED": 1, "NETWORK_ALLOWED": "10.0.0.0/8", "ROBOTSTXT_OBEY": 0}
        crawl_live([url], tmp_path / "run", env, **given)
    assert proxy.asked == []
    assert reasons(tmp_path / "run") == {url: "dropped/refused_address"}


# -- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"NETWORK_ALLOWED": "127.0.0.1/8"}, "NETWORK_ALLOWED = '127.0.0.1/8' must be networks like 127.0.0.1/32"),
        ({"NETWORK_ALLOWED": "localhost"}, "NETWORK_ALLOWED = 'localhost' must be networks"),
        ({"DNS_HOSTS": "/nowhere/hosts"}, "DNS_HOSTS /nowhere/hosts cannot be read: No such file or directory"),
    ],
)
def test_broken_settings_are_one_line(tmp_path: Path, settings: dict[str, str], said: str) -> None:
    result = crawl_live(["http://example.org/"], tmp_path / "run", **settings)
    assert said in error_of(result)
    assert not (tmp_path / "run").exists()


def test_broken_hosts_file_is_one_line(tmp_path: Path) -> None:
    file = hosts_file(tmp_path, "127.0.0.1 a.test", "b.test")
    result = crawl_live(["http://example.org/"], tmp_path / "run", DNS_HOSTS=file)
    assert error_of(result) == f"DNS_HOSTS {file}, line 2: 'b.test' is not an address; write ADDRESS HOST ..."


def test_a_profile_without_the_network_says_so(tmp_path: Path, site: Site) -> None:
    """Such as one that switches the extension off, or has another handler."""
    plain = "scrapy.core.downloader.handlers.http11.HTTP11DownloadHandler"
    profiles = {
        "EXTENSIONS lacks crawl4llm.live.network.Network": {"EXTENSIONS": '{"crawl4llm.live.network.Network": null}'},
        f"DOWNLOAD_HANDLERS has {plain} for http": {"DOWNLOAD_HANDLERS": f'{{"http": "{plain}"}}'},
    }
    for number, (said, settings) in enumerate(profiles.items()):
        output = tmp_path / str(number)
        result = crawl_live([f"{site.url}/"], output, NETWORK_ALLOWED="", **settings)
        assert result.stderr.count(f"{said}") == 1
        assert len(crawl_log(output)) == stats(output)["pages/fetched"] == 1
    result = crawl_live([f"{site.url}/"], tmp_path / "none", EXTENSIONS='{"no.such.Thing": 0}')
    assert error_of(result).startswith("EXTENSIONS: no.such.Thing cannot be loaded")
