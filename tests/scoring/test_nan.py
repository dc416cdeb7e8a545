"""Models and scorers that give NaN: refused at the start, or the end of what they score for."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fasttext
import numpy as np
import pytest
from crawl_helpers import Web, crawl, error_of
from driven_crawl import Driven, scored
from export_helpers import Page, run_export, write_run
from graph_corpus import NumberScorer
from model_helpers import patched
from policy_helpers import new_policy
from training_helpers import GOOD, OTHER, run_training, texts, write_jsonl

from crawl4llm.base.errors import InputError
from crawl4llm.options import Options
from crawl4llm.policies import Candidate
from crawl4llm.scoring.fasttext_scorer import FastTextScorer
from crawl4llm.scoring.rating import PageRater
from crawl4llm.tools import _fit as fitting
from crawl4llm.tools.evaluate.survey import Survey
from crawl4llm.tools.trainscorer import Example, _test

LABEL = "__label__hq"
NAN_WEIGHTS = r"^SCORER_MODEL .*nan\.bin is damaged: it has weights that are NaN; fetch or train it again$"
NAN_SCORE = r"^SCORER_MODEL .*huge\.bin gives no score: Encountered NaN\.; train it again \(page {}\)$"
PAGES = {"CRAWL_MAX_PAGES": 60, "CRAWL_BATCH_SIZE": 20, "WARC_ENABLED": 0}


@pytest.fixture
def huge(demo_web: Web, tmp_path: Path) -> Path:
    """A model whose weights are numbers, but so large that any sum of two is none."""
    return patched(demo_web.model, tmp_path / "huge.bin", slice(None), 3e38)


@pytest.mark.parametrize("places", [slice(None), slice(0, 1), slice(-1, None)], ids=["all", "first", "last"])
@pytest.mark.parametrize("weight", [float("nan"), float("inf")])
def test_a_model_with_such_a_weight_is_refused(places: slice, weight: float, demo_web: Web, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=NAN_WEIGHTS):
        FastTextScorer(patched(demo_web.model, tmp_path / "nan.bin", places, weight), LABEL)


def test_such_a_weight_in_a_quantised_model(tmp_path: Path) -> None:
    """Its floats are the centroids of its quantizers; those of the input matrix follow its codes."""
    examples = tmp_path / "examples.txt"
    lines = [f"{label} {text}" for label in (LABEL, "__label__cc") for text in ("essay menu", "cart lesson")]
    examples.write_text("\n".join(lines))
    model = fasttext.train_supervised(str(examples), dim=4, epoch=1, wordNgrams=2, bucket=300, thread=1, verbose=0)
    output = np.asarray(model.get_output_matrix(), dtype="<f4").tobytes()
    model.quantize(thread=1, verbose=0)
    model.save_model(str(tmp_path / "sound.ftz"))
    assert FastTextScorer(tmp_path / "sound.ftz", LABEL)
    data = bytearray((tmp_path / "sound.ftz").read_bytes())
    centroids_end = data.index(output) - 8 - 8 - 1
    struct.pack_into("<f", data, centroids_end - 4, float("nan"))
    (tmp_path / "nan.bin").write_bytes(data)
    with pytest.raises(InputError, match=NAN_WEIGHTS):
        FastTextScorer(tmp_path / "nan.bin", LABEL)


def test_a_crawl_is_refused_before_it_begins(demo_web: Web, tmp_path: Path) -> None:
    model = patched(demo_web.model, tmp_path / "nan.bin", slice(None), float("nan"))
    assert "weights that are NaN" in error_of(crawl(demo_web, tmp_path / "run", SCORER_MODEL=model, **PAGES))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("policy", ["influence", "random"])
def test_a_crawl_ends_at_the_first_nan(policy: str, huge: Path, demo_web: Web, tmp_path: Path) -> None:
    given = {"SCORER_MODEL": huge, "URL_POLICY": policy, "CRAWL_MAX_ERRORS": 1000}
    result = crawl(demo_web, tmp_path / "run", **given, **PAGES)
    assert result.returncode == 1
    assert "gives no score: Encountered NaN.; train it again (page clueweb22-" in error_of(result)
    assert not (tmp_path / "run").exists()


# -- scorers of somebody else's ---------------------------------------------------------------------------------------

GRAPH = scored({"1": ["2", "bad"], "2": [], "bad": []})
GRAPH.texts["bad"] = "nan as a score"
FAULT = "NumberScorer gave page bad the score nan; a scorer gives finite numbers"


class Wild(NumberScorer):
    """A scorer that goes wrong on one page."""

    def score(self, texts: Sequence[str]) -> list[float]:
        return [float("-inf") if "nan" in text else 1.0 for text in texts]


WILD = f"{__name__}.Wild"


@pytest.mark.parametrize("options", [{}, {"url_policy": "breadth_first"}, {"crawl_batch_size": 0}])
def test_pages_before_stay(options: dict[str, Any], tmp_path: Path) -> None:
    driven = Driven(GRAPH, tmp_path, **options)
    with pytest.raises(InputError, match=f"^{FAULT}$"):
        driven.run("1")
    assert driven.ids == ["1"]
    driven.close()


@pytest.mark.parametrize(
    "options", [{"url_policy": f"scorer:{WILD}"}, {"url_policy": "ensemble", "ensemble_weights": f"{WILD}:1"}]
)
def test_scorers_of_other_policies(options: dict[str, str]) -> None:
    policy = new_policy(GRAPH, **options)
    with pytest.raises(InputError, match=r"^Wild gave page bad the score -inf; a scorer gives finite numbers$"):
        asyncio.run(policy.score([Candidate("bad", "", 0, None)]))


@pytest.mark.parametrize("processes", [0, 2])
def test_an_evaluation(processes: int, tmp_path: Path) -> None:
    survey = Survey(GRAPH, Options(scoring_workers=processes, progress_bar="off"), cache=tmp_path)
    with pytest.raises(InputError, match=f"^{FAULT}$"):
        survey.scores(PageRater(GRAPH, NumberScorer(), None), "number")
    assert not list(tmp_path.rglob("*.block"))


def test_an_export(huge: Path, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [Page("one", "a text of words", None)])
    (run / "crawl.jsonl").unlink()
    with pytest.raises(InputError, match=NAN_SCORE.format("http://site.example.org/one")):
        run_export(tmp_path / "out", run / "warc", settings={"SCORER_MODEL": str(huge)}, min_influence=0.5)
    assert not (tmp_path / "out/manifest.json").exists()


def test_a_model_that_was_trained(huge: Path) -> None:
    with pytest.raises(InputError, match=NAN_SCORE.format("held out")):
        _test(huge, None, iter([Example(True, "some words of a text")]), bar=False)


def test_a_training_that_ends_with_nan(demo_web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """fastText notices most of that itself; here it writes such a model all the same."""
    nan = patched(demo_web.model, tmp_path / "nan.bin", slice(None), float("nan"))

    def write(_arguments: object, model: Path, *_others: object) -> None:
        model.write_bytes(nan.read_bytes())

    monkeypatch.setattr(fitting, "_fit", write)
    sources = [
        write_jsonl(tmp_path / f"{kind}.jsonl", texts(words, 60)) for kind, words in (("good", GOOD), ("other", OTHER))
    ]
    with pytest.raises(InputError, match=r"^fastText has trained weights that are NaN; try a smaller --rate$"):
        run_training([sources[0]], [sources[1]], tmp_path / "model")
    assert not (tmp_path / "model").exists()
