"""What a policy could know that has read a quarter of a web beforehand: a bound for policies that learn as they crawl.

fastText learns from a quarter of the pages whether a page is an oracle page, by the words of its URL, by the anchors of
the links to it, and by the scores of the pages that link to it. Four such models, each of another quarter, score all
pages; a page's score is the mean of the three that have not seen it. The policy crawls by that score.
"""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from crawl4llm.base.urls import host_of
from crawl4llm.policies import BasePolicy, Candidate
from crawl4llm.scoring.rating import Rating

if TYPE_CHECKING:
    from benchmarks.policy_webs import MemoryWeb

NAME: Final = "benchmarks.link_bound.Policy"
FOLDS: Final = 4
_MOST_PARENTS: Final = 20
_STEPS: Final = 10
_GOOD: Final = "__label__good"
_TRAINED: Final = {"epoch": 25, "lr": 0.5, "dim": 32, "wordNgrams": 1, "thread": 1, "verbose": 0, "seed": 0}
_WORD: Final = re.compile(r"[A-Za-z]+|[0-9]+|[^\x00-\x7f]+")

scores: dict[tuple[str, str], Mapping[str, float]] = {}
"""Scores of the pages of a web, by its title and the digest of the scorer; set before crawls begin."""


class Policy(BasePolicy):
    """Crawls by scores that are known beforehand."""

    name = "bound"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        rater: Any = self._workers.rater
        self._known = scores[rater.corpus.title, rater.scorer.digest]

    async def score(self, candidates: Sequence[Candidate]) -> list[Rating]:
        return [Rating(self._known[candidate.key]) for candidate in candidates]


def bound_of(web: MemoryWeb, influence: Mapping[str, float], oracle: Collection[str]) -> dict[str, float]:
    """Return the score of each page, by models that have not seen it."""
    import fasttext

    keys = sorted(influence)
    random.Random(0).shuffle(keys)
    places = {key: number % FOLDS for number, key in enumerate(keys)}
    steps = _steps(influence)
    words = {key: " ".join(_words(web, key, steps)) for key in keys}
    found: dict[str, list[float]] = {key: [] for key in keys}
    with tempfile.TemporaryDirectory() as folder:
        for fold in range(FOLDS):
            path = Path(folder) / str(fold)
            lines = (
                f"{_GOOD if key in oracle else '__label__other'} {words[key]}\n" for key in keys if places[key] == fold
            )
            path.write_text("".join(lines), encoding="utf-8")
            model = fasttext.train_supervised(str(path), **_TRAINED)
            unseen = [key for key in keys if places[key] != fold]
            labels, probabilities = model.predict([words[key] for key in unseen], k=2)
            for key, named, likely in zip(unseen, labels, probabilities, strict=True):
                found[key].append(dict(zip(named, map(float, likely), strict=True)).get(_GOOD, 0.0))
    return {key: fmean(values) for key, values in found.items()}


def _steps(influence: Mapping[str, float]) -> dict[str, int]:
    """Return in which tenth of all pages a page's influence is."""
    ordered = sorted(influence, key=lambda key: (influence[key], key))
    return {key: _STEPS * place // len(ordered) for place, key in enumerate(ordered)}


def _words(web: MemoryWeb, key: str, steps: Mapping[str, int]) -> Iterator[str]:
    url = web.page(key).url
    host, path = host_of(url), urlsplit(url).path
    yield f"host:{host}"
    folders = path.split("/")[:-1]
    yield from (f"folder:{host}{'/'.join(folders[: end + 1])}" for end in range(1, len(folders)))
    yield from (f"url:{word.lower()}" for word in _WORD.findall(path))
    links = web.inlinks(key)[:_MOST_PARENTS]
    yield from {f"anchor:{word.lower()}" for link in links for word in _WORD.findall(link.anchor)}
    of_parents = [steps[str(link.key)] for link in links if link.key in steps]
    yield from (f"parent:{step}" for step in of_parents)
    if of_parents:
        yield f"parents:{round(fmean(of_parents))}"
