"""A live crawl, then simulations on what it archived: the web as that crawl saw it, for ever."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from addon_site import Answer, serve
from crawl_helpers import crawl_log, scrapy, stats
from live_helpers import SCORER, Crawled, crawl_live, crawled_once, moved, text_page

from crawl4llm.base.errors import InputError, MissingRecord, NoHtml, NoPage
from crawl4llm.scoring.text import EXTRACTORS, extract_text
from settings import live as live_profile
from simulate.warcs.corpus import WarcCorpus


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    return crawled_once(tmp_path_factory)


@pytest.fixture
def corpus(crawled: Crawled, tmp_path: Path) -> WarcCorpus:
    return WarcCorpus(crawled.output, tmp_path / "index")


OF_LIVE = ("NEAR_DUPLICATES", "NEAR_DUPLICATES_WORTHLESS", "NOINDEX", "SKIPPED_LINK_TYPES", "CRAWL_LANGUAGES")
OF_LIVE += ("SITE_RULES", "URL_ALIAS_PAIRS", "URL_WORTHLESS_PAGES", "TEXT_EXTRACTOR", "LOWER_LEFT_OVERS")
"""Settings of the live profile by which a crawl and its replay choose."""


def replay(crawled: Crawled, corpus: Path, output: Path, **settings: object) -> list[dict[str, Any]]:
    """The log of a simulation on an archive, from the seeds of the crawl."""
    given = {"SCORER": SCORER, "SCORING_WORKERS": 1, "CORPUS": corpus, "OUTPUT_DIR": output, "CRAWL_BATCH_SIZE": 5}
    given |= {name: getattr(live_profile, name) for name in OF_LIVE}
    options = [part for name, value in {**given, **settings}.items() for part in ("-s", f"{name}={value}")]
    shutil.copy(Path(__file__).parents[2] / "scrapy.cfg", output.parent)  # its index shall lie there
    result = scrapy("crawl", "influence", "-a", f"seeds={crawled.output / 'seeds.txt'}", *options, cwd=output.parent)
    assert result.returncode == 0, result.stdout + result.stderr
    return crawl_log(output)


def without_requests(log: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the lines without ``fetched``: a live crawl counts requests there, and a simulation documents."""
    return [{name: value for name, value in line.items() if name != "fetched"} for line in log]


def failures(output: Path) -> list[str]:
    return (output / "failures.jsonl").read_text().splitlines()


def test_the_same_pages_in_the_same_order(crawled: Crawled, tmp_path: Path) -> None:
    """Batches are filled by what failed, by redirects and by identical pages, too; text is extracted again."""
    settings = {"URL_POLICY": "parent_first", "SIMULATION_TEXT": "extracted", "CRAWL_MAX_PAGES": 100}
    log = replay(crawled, crawled.output, tmp_path / "run", **settings)
    assert without_requests(log) == without_requests(crawl_log(crawled.output))
    live = [json.loads(line) for line in failures(crawled.output)]
    bombs = [line for line in live if line["reason"] == "bomb"]
    assert [line.pop("rule") for line in bombs], "which a replay leaves out, with the record that it reads"
    for name in ("digest", "date", "time"):
        assert [line.pop(name, None) for line in bombs]
    assert [json.loads(line) for line in failures(tmp_path / "run")] == live
    left_out = ("pages/crawled", "pages/visited", "links/seen", "influence/mean")
    theirs = stats(crawled.output)
    assert {key: stats(tmp_path / "run")[key] for key in left_out} == {key: theirs[key] for key in left_out}


def test_what_is_broken_ends_at_once_and_as_often_in_the_replay(tmp_path: Path) -> None:
    """Bodies that are not in the coding that they say, redirects and links to no host: each fills one place."""
    broken = {
        **{f"/{coding}": Answer(b"<p>plain", headers={"Content-Encoding": coding}) for coding in ("gzip", "deflate")},
        **{f"/zeros-{coding}": Answer(bytes(9), headers={"Content-Encoding": coding}) for coding in ("gzip", "br")},
        "/to-script": moved("javascript:alert(1)"),
        "/to-port": moved("http://example.org:http/"),
        "/to-brackets": moved("http://[::1"),
        "/to-user": moved("http://user:word@127.0.0.1/"),
    }
    links = {"http://user@127.0.0.1/", "http://a,b.invalid/"}
    pages = {f"/{n}": text_page(n, [f"/{2 * n + 1}", f"/{2 * n + 2}", *list(broken)[n : n + 1]]) for n in range(15)}
    pages["/0"] = text_page(0, ["/1", "/2", *links, "/gzip"])
    with serve({**pages, **broken}) as site:
        result = crawl_live([f"{site.url}/0"], tmp_path / "live", CRAWL_BATCH_SIZE=2)
        assert set(site.paths()) >= broken.keys()
        assert {site.paths().count(path) for path in broken} == {1}
    assert result.returncode == 0
    assert "Traceback" not in result.stderr
    ended = map(json.loads, failures(tmp_path / "live"))
    reasons = {line["id"].removeprefix(site.url): line["reason"] for line in ended}
    assert {path: reasons[path] for path in broken} == {
        **dict.fromkeys(list(broken)[:4], "damaged"),
        **dict.fromkeys(list(broken)[4:7], "http_301"),
        "/to-user": "bad_url",
    }
    assert {reasons[link] for link in links} == {"bad_url"}
    live = Crawled(tmp_path / "live", site.url, [], "", [])
    settings = {"URL_POLICY": "parent_first", "SIMULATION_TEXT": "extracted", "CRAWL_BATCH_SIZE": 2}
    log = replay(live, live.output, tmp_path / "replay", **settings)
    assert without_requests(log) == without_requests(crawl_log(live.output))
    assert failures(tmp_path / "replay") == failures(live.output)


def test_odd_pages_are_read_alike_live_and_in_the_replay(tmp_path: Path) -> None:
    """Charsets that nobody declares, queries in them, links of drawings, rules with a stray %, metas behind 64 KiB."""
    text = "Это страница на русском языке, и кодировку она не объявляет: её надо угадать. " * 5
    odd = f'<body><p>{text}</p><a href="/найти?слово=дом">x</a><svg><a xlink:href="/drawn">y</a></svg>'
    links = ["/odd", "/50%-off/now", "/more", "//", "http:opaque", "\\\\backslash"]
    late = "<style>" + " " * 70_000 + '</style><meta name="robots" content="noarchive">'
    russian = Answer(odd.encode("cp1251"), content_type="text/html")
    pages: dict[str, Answer] = {
        "/robots.txt": Answer(b"User-agent: *\nDisallow: /50%-off/\n", content_type="text/plain"),
        "/": text_page(0, links),
        "/odd": russian,
        "/more": Answer(f"<html><head>{late}</head><body><a href=/unseen>x</a>".encode()),
        "/%D0%BD%D0%B0%D0%B9%D1%82%D0%B8?%F1%EB%EE%E2%EE=%E4%EE%EC": text_page(1, []),
        "/drawn": text_page(2, []),
        "/opaque": text_page(3, []),
    }
    with serve(pages) as site:
        result = crawl_live([f"{site.url}/"], tmp_path / "live", CRAWL_BATCH_SIZE=2)
        asked = set(site.paths())
    assert "Traceback" not in result.stderr, result.stderr
    assert pages.keys() - {"/robots.txt"} <= asked
    assert not asked & {"/unseen", "/50%-off/now", "/50%25-off/now"}
    log = crawl_log(tmp_path / "live")
    assert {line["id"].removeprefix(site.url) for line in log} == pages.keys() - {"/robots.txt", "/more"}
    ended = {line["id"].removeprefix(site.url): line["reason"] for line in map(json.loads, failures(tmp_path / "live"))}
    assert (ended["/more"], ended["/50%25-off/now"]) == ("opt_out", "robots")
    live = Crawled(tmp_path / "live", site.url, [], "", [])
    settings = {"URL_POLICY": "parent_first", "SIMULATION_TEXT": "extracted", "CRAWL_BATCH_SIZE": 2}
    replayed = replay(live, live.output, tmp_path / "replay", **settings)
    assert [(line["id"], line["influence"]) for line in replayed] == [(line["id"], line["influence"]) for line in log]
    opted_out = [line for line in failures(live.output) if "opt_out" in line]  # of which an archive keeps nothing
    assert failures(tmp_path / "replay") == [line for line in failures(live.output) if line not in opted_out]
    for run in ("live", "replay"):
        out = tmp_path / f"out-{run}"
        exported = scrapy("export", str(tmp_path / run), "--out", str(out), "--format", "jsonl")
        assert exported.returncode == 0, exported.stderr
        assert "кодировку она не объявляет" in (out / "documents/00000.jsonl").read_text()


def test_another_policy_on_the_texts_that_were_archived(crawled: Crawled, tmp_path: Path) -> None:
    """One that looks at pages before they are fetched: on the live web it could not be tried."""
    settings = {"URL_POLICY": "influence", "SIMULATION_TEXT": "corpus", "CRAWL_MAX_PAGES": 20}
    log = replay(crawled, crawled.output / "warc", tmp_path / "run", **settings)
    live = {line["id"]: line["influence"] for line in crawl_log(crawled.output)}
    assert len(log) == 20
    assert all(line["priority"] == line["influence"] == live[line["id"]] for line in log)
    best = sorted(live.values(), reverse=True)[:10]
    assert sum(value in best for value in (line["influence"] for line in log)) > 5
    ended = {(line["outcome"], line["reason"]) for line in map(json.loads, failures(tmp_path / "run"))}
    assert {("failed", "http_404"), ("dropped", "robots"), ("dropped", "too_large")} <= ended


# -- the archive as a corpus ------------------------------------------------------------------------------------------


def test_every_page_that_was_crawled_is_held(crawled: Crawled, corpus: WarcCorpus) -> None:
    log = crawl_log(crawled.output)
    assert sorted(corpus.keys()) == sorted([*(line["id"] for line in log), f"{crawled.url}/bomb"]), "which fails there"
    assert len(corpus) == len(log) + 1
    corpus.require("html", "text", "outlinks")
    for line in log:
        page = corpus.page(line["id"])
        assert (page.key, page.url, page.hops) == (line["id"], line["url"], ())
        assert corpus.text(line["id"]) == extract_text(corpus.html(line["id"]), EXTRACTORS["both"])


def test_redirects_are_followed_when_they_are_fetched(crawled: Crawled, corpus: WarcCorpus) -> None:
    url = crawled.url
    page = corpus.page(f"{url}/moved-0")
    assert (page.key, list(page.hops)) == (f"{url}/target", [f"{url}/moved-1", f"{url}/target"])
    assert corpus.page(f"{url}/dir").key == f"{url}/dir/"
    assert corpus.html(f"{url}/moved-0") == corpus.html(f"{url}/target")
    assert corpus.text(f"{url}/moved-0") == corpus.text(f"{url}/target")
    assert corpus.outlinks(f"{url}/moved-0") == corpus.outlinks(f"{url}/target")
    assert f"{url}/moved-1" in {link.key for link in corpus.outlinks(f"{url}/target")}
    assert corpus.resolve(f"{url}/moved-0") == f"{url}/moved-0"


def test_identical_pages_are_documents_each(crawled: Crawled, corpus: WarcCorpus) -> None:
    first, second = (corpus.page(f"{crawled.url}/same-{which}") for which in "ab")
    assert first.html == second.html
    assert second.url == f"{crawled.url}/same-b"
    assert first.outlinks == second.outlinks != []


def test_what_could_not_be_had_cannot_be_had(crawled: Crawled, corpus: WarcCorpus) -> None:
    for path, reason, wanted in (("/missing", "http_404", True), ("/private/a", "robots", False)):
        assert f"{crawled.url}{path}" in corpus
        for look in (corpus.page, corpus.text, corpus.html, corpus.outlinks):
            with pytest.raises(NoPage) as none:
                look(f"{crawled.url}{path}")
            assert (none.value.reason, none.value.wanted) == (reason, wanted)
    with pytest.raises(MissingRecord):
        corpus.page(f"{crawled.url}/never-heard-of")


def test_without_its_log_an_archive_is_like_others(crawled: Crawled, tmp_path: Path) -> None:
    """Links lead through redirects, and nothing is known of what failed; files that are not finished are read."""
    shutil.copytree(crawled.output / "warc", tmp_path / "warc")
    for file in (tmp_path / "warc").glob("*.warc.gz"):
        file.rename(f"{file}.open")
    corpus = WarcCorpus(tmp_path / "warc", tmp_path / "index")
    ids = [line["id"] for line in crawl_log(crawled.output)]
    assert sorted(corpus.keys()) == sorted([*ids, f"{crawled.url}/bomb"])
    assert corpus.resolve(f"{crawled.url}/moved-0") == f"{crawled.url}/target"
    assert f"{crawled.url}/missing" not in corpus
    targets = {crawled.path(link.url): link.key for link in corpus.outlinks(f"{crawled.url}/page-0")}
    assert (targets["/moved-0"], targets["/missing"]) == (f"{crawled.url}/target", None)


def test_texts_alone(crawled: Crawled, tmp_path: Path) -> None:
    """Documents of which only the text is held are told from those that are missing."""
    (tmp_path / "warc").mkdir()
    for file in (crawled.output / "warc").glob("*-text-*"):
        shutil.copy(file, tmp_path / "warc")
    corpus = WarcCorpus(tmp_path / "warc", tmp_path / "index")
    key = f"{crawled.url}/target"
    assert corpus.page(key).text == corpus.text(key) != ""
    with pytest.raises(NoHtml) as no_html:
        corpus.html(key)
    assert no_html.value.reason == "no_html"
    with pytest.raises(InputError, match="SIMULATION_TEXT=corpus"):
        corpus.require("html")


def test_a_log_that_is_cut_short_is_counted(crawled: Crawled, tmp_path: Path) -> None:
    shutil.copytree(crawled.output, tmp_path / "run")
    log = tmp_path / "run" / "failures.jsonl"
    log.write_bytes(log.read_bytes()[:-20])
    corpus = WarcCorpus(tmp_path / "run", tmp_path / "index")
    counts = json.loads((tmp_path / "index/index.json").read_text())["counts"]
    assert (counts["damaged"], counts["not_had"]) == (1, len(failures(crawled.output)) - 1)
    log.write_bytes(b"x" * log.stat().st_size)
    with pytest.raises(InputError, match="has changed"):
        corpus.check()
