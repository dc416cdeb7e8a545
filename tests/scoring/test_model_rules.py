"""The rules beside a model: the crawler asks it for the right label, and for texts like those it was trained on."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings
from training_helpers import GOOD, OTHER, run_training, texts, write_jsonl

from crawl4llm.base.errors import InputError
from crawl4llm.options import read_options
from crawl4llm.scoring import load_scorer
from crawl4llm.scoring.fasttext_scorer import FastTextScorer
from crawl4llm.scoring.model_rules import rules_path
from crawl4llm.tools._fit import NEGATIVE, POSITIVE
from settings import live


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, and its rules."""
    folder = tmp_path_factory.mktemp("rules")
    good, other = (
        write_jsonl(folder / "good.jsonl", texts(GOOD, 100)),
        write_jsonl(folder / "other.jsonl", texts(OTHER, 100)),
    )
    run_training([good], [other], folder / "model", held_out=0.3)
    return folder / "model" / "model.bin"


@pytest.fixture
def model(trained: Path, tmp_path: Path) -> Callable[..., Path]:
    """A copy of the model, with rules that are changed, or none."""

    def copy(**changed: Any) -> Path:
        path = tmp_path / "copy.bin"
        path.write_bytes(trained.read_bytes())
        if changed != {"rules": None}:
            rules = json.loads(rules_path(trained).read_text())
            rules_path(path).write_text(json.dumps({**rules, **changed}))
        return path

    return copy


def scorer_of(**settings: object) -> FastTextScorer:
    scorer = load_scorer(read_options(Settings(settings)))
    assert isinstance(scorer, FastTextScorer)
    return scorer


def test_what_is_not_set_is_as_the_rules_say(model: Callable[..., Path], caplog: pytest.LogCaptureFixture) -> None:
    path = model(label=NEGATIVE, extractor="resiliparse")
    options = read_options(Settings({"SCORER_MODEL": path}))
    assert (options.scorer_label, options.text_extractor) == (NEGATIVE, "resiliparse")
    scorer = scorer_of(SCORER_MODEL=path)
    assert scorer.label == NEGATIVE
    assert scorer.score(texts(OTHER, 1))[0] > 0.5
    assert not caplog.records


def test_what_is_set_counts_with_a_warning(model: Callable[..., Path], caplog: pytest.LogCaptureFixture) -> None:
    settings = {"SCORER_LABEL": POSITIVE, "TEXT_EXTRACTOR": "trafilatura", "SIMULATION_TEXT": "extracted"}
    path = model(label=NEGATIVE, extractor="resiliparse")
    with caplog.at_level(logging.WARNING):
        assert scorer_of(SCORER_MODEL=path, **settings).label == POSITIVE
    assert read_options(Settings({"SCORER_MODEL": path, **settings})).text_extractor == "trafilatura"
    label, extractor = (record.message for record in caplog.records)
    assert label.startswith(f"SCORER_LABEL is {POSITIVE}, but the rules beside SCORER_MODEL say that {NEGATIVE} is")
    assert extractor.startswith("TEXT_EXTRACTOR is trafilatura, but SCORER_MODEL was trained on texts by resiliparse")


@pytest.mark.parametrize("trained_with", ["trafilatura", "resiliparse"])
def test_the_live_profiles_extractor_is_told_apart_from_the_cards(
    model: Callable[..., Path], caplog: pytest.LogCaptureFixture, trained_with: str
) -> None:
    """One line; none if the card names the same."""
    with caplog.at_level(logging.WARNING):
        scorer_of(SCORER_MODEL=model(extractor=trained_with), TEXT_EXTRACTOR=live.TEXT_EXTRACTOR)
        (record,) = caplog.records
        scorer_of(SCORER_MODEL=model(extractor=live.TEXT_EXTRACTOR), TEXT_EXTRACTOR=live.TEXT_EXTRACTOR)
    assert caplog.records == [record]
    assert record.message.startswith(f"TEXT_EXTRACTOR is both, but SCORER_MODEL was trained on texts by {trained_with}")


def test_no_word_of_the_extractor_where_nothing_is_extracted(
    model: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    scorer_of(SCORER_MODEL=model(extractor="resiliparse"), TEXT_EXTRACTOR="trafilatura", CORPUS="demo")
    assert not caplog.records


def test_without_rules_all_is_as_ever(model: Callable[..., Path]) -> None:
    assert scorer_of(SCORER_MODEL=model(rules=None)).label == POSITIVE


def test_texts_are_scored_by_the_rule_they_were_trained_by(trained: Path) -> None:
    assert json.loads(rules_path(trained).read_text())["text_rule"] == "dclm"
    text = texts(GOOD, 1)[0]
    one, same = scorer_of(SCORER_MODEL=trained).score([text, f"\n {text}\r\n".replace("\n", "\u2028")])
    assert one == same


def test_rules_of_another_model_are_refused(model: Callable[..., Path]) -> None:
    path = model(model_digest=f"sha256:{'0' * 64}")
    with pytest.raises(
        InputError, match=rf"^{path}.json belongs to another model than {path}: .*; put the model's own"
    ):
        scorer_of(SCORER_MODEL=path)


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"kind": "another"}, "is damaged, or no file of `scrapy trainscorer`"),
        ({"label": 5}, "is damaged, or no file of `scrapy trainscorer`"),
        ({"extractor": []}, "is damaged, or no file of `scrapy trainscorer`"),
        ({"model_digest": "0" * 64}, "is damaged, or no file of `scrapy trainscorer`"),
        ({"model_digest": 7}, "is damaged, or no file of `scrapy trainscorer`"),
        ({"text_rule": "lower case"}, "text_rule 'lower case' with extractor None is not known to crawl4llm"),
        ({"extractor": "mine"}, "text_rule 'dclm' with extractor 'mine' is not known to crawl4llm"),
    ],
)
def test_rules_that_cannot_be_followed(model: Callable[..., Path], changed: dict[str, Any], fault: str) -> None:
    path = model(**changed)
    with pytest.raises(InputError) as refused:
        read_options(Settings({"SCORER_MODEL": path}))
    assert str(refused.value).startswith(f"{path}.json")
    assert fault in str(refused.value)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"{}", b"[" * 10**5])
def test_damaged_rules(model: Callable[..., Path], content: bytes) -> None:
    path = model()
    rules_path(path).write_bytes(content)
    with pytest.raises(InputError, match=rf"^{path}.json is damaged, or no file of `scrapy trainscorer`; put the one"):
        read_options(Settings({"SCORER_MODEL": path}))
