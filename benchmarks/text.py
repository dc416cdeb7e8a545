"""Text by resiliparse against text by trafilatura: the scores of the same pages, the oracle sets, time a page.

    python -m benchmarks.text [--part 1] [--out FOLDER]

Both extractors take the text of each HTML page of ../shared/corpora/real-web, or of the demo web, and the model that
scores it is that of the other benchmarks. The oracle set of an extractor is the tenth of the pages that score highest
by its text, as in ``scrapy evaluate``. Time is CPU time of a page, of extraction alone. ``--part 10`` takes every
tenth page.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.corpora import HtmlPart, html_parts, model, real_html
from benchmarks.results import Result, Table, add_output, publish
from crawl4llm.base.processes import cores, run_jobs
from crawl4llm.scoring.fasttext_scorer import FastTextScorer
from crawl4llm.scoring.text import EXTRACTORS, extract_text
from crawl4llm.tools.evaluate.correlations import rank_correlation
from simulate.demo.write import LABEL

FIRST, SECOND = "trafilatura", "resiliparse"
LARGEST = 3_000_000
"""Bytes of a page; ../shared/clueweb22-real has no text of larger ones either."""
ORACLE_SHARES = (0.05, 0.1, 0.25)


class Extracted(NamedTuple):
    """What one extractor made of a page."""

    key: str
    characters: int
    score: float
    seconds: float


def extract(part: HtmlPart) -> dict[str, list[Extracted]]:
    """Extract and score the pages of a part by each extractor."""
    scorer = FastTextScorer(model(), LABEL)
    found: dict[str, list[Extracted]] = {FIRST: [], SECOND: []}
    for name in found:
        extract_text(b"<p>loads what it imports</p>", EXTRACTORS[name])
    for page in part.pages():
        if page.html is None or len(page.html) > LARGEST:
            continue
        for name, pages in found.items():
            began = time.process_time()
            text = extract_text(page.html, EXTRACTORS[name])
            seconds = time.process_time() - began
            pages.append(Extracted(page.key, len(text), scorer.score([text])[0], seconds))
    return found


def oracle(pages: Sequence[Extracted], share: float) -> set[str]:
    """Return the share of the pages with the highest scores; ties by key."""
    best = sorted(pages, key=lambda page: (-page.score, page.key))
    return {page.key for page in best[: int(share * len(best))]}


def compare(title: str, first: Sequence[Extracted], second: Sequence[Extracted]) -> Table:
    """Return how far the scores of two extractors agree on the same pages."""
    scores = [page.score for page in first], [page.score for page in second]
    rows: list[Sequence[str | float | None]] = [
        ["correlation of scores, Pearson", statistics.correlation(*scores)],
        ["correlation of scores, Spearman", rank_correlation(*map(np.array, scores)).value],
    ]
    for share in ORACLE_SHARES:
        one, two = oracle(first, share), oracle(second, share)
        common = len(one & two)
        rows.append([f"best {share:.0%}: share in both sets", common / len(one)])
        rows.append([f"best {share:.0%}: Jaccard index", common / len(one | two)])
    return Table(f"{title}: {len(first):,} pages", ("", f"{SECOND} with {FIRST}"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", type=int, default=1, help="take one page of so many (%(default)s: all)")
    add_output(parser)
    args = parser.parse_args()

    found: dict[str, dict[str, Extracted]] = {FIRST: {}, SECOND: {}}
    parts = html_parts(4 * cores(), args.part)
    for _, pages in run_jobs(extract, parts, cores(), " parts", "extracting"):
        for name, extracted in pages.items():
            found[name].update((page.key, page) for page in extracted)
    keys = sorted(found[FIRST])
    ordered = {name: [pages[key] for key in keys] for name, pages in found.items()}

    rows: list[Sequence[str | float | None]] = []
    for name, extracted in ordered.items():
        seconds = sorted(1000 * page.seconds for page in extracted)
        with_text = sum(page.characters > 0 for page in extracted)
        characters = statistics.median(page.characters for page in extracted)
        times = statistics.mean(seconds), statistics.median(seconds), seconds[int(0.99 * len(seconds))]
        score = statistics.mean(page.score for page in extracted)
        rows.append([name, with_text / len(extracted), characters, score, *times])
    columns = ("", "pages with text", "median characters", "mean score", "mean ms a page", "median", "99th percentile")
    both = [number for number in range(len(keys)) if all(pages[number].characters for pages in ordered.values())]
    with_both = [[pages[number] for number in both] for pages in ordered.values()]
    result = Result("text", [real_html().what])
    result.tables = [
        Table(f"{len(keys):,} HTML pages", columns, rows),
        compare("All pages", *ordered.values()),
        compare("Pages of which both find text", *with_both),
    ]
    publish(result, args)


if __name__ == "__main__":
    main()
