"""Bad input to a crawl: one clear line, a non-zero exit status, no traceback, nothing lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from crawl_helpers import PROJECT, Web, crawl, crawl_args, crawl_log, error_of, scrapy, stats

from simulate.clueweb22.corpus import ClueWeb22Corpus

PAGES = {"CRAWL_MAX_PAGES": 60, "CRAWL_BATCH_SIZE": 20, "WARC_ENABLED": 0}


@pytest.fixture
def own_web(demo_web: Web, tmp_path: Path) -> Web:
    """A copy of the demo web that the test may damage."""
    shutil.copytree(demo_web.corpus, tmp_path / "web")
    return Web(tmp_path / "web", demo_web.model)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"CORPUS": "/no/such/tree"}, ["CORPUS", "/no/such/tree"]),
        ({"CORPUS": "x" * 300}, ["CORPUS x", "File name too long"]),
        ({"SCORER_MODEL": "/no/such/model.bin"}, ["SCORER_MODEL", "/no/such/model.bin", "No such file"]),
        ({"SCORER_LABEL": "__label__good"}, ["SCORER_LABEL", "__label__good", "__label__hq, __label__cc"]),
        ({"CRAWL_MAX_PAGES": 0}, ["CRAWL_MAX_PAGES", "positive integer"]),
        ({"CRAWL_MAX_PAGES": "many"}, ["CRAWL_MAX_PAGES", "'many'", "positive integer"]),
        ({"CRAWL_BATCH_SIZE": -1}, ["CRAWL_BATCH_SIZE", "0 or a positive integer"]),
        ({"CRAWL_BATCH_SIZE": "1.5"}, ["CRAWL_BATCH_SIZE", "'1.5'"]),
        ({"URL_POLICY": "depth"}, ["URL_POLICY", "'depth'", "indegree, influence, "]),
        ({"URL_POLICY": "no.such.Policy"}, ["URL_POLICY", "no.such.Policy", "influence"]),
        ({"TEXT_EXTRACTOR": "readability"}, ["TEXT_EXTRACTOR", "trafilatura, resiliparse, both"]),
        ({"SIMULATION_TEXT": "both"}, ["SIMULATION_TEXT", "corpus, extracted"]),
        ({"SCORER": "stars"}, ["SCORER", "'stars'", "fasttext, length"]),
        ({"SCORING_WORKERS": 5000}, ["SCORING_WORKERS", "at most"]),
        ({"WARC_PREFIX": "p" * 250}, ["WARC_PREFIX", "128 bytes"]),
        ({"PAGERANK_DAMPING": 0.85}, ["setting PAGERANK_DAMPING was removed: d is 0.9", "leave it out"]),
        ({"CRAWL_MAX_PAGE": 5}, ["CRAWL_MAX_PAGE", "did you mean CRAWL_MAX_PAGES?"]),
        ({"crawl_max_pages": 5, "DRY_RUN": 1}, ["crawl_max_pages", "did you mean CRAWL_MAX_PAGES?"]),
    ],
    ids=lambda value: "-".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, dict) else "",
)
def test_wrong_setting(settings: dict[str, object], words: list[str], demo_web: Web, tmp_path: Path) -> None:
    message = error_of(crawl(demo_web, tmp_path / "run", **{**PAGES, **settings}))
    for word in words:
        assert word in message
    assert not (tmp_path / "run").exists(), "nothing is written before the input is found good"


def test_empty_corpus(demo_web: Web, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    message = error_of(crawl(demo_web, tmp_path / "run", CORPUS=tmp_path / "empty"))
    assert str(tmp_path / "empty") in message


def test_corpus_that_is_no_clueweb22_tree(demo_web: Web, tmp_path: Path) -> None:
    (tmp_path / "music").mkdir()
    (tmp_path / "music/song.txt").touch()
    message = error_of(crawl(demo_web, tmp_path / "run", CORPUS=tmp_path / "music"))
    assert "music" in message


@pytest.mark.parametrize(
    ("folder", "settings"),
    [
        ("txt", {}),
        ("outlink", {}),
        ("html", {"SIMULATION_TEXT": "extracted"}),
        ("inlink", {"URL_POLICY": "indegree"}),
    ],
)
def test_folder_that_is_needed(folder: str, settings: dict[str, object], own_web: Web, tmp_path: Path) -> None:
    shutil.rmtree(own_web.corpus / folder)
    assert f"{folder}/" in error_of(crawl(own_web, tmp_path / "run", **settings))


@pytest.mark.parametrize("folder", ["html", "inlink"])
def test_folder_that_is_not_needed(folder: str, own_web: Web, tmp_path: Path) -> None:
    shutil.rmtree(own_web.corpus / folder)
    assert crawl(own_web, tmp_path / "run", **{**PAGES, "WARC_ENABLED": 1}).returncode == 0
    assert len(crawl_log(tmp_path / "run")) == 60


@pytest.mark.parametrize("cut", [5, 11, 110])
def test_offset_file_cut_short(cut: int, own_web: Web, tmp_path: Path) -> None:
    offsets = next((own_web.corpus / "txt").rglob("*.offset"))
    offsets.write_bytes(offsets.read_bytes()[:-cut])
    message = error_of(crawl(own_web, tmp_path / "run", **PAGES))
    assert offsets.stem in message
    assert "cut short" in message


def damage(root: Path, kind: str, record: int) -> None:
    """Overwrite the middle of a record's gzip member, so that the file keeps its size."""
    offsets = min((root / kind / "en").rglob("*.offset"))
    begin, end = (int(line) for line in offsets.read_text().split()[record : record + 2])
    data = next(offsets.parent.glob(offsets.name.replace(".offset", "*.gz")))
    content = bytearray(data.read_bytes())
    middle = (begin + end) // 2
    content[middle : middle + 8] = b"\xff" * 8
    data.write_bytes(content)


@pytest.mark.parametrize("kind", ["txt", "html", "outlink"])
def test_damaged_record_fails_alone(kind: str, own_web: Web, tmp_path: Path) -> None:
    """Of two seeds, one with a damaged record: it fails by reason, the crawl goes on."""
    damage(own_web.corpus, kind, 3)
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("clueweb22-en0000-00-00003\nclueweb22-en0000-00-00007\n")
    result = crawl(own_web, tmp_path / "run", seeds, **PAGES)
    assert result.returncode == 0, result.stderr
    assert stats(tmp_path / "run")["failed/corrupt_record"] == 1
    crawled = [line["id"] for line in crawl_log(tmp_path / "run")]
    assert len(crawled) == 60
    assert "clueweb22-en0000-00-00003" not in crawled


@pytest.mark.parametrize("length", [0, 20, 4000, -1])
def test_damaged_model(length: int, demo_web: Web, tmp_path: Path) -> None:
    model = tmp_path / "model.bin"
    model.write_bytes(demo_web.model.read_bytes()[:length])
    assert str(model) in error_of(crawl(demo_web._replace(model=model), tmp_path / "run", **PAGES))


def test_model_that_is_something_else(demo_web: Web, tmp_path: Path) -> None:
    model = tmp_path / "model.bin"
    model.write_text("not a model at all")
    assert "is not a fastText model" in error_of(crawl(demo_web._replace(model=model), tmp_path / "run", **PAGES))


def test_seeds_file_missing(demo_web: Web, tmp_path: Path) -> None:
    message = error_of(crawl(demo_web, tmp_path / "run", tmp_path / "seeds.txt"))
    assert str(tmp_path / "seeds.txt") in message


@pytest.mark.parametrize("content", ["", "# nothing\n", "not-an-id\n", "clueweb22-en0099-00-00000\n"])
def test_no_usable_seed(content: str, demo_web: Web, tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.txt"
    seeds.write_text(content)
    assert "no usable seed" in error_of(crawl(demo_web, tmp_path / "run", seeds))


def test_some_unusable_seeds_are_counted(demo_web: Web, tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.txt"
    good = "clueweb22-en0000-00-00007"
    seeds.write_text(f"{good}\n{good}  # again\nnonsense\nclueweb22-en0099-00-00000\n\n")
    assert crawl(demo_web, tmp_path / "run", seeds, **PAGES).returncode == 0
    counts = stats(tmp_path / "run")
    assert counts["seeds/given"] == 4
    assert (counts["seeds/duplicate"], counts["seeds/malformed"], counts["seeds/unknown"]) == (1, 1, 1)
    assert crawl_log(tmp_path / "run")[0]["id"] == good


def test_output_dir_holds_another_crawl(demo_web: Web, tmp_path: Path) -> None:
    assert crawl(demo_web, tmp_path / "run", **PAGES).returncode == 0
    before = (tmp_path / "run/crawl.jsonl").read_bytes()
    message = error_of(crawl(demo_web, tmp_path / "run", **PAGES))
    assert "OUTPUT_DIR" in message
    assert "holds another crawl" in message
    assert (tmp_path / "run/crawl.jsonl").read_bytes() == before


def test_output_dir_is_a_file(demo_web: Web, tmp_path: Path) -> None:
    (tmp_path / "run").touch()
    assert "OUTPUT_DIR" in error_of(crawl(demo_web, tmp_path / "run", **PAGES))


@pytest.mark.parametrize("name", ["seed", "run", "CRAWL_MAX_PAGES"])
def test_argument_that_the_spider_does_not_take(name: str, demo_web: Web, tmp_path: Path) -> None:
    """Passed over, it would cost a whole crawl from random seeds."""
    result = scrapy(*crawl_args(demo_web, tmp_path / "run", **PAGES), "-a", f"{name}=5")
    assert f"-a {name}= is not known" in error_of(result)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("given", ["", " "])
def test_no_seeds_file(given: str, demo_web: Web, tmp_path: Path) -> None:
    result = scrapy(*crawl_args(demo_web, tmp_path / "run", **PAGES), "-a", f"seeds={given}")
    assert error_of(result) == "-a seeds= is empty; give a file with one id or URL a line, or leave it out"


def test_frontier_that_runs_empty(shared: Callable[[str], Path], tmp_path: Path) -> None:
    """More pages than can be reached: the crawl ends, having done what it could."""
    web = Web(shared("clueweb22-sample"), shared("scorers/prose.bin"))
    result = crawl(web, tmp_path / "run", CRAWL_MAX_PAGES=100_000, CRAWL_SEEDS=5)
    assert result.returncode == 0, result.stderr
    assert "the frontier is empty" in result.stdout
    assert 0 < len(crawl_log(tmp_path / "run")) < 620


def test_seeds_given_as_urls_need_an_index(demo_web: Web, tmp_path: Path) -> None:
    shutil.copy(PROJECT / "scrapy.cfg", tmp_path)
    url = ClueWeb22Corpus(demo_web.corpus).url("clueweb22-en0000-00-00007")
    seeds = tmp_path / "seeds.txt"
    seeds.write_text(f"{url}#part\nhttps://not-held.example/\n")
    without = scrapy(*crawl_args(demo_web, tmp_path / "one", seeds, **PAGES), cwd=tmp_path)
    assert "scrapy corpus index" in error_of(without)

    assert scrapy("corpus", "index", "--jobs", "1", "-s", f"CORPUS={demo_web.corpus}", cwd=tmp_path).returncode == 0
    result = scrapy(*crawl_args(demo_web, tmp_path / "two", seeds, **PAGES), cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert crawl_log(tmp_path / "two")[0]["id"] == "clueweb22-en0000-00-00007"
    assert stats(tmp_path / "two")["seeds/unknown"] == 1
