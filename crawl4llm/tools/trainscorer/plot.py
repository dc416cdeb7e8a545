"""The calibration plot of a model card."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from crawl4llm.tools.evaluate.figures import Figure, Series
from crawl4llm.tools.trainscorer.card import Trained


def can_plot() -> bool:
    """Whether Matplotlib is installed (the extra ``evaluation``)."""
    return find_spec("matplotlib") is not None


def calibration_plot(models: Sequence[Trained]) -> str:
    """The share of positive texts by score, for each model, as the text of an SVG file."""
    from crawl4llm.tools.evaluate.report.plot import draw, stand_alone

    series = [
        Series(
            model.name,
            [found.mean_score for found in model.measures.bins],
            [found.positive_share for found in model.measures.bins],
        )
        for model in models
    ]
    figure = Figure(
        id="calibration",
        title="Calibration on held-out texts",
        definition="Share of positive texts by mean score, in ten bins of equal width.",
        x_label="score",
        y_label="share of positive texts",
        series=[*series, Series("a score that is the probability", [0.0, 1.0], [0.0, 1.0], kind="dashed")],
    )
    return stand_alone(draw(figure))
