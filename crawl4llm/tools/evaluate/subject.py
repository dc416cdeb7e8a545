"""What an evaluation is about: the runs, their corpus, and what is known of its pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crawl4llm.base.crawl_log import NAME
from crawl4llm.base.errors import InputError
from crawl4llm.scoring.rating import PageRater
from crawl4llm.tools.evaluate.documents import ABSENT, Flags, Floats, Integers
from crawl4llm.tools.evaluate.graph import LinkGraph
from crawl4llm.tools.evaluate.measures import Oracle, Population, oracle_of
from crawl4llm.tools.evaluate.runs import Run
from crawl4llm.tools.evaluate.survey import Scores, Survey


@dataclass(frozen=True)
class CrawledPages:
    """The pages of a run as documents of the survey; arrays are in crawl order."""

    run: Run
    numbers: Integers
    influence: Floats
    tokens: Integers

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def name(self) -> str:
        """Of the run."""
        return self.run.name


class Subject:
    """Runs of one corpus and model. What takes long is computed when it is first asked for, once.

    Raises InputError where a run names a page that the corpus does not hold, or a page twice.
    """

    def __init__(self, runs: Sequence[Run], survey: Survey, rater: PageRater) -> None:
        self.survey = survey
        self.rater = rater
        self.scores: Scores = survey.scores(rater, survey.options.scorer)
        self.runs = [self._crawled(run) for run in runs]
        self.oracle: Oracle = oracle_of(self.population(self.scores.influence))

    def _crawled(self, run: Run) -> CrawledPages:
        numbers = self.survey.documents.numbers_of(run.keys)
        if (numbers == ABSENT).any():
            key = run.keys[int(np.argmax(numbers == ABSENT))]
            raise InputError(f"{run.path / NAME}: names {key}, which the corpus does not hold; is it another corpus's?")
        pages, times = np.unique(numbers, return_counts=True)
        if (times > 1).any():  # it would count twice in recall
            key = run.keys[int(np.argmax(numbers == pages[times > 1][0]))]
            raise InputError(f"{run.path / NAME} is damaged: it has {key} twice")
        return CrawledPages(run, numbers, self.scores.influence[numbers], self.scores.tokens[numbers])

    def population(self, of_document: Floats, within: Flags | None = None) -> Population:
        """The values of all pages of the corpus; with ``within``, of those that it marks."""
        values = of_document[: self.survey.surveyed]
        if within is None:
            return Population(values, self.survey.size)
        return Population(values[within], int(np.count_nonzero(within)))

    @cached_property
    def graph(self) -> LinkGraph | None:
        """The links of the corpus; None where only a sample of it is looked at."""
        return self.survey.graph(self.rater)

    @cached_property
    def backlinks(self) -> Floats | None:
        """Links to each document that the corpus records, else those among its documents; None if neither is known."""
        recorded = self.survey.indegree(self.rater)
        if recorded is None and self.graph is not None:
            return self.graph.indegree()
        return recorded

    @cached_property
    def web(self) -> Flags | None:
        """The documents that can be reached from any run's seeds; None where that is not known."""
        if self.graph is None:
            return None
        return self.graph.reachable({seed for run in self.runs for seed in self.seeds_of(run)})

    def reachable(self, run: CrawledPages) -> Flags | None:
        """The documents that can be reached from a run's seeds; None where that is not known."""
        return None if self.graph is None else self.graph.reachable(self.seeds_of(run))

    def seeds_of(self, run: CrawledPages) -> Iterable[int]:
        """The numbers of a run's seeds."""
        numbers = self.survey.documents.numbers_of(run.run.seeds)
        return [int(number) for number in numbers if number != ABSENT]
