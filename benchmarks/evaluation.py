"""Scoring a whole corpus for an evaluation, against one pass of fastText over its text.

    python -m benchmarks.evaluation [--rounds N] [--processes N] [--out FOLDER]

Both read ../shared/clueweb22-real in fresh processes, in turn; the pass is a loop that reads a page's text and has
fastText predict on it. Seconds are those of the work, without start-up. The project asks for a ratio of at most 1.25.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import fasttext

from benchmarks.results import Figure, Result, Table, add_output, publish
from crawl4llm.base.processes import cores
from crawl4llm.options import Options
from crawl4llm.scoring.fasttext_scorer import FastTextScorer
from crawl4llm.scoring.rating import PageRater
from crawl4llm.tools.evaluate.survey import Survey
from simulate.clueweb22.corpus import ClueWeb22Corpus

SHARED = Path(__file__).resolve().parents[2] / "shared"
CORPUS, MODEL = SHARED / "clueweb22-real", SHARED / "scorers/prose.bin"
LABEL = "__label__hq"
MOST = 1.25


class Seconds(NamedTuple):
    """What some work took."""

    wall: float
    cpu: float
    """Of the process and of its children."""


def fasttext_pass() -> Seconds:
    """Read each text and predict on it, in one process; keep the probability."""
    corpus = ClueWeb22Corpus(CORPUS)
    predict = fasttext.load_model(str(MODEL)).f.predict
    started = _now()
    scores = []
    for key in corpus.keys():
        line = " ".join(corpus.text(key).strip().splitlines()) + "\n"
        scores.append(dict(map(reversed, predict(line, 2, 0.0, "strict")))[LABEL] if line != "\n" else 0.0)
    return _since(started)


def scoring(processes: int) -> Seconds:
    """What ``scrapy evaluate`` does if there is no cache."""
    corpus = ClueWeb22Corpus(CORPUS)
    rater = PageRater(corpus, FastTextScorer(MODEL, LABEL), None)
    options = Options(scoring_workers=processes, progress_bar="off")
    with tempfile.TemporaryDirectory() as cache:
        started = _now()
        Survey(corpus, options, cache=Path(cache)).scores(rater, "fasttext")
        return _since(started)


def _now() -> Seconds:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Seconds(time.perf_counter(), time.process_time() + children.ru_utime + children.ru_stime)


def _since(started: Seconds) -> Seconds:
    now = _now()
    return Seconds(now.wall - started.wall, now.cpu - started.cpu)


def in_new_process(work: Callable[..., Seconds], *args: int) -> Seconds:
    """What ``work`` returns in a process of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *args).result()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=cores(), help="scoring processes (default: one a core)")
    add_output(parser)
    args = parser.parse_args()
    if not CORPUS.exists():
        sys.exit(f"needs {CORPUS}, which is not here")
    runs: dict[str, list[Seconds]] = {"one pass of fastText": [], "scoring": []}
    for _ in range(args.rounds):
        runs["one pass of fastText"].append(in_new_process(fasttext_pass))
        runs["scoring"].append(in_new_process(scoring, args.processes))
    baseline, ours = (Seconds(*map(statistics.median, zip(*taken, strict=True))) for taken in runs.values())
    rows: list[list[str | float | None]] = [
        [name, *seconds] for name, seconds in zip(runs, (baseline, ours), strict=True)
    ]
    result = Result(
        "evaluation",
        [f"{len(ClueWeb22Corpus(CORPUS)):,} pages, {args.processes} scoring processes, medians of {args.rounds}"],
        [Table("Whole corpus", ["", "wall s", "CPU s"], rows)],
        [
            Figure("wall / one pass", ours.wall / baseline.wall, MOST),
            Figure("CPU / one pass", ours.cpu / baseline.cpu, MOST),
        ],
    )
    publish(result, args)


if __name__ == "__main__":
    main()
