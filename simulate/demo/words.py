"""The words of the web: patterns of sentences by language, subjects, and words that fit any of them.

A language has a file of patterns: explaining, plain and poor sentences, titles from explaining to selling ones, and
phrases before a link. A line of ``subjects.txt`` has a subject's language, things, processes and people.

Names in braces are drawn separately at each place; ``topic`` and ``theme`` are the page's own thing and process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Final, NamedTuple


class Language(NamedTuple):
    """Patterns of sentences."""

    explaining: Sequence[str]
    plain: Sequence[str]
    poor: Sequence[str]
    titles: Sequence[str]  # from those that promise an explanation to those that sell
    read_on: Sequence[str]


class Subject(NamedTuple):
    """A field of interest of one language."""

    language: str
    words: Mapping[str, Sequence[str]]  # words by their name in patterns


def _read(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


LANGUAGES: Final = {
    code: Language(*(part.splitlines() for part in _read(f"{code}.txt").split("\n\n"))) for code in ("en", "de")
}
_ANY_SUBJECT: Final = {
    "measure": "temperature, pressure, weight, length, depth, speed, humidity, angle, thickness, cost, volume",
    "adj": "small, large, modern, traditional, simple, heavy, light, reliable, common, rare, steady, narrow, plain",
    "city": "Norwick, Easton Bay, Harrowgate, Milford, Port Allen, Kingsbridge, Stonehaven, Westmere, Brackley",
    "name": "Anna Berg, Ben Abbot, Carla Dorn, David Gale, Elena Sato, Frank Lomax, Grace Okafor, Henry Pryce",
    "month": "January, February, March, April, May, June, July, August, September, October, November, December",
    "n": ", ".join(map(str, range(2, 60))),
    "year": ", ".join(map(str, range(1900, 2022))),
}


def _subject(line: str) -> Subject:
    language, things, processes, people = (part.strip() for part in line.split("|"))
    words = {**_ANY_SUBJECT, "thing": things, "process": processes, "people": people}
    return Subject(language, {name: text.split(", ") for name, text in words.items()})


SUBJECTS: Final = tuple(map(_subject, _read("subjects.txt").splitlines()))


class Sentences(dict[str, str]):
    """Fills patterns; a name that is not given is drawn separately at each place."""

    def __init__(self, random: Random, subject: int, **given: str) -> None:
        super().__init__(given)
        self._random = random
        self._words = SUBJECTS[subject].words

    def __missing__(self, name: str) -> str:
        words = self._words[name]
        return words[int(self._random.random() * len(words))]

    def fill(self, pattern: str) -> str:
        """Return one sentence, with a capital at its start."""
        sentence = pattern.format_map(self)
        return sentence[0].upper() + sentence[1:]
