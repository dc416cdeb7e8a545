"""Which partition a document belongs to: a pure function of its key, the same for all workers."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from hashlib import blake2b
from typing import Final

from crawl4llm.base.domains import owner_of
from crawl4llm.base.errors import InputError, PageError
from crawl4llm.base.pages import Corpus

_PLACES: Final = 1 << 20
"""For keys whose partition is remembered, by their hashes, which nobody can choose; 12 MB."""
_UNKNOWN: Final = -1


class Partitions:
    """Divides documents by the owner of their URL: of the key if that is one, else of the one that the corpus has for
    it. Documents without an owner, or whose page the corpus cannot give, are divided by their keys."""

    def __init__(self, count: int, corpus: Corpus) -> None:
        """Raise InputError if there are several partitions and the corpus does not know URLs."""
        self.count = count
        self._hashes = array("q", bytes(8 * _PLACES))
        self._numbers = array("i", [_UNKNOWN]) * _PLACES
        self._url: Callable[[str], str] | None = getattr(corpus, "site", None) or getattr(corpus, "url", None)
        example = next(iter(corpus.keys()), "")
        if count > 1 and self._url is None and "://" not in example:
            raise InputError(
                f"CRAWL_PARTITIONS = {count} needs a corpus that knows the URL of a key ({corpus.name} does not, and "
                f"its keys are like {example}); set CRAWL_PARTITIONS=1"
            )

    def of(self, key: str) -> int:
        """Return the partition of a document."""
        if self.count == 1:
            return 0
        hashed = hash(key)
        place = hashed % _PLACES
        if self._hashes[place] == hashed and (number := self._numbers[place]) != _UNKNOWN:
            return number
        name = owner_of(self._url_of(key)) or key
        digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        number = int.from_bytes(digest, "big") % self.count
        self._hashes[place], self._numbers[place] = hashed, number
        return number

    def _url_of(self, key: str) -> str:
        if "://" in key or self._url is None:
            return key
        try:
            return self._url(key)
        except PageError:
            return ""
