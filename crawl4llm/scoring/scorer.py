"""The scorers, their loading, and the settings of scoring."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from crawl4llm.base.processes import cores
from crawl4llm.base.settings import fixed, is_dotted, loaded, one_of, option, optional_text, text, text_or_empty, whole
from crawl4llm.scoring.text import EXTRACTORS

_WORKERS_PER_CORE = 4  # more would only take memory from each other

SCORERS = {
    "fasttext": "crawl4llm.scoring.fasttext_scorer.FastTextScorer",
    "length": "crawl4llm.scoring.length.LengthScorer",
}


def scorer_name(value: Any) -> str:
    """Check one of SCORERS, or the dotted path of a scorer class."""
    return str(value) if is_dotted(value) else str(one_of(*SCORERS)(value))


def _number_of_workers(value: Any) -> int:
    """Return the number of processes to start; -1 means one for each core."""
    number: int = whole(-1)(value)
    if number > _WORKERS_PER_CORE * cores():
        most = f"{_WORKERS_PER_CORE * cores()}: {_WORKERS_PER_CORE} for each of the {cores()} cores here"
        raise ValueError(f"must be at most {most}")
    return number


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class ScoringOptions:
    """The checked values of settings for influence scores."""

    text_extractor: str = fixed("trafilatura", one_of(*EXTRACTORS))
    """Extractor of main text from HTML: `trafilatura`, `resiliparse`, or `both`, which chooses for each page
    ([training.md](training.md#which-extractor)). The live profile has `both`. Default: taken from the rules beside
    `SCORER_MODEL`, if there are any."""
    scorer: str = fixed("fasttext", scorer_name, imports=is_dotted)
    """The scorer that rates the text of a page: its name, or a dotted path. Its score is the influence."""
    scorer_model: str | None = option(None, optional_text)
    """Path of the fastText classifier (`.bin` or `.ftz`); the demo web brings its own."""
    scorer_label: str = fixed("__label__hq", text)
    """The classifier's label whose probability is the influence score. Default: taken from the rules beside
    `SCORER_MODEL` (`MODEL.json`, by `scrapy trainscorer`), if there are any."""
    scoring_workers: int = option(-1, _number_of_workers)
    """Processes that look up, extract and score, at most 4 for each core. -1: one for each core. 0: none; the crawler's
    own process does it, without a time limit."""
    score_cache: str | None = option(None, text_or_empty)
    """Simulations: folder for influence scores, which other crawls and `scrapy evaluate` reuse
    ([simulation-and-live.md](simulation-and-live.md#the-score-cache)). Default: `scores` in the project's `.scrapy`;
    empty: none."""

    @property
    def workers(self) -> int:
        """The number of scoring processes to start; 0 for none."""
        return cores() if self.scoring_workers < 0 else self.scoring_workers

    @property
    def extracts(self) -> bool:
        """True if the scored text is extracted from HTML; a corpus may have clean text instead."""
        return True


class Scorer(Protocol):
    """Rates the main text of pages. Must survive a fork, and pickling where processes are spawned.

    If the first text would load much, it has a method ``load``, which is called before worker processes are forked. If
    its scores are probabilities, it has ``gives_probabilities = True``.
    """

    @classmethod
    def from_options(cls, options: ScoringOptions) -> Scorer:
        """Return the scorer that the settings describe. Raises InputError."""

    @property
    def digest(self) -> str:
        """SHA-256 in hex; differs between scorers that give different scores."""

    def score(self, texts: Sequence[str]) -> list[float]:
        """Return one finite score for each text; higher is better."""


def parse_weights(text: str) -> dict[str, float]:
    """Return weights by scorer, from ``name:weight,name:weight``. Raises ValueError that names the fault."""
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


def load_scorer(options: ScoringOptions) -> Scorer:
    """Return the scorer that SCORER names. Raises InputError."""
    return load_scorer_class(options.scorer).from_options(options)


def load_scorer_class(name: str) -> type[Scorer]:
    """Return the class of a scorer by its name or dotted path. Raises InputError."""
    what, hint = f"SCORER = {name!r} cannot be loaded", f"; known are: {', '.join(SCORERS)}"
    found: type[Scorer] = loaded(SCORERS.get(name, name), what, hint, needs="from_options")
    return found


def gives_probabilities(name: str) -> bool:
    """Return whether the scores of a scorer are probabilities, by its name or dotted path. Raises InputError."""
    return bool(getattr(load_scorer_class(name), "gives_probabilities", False))
