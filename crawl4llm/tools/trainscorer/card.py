"""The model card: data, recipe, figures, use and limits of a model, with its calibration plot.

The figures, on held-out texts, say how well scores separate positive from negative texts, and whether they are
probabilities.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

import numpy as np

from crawl4llm.base.terminal import cell
from crawl4llm.base.version import __version__
from crawl4llm.scoring import ModelRules
from crawl4llm.tools._fit import NEGATIVE, POSITIVE, Recipe
from crawl4llm.tools._text_sources import Source
from crawl4llm.tools.evaluate.documents import Flags, Floats
from crawl4llm.tools.evaluate.figures import Figure, Series

CARD, PLOT = "MODEL_CARD.md", "calibration.svg"
THRESHOLDS: Final = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_BINS: Final = 10


@dataclass(frozen=True)
class AtThreshold:
    """Figures for taking every text of at least this score."""

    threshold: float
    share: float
    """The share of texts that are taken."""
    precision: float | None
    """The share of positive texts among those taken; None if none is taken."""
    recall: float
    """The share of the positive texts that is taken."""
    f1: float


@dataclass(frozen=True)
class Bin:
    """The texts with scores in one tenth of the range."""

    low: float
    texts: int
    mean_score: float
    positive_share: float


@dataclass(frozen=True)
class Measures:
    """Figures of a model on held-out texts."""

    positive: int
    negative: int
    average_precision: float
    """Mean of the precision at each positive text, by descending score."""
    expected_calibration_error: float
    """Mean distance of mean score and share of positive texts in ten bins of equal width, by texts (Guo et al. 2017,
    On Calibration of Modern Neural Networks, section 3)."""
    thresholds: list[AtThreshold]
    bins: list[Bin]
    """Those that have texts."""


def measure(scores: Floats, positive: Flags) -> Measures:
    """Compare scores, from 0 to 1, with the truth; both classes must occur."""
    bins = _bins(scores, positive)
    distance = sum(found.texts * abs(found.mean_score - found.positive_share) for found in bins)
    return Measures(
        positive=int(positive.sum()),
        negative=int((~positive).sum()),
        average_precision=_average_precision(scores, positive),
        expected_calibration_error=distance / len(scores),
        thresholds=[_at(threshold, scores, positive) for threshold in THRESHOLDS],
        bins=bins,
    )


def _at(threshold: float, scores: Floats, positive: Flags) -> AtThreshold:
    taken = scores >= threshold
    hits = int((taken & positive).sum())
    count, wanted = int(taken.sum()), int(positive.sum())
    precision = hits / count if count else None
    return AtThreshold(threshold, count / len(scores), precision, recall=hits / wanted, f1=2 * hits / (count + wanted))


def _average_precision(scores: Floats, positive: Flags) -> float:
    """Texts of equal score are taken together, so that their order does not matter."""
    order = np.argsort(-scores, kind="stable")
    last_of_equals = np.append(np.diff(scores[order]) != 0, True)
    hits = np.cumsum(positive[order])[last_of_equals]
    taken = np.arange(1, len(scores) + 1)[last_of_equals]
    return float((np.diff(hits, prepend=0) * hits / taken).sum() / hits[-1])


def _bins(scores: Floats, positive: Flags) -> list[Bin]:
    numbers = np.minimum((scores * _BINS).astype(np.int64), _BINS - 1)
    members = {number: numbers == number for number in np.unique(numbers).tolist()}
    return [
        Bin(number / _BINS, int(inside.sum()), float(scores[inside].mean()), float(positive[inside].mean()))
        for number, inside in members.items()
    ]


# -- the card ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trained:
    """A model file with its measures."""

    name: str
    size: int
    rules: ModelRules
    measures: Measures


@dataclass(frozen=True)
class Data:
    """The data of one class."""

    sources: Sequence[Source]
    counts: dict[str, int]
    """``distinct`` texts, and others by the reason why they were left out."""
    trained_on: int


def model_card(models: Sequence[Trained], positive: Data, negative: Data, recipe: Recipe, *, plot: bool) -> str:
    """Return the card as Markdown; ``models`` is not empty, and their rules differ in the digest only."""
    rules = models[0].rules
    lines = [
        f"# {models[0].name}",
        "",
        f"An influence model, made by `scrapy trainscorer` of crawl4llm {__version__}: a fastText classifier.",
        "It gives a page's main text the probability that it is one of the positive texts.",
        "",
        *_use(models, rules),
        "## Data",
        "",
        *_data("Positive", POSITIVE, positive),
        *_data("Negative", NEGATIVE, negative),
        "Each text counts once; a negative text that is positive too counts as positive.",
        "A hash of the text decides whether it is held out, so no text is on both sides.",
        "",
        *_recipe(recipe),
        "## On held-out texts",
        "",
    ]
    for model in models:
        lines += _figures(model)
    if plot:
        lines += [f"![Calibration]({PLOT})", ""]
    return "\n".join([*lines, *_limits(recipe)])


def _use(models: Sequence[Trained], rules: ModelRules) -> Iterator[str]:
    yield from ("## Use", "", "```sh")
    yield from (f"scrapy crawl influence -s SCORER_MODEL={model.name}" for model in models)
    yield from ("```", "")
    extractor = f"extractor of the texts (`{rules.extractor}`)" if rules.extractor else "rule for texts"
    yield (
        f"Keep the `.json` file beside the model: it gives the crawler the label (`{rules.label}`) and the {extractor}"
        ". With other programs: strip the text, join its lines with one space, ask fastText for the probability of the "
        "label."
    )
    if rules.extractor is None:
        yield "No text was taken from HTML here: set `TEXT_EXTRACTOR` to their extractor, if you know it."
    files = ((f"`{model.name}`", f"{model.size:,}", f"`{model.rules.digest}`") for model in models)
    yield from _table(("file", "bytes", "SHA-256"), files)


def _data(name: str, label: str, data: Data) -> Iterator[str]:
    left_out = [f"{count:,} {reason}" for reason, count in data.counts.items() if reason != "distinct"]
    yield f"{name} (`{label}`): {data.counts['distinct']:,} texts, {data.trained_on:,} of them trained on" + (
        f"; left out: {', '.join(left_out)}." if left_out else "."
    )
    columns = ("source", "kind", "extracted by", "texts", "not usable", "SHA-256")
    yield from _table(columns, map(_source, data.sources))


def _source(source: Source) -> Sequence[str]:
    unusable = ", ".join(f"{count} {why}" for why, count in sorted(source.counts.items()) if why != "texts")
    digests = ", ".join(f"{what} `{digest}`" for what, digest in source.digests.items())
    texts = f"{source.counts['texts']:,}"
    return cell(source.given), source.kind, source.extractor or "-", texts, unusable or "-", digests


def _recipe(recipe: Recipe) -> Iterator[str]:
    yield from ("## Recipe", "")
    yield (
        "Supervised fastText as DCLM trains it (Li et al. 2024, DataComp-LM, section 4.4): text stripped, its lines "
        "joined with one space."
    )
    balanced = "yes" if recipe.balance else "no"
    rows = {**recipe.fasttext(), "classes balanced": balanced, "held out": f"{recipe.held_out:g}"}
    yield from ("", "| | |", "|-|-|", *(f"| {name} | {value} |" for name, value in rows.items()), "")


def _figures(model: Trained) -> Iterator[str]:
    found = model.measures
    yield (
        f"`{model.name}`, on {found.positive:,} positive and {found.negative:,} negative texts: average precision "
        f"{found.average_precision:.4f}, expected calibration error {found.expected_calibration_error:.4f}."
    )
    yield from _table(("score from", "texts taken", "precision", "recall", "F1"), map(_at_threshold, found.thresholds))


def _at_threshold(at: AtThreshold) -> Sequence[str]:
    precision = "-" if at.precision is None else f"{at.precision:.4f}"
    return f"{at.threshold:g}", f"{at.share:.1%}", precision, f"{at.recall:.4f}", f"{at.f1:.4f}"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    lines = (f"| {' | '.join(row)} |" for row in (columns, *rows))
    yield from ("", next(lines), f"|{'-|' * len(columns)}", *lines, "")


def _limits(recipe: Recipe) -> Iterator[str]:
    yield from ("## Limits", "")
    share = (
        "as many positive as negative texts" if recipe.balance else "the shares of positive and negative texts above"
    )
    yield (
        f"- Scores are calibrated for {share}. If good pages are rarer, as in most crawls, fewer texts above a score "
        f"are good than the table says; the order stays."
    )
    yield (
        "- It learns any difference between the two classes, which may be one of their sources rather than their "
        "quality: language, length, boilerplate, the extractor. Take both from the same kind of pages, with the same "
        "extractor."
    )
    yield "- Held-out texts come from the same sources as the others. Near duplicates may be on both sides."
    yield "- Words of languages in neither class have no effect."
    yield ""


def can_plot() -> bool:
    """Return whether Matplotlib is installed (the extra ``evaluate``)."""
    return find_spec("matplotlib") is not None


def calibration_plot(models: Sequence[Trained]) -> str:
    """Draw the share of positive texts by score, for each model, as the text of an SVG file."""
    # Matplotlib is an extra
    from crawl4llm.tools.evaluate.report import draw

    of_model = ((model.name, model.measures.bins) for model in models)
    series = [
        Series(name, [found.mean_score for found in bins], [found.positive_share for found in bins])
        for name, bins in of_model
    ]
    figure = Figure(
        id="calibration",
        title="Calibration on held-out texts",
        definition="Share of positive texts by mean score, in ten bins of equal width.",
        x_label="score",
        y_label="share of positive texts",
        series=[*series, Series("a score that is the probability", [0.0, 1.0], [0.0, 1.0], kind="dashed")],
    )
    return draw(figure)["svg"].decode()
