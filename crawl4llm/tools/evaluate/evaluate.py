"""``scrapy evaluate``: from the output directories of some runs to a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from crawl4llm.base.errors import InputError
from crawl4llm.base.pages import Corpus
from crawl4llm.engine import take_over
from crawl4llm.options import read_options
from crawl4llm.scoring import PageRater, follow_rules, load_scorer
from crawl4llm.tools._learnt import Results, read_results
from crawl4llm.tools.evaluate import correlations, coverage, ordering, overview
from crawl4llm.tools.evaluate.documents import Floats
from crawl4llm.tools.evaluate.figures import Figure, Report, Table
from crawl4llm.tools.evaluate.runs import Run, read_runs
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
    take_over(settings, runs[0].facts, runs[0].path)
    corpus, rater = open_rater(settings)
    try:
        corpus.check()
        check_same(runs[0], corpus, rater)
        options, keys = read_options(settings), [run.keys for run in runs]
        survey = Survey(corpus, options, sample=wanted.sample, crawled=keys, executor=options.tasks(wanted.tasks))
        return _report(runs, survey, rater, wanted, trained)
    finally:
        corpus.close()


def check_same(run: Run, corpus: Corpus, rater: PageRater) -> None:
    """Raise InputError unless corpus and model are those of the run."""
    for setting, what, then, now in (
        ("CORPUS", "corpus_digest", run.facts["corpus_digest"], corpus.identity()),
        ("SCORER_MODEL", "model_digest", run.facts["model_digest"], f"sha256:{rater.scorer.digest}"),
    ):
        if then != now:
            raise InputError(
                f"{run.path}: {what} was {then} when it was crawled, and that of {setting} is {now} now; set "
                f"{setting} to the former value"
            )


def _report(
    runs: Sequence[Run], survey: Survey, rater: PageRater, wanted: Wanted, trained: Results | None = None
) -> Report:
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
        *overview.tables(subject),
        *([] if trained is None else overview.losses(subject, trained)),
    ]
    return Report(
        title=f"Evaluation of {', '.join(group.name for group in subject.groups)}",
        notes=list(_notes(runs, survey)),
        sections=list(_in_parts(sections)),
        verdict=list(verdict(subject)),
        runs=[{"name": run.name, "path": str(run.path), **run.facts} for run in runs],
    )


_MODELS = "Models of Cho et al. 1998"
_PARTS = {
    "": ["quarter", "ranking", "gap", "learnt"],
    "Craw4LLM, figures 3 and 4": ["precision", "recall", "crawl-then-select", "visited"],
    "Crawl, then select, in numbers (Craw4LLM, section 3)": ["selected", "match"],
    "Costs and yields": ["recall-by-fetched", "harvest-rate", "new-quality", "mean-influence", "domains"],
    "Correlations with influence (Craw4LLM, figures 2 and 5)": ["correlation*", "backlinks*"],
    "Correlations with the losses of models": ["learnt-correlation"],
    _MODELS: ["*"],
    "The runs and their corpus": ["runs", "corpus", "reach"],
}
"""The parts of the report, and patterns of the ids of their sections."""


def _in_parts(sections: Sequence[Figure | Table]) -> Iterator[Figure | Table]:
    """Yield the sections by their parts; within a part they keep their order."""
    order, parted = list(_PARTS), []
    for section in sections:
        fitting = [part for part, ids in _PARTS.items() if any(fnmatchcase(section.id, one) for one in ids)]
        parted.append(replace(section, part=next((part for part in fitting if part != _MODELS), _MODELS)))
    yield from sorted(parted, key=lambda section: order.index(section.part))


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
