"""CORPUS as the dotted path of somebody's own class: the contract, real crawls, and errors in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from corpus_contract import CorpusContract
from crawl_helpers import crawl, crawl_log, error_of, scrapy
from evaluation_helpers import evaluated, rows
from own_corpus import PAGES, OwnCorpus
from scrapy.settings import Settings

from crawl4llm.base.errors import InputError
from crawl4llm.base.pages import Corpus
from crawl4llm.tools.evaluate.evaluate import Wanted
from simulate import index_corpus, open_corpus

PATH = "own_corpus.OwnCorpus"


class TestContract(CorpusContract):
    """A corpus that is loaded by its dotted path keeps the contract."""

    absent_key = "p99"
    malformed_key = "no/key"

    @pytest.fixture
    def corpus(self, tmp_path: Path) -> Corpus:
        corpus = open_corpus(Settings({"CORPUS": PATH}))
        assert isinstance(corpus, OwnCorpus)
        return corpus


def test_a_crawl_and_what_looks_at_it(tmp_path: Path) -> None:
    """Commands import the class only where the user names it too: a run's folder may come from anybody."""
    run, job = tmp_path / "run", tmp_path / "job"
    own = {"CORPUS": PATH, "SCORER": "graph_corpus.NumberScorer", "CRAWL_SEEDS": 3, "JOBDIR": job}
    result = crawl(None, run, CRAWL_MAX_PAGES=10, CRAWL_BATCH_SIZE=2, **own)
    assert result.returncode == 0, result.stderr
    assert crawl(None, run, CRAWL_MAX_PAGES=PAGES, CRAWL_BATCH_SIZE=2, **own).returncode == 0
    assert sorted(line["id"] for line in crawl_log(run)) == [f"p{number:02d}" for number in range(PAGES)]
    assert json.loads((run / "settings.json").read_text())["corpus"] == "own"
    given = ("-s", "SCORER=graph_corpus.NumberScorer")
    seeds = tmp_path / "more.txt"
    seeds.write_text("p00\n")
    for args in (
        ("explain", "p05", "--run", str(run), *given),
        ("frontier", str(job), "--inject", str(seeds), *given),
    ):
        refused = error_of(scrapy(*args))
        assert refused.startswith(f"{run}: CORPUS = '{PATH}' in settings.json is the path of code"), refused
        allowed = scrapy(*args, "-s", f"CORPUS={PATH}")
        assert allowed.returncode == 0, allowed.stderr
    settings, wanted = {"SCORER": "graph_corpus.NumberScorer"}, Wanted(sample=5)
    with pytest.raises(InputError, match=r"in settings\.json is the path of code"):
        evaluated(tmp_path, run, wanted=wanted, settings=settings)
    (row,) = rows(evaluated(tmp_path, run, wanted=wanted, settings={**settings, "CORPUS": PATH}), "runs")
    assert row["Crawled"] == PAGES


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("no_such_package.Corpus", "no file or class has this name (No module named 'no_such_package')"),
        (
            "own_corpus.Nothing",
            "no file or class has this name (module 'own_corpus' has no attribute 'Nothing')",
        ),
        ("own_corpus.LinksOnly", "is no corpus class: it lacks from_options, page, text, html, is_key, keys, sample"),
        ("pages.warc", "no file or class has this name (No module named 'pages')"),
    ],
)
def test_what_is_no_corpus_is_one_line(path: str, why: str) -> None:
    with pytest.raises(InputError) as refused:
        open_corpus(Settings({"CORPUS": path}))
    assert str(refused.value).removeprefix(f"CORPUS {path}").lstrip(": ").startswith(why)


def test_a_file_counts_before_a_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / PATH).mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="holds neither"):
        open_corpus(Settings({"CORPUS": PATH}))


def test_its_index_is_its_own(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="makes its own index"):
        list(index_corpus(Settings({"CORPUS": PATH}), 1))
