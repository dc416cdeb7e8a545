"""Pages that may not be trained on are left out of exports: by what they said, and what was heard of them later."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
from archive_helpers import INFO
from crawl_helpers import Web, scrapy
from export_helpers import documents, html_of, ids, manifest, run_export
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from crawl4llm.base.errors import InputError
from crawl4llm.base.pages import Capture, PageRecord
from crawl4llm.optouts.said import from_text, reason_against_training
from crawl4llm.tools.export.card import CARD
from crawl4llm.warc import ArchiveWriter
from simulate.warcs.corpus import WarcCorpus

SITE = "http://a.example"
FIRST, NOW, LATER = (f"2026-11-2{day}T12:00:00.000000Z" for day in (1, 2, 3))
AGENT = {"http-header-user-agent": "testbot/1.0 (+http://testbot.example/)"}


def capture(url: str, body: bytes, date: str = LATER, status: int = 200, **headers: str) -> Capture:
    fields = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    sent = [(b"Host", b"a.example")]
    return Capture(url, date, "GET", sent, b"", status, "OK", [*fields, (b"Content-Type", b"text/html")], True, body)


def write(
    run: Path, pages: Mapping[str, str], *others: tuple[Capture, str, dict[str, str]], prefix: str = SITE
) -> Path:
    """A crawl of pages of SITE with the signals that each has, and exchanges that are no page's. Keys have a
    ``prefix``."""
    info = replace(INFO, fields={**INFO.fields, **AGENT, "opt-out": "obeyed"})
    archive = ArchiveWriter(run / "warc", info, 1 << 20)
    lines = []
    for order, (path, signals) in enumerate(pages.items()):
        key, url = prefix + path, SITE + path
        html = html_of(f"What page {path} says, which no other one does, in some words of its own.")
        page = PageRecord(key, url, NOW, html, captures=[capture(url, html, NOW)])
        archive.write(page, {"id": key, "influence": 0.5, "opt-out-signals": signals or None})
        lines.append({"order": order, "id": key, "url": url, "influence": 0.5})
    for exchange, purpose, about in others:
        archive.write_exchange(exchange, purpose, about)
    archive.close()
    (run / "crawl.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (run / "settings.json").write_text(json.dumps({"crawl_id": str(INFO.crawl_id)}))
    return run


PAGES = {
    "/open": "robots.txt * / Content-Signal search=no",
    "/meta": "meta * page robots noai",
    "/private/a": "",
    "/private/b": "",
    "/reserved": "",
    "/again": "",
}
ROBOTS = b"User-agent: *\nContent-Usage: /private/ train-ai=n\n\nUser-agent: CCBot\nDisallow: /private/b\n"
SAYS_SO = {"said": "header", "opt-out-signals": "header * page robots noai"}
OTHERS = (
    (capture(f"{SITE}/robots.txt", ROBOTS), "robots.txt", {"site": SITE}),
    (
        capture(f"{SITE}/.well-known/tdmrep.json", b'[{"location": "/reserved", "tdm-reservation": 1}]'),
        "tdmrep.json",
        {"site": SITE},
    ),
    (capture(f"{SITE}/again", b"", X_Robots_Tag="noai"), "opt-out", SAYS_SO),
)
LEFT_OUT = {"opt_out/Content-Usage": 2, "opt_out/robots": 2, "opt_out/tdm-reservation": 1}


def test_what_was_said_with_the_page_and_later_is_heeded(tmp_path: Path) -> None:
    run = write(tmp_path / "run", PAGES, *OTHERS)
    run_export(tmp_path / "out", run, format="jsonl")
    assert ids(tmp_path / "out") == [f"{SITE}/open"]
    assert manifest(tmp_path / "out")["left_out"] == LEFT_OUT
    assert documents(tmp_path / "out")[0]["opt_out_signals"] == PAGES["/open"]
    assert "Usage | 2 |" in (tmp_path / "out" / CARD).read_text()


def test_an_index_that_was_made_anew_knows_it_too(tmp_path: Path) -> None:
    run = write(tmp_path / "run", PAGES, *OTHERS)
    before = (run / "warc/index.cdxj").read_bytes()
    (run / "warc/index.cdxj").unlink()
    assert scrapy("archive", "repair", str(run), "--jobs", "1").returncode == 0
    assert (run / "warc/index.cdxj").read_bytes() == before


def test_it_holds_for_pages_of_other_sources_that_are_no_younger(tmp_path: Path) -> None:
    older = write(tmp_path / "older", PAGES)
    files = [(replace(exchange, date=FIRST), *rest) for exchange, *rest in OTHERS]
    run_export(tmp_path / "out", older, write(tmp_path / "newer", {}, *OTHERS), format="jsonl")
    assert manifest(tmp_path / "out")["left_out"] == LEFT_OUT
    before = write(tmp_path / "before", {}, *files)  # type: ignore[arg-type]
    run_export(tmp_path / "kept", older, before, format="jsonl")
    assert manifest(tmp_path / "kept")["left_out"] == {"opt_out/robots": 1}


def test_it_holds_for_pages_whose_keys_are_ids(tmp_path: Path) -> None:
    older = write(tmp_path / "older", PAGES, prefix="clueweb22-")
    run_export(tmp_path / "out", older, write(tmp_path / "newer", {}, *OTHERS), format="jsonl")
    assert ids(tmp_path / "out") == ["clueweb22-/open"]
    assert manifest(tmp_path / "out")["left_out"] == LEFT_OUT


def test_a_tree_of_clueweb22_is_refused(demo_web: Web, tmp_path: Path) -> None:
    """Its files of pages alone have no signals."""
    with pytest.raises(InputError, match="is a ClueWeb22 tree; give the OUTPUT_DIR of a crawl of it"):
        run_export(tmp_path / "out", demo_web.corpus)


@pytest.mark.parametrize("older", ["run", "archive of others"])
def test_archives_of_others_say_so_of_pages_of_other_sources(older: str, tmp_path: Path) -> None:
    """The younger one begins with a robots.txt, which counts whatever its date. A head counts if it is no older."""
    pages = [
        (path, FIRST, {}, html_of(f"Page {path} has words of its own.")) for path in ("/open", "/private", "/again")
    ]
    robots = b"User-agent: *\nContent-Usage: /private train-ai=n\n"
    heads = [(f"/{name}", LATER, {"X-Robots-Tag": "noai"}, html_of(name)) for name in ("again", "before")]
    before = ("/before", "2026-11-24T12:00:00Z", {}, html_of("This page was fetched after it had changed its mind."))
    if older == "run":
        write(tmp_path / "older", {"/open": "", "/private": "", "/again": ""})
    else:
        write_others(tmp_path / "older.warc.gz", *pages)
    write_others(tmp_path / "newer.warc.gz", ("/robots.txt", FIRST, {"Content-Type": "text/plain"}, robots), *heads)
    write_others(tmp_path / "newest.warc.gz", before)
    source = tmp_path / ("older" if older == "run" else "older.warc.gz")
    run_export(tmp_path / "out", source, tmp_path / "newer.warc.gz", tmp_path / "newest.warc.gz", format="jsonl")
    assert ids(tmp_path / "out") == [f"{SITE}/open", f"{SITE}/before"]


def write_others(path: Path, *records: tuple[str, str, dict[str, str], bytes]) -> None:
    """An archive of others: responses of SITE by path, date, fields of the head, and body."""
    with path.open("wb") as stream:
        writer = WARCWriter(stream, gzip=True)
        for name, date, fields, body in records:
            http = StatusAndHeaders("200 OK", [*({"Content-Type": "text/html"} | fields).items()], "HTTP/1.1")
            head, payload = {"WARC-Date": date}, BytesIO(body)
            url = SITE + name
            writer.write_record(
                writer.create_warc_record(url, "response", payload, http_headers=http, warc_headers_dict=head)
            )


@pytest.mark.parametrize(
    ("body", "status", "site"),
    [
        (ROBOTS, 404, SITE),
        (ROBOTS, 200, "http://b.example"),
        (b"\xff\xfe\x00" * 1000, 200, SITE),
        (b"User-agent: otherbot\nContent-Usage: train-ai=n\n", 200, SITE),
        (b"User-agent: *\nContent-Signal: search=yes\nUser-agent: otherbot\nContent-Signal: ai-train=no\n", 200, SITE),
    ],
    ids=["not-found", "another-site", "binary", "another-crawler", "another-crawler-after-all"],
)
def test_what_does_not_speak_of_a_page_changes_nothing(tmp_path: Path, body: bytes, status: int, site: str) -> None:
    other = (capture(f"{site}/robots.txt", body, status=status), "robots.txt", {"site": site})
    run_export(tmp_path / "out", write(tmp_path / "run", {"/private/a": ""}, other), format="jsonl")
    assert ids(tmp_path / "out") == [f"{SITE}/private/a"]


def test_a_robots_txt_that_leads_to_another_sites(tmp_path: Path) -> None:
    there = "http://b.example"
    moved = capture(f"{SITE}/robots.txt", b"", status=301, Location=f"{there}/robots.txt")
    others = [(moved, "robots.txt", {"site": SITE})]
    others.append((capture(f"{there}/robots.txt", ROBOTS), "robots.txt", {"site": there}))
    run_export(tmp_path / "out", write(tmp_path / "run", {"/private/a": "", "/x": ""}, *others), format="jsonl")
    assert ids(tmp_path / "out") == [f"{SITE}/x"]


def test_pages_of_any_archive_say_so_in_their_heads(tmp_path: Path) -> None:
    pages = []
    for path, tag, meta in (("open", "otherbot: noai", ""), ("head", "noai", ""), ("meta", "", "noai")):
        head = b'<meta name="robots" content="%b"><title>' % meta.encode()
        html = html_of(f"Page {path} has words of its own.").replace(b"<title>", head)
        pages.append((f"/{path}", NOW, {"X-Robots-Tag": tag}, html))
    write_others(tmp_path / "others.warc.gz", *pages)
    run_export(tmp_path / "out", tmp_path / "others.warc.gz", format="jsonl")
    assert ids(tmp_path / "out") == [f"{SITE}/open"]
    assert manifest(tmp_path / "out")["left_out"] == {"opt_out/robots": 2}


OLDER = tuple((replace(exchange, date=FIRST), purpose, about) for exchange, purpose, about in OTHERS)
THERE = "http://b.example"
MOVED = (
    (capture(f"{SITE}/robots.txt", b"", status=301, Location=f"{THERE}/robots.txt"), "robots.txt", {"site": SITE}),
    (capture(f"{THERE}/robots.txt", ROBOTS), "robots.txt", {"site": THERE}),
)
ANOTHER_PLACE = ((capture("http://cdn.example/r.txt", ROBOTS), "robots.txt", {"site": SITE}),)
NAMED = b"User-agent: testbot\nContent-Usage: train-ai=n"
FOR_US = ((capture(f"{SITE}/robots.txt", NAMED), "robots.txt", {"site": SITE}),)
GONE = ((capture(f"{SITE}/robots.txt", ROBOTS, status=404), "robots.txt", {"site": SITE}),)


@pytest.mark.parametrize(
    "others",
    [(), OTHERS, OLDER, MOVED, ANOTHER_PLACE, FOR_US, GONE],
    ids=["none", "later", "older", "moved", "another-place", "for-us", "gone"],
)
def test_a_replay_knows_what_an_export_of_the_archive_does(
    tmp_path: Path, others: tuple[tuple[Capture, str, dict[str, str]], ...]
) -> None:
    """What the archive has heard of its pages is in its index as a corpus, and so in what is crawled from that."""
    run = write(tmp_path / "run", PAGES, *others)
    run_export(tmp_path / "out", run, format="jsonl")
    corpus = WarcCorpus(run / "warc", tmp_path / "index")
    said = {key: from_text(corpus.page(key).opt_outs) for key in corpus.keys()}
    assert len(said) == len(PAGES)
    assert {key for key in said if reason_against_training(said[key]) is None} == set(ids(tmp_path / "out"))
    assert corpus.knows_opt_outs
