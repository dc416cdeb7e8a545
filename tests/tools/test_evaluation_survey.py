"""Scoring a corpus once: cached, resumed after a kill, and never mixed with another model's scores."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from crawl_helpers import Web
from demo_helpers import start_python
from evaluation_helpers import line, write_run
from graph_corpus import GraphCorpus, NumberScorer

from crawl4llm.base.errors import InputError
from crawl4llm.options import Options
from crawl4llm.scoring import passes
from crawl4llm.scoring.fasttext_scorer import FastTextScorer
from crawl4llm.scoring.rating import PageRater
from crawl4llm.tools.evaluate.documents import Documents
from crawl4llm.tools.evaluate.runs import read_runs
from crawl4llm.tools.evaluate.survey import Subject, Survey, count_tokens
from simulate.clueweb22.corpus import ClueWeb22Corpus

IN_PROCESS = Options(scoring_workers=0, progress_bar="off")
TEXTS = {"a": "0.5 words of a", "b": "0.25", "c": "", "d": "0.75 fish and more fish", "e": "0.125"}
LINKS = {"a": ["b", "c", "b", "a", None, "gone"], "b": ["a"], "c": [], "d": ["a", "e"], "e": ["d"]}


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(passes, "BLOCK", 2)
    return


def crawl(*keys: str) -> passes.Pages:
    """The pages of a crawl."""
    return passes.Pages("a crawl", len(keys), partial(iter, keys))


def rater(corpus: GraphCorpus) -> PageRater:
    return PageRater(corpus, NumberScorer(), None)


@pytest.mark.usefixtures("small_blocks")
class TestSurvey:
    def test_what_is_found_out(self, tmp_path: Path) -> None:
        corpus = GraphCorpus(LINKS, TEXTS, corrupt=["d"])
        survey = Survey(corpus, IN_PROCESS, cache=tmp_path)
        scores = survey.scores(rater(corpus), "number")
        assert np.array_equal(scores.influence, [0.5, 0.25, 0, np.nan, 0.125], equal_nan=True)
        assert scores.tokens.tolist() == [4, 1, 0, 0, 1]
        assert scores.reasons == {"no_text": 1, "corrupt_record": 1}
        indegree = survey.indegree(rater(corpus))
        assert indegree is not None
        assert indegree.tolist() == [3, 2, 1, 1, 1]
        graph = survey.graph(rater(corpus))
        assert graph is not None
        assert graph.degrees.tolist() == [2, 1, 0, 0, 1]
        assert graph.indegree().tolist() == [1, 1, 1, 1, 0]

    def test_a_corpus_without_inlinks(self, tmp_path: Path) -> None:
        corpus = GraphCorpus(LINKS, TEXTS, holds=["text", "outlinks"])
        assert Survey(corpus, IN_PROCESS, cache=tmp_path).indegree(rater(corpus)) is None

    def test_seeds_of_another_corpus(self, tmp_path: Path) -> None:
        """Nothing can be reached from them, and a run has pages."""
        corpus = GraphCorpus(LINKS, TEXTS)
        path = write_run(tmp_path / "run", [line(0, id="a")])
        (path / "seeds.txt").write_text("gone\n")
        survey = Survey(corpus, IN_PROCESS, cache=tmp_path)
        with pytest.raises(InputError, match=r"run/seeds\.txt: none of its seeds is in the corpus"):
            Subject(read_runs([path]), survey, rater(corpus))

    def test_nothing_is_looked_up_twice(self, tmp_path: Path) -> None:
        corpus = GraphCorpus(LINKS, TEXTS)
        first = Survey(corpus, IN_PROCESS, cache=tmp_path).scores(rater(corpus), "number")
        corpus.lookups.clear()
        again = Survey(corpus, IN_PROCESS, cache=tmp_path).scores(rater(corpus), "number")
        assert np.array_equal(again.influence, first.influence)
        assert not corpus.lookups

    def test_another_model_has_scores_of_its_own(self, tmp_path: Path) -> None:
        corpus = GraphCorpus(LINKS, TEXTS)
        Survey(corpus, IN_PROCESS, cache=tmp_path).scores(rater(corpus), "number")
        other = rater(corpus)
        other.scorer.digest = "1" * 64  # type: ignore[misc]
        corpus.lookups.clear()
        Survey(corpus, IN_PROCESS, cache=tmp_path).scores(other, "number")
        assert sum(corpus.lookups.values()) == len(TEXTS)

    @pytest.mark.parametrize("what", ["label", "text", "corpus"])
    def test_what_else_decides_scores(self, what: str, tmp_path: Path) -> None:
        corpus = GraphCorpus(LINKS, TEXTS)
        Survey(corpus, IN_PROCESS, cache=tmp_path).scores(rater(corpus), "number")
        options = IN_PROCESS
        if what == "label":
            options = replace(options, scorer_label="__label__other")
        elif what == "text":
            options = replace(options, simulation_text="extracted")
        else:
            corpus = GraphCorpus({**LINKS, "f": []}, {**TEXTS, "f": "1"})
        corpus.lookups.clear()
        Survey(corpus, options, cache=tmp_path).scores(rater(corpus), "number")
        assert sum(corpus.lookups.values()) == len(corpus)

    @pytest.mark.parametrize("damage", ["flipped", "short", "empty", "another model's"])
    def test_a_block_that_cannot_be_used_is_named_and_computed_again(
        self, damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        corpus = GraphCorpus(LINKS, TEXTS)
        survey = Survey(corpus, IN_PROCESS, cache=tmp_path)
        first = survey.scores(rater(corpus), "number")
        blocks = sorted(tmp_path.rglob("*.block"))
        assert len(blocks) == 3
        whole = blocks[1].read_bytes()
        if damage == "flipped":
            blocks[1].write_bytes(whole[:-40] + bytes([whole[-40] ^ 1]) + whole[-39:])
        elif damage == "short":
            blocks[1].write_bytes(whole[:-1])
        elif damage == "empty":
            blocks[1].write_bytes(b"")
        else:
            survey.scores(rater(corpus), "another")
            (other,) = set(tmp_path.rglob("000001.block")) - set(blocks)
            blocks[1].write_bytes(other.read_bytes())
        corpus.lookups.clear()
        with caplog.at_level(logging.WARNING):
            again = survey.scores(rater(corpus), "number")
        assert np.array_equal(again.influence, first.influence)
        assert {key for _, key in corpus.lookups} == {"c", "d"}
        assert str(blocks[1]) in caplog.text
        assert blocks[1].read_bytes() == whole

    def test_topic(self, tmp_path: Path) -> None:
        """On the topic are pages with it in their title, or more than ten times in their text; whole words only."""
        texts = {"a": "x " + "fish " * 11, "b": "x\n" + "fish " * 10, "c": "Fish\n", "d": "x fishing", "e": "x\nfish"}
        corpus = GraphCorpus(dict.fromkeys(texts, ()), texts, holds=["text", "outlinks"])
        hot, if_linked = Survey(corpus, IN_PROCESS, cache=tmp_path).topic(rater(corpus), ["FISH", "chips"])
        assert hot.tolist() == [True, False, True, False, False]
        assert if_linked.tolist() == [True, True, True, False, False]

    def test_a_sample_and_what_was_crawled(self, tmp_path: Path) -> None:
        corpus = GraphCorpus(LINKS, {key: f"0.{number + 1}" for number, key in enumerate("abcde")})
        survey = Survey(corpus, IN_PROCESS, sample=3, crawled=[crawl("e", "b"), crawl("a")], cache=tmp_path)
        sample = sorted(corpus.sample(3, 0))
        assert (survey.sampled, survey.surveyed, survey.size) == (True, 3, 5)
        influence = survey.scores(rater(corpus), "number").influence
        assert influence[:3].tolist() == [float(corpus.texts[key]) for key in sample]
        assert influence[survey.documents.numbers_of("abe")].tolist() == [0.1, 0.2, 0.5]
        assert survey.graph(rater(corpus)) is None
        corpus.lookups.clear()
        Survey(corpus, IN_PROCESS, sample=3, crawled=[crawl("e", "b")], cache=tmp_path).scores(rater(corpus), "number")
        assert not corpus.lookups

    def test_a_sample_of_all_is_all(self, tmp_path: Path) -> None:
        corpus = GraphCorpus(LINKS, TEXTS)
        survey = Survey(corpus, IN_PROCESS, sample=5, crawled=[crawl("a")], cache=tmp_path)
        assert (survey.sampled, survey.surveyed, len(survey.documents)) == (False, 5, 5)


def test_numbers_of_documents() -> None:
    documents = Documents(["x", "y", "x", "ä"])
    assert documents.numbers_of(["ä", "x", "z", "y"]).tolist() == [3, 0, -1, 1]
    assert Documents([]).numbers_of(["x"]).tolist() == [-1]


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), (" \n", 0), ("a", 1), ("a  b\tc\n", 3), ("ä\N{NO-BREAK SPACE}b", 1)]
)
def test_tokens_are_what_fasttext_takes_for_words(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens


_SCORE = """
import sys
from pathlib import Path
from crawl4llm.scoring import passes
from crawl4llm.tools.evaluate.survey import Survey
from crawl4llm.base.errors import InputError
from crawl4llm.options import Options
from crawl4llm.scoring.rating import PageRater
from crawl4llm.scoring.fasttext_scorer import FastTextScorer
from simulate.clueweb22.corpus import ClueWeb22Corpus

passes.BLOCK = 50
corpus, model, cache = sys.argv[1:]
corpus = ClueWeb22Corpus(corpus)
rater = PageRater(corpus, FastTextScorer(Path(model), "__label__hq"), None)
Survey(corpus, Options(scoring_workers=1, progress_bar="off"), cache=Path(cache)).scores(rater, "fasttext")
"""


def test_a_killed_scoring_goes_on(demo_web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    process = start_python(_SCORE, *demo_web, cache)
    while len(list(cache.rglob("*.block"))) < 3:
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)
    process.kill()
    process.communicate()
    done = {path: path.stat().st_mtime_ns for path in cache.rglob("*.block")}
    assert 3 <= len(done) < 30

    monkeypatch.setattr(passes, "BLOCK", 50)
    corpus = ClueWeb22Corpus(demo_web.corpus)
    rater = PageRater(corpus, FastTextScorer(demo_web.model, "__label__hq"), None)
    options = Options(scoring_workers=2, progress_bar="off")
    resumed = Survey(corpus, options, cache=cache).scores(rater, "fasttext")
    anew = Survey(corpus, options, cache=tmp_path / "other").scores(rater, "fasttext")
    assert np.array_equal(resumed.influence, anew.influence)
    assert len(list(cache.rglob("*.block"))) == 30
    assert {path: path.stat().st_mtime_ns for path in done} == done
