"""Token counts by a tokenizer that the user gives as a file."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from typing import Any, NamedTuple

from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import given_path, open_input
from crawl4llm.tools.export.formats import require_package

_LARGEST = 1 << 28
"""Bytes of a tokenizer's file."""


class Tokenizer(NamedTuple):
    """A ``tokenizer.json`` of the library tokenizers. Nothing is downloaded. Each process loads it once."""

    path: str
    digest: str
    """SHA-256 of the file, in hex."""

    @classmethod
    def of(cls, given: str) -> Tokenizer:
        """Return the tokenizer in a file. Raises InputError if it has none, or if the library is missing."""
        require_package("tokenizers", "--tokenizer")
        path = given_path(given)
        try:
            with open_input(path) as file:
                data = file.read(_LARGEST + 1)
        except OSError as error:
            raise InputError(f"--tokenizer {given} cannot be read: {error.strerror}") from None
        if len(data) > _LARGEST:
            raise InputError(f"--tokenizer {given} has more than {_LARGEST:,} bytes; give a tokenizer.json")
        tokenizer = cls(str(path), hashlib.sha256(data).hexdigest())
        try:
            tokenizer.count("text")
        except Exception as error:  # noqa: BLE001 - the library raises nothing more special
            raise InputError(f"--tokenizer {given} is no tokenizer.json: {error}") from None
        return tokenizer

    def count(self, text: str) -> int:
        """Return the tokens of a text, without those that mark its ends."""
        return len(_load(self).encode(text, add_special_tokens=False).ids)


@cache
def _load(tokenizer: Tokenizer) -> Any:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # threads do not survive a fork
    # an extra, which reads the variable when it is imported
    from tokenizers import Tokenizer as Library

    loaded = Library.from_file(tokenizer.path)
    loaded.no_truncation()
    loaded.no_padding()
    return loaded
