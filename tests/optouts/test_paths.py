"""Sixty pages that opt out, each with another signal: none is exported, by any path. Pages that do not, are."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest
from crawl_helpers import crawl_log, scrapy
from export_helpers import documents, manifest, run_export
from live_helpers import crawl_live
from opting_out import kept, opted_out, serve_pages, warc_of, web
from training_helpers import GOOD, OTHER, run_training, texts, write_jsonl

from crawl4llm.tools.export.card import CARD

SITE = "http://site.example"
KEPT, OUT = {page.path for page in kept()}, {page.path for page in opted_out()}
UNKNOWN = "Opt-outs unknown"


def test_there_are_sixty() -> None:
    assert len(OUT) == 64
    assert len({(tuple(page.fields), page.body) for page in opted_out()}) == 64


def simulate(corpus: Path, output: Path, **settings: object) -> Path:
    """Crawl all of a corpus."""
    given = {"CORPUS": corpus, "OUTPUT_DIR": output, "SCORER": "length", "URL_POLICY": "breadth_first"}
    given |= {"SIMULATION_TEXT": "extracted", "TEXT_EXTRACTOR": "resiliparse", "CRAWL_SEEDS": 1, "CRAWL_BATCH_SIZE": 20}
    given |= {"SCORING_WORKERS": 0, "SCORE_CACHE": "", "CRAWL_MAX_PAGES": 500, **settings}
    options = [part for name, value in given.items() for part in ("-s", f"{name}={value}")]
    seeds = output.with_suffix(".seeds")
    seeds.write_text(f"{seed_of(corpus)}\n")
    done = scrapy("crawl", "influence", "-a", f"seeds={seeds}", *options)
    assert done.returncode == 0, done.stderr[-3000:]
    return output


def seed_of(corpus: Path) -> str:
    """The page that links to all: the first of an archive, and of a tree that was made of one."""
    if (ids := corpus / "manifest.tsv").exists():
        return next(line.split("\t")[1] for line in ids.read_text().splitlines() if line.split("\t")[0].endswith("/"))
    if (log := corpus.parent / "crawl.jsonl").exists():
        return str(json.loads(log.read_text().splitlines()[0])["url"])
    return f"{SITE}/"


def paths(urls: Iterable[str]) -> set[str]:
    return {"/" + url.partition("://")[2].partition("/")[2] for url in urls}


def check_exports(run: Path, out: Path, *, known: bool = True, gone: int = len(OUT), **wanted: object) -> None:
    """None of the pages that opt out is exported, and all others are; manifest and card say so."""
    summary = "\n".join(run_export(out, run, format="jsonl", **wanted))
    assert paths(document["url"] for document in documents(out)) == KEPT
    left_out = manifest(out)["left_out"]
    assert {why.partition("/")[0] for why in left_out} == {"opt_out"}
    assert sum(left_out.values()) == gone
    card = (out / CARD).read_text()
    assert f"left out, {gone} in all" in card
    assert ((UNKNOWN in card), ("opt-outs unknown" in summary)) == ((not known), (not known))


@pytest.fixture(scope="module")
def warc(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Somebody's WARC file."""
    return warc_of(web(), SITE, tmp_path_factory.mktemp("warc") / "pages.warc.gz")


@pytest.fixture(scope="module")
def crawled(warc: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl of that."""
    return simulate(warc, tmp_path_factory.mktemp("crawled") / "run")


def test_a_warc_file_and_a_crawl_of_it(warc: Path, crawled: Path, tmp_path: Path) -> None:
    assert paths(line["url"] for line in crawl_log(crawled)) == KEPT | OUT
    check_exports(warc, tmp_path / "warc")
    check_exports(crawled, tmp_path / "run")
    check_exports(crawled / "warc", tmp_path / "folder")


def test_texts_that_are_archived_already(warc: Path, tmp_path: Path) -> None:
    """Then nothing of an export reads the pages for their texts."""
    check_exports(simulate(warc, tmp_path / "run", WARC_TEXT=1), tmp_path / "out")


def test_a_replay_and_a_replay_of_that(crawled: Path, tmp_path: Path) -> None:
    first = simulate(crawled / "warc", tmp_path / "first")
    check_exports(first, tmp_path / "out-first")
    check_exports(simulate(first / "warc", tmp_path / "second"), tmp_path / "out-second")


def test_a_built_tree_and_a_crawl_of_it(warc: Path, tmp_path: Path) -> None:
    tree = build(warc, tmp_path / "tree")
    check_exports(simulate(tree, tmp_path / "run"), tmp_path / "out")
    shutil.rmtree(tree / "html")  # a tree of texts alone
    check_exports(simulate(tree, tmp_path / "texts", SIMULATION_TEXT="corpus"), tmp_path / "out-texts")
    again = build(tree, tmp_path / "again")
    assert (again / "opt_outs.tsv").read_bytes() == (tree / "opt_outs.tsv").read_bytes()


def build(source: Path, to: Path) -> Path:
    done = scrapy("corpus", "build", "--from", str(source), "--to", str(to), "-s", "TEXT_EXTRACTOR=resiliparse")
    assert done.returncode == 0, done.stderr[-3000:]
    return to


def test_a_tree_without_its_side_file(warc: Path, tmp_path: Path) -> None:
    """What stood in heads is lost, and the card says so; what stands in HTML is read in any case."""
    tree = build(warc, tmp_path / "tree")
    (tree / "opt_outs.tsv").unlink()
    run = simulate(tree, tmp_path / "run", WARC_TEXT=1)
    out = tmp_path / "out"
    summary = "\n".join(run_export(out, run, format="jsonl"))
    in_heads = {page.path for page in opted_out() if page.path.startswith("/head-")}
    assert paths(document["url"] for document in documents(out)) == KEPT | in_heads
    assert manifest(out)["left_out"].keys() == {f"opt_out/{s}" for s in ("robots", "tdm-reservation", *USES)}
    assert UNKNOWN in (out / CARD).read_text()
    assert f"opt-outs unknown: {run}" in summary
    replayed = simulate(run / "warc", tmp_path / "replayed")  # as unknown as before
    run_export(tmp_path / "out-replayed", replayed, format="jsonl")
    assert UNKNOWN in (tmp_path / "out-replayed" / CARD).read_text()


USES = ("Content-Signal", "Content-Usage")


def test_a_cluster_in_batches(warc: Path, tmp_path: Path) -> None:
    (tmp_path / "storage").mkdir()
    simulate(warc, tmp_path / "worker", STORAGE=f"file://{tmp_path}/storage", CRAWL_PARTITIONS=4)
    merged = tmp_path / "merged"
    done = scrapy("cluster", "merge", f"file://{tmp_path}/storage", "--out", str(merged))
    assert done.returncode == 0, done.stderr
    check_exports(merged, tmp_path / "out")


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A live crawl that fetches and marks what may not be trained on."""
    output = tmp_path_factory.mktemp("live") / "run"
    with serve_pages(web()) as site:
        settings = {"OPT_OUT_FETCH": 1, "NOINDEX": "count", "TEXT_EXTRACTOR": "resiliparse", "CRAWL_MAX_PAGES": 500}
        done = crawl_live([f"{site}/"], output, **settings)
    assert done.returncode == 0, done.stderr[-3000:]
    return output


NOT_KEPT = 3
"""Pages that no crawl of ours archives: noarchive, twice, and use=immediate."""


def test_a_live_crawl_its_replay_and_a_replay_of_that(live: Path, tmp_path: Path) -> None:
    check_exports(live, tmp_path / "out", gone=len(OUT) - NOT_KEPT)
    first = simulate(live / "warc", tmp_path / "first")
    check_exports(first, tmp_path / "out-first", gone=len(OUT) - NOT_KEPT)
    check_exports(simulate(first / "warc", tmp_path / "second"), tmp_path / "out-second", gone=len(OUT) - NOT_KEPT)


SPIDER = """
from scrapy import Spider

class Links(Spider):
    name = "links"

    def __init__(self, site, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [f"{site}/"]

    def parse(self, response):
        yield from response.follow_all(css="a:not([href='/'])")
"""


def test_the_crawl_of_another_project_with_the_add_on(tmp_path: Path) -> None:
    root, output = tmp_path / "project", tmp_path / "run"
    root.mkdir()
    assert scrapy("startproject", "theirs", ".", cwd=root).returncode == 0
    (root / "theirs/spiders/links.py").write_text(SPIDER)
    with (root / "theirs/settings.py").open("a") as settings:
        settings.write('ADDONS = {"crawl4llm.addon.Addon": 500}\nDOWNLOAD_DELAY = 0\nSCORER = "length"\n')
        settings.write('SCORING_WORKERS = 0\nTEXT_EXTRACTOR = "resiliparse"\nCONCURRENT_REQUESTS_PER_DOMAIN = 8\n')
    with serve_pages(web()) as site:
        given = ("-a", f"site={site}", "-s", f"OUTPUT_DIR={output}")
        done = scrapy("crawl", "links", *given, cwd=root)
    assert done.returncode == 0, done.stderr[-3000:]
    check_exports(output, tmp_path / "out")
    check_exports(simulate(output / "warc", tmp_path / "replayed"), tmp_path / "out-replayed")


def test_a_scorer_is_not_trained_on_them(warc: Path, tmp_path: Path) -> None:
    good, other = (write_jsonl(tmp_path / f"{words[0]}.jsonl", texts(words, 30)) for words in (GOOD, OTHER))
    run_training([warc, good], [other], tmp_path / "model", settings={"TEXT_EXTRACTOR": "resiliparse"})
    (source,) = (line for line in (tmp_path / "model/MODEL_CARD.md").read_text().splitlines() if str(warc) in line)
    assert f"| {len(KEPT)} | " in source
    assert sum(int(count) for count in re.findall(r"(\d+) opt_out/", source)) == len(OUT)
