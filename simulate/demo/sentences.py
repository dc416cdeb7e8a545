"""Fills sentence patterns with words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from random import Random
from typing import Final

from simulate.demo.foreign import LANGUAGES
from simulate.demo.words import (
    ADJECTIVES,
    CITIES,
    FIRST_NAMES,
    MEASURES,
    MONTHS,
    SUBJECTS,
    SURNAMES,
    plural,
    with_article,
)

_NUMBERS: Final = tuple(str(n) for n in (*range(2, 31), 35, 40, 45, 48, 50, 60, 75, 80, 90, 99))
_YEARS: Final = tuple(str(year) for year in (*range(1870, 1990, 4), *range(1990, 2022)))
_RECENT_YEARS: Final = tuple(str(year) for year in range(2005, 2022))
_CODES: Final = tuple(
    f"{letter}{number}" for letter in ("A", "BX", "K", "PRO", "S", "ZT") for number in range(10, 990, 35)
)
_NAMES: Final = tuple(
    f"{first} {last}" for first, last in zip(FIRST_NAMES * 3, SURNAMES[7:] + SURNAMES * 3, strict=False)
)
_ANY_SUBJECT: Final = {
    "measure": MEASURES,
    "adj": ADJECTIVES,
    "a_adj": tuple(with_article(word) for word in ADJECTIVES),
    "city": CITIES,
    "name": _NAMES,
    "month": MONTHS,
    "n": _NUMBERS,
    "year": _YEARS,
    "recent": _RECENT_YEARS,
    "code": _CODES,
}


@cache
def vocabulary(subject: int, language: str) -> Mapping[str, Sequence[str]]:
    """The words that may stand for each name in a pattern."""
    if language != "en":
        foreign = LANGUAGES[language]
        return _ANY_SUBJECT | {"thing": foreign.things, "process": foreign.processes}
    words = SUBJECTS[subject]
    return _ANY_SUBJECT | {
        "thing": words.things,
        "a_thing": tuple(with_article(noun) for noun in words.things),
        "things": tuple(plural(noun) for noun in words.things),
        "process": words.processes,
        "people": words.people,
    }


class Sentences(dict[str, str]):
    """Writes sentences about one topic; each name not fixed by the topic is drawn anew wherever it occurs."""

    def __init__(self, random: Random, subject: int, language: str, topic: str, theme: str, site: str) -> None:
        super().__init__(topic=topic, theme=theme, site=site)
        if language == "en":
            self.update(a_topic=with_article(topic), topics=plural(topic))
        self._random = random.random
        self._sample = random.sample
        self._vocabulary = vocabulary(subject, language)

    def __missing__(self, name: str) -> str:
        words = self._vocabulary[name]
        return words[int(self._random() * len(words))]

    def fill(self, pattern: str) -> str:
        """One sentence, with a capital at its start."""
        sentence = pattern.format_map(self)
        return sentence[0].upper() + sentence[1:]

    def one_of(self, patterns: Sequence[str]) -> str:
        """A sentence by any of the patterns."""
        return self.fill(patterns[int(self._random() * len(patterns))])

    def some_of(self, patterns: Sequence[str], count: int) -> str:
        """A paragraph of up to ``count`` sentences, each by another pattern."""
        return " ".join([self.fill(pattern) for pattern in self._sample(patterns, min(count, len(patterns)))])
