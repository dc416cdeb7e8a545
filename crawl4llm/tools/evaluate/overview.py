"""Report sections on the runs at their end, their corpus, the reach of the seeds, and the losses of models that were
trained on the runs, from a ``trainlm.json``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from crawl4llm.base.errors import InputError
from crawl4llm.tools._learnt import Learnt, Results, rank_correlation
from crawl4llm.tools.evaluate.documents import slices
from crawl4llm.tools.evaluate.figures import Cell, Table, number
from crawl4llm.tools.evaluate.measures import CrawledPages
from crawl4llm.tools.evaluate.survey import Subject


def tables(subject: Subject) -> list[Table]:
    """Return the tables, in the order of the report."""
    found = [_runs(subject), _corpus(subject)]
    return found if subject.graph is None else [*found, _reach(subject)]


def _runs(subject: Subject) -> Table:
    interval = ["Recall, low", "Recall, high"] if subject.survey.sampled else []
    return Table(
        id="runs",
        title="The runs at their end",
        definition="Crawled and visited: P and V of Algorithm 1. Fetched: documents looked up or downloaded. "
        "Precision and recall of the oracle set as in figure 4 of Craw4LLM. Harvest rate: oracle pages crawled per "
        "page fetched. New quality per 1,000 fetches: crawled pages with an influence of the run's QUALITY_THRESHOLD "
        "or more (of the oracle set without that setting), and with a new text as far as the run compared texts "
        "(KNOWN_TEXTS, NEAR_DUPLICATES). Tokens: runs of characters between blanks in the text, as fastText divides "
        "it. Domains: registrable domains (Public Suffix List with its private part).",
        columns=[
            *("Run", "Crawled", "Wanted", "Visited", "Fetched", "Mean influence", "Precision", "Recall", *interval),
            *("Harvest rate", "New quality per 1,000 fetches", "Tokens a page fetched", "Domains"),
        ],
        rows=[_run_row(subject, crawled) for crawled in subject.runs],
    )


def _run_row(subject: Subject, crawled: CrawledPages) -> list[Cell]:
    run, end = crawled.run, np.array([len(crawled)])
    found = crawled.recall(end)
    fetched = int(run.fetched[-1])
    return [
        run.name,
        len(run),
        run.wanted,
        int(run.visited[-1]),
        fetched,
        number(crawled.mean_influence(end)[0]),
        number(crawled.precision(end).value[0]),
        number(found.value[0]),
        *([number(found.low[0]), number(found.high[0])] if subject.survey.sampled else []),
        number(crawled.harvest_rate(end).value[0]),
        number(crawled.new_quality(end)[0]),
        number(crawled.tokens.sum() / fetched),
        int(run.domains[-1]),
    ]


def _corpus(subject: Subject) -> Table:
    survey, oracle = subject.survey, subject.oracle
    influence = subject.scores.influence[: survey.surveyed]
    known = sum(int(np.count_nonzero(np.isfinite(influence[part]))) for part in slices(len(influence)))
    total = math.fsum(chain.from_iterable(np.nan_to_num(influence[part]).tolist() for part in slices(len(influence))))
    rows: list[list[Cell]] = [
        ["Documents", survey.size],
        ["Documents looked at", survey.surveyed],
        ["... without an influence score", survey.surveyed - known],
    ]
    rows += [[f"... {reason}", count] for reason, count in sorted(subject.scores.reasons.items())]
    rows += [
        ["Mean influence", number(total / known) if known else None],
        ["Oracle threshold: influence from which a page belongs to the oracle set", number(oracle.threshold.value)],
    ]
    if survey.sampled:
        rows += [["... low", number(oracle.threshold.low)], ["... high", number(oracle.threshold.high)]]
    rows.append(["Oracle pages", round(oracle.size.value)])
    if subject.graph is not None:
        rows.append(["Links between documents", len(subject.graph)])
    return Table(
        id="corpus",
        title="The corpus and its oracle set",
        definition="The oracle set is the best tenth of all documents by influence (Craw4LLM, section 3); pages with "
        "the score of its last page all belong to it. A page without text scores 0 (no_text); a page that cannot be "
        "read has no score and is no oracle page.",
        columns=["What", "Value"],
        rows=rows,
    )


def _reach(subject: Subject) -> Table:
    oracle = subject.scores.influence >= subject.oracle.threshold.value
    rows: list[list[Cell]] = []
    for crawled in subject.runs:
        reachable = subject.reachable(crawled)
        assert reachable is not None  # the graph is known
        pages, found = int(reachable.sum()), int((reachable & oracle).sum())
        share = found / oracle.sum() if oracle.any() else None
        rows.append([crawled.name, len(crawled.run.seeds), pages, pages / subject.survey.size, found, share])
    return Table(
        id="reach",
        title="Pages in reach of the seeds",
        definition="Documents that the run's seeds can reach over any number of links, seeds included, and the oracle "
        "pages among them. No crawl from these seeds can find more.",
        columns=["Run", "Seeds", "Reachable", "Share of the corpus", "Reachable oracle pages", "Share of the oracle"],
        rows=rows,
    )


# -- losses of trained models, beside precision and recall of the runs ------------------------------------------------

_LOSS = (
    "Loss: bits per byte of held-out texts, for models that scrapy trainlm trained on the first T tokens of each run; "
    "±: the standard deviation over training seeds"
)


def losses(subject: Subject, results: Results) -> list[Table]:
    """Return the runs with their losses, and the correlation of loss with other measures over the runs.

    Raises InputError if none of the runs was trained on.
    """
    trained = {run.facts.get("crawl_id"): run for run in results.runs}
    ids = [one.run.facts.get("crawl_id") for one in subject.runs]
    found = [(one, trained[id_]) for one, id_ in zip(subject.runs, ids, strict=True) if id_ in trained and id_]
    if not found:
        raise InputError("--trained has no results of these runs; train on them: scrapy trainlm RUN ...")
    measured = [_measures(crawled) for crawled, _ in found]
    return [_losses(results, found, measured), _correlations(results, found, measured)]


def _measures(crawled: CrawledPages) -> dict[str, float | None]:
    end = np.array([len(crawled)])
    return {
        "Precision": number(crawled.precision(end).value[0]),
        "Recall": number(crawled.recall(end).value[0]),
        "Mean influence": number(crawled.mean_influence(end)[0]),
    }


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
