"""The influence score: a fastText classifier's probability of its positive label, by DCLM's recipe."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from crawl4llm.base.command_lines import program
from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import given_path
from crawl4llm.scoring.fasttext_file import ModelFile, inspect_model
from crawl4llm.scoring.model_rules import ModelRules, read_rules, rules_path
from crawl4llm.scoring.scorer import ScoringOptions

logger = logging.getLogger(__name__)


class FastTextModel:
    """A fastText model that is loaded by the first text, or by :meth:`load`. It can be pickled."""

    _fault: str
    """The error of a model that gives NaN, with places for its path and fastText's message."""

    def __init__(self, file: ModelFile) -> None:
        self.file, self.digest = file, file.digest

    def load(self) -> None:
        """Load the model, unless it is loaded already."""
        _ = self.predict

    @cached_property
    def predict(self) -> Callable[..., Any]:
        """fastText's own function, from a line, how many labels, a threshold and how to treat bad UTF-8 to pairs of
        probability and label."""
        # The binding below the package fasttext, whose predict() goes through NumPy for each text, as does its import.
        import fasttext_pybind

        model = fasttext_pybind.fasttext()
        model.loadModel(os.fsencode(self.file.path))  # text would have to be UTF-8
        predict: Callable[..., Any] = model.predict
        return predict

    def labels(self, text: str, most: int, least: float = 0.0) -> Sequence[tuple[float, str]]:
        """Return the most probable labels of a text, each with a probability of at least ``least``; none for a blank
        text. Raises InputError if the model gives NaN."""
        line = one_line(text)
        try:
            return self.predict(f"{line}\n", most, least, "strict") if line else ()
        except RuntimeError as error:  # fastText's "Encountered NaN."
            raise InputError(self._fault.format(self.file.path, error)) from None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "predict"}


class FastTextScorer(FastTextModel):
    """P(label) of a page's main text, from 0 to 1 (Li et al. 2024, DataComp-LM, section 4.4).

    The classifier gets the line that :func:`one_line` makes of the text. fastText exceeds 1 by 1e-5 (it adds that
    before each logarithm), so the result is clipped. Text without a word scores 0. The model is loaded by the first
    text, or by :meth:`load`.

    Raises InputError if the file is not a complete model, has a weight that is NaN or infinite, or lacks the label.
    """

    gives_probabilities = True
    _fault = "SCORER_MODEL {} gives no score: {}; train it again"

    def __init__(self, path: Path, label: str) -> None:
        super().__init__(inspect_model(path))
        if not self.file.finite:
            raise InputError(f"SCORER_MODEL {path} is damaged: it has weights that are NaN; fetch or train it again")
        if label not in self.file.labels:
            raise InputError(
                f"SCORER_LABEL {label!r} is not a label of {path}; its labels are: {', '.join(self.file.labels)}"
            )
        self.label = label

    @classmethod
    def from_options(cls, options: ScoringOptions) -> FastTextScorer:
        """Return the classifier SCORER_MODEL with the label SCORER_LABEL.

        Raises InputError also if the rules beside the model (:mod:`crawl4llm.scoring.model_rules`) belong to another
        model. Options that differ from the rules come from the user; they are used, with a warning.
        """
        if options.scorer_model is None:
            raise InputError(
                "SCORER_MODEL is not set: give the path of a fastText model. The paper's is "
                "openhermes_reddit_eli5_vs_rw_v2_bigram_200k_train.bin (2.4 GB) of mlfoundations/fasttext-oh-eli5 on "
                f"huggingface.co. To train one of two folders of texts: {program()} trainscorer --positive "
                "good/*.jsonl --negative ordinary/*.jsonl --out models/mine. To try a crawl without a model: "
                "-s SCORER=length"
            )
        path = given_path(options.scorer_model)
        scorer = cls(path, options.scorer_label)
        rules = read_rules(path)
        if rules is not None:
            if rules.digest != scorer.digest:
                raise InputError(
                    f"{rules_path(path)} belongs to another model than {path}: it names the digest "
                    f"{rules.digest[:12]}..., the model has {scorer.digest[:12]}...; put the model's own there, or "
                    "remove it and set SCORER_LABEL"
                )
            _warn(options, rules)
        return scorer

    def score(self, texts: Sequence[str]) -> list[float]:
        """Return one probability for each text. Raises InputError if the model gives NaN."""
        return [self._score(text) for text in texts]

    def _score(self, text: str) -> float:
        found = self.labels(text, len(self.file.labels))
        probability = next((probability for probability, label in found if label == self.label), 0.0)
        return float(min(max(probability, 0.0), 1.0))


def _warn(options: ScoringOptions, rules: ModelRules) -> None:
    if options.scorer_label != rules.label:
        logger.warning(
            "SCORER_LABEL is %s, but the rules beside SCORER_MODEL say that %s is its label for good pages",
            options.scorer_label,
            rules.label,
        )
    if options.extracts and rules.extractor not in {None, options.text_extractor}:
        logger.warning(
            "TEXT_EXTRACTOR is %s, but SCORER_MODEL was trained on texts by %s; scores may be off",
            options.text_extractor,
            rules.extractor,
        )


_RARE_BREAKS: Final = "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""The line ends of ``str.splitlines`` except the line feed."""


def one_line(text: str) -> str:
    """Return the text on one line, as in DCLM: ``" ".join(text.strip().splitlines())``."""
    line = text.strip()
    has_rare = any(map(line.__contains__, _RARE_BREAKS))
    line = " ".join(line.splitlines()) if has_rare else line.replace("\n", " ")  # the same, in less time
    if line.isascii():
        return line
    return line.encode("utf-8", "replace").decode()  # fastText's binding refuses half a surrogate pair


_LEAST = 0.5
"""Least probability of a language."""
_PREFIX = "__label__"


class FastTextLanguages(FastTextModel):
    """A fastText classifier of languages, for texts of archives that do not give their language, such as lid.176
    (Joulin et al. 2016), with labels ``__label__CODE``.

    Raises InputError if the file is not a complete model.
    """

    _fault = "--language-model {} tells nothing: {}"

    def __init__(self, path: Path) -> None:
        super().__init__(inspect_model(path, "--language-model"))

    def language(self, text: str) -> str | None:
        """Return the code of the most probable language, if its probability is 0.5 or more."""
        return next((label.removeprefix(_PREFIX) for _, label in self.labels(text, 1, _LEAST)), None)
