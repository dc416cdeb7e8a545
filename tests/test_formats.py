"""Each file format has a number: a file of another one is refused in a line with both and the way to make it anew."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from build_helpers import build, warc_corpus
from crawl_helpers import PROJECT, Web, crawl, scrapy
from export_helpers import run_export
from finished_runs import FinishedRuns
from training_helpers import GOOD, OTHER, run_training, texts, write_jsonl

import crawl4llm
from crawl4llm.base import received, series, sorted_file
from crawl4llm.base.errors import InputError
from crawl4llm.base.sorted_file import MAGIC
from crawl4llm.cluster import objects
from crawl4llm.cluster.storage import Storage, pack, sealed
from crawl4llm.crawl import jobdir
from crawl4llm.parts.known_links import file as known_links
from crawl4llm.parts.known_urls import work as known_urls
from crawl4llm.scoring import model_rules
from crawl4llm.tools import _learnt as trainlm
from simulate import indexes
from simulate.build import _FORMAT as BUILD_FORMAT
from simulate.clueweb22 import opt_outs, url_index
from simulate.clueweb22.corpus import ClueWeb22Corpus
from simulate.warcs import index

SMALL: dict[str, Any] = {"CRAWL_MAX_PAGES": 20, "CRAWL_SEEDS": 5}
OTHER_NUMBER = 99


def as_json(path: Path, name: str = "format") -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), name: OTHER_NUMBER}))


def first_line(path: Path, name: str = "format") -> None:
    head, _, rest = path.read_bytes().partition(b"\n")
    path.write_bytes(json.dumps({**json.loads(head), name: OTHER_NUMBER}).encode() + b"\n" + rest)


def of_opt_outs(path: Path) -> None:
    first_line(path, "version")


def known_set(path: Path) -> None:
    data = path.read_bytes()
    said, _, _ = data[len(MAGIC) :].partition(b"\n")
    said = json.dumps({**json.loads(said), "format": OTHER_NUMBER}).encode()
    head = MAGIC + said + b"\n" + hashlib.sha256(said).hexdigest().encode() + b"\n"
    path.write_bytes(head.ljust(4096) + data[4096:])


def in_storage(path: Path) -> None:
    crawl = objects.read_crawl(storage_at(path.parent)) or {}
    path.write_bytes(sealed("crawl.json", pack({**crawl, "format": OTHER_NUMBER})))


Case = tuple[int, Callable[[Path], None], Callable[[Path], Any]]


def export_a_copy(begun: Path, run: Path) -> None:
    """End an export that was begun; its folder stays as it is."""
    copy = begun.parent / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    run_export(shutil.copytree(begun, copy), run)


CASES: Mapping[str, Case] = {
    "job/job.json": (jobdir.FORMAT, as_json, lambda path: jobdir.JobDir(path.parent, lock=False)),
    "storage/crawl.json": (objects.FORMAT, in_storage, lambda path: objects.read_crawl(storage_at(path.parent))),
    "run/settings.json": (received.RUN_FORMAT, as_json, lambda path: crawl4llm.open_run(path.parent).settings),
    "run/series.jsonl": (series.FORMAT, first_line, lambda path: series.read_series(path.parent)),
    "export/manifest.json": (
        received.EXPORT_FORMAT,
        as_json,
        lambda path: run_export(path.parent, path.parents[1] / "run"),
    ),
    "begun/work/request.json": (
        received.WORK_FORMAT,
        as_json,
        lambda path: export_a_copy(path.parents[1], path.parents[2] / "run"),
    ),
    "warc-index/index.json": (indexes.FORMAT, as_json, lambda path: index.WarcIndex(path.parent)),
    "urls/index.json": (indexes.FORMAT, as_json, lambda path: indexes.read_manifest(path.parent)),
    "tree/opt_outs.tsv": (opt_outs._VERSION, of_opt_outs, opt_outs.OptOuts),
    "tree/build.json": (BUILD_FORMAT, as_json, lambda path: build(warc_corpus(path.parents[1], [1, 2]), path.parent)),
    "known/urls.known": (sorted_file.FORMAT, known_set, lambda path: known_urls.KnownUrls([str(path)])),
    "links/links.known": (sorted_file.FORMAT, known_set, known_links.KnownLinks),
    "learnt/trainlm.json": (trainlm.FORMAT, as_json, trainlm.read_results),
    "model/model.bin.json": (model_rules._FORMAT, as_json, lambda path: model_rules.read_rules(path.with_suffix(""))),
}
"""By the file: the number that is read, how the file gets another, and a reader of it."""


def storage_at(folder: Path) -> Storage:
    return Storage(f"file://{folder}")


@pytest.fixture(scope="module")
def files(demo_web: Web, finished_runs: FinishedRuns, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file of each format, made by what makes it."""
    place = tmp_path_factory.mktemp("formats")
    finished_runs.copy("paused", place)
    (place / "storage").mkdir()
    assert crawl(demo_web, place / "worker", **SMALL, STORAGE=f"file://{place}/storage").returncode == 0
    run_export(place / "export", place / "run")
    begun = place / "begun/work/request.json"
    begun.parent.mkdir(parents=True)
    begun.write_text(json.dumps({"format": received.WORK_FORMAT, "state": None}))
    build(warc_corpus(place, [1, 2]), place / "tree")
    url_index.build_url_index(ClueWeb22Corpus(place / "tree"), place / "urls")
    (place / "urls.txt").write_text("https://site.example/1\n")
    assert scrapy("corpus", "known", str(place / "known"), str(place / "urls.txt")).returncode == 0
    assert scrapy("corpus", "known", "--links", str(place / "links"), str(place / "run")).returncode == 0
    given = [write_jsonl(place / f"{name}.jsonl", texts(words, 100)) for name, words in (("a", GOOD), ("b", OTHER))]
    run_training(given[:1], given[1:], place / "model", held_out=0.3)
    (place / "learnt").mkdir()
    learnt = trainlm.Learnt("run", {}, [trainlm.Point(9, 3, 3, {"t": [2.0]})], {})
    (place / "learnt/trainlm.json").write_text(trainlm.results_json(trainlm.Results({}, ["t"], [learnt])))
    return place


@pytest.mark.parametrize("name", CASES)
def test_another_number_is_told_with_both_and_what_makes_it_anew(files: Path, name: str) -> None:
    number, change, read = CASES[name]
    path = files / name
    read(path)
    before = path.read_bytes()
    change(path)
    with pytest.raises(InputError) as refused:
        read(path)
    path.write_bytes(before)
    line = rf"has format {OTHER_NUMBER}; this version reads format {number}; make it again: \S[^\n]*"
    assert re.search(f"{line}$", str(refused.value)), refused.value


def test_the_docs_have_each_number() -> None:
    table = (PROJECT / "CONTRIBUTING.md").read_text().partition("## File formats")[2]
    for name, (number, _, _) in CASES.items():
        assert re.search(rf"^\| .*`{Path(name).name}`.* \| {number} \|", table, re.MULTILINE), name
