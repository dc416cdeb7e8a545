"""The contract of a scorer, run against every scorer of the project."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace

import pytest
from crawl_helpers import Web

from crawl4llm.base.errors import InputError
from crawl4llm.options import Options
from crawl4llm.scoring import SCORERS, Scorer, gives_probabilities, load_scorer

TEXTS = ["", " \n ", "one", "Ünïcode \U0001f600 \ud800", "a page\nof several lines", "word " * 5000]


@pytest.fixture(params=SCORERS)
def options(request: pytest.FixtureRequest, demo_web: Web) -> Options:
    return Options(scorer=request.param, scorer_model=str(demo_web.model))


@pytest.fixture
def scorer(options: Options) -> Scorer:
    return load_scorer(options)


def test_one_finite_score_for_each_text(scorer: Scorer) -> None:
    scores = scorer.score(TEXTS)
    assert len(scores) == len(TEXTS)
    assert all(isinstance(score, float) and math.isfinite(score) for score in scores)
    assert scorer.score([]) == []


def test_probabilities_are_named_so(options: Options, scorer: Scorer) -> None:
    is_probability = all(0 <= score <= 1 for score in scorer.score(TEXTS))
    assert gives_probabilities(options.scorer) == gives_probabilities(SCORERS[options.scorer]) == is_probability


def test_a_text_scores_the_same_alone(scorer: Scorer) -> None:
    assert [scorer.score([text])[0] for text in TEXTS] == scorer.score(TEXTS)


def test_it_survives_pickling(scorer: Scorer) -> None:
    copy: Scorer = pickle.loads(pickle.dumps(scorer))
    assert copy.score(TEXTS) == scorer.score(TEXTS)
    assert copy.digest == scorer.digest


def test_scorers_are_told_apart(demo_web: Web) -> None:
    digests = [load_scorer(Options(scorer=name, scorer_model=str(demo_web.model))).digest for name in SCORERS]
    assert len(set(digests)) == len(SCORERS)
    assert all(len(digest) == 64 for digest in digests)


def test_by_dotted_path(options: Options) -> None:
    named = load_scorer(options)
    by_path = load_scorer(replace(options, scorer=SCORERS[options.scorer]))
    assert by_path.digest == named.digest


@pytest.mark.parametrize("path", ["no.such.Scorer", "crawl4llm.scoring.length.NoSuch", "os.path", ".", "math.pi"])
def test_what_is_no_scorer_is_refused(path: str) -> None:
    with pytest.raises(InputError, match=r"^SCORER = .* cannot be loaded .*; known are: fasttext, length$"):
        load_scorer(Options(scorer=path))
