"""The profile ``clueweb12``: a crawl by the rules on ClueWeb12's page, as far as they are a crawl's."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from addon_site import Answer, serve
from crawl_helpers import error_of, scrapy
from live_helpers import check_archive, crawl_live, text_page
from scrapy.settings import Settings
from warcio.archiveiterator import ArchiveIterator

from crawl4llm.options import read_options
from settings import clueweb12, live

MOST = 10_000_000
SKIPPED = [
    "/film.avi",
    "/song.mp3",
    "/intro.swf",
    "/all.zip",
    "/all.tar",
    "/all.tar.gz",
    "/old.sit",
    "/old.hqx",
    "/p.JPG",
]
CAPTURED_THERE = {"/style.css": "text/css", "/feed": "application/xml", "/script.js": "text/javascript"}
ENV = {"SCRAPY_PROJECT": "clueweb12"}


class Crawled(NamedTuple):
    """A crawl by the profile."""

    output: Path
    url: str
    asked: list[str]
    archived: dict[str, tuple[bytes, str | None, str]]
    """Body, WARC-Truncated and Content-Type, by path."""

    @property
    def failures(self) -> dict[str, str]:
        lines = map(json.loads, (self.output / "failures.jsonl").read_text().splitlines())
        return {line["id"].removeprefix(self.url): line["reason"] for line in lines}


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    folder = tmp_path_factory.mktemp("clueweb12")
    lists = [folder / "malware.txt", folder / "opted-out.txt"]
    for path, domain in zip(lists, ("malware.example", "127.0.0.9"), strict=True):
        path.write_text(f"{domain}\n")
    links = [*SKIPPED, *CAPTURED_THERE, "/long", "/exact", "/packed", "/koi", "/private/page"]
    links += ["http://www.malware.example/", "http://127.0.0.9/", "/style.css"]
    long = b"<p>A page of few words.</p>" + b"<!-- and much beside them -->" * (MOST // 29 + 1000)
    web: dict[str, Answer] = {
        "/": text_page(1, links),
        "/long": Answer(long),
        "/exact": Answer(long[:MOST]),
        "/packed": Answer(gzip.compress(long, mtime=0), headers={"Content-Encoding": "gzip"}),
        "/koi": Answer("<p>Страница.".encode("koi8-r"), content_type="text/html; charset=koi8-r"),
        "/robots.txt": Answer(b"User-agent: *\nDisallow: /private/\n", content_type="text/plain"),
        **{path: Answer(b"body {}", content_type=kind) for path, kind in CAPTURED_THERE.items()},
    }
    with serve(web) as site:
        of_profile = {"CRAWL_BATCH_SIZE": None, "DOWNLOAD_MAXSIZE": None, "CONCURRENT_REQUESTS_PER_DOMAIN": None}
        settings = {**of_profile, "BLOCKLISTS": ",".join(map(str, lists)), "CRAWL_MAX_PAGES": 100, "DELAY_FACTOR": 0}
        result = crawl_live([f"{site.url}/"], folder / "run", ENV, **settings)
        assert result.returncode == 0, result.stderr
        asked = [one.path for one in site.asked]
    archived = {}
    for file in (folder / "run/warc").glob("*.warc.gz"):
        with file.open("rb") as stream:
            for record in ArchiveIterator(stream, no_record_parse=False):
                if record.rec_type == "response":
                    path = record.rec_headers["WARC-Target-URI"].removeprefix(site.url)
                    head = record.http_headers.get_header("Content-Type")
                    archived[path] = record.raw_stream.read(), record.rec_headers["WARC-Truncated"], head
    yield Crawled(folder / "run", site.url, asked, archived)


def test_multimedia_and_compressed_files_are_not_asked_for(crawled: Crawled) -> None:
    assert not {*SKIPPED} & {*crawled.asked}
    stats = json.loads((crawled.output / "stats.json").read_text())
    assert stats["crawl4llm/links/file_type"] == len(SKIPPED)
    assert set(read_options(Settings(vars(clueweb12))).scope_skipped_types) == {"images", "media", "archives"}


def test_what_is_larger_than_10_mb_is_cut(crawled: Crawled) -> None:
    """On the wire; what is smaller there is archived as it came."""
    body, truncated, _ = crawled.archived["/long"]
    assert (len(body), truncated) == (MOST, "length")
    body, truncated, _ = crawled.archived["/exact"]
    assert (len(body), truncated) == (MOST, None)
    assert len(gzip.decompress(crawled.archived["/packed"][0])) > MOST


def test_black_lists_and_robots_txt_are_obeyed(crawled: Crawled) -> None:
    assert crawled.failures["http://www.malware.example/"] == crawled.failures["http://127.0.0.9/"] == "blocklist"
    assert crawled.failures["/private/page"] == "robots"
    assert "/private/page" not in crawled.asked


def test_pages_are_archived_with_their_heads_and_encodings(crawled: Crawled) -> None:
    """Media that ClueWeb12 captured besides are dropped at their heads: the row that is not followed."""
    body, _, kind = crawled.archived["/koi"]
    assert (body.decode("koi8-r"), kind) == ("<p>Страница.", "text/html; charset=koi8-r")
    assert {path: crawled.failures[path] for path in CAPTURED_THERE} == dict.fromkeys(CAPTURED_THERE, "not_html")


def test_nothing_is_there_twice(crawled: Crawled) -> None:
    assert {key.removeprefix(crawled.url) for key in check_archive(crawled.output)} == crawled.archived.keys() - {
        "/robots.txt",
        "/.well-known/tdmrep.json",
        "/packed",
    }
    assert crawled.failures["/packed"] == "bomb"
    asked = Counter(crawled.asked)
    assert max(asked.values()) == 1
    result = scrapy("archive", "check", str(crawled.output))
    assert result.returncode == 0, result.stdout


def test_it_is_the_live_profile_but_for_the_rules() -> None:
    changed = {name for name, value in vars(clueweb12).items() if name.isupper() and value != getattr(live, name, None)}
    of_links = {"SKIPPED_LINK_TYPES", "NOINDEX", "CRAWL_LANGUAGES"}
    assert changed == {"SCOPE_SKIPPED_TYPES", "BODY_LIMIT", "WARC_MAX_BYTES", *of_links}
    assert clueweb12.DOWNLOAD_MAXSIZE == clueweb12.BODY_LIMIT == MOST
    assert round(5.54e12 / 33_447, -6) - 1_000_000 == clueweb12.WARC_MAX_BYTES


def test_it_asks_who_runs_it(tmp_path: Path) -> None:
    (tmp_path / "seeds").write_text("http://127.0.0.1:9/\n")
    args = ("-a", f"seeds={tmp_path}/seeds", "-s", f"OUTPUT_DIR={tmp_path}/run", "-s", "SCORER=length")
    assert "USER_AGENT" in error_of(scrapy("crawl", "influence", *args, env=ENV))
