"""Corpora held in memory, for crawls of them by many policies: those of contests, with scores by text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Protocol

from crawl4llm.policies import bound_text
from crawl4llm.scoring import ScoringOptions
from crawl4llm.scoring.fasttext_scorer import FastTextScorer
from crawl4llm.tools.evaluate.bound import bound_of
from crawl4llm.tools.evaluate.contest import web
from simulate.clueweb22.corpus import ClueWeb22Corpus

LABEL = "__label__hq"
half_of = web.half_of


class MemoryWeb(web.MemoryWeb):
    """A corpus in memory, with its texts."""

    def influence(self, scorer: RememberedScores) -> dict[str, float]:
        """The influence score of each page; 0 without a text."""
        texts = {key: self.text(key) for key in self.keys()}
        return {key: scorer.score([text])[0] if text.strip() else 0.0 for key, text in texts.items()}

    def oracle(self, scorer: RememberedScores) -> set[str]:
        """The tenth of the pages with the highest influence scores; ties by key."""
        return web.best_tenth(self.influence(scorer))

    def bound(self, scorer: RememberedScores) -> str:
        """What BOUND_SCORES takes, for crawls of this web by a scorer."""
        return bound_text(bound_of(self, self.influence(scorer)), self.identity(), scorer.digest)


class Scores(Protocol):
    """What a scorer is here."""

    @property
    def digest(self) -> str: ...

    def score(self, texts: Sequence[str]) -> list[float]: ...


class RememberedScores:
    """The scores of a scorer, or of a fastText model; each text is scored once."""

    def __init__(self, scorer: Path | Scores) -> None:
        self._scorer = FastTextScorer(scorer, LABEL) if isinstance(scorer, Path) else scorer
        self._scores: dict[str, float] = {}
        self.digest = self._scorer.digest

    @classmethod
    def from_options(cls, options: ScoringOptions) -> RememberedScores:
        assert options.scorer_model is not None
        return cls(Path(options.scorer_model))

    def score(self, texts: Sequence[str]) -> list[float]:
        for text in texts:
            if text not in self._scores:
                self._scores[text] = self._scorer.score([text])[0]
        return [self._scores[text] for text in texts]


def open_web(name: str, path: Path) -> MemoryWeb:
    """A tree in ClueWeb22's layout, read into memory."""
    corpus = ClueWeb22Corpus(path)
    return MemoryWeb.read(name, corpus, cache(corpus.text))
