"""Whether a crawl with MIXTURE has the shares that it is to have, and what they cost.

    python -m benchmarks.mixture [--webs tuning,reporting,whole] [--kinds topic,format] [--policy link]
                                 [--taught-on tuning] [--seed-sets N] [--out DIR]

Crawls ../shared/clueweb22-real, scored by ../shared/scorers/prose.bin, without and with a mixture, from the same sets
of 100 random seeds, n = 100, until a quarter of the pages in reach is fetched. Classifiers are trained here on texts of
all hosts, or with --taught-on tuning on those of the tuning half alone: topics, labelled by host, which lie apart; and
formats, labelled by words of the URL, which hosts mix.
Natural is a class's share of the pages that are crawled without a mixture, or of the pages in reach;
the targets of two classes are 0.5 to 2 times that, what one has more the other has less, as far as there are so many
pages in reach. Shown are the largest miss of any class at the end, and the mean influence as a share of that without
mixture: of the crawl, and of the best pages in reach, which is what the mixture costs one who knows them all. Besides,
how often pages had the class that they were queued with, and that of their parents.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import re
import statistics
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.policies import REAL, REAL_MODEL, SEEDS
from benchmarks.policy_webs import MemoryWeb, RememberedScores, half_of, open_web
from benchmarks.results import Figure, Result, Table, add_output, publish
from crawl4llm.base.processes import cores
from crawl4llm.base.urls import host_of
from crawl4llm.cluster.archive import Lines
from crawl4llm.crawl.opening import open_crawl
from crawl4llm.frontier.memory import MemoryVisited
from crawl4llm.frontier.opening import memory_frontier
from crawl4llm.options import Options
from crawl4llm.parts import Parts
from crawl4llm.parts.mixture.work import Mixture
from crawl4llm.policies._ordering import make_policy
from crawl4llm.scoring.classifiers import REST, Classifier
from crawl4llm.scoring.fasttext_scorer import one_line
from crawl4llm.scoring.rating import PageRater
from crawl4llm.scoring.workers import PageWorkers, rate_by_key
from crawl4llm.tools._fit import Recipe, fit
from crawl4llm.warc import NullArchive

UNTIL = 0.25
FACTORS = (0.5, 1.0, 1.5, 2.0)
MOST_MISSED, LEAST_INFLUENCE = 0.05, 0.9
LEAST_FACTOR, MOST_FACTOR = 0.5, 2.0
HOSTS = {
    "__label__data": "tidyverse.org r-lib.org geocompx.org christophm.github.io r-statistics.co numpy.org nltk.org "
    "scipy-lectures.org seaborn.pydata.org sympy.org nipy.org datacarpentry.github.io",
    "__label__systems": "apache.org boost.org square.github.io junit.org tangentsoft.com libsdl.org "
    "loki-lib.sourceforge.net grinninglizard.com",
    "__label__other": "",
}
"""Hosts whose texts are of a topic, with those below them: statistics and data; libraries and servers in C++ and Java;
the others (specifications, lessons, the Python manual, books)."""
REFERENCE = re.compile("reference|javadoc|/api|generated|doxygen|libs/|/html/|kdoc|apidocs|classorg", re.IGNORECASE)
CLASSES = {"topic": (*list(HOSTS)[:2], REST), "format": ("__label__reference", "__label__prose")}
"""By kind, those whose targets are set come first."""


class RememberedClasses(Classifier):
    """fastText's classes, each text classified once."""

    def __init__(self, kind: str, model: Path) -> None:
        super().__init__(kind, model, dict.fromkeys(CLASSES[kind], 0.0))
        self._known: dict[str, int | None] = {}

    def classify(self, text: str) -> int | None:
        if text not in self._known:
            self._known[text] = super().classify(text)
        return self._known[text]


class Subject(NamedTuple):
    """A web, and what all crawls of it share."""

    web: MemoryWeb
    scorer: RememberedScores
    classifier: RememberedClasses


class Crawled(NamedTuple):
    """A crawl at its end."""

    influence: float
    shares: tuple[float, ...]
    guessed: float
    """Share of the pages, but for seeds, that had the class that they were queued with."""
    parents: float
    """The same of the class of the page on which they were found."""


_subjects: dict[str, Subject] = {}
"""Read before the processes are forked, which share them."""


def label_of(kind: str, url: str) -> str:
    """Return the class that a page is an example of."""
    if kind == "format":
        return CLASSES[kind][0 if REFERENCE.search(url) else 1]
    host = host_of(url)
    found = (
        label
        for label, names in HOSTS.items()
        if any(host == name or host.endswith(f".{name}") for name in names.split())
    )
    return next(found, "__label__other")


def train(kind: str, web: MemoryWeb, model: Path) -> None:
    """Train a classifier on the texts of a web."""
    examples = model.with_suffix(".txt")
    pages = ((label_of(kind, web.page(key).url), one_line(web.text(key))) for key in sorted(web.keys()))
    examples.write_text("".join(f"{label} {text}\n" for label, text in pages if text), encoding="utf-8")
    fit(examples, model, replace(Recipe(), dim=16, buckets=200_000, rate=0.5).fasttext(), quantised=None, progress=True)


def shares_of(subject: Subject, keys: Iterable[str]) -> tuple[float, ...]:
    """Return the share of each class among some pages that have text."""
    counts = Counter(subject.classifier.classify(subject.web.text(key)) for key in keys)
    classes = range(len(subject.classifier.classes))
    pages = sum(counts[number] for number in classes)
    return tuple(counts[number] / pages for number in classes)


def best_of(subject: Subject, reach: Iterable[str], wanted: Sequence[float] | None) -> float:
    """Return the mean influence of the best quarter of the pages in reach, with the shares wanted if any are."""
    scores: dict[int | None, list[float]] = {}
    for key in reach:
        text = subject.web.text(key)
        place = None if wanted is None else subject.classifier.classify(text)
        scores.setdefault(place, []).append(subject.scorer.score([text])[0] if text.strip() else 0.0)
    most = int(UNTIL * sum(map(len, scores.values())))
    parts = [(None, 1.0)] if wanted is None else list(enumerate(wanted))
    best = [one for place, share in parts for one in sorted(scores.get(place, []))[::-1][: round(share * most)]]
    return statistics.fmean(best)


def crawl(web: str, policy: str, number: int, wanted: Sequence[float] | None) -> Crawled:
    """One crawl, with the shares wanted if any are."""
    subject = _subjects[web]
    seeds = subject.web.sample(SEEDS, number)
    most = int(UNTIL * len(subject.web.reachable(seeds)))
    return asyncio.run(
        _run(subject, Options(url_policy=policy, crawl_max_pages=most, crawl_seed=number), seeds, wanted)
    )


async def _run(subject: Subject, options: Options, seeds: Sequence[str], wanted: Sequence[float] | None) -> Crawled:
    classifier = subject.classifier
    mixture = None
    if wanted is not None:
        classifier.shares = tuple(wanted)
        mixture = Mixture(options, [classifier])
    rater = PageRater(subject.web, subject.scorer, extractor=None, classifiers=[classifier] if mixture else [])
    workers = PageWorkers(rater, processes=0, time_limit=60.0)
    log = Lines()
    crawling = open_crawl(
        options,
        policy=make_policy(workers, options),
        rate=partial(rate_by_key, workers),
        frontier=memory_frontier(shares=None if mixture is None else mixture.shares),
        visited=MemoryVisited(),
        archive=NullArchive(),
        log=log,
        provenance={},
        parts=Parts([] if mixture is None else [mixture]),
    )
    cells: dict[str, int] = {}
    await crawling.begin(seeds)
    while not crawling.finished:
        for lease in crawling.dequeue():
            cells[lease.entry.key] = lease.entry.cell
            crawling.fetched(lease, subject.web.page(lease.entry.key), 200)
        while crawling.can_advance:
            await crawling.advance()
    keys = [line["id"] for line in log.pages]
    classes = {key: classifier.classify(subject.web.text(key)) for key in keys}
    found = [line for line in log.pages if line["parent"] is not None and classes[line["id"]] is not None]
    return Crawled(
        statistics.fmean(line["influence"] or 0.0 for line in log.pages),
        shares_of(subject, keys),
        statistics.fmean(cells[line["id"]] - 1 == classes[line["id"]] for line in found),
        statistics.fmean(classes[line["parent"] or ""] == classes[line["id"]] for line in found),
    )


def wanted_of(natural: Sequence[float], place: int, factor: float) -> tuple[float, ...] | None:
    """Return the shares wanted where one of the first two classes is to have so many times its natural one; None where
    the other would have less than half or more than twice its own."""
    one, other = factor * natural[place], sum(natural[:2]) - factor * natural[place]
    if not LEAST_FACTOR * natural[1 - place] <= other <= MOST_FACTOR * natural[1 - place]:
        return None
    return (*((one, other) if place == 0 else (other, one)), *natural[2:])


def prepare(names: Sequence[str], kinds: Sequence[str], taught_on: str, folder: Path) -> None:
    """Read the webs, train the classifiers, and score and classify all pages."""
    whole, scores = open_web("whole", REAL), RememberedScores(REAL_MODEL)
    halves = {name: whole.of_hosts(name, partial(_is_of, half)) for half, name in enumerate(("tuning", "reporting"))}
    for kind in kinds:
        train(kind, halves.get(taught_on, whole), folder / f"{kind}.bin")
        classifier = RememberedClasses(kind, folder / f"{kind}.bin")
        for name in names:
            web = halves.get(name, whole)
            _subjects[f"{name}, {kind}"] = Subject(web, scores, classifier)
            for key in web.keys():
                scores.score([web.text(key)])
                classifier.classify(web.text(key))


def _is_of(half: int, host: str) -> bool:
    return half_of(host) == half


def compare(name: str, pool: ProcessPoolExecutor, policy: str, sets: range) -> tuple[list[Table], list[Figure]]:
    """Crawl a web without and with mixtures."""
    subject = _subjects[name]
    plain = [one.result() for one in [pool.submit(crawl, name, policy, number, None) for number in sets]]
    reach = [subject.web.reachable(subject.web.sample(SEEDS, number)) for number in sets]
    best = [best_of(subject, keys, None) for keys in reach]
    naturals = {
        "crawled without": [one.shares for one in plain],
        "in reach": [shares_of(subject, keys) for keys in reach],
    }
    tables, figures = [], []
    for what, natural in naturals.items():
        crawls = {
            (place, factor): [
                (number, wanted, pool.submit(crawl, name, policy, number, wanted))
                for number in sets
                if (wanted := wanted_of(natural[number], place, factor)) is not None
                and all(UNTIL * one <= held for one, held in zip(wanted, naturals["in reach"][number], strict=True))
            ]
            for place in (0, 1)
            for factor in FACTORS
        }
        rows, misses, costs = [], [0.0], [1.0]
        for (place, factor), asked in crawls.items():
            if not asked:
                continue
            done = [(number, wanted, future.result()) for number, wanted, future in asked]
            missed = [
                max(abs(has - wants) for has, wants in zip(one.shares, wanted, strict=True)) for _, wanted, one in done
            ]
            influence = [one.influence / plain[number].influence for number, _, one in done]
            known = [best_of(subject, reach[number], wanted) / best[number] for number, wanted, _ in done]
            misses += missed
            costs.append(statistics.fmean(influence))
            rows.append(
                (
                    f"{subject.classifier.classes[place].removeprefix('__label__')} x {factor:g}",
                    f"{statistics.fmean(wanted[place] for _, wanted, _ in done):.1%}",
                    f"{statistics.fmean(one.shares[place] for _, _, one in done):.1%}",
                    f"{statistics.fmean(missed):.1%}; {max(missed):.1%}",
                    f"{statistics.fmean(influence):.3f}; {min(influence):.3f}",
                    f"{statistics.fmean(known):.3f}",
                    f"{statistics.fmean(one.guessed for _, _, one in done):.3f}",
                    f"{statistics.fmean(one.parents for _, _, one in done):.3f}",
                    str(len(done)),
                )
            )
        means = ", ".join(
            f"{label} {statistics.fmean(shares):.1%}"
            for label, shares in zip(subject.classifier.classes, zip(*natural, strict=True), strict=True)
        )
        title = f"{name}, {len(subject.web):,} pages; natural are the shares of the pages {what} ({means})"
        columns = ("target", "wanted", "share", "largest miss, mean; worst", "influence, mean; worst", "knowing all")
        tables.append(Table(title, (*columns, "as guessed", "as parent", "crawls"), rows))
        figures += [
            Figure(f"{name}: largest miss of a share, natural {what}", max(misses), MOST_MISSED),
            Figure(f"{name}: influence at the worst target, natural {what}", min(costs), LEAST_INFLUENCE, "", True),
        ]
    return tables, figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--webs", default="tuning", help="some of tuning, reporting, whole (default: %(default)s)")
    parser.add_argument("--kinds", default="topic", help="some of topic, format (default: %(default)s)")
    parser.add_argument("--taught-on", default="whole", help="the web that classifiers are taught (default: whole)")
    parser.add_argument("--policy", default="link")
    parser.add_argument("--seed-sets", type=int, default=5)
    parser.add_argument("--processes", type=int, default=cores())
    add_output(parser)
    args = parser.parse_args()
    names, kinds = args.webs.split(","), args.kinds.split(",")
    result = Result("mixture", [f"{args.policy}; {args.seed_sets} sets of {SEEDS} random seeds, n = 100"])
    with tempfile.TemporaryDirectory() as folder:
        prepare(names, kinds, args.taught_on, Path(folder))
        with ProcessPoolExecutor(args.processes, multiprocessing.get_context("fork")) as pool:
            for name in _subjects:
                tables, figures = compare(name, pool, args.policy, range(args.seed_sets))
                result.tables += tables
                result.figures += figures
    publish(result, args)


if __name__ == "__main__":
    main()
