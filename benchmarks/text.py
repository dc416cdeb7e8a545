"""The extractors of text, compared: what they keep of pages whose main text is known, scores, oracle sets, CPU time.

    python -m benchmarks.text [--part 1] [--trafilatura CHECKOUT] [--out FOLDER]

Each extractor takes the text of the pages of two sets whose main text is known (benchmarks/text_sets.py). For
trafilatura's evaluation set give a checkout of github.com/adbar/trafilatura; without it the set is left out.

They take the text of each HTML page of ../shared/corpora/real-web too, or of the demo web, and the model that scores it
is that of the other benchmarks. The oracle set of an extractor is the tenth of the pages that score highest by its
text, as in ``scrapy evaluate``. Time is CPU time of a page, of extraction alone. ``--part 10`` takes every tenth page.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.corpora import HtmlPart, html_parts, kept, model, real_html
from benchmarks.results import Figure, Result, Table, add_output, publish
from benchmarks.text_sets import evaluation_set, handbook
from crawl4llm.base.html_tree import HtmlTree, link_texts
from crawl4llm.base.jobs import Told, run_jobs
from crawl4llm.base.processes import cores
from crawl4llm.parts.left_overs import LINKS
from crawl4llm.parts.left_overs.work import kept_share, reason_of
from crawl4llm.scoring.fasttext_scorer import FastTextScorer
from crawl4llm.scoring.lines import lines_of
from crawl4llm.scoring.text import EXTRACTORS, extract_text
from crawl4llm.tools.evaluate.correlations import rank_correlation
from simulate.demo import LABEL

FIRST, *OTHERS = EXTRACTORS
CHECKOUT = kept() / "trafilatura"
LARGEST = 3_000_000
"""Bytes of a page; ../shared/clueweb22-real has no text of larger ones either."""
ORACLE_SHARES = (0.05, 0.1, 0.25)
GOOD = 0.5


class Extracted(NamedTuple):
    """What one extractor made of a page."""

    key: str
    characters: int
    score: float
    seconds: float
    digest: bytes
    """Of the text."""
    kept: float
    """The share of its influence that LOWER_LEFT_OVERS keeps."""
    why: str
    """Why it keeps no more."""


def extract(part: HtmlPart) -> dict[str, list[Extracted]]:
    """Extract and score the pages of a part by each extractor."""
    scorer = FastTextScorer(model(), LABEL)
    found: dict[str, list[Extracted]] = {name: [] for name in EXTRACTORS}
    for name in found:
        extract_text(b"<p>loads what it imports</p>", EXTRACTORS[name])
    for page in part.pages():
        if page.html is None or len(page.html) > LARGEST:
            continue
        links = link_texts(HtmlTree(page.html))
        for name, pages in found.items():
            began = time.process_time()
            text = extract_text(page.html, EXTRACTORS[name])
            seconds = time.process_time() - began
            digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
            lines = lines_of(text, links)
            kept, why = (1.0, "") if lines is None else (kept_share(lines), reason_of(lines))
            pages.append(Extracted(page.key, len(text), scorer.score([text])[0], seconds, digest, kept, why))
    return found


def oracle(pages: Sequence[Extracted], share: float) -> set[str]:
    """Return the share of the pages with the highest scores; ties by key."""
    best = sorted(pages, key=lambda page: (-page.score, page.key))
    return {page.key for page in best[: int(share * len(best))]}


def compare(title: str, pages: Mapping[str, Sequence[Extracted]]) -> Table:
    """Return how far the scores of each extractor agree with those of the first one on the same pages."""
    first = pages[FIRST]
    columns = [_agreement(first, pages[name]) for name in OTHERS]
    rows = [[what, *(column[what] for column in columns)] for what in columns[0]]
    return Table(f"{title}: {len(first):,} pages", ("", *(f"{name} with {FIRST}" for name in OTHERS)), rows)


def _agreement(first: Sequence[Extracted], second: Sequence[Extracted]) -> dict[str, float | None]:
    scores = [page.score for page in first], [page.score for page in second]
    found = {
        "pages with the same text": sum(map(_same_text, first, second)) / len(first),
        "correlation of scores, Pearson": statistics.correlation(*scores),
        "correlation of scores, Spearman": rank_correlation(*map(np.array, scores)).value,
    }
    for share in ORACLE_SHARES:
        one, two = oracle(first, share), oracle(second, share)
        common = len(one & two)
        found[f"best {share:.0%}: share in both sets"] = common / len(one)
        found[f"best {share:.0%}: Jaccard index"] = common / len(one | two)
    return found


def _same_text(one: Extracted, other: Extracted) -> bool:
    return one.digest == other.digest


def left_overs(pages: Mapping[str, Sequence[Extracted]]) -> Table:
    """Return what LOWER_LEFT_OVERS does to pages that score above 0.5."""
    rows: list[Sequence[str | float | None]] = []
    for name, extracted in pages.items():
        good = [page for page in extracted if page.score > GOOD]
        lowered = [page for page in good if page.kept < 1]
        below = sum(page.score * page.kept <= GOOD for page in lowered)
        links = sum(page.why == LINKS for page in lowered)
        rows.append([name, len(good), len(lowered), links, len(lowered) - links, below])
    columns = ("", f"pages above {GOOD}", "lowered", "for links", "for short lines", f"to {GOOD} or less")
    return Table("What LOWER_LEFT_OVERS lowers", columns, rows)


def known_texts(checkout: Path, result: Result) -> None:
    """Measure on the sets whose main text is known."""
    evaluated = evaluation_set(checkout)
    if evaluated is None:
        result.notes.append(f"{checkout} is no checkout of github.com/adbar/trafilatura: its set is left out.")
    else:
        result.tables.append(evaluated)
        by_name = {row[0]: row for row in evaluated.rows}
        result.figures.append(_gain("F1 of both / of trafilatura", by_name, 1))
    tables, note = handbook()
    result.tables += tables
    result.notes += [note] if note else []
    for table in tables:
        by_name = {row[0]: row for row in table.rows}
        result.figures.append(_gain(f"{table.title.partition(':')[0]}: kept by both / by trafilatura", by_name, 1))


def _gain(what: str, rows: Mapping[Any, Sequence[Any]], column: int) -> Figure:
    return Figure(what, rows["both"][column] / rows[FIRST][column], 1.0, least=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", type=int, default=1, help="take one page of so many (%(default)s: all)")
    parser.add_argument("--trafilatura", type=Path, default=CHECKOUT, help="a checkout of it (%(default)s)")
    add_output(parser)
    args = parser.parse_args()
    result = Result("text", [real_html().what])
    known_texts(args.trafilatura, result)

    found: dict[str, dict[str, Extracted]] = {name: {} for name in EXTRACTORS}
    parts = html_parts(4 * cores(), args.part)
    for _, pages in run_jobs(extract, parts, cores(), Told(" parts", label="extracting")):
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
    texts_of_all = {name: [pages[number] for number in both] for name, pages in ordered.items()}
    result.tables += [
        Table(f"{len(keys):,} HTML pages", columns, rows),
        compare("All pages", ordered),
        compare("Pages of which all find text", texts_of_all),
        left_overs(ordered),
    ]
    publish(result, args)


if __name__ == "__main__":
    main()
