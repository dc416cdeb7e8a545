"""The model that learns: a logistic regression on hashed features, learnt online by Vowpal Wabbit."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from crawl4llm.base.errors import InputError

try:
    from vowpalwabbit import Workspace
except ImportError:
    Workspace = None

_LOSS: Final = "--quiet --loss_function logistic"
_OPTIONS: Final = f"{_LOSS} --noconstant --bit_precision 20 --learning_rate 1"
"""Vowpal Wabbit's own rule of learning: steps that are adaptive, normalised and safe for any importance weight
(Karampatziakis and Langford 2011; Ross et al. 2013)."""


class Learner:
    """Corrects prior log-odds by the sum of the weights of a document's features.

    All weights are 0 at first: what is predicted of a document is its prior until something was learnt of one of its
    features. The same calls give the same weights.
    """

    def __init__(self) -> None:
        if Workspace is None:
            raise InputError("URL_POLICY link needs Vowpal Wabbit: pip install 'crawl4llm[link]'")
        self._model = Workspace(_OPTIONS)

    def predict(self, prior: float, features: Iterable[int], facts: Sequence[float]) -> float:
        """Log-odds of a document with such features and such ``facts``, which are numbers in a fixed order."""
        return float(self._model.predict(f"1 1 {prior:.6f} {_described(features, facts)}"))

    def learn(self, prior: float, features: Iterable[int], facts: Sequence[float], target: float) -> None:
        """Learn that a document's probability was ``target``: as a positive and a negative example of that weight."""
        described = _described(features, facts)
        for label, weight in ((1, target), (-1, 1 - target)):
            if weight > 0:
                self._model.learn(f"{label} {weight:.6f} {prior:.6f} {described}")

    def save(self) -> bytes:
        """The model in Vowpal Wabbit's format; equal models give equal bytes."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model")
            self._model.save(path)
            return path.read_bytes()

    def load(self, model: bytes) -> None:
        """Go on, to the last bit, from what :meth:`save` gave."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model")
            path.write_bytes(model)
            # A model knows neither its loss function nor how much it has learnt, unless it is told so.
            self._model = Workspace(f"{_LOSS} --preserve_performance_counters --initial_regressor {path}")


def _described(features: Iterable[int], facts: Sequence[float]) -> str:
    """A document in Vowpal Wabbit's text format: features with the value 1, and facts."""
    return f"|f {' '.join(map(str, features))} |d {' '.join(f'{name}:{fact:.4f}' for name, fact in enumerate(facts))}"
