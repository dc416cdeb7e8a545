"""How a model is trained: DCLM's recipe, and what may be chosen otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

PREFIX: Final = "__label__"
POSITIVE, NEGATIVE = f"{PREFIX}hq", f"{PREFIX}cc"
"""DCLM's labels: of high quality; of Common Crawl."""


@dataclass(frozen=True)
class Recipe:
    """What decides the model besides the texts.

    The defaults are those of DCLM (Li et al. 2024, DataComp-LM, section 4.4; ``baselines/README.md`` and
    ``train_fasttext_classifier.py`` of its repository): supervised fastText with word bigrams, else its defaults.
    """

    word_ngrams: int = 2
    dim: int = 100
    epochs: int = 5
    rate: float = 0.1
    min_count: int = 1
    buckets: int = 2_000_000
    seed: int = 0
    """Of the order of the examples, of what balancing drops, and of fastText's first vectors."""
    balance: bool = False
    """Whether texts of the larger class are dropped until both have as many."""
    held_out: float = 0.1
    """The share of the texts that the model is not trained on, but tested."""
    quantize: bool = False
    """Whether a smaller, quantised model is made too."""

    def fasttext(self) -> dict[str, Any]:
        """Arguments of ``fasttext.train_supervised``; with one thread it gives the same model each time."""
        return {
            "wordNgrams": self.word_ngrams,
            "dim": self.dim,
            "epoch": self.epochs,
            "lr": self.rate,
            "minCount": self.min_count,
            "bucket": self.buckets,
            "minn": 0,
            "maxn": 0,
            "loss": "softmax",
            "label": PREFIX,
            "seed": self.seed,
            "thread": 1,
        }
