"""Scorers: M of the paper, from a page's main text to a score.

``SCORERS`` names those that come with the project; one of your own is given by its dotted path.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from crawl4llm.base.errors import InputError

if TYPE_CHECKING:
    from crawl4llm.options import Options

SCORERS = {
    "fasttext": "crawl4llm.scoring.fasttext_scorer.FastTextScorer",
    "length": "crawl4llm.scoring.length.LengthScorer",
}


class Scorer(Protocol):
    """Rates the main text of pages. Must survive a fork, and pickling where processes are spawned.

    One that loads much when the first text comes has a method ``load``: worker processes are forked after it.
    """

    @classmethod
    def from_options(cls, options: Options) -> Scorer:
        """Return the scorer that the settings describe. Raises InputError."""

    @property
    def digest(self) -> str:
        """SHA-256 in hex; scorers that give other scores have another."""

    def score(self, texts: Sequence[str]) -> list[float]:
        """Return one finite score for each text; higher is better."""


def load_now(scorer: Scorer) -> None:
    """Load what a scorer would load when the first text comes. Raises InputError."""
    if load := getattr(scorer, "load", None):
        load()


def score_of(scorer: Scorer, text: str, page: str) -> float:
    """Return the score of one text. Raises InputError, naming its page, where that is no finite number."""
    try:
        (score,) = scorer.score([text])
        finite = math.isfinite(score)
    except InputError as error:
        raise InputError(f"{error} (page {page})") from None
    if not finite:
        raise InputError(f"{type(scorer).__name__} gave page {page} the score {score}; a scorer gives finite numbers")
    return score


def parse_weights(text: str) -> dict[str, float]:
    """Return weights by scorer, from ``name:weight,name:weight``. Raises ValueError that says what is wrong."""
    weights: dict[str, float] = {}
    for part in text.split(","):
        name, _, weight = (word.strip() for word in part.rpartition(":"))
        try:
            weights[name] = float(weight)
        except ValueError:
            name = ""
        if not name or not math.isfinite(weights[name]):
            raise ValueError("must be scorers and weights, like fasttext:1,length:0.5")
        if name not in SCORERS and "." not in name:
            raise ValueError(f"names no scorer; known are: {', '.join(SCORERS)}")
    return weights


def load_scorers(names: Collection[str], options: Options) -> dict[str, Scorer]:
    """Return the scorers that the policy needs besides SCORER, by their names. Raises InputError."""
    try:
        return {name: load_scorer(replace(options, scorer=name)) for name in names if name != options.scorer}
    except InputError as error:
        raise InputError(f"URL_POLICY = {options.url_policy!r}: {error}") from None


def load_scorer(options: Options) -> Scorer:
    """Return the scorer that SCORER names. Raises InputError."""
    return load_scorer_class(options.scorer).from_options(options)


def load_scorer_class(name: str) -> type[Scorer]:
    """Return the class of a scorer by its name or dotted path. Raises InputError."""
    module, _, attribute = SCORERS.get(name, name).rpartition(".")
    try:
        scorer: type[Scorer] = getattr(import_module(module), attribute)
        _ = scorer.from_options
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise InputError(f"SCORER = {name!r} cannot be loaded ({error}); known are: {', '.join(SCORERS)}") from None
    return scorer
