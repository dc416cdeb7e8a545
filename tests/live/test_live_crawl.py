"""Crawls over HTTP of a web on a real socket, with the ``live`` profile."""

from __future__ import annotations

import json
import pickle
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from addon_site import serve
from crawl_helpers import crawl_log, scrapy, stats
from documented import is_documented
from live_helpers import DEAD, LATIN, RAW_BODY, USER_AGENT, Crawled, crawl_live, crawled_once, small_web, text_page
from scrapy.settings import Settings
from warcio.archiveiterator import ArchiveIterator
from warcio.recordloader import ArcWarcRecord

from crawl4llm.base.errors import InputError
from crawl4llm.crawl.fetched_web import LiveCorpus
from crawl4llm.engine.run import Run
from crawl4llm.scoring.text import EXTRACTORS
from crawl4llm.warc import cdxj

LIVE = {
    "DOWNLOADER_MIDDLEWARES": {"crawl4llm.live.fetching.Fetching": 25},
    "SCORER": "length",
    "URL_POLICY": "parent_first",
    "USER_AGENT": USER_AGENT,
}

SIMULATION = {"simulate.middleware.SimulationMiddleware": 0}


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    return crawled_once(tmp_path_factory)


def failures(output: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (output / "failures.jsonl").read_text().splitlines()]


def records(output: Path) -> Iterator[ArcWarcRecord]:
    """The records of a crawl's pages as warcio reads them, bodies not decoded."""
    for file in sorted((output / "warc").glob("*-0*.warc.gz")):
        if "-text-" not in file.name:
            with file.open("rb") as stream:
                yield from ArchiveIterator(stream)


class Trace(NamedTuple):
    """Makes a folder where it is unpickled."""

    path: Path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.mkdir, (self.path,)


def test_hosts_that_do_not_resolve_say_nothing_each(tmp_path: Path) -> None:
    """They are in failures.jsonl; what the terminal shows is what the crawl does and what came of it."""
    (tmp_path / "hosts").write_text("127.0.0.1 nobody.test\n")
    with serve({f"/{number}": text_page(number, []) for number in range(3)}) as site:
        dead = [f"http://no-such-host-{number}.invalid/" for number in range(60)]
        settings = {"RETRY_TIMES": 0, "DNS_HOSTS": tmp_path / "hosts"}
        result = crawl_live([*(f"{site.url}/{number}" for number in range(3)), *dead], tmp_path / "run", **settings)
    assert result.returncode == 0, result.stderr
    assert Counter(failure["reason"] for failure in failures(tmp_path / "run")) == {"dns": 60}
    assert len(crawl_log(tmp_path / "run")) == 3
    assert "Traceback" not in result.stderr
    assert len(result.stderr.splitlines()) <= 3, result.stderr
    assert len(result.stdout.splitlines()) <= 10, result.stdout
    assert not (tmp_path / "run/errors.log").exists()


# -- order and outcomes -----------------------------------------------------------------------------------------------


def test_pages_come_in_batches_in_the_order_of_the_policy(crawled: Crawled) -> None:
    log = crawl_log(crawled.output)
    influence = {line["id"]: line["influence"] for line in log}
    found = [line for line in log if line["parent"] is not None]
    assert len(found) == 46
    assert all(line["priority"] == influence[line["parent"]] for line in found)
    ended = [*log, *failures(crawled.output)]
    assert max(Counter(line["iteration"] for line in found).values()) == 5
    assert len(ended) == stats(crawled.output)["pages/visited"] - 3, "three URLs are visited that redirect"
    assert len({line["id"] for line in ended}) == len(ended)


def test_each_document_that_is_no_page_ends_with_its_reason(crawled: Crawled) -> None:
    assert {crawled.path(line["id"]): (line["outcome"], line["reason"]) for line in failures(crawled.output)} == {
        "/gone": ("failed", "http_404"),
        DEAD[0]: ("failed", "dns"),
        DEAD[1]: ("failed", "refused"),
        "/missing": ("failed", "http_404"),
        "/broken": ("failed", "http_500"),
        "/private/a": ("dropped", "robots"),
        "/notes.txt": ("dropped", "not_html"),
        "/large": ("dropped", "too_large"),
        "/bomb": ("failed", "bomb"),
        "/loop-a": ("dropped", "duplicate"),
        "/loop-b": ("dropped", "duplicate"),
        "/to-moved-0": ("dropped", "duplicate"),
        "/to-visited": ("dropped", "duplicate"),
        "/to-missing": ("dropped", "duplicate"),
        "/self": ("failed", "redirect_loop"),
    }
    assert all(map(is_documented, stats(crawled.output)))


def test_explain_tells_what_became_of_a_document(crawled: Crawled) -> None:
    line = crawl_log(crawled.output)[-1]
    told = scrapy("explain", line["id"], "--run", str(crawled.output)).stdout
    assert f"crawled    order {line['order']}, iteration {line['iteration']}, priority {line['priority']:.6f}\n" in told
    assert f"influence  {line['influence']:.6f}\n" in told
    of_each_reason = {failure["reason"]: failure for failure in failures(crawled.output)}
    for failure in of_each_reason.values():
        told = scrapy("explain", failure["id"], "--run", str(crawled.output)).stdout
        assert f"\n{failure['outcome']:<11}{failure['reason']}\nfound      " in told


def test_the_target_of_a_redirect_takes_its_place(crawled: Crawled) -> None:
    lines = {crawled.path(line["id"]): line for line in crawl_log(crawled.output)}
    assert "/moved-0" not in lines
    assert "/dir" not in lines
    assert crawled.path(lines["/target"]["parent"]) == "/page-0"
    assert lines["/dir/"]["parent"] is None
    assert crawled.path(lines["/only-from-target"]["parent"]) == "/target"


def test_nothing_is_asked_for_in_vain(crawled: Crawled) -> None:
    """Each URL once, also where redirects lead; what failed for a time once more; what robots.txt forbids never."""
    several = {path: times for path, times in Counter(crawled.asked).items() if times > 1}
    assert several == {"/broken": 2}
    assert "/private/a" not in crawled.asked


def test_pages_are_read_as_they_were_meant(crawled: Crawled) -> None:
    """A page in Latin-1 that says so nowhere; identical pages are pages each."""
    lines = {crawled.path(line["id"]): line for line in crawl_log(crawled.output)}
    assert lines["/latin"]["influence"] == len(EXTRACTORS["trafilatura"](LATIN))
    assert lines["/same-a"]["influence"] == lines["/same-b"]["influence"] > 0


# -- capture ----------------------------------------------------------------------------------------------------------


def test_messages_are_archived_as_they_went_over_the_wire(crawled: Crawled) -> None:
    url = f"{crawled.raw_url}/raw"
    kept = {one.rec_type: one for one in records(crawled.output) if one.rec_headers["WARC-Target-URI"] == url}
    response = kept["response"]
    assert response.http_headers.statusline == "200 Just fine"
    names = [name for name, _ in response.http_headers.headers]
    assert names[:5] == ["x-first", "ETAG", "content-TYPE", "X-First", "X-Folded"]
    assert response.rec_headers["WARC-IP-Address"] == "127.0.0.1"
    assert response.rec_headers["WARC-Protocol"] == "http/1.1"
    assert kept["metadata"].rec_headers["WARC-Concurrent-To"] == response.rec_headers["WARC-Record-ID"]

    (sent,) = (request for request in crawled.raw_requests if request.startswith(b"GET /raw "))
    assert b"\r\nAccept-Encoding: gzip, deflate\r\n" in sent, "what all readers of archives undo"
    head = kept["request"].http_headers
    assert f"GET {head.statusline}".encode() == sent.partition(b"\r\n")[0]
    assert [f"{name}: {value}".encode() for name, value in head.headers] == sent.split(b"\r\n")[1:-2]


def test_each_page_says_how_long_its_fetch_took(crawled: Crawled) -> None:
    blocks = [one.raw_stream.read() for one in records(crawled.output) if one.rec_type == "metadata"]
    taken = [int(found[1]) for block in blocks if (found := re.search(rb"\nfetchTimeMs: (\d+)\r\n", block))]
    of_no_page = [block for block in blocks if block.startswith(b"purpose: ")]
    assert sorted(block.split()[1] for block in of_no_page) == [b"bomb"] + [b"robots.txt"] * 2 + [b"tdmrep.json"] * 2
    assert len(taken) == len(blocks) - len(of_no_page) == len(crawl_log(crawled.output))
    assert max(taken) < 60_000


def test_bodies_are_archived_as_they_were_sent(crawled: Crawled) -> None:
    """Without the chunks of the transfer, with the coding of the content."""
    web = small_web()
    bodies = {
        crawled.path(one.rec_headers["WARC-Target-URI"]): one.raw_stream.read()
        for one in records(crawled.output)
        if one.rec_type == "response"
    }
    assert bodies.pop(f"{crawled.raw_url}/raw") == bodies.pop(f"{crawled.raw_url}/robots.txt") == RAW_BODY
    assert bodies.pop(f"{crawled.raw_url}/.well-known/tdmrep.json") == RAW_BODY
    assert bodies.pop("/.well-known/tdmrep.json") == b"<p>not here"
    assert {path: body == web[path].body for path, body in bodies.items()} == dict.fromkeys(bodies, True)  # type: ignore[union-attr]
    assert {"/page-1", "/page-2", "/dir", "/moved-0", "/moved-1", "/target"} <= bodies.keys()
    assert "/same-b" not in bodies, "an identical page is a revisit"


def test_robots_txt_holds_for_those_that_wait_for_it_together(tmp_path: Path) -> None:
    """Scrapy's own middleware lets all but the first two pass."""
    web = {path: text_page(0, []) for path in ("/page", *(f"/private/{number}" for number in range(6)))}
    with serve({**web, "/robots.txt": small_web()["/robots.txt"]}) as site:
        result = crawl_live([f"{site.url}{path}" for path in web], tmp_path / "run")
    assert result.returncode == 0, result.stderr
    assert site.paths() == ["/page"]
    assert stats(tmp_path / "run")["dropped/robots"] == 6


# -- order without batches, and resumption ----------------------------------------------------------------------------


def test_continuous_order_goes_on_in_another_process(tmp_path: Path) -> None:
    secrets = {"Cookie": "id=hidden", "Authorization": "Basic hidden", "Proxy-Authorization": "Basic hidden"}
    headers = {"DEFAULT_REQUEST_HEADERS": json.dumps(secrets)}
    settings = {"CRAWL_BATCH_SIZE": 0, "JOBDIR": tmp_path / "job", **headers}
    with serve(small_web()) as site:
        seeds = [f"{site.url}/page-0"]
        assert crawl_live(seeds, tmp_path / "run", CRAWL_MAX_PAGES=12, **settings).returncode == 0
        begun = json.loads((tmp_path / "run/settings.json").read_text())["crawl_id"]
        (tmp_path / "job/spider.state").write_bytes(pickle.dumps(Trace(tmp_path / "unpickled")))
        result = crawl_live(seeds, tmp_path / "run", CRAWL_MAX_PAGES=100, **settings)
    assert result.returncode == 0, result.stderr
    assert " simulate " in result.stdout, "what to do next"
    log = crawl_log(tmp_path / "run")
    assert [line["order"] for line in log] == list(range(49)), "/large is cut"
    assert len({line["id"] for line in log}) == len(log)
    assert len(log) + len(failures(tmp_path / "run")) == stats(tmp_path / "run")["pages/visited"] - 3
    entries = list(cdxj.read(tmp_path / "run/warc/index.cdxj"))
    assert [entry.id for entry in entries if entry.id] == [line["id"] for line in log]
    assert json.loads((tmp_path / "run/settings.json").read_text())["crawl_id"] == begun
    assert not (tmp_path / "unpickled").exists(), "a JOBDIR that one received runs no code"
    requests = [one for one in records(tmp_path / "run") if one.rec_type == "request"]
    assert len(requests) >= len(log)
    assert {one.rec_headers["Crawl4LLM-HTTP-Headers"] for one in requests} == {"credentials left out"}
    assert not [one for one in requests if "hidden" in str(one.http_headers)]
    assert [(tmp_path / "job" / name).stat().st_mode & 0o077 for name in ("job.json", "store.mdb")] == [0, 0]


# -- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "seeds", "complaint"),
    [
        (LIVE, None, "-a seeds=FILE"),
        (LIVE, "/page\nexample.org\nftp://example.org/", "no usable seed (3 given, 2 malformed, 1 unknown)"),
        ({**LIVE, "CORPUS": "demo"}, "http://example.org/", "CORPUS demo is for simulations"),
        (
            {**LIVE, "URL_POLICY": "influence"},
            "http://example.org/",
            "URL_POLICY influence needs the content of a",
        ),
        ({**LIVE, "URL_POLICY": "indegree"}, "http://example.org/", "URL_POLICY indegree"),
        ({**LIVE, "URL_POLICY": "scorer:length"}, "http://example.org/", "URL_POLICY scorer:length needs the content"),
        ({**LIVE, "HOT_QUEUE_TOPIC": "physics"}, "http://example.org/", "HOT_QUEUE_TOPIC"),
        ({**LIVE, "SCORER": "fasttext"}, "http://example.org/", "SCORER_MODEL"),
        ({**LIVE, "DOWNLOADER_MIDDLEWARES": SIMULATION}, "http://example.org/", "CORPUS is not set"),
        ({"SCORER": "length"}, "http://example.org/", "DOWNLOADER_MIDDLEWARES has nothing that fetches pages"),
        ({"DOWNLOADER_MIDDLEWARES": {"a.b.C": 1}}, "http://example.org/", "DOWNLOADER_MIDDLEWARES: a.b.C cannot be"),
    ],
)
def test_what_a_live_crawl_cannot_do(
    tmp_path: Path, settings: dict[str, Any], seeds: str | None, complaint: str
) -> None:
    path = tmp_path / "seeds.txt"
    path.write_text(seeds or "")
    given = Settings({"OUTPUT_DIR": str(tmp_path / "run"), **settings}, priority="project")
    with pytest.raises(InputError) as refused:
        Run(given, None if seeds is None else str(path))
    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "run").exists()


def test_documents_of_the_live_web() -> None:
    web = LiveCorpus()
    assert web.resolve("HTTP://Example.org:80/a/../b#c") == "http://example.org/b"
    assert "https://example.org/" in web
    assert [web.resolve(url) for url in ("ftp://example.org/", "http://", "mailto:a@example.org")] == [None] * 3
