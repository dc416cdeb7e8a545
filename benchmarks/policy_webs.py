"""Corpora held in memory, for crawls of them by many policies: all pages, or those of some hosts alone."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from crawl4llm.base.errors import MissingRecord
from crawl4llm.base.pages import Corpus, Link, PageRecord
from crawl4llm.base.urls import host_of
from crawl4llm.options import Options
from crawl4llm.scoring.fasttext_scorer import FastTextScorer
from simulate.clueweb22.corpus import ClueWeb22Corpus

LABEL = "__label__hq"
ORACLE_SHARE = 10
"""The oracle set is one in so many pages, those of the highest influence."""


class MemoryWeb:
    """A corpus like any other: the pages of one, or some of them, with their text and their links to each other."""

    name = "memory"

    def __init__(self, name: str, pages: Mapping[str, PageRecord], inlinks: Mapping[str, list[Link]]) -> None:
        self.title = name
        self._pages = pages
        self._inlinks = inlinks

    @classmethod
    def read(cls, name: str, corpus: Corpus) -> MemoryWeb:
        """Everything that a corpus holds, but for links that leave it."""
        held = set(corpus.keys())
        pages, inlinks = {}, {}
        for key in sorted(held):
            page = corpus.page(key)
            pages[key] = PageRecord(key, page.url, text=corpus.text(key), outlinks=_within(held, page.outlinks or ()))
            inlinks[key] = _within(held, corpus.inlinks(key))
        return cls(name, pages, inlinks)

    def of_hosts(self, name: str, wanted: Callable[[str], bool]) -> MemoryWeb:
        """The web that some hosts are by themselves."""
        held = {key for key, page in self._pages.items() if wanted(host_of(page.url))}
        pages = {
            key: PageRecord(key, page.url, text=page.text, outlinks=_within(held, page.outlinks or ()))
            for key, page in self._pages.items()
            if key in held
        }
        return MemoryWeb(name, pages, {key: _within(held, self._inlinks[key]) for key in pages})

    def page(self, key: str) -> PageRecord:
        try:
            return self._pages[key]
        except KeyError:
            raise MissingRecord(f"{self.title} does not hold {key}") from None

    def text(self, key: str) -> str:
        return self.page(key).text or ""

    def html(self, key: str) -> bytes:
        raise MissingRecord(f"{self.title} holds no html")

    def outlinks(self, key: str) -> list[Link]:
        return self.page(key).outlinks or []

    def inlinks(self, key: str) -> list[Link]:
        return self._inlinks[key]

    def __contains__(self, key: object) -> bool:
        return key in self._pages

    def __len__(self) -> int:
        return len(self._pages)

    def is_key(self, text: str) -> bool:
        return text in self._pages

    def keys(self) -> Iterator[str]:
        return iter(self._pages)

    def check(self) -> None:
        """It is in memory, whole."""

    def sample(self, n: int, seed: int) -> list[str]:
        return random.Random(seed).sample(list(self._pages), min(n, len(self._pages)))

    def resolve(self, url: str) -> str | None:
        return None

    def require(self, *parts: str) -> None:
        """It has all that policies ask for."""

    def identity(self) -> str:
        return hashlib.sha256("\n".join(self._pages).encode()).hexdigest()

    def close(self) -> None:
        """Nothing is open."""

    def hosts(self) -> set[str]:
        """Of all its pages."""
        return {host_of(page.url) for page in self._pages.values()}

    def reachable(self, seeds: Sequence[str]) -> set[str]:
        """Documents to which links lead from the seeds, and these."""
        reached, waiting = set(seeds), list(seeds)
        while waiting:
            for link in self.outlinks(waiting.pop()):
                if link.key is not None and link.key not in reached:
                    reached.add(link.key)
                    waiting.append(link.key)
        return reached

    def oracle(self, scorer: RememberedScores) -> set[str]:
        """The tenth of the pages with the highest influence scores; ties by key."""
        scored = {key: scorer.score([self.text(key)])[0] if self.text(key).strip() else 0.0 for key in self._pages}
        return set(sorted(scored, key=lambda key: (-scored[key], key))[: len(scored) // ORACLE_SHARE])


class RememberedScores:
    """fastText's scores, each text scored once."""

    def __init__(self, model: Path) -> None:
        self._scorer = FastTextScorer(model, LABEL)
        self._scores: dict[str, float] = {}
        self.digest = self._scorer.digest

    @classmethod
    def from_options(cls, options: Options) -> RememberedScores:
        assert options.scorer_model is not None
        return cls(Path(options.scorer_model))

    def score(self, texts: Sequence[str]) -> list[float]:
        for text in texts:
            if text not in self._scores:
                self._scores[text] = self._scorer.score([text])[0]
        return [self._scores[text] for text in texts]


def half_of(host: str) -> int:
    """0: the half of the hosts on which policies are tuned; 1: the half that they are reported on."""
    return hashlib.sha256(host.encode()).digest()[-1] % 2


def open_web(name: str, path: Path) -> MemoryWeb:
    """A tree in ClueWeb22's layout, read into memory."""
    return MemoryWeb.read(name, ClueWeb22Corpus(path))


def _within(held: set[str], links: Sequence[Link]) -> list[Link]:
    return [link for link in links if link.key in held]
