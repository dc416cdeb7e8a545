"""The survey of a corpus, numbers of each document, computed once and kept on disk; the subject of an evaluation."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl4llm.base.crawl_log import NAME
from crawl4llm.base.errors import InputError
from crawl4llm.base.jobs import UNDIVIDED, Executor
from crawl4llm.base.pages import Corpus
from crawl4llm.base.run_folder import SEEDS
from crawl4llm.base.terminal import wants_bar
from crawl4llm.options import Options
from crawl4llm.scoring import (
    Arrays,
    Mentions,
    PageRater,
    Pages,
    Question,
    Rating,
    count_tokens,
    indegree,
    mentions_of,
    rate_text,
    run_pass,
)
from crawl4llm.tools.evaluate.documents import (
    ABSENT,
    Documents,
    Fingerprints,
    Flags,
    Floats,
    Integers,
    LinkGraph,
    Oracle,
    Population,
    fingerprints,
    oracle_of,
    stored,
)
from crawl4llm.tools.evaluate.runs import CrawledPages, Run
from simulate import data_dir, open_scores


class ScoredPage(NamedTuple):
    """A page's influence score and the size of its text."""

    score: float | None
    reason: str | None
    """As in crawl4llm.policies.Rating."""
    tokens: int


def scored_page(rater: PageRater, page: str | tuple[str, Rating | None]) -> ScoredPage:
    """Return score and tokens from one look at the text of a page, given by its key, or with the score that is known,
    if any."""
    key, known = (page, None) if isinstance(page, str) else page
    text = rater.text(key)
    return ScoredPage(*(known or rate_text(rater.scorer, text, key)), count_tokens(text))


def targets(rater: PageRater, key: str) -> Fingerprints:
    """Return the fingerprints of the documents that a page links to, each once, itself not among them."""
    linked = dict.fromkeys(link.key for link in rater.corpus.outlinks(key) if link.key is not None)
    linked.pop(key, None)
    return fingerprints(linked)


WHOLE = "all"


@dataclass(frozen=True)
class Scores:
    """Influence scores by document, NaN without one, and tokens of the texts."""

    influence: Floats
    tokens: Integers
    reasons: Counter[str]
    """Why documents of the corpus, or of the sample, have no score or no text: how many of them, by reason."""


class Survey:
    """Looks at all documents of a corpus, or at a sample of ``sample`` documents and those of some crawls.

    Documents have the numbers of ``documents``. The first ``surveyed`` of them are the corpus, or the sample. With
    ``cache`` results are kept only there, and in SCORE_CACHE if that is set. ``executor`` runs the tasks in which pages
    are looked at.
    """

    def __init__(
        self,
        corpus: Corpus,
        options: Options,
        *,
        sample: int | None = None,
        crawled: Sequence[Pages] = (),
        cache: Path | None = None,
        executor: Executor = UNDIVIDED,
    ) -> None:
        self.corpus = corpus
        self.options = options
        self.size = len(corpus)
        self.sampled = sample is not None and sample < self.size
        self._executor = executor
        self._cache = data_dir() / "evaluation" if cache is None else cache
        self._shares_scores = cache is None or options.score_cache is not None
        self._parts = [Pages(WHOLE, self.size, corpus.keys)]
        if sample is not None and self.sampled:
            seed = options.crawl_seed
            drawn = sorted(corpus.sample(sample, seed))
            listed = Pages(f"sample {sample} {seed}", len(drawn), partial(iter, drawn))
            self._parts = [listed, *map(_of_crawl, crawled)]
        self.surveyed = self._parts[0].count

    @cached_property
    def documents(self) -> Documents:
        """The numbers of the documents."""
        return Documents(chain.from_iterable(part.keys() for part in self._parts))

    def scores(self, rater: PageRater, scorer: str) -> Scores:
        """Return the influence by the rater's scorer, which SCORER names ``scorer``."""
        reasons, before = Counter[str](), 0

        def numbers() -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
            nonlocal before
            for block in self._scored(rater, scorer):
                if before < self.surveyed:
                    reasons.update(dict(zip(block["reasons"].tolist(), block["counts"].tolist(), strict=True)))
                before += len(block["influence"])
                yield block["influence"], block["tokens"]

        influence, tokens = stored(numbers(), np.float64, np.int64)
        return Scores(influence, tokens, reasons)

    def _scored(self, rater: PageRater, scorer: str) -> Iterator[Arrays]:
        depends_on = {
            **self._text(rater),
            "scorer": scorer,
            "model": rater.scorer.digest,
            "label": getattr(rater.scorer, "label", self.options.scorer_label),
        }
        known = open_scores(rater, self.options) if self._shares_scores else None
        with closing(known) if known else nullcontext():
            yield from self._run(Question("scores", depends_on, scored_page, _pack_scores, known), rater)

    def topic(self, rater: PageRater, words: Sequence[str]) -> list[Flags]:
        """Return which pages are on the topic of some words (Cho et al. 1998, section 7).

        First those with a word in the title, or more than 10 times in the body. Then those with a word in the title, or
        10 times or more in the body; they are hot if they have five or more backlinks too.
        """
        depends_on = {**self._text(rater), "topic": list(words)}
        blocks = self._run(Question("topic", depends_on, mentions_of(words), _pack_mentions), rater)
        found = ((block["in_title"], block["in_body"]) for block in blocks)
        return stored(((title | (body > 10), title | (body >= 10)) for title, body in found), np.bool_, np.bool_)

    def indegree(self, rater: PageRater) -> Floats | None:
        """Return links to each document that the corpus records; None if it records none."""
        try:
            self.corpus.require("inlinks")
        except InputError:
            return None
        blocks = self._run(Question("inlinks", {"corpus": self.corpus.identity()}, indegree, _pack_ratings), rater)
        return stored(((block["value"],) for block in blocks), np.float64)[0]

    def graph(self, rater: PageRater) -> LinkGraph | None:
        """Return the links between all documents; None if only a sample is surveyed."""
        if self.sampled:
            return None
        number = np.int32 if self.size < 1 << 31 else np.int64
        return LinkGraph(self.size, *stored(self._links(rater), np.int32, number))

    def _links(self, rater: PageRater) -> Iterator[tuple[Integers, Integers]]:
        """Yield the degrees of the documents of each block, and the numbers that they link to, each one's ascending."""
        for block in self._run(Question("links", {"corpus": self.corpus.identity()}, targets, _pack_targets), rater):
            linked = self.documents.numbers(block["fingerprints"])
            sources = np.repeat(np.arange(len(block["counts"])), block["counts"])
            order = np.lexsort((linked, sources))
            held = order[linked[order] != ABSENT]
            yield np.bincount(sources[held], minlength=len(block["counts"])), linked[held]

    def _text(self, rater: PageRater) -> dict[str, Any]:
        """Return all that decides the text of a page."""
        return {"corpus": self.corpus.identity(), "text": self.options.simulation_text, "extractor": rater.extractor}

    def _run(self, task: Question[Any], rater: PageRater) -> Iterator[Arrays]:
        show = wants_bar(self.options.progress_bar)
        for part in self._parts:
            yield from run_pass(task, part, rater, self.options.workers, self._cache, self._executor, show=show)


def _of_crawl(pages: Pages) -> Pages:
    """Return the pages of a crawl under a name that tells which they are."""
    digest, before = hashlib.sha256(b"["), ""
    for key in pages.keys():
        digest.update(f"{before}{json.dumps(key)}".encode())
        before = ", "
    digest.update(b"]")
    return replace(pages, name=f"crawled {digest.hexdigest()}")


def _pack_scores(pages: Sequence[ScoredPage | Rating]) -> Arrays:
    reasons = Counter(page.reason for page in pages if page.reason is not None)
    return {
        "influence": np.array([np.nan if page.score is None else page.score for page in pages], dtype=np.float64),
        "tokens": np.array([page.tokens if isinstance(page, ScoredPage) else 0 for page in pages], dtype=np.uint32),
        "reasons": np.array(sorted(reasons), dtype=np.str_),
        "counts": np.array([reasons[reason] for reason in sorted(reasons)], dtype=np.int64),
    }


def _pack_mentions(pages: Sequence[Mentions | Rating]) -> Arrays:
    found = [page if isinstance(page, Mentions) else Mentions(False, 0) for page in pages]
    return {
        "in_title": np.array([mentions.in_title for mentions in found], dtype=np.bool_),
        "in_body": np.array([mentions.in_body for mentions in found], dtype=np.uint32),
    }


def _pack_ratings(pages: Sequence[Rating]) -> Arrays:
    return {"value": np.array([np.nan if page.score is None else page.score for page in pages], dtype=np.float64)}


def _pack_targets(pages: Sequence[Fingerprints | Rating]) -> Arrays:
    none = fingerprints(())
    linked = [none if isinstance(page, Rating) else page for page in pages]
    counts = np.array(list(map(len, linked)), dtype=np.int64)
    return {"counts": counts, "fingerprints": np.concatenate([none, *linked])}


class Group(NamedTuple):
    """Runs that differ in their seeds only: one series of the figures."""

    name: str
    place: int
    """Its number, by which its colour is the same in all figures."""
    runs: Sequence[CrawledPages]

    @property
    def pages(self) -> int:
        """The pages that all its runs have."""
        return min(map(len, self.runs))


class Subject:
    """Runs of one corpus and model. Slow computations are done once, at their first use.

    Raises InputError if a run names a page that the corpus does not hold, or a page twice.
    """

    def __init__(self, runs: Sequence[Run], survey: Survey, rater: PageRater) -> None:
        self.survey = survey
        self.rater = rater
        self.scores: Scores = survey.scores(rater, survey.options.scorer)
        self.oracle: Oracle = oracle_of(self.population(self.scores.influence))
        self.runs = [self._crawled(run) for run in runs]
        named: dict[str, list[CrawledPages]] = {}
        for crawled in self.runs:
            named.setdefault(crawled.run.group, []).append(crawled)
        self.groups = [Group(name, place, crawled) for place, (name, crawled) in enumerate(named.items())]

    def _crawled(self, run: Run) -> CrawledPages:
        numbers = self.survey.documents.numbers(run.documents)
        if (numbers == ABSENT).any():
            key = _key(run, numbers == ABSENT)
            raise InputError(f"{run.path / NAME}: names {key}, which is not in the corpus; is it of another corpus?")
        pages, times = np.unique(numbers, return_counts=True)
        if (times > 1).any():  # it would count twice in recall
            key = _key(run, numbers == pages[times > 1][0])
            raise InputError(f"{run.path / NAME} is damaged: it has {key} twice")
        if len(pages) and run.seeds and (self.survey.documents.numbers_of(run.seeds) == ABSENT).all():
            raise InputError(f"{run.path / SEEDS}: none of its seeds is in the corpus; is it of another corpus?")
        return CrawledPages(run, numbers, self.scores.influence[numbers], self.scores.tokens[numbers], self.oracle)

    def population(self, of_document: Floats, within: Flags | None = None) -> Population:
        """Return the values of all pages of the corpus; with ``within``, of those that it marks."""
        values = of_document[: self.survey.surveyed]
        size = self.survey.size if within is None else int(np.count_nonzero(within))
        return Population(values, size, within)

    @cached_property
    def graph(self) -> LinkGraph | None:
        """The links of the corpus; None if only a sample of it is surveyed."""
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
        """The documents that can be reached from any run's seeds; None if that is not known."""
        return self.reachable(*self.runs)

    def reachable(self, *runs: CrawledPages) -> Flags | None:
        """Return the documents that can be reached from the seeds of some runs; None if that is not known."""
        if self.graph is None:
            return None
        seeds = self.survey.documents.numbers_of(key for run in runs for key in run.run.seeds)
        return self.graph.reachable(seeds[seeds != ABSENT])


def _key(run: Run, marked: Flags) -> str:
    """Return the key of the first page that is marked."""
    return next(islice(run.pages.keys(), int(np.argmax(marked)), None))
