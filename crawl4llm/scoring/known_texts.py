"""Texts that somebody has already: a file of their digests and signatures, looked up without reading it whole."""

from __future__ import annotations

from pathlib import Path

from crawl4llm.base.errors import InputError


class KnownTexts:
    """A file of known texts that ``scrapy corpus known`` has written. Processes may share it: pickled, it is its path,
    and is opened again."""

    identity: str
    """Digest of the file, in hexadecimal: files of the same texts have the same."""

    @classmethod
    def open(cls, path: Path) -> KnownTexts:
        """Open a file. Raises InputError where it is none, of another format or version, cut short or damaged."""
        raise InputError(f"KNOWN_TEXTS {path} cannot be read: not yet")

    def __len__(self) -> int:
        """Return the number of texts."""
        raise NotImplementedError

    def knows(self, text: str, signature: bytes) -> bool:
        """Return whether a text is among them: word for word, or nearly, by its signature (``signature_of``); with an
        empty signature word for word only. A blank text is not."""
        raise NotImplementedError
