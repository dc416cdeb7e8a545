"""Trains a model: from texts of two classes to the folder of the model."""

from __future__ import annotations

import shutil
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

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
from crawl4llm.scoring import FastTextScorer, ModelRules, rules_path, score_of
from crawl4llm.tools._fit import POSITIVE, Recipe, fit
from crawl4llm.tools._text_sources import Source, Sources
from crawl4llm.tools.trainscorer.card import CARD, PLOT, Data, Trained, calibration_plot, can_plot, measure, model_card
from crawl4llm.tools.trainscorer.examples import Example, Examples, training_line

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


MODEL, QUANTISED = "model.bin", "model.ftz"
EVALUATION = "evaluation.json"
_ADVICE = "; see --buckets, --dim, --rate and --min-count"
_FEW, _UNCALIBRATED = 1000, 0.1
"""Texts of a class below which there is a warning (DCLM took 200,000), and the calibration error above which."""


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
    check_folder(wanted.out)
    bar = wants_bar(read_options(settings).progress_bar)
    sources = Sources(settings, wanted.text_field)
    classes = {
        positive: [sources.find(given) for given in (wanted.positive if positive else wanted.negative)]
        for positive in (True, False)
    }
    with writing(wanted.out, "the model"), whole_folder(wanted.out.absolute()) as folder:
        work = folder / "work"
        work.mkdir()
        with Examples(work, wanted.recipe) as examples:
            for positive, given in classes.items():
                yield from _collect(examples, sources, given, positive=positive, bar=bar)
            examples.split()
            trained_on = _write(work / "train.txt", examples.training())
            quantised = folder / QUANTISED if wanted.recipe.quantize else None
            arguments = wanted.recipe.fasttext()
            fit(work / "train.txt", folder / MODEL, arguments, quantised=quantised, progress=bar, advice=_ADVICE)
            extractor = next(
                (source.extractor for given in classes.values() for source in given if source.extractor), None
            )
            paths = [path for path in (folder / MODEL, quantised) if path is not None]
            models = [_test(path, extractor, examples.held_out(), bar=bar) for path in paths]
            data = {
                positive: Data(given, examples.counts(positive=positive), trained_on[positive])
                for positive, given in classes.items()
            }
        _describe(folder, models, data, wanted.recipe)
        shutil.rmtree(work)
        check_folder(wanted.out)
    yield Fact("models", {model.name: asdict(model.measures) for model in models}, "")
    yield from (Line(_in_short(model)) for model in models)
    yield from _warnings(models, trained_on)
    if not can_plot():
        yield f"No {PLOT} was drawn: {to_install('evaluate')}"
    yield Fact("out", wanted.out, "")
    yield f"Wrote {wanted.out}: read {wanted.out / CARD}"
    following = given_settings(settings) | {"SCORER_MODEL": wanted.out / models[-1].name}
    yield f"Next: {command('crawl', 'influence', simulation=True, **following)}"


def _collect(
    examples: Examples, sources: Sources, given: Sequence[Source], *, positive: bool, bar: bool
) -> Iterator[Part]:
    name = "positive" if positive else "negative"
    for source in given:
        for text in Progress(sources.texts(source), name, unit=" texts", bar=bar):
            examples.add(text, positive=positive)
        found = ", ".join(f"{count:,} {what}" for what, count in sorted(source.counts.items())) or "no texts"
        yield f"{name}  {source.given} ({source.kind}): {found}"
    counts = examples.counts(positive=positive)
    yield Fact(name, counts, ", ".join(f"{count:,} {what}" for what, count in counts.items()), width=len(name) + 2)


def _write(path: Path, training: Iterator[Example]) -> dict[bool, int]:
    """Write the training file; returns how many examples of each class it has."""
    counts = {True: 0, False: 0}
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


def _describe(folder: Path, models: Sequence[Trained], data: dict[bool, Data], recipe: Recipe) -> None:
    for model in models:
        write_json(rules_path(folder / model.name), model.rules.to_json())
    figures = {model.name: asdict(model.measures) for model in models}
    write_json(folder / EVALUATION, figures)
    if can_plot():
        write_text(folder / PLOT, calibration_plot(models))
    write_text(folder / CARD, model_card(models, data[True], data[False], recipe, plot=can_plot()))


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
            name = "positive" if positive else "negative"
            yield f"Warning: trained on {count:,} {name} texts only; with fewer than {_FEW:,}, expect little"
    for model in models:
        error = model.measures.expected_calibration_error
        if error > _UNCALIBRATED:
            yield (
                f"Warning: scores of {model.name} are no probabilities (calibration error {error:.3f}): their order "
                f"is usable, but a threshold such as 0.5 means little"
            )


def check_folder(to: Path) -> None:
    """Raise InputError if ``to`` is the name of a model file, or something is there but an empty folder."""
    if to.suffix in {".bin", ".ftz"}:
        raise InputError(f"--out {to}: is made as a folder, with model.bin in it; give the folder's name")
    check_free(to)
