"""``scrapy trainscorer``: trains an influence model, a fastText classifier of good and ordinary texts.

From texts of two classes to the folder of the model, whole or not at all. DCLM's recipe, and what runs fastText, is
:mod:`crawl4llm.tools._fit`. ``card`` has the model's figures on held-out texts, the model card, and its plot.
"""

from __future__ import annotations

import re
import shutil
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

import numpy as np

from crawl4llm.base.bars import Progress
from crawl4llm.base.command_lines import command, given_settings
from crawl4llm.base.errors import InputError
from crawl4llm.base.installed import to_install
from crawl4llm.base.run_folder import write_json, write_text
from crawl4llm.base.tables import Fact, Line, Part
from crawl4llm.base.terminal import wants_bar
from crawl4llm.base.whole_files import check_free, whole_folder, writing
from crawl4llm.options import read_options
from crawl4llm.scoring import FastTextScorer, ModelRules, one_line, rules_path, score_of
from crawl4llm.tools._fit import NEGATIVE, POSITIVE, PREFIX, Recipe, fit
from crawl4llm.tools._text_sources import Source, Sources
from crawl4llm.tools.trainscorer.card import CARD, PLOT, Data, Trained, calibration_plot, can_plot, measure, model_card

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


MODEL, QUANTISED = "model.bin", "model.ftz"
EVALUATION = "evaluation.json"
_CLASSES: Final = {True: "positive", False: "negative"}
_ADVICE = "; see --buckets, --dim, --rate and --min-count"
_FEWEST: Final = 20
"""Distinct texts of a class: fewer can neither teach nor test anything."""
_FEW, _UNCALIBRATED = 1000, 0.1
"""Texts of a class below which there is a warning (DCLM took 200,000), and the calibration error above which."""
_LABEL_IN_TEXT: Final = re.compile(rf"(?<![^ \t\v\f\r\0]){PREFIX}[^ \t\v\f\r\0]*")
"""Words that fastText would learn as labels (its ``Dictionary::readWord``, ``getType``); in scoring it ignores them."""
_HALF: Final = 1 << 32


@dataclass(frozen=True)
class Wanted:
    """Arguments of a training."""

    positive: Sequence[str]
    negative: Sequence[str]
    out: Path
    text_field: str
    recipe: Recipe


def train(settings: BaseSettings, wanted: Wanted) -> Iterator[Part]:
    """Train a model into the folder ``wanted.out``, and yield lines about it. Raises InputError.

    Files: the model and, beside it, its rules; the same of the quantised one; the model card, its plot, and its figures
    as JSON. The same texts and recipe give the same bytes.
    """
    _check_folder(wanted.out)
    bar = wants_bar(read_options(settings).progress_bar)
    sources = Sources(settings, wanted.text_field)
    classes = {
        positive: [sources.find(given) for given in (wanted.positive if positive else wanted.negative)]
        for positive in _CLASSES
    }
    with writing(wanted.out, "the model"), whole_folder(wanted.out.absolute()) as folder:
        work = folder / "work"
        work.mkdir()
        with (work / "texts").open("w+b") as file:
            examples = Examples(file, wanted.recipe)
            for positive, given in classes.items():
                yield from _collect(examples, sources, given, positive=positive, bar=bar)
            training, held_out = examples.split()
            trained_on = _write(work / "train.txt", examples.in_order(training))
            quantised = folder / QUANTISED if wanted.recipe.quantize else None
            arguments = wanted.recipe.fasttext()
            fit(work / "train.txt", folder / MODEL, arguments, quantised=quantised, progress=bar, advice=_ADVICE)
            extractor = next(
                (source.extractor for given in classes.values() for source in given if source.extractor), None
            )
            paths = [path for path in (folder / MODEL, quantised) if path is not None]
            models = [_test(path, extractor, examples.in_order(held_out), bar=bar) for path in paths]
        data = [Data(given, examples.counts(positive), trained_on[positive]) for positive, given in classes.items()]
        _describe(folder, models, data, wanted.recipe)
        shutil.rmtree(work)
        _check_folder(wanted.out)
    yield Fact("models", {model.name: asdict(model.measures) for model in models}, "")
    yield from (Line(_in_short(model)) for model in models)
    yield from _warnings(models, trained_on)
    if not can_plot():
        yield f"No {PLOT} was drawn: {to_install('evaluate')}"
    yield Fact("out", wanted.out, "")
    yield f"Wrote {wanted.out}: read {wanted.out / CARD}"
    following = given_settings(settings) | {"SCORER_MODEL": wanted.out / models[-1].name}
    yield f"Next: {command('crawl', 'influence', simulation=True, **following)}"


def _check_folder(to: Path) -> None:
    """Raise InputError if ``to`` is the name of a model file, or something is there but an empty folder."""
    if to.suffix in {".bin", ".ftz"}:
        raise InputError(f"--out {to}: is made as a folder, with model.bin in it; give the folder's name")
    check_free(to)


def _collect(
    examples: Examples, sources: Sources, given: Sequence[Source], *, positive: bool, bar: bool
) -> Iterator[Part]:
    name = _CLASSES[positive]
    for source in given:
        for text in Progress(sources.texts(source), name, unit=" texts", bar=bar):
            examples.add(text, positive=positive)
        found = ", ".join(f"{count:,} {what}" for what, count in sorted(source.counts.items())) or "no texts"
        yield f"{name}  {source.given} ({source.kind}): {found}"
    counts = examples.counts(positive)
    yield Fact(name, counts, ", ".join(f"{count:,} {what}" for what, count in counts.items()), width=len(name) + 2)


def _write(path: Path, training: Iterator[Example]) -> dict[bool, int]:
    """Write the training file; returns how many examples of each class it has."""
    counts = dict.fromkeys(_CLASSES, 0)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for example in training:
            file.write(training_line(example))
            counts[example.positive] += 1
    return counts


def _test(path: Path, extractor: str | None, held_out: Iterator[Example], *, bar: bool) -> Trained:
    """Score the held-out texts as a crawl would."""
    scorer = FastTextScorer(path, POSITIVE)
    scores, truth = array("d"), array("b")
    for example in Progress(held_out, "testing", unit=" texts", bar=bar):
        scores.append(score_of(scorer, example.line, "held out"))
        truth.append(example.positive)
    measures = measure(np.array(scores), np.array(truth, dtype=np.bool_))
    return Trained(path.name, path.stat().st_size, ModelRules(POSITIVE, extractor, scorer.digest), measures)


def _describe(folder: Path, models: Sequence[Trained], data: Sequence[Data], recipe: Recipe) -> None:
    for model in models:
        write_json(rules_path(folder / model.name), model.rules.to_json())
    write_json(folder / EVALUATION, {model.name: asdict(model.measures) for model in models})
    if can_plot():
        write_text(folder / PLOT, calibration_plot(models))
    positive, negative = data
    write_text(folder / CARD, model_card(models, positive, negative, recipe, plot=can_plot()))


def _in_short(model: Trained) -> str:
    found = model.measures
    half = next(at for at in found.thresholds if at.threshold == 0.5)
    precision = "-" if half.precision is None else f"{half.precision:.3f}"
    return (
        f"{model.name}  precision {precision}, recall {half.recall:.3f}, F1 {half.f1:.3f} at 0.5; average precision "
        f"{found.average_precision:.3f}; calibration error {found.expected_calibration_error:.3f}"
    )


def _warnings(models: Sequence[Trained], trained_on: dict[bool, int]) -> Iterator[str]:
    for positive, count in trained_on.items():
        if count < _FEW:
            yield (
                f"Warning: trained on {count:,} {_CLASSES[positive]} texts only; with fewer than {_FEW:,}, expect "
                "little"
            )
    for model in models:
        error = model.measures.expected_calibration_error
        if error > _UNCALIBRATED:
            yield (
                f"Warning: scores of {model.name} are no probabilities (calibration error {error:.3f}): their order "
                f"is usable, but a threshold such as 0.5 means little"
            )


# -- examples ----------------------------------------------------------------------------------------------------------


class Example(NamedTuple):
    """A text of one class."""

    positive: bool
    line: str


class Examples:
    """The texts of two classes, each once, in an order that the seed decides; training and held-out examples of them.

    The result is a function of the sets of texts, the recipe and nothing else: neither the order of texts nor how they
    are divided among files matters. Texts wait in a file; in memory there are three numbers for each.
    """

    def __init__(self, file: BinaryIO, recipe: Recipe) -> None:
        """Begin with an empty file. All positive texts must be added before negative ones."""
        self._file, self._recipe = file, recipe
        self._places: dict[int, int] = {}
        """By the hash of a text its place among all."""
        self._ends = array("Q", [0])
        self._distinct = dict.fromkeys(_CLASSES, 0)
        self._left_out = {positive: Counter[str]() for positive in _CLASSES}

    def add(self, text: str, *, positive: bool) -> None:
        """Add a text. Texts without words, repeated texts of a class, and negative texts that are positive too are
        counted and left out. A text that is known to be good stays good even if it is also in a sample of everything.
        """
        line = one_line(text)
        if PREFIX in line:
            line = _LABEL_IN_TEXT.sub("", line)
        data = line.encode()
        number = _hash(data)
        place = self._places.get(number)
        if not line.strip():
            self._left_out[positive]["empty"] += 1
        elif place is not None:
            self._left_out[positive]["duplicate" if self._is_positive(place) == positive else "also positive"] += 1
        else:
            self._places[number] = len(self._places)
            self._distinct[positive] += 1
            self._file.write(data)
            self._ends.append(self._ends[-1] + len(data))

    def counts(self, positive: bool) -> dict[str, int]:
        """Return how many texts of a class are ``distinct``, and how many were left out, by reason."""
        return {"distinct": self._distinct[positive], **dict(sorted(self._left_out[positive].items()))}

    def split(self) -> tuple[list[int], list[int]]:
        """Return the hashes of texts to train on, and of those to test on. Raises InputError if there are too few."""
        training: list[int] = []
        held_out: list[int] = []
        for positive, distinct in self._distinct.items():
            numbers = self._chosen(positive)
            apart = [number for number in numbers if number % _HALF < self._recipe.held_out * _HALF]
            _check(positive, distinct, len(numbers) - len(apart), len(apart))
            training += set(numbers).difference(apart)
            held_out += apart
        return training, held_out

    def in_order(self, numbers: list[int]) -> Iterator[Example]:
        """Yield the examples of some texts in their order."""
        for number in sorted(numbers, key=lambda number: _keyed(number, self._recipe.seed)):
            place = self._places[number]
            start, end = self._ends[place], self._ends[place + 1]
            self._file.seek(start)
            yield Example(self._is_positive(place), self._file.read(end - start).decode())

    def _is_positive(self, place: int) -> bool:
        return place < self._distinct[True]

    def _chosen(self, positive: bool) -> list[int]:
        """Return the hashes of the texts of a class that are used."""
        numbers = [number for number, place in self._places.items() if self._is_positive(place) == positive]
        if not self._recipe.balance:
            return numbers
        # The lower half of the number decides which side a text is on, so it is the upper one that decides here.
        numbers.sort(key=lambda number: _keyed(number >> 32, self._recipe.seed + 1))
        return numbers[: min(self._distinct.values())]


def training_line(example: Example) -> str:
    """Return an example as fastText reads it."""
    return f"{POSITIVE if example.positive else NEGATIVE} {example.line}\n"


def _hash(data: bytes, key: bytes = b"") -> int:
    return int.from_bytes(blake2b(data, digest_size=8, key=key).digest(), "big")


def _keyed(number: int, seed: int) -> int:
    return _hash(number.to_bytes(8, "big"), seed.to_bytes(8, "big"))


def _check(positive: bool, distinct: int, train: int, held_out: int) -> None:
    option = f"--{_CLASSES[positive]}"
    if not distinct:
        raise InputError(f"{option}: no text; both classes are needed, of at least {_FEWEST} texts each")
    if distinct < _FEWEST:
        raise InputError(f"{option}: only {distinct} distinct texts; give at least {_FEWEST}")
    if not train or not held_out:
        side = "held out" if train else "left to train on"
        raise InputError(f"{option}: none of {distinct} texts is {side}; give more texts, or another --held-out")
