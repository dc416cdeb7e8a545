"""``scrapy evaluate``: from the output directories of some runs to a report.

Its sections on the runs and their corpus are here too: the runs at their end, the corpus, the reach of the seeds, and
the losses of models by a ``trainlm.json``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from crawl4llm.base.errors import InputError
from crawl4llm.base.pages import Corpus
from crawl4llm.engine import take_over
from crawl4llm.options import Options, read_options
from crawl4llm.scoring import PageRater, follow_rules, load_scorer
from crawl4llm.tools._learnt import Learnt, Results, read_results
from crawl4llm.tools.evaluate import correlations, coverage, ordering
from crawl4llm.tools.evaluate.documents import Floats
from crawl4llm.tools.evaluate.figures import Cell, Figure, Report, Table
from crawl4llm.tools.evaluate.runs import INFLUENCE, PRECISION, RECALL, CrawledPages, Run, read_runs
from crawl4llm.tools.evaluate.survey import Subject, Survey
from crawl4llm.tools.evaluate.verdict import gap, quarter, ranking, verdict
from simulate import open_rater

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_MODEL_FILES = (".bin", ".ftz")


@dataclass(frozen=True)
class Wanted:
    """Options of ``scrapy evaluate`` that add to a report."""

    sample: int | None = None
    """Documents to look at instead of the whole corpus."""
    topic: Sequence[str] = ()
    """Words of which a page on the topic has one."""
    scorers: Sequence[str] = ()
    """Two scorers to correlate, each a value of SCORER or the path of a fastText model."""
    tasks: int | None = None
    """Tasks in which pages are looked at."""
    trained: Path | None = None
    """The results of ``scrapy trainlm`` of some of the runs."""


def evaluate(settings: BaseSettings, paths: Sequence[Path], wanted: Wanted) -> Report:
    """Evaluate the runs in some output directories. Raises InputError.

    Settings on the command line count, then those of the first run, then the project's.
    """
    runs = read_runs(paths)
    trained = None if wanted.trained is None else read_results(wanted.trained)
    with opened(runs[0], settings) as (corpus, rater, options):
        crawled, executor = [run.pages for run in runs], options.tasks(wanted.tasks)
        survey = Survey(corpus, options, sample=wanted.sample, crawled=crawled, executor=executor)
        return _report(runs, survey, rater, wanted, trained)


@contextmanager
def opened(run: Run, settings: BaseSettings) -> Iterator[tuple[Corpus, PageRater, Options]]:
    """Open the corpus and the model of a run, by its settings, which are taken over. Raises InputError, also if they
    are others now."""
    take_over(settings, run.facts, run.path)
    corpus, rater = open_rater(settings)
    with closing(corpus):
        corpus.check()
        digests = {"corpus_digest": corpus.identity(), "model_digest": f"sha256:{rater.scorer.digest}"}
        for setting, (what, now) in zip(("CORPUS", "SCORER_MODEL"), digests.items(), strict=True):
            if (then := run.facts[what]) != now:
                raise InputError(
                    f"{run.path}: {what} was {then} when it was crawled, and that of {setting} is {now} now; set "
                    f"{setting} to the former value"
                )
        yield corpus, rater, read_options(settings)


def _report(runs: Sequence[Run], survey: Survey, rater: PageRater, wanted: Wanted, trained: Results | None) -> Report:
    subject = Subject(runs, survey, rater)
    scorers = _scorers(survey, rater, wanted.scorers)
    sections = [
        quarter(subject),
        ranking(subject),
        *gap(subject),
        *coverage.figures(subject),
        *coverage.selections(subject),
        *correlations.sections(subject, scorers),
        *ordering.sections(subject, wanted.topic),
        *(_runs(subject), _corpus(subject), *_reach(subject)),
        *([] if trained is None else _of_models(subject, trained)),
    ]
    return Report(
        title=f"Evaluation of {', '.join(group.name for group in subject.groups)}",
        notes=list(_notes(runs, survey)),
        sections=list(_in_parts(sections)),
        verdict=list(verdict(subject)),
        runs=[{**run.facts, "name": run.name, "path": str(run.path)} for run in runs],
    )


_PARTS = {
    "": ["quarter", "ranking", "gap", "learnt"],
    "Craw4LLM, figures 3 and 4": ["precision", "recall", "crawl-then-select", "visited"],
    "Crawl, then select, in numbers (Craw4LLM, section 3)": ["selected", "match"],
    "Costs and yields": ["recall-by-fetched", "harvest-rate", "new-quality", "mean-influence", "domains"],
    "Correlations with influence (Craw4LLM, figures 2 and 5)": ["correlation*"],
    "Correlations with the losses of models": ["learnt-correlation"],
    "Models of Cho et al. 1998": ["importance", "crawl-and-stop-*", "threshold-*", "limited-buffer-*"],
    "The runs and their corpus": ["runs", "corpus", "reach"],
}
"""The parts of the report, and patterns of the ids of their sections."""


def _in_parts(sections: Sequence[Figure | Table]) -> Iterator[Figure | Table]:
    """Yield the sections by their parts; within a part they keep their order."""
    for part, ids in _PARTS.items():
        fitting = [section for section in sections if any(fnmatchcase(section.id, one) for one in ids)]
        yield from (replace(section, part=part) for section in fitting)


def _scorers(survey: Survey, rater: PageRater, given: Sequence[str]) -> list[tuple[str, Floats]]:
    """Return names and scores of the scorers that are given."""
    found = []
    for name in given:
        options = replace(survey.options, scorer=name)
        if name.endswith(_MODEL_FILES):
            options = follow_rules(replace(survey.options, scorer="fasttext", scorer_model=name))
        same = name == survey.options.scorer
        scorer = rater.scorer if same else load_scorer(options)
        found.append((name, survey.scores(replace(rater, scorer=scorer), options.scorer).influence))
    return found


def _notes(runs: Sequence[Run], survey: Survey) -> Iterator[str]:
    for run in runs:
        if run.unfinished is not None:
            yield (
                f"{run.name} ({run.path}) was not finished: {run.unfinished}. The evaluation covers its "
                f"{len(run):,} of {run.wanted:,} pages."
            )
        if run.facts["settings"].get("CRAWL_SCOPE", "web") != "web":
            yield f"{run.name} kept to its seeds' domains (CRAWL_SCOPE); the figures of pages in reach ignore that."
    seeds: dict[str, set[tuple[str, ...]]] = {}
    for run in runs:
        seeds.setdefault(run.group, set()).add(tuple(run.seeds))
    if len(seeds) < len(runs):
        yield "Runs that differ in their seeds only are one line: their mean, and a band of all of them."
    if len({frozenset(sets) for sets in seeds.values()}) > 1:
        yield "The policies did not start from the same seeds, which may explain some of their differences."
    lengths = sorted(map(len, runs))
    if lengths[0] < lengths[-1]:
        yield (
            f"The runs have {lengths[0]:,} to {lengths[-1]:,} pages: they are ranked at {lengths[0]:,}, and drawn to "
            f"their ends."
        )
    if survey.sampled:
        yield (
            f"A sample of {survey.surveyed:,} of {survey.size:,} documents was surveyed, besides those crawled. Bands "
            f"are 95% confidence intervals. Figures that need all links of the corpus are left out: pages in reach, "
            f"PageRank, and the influence of outlinks."
        )


# -- the runs and their corpus -----------------------------------------------------------------------------------------


def _runs(subject: Subject) -> Table:
    interval = ["Recall, low", "Recall, high"] if subject.survey.sampled else []
    return Table(
        id="runs",
        title="The runs at their end",
        definition="Crawled and visited: P and V of Algorithm 1. Fetched: documents looked up or downloaded. "
        "Precision and recall of the oracle set, harvest rate, new quality and domains: as in the figures of these "
        "names. Tokens: runs of characters between blanks in the text, as fastText divides it.",
        columns=[
            *("Run", "Crawled", "Wanted", "Visited", "Fetched", "Mean influence", "Precision", "Recall", *interval),
            *("Harvest rate", "New quality per 1,000 fetches", "Tokens a page fetched", "Domains"),
        ],
        rows=[_run_row(subject, crawled) for crawled in subject.runs],
    )


def _run_row(subject: Subject, crawled: CrawledPages) -> list[Cell]:
    run, end, measured = crawled.run, np.array([len(crawled)]), crawled.measured(len(crawled))
    recall = crawled.recall(end)
    return [
        *(run.name, len(run), run.wanted, run.visited[-1], run.fetched[-1]),
        *(measured[INFLUENCE], measured[PRECISION], measured[RECALL]),
        *((recall.low[0], recall.high[0]) if subject.survey.sampled else ()),
        *(crawled.harvest_rate(end).value[0], crawled.new_quality(end)[0]),
        *(crawled.tokens.sum() / run.fetched[-1], run.domains[-1]),
    ]


def _corpus(subject: Subject) -> Table:
    survey, oracle = subject.survey, subject.oracle
    influence = subject.scores.influence[: survey.surveyed]
    known = int(np.count_nonzero(np.isfinite(influence)))
    total = math.fsum(np.nan_to_num(influence))
    rows: list[list[Cell]] = [
        ["Documents", survey.size],
        ["Documents looked at", survey.surveyed],
        ["... without an influence score", survey.surveyed - known],
    ]
    rows += [[f"... {reason}", count] for reason, count in sorted(subject.scores.reasons.items())]
    rows += [
        ["Mean influence", total / known if known else None],
        ["Oracle threshold: influence from which a page belongs to the oracle set", oracle.threshold.value],
    ]
    if survey.sampled:
        rows += [["... low", oracle.threshold.low], ["... high", oracle.threshold.high]]
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


def _reach(subject: Subject) -> list[Table]:
    """Return a table of the pages in reach; none if that is not known."""
    oracle = subject.scores.influence >= subject.oracle.threshold.value
    rows: list[list[Cell]] = []
    for crawled in subject.runs:
        reachable = subject.reachable(crawled)
        if reachable is None:
            return []
        pages, found = int(reachable.sum()), int((reachable & oracle).sum())
        share = found / oracle.sum() if oracle.any() else None
        rows.append([crawled.run.name, len(crawled.run.seeds), pages, pages / subject.survey.size, found, share])
    table = Table(
        id="reach",
        title="Pages in reach of the seeds",
        definition="Documents that the run's seeds can reach over any number of links, seeds included, and the oracle "
        "pages among them. No crawl from these seeds can find more.",
        columns=["Run", "Seeds", "Reachable", "Share of the corpus", "Reachable oracle pages", "Share of the oracle"],
        rows=rows,
    )
    return [table]


# -- losses of trained models, beside precision and recall of the runs ------------------------------------------------

_Trained: TypeAlias = Sequence[tuple[CrawledPages, Learnt]]
"""Runs with their losses."""


def _of_models(subject: Subject, results: Results) -> list[Table]:
    """Return the runs with their losses, and the correlation of loss with other measures over the runs.

    Raises InputError if none of the runs was trained on.
    """
    trained = {run.facts.get("crawl_id"): run for run in results.runs}
    ids = [one.run.facts.get("crawl_id") for one in subject.runs]
    found = [(one, trained[id_]) for one, id_ in zip(subject.runs, ids, strict=True) if id_ in trained and id_]
    if not found:
        raise InputError("--trained has no results of these runs; train on them: scrapy trainlm RUN ...")
    measured = [crawled.measured(len(crawled)) for crawled, _ in found]
    return [_losses(results, found, measured), _correlations(results, found, measured)]


def _losses(results: Results, found: _Trained, measured: Sequence[Mapping[str, float]]) -> Table:
    rows: list[list[Cell]] = []
    for (crawled, learnt), measures in zip(found, measured, strict=True):
        point = learnt.points[-1]
        losses = [loss for target in results.targets for loss in (point.mean(target), point.spread(target))]
        rows.append([crawled.run.name, *measures.values(), point.pages, point.fetched, *losses])
    losses_of = [column for target in results.targets for column in (f"Loss on {target}", "±")]
    return Table(
        id="learnt",
        title="Losses of trained models",
        definition="Precision and recall of the oracle set and mean influence, of all pages of the run. Loss: bits per "
        "byte of held-out texts, for models that scrapy trainlm trained on the first T tokens of each run; ±: the "
        "standard deviation over training seeds. Pages and fetched: pages that the run had crawled and fetched by "
        "then.",
        columns=["Run", *measured[0], "Pages", "Fetched", *losses_of],
        rows=rows,
    )


def _correlations(results: Results, found: _Trained, measured: Sequence[Mapping[str, float]]) -> Table:
    rows: list[list[Cell]] = []
    for target in results.targets:
        losses = np.array([learnt.points[-1].mean(target) for _, learnt in found])
        for name in measured[0]:
            values = np.array([one[name] for one in measured])
            rows.append([name, target, correlations.rank_correlation(values, losses).value])
    return Table(
        id="learnt-correlation",
        title="Does the measure predict the loss?",
        definition=f"Spearman's rank correlation of a measure with the loss over {len(found)} runs: -1 if the better "
        f"run by the measure always has the lower loss. None for fewer than three runs.",
        columns=["Measure", "Target", "Rank correlation"],
        rows=rows,
    )
