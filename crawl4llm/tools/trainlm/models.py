"""The tokenizer of a plan, which is byte-level BPE or given as a file, and the ladder of models that it trains."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.input_files import read_input
from crawl4llm.base.installed import to_install
from crawl4llm.base.processes import interruptible
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

Tokens = NDArray[np.uint16]
NAME: Final = "tokenizer.json"
_LARGEST: Final = 1 << 26
"""Bytes of a tokenizer's file."""


class Tokenizer:
    """Turns texts into tokens. ``end``, one more than the tokens of the file, stands behind each text."""

    def __init__(self, data: bytes, named: str) -> None:
        """Read a ``tokenizer.json`` of the library tokenizers. Raises InputError."""
        try:
            self._loaded = _library().Tokenizer.from_str(data.decode())
            self._loaded.no_truncation()
            self._loaded.no_padding()
            self.end: int = self._loaded.get_vocab_size()
        except Exception as error:  # noqa: BLE001 - the library raises nothing more special
            raise InputError(f"{named} is no tokenizer.json: {' '.join(str(error).split())}") from None
        if self.end >= LARGEST_VOCABULARY:
            raise InputError(f"{named} has {self.end:,} tokens; give one of less than {LARGEST_VOCABULARY:,}")
        self.data = data
        self.digest = hashlib.sha256(data).hexdigest()

    @classmethod
    def of(cls, path: Path) -> Tokenizer:
        """Return the tokenizer in a file. Raises InputError."""
        with as_input_error(f"--tokenizer {path} cannot be read"):
            return cls(read_input(path, _LARGEST), f"--tokenizer {path}")

    @classmethod
    def trained(cls, texts: Iterable[str], vocabulary: int) -> Tokenizer:
        """Return a tokenizer that is trained on texts: the same texts in the same order give the same bytes.

        ``vocabulary`` counts the end token.
        """
        library = _library()
        made = library.Tokenizer(library.models.BPE())
        made.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = library.decoders.ByteLevel()
        alphabet = library.pre_tokenizers.ByteLevel.alphabet()
        trainer = library.trainers.BpeTrainer(
            vocab_size=vocabulary - 1, initial_alphabet=sorted(alphabet), show_progress=False
        )
        interruptible(lambda: made.train_from_iterator(map(_encodable, texts), trainer))
        return cls(made.to_str().encode(), NAME)

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        """Return the tokens of each text, the end token last."""
        encoded = self._loaded.encode_batch_fast([*map(_encodable, texts)], add_special_tokens=False)
        return [np.array([*one.ids, self.end], np.uint16) for one in encoded]


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _library() -> Any:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # threads do not survive a fork
    try:
        # an extra, which reads the variable when it is imported
        import tokenizers
    except ImportError:
        raise InputError(f"scrapy trainlm needs tokenizers; {to_install('trainlm')}") from None
    return tokenizers
