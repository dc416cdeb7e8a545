"""A corpus in memory, given as a link graph, that counts how often it is asked for what; and a scorer for it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from crawl4llm.base.errors import CorruptRecord, InputError, MissingRecord
from crawl4llm.base.pages import Link, PageRecord
from crawl4llm.scoring import ScoringOptions

URL = "http://graph.example/"
"""A document's URL is this and its key."""


class GraphCorpus:
    """Documents by key, each with the keys that it links to, in page order.

    A target that is no document is missing from the corpus; a target ``None`` is a link without a key. ``texts`` gives
    the text of those documents whose text is not their key; ``corrupt`` are damaged: their content cannot be read.
    ``holds`` are the parts of the corpus; ``size`` pads each page's html with bytes that hardly compress.
    """

    name = "graph"

    def __init__(
        self,
        links: Mapping[str, Sequence[str | None]],
        texts: Mapping[str, str] | None = None,
        *,
        corrupt: Sequence[str] = (),
        size: int = 0,
        holds: Sequence[str] = ("text", "html", "outlinks", "inlinks"),
    ) -> None:
        self._links = {key: list(targets) for key, targets in links.items()}
        self.texts = dict(texts or {})
        self.corrupt = frozenset(corrupt)
        self._size = size
        self._holds = tuple(holds)
        self.lookups: Counter[tuple[str, str]] = Counter()
        """Look-ups by part and key, in this process."""

    def targets(self, key: str) -> list[str | None]:
        """The graph itself: keys that a document links to."""
        return self._links[key]

    def page(self, key: str) -> PageRecord:
        self._look_up("page", key)
        return PageRecord(
            key, f"{URL}{key}", html=self._html(key), text=self._text(key), language="en", outlinks=self._outlinks(key)
        )

    def text(self, key: str) -> str:
        self._look_up("text", key)
        return self._text(key)

    def html(self, key: str) -> bytes:
        self._look_up("html", key)
        return self._html(key)

    def outlinks(self, key: str) -> list[Link]:
        self._look_up("outlinks", key)
        return self._outlinks(key)

    def inlinks(self, key: str) -> list[Link]:
        self._look_up("inlinks", key)
        return [
            Link(f"{URL}{source}", source, f"to {key}", False)
            for source, targets in self._links.items()
            for target in targets
            if target == key
        ]

    def __contains__(self, key: object) -> bool:
        return key in self._links

    def __len__(self) -> int:
        return len(self._links)

    def is_key(self, text: str) -> bool:
        return text.isalnum()

    def keys(self) -> Iterator[str]:
        return iter(sorted(self._links))

    def sample(self, n: int, seed: int) -> list[str]:
        return random.Random(seed).sample(sorted(self._links), n)

    def resolve(self, url: str) -> str | None:
        key = url.partition("#")[0].removeprefix(URL)
        return key if key in self._links else None

    def require(self, *parts: str) -> None:
        for part in parts:
            if part not in self._holds:
                raise InputError(f"CORPUS graph: holds no {part}")

    def identity(self) -> str:
        return f"{len(self._links):x}"

    def close(self) -> None:
        """Nothing is open."""

    def _look_up(self, part: str, key: str) -> None:
        self.lookups[part, key] += 1
        if key not in self._links:
            raise MissingRecord(f"CORPUS graph: does not hold {key}")
        if key in self.corrupt and part != "inlinks":
            raise CorruptRecord(f"CORPUS graph: record {key} is damaged")

    def _text(self, key: str) -> str:
        return self.texts.get(key, key)

    def _html(self, key: str) -> bytes:
        padding = random.Random(key).randbytes(self._size) if self._size else b""
        return f"<p>{self._text(key)}</p>".encode() + padding

    def _outlinks(self, key: str) -> list[Link]:
        return [
            Link(f"{URL}{target}", target, f"link {number} of {key}", False)
            for number, target in enumerate(self._links[key])
        ]


class NumberScorer:
    """The number that a text begins with."""

    digest = "0" * 64

    @classmethod
    def from_options(cls, options: ScoringOptions) -> NumberScorer:
        return cls()

    def score(self, texts: Sequence[str]) -> list[float]:
        return [float(text.split()[0]) for text in texts]
