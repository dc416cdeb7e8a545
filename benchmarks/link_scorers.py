"""Scorers by which ``link`` is tuned, and others by which it is reported: no policy is measured by what chose it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from benchmarks.corpora import PROJECT
from benchmarks.policies import REAL_MODEL
from benchmarks.policy_webs import MemoryWeb, RememberedScores
from crawl4llm.base.urls import host_of

_LESSONS: Final = re.compile(
    r"hello-algo|gameprogramming|geocompx|blinkfox|danisancas|style\.tidyverse|libsdl|carpentr|cp-algorithms|"
    r"craftinginterpreters|diveinto|christophm|scipy-lectures"
)
"""Hosts of lessons, books and blogs."""
_FUNCTION_WORDS: Final = frozenset(
    re.findall(
        r"\w+",
        "the of and to in a is that for it as with on be this are by an or from at which you can if not we have when "
        "will but your de la que el en los se del las un por con una para es al lo como más",
    )
)
_WHOLE_WORDS, _WHOLE_BYTES = 300, 4000
"""Length from which a text is not scored lower for being short."""
_LEAST_WORDS, _LEAST_BYTES = 20, 200
_LONG_LINE: Final = 150
"""Characters a line of texts that explain, on average."""


class Rule:
    """A scorer that is a function of a text, and no model."""

    def __init__(self, rule: Callable[[str], float]) -> None:
        self._rule = rule
        self.digest = rule.__name__

    def score(self, texts: Sequence[str]) -> list[float]:
        """Return the rule's value of each text, 0 to 1."""
        return list(map(self._rule, texts))


def function_words(text: str) -> float:
    """Return the share of function words, English and Spanish; short texts score lower."""
    words = text.lower().split()
    if len(words) < _LEAST_WORDS:
        return 0.0
    return sum(word in _FUNCTION_WORDS for word in words) / len(words) * min(1.0, len(words) / _WHOLE_WORDS)


def compression(text: str) -> float:
    """Return the share to which DEFLATE brings the beginning of a text: lists repeat themselves; short ones lower."""
    data = text.encode()[: 5 * _WHOLE_BYTES]
    if len(data) < _LEAST_BYTES:
        return 0.0
    return len(zlib.compress(data)) / len(data) * min(1.0, len(data) / _WHOLE_BYTES)


def is_lesson(url: str, _text: str) -> bool:
    """Return whether a page is of a host of lessons."""
    return bool(_LESSONS.search(host_of(url)))


def is_in_paragraphs(_url: str, text: str) -> bool:
    """Return whether a text is long and its lines are."""
    return len(text) > 10 * _LONG_LINE and text.count("\n") * _LONG_LINE < len(text)


TUNING: Final = ("paragraphs", "compression")
REPORTING: Final = ("prose", "lessons", "function words")


def scorer(name: str, others: MemoryWeb, folder: Path) -> RememberedScores:
    """Return a scorer by its name; one that is trained learns from ``others``, hosts that are not crawled."""
    if name == "prose":
        return RememberedScores(REAL_MODEL)
    if name in _RULES:
        return RememberedScores(Rule(_RULES[name]))
    return RememberedScores(_trained(name, others, folder))


_RULES: Final = {"function words": function_words, "compression": compression}
_POSITIVES: Final = {"lessons": is_lesson, "paragraphs": is_in_paragraphs}


def _trained(name: str, others: MemoryWeb, folder: Path) -> Path:
    """Return the model that ``scrapy trainscorer`` makes: some pages against all."""
    out = folder / name
    pages = [(others.page(key).url, others.text(key)) for key in others.keys()]
    positive = [text for url, text in pages if text and _POSITIVES[name](url, text)]
    for kind, texts in (("positive", positive), ("negative", [text for _, text in pages if text])):
        _write(folder / f"{name}-{kind}.jsonl", texts)
    sources = [f"--{kind}={folder / f'{name}-{kind}.jsonl'}" for kind in ("positive", "negative")]
    command = [sys.executable, "-m", "scrapy", "trainscorer", *sources, "--balance", f"--out={out}"]
    subprocess.run([*command, "--buckets=200000", "--dim=32"], cwd=PROJECT, check=True, capture_output=True)
    return out / "model.bin"


def _write(path: Path, texts: Iterable[str]) -> None:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
