"""A corpus and a scorer of somebody's own, as in a package of theirs: given by their dotted paths."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from graph_corpus import GraphCorpus

from crawl4llm.base.errors import InputError
from crawl4llm.base.pages import PageRecord
from crawl4llm.options import Options

PAGES = 30


class OwnCorpus(GraphCorpus):
    """Pages in a ring, each with links to the next three."""

    name = "own"

    @classmethod
    def from_options(cls, options: Options) -> OwnCorpus:
        keys = [f"p{number:02d}" for number in range(PAGES)]
        links = {key: [keys[(number + step) % PAGES] for step in (1, 2, 3)] for number, key in enumerate(keys)}
        return cls(links, {key: f"{number} and so on" for number, key in enumerate(keys)})

    def page(self, key: str) -> PageRecord:
        return replace(super().page(key), text=None)

    def sample(self, n: int, seed: int) -> list[str]:
        if n > len(self):
            raise InputError(f"CORPUS own: holds {len(self)} pages; {n} cannot be drawn")
        return super().sample(n, seed)

    def identity(self) -> str:
        return hashlib.sha256(repr(sorted(self.texts.items())).encode()).hexdigest()

    def check(self) -> None:
        """All of it is in memory."""


class LinksOnly:
    """No corpus: it lacks most of what one has."""

    outlinks = inlinks = None
