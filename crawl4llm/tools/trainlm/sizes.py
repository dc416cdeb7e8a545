"""The ladder of models: their shapes and how they are trained."""

from __future__ import annotations

from typing import Final, NamedTuple

from crawl4llm.tools.trainlm.trainer.files import Shape

LARGEST_VOCABULARY: Final = 1 << 16
"""Tokens are stored as 16-bit numbers."""
_ROUNDED: Final = 64
"""Vocabularies are multiples of this, as matrix units like them."""


class Size(NamedTuple):
    """A model with the way in which it is trained."""

    shape: Shape
    batch: int
    """Sequences a step."""
    rate: float
    """The highest learning rate."""

    def with_vocabulary(self, tokens: int) -> Size:
        """Return the model for a tokenizer with this many tokens, the end token included."""
        rounded = -(-tokens // _ROUNDED) * _ROUNDED
        return self._replace(shape=self.shape._replace(vocabulary=rounded))

    def training(self) -> dict[str, float]:
        """Return the trainer's parameters."""
        return {"batch": self.batch, "rate": self.rate, "weight_decay": 0.1, "checkpoint_seconds": 20.0}


SIZES: Final = {
    "50k": Size(Shape(vocabulary=512, width=32, layers=2, heads=2, hidden=128, context=64), batch=16, rate=1e-2),
    "1m": Size(Shape(vocabulary=2048, width=160, layers=2, heads=5, hidden=480, context=256), batch=16, rate=3e-3),
    "5m": Size(Shape(vocabulary=4096, width=384, layers=2, heads=6, hidden=1024, context=256), batch=32, rate=3e-3),
    "25m": Size(Shape(vocabulary=4096, width=768, layers=3, heads=6, hidden=2048, context=512), batch=128, rate=2e-3),
    "120m": Size(Shape(vocabulary=4096, width=1536, layers=4, heads=12, hidden=4096, context=512), 128, rate=1e-3),
}
"""By name. They are wide and shallow, so that few large matrix products do the work; ``50k`` is for tests."""
