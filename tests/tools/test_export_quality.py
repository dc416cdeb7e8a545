"""Columns of quality in exports, the floor, and near duplicates, which are left out unless they are wanted."""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from crawl_helpers import Web, begin, crawl, crawl_log, error_of, scrapy
from export_helpers import Page, documents, entries, files, flip, ids, manifest, pages, run_export, write_run

from crawl4llm.base.errors import InputError
from crawl4llm.scoring import languages

ENGLISH = "The river runs from the hills to the sea, and the market on the old bridge opens early in the morning."
GERMAN = "Der Fluss fließt von den Hügeln zum Meer, und der Markt auf der alten Brücke öffnet früh am Morgen."
LINKED = b"<title>A</title><p>The <a href=/r>river runs from the hills to the sea</a>, and the market on the old bridge"
PLAIN = b"<title>A</title><p>nothing of the text"


def rows_of(out: Path, form: str) -> list[dict[str, Any]]:
    if form != "parquet":
        return documents(out)
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra export")
    return [row for path in sorted((out / "documents").iterdir()) for row in parquet.read_table(path).to_pylist()]


# -- columns ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["jsonl", "jsonl.gz", "jsonl.zst", "parquet"])
def test_a_document_has_what_later_filters_need(tmp_path: Path, form: str) -> None:
    crawled = [
        Page("linked", ENGLISH, 0.75, None, LINKED),
        Page("stated", GERMAN, None, "nds", PLAIN),
        Page("short", "17 23", 0.25, None, PLAIN),
    ]
    run_export(tmp_path / "out", write_run(tmp_path / "run", crawled), format=form)
    rows = rows_of(tmp_path / "out", form)
    assert [(row["words"], row["link_share"], row["language"], row["influence"]) for row in rows] == [
        (21, round(8 / 15, 4), "en", 0.75),  # pairs of words that the page has
        (19, None, "nds", None),
        (2, None, None, 0.25),
    ]
    if form != "parquet":
        for row in rows:
            assert (row["metadata"]["words"], row["metadata"]["link_share"]) == (row["words"], row["link_share"])
    assert manifest(tmp_path / "out")["tokens"]["words"] == 42
    assert manifest(tmp_path / "out")["shards"][0]["languages"] == {"": 1, "en": 1, "nds": 1}


def test_texts_that_are_extracted_have_them_too(tmp_path: Path) -> None:
    pytest.importorskip("resiliparse", reason="the quick extractor is an extra")
    html = b"<body><main><p>%b</p><ul><li><a href=/1>The old bridge</a></ul></main>" % ENGLISH.encode()
    run_export(tmp_path / "out", write_run(tmp_path / "run", [Page("a", None, html=html)], texts=False))
    (row,) = documents(tmp_path / "out")
    assert row["words"] == len(row["text"].split()) > 20
    assert 0 < row["link_share"] < 0.2
    assert row["language"] == "en"


def test_texts_without_html_have_no_share_of_links(tmp_path: Path) -> None:
    run_export(tmp_path / "out", write_run(tmp_path / "run", [Page("a", ENGLISH)], text_only=True))
    assert [(row["words"], row["link_share"]) for row in documents(tmp_path / "out")] == [(21, None)]


# -- languages --------------------------------------------------------------------------------------------------------


def test_languages_that_no_archive_says_are_told_and_selected(tmp_path: Path) -> None:
    crawled = [Page("a", ENGLISH), Page("b", GERMAN), Page("c", f"{GERMAN} Heute.", language="en")]
    run = write_run(tmp_path / "run", crawled)
    run_export(tmp_path / "all", run, keep_near_duplicates=True)
    assert [row["language"] for row in documents(tmp_path / "all")] == ["en", "de", "en"]
    assert manifest(tmp_path / "all")["settings"]["language_model_digest"].startswith("py3langid ")
    run_export(tmp_path / "german", run, languages=("de",))
    assert ids(tmp_path / "german") == ["b"]
    with pytest.raises(InputError, match=r"no page is in it; languages of the pages: de, en$"):
        run_export(tmp_path / "none", run, languages=("fr",))


def test_the_model_of_languages_is_loaded_only_if_it_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unpack() -> None:
        raise AssertionError("not needed")

    monkeypatch.setattr(languages, "_bundled", unpack)
    run_export(tmp_path / "out", write_run(tmp_path / "run", [page._replace(language="en") for page in pages(3)]))
    assert len(ids(tmp_path / "out")) == 3


# -- the floor --------------------------------------------------------------------------------------------------------


def test_pages_below_the_floor_are_counted_and_not_read(tmp_path: Path) -> None:
    crawled = [*pages(4), Page("unscored", "a text of its own", None)]
    run = write_run(tmp_path / "run", crawled)
    text = entries(run / "warc" / "text.cdxj")[0]
    flip(run / "warc" / text["filename"], int(text["offset"]) + int(text["length"]) // 2)
    run_export(tmp_path / "out", run, min_influence=0.5)
    assert ids(tmp_path / "out") == ["key-002", "key-003"]
    assert manifest(tmp_path / "out")["left_out"] == {"below_min_influence": 2, "no_influence": 1}
    assert manifest(tmp_path / "out")["settings"]["min_influence"] == 0.5


def test_the_floor_holds_for_scores_that_the_export_gives(tmp_path: Path) -> None:
    crawled = [page._replace(influence=None) for page in (pages(1, words=5) + pages(3, words=50)[1:])]
    run = write_run(tmp_path / "run", crawled)
    (run / "crawl.jsonl").unlink()
    run_export(tmp_path / "out", run / "warc", min_influence=200, settings={"SCORER": "length"})
    assert ids(tmp_path / "out") == ["key-001", "key-002"]
    assert manifest(tmp_path / "out")["left_out"] == {"below_min_influence": 1}


def test_of_a_document_in_two_runs_the_first_above_the_floor_is_taken(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / f"run-{score}", [Page("a", ENGLISH, score)]) for score in (0.1, 0.9, 0.8)]
    run_export(tmp_path / "out", *runs, min_influence=0.5)
    assert [row["influence"] for row in documents(tmp_path / "out")] == [0.9]
    assert manifest(tmp_path / "out")["left_out"] == {"below_min_influence": 1, "duplicate_id": 1}


# -- near duplicates --------------------------------------------------------------------------------------------------


def long(number: int, changed: int = 0) -> str:
    """A text of its own of 200 words, of which some are changed."""
    return " ".join(f"w{number}x{place}" if place >= changed else f"y{number}" for place in range(200))


def test_a_page_stays_if_those_that_it_is_like_are_left_out(tmp_path: Path) -> None:
    crawled = [
        Page("english", long(1), 0.9, "en"),
        Page("german", long(1, 3), 0.8, "de"),
        Page("again", long(1, 4), 0.7, "de"),
        Page("low", long(2), 0.1, "de"),
        Page("high", long(2, 3), 0.5, "de"),
    ]
    run = write_run(tmp_path / "run", crawled)
    run_export(tmp_path / "out", run, min_influence=0.2, languages=("de",))
    assert ids(tmp_path / "out") == ["german", "high"]
    assert manifest(tmp_path / "out")["left_out"] == {"below_min_influence": 1, "language": 1, "near_duplicate": 1}


def test_a_page_that_cannot_be_read_makes_room_for_one_that_is_like_it(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [Page("best", long(1), 0.9), Page("next", long(1, 3), 0.8)])
    text = entries(run / "warc" / "text.cdxj")[0]
    flip(run / "warc" / text["filename"], int(text["offset"]) + int(text["length"]) // 2)
    run_export(tmp_path / "out", run)
    assert ids(tmp_path / "out") == ["next"]
    assert manifest(tmp_path / "out")["left_out"] == {"corrupt_record": 1}


@pytest.mark.slow
def test_what_a_crawl_notes_as_near_duplicates_is_left_out(demo_web: Web, tmp_path: Path) -> None:
    """The export compares the texts itself, by the crawl's own rule: so it finds them between crawls too."""
    result = crawl(demo_web, tmp_path / "run", CRAWL_MAX_PAGES=600, WARC_TEXT=1, NEAR_DUPLICATES="follow")
    assert result.returncode == 0, result.stderr
    lines = crawl_log(tmp_path / "run")
    noted = {
        line["id"]: lines[line["near_duplicate_of"]]["id"] for line in lines if line["near_duplicate_of"] is not None
    }
    assert noted
    run_export(tmp_path / "out", tmp_path / "run", keep_near_duplicates=True)
    assert any({later, first} <= {*ids(tmp_path / "out")} for later, first in noted.items())
    run_export(tmp_path / "apart", tmp_path / "run")
    kept = {*ids(tmp_path / "apart")}
    assert not [pair for pair in noted.items() if {*pair} <= kept]


def test_it_is_said_what_to_do_without_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = write_run(tmp_path / "run", pages(2))
    monkeypatch.setitem(sys.modules, "rensa", None)
    with pytest.raises(InputError, match=r"scrapy export needs rensa 0\.5; .*, or give --keep-near-duplicates"):
        run_export(tmp_path / "out", run)
    run_export(tmp_path / "out", run, keep_near_duplicates=True)
    assert len(ids(tmp_path / "out")) == 2


# -- exports of before ------------------------------------------------------------------------------------------------


def test_an_export_without_the_columns_is_refused(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", pages(2))
    run_export(tmp_path / "out", run)
    path = tmp_path / "out/manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 1}))
    told = error_of(scrapy("export", str(run), "--out", str(tmp_path / "out")))
    assert told.startswith(f"{path} has format 1; this version reads format 2; make it again: ")


# -- kills ------------------------------------------------------------------------------------------------------------


MANY = 2000
GIVEN = ("--min-influence", "0.1", "--shard-documents", "500", "-s", "TEXT_EXTRACTOR=resiliparse")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of as many pages as are measured in two blocks, and its export by one process."""
    folder = tmp_path_factory.mktemp("whole")
    crawled = [Page(f"p{n}", f"{long(n % 1400, n // 1400)} {ENGLISH}", n % 7 / 7) for n in range(MANY)]
    run = write_run(folder / "run", crawled)
    assert scrapy("export", str(run), "--out", str(folder / "out"), *GIVEN, "-s", "SCORING_WORKERS=0").returncode == 0
    assert manifest(folder / "out")["left_out"].keys() == {"below_min_influence", "near_duplicate"}
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGKILL, -9), (signal.SIGINT, 130)], ids=["kill", "interrupt"])
def test_stopped_while_it_measures_it_goes_on(whole: Path, tmp_path: Path, number: signal.Signals, status: int) -> None:
    run, stopped = whole / "run", tmp_path / "stopped"
    process = begin(["export", str(run), "--out", str(stopped), *GIVEN, "-s", "SCORING_WORKERS=2"], silent=["out"])
    first, second = (stopped / "work" / f"prepared.{block}.jsonl" for block in range(2))
    while process.poll() is None and not first.exists():
        time.sleep(0.01)
    process.send_signal(number)
    _, said = process.communicate()
    assert process.returncode == status, said
    assert "Traceback" not in said
    assert first.exists()
    assert not second.exists()
    assert scrapy("export", str(run), "--out", str(stopped), *GIVEN).returncode == 0
    assert manifest(stopped) == manifest(whole / "out")
    assert files(stopped) == files(whole / "out")
