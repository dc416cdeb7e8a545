"""The web that crawls are tried on: it serves what it should, misbehaves as it is told, and its log is true."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import time
from collections.abc import Callable, Iterator
from itertools import islice, product
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from crawl_helpers import begin_python, crawl_log, python
from live_helpers import crawl_live, text_page

from crawl4llm.base.html_tree import HtmlTree, html_links
from crawl4llm.live.addresses import read_hosts
from simulate.demo.web import Web
from tests.testweb import (
    KINDS,
    NOWHERE,
    REFUSING,
    ClosedPages,
    DemoPages,
    FewPages,
    LocalWeb,
    MazedPages,
    RealPages,
    mazes,
    read_log,
    running,
    waits,
)
from tests.testweb.misbehaviour import EXAMPLES, host_of_example
from tests.testweb.pages import place_of

PAGE = (
    b"<p>A page with <a href='https://b.test/x'>one</a>, <a href=//B.test>two</a>, <a href='http://c.test/'>three</a>"
)


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalWeb]:
    """Two hosts with pages, and one for each kind of misbehaviour."""
    rules = {host_of_example(kind): kind for kind in EXAMPLES if not kind.startswith(("slow", "drip", "bomb"))}
    rules |= {"slow.test": "slow:0.3", "drip.test": "drip:1", "bomb.test": "bomb:3", "a.test/bad": "status:500"}
    rules |= {"/everywhere": "reset", "b.test/robots.txt": "flaky:1"}
    pages = FewPages({"a.test": {"/": PAGE, "/q?x=1": b"<p>query"}, "b.test": {"/x": b"<p>x"}})
    robots = {"*": "User-agent: *\nDisallow: /all\n", "a.test": "User-agent: *\nDisallow: /a\n"}
    with running(LocalWeb(tmp_path_factory.mktemp("web"), pages, misbehaving=rules, robots=robots)) as web:
        yield web


def connect(web: LocalWeb, host: str) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(web.address(host) or "", web.port, timeout=60)


def get(web: LocalWeb, host: str, path: str = "/", **headers: str) -> tuple[int, bytes, dict[str, str]]:
    """Status, body as sent, and head of an answer."""
    connection = connect(web, host)
    try:
        connection.request("GET", path, headers={"Host": f"{host}:{web.port}", **headers})
        response = connection.getresponse()
        return response.status, response.read(), {name.lower(): value for name, value in response.getheaders()}
    finally:
        connection.close()


def test_pages_by_host(web: LocalWeb) -> None:
    status, body, head = get(web, "a.test")
    assert (status, head["content-type"]) == (200, "text/html; charset=utf-8")
    here = f"http://b.test:{web.port}".encode()
    assert body == PAGE.replace(b"https://b.test", here).replace(b"//B.test", here), "links to other webs stay"
    assert get(web, "a.test", "/q?x=1")[:2] == (200, b"<p>query")
    assert get(web, "b.test", "/")[0] == 404
    assert get(web, "a.test", "/robots.txt")[1] == b"User-agent: *\nDisallow: /a\n"
    assert get(web, "slow.test", "/robots.txt")[1] == b"User-agent: *\nDisallow: /all\n"
    assert [get(web, "b.test", "/robots.txt")[0] for _ in range(3)] == [503, 200, 200]


def test_files_of_a_crawl(web: LocalWeb) -> None:
    hosts = read_hosts(web.hosts_file)
    assert "nowhere.test" not in hosts
    assert {*hosts, "nowhere.test"} == {*web.hosts}
    assert hosts["a.test"] == ["127.1.0.1"]
    assert len({address for of_host in hosts.values() for address in of_host}) == len(hosts), "one each"
    assert web.seeds_file.read_text().split() == web.seeds
    assert web.seeds[:2] == [f"http://a.test:{web.port}/", f"http://b.test:{web.port}/x"]
    with pytest.raises(ConnectionRefusedError):
        get(web, "refusing.test")


def test_answers_that_are_wrong(web: LocalWeb) -> None:
    assert {kind.partition(":")[0] for kind in EXAMPLES} == {*KINDS, "flaky", REFUSING, NOWHERE}
    assert get(web, "status-503.test")[0] == get(web, "a.test", "/misbehave/status:503/x")[0] == 503
    assert get(web, "a.test", "/bad")[0] == 500
    status, _, head = get(web, "retry-after-5.test")
    assert (status, head["retry-after"]) == (429, "5")
    assert get(web, "a.test", "/misbehave/retry-after:7:503/")[2]["retry-after"] == "7"
    assert [get(web, "flaky-2.test")[0] for _ in range(3)] == [503, 503, 404]
    assert [get(web, host)[2]["location"] for host in ("loop.test", "redirect.test")] == [
        "/",
        "http://169.254.169.254/",
    ]
    assert get(web, "to.test")[2]["location"] == web.url("status-404.test")
    assert get(web, "maze.test", "/?step=7")[2]["location"] == "/?step=8"
    assert get(web, "cookie-wall.test")[0] == 302
    assert get(web, "cookie-wall.test", Cookie=get(web, "cookie-wall.test")[2]["set-cookie"])[0] == 200
    _, body, head = get(web, "charset.test")
    assert head["content-type"].endswith("utf-8")
    assert "Страница" in body.decode("cp1251")
    _, body, _ = get(web, "bomb.test")
    assert len(body) < 10_000
    assert len(gzip.decompress(body)) > 3_000_000
    for host in ("truncated.test", "short.test"):
        with pytest.raises(http.client.IncompleteRead):
            get(web, host)
    for host, path in (("reset.test", "/"), ("a.test", "/everywhere")):
        with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
            get(web, host, path)
    with pytest.raises(http.client.BadStatusLine):
        get(web, "garbage.test")


def test_answers_that_take_their_time(web: LocalWeb) -> None:
    for host, least, most in (("slow.test", 0.3, 60), ("drip.test", 0.9, 60)):
        started = time.monotonic()
        assert get(web, host)[0] == 200
        assert least <= time.monotonic() - started < most
    with socket.create_connection((web.address("hang.test") or "", web.port), 0.5) as one:
        one.sendall(b"GET / HTTP/1.1\r\nHost: hang.test\r\n\r\n")
        with pytest.raises(TimeoutError):
            one.recv(1)
    connection = connect(web, "endless.test")
    connection.request("GET", "/", headers={"Host": "endless.test"})
    assert len(connection.getresponse().read(5_000_000)) == 5_000_000
    connection.close()


def test_the_log_has_when_each_request_came_and_its_answer_was_out(tmp_path: Path) -> None:
    pages = FewPages({"a.test": {"/": PAGE, "/large": b"<p>" + b"much " * 500_000}, "www.a.test": {"/": PAGE}})
    with running(LocalWeb(tmp_path, pages, misbehaving={"a.test/slow": "slow:0.2", "a.test/hang": "hang"})) as web:
        before = time.monotonic()
        get(web, "a.test", "/slow")
        time.sleep(0.1)
        get(web, "www.a.test")
        get(web, "a.test", "/large")
        after = time.monotonic()
        connection = connect(web, "a.test")
        connection.request("GET", "/hang", headers={"Host": "a.test"})
        time.sleep(0.2)
        connection.close()
    log = read_log(web.log_file)
    assert [(one.host, one.path, one.status, one.whole) for one in log] == [
        ("a.test", "/slow", 200, True),
        ("www.a.test", "/", 200, True),
        ("a.test", "/large", 200, True),
        ("a.test", "/hang", 0, False),
    ]
    assert before < log[0].arrived < log[0].ended - 0.19 < log[1].arrived < log[2].ended < after
    assert log[3].ended - log[3].arrived > 0.15
    (seconds,) = waits(log).values()
    assert len(seconds) == 3, "one owner"
    assert 0.09 < seconds[0] < 1
    assert log[0].address == web.address("a.test")


def test_what_is_under_way_at_the_end_is_logged(tmp_path: Path) -> None:
    with running(LocalWeb(tmp_path, FewPages({"a.test": {"/": PAGE}}), misbehaving={"/hang": "hang"})) as web:
        connection = connect(web, "a.test")
        connection.request("GET", "/hang", headers={"Host": "a.test"})
        time.sleep(0.2)
    assert [(one.path, one.whole) for one in read_log(web.log_file)] == [("/hang", False)]


def test_the_demo_web_is_the_one_that_is_built(tmp_path: Path) -> None:
    plain, pages = Web(500, 10, 0), DemoPages(500, 10, 0)
    assert len(pages.homes) == len(plain.sites) == 10
    assert set(pages.homes.values()) == {"/"}
    assert len({pages.find(page.url.split("/")[2], "/" + page.url.split("/", 3)[3]) for page in plain.pages}) > 450


def test_the_real_web(tmp_path: Path, shared: Callable[[str], Path]) -> None:
    pages = RealPages(shared("corpora/real-web"), 3)
    assert len(pages.homes) == 3
    host, home = next(iter(pages.homes.items()))
    html = pages.find(host, home)
    assert isinstance(html, bytes)
    assert b"</html>" in html
    assert pages.find(host, "/no/such/page") is None
    with running(LocalWeb(tmp_path, pages, addresses=1)) as web:
        assert web.address(host) == "127.0.0.1"
        assert get(web, host, home)[:2][0] == 200


def test_the_real_web_without_dead_links(shared: Callable[[str], Path]) -> None:
    pages = RealPages(shared("corpora/real-web"), 1)
    closed = ClosedPages(pages)
    followed = 0
    for host, path in islice(pages.places, 20):
        before, after = pages.find(host, path), closed.find(host, path)
        assert isinstance(before, bytes)
        assert isinstance(after, bytes)
        base = f"http://{host}{path}"
        kept = {url.partition("#")[0] for url, *_ in html_links(HtmlTree(after), base)} - {base}
        assert all(pages.leads(*place_of(url)) for url in kept)
        followed += len(kept)
        found = {url.partition("#")[0] for url, *_ in html_links(HtmlTree(before), base)} - {base}
        assert kept == {url for url in found if pages.leads(*place_of(url))}
    assert followed > 100


def test_a_crawl_of_it(tmp_path: Path) -> None:
    """By way of DNS_HOSTS, over links from host to host."""
    body = text_page(0, []).body
    pages = FewPages(
        {
            "a.test": {"/": body.replace(b"</nav>", b'<a href="https://b.test/">b</a></nav>')},
            "b.test": {"/": body.replace(b"</nav>", b'<a href="http://c.test/x">c</a></nav>')},
        }
    )
    with running(LocalWeb(tmp_path / "web", pages, misbehaving={"c.test": NOWHERE})) as web:
        result = crawl_live(web.seeds[:1], tmp_path / "run", DNS_HOSTS=web.hosts_file)
    assert result.returncode == 0, result.stderr
    assert [line["id"] for line in crawl_log(tmp_path / "run")] == web.seeds[:2]
    (failed,) = map(json.loads, (tmp_path / "run/failures.jsonl").read_text().splitlines())
    assert (failed["id"], failed["reason"]) == (f"{web.url('c.test', '/x')}", "dns")
    assert {(one.host, one.path) for one in read_log(web.log_file)} == {
        (host, path) for host in ("a.test", "b.test") for path in ("/", "/robots.txt", "/.well-known/tdmrep.json")
    }


def test_mazes_have_no_end_and_honest_pages_lead_into_them() -> None:
    pages, again = (MazedPages(1000, 20, 0, mazes=15) for _ in range(2))
    assert not any(pages.homes[host] for host in pages.homes.keys() - DemoPages(1000, 20, 0).homes.keys())
    led_into = set()
    for url, entries in pages.mazes.entries.items():
        place = urlsplit(url)
        shown = pages.find(place.hostname or "", f"{place.path}{'?' if place.query else ''}{place.query}")
        assert isinstance(shown, bytes)
        for target, _ in entries:
            assert f'href="{target}"'.encode() in shown
            led_into.add(pages.mazes.maze_of(target))
    assert led_into == set(pages.mazes.mazes)
    assert {(maze.kind, maze.place) for maze in led_into if maze} == set(
        product(mazes.KINDS, [mazes.OWN, mazes.SPREAD, mazes.BELOW])
    )
    for maze in pages.mazes.mazes:
        url, seen = maze.bases[0], set[str]()
        for _ in range(60):
            page = pages.mazes.page(url)
            assert page is not None
            assert page == again.mazes.page(url)
            assert 5 <= len(page.links) <= 20
            assert {pages.mazes.maze_of(target) for target, _ in page.links} == {maze}
            seen.add(url)
            url = next(target for target, _ in page.links if target not in seen)
        assert len(url) < 1000
        place = urlsplit(url)
        assert pages.find(place.hostname or "", place.path) is not None


def test_by_hand(tmp_path: Path) -> None:
    command = ("-m", "tests.testweb")
    args = [
        "--folder",
        str(tmp_path),
        "--pages",
        "50",
        "--hosts",
        "10",
        "--misbehaving",
        "--misbehave",
        "odd.test=loop",
    ]
    with begin_python(*command, *args, silent=["err"]) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        assert said.startswith(f"{10 + len(EXAMPLES) + 1} hosts at port ")
        port = int(said.split()[4].rstrip(";"))
        connection = http.client.HTTPConnection(read_hosts(tmp_path / "hosts")["odd.test"][0], port, timeout=60)
        connection.request("GET", "/", headers={"Host": "odd.test"})
        assert connection.getresponse().status == 302
        process.terminate()
    summed = python(*command, "--sum-up", tmp_path / "access.jsonl", check=True)
    assert summed.stdout == "1 requests: 1 302\n"
    wrong = python(*command, "--misbehave", "a.test=odd")
    assert wrong.returncode == 1
    assert wrong.stderr.startswith("odd is not known; known are: bomb, ")
