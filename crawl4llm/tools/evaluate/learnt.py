"""Losses of models that were trained on runs, from a ``trainlm.json``, beside precision and recall of the runs."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from crawl4llm.base.errors import InputError
from crawl4llm.tools._learnt import Learnt, Results, rank_correlation
from crawl4llm.tools.evaluate.figures import Cell, Table, number
from crawl4llm.tools.evaluate.measures import mean_so_far, precision, recall
from crawl4llm.tools.evaluate.survey import CrawledPages, Subject

_LOSS = (
    "Loss: bits per byte of held-out texts, for models that scrapy trainlm trained on the first T tokens of each run; "
    "±: the standard deviation over training seeds"
)


def tables(subject: Subject, results: Results) -> list[Table]:
    """Return the runs with their losses, and the correlation of loss with other measures over the runs.

    Raises InputError if none of the runs was trained on.
    """
    trained = {run.facts.get("crawl_id"): run for run in results.runs}
    ids = [one.run.facts.get("crawl_id") for one in subject.runs]
    found = [(one, trained[id_]) for one, id_ in zip(subject.runs, ids, strict=True) if id_ in trained and id_]
    if not found:
        raise InputError("--trained has no results of these runs; train on them: scrapy trainlm RUN ...")
    measured = [_measures(subject, crawled) for crawled, _ in found]
    return [_losses(results, found, measured), _correlations(results, found, measured)]


def _measures(subject: Subject, crawled: CrawledPages) -> dict[str, float | None]:
    end = np.array([len(crawled.run)])
    values = {
        "Precision": precision(crawled.influence, subject.oracle, end).value[0],
        "Recall": recall(crawled.influence, subject.oracle, end).value[0],
        "Mean influence": mean_so_far(crawled.influence, end)[0],
    }
    return {name: number(value) for name, value in values.items()}


def _losses(
    results: Results,
    found: Sequence[tuple[CrawledPages, Learnt]],
    measured: Sequence[Mapping[str, float | None]],
) -> Table:
    rows: list[list[Cell]] = []
    for (crawled, learnt), measures in zip(found, measured, strict=True):
        point = learnt.points[-1]
        losses = [loss for target in results.targets for loss in (point.mean(target), point.spread(target))]
        rows.append([crawled.name, *measures.values(), point.pages, point.fetched, *losses])
    losses_of = [column for target in results.targets for column in (f"Loss on {target}", "±")]
    return Table(
        id="learnt",
        title="Losses of trained models",
        definition=f"Precision and recall of the oracle set and mean influence, of all pages of the run. {_LOSS}. "
        "Pages and fetched: pages that the run had crawled and fetched by then.",
        columns=["Run", *measured[0], "Pages", "Fetched", *losses_of],
        rows=rows,
    )


def _correlations(
    results: Results,
    found: Sequence[tuple[CrawledPages, Learnt]],
    measured: Sequence[Mapping[str, float | None]],
) -> Table:
    rows: list[list[Cell]] = []
    for target in results.targets:
        losses = [learnt.points[-1].mean(target) for _, learnt in found]
        for name in measured[0]:
            values = [one[name] for one in measured]
            known = [value for value in values if value is not None]
            rows.append([name, target, rank_correlation(known, losses) if len(known) == len(losses) else None])
    return Table(
        id="learnt-correlation",
        title="Does the measure predict the loss?",
        definition=f"Spearman's rank correlation of a measure with the loss over {len(found)} runs: -1 if the better "
        f"run by the measure always has the lower loss. None for fewer than three runs.",
        columns=["Measure", "Target", "Rank correlation"],
        rows=rows,
    )


# -- contests ----------------------------------------------------------------------------------------------------------


def by_policy(results: Results) -> dict[str, Any]:
    """Return for each target the mean loss of the runs of each policy, as a contest keeps it."""
    found: dict[str, dict[str, list[float]]] = {target: {} for target in results.targets}
    for run in results.runs:
        for target, losses in found.items():
            losses.setdefault(str(run.facts.get("policy")), []).append(run.points[-1].mean(target))
    return {target: {name: statistics.fmean(some) for name, some in losses.items()} for target, losses in found.items()}


def correlation_note(target: str, losses: Mapping[str, float], areas: Mapping[str, float]) -> str:
    """Return a sentence on the correlation of area with loss over the policies that have both."""
    names = [name for name in areas if name in losses]
    found = rank_correlation([areas[name] for name in names], [losses[name] for name in names])
    shown = "cannot be told" if found is None else f"is {found:.2f}"
    return (
        f"Loss on {target}, of runs elsewhere: its rank correlation with the area {shown}, over {len(names)} policies."
    )
