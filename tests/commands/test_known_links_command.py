"""``scrapy corpus known --links``, and crawls of the demo web with the file: killed, stopped, by workers, explained."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from crawl_helpers import Web, begin, crawl, crawl_args, crawl_log, error_of, scrapy, stats
from evaluation_helpers import evaluated, line, rows
from known_links_helpers import anchor, wat_file
from warc_helpers import page, record, url_of, write

from crawl4llm.parts.known_links.file import KnownLinks
from crawl4llm.parts.known_urls.work import KnownUrls
from simulate.clueweb22.corpus import ClueWeb22Corpus

SEEDS: dict[str, Any] = {"CRAWL_SEEDS": 10, "CRAWL_SEED": 3, "COMMIT_INTERVAL_PAGES": 20}
ORDERS: dict[str, dict[str, Any]] = {
    "batch": {"URL_POLICY": "parent_mean", "CRAWL_BATCH_SIZE": 10},
    "continuous": {"URL_POLICY": "parent_first", "CRAWL_BATCH_SIZE": 0, "CRAWL_CONCURRENT_LEASES": 1},
    "owners wait": {"URL_POLICY": "parent_first", "CRAWL_BATCH_SIZE": 0, "SIMULATION_OWNER_DELAY": 2, "URL_BUDGET": 5},
}


def known(*args: object, **env: str) -> Any:
    return scrapy("corpus", "known", *map(str, args), "-s", "PROGRESS_BAR=off", env=env)


def ended(output: Path) -> dict[str, str]:
    lines = [json.loads(line) for line in (output / "failures.jsonl").read_text().splitlines()]
    return {line["id"]: line["reason"] for line in lines}


def files(output: Path) -> dict[str, bytes]:
    found = {name: (output / name).read_bytes() for name in ("crawl.jsonl", "failures.jsonl")}
    return found | {path.name: path.read_bytes() for path in sorted((output / "warc").iterdir())}


@pytest.fixture(scope="module")
def links(demo_web: Web, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of 300 pages of a crawl of the demo web, with their scores."""
    return known_pages(demo_web, tmp_path_factory.mktemp("known"), 300)


@pytest.fixture(scope="module")
def few_links(small_demo_web: Web, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of 60 pages of the small one."""
    return known_pages(small_demo_web, tmp_path_factory.mktemp("known"), 60)


def known_pages(web: Web, folder: Path, pages: int) -> Path:
    """A file of pages of a crawl."""
    given = {"CRAWL_SEEDS": pages // 8, "CRAWL_MAX_PAGES": pages, "URL_POLICY": "breadth_first", "CRAWL_SEED": 3}
    assert crawl(web, folder / "run", **given).returncode == 0
    made = known("--links", folder / "known", folder / "run")
    assert made.returncode == 0, made.stderr
    assert f"links   {pages} of {pages} read (" in made.stdout
    assert f"KNOWN_LINKS={folder}/known/links.known" in made.stdout
    return folder / "known/links.known"


def test_the_file_has_the_pages_of_the_crawl(demo_web: Web, links: Path, tmp_path: Path) -> None:
    """Their scores, and the links that the corpus has; of a whole tree all pages, without scores."""
    found = KnownLinks(links)
    lines = crawl_log(links.parents[1] / "run")
    assert (len(found), found.unscored, found.corpus) == (300, 0, "clueweb22")
    places = {line["id"]: found.find(line["id"]) for line in lines}
    assert all(found.score(places[line["id"]] or 0) == line["influence"] for line in lines)
    assert sum(len(found.page(place or 0, key).outlinks or ()) for key, place in places.items()) > 600
    assert len(KnownUrls([str(links.with_name("urls.known"))])) == 300
    made = known("--links", tmp_path / "tree", demo_web.corpus)
    assert made.returncode == 0, made.stderr
    tree = KnownLinks(tmp_path / "tree/links.known")
    assert len(tree) == tree.unscored == 1500
    key = lines[7]["id"]
    assert tree.page(tree.find(key) or 0, key) == found.page(places[key] or 0, key)


@pytest.fixture(scope="module")
def without(
    small_demo_web: Web, few_links: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[set[str], set[str]]:
    """The pages in reach that are not known, without a file and with KNOWN_URLS: the same in any order."""
    found = []
    for number, given in enumerate(({}, {"KNOWN_URLS": few_links.with_name("urls.known")})):
        run = tmp_path_factory.mktemp("without") / str(number)
        result = crawl(small_demo_web, run, **SEEDS, **ORDERS["batch"], CRAWL_MAX_PAGES=300, **given)
        assert result.returncode == 0, result.stderr
        found.append(not_known(few_links, run))
    return found[0], found[1]


def not_known(links: Path, run: Path) -> set[str]:
    """Pages of a crawl that a file does not have."""
    told = KnownLinks(links)
    return {line["id"] for line in crawl_log(run) if told.find(line["id"]) is None}


@pytest.mark.parametrize("order", ORDERS)
def test_new_pages_are_in_reach(
    small_demo_web: Web, few_links: Path, without: tuple[set[str], set[str]], tmp_path: Path, order: str
) -> None:
    """As without a file; with KNOWN_URLS most are not. Known pages are in no archive, export or figure of pages."""
    given: dict[str, Any] = {**SEEDS, **ORDERS[order], "CRAWL_MAX_PAGES": 300, "URL_BUDGET": 0}
    result = crawl(small_demo_web, tmp_path / "links", **given, KNOWN_LINKS=few_links)
    assert result.returncode == 0, result.stderr
    new = not_known(few_links, tmp_path / "links")
    assert new == without[0] > without[1]
    dropped = ended(tmp_path / "links")
    assert set(dropped.values()) == {"known_page"}
    figures = stats(tmp_path / "links")
    assert figures["dropped/known_page"] == len(dropped) > 40
    assert figures["pages/fetched"] == figures["pages/crawled"] == len(new)
    assert len(crawl_log(tmp_path / "links")) == len(new)
    if order == "batch":
        exported = scrapy("export", str(tmp_path / "links"), "--format", "jsonl", "--out", str(tmp_path / "export"))
        assert exported.returncode == 0, exported.stderr
        documents = [line for path in (tmp_path / "export/documents").iterdir() for line in path.open()]
        assert 0 < len(documents) <= len(new)
        assert not {json.loads(line)["id"] for line in documents} & set(dropped)
        (row,) = rows(evaluated(tmp_path, tmp_path / "links"), "runs")
        assert row["Crawled"] == len(new)
        reported = scrapy("report", str(tmp_path / "links"))
        assert reported.returncode == 0, reported.stderr


@pytest.mark.parametrize(
    ("order", "stops"),
    [
        ("batch", {50: signal.SIGKILL, 100: signal.SIGINT}),
        ("continuous", {50: signal.SIGKILL}),
        ("owners wait", {50: signal.SIGTERM}),
    ],
)
def test_killed_and_stopped_it_goes_the_same_way(
    demo_web: Web, links: Path, tmp_path: Path, order: str, stops: dict[int, int]
) -> None:
    given: dict[str, Any] = {**SEEDS, **ORDERS[order], "CRAWL_MAX_PAGES": 250, "KNOWN_LINKS": links}
    assert crawl(demo_web, tmp_path / "whole", **given).returncode == 0
    output, job = tmp_path / "run", tmp_path / "job"
    log = output / "crawl.jsonl"
    for least, end in stops.items():
        process = begin(crawl_args(demo_web, output, **given, JOBDIR=job))
        until = time.monotonic() + 300
        while (not log.exists() or log.read_bytes().count(b"\n") < least) and process.poll() is None:
            assert time.monotonic() < until
            time.sleep(0.002)
        assert process.poll() is None, "it was to be disturbed before its end"
        os.kill(process.pid, end)
        _, err = process.communicate(timeout=600)
        assert "Traceback" not in err, err
    assert len(crawl_log(output)) < 250
    verified = scrapy("frontier", str(job), "--verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    other = crawl(demo_web, output, **{**given, "KNOWN_LINKS": ""}, JOBDIR=job)
    assert "was begun with other settings: what KNOWN_LINKS has was " in error_of(other)
    moved = shutil.copy(links, tmp_path / "links.known")
    result = crawl(demo_web, output, **{**given, "KNOWN_LINKS": moved}, JOBDIR=job)
    assert result.returncode == 0, result.stderr
    assert files(output) == files(tmp_path / "whole")
    assert ended(output)


def test_several_workers_crawl_the_same(demo_web: Web, links: Path, tmp_path: Path) -> None:
    """Real processes, one of which is killed; the merged crawl is that of one process."""
    given: dict[str, Any] = {**SEEDS, "URL_POLICY": "parent_first", "CRAWL_BATCH_SIZE": 20, "CRAWL_MAX_PAGES": 160}
    given["KNOWN_LINKS"] = links
    assert crawl(demo_web, tmp_path / "alone", **given).returncode == 0
    (tmp_path / "storage").mkdir()
    storage = {"STORAGE": f"file://{tmp_path}/storage", "CRAWL_PARTITIONS": 4}
    worker = begin(crawl_args(demo_web, tmp_path / "one", **given, **storage))
    until = time.monotonic() + 300
    while len(list((tmp_path / "storage").glob("i/*/exchange-*"))) < 12 and worker.poll() is None:
        assert time.monotonic() < until
        time.sleep(0.002)
    os.killpg(worker.pid, signal.SIGKILL)
    worker.communicate(timeout=600)
    assert not (tmp_path / "storage/end.json").exists()
    result = crawl(demo_web, tmp_path / "two", **given, **storage)
    assert result.returncode == 0, result.stderr
    merged = scrapy("cluster", "merge", str(storage["STORAGE"]), "--out", str(tmp_path / "merged"))
    assert merged.returncode == 0, merged.stderr
    assert (tmp_path / "merged/crawl.jsonl").read_bytes() == (tmp_path / "alone/crawl.jsonl").read_bytes()
    assert ended(tmp_path / "merged") == ended(tmp_path / "alone")
    verified = scrapy("cluster", "verify", str(storage["STORAGE"]))
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_explain_says_that_a_page_was_known_and_what_it_gave(demo_web: Web, links: Path, tmp_path: Path) -> None:
    given: dict[str, Any] = {**SEEDS, **ORDERS["batch"], "CRAWL_MAX_PAGES": 100, "KNOWN_LINKS": links}
    result = crawl(demo_web, tmp_path / "run", **given)
    assert result.returncode == 0, result.stderr
    assert f"  known pages      {len(ended(tmp_path / 'run')):,}, whose links were followed" in result.stdout
    key = next(iter(ended(tmp_path / "run")))
    told = KnownLinks(links)
    page = told.page(told.find(key) or 0, key)
    result = scrapy("explain", key, "--run", str(tmp_path / "run"))
    assert result.returncode == 0, result.stderr
    assert "known_page" in result.stdout
    assert f"KNOWN_LINKS {links} has it, with {len(page.outlinks or ()):,} links and the score " in result.stdout


def test_explain_of_a_document_that_only_a_known_page_leads_to(demo_web: Web, links: Path, tmp_path: Path) -> None:
    given: dict[str, Any] = {**SEEDS, **ORDERS["batch"], "CRAWL_MAX_PAGES": 30, "KNOWN_LINKS": links}
    assert crawl(demo_web, tmp_path / "run", **given).returncode == 0
    told, corpus = KnownLinks(links), ClueWeb22Corpus(Path(demo_web.corpus))
    crawled, dropped = [str(line["id"]) for line in crawl_log(tmp_path / "run")], list(ended(tmp_path / "run"))
    elsewhere = {link.key for key in crawled for link in corpus.outlinks(key)} | {*crawled, *dropped}
    pages = {key: told.page(told.find(key) or 0, key) for key in dropped}
    parent, key = next(
        (parent, link.key) for parent in dropped for link in pages[parent].outlinks or () if link.key not in elsewhere
    )
    result = scrapy("explain", str(key), "--run", str(tmp_path / "run"))
    assert result.returncode == 0, result.stderr
    assert f"found on {parent} (" in result.stdout
    links.rename(tmp_path / "moved")
    try:
        assert "not found" in scrapy("explain", str(key), "--run", str(tmp_path / "run")).stdout
    finally:
        (tmp_path / "moved").rename(links)


BAD = {
    "missing": "cannot be read: No such file or directory",
    "folder": "cannot be read: ",
    "cut": "is damaged: it has ",
    "other corpus": "is of another corpus: it names documents by URLs, and this crawl by keys of clueweb22; make one",
    "set of URLs": "is a file of urls, not of links",
}


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_file_starts_no_crawl(demo_web: Web, links: Path, tmp_path: Path, bad: str) -> None:
    path = tmp_path / "given"
    if bad == "folder":
        path.mkdir()
    elif bad == "cut":
        path.write_bytes(links.read_bytes()[:-1])
    elif bad == "set of URLs":
        shutil.copy(links.with_name("urls.known"), path)
    elif bad == "other corpus":
        wat = wat_file(tmp_path / "a.warc.wat.gz", [("http://a.example/", {"Links": []})])
        assert known("--links", tmp_path / "out", wat).returncode == 0
        shutil.copy(tmp_path / "out/links.known", path)
    said = error_of(crawl(demo_web, tmp_path / "run", **SEEDS, KNOWN_LINKS=path))
    assert said.startswith(f"KNOWN_LINKS {path} {BAD[bad]}")
    assert not (tmp_path / "run").exists()


def test_a_damaged_record_ends_the_crawl_where_it_is_met(demo_web: Web, links: Path, tmp_path: Path) -> None:
    """The last commit stands, and with a whole file the crawl goes on."""
    data = bytearray(links.read_bytes())
    start, size, _ = KnownLinks(links)._set.column("pages records")
    for place in range(start, start + size):
        data[place] ^= 0xFF
    (tmp_path / "links.known").write_bytes(data)
    given: dict[str, Any] = {**SEEDS, **ORDERS["batch"], "CRAWL_MAX_PAGES": 100, "JOBDIR": tmp_path / "job"}
    said = error_of(crawl(demo_web, tmp_path / "run", **given, KNOWN_LINKS=tmp_path / "links.known"))
    assert said.startswith(f"KNOWN_LINKS {tmp_path}/links.known is damaged: the record of page ")
    result = crawl(demo_web, tmp_path / "run", **given, KNOWN_LINKS=links)
    assert result.returncode == 0, result.stderr
    assert len(crawl_log(tmp_path / "run")) == 100


# -- what the file is made of -------------------------------------------------------------------------------------


def test_wat_files_of_common_crawl(tmp_path: Path) -> None:
    """Their links, as a live crawl would follow them; pages alone, and no page that is damaged."""
    url, robots = "http://one.example/a/", {"Metas": [{"name": "robots", "content": "index, nofollow"}]}
    html = {
        "Head": {"Base": "http://one.example/b/", "Link": [{"path": "LINK@/href", "url": "style.css"}]},
        "Links": [
            anchor("c", "To c"),
            anchor("http://two.example/d#part", "d", rel="nofollow ugc"),
            {"path": "IMG@/src", "url": "e.png"},
            anchor("mailto:x@one.example"),
            anchor("\x00bad\udc80"),
        ],
    }
    some = [anchor("http://three.example/")]
    pages: list[tuple[str, dict[str, Any]]] = [
        (url, html),
        ("http://one.example/nofollow", {"Head": robots, "Links": some}),
        ("http://one.example/header", {"Links": some, "headers": {"X-Robots-Tag": "none"}}),
        ("http://one.example/moved", {"Links": some, "status": "301"}),
        ("http://one.example/asked", {"Links": some, "type": "request"}),
        ("http://one.example/many", {"Links": [anchor(f"http://m.example/{number}") for number in range(20_000)]}),
        ("http://one.example/odd", {"Links": 5}),
        ("ftp://one.example/", {"Links": some}),
        ("http://one.example/numbers", {"Links": [{"path": "A@/href", "url": 7}, anchor("http://four.example/")]}),
    ]
    wat = wat_file(tmp_path / "CC-MAIN-1.warc.wat.gz", pages)
    made = known("--links", tmp_path / "out", wat)
    assert made.returncode == 0, made.stderr
    assert "left out 1 records that are not of a WAT file; the first: " in made.stdout
    found = KnownLinks(tmp_path / "out/links.known")
    assert (len(found), found.unscored, found.corpus) == (5, 5, None)
    places = {key: found.find(key) for key, _ in pages}
    assert [key for key, place in places.items() if place is None] == [
        *("http://one.example/moved", "http://one.example/asked", "http://one.example/odd", "ftp://one.example/")
    ]
    told = {key: found.page(place, key) for key, place in places.items() if place is not None}
    links = {link.url: link for link in told[url].outlinks or ()}
    assert links["http://one.example/b/c"].anchor == "To c"
    assert links["http://two.example/d"].rel == "nofollow ugc"
    assert not any(name.endswith((".png", ".css")) or name.startswith("mailto") for name in links)
    assert [key for key, page in told.items() if not page.follows] == [
        "http://one.example/nofollow",
        "http://one.example/header",
    ]
    assert len(told["http://one.example/many"].outlinks or ()) == 10_000
    assert [link.url for link in told["http://one.example/numbers"].outlinks or ()] == ["http://four.example/"]
    urls = KnownUrls([str(tmp_path / "out/urls.known")])
    assert len(urls) == 5
    whole = wat.read_bytes()
    wat.write_bytes(whole[:-20])
    cut = known("--links", tmp_path / "cut", wat)
    assert error_of(cut).startswith(f"{wat}: a record is damaged or cut short; {tmp_path}/cut has the records before")


def test_the_archive_of_a_crawl_has_its_scores_by_any_path(tmp_path: Path) -> None:
    run = tmp_path / "run"
    write(run / "warc" / "a.warc.gz", page(0), page(1))
    lines = [line(number, id=url_of(number), url=url_of(number), influence=0.5) for number in (0, 1)]
    (run / "crawl.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    (tmp_path / "link").symlink_to(run / "warc")
    for name, path in (("run", run), ("archive", run / "warc"), ("link", tmp_path / "link")):
        assert known("--links", tmp_path / f"of {name}", path).returncode == 0
        assert KnownLinks(tmp_path / f"of {name}/links.known").unscored == 0, name


def test_pages_without_links_are_counted(tmp_path: Path) -> None:
    texts = [record("conversion", url_of(number), b"Text.", ["Content-Type: text/plain"]) for number in (0, 1)]
    made = known("--links", tmp_path / "out", write(tmp_path / "a.warc.wet", *texts))
    assert (made.returncode, "left out 2 pages without HTML\n" in made.stdout) == (0, True), made.stdout


def test_a_simulation_of_warc_files_follows_links_to_its_documents(tmp_path: Path) -> None:
    """The file is of other WARC files: its links lead to what the corpus has, and others have no key."""
    corpus = write(tmp_path / "corpus/a.warc", page(1, [url_of(2), url_of(9)]), page(3), page(4, [url_of(2)]))
    have = write(tmp_path / "have/b.warc", page(2, [url_of(3), url_of(5)]))
    made = known("--links", tmp_path / "known", have.parent)
    assert made.returncode == 0, made.stderr
    (tmp_path / "seeds").write_text(f"{url_of(1)}\n")
    given = {"CORPUS": corpus.parent, "SCORER": "length", "URL_POLICY": "parent_first", "SIMULATION_TEXT": "extracted"}
    links = {"KNOWN_LINKS": tmp_path / "known/links.known"}
    result = crawl(None, tmp_path / "run", tmp_path / "seeds", **given, **links)
    assert result.returncode == 0, result.stderr
    assert [line["id"] for line in crawl_log(tmp_path / "run")] == [url_of(1)], "the corpus has no page 2"
    shutil.copy(have, corpus.parent)
    result = crawl(None, tmp_path / "more", tmp_path / "seeds", **given, **links)
    assert result.returncode == 0, result.stderr
    assert [line["id"] for line in crawl_log(tmp_path / "more")] == [url_of(1), url_of(3)]
    assert ended(tmp_path / "more") == {url_of(2): "known_page"}
    assert stats(tmp_path / "more")["links/without_key"] == 2


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.warc.wat.gz", b"nothing", "{0}: is neither a WARC nor an ARC file"),
        ("a.warc.wat", b"", "{0}: is empty"),
        ("urls.txt", b"http://a.example/\n", "--links: no source has links; give WARC or WAT files, or a ClueWeb22 "),
    ],
)
def test_what_has_no_links_is_refused(tmp_path: Path, name: str, content: bytes, told: str) -> None:
    (tmp_path / name).write_bytes(content)
    said = error_of(known("--links", tmp_path / "out", tmp_path / name))
    assert said.startswith(told.format(tmp_path / name))
    assert not (tmp_path / "out").exists()


def test_ids_and_urls_are_not_mixed(demo_web: Web, tmp_path: Path) -> None:
    wat = wat_file(tmp_path / "a.warc.wat.gz", [("http://a.example/", {"Links": []})])
    said = error_of(known("--links", tmp_path / "out", demo_web.corpus, wat))
    assert said == (f"{demo_web.corpus}: names documents by ids, and the other sources by URLs; make two files")
