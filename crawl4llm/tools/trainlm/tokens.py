"""The tokenizer of a plan: byte-level BPE, so that each byte has a token, or one that is given as a file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import read_input
from crawl4llm.base.installed import to_install
from crawl4llm.base.processes import interruptible
from crawl4llm.tools.trainlm.sizes import LARGEST_VOCABULARY

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
        try:
            return cls(read_input(path, _LARGEST), f"--tokenizer {path}")
        except OSError as error:
            raise InputError(f"--tokenizer {path} cannot be read: {error.strerror}") from None

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
