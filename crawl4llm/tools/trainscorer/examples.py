"""Training and held-out examples of the texts of two classes: each text once, in an order that the seed decides.

The result is a function of the sets of texts, the recipe and nothing else: neither the order of texts nor how they are
divided among files matters. Texts wait in files, one a line; in memory there are three numbers for each.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from crawl4llm.base.errors import InputError
from crawl4llm.scoring import one_line
from crawl4llm.tools._fit import NEGATIVE, POSITIVE, PREFIX, Recipe

_FEWEST: Final = 20
"""Distinct texts of a class: fewer can neither teach nor test anything."""
_LABEL_IN_TEXT: Final = re.compile(rf"(?<![^ \t\v\f\r\0]){PREFIX}[^ \t\v\f\r\0]*")
"""Words that fastText would learn as labels (its ``Dictionary::readWord``, ``getType``); in scoring it ignores them."""
_HALF: Final = 1 << 32


class Example(NamedTuple):
    """A text of one class."""

    positive: bool
    line: str


class _Place(NamedTuple):
    """The place of an example."""

    turn: int
    """The key of their order."""
    positive: bool
    number: int
    """Of the text in its class."""


class _Class:
    """The texts of one class, on disk."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.ids = array("Q")
        self.ends = array("Q")
        self.known: set[int] = set()
        self.counts: Counter[str] = Counter()

    def line(self, number: int) -> str:
        start = self.ends[number - 1] if number else 0
        self.file.seek(start)
        return self.file.read(self.ends[number] - start).decode()


class Examples(ExitStack):
    """Collects texts, in ``folder``, then gives them out. All positive texts must be added before negative ones."""

    def __init__(self, folder: Path, recipe: Recipe) -> None:
        super().__init__()
        self._recipe = recipe
        files = {positive: (folder / f"texts-{positive:d}").open("w+b") for positive in (True, False)}
        self._classes = {positive: _Class(self.enter_context(file)) for positive, file in files.items()}

    def add(self, text: str, *, positive: bool) -> None:
        """Add a text. Texts without words, repeated texts of a class, and negative texts that are positive too are
        counted and left out. A text that is known to be good stays good even if it is also in a sample of everything.
        """
        texts = self._classes[positive]
        line = one_line(text)
        if PREFIX in line:
            line = _LABEL_IN_TEXT.sub("", line)
        data = line.encode()
        number = _hash(data)
        if not line.strip():
            texts.counts["empty"] += 1
        elif number in texts.known:
            texts.counts["duplicate"] += 1
        elif not positive and number in self._classes[True].known:
            texts.counts["also positive"] += 1
        else:
            texts.known.add(number)
            texts.file.write(data)
            texts.ids.append(number)
            texts.ends.append((texts.ends[-1] if texts.ends else 0) + len(data))

    def counts(self, *, positive: bool) -> dict[str, int]:
        """Return how many texts of a class are ``distinct``, and how many were left out, by reason."""
        texts = self._classes[positive]
        return {"distinct": len(texts.ids), **dict(sorted(texts.counts.items()))}

    def split(self) -> None:
        """Divide the added texts into training and held-out examples. Raises InputError if there are too few."""
        self._training: list[_Place] = []
        self._held_out: list[_Place] = []
        key = self._recipe.seed.to_bytes(8, "big")
        for positive, texts in self._classes.items():
            sides = [0, 0]
            for place in self._chosen(positive):
                number = texts.ids[place]
                turn = _hash(number.to_bytes(8, "big"), key)
                side = number % _HALF < self._recipe.held_out * _HALF
                (self._held_out if side else self._training).append(_Place(turn, positive, place))
                sides[side] += 1
            _check(positive, len(texts.ids), *sides)

    def training(self) -> Iterator[Example]:
        """Yield the examples to train on, in their order."""
        return self._in_order(self._training)

    def held_out(self) -> Iterator[Example]:
        """Yield the examples to test on."""
        return self._in_order(self._held_out)

    def _chosen(self, positive: bool) -> list[int]:
        """Return the places of the texts of a class that are used."""
        ids = self._classes[positive].ids
        smaller = min(len(texts.ids) for texts in self._classes.values())
        if not self._recipe.balance or len(ids) == smaller:
            return list(range(len(ids)))
        # The lower half of the number decides which side a text is on, so it is the upper one that decides here.
        key = (self._recipe.seed + 1).to_bytes(8, "big")
        return sorted(range(len(ids)), key=lambda place: _hash((ids[place] >> 32).to_bytes(8, "big"), key))[:smaller]

    def _in_order(self, places: list[_Place]) -> Iterator[Example]:
        for place in sorted(places):
            yield Example(place.positive, self._classes[place.positive].line(place.number))


def training_line(example: Example) -> str:
    """Return an example as fastText reads it."""
    return f"{POSITIVE if example.positive else NEGATIVE} {example.line}\n"


def _hash(data: bytes, key: bytes = b"") -> int:
    return int.from_bytes(blake2b(data, digest_size=8, key=key).digest(), "big")


def _check(positive: bool, distinct: int, train: int, held_out: int) -> None:
    option = "--positive" if positive else "--negative"
    if not distinct:
        raise InputError(f"{option}: no text; both classes are needed, of at least {_FEWEST} texts each")
    if distinct < _FEWEST:
        raise InputError(f"{option}: only {distinct} distinct texts; give at least {_FEWEST}")
    if not train or not held_out:
        side = "held out" if train else "left to train on"
        raise InputError(f"{option}: none of {distinct} texts is {side}; give more texts, or another --held-out")
