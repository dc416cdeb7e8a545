"""Report sections on the runs at their end, the corpus, and the reach of the seeds."""

from __future__ import annotations

import math
from itertools import chain

import numpy as np

from crawl4llm.tools.evaluate.columns import slices
from crawl4llm.tools.evaluate.figures import Cell, Table, number
from crawl4llm.tools.evaluate.measures import harvest_rate, mean_so_far, precision, recall
from crawl4llm.tools.evaluate.survey import CrawledPages, Subject


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
    run, influence, oracle = crawled.run, crawled.influence, subject.oracle
    end = np.array([len(run)])
    found = recall(influence, oracle, end)
    fetched = int(run.fetched[-1])
    return [
        run.name,
        len(run),
        run.wanted,
        int(run.visited[-1]),
        fetched,
        number(mean_so_far(influence, end)[0]),
        number(precision(influence, oracle, end).value[0]),
        number(found.value[0]),
        *([number(found.low[0]), number(found.high[0])] if subject.survey.sampled else []),
        number(harvest_rate(influence, oracle, run.fetched, end).value[0]),
        number(crawled.new_quality(oracle, end)[0]),
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
