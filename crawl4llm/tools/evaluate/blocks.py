"""Numbers of many pages on disk, block by block: what a killed evaluation has done need not be done again."""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crawl4llm.base.errors import InputError

logger = logging.getLogger(__name__)

Arrays = Mapping[str, NDArray[Any]]
"""The numbers of a block's pages, by what they say."""

_FORMAT = 1
"""To be raised when what the blocks hold changes."""
_DIGEST_BYTES = 32


class BlockStore:
    """A folder of blocks that depend on the same things, such as corpus and model; ``depends_on`` says on which.

    Each file holds a digest of its content and of ``depends_on``. One that does not fit, because it is damaged or was
    copied from elsewhere, is named in the log and counts as absent.
    """

    def __init__(self, parent: Path, depends_on: Mapping[str, Any]) -> None:
        about = {"format": _FORMAT, **depends_on}
        self._identity = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).digest()
        self._about = about
        self.folder = parent / self._identity.hex()[:24]

    def load(self, number: int) -> Arrays | None:
        """A block; None where it is not there or cannot be used."""
        path = self._path(number)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}") from None
        digest, content = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
        if digest != self._digest(content):
            logger.warning("%s is damaged, or of another corpus or model; its pages are computed again", path)
            return None
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}

    def save(self, number: int, arrays: Arrays) -> None:
        """Write a block, whole or not at all. Raises InputError where that cannot be."""
        content, contents = io.BytesIO(), dict[str, Any](arrays)
        np.savez(content, **contents)
        data = content.getvalue()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if number == 0:
                _write_whole(self.folder / "about.json", json.dumps(self._about, indent=2).encode())
            _write_whole(self._path(number), self._digest(data) + data)
        except OSError as error:
            raise InputError(f"{self._path(number)} cannot be written: {error.strerror}") from None

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06d}.block"

    def _digest(self, content: bytes) -> bytes:
        return hashlib.sha256(self._identity + content).digest()


def _write_whole(path: Path, data: bytes) -> None:
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        with suppress(OSError):
            temporary.unlink()
