"""Brings what was measured into the docs: marked figures of README and docs/, and all tables in benchmarks/measured.

    python -m benchmarks.report [--take FOLDER]

``--take`` first copies the JSON of a run of ``make bench``, or of a benchmark's ``--out``, to benchmarks/measured; the
JSON and the pages are committed by hand. :mod:`benchmarks.marked` has the form of a marker.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import Any

from benchmarks.marked import MEASURED, UnknownFigure, filled, known, pages, results
from benchmarks.results import Figure, Result, Table, rounded

PAGE = MEASURED / "README.md"
_BUSY = 0.05
"""Share of the CPU time beyond which figures are not to be trusted."""
_HEAD = """\
# All that was measured

Written by `python -m benchmarks.report` from the JSON in this folder. [Performance](../../docs/performance.md) has the
figures that users ask for. Figures are medians if there are several runs. Each section says on which pages; without
`../shared` the demo web takes their place, and the figures are others.
"""
_ABOUT = {
    "simulation": """\
Crawls by influence, start-up included, each with an empty score cache unless a row says otherwise. "as published,
scaled": the published cost of the published implementation times what a fixed piece of work takes here. Ratios are to
it only if that implementation was not run in turn with ours. CPU is that of all processes; memory is the peak of the
sum of their proportional set sizes (shared memory counted once).""",
    "policies": "Recall of the oracle set, mean and standard deviation over the sets of seeds.",
    "frontier": "The frontier of a crawl with `JOBDIR` against SQLite and Scrapy's disk queues; that of one without.",
    "archive": "What writing a page's records takes, the index included, against warcio.",
    "text": "What an extractor does to the scores of one model ([training](../../docs/training.md#which-extractor)).",
    "live": """\
The live profile without delays against plain Scrapy spiders that send the same requests to the same servers. Ours
extracts, scores and archives; "plain" only extracts, in its callback; "empty" does nothing.""",
    "scaling": "What a page costs in a larger web, and the durable frontier with many URLs.",
    "demo": "Crawls of the demo web by four policies, as [the paper in pictures](../../docs/paper.md) draws them.",
    "websoftware": "What a live crawl brings home of real software ([real software](../../docs/real-software.md)).",
    "websoftware_first": """\
The same texts and links before the PHP sites of the test web were repaired, which had leaked session ids to each
other: crawl4llm without site rules, and plain Scrapy, breadth first, as it is and with Nutch's URL filter.""",
    "mazes": "Fetches that mazes take of a crawl, and what keeping out of them costs.",
    "waiting": "What it costs that registrable domains make a crawl wait.",
    "cluster": "What several workers cost, and whether they leave what one process leaves.",
    "faults": "Crawls by several workers under random faults, compared with the crawl of one process.",
    "cluster_live": "A live crawl by several workers that are killed and paused, on a local web.",
    "partitions": "What partitions cost `link` in continuous order: share of the oracle found, by pages crawled.",
    "politeness": "Pages a second beside what the delays allow, and whether a server was asked early.",
    "foreign_links": "Requests that reach a site with links of strangers to dead places of its owner, and without.",
    "bombs": "Sites whose bodies unpack to a thousand times as much, beside others: time and memory of a live crawl.",
    "site_rules": "Good real pages that the rules of `SITE_RULES` would lose.",
    "known": "Known URLs on disk: bytes an entry, false positives and look-ups, against a Bloom filter.",
    "stopping": "Crawls that are stopped at random moments, compared with one that was not.",
    "stopping_offline": "Offline commands that are stopped at random moments and run again, compared with whole runs.",
    "building": "A tree that `scrapy corpus build` made of real pages, against an independent program's tree.",
    "evaluation": "Scoring a whole corpus for `scrapy evaluate`, against one pass of fastText over its text.",
    "evaluation_memory": "Memory of `scrapy evaluate` by documents, without the plots.",
    "many_documents": "Memory and time of `scrapy archive check` and `scrapy export` of very many documents.",
    "export": "`scrapy export` of archived texts, against loops that read and compress alone.",
    "replay": "Archived pages that ReplayWeb.page replays from a WACZ file.",
    "dashboard": "First paint and memory of the dashboard on a long crawl, and its CPU beside one that runs.",
}


def page(folder: Path = MEASURED) -> str:
    """Return the page of all tables for the JSON in a folder."""
    found = {result.benchmark: _section(result, machine) for result, machine in results(folder)}
    ordered = [*(name for name in _ABOUT if name in found), *(name for name in found if name not in _ABOUT)]
    return "\n".join([_HEAD, *(found[name] for name in ordered)])


def written(folder: Path = MEASURED) -> dict[Path, str]:
    """Return each page that has measured figures, and what it should say. Raises UnknownFigure."""
    figures, texts = known(folder), {PAGE: page(folder)}
    for path in pages():
        try:
            texts[path] = filled(path.read_text(encoding="utf-8"), figures)
        except UnknownFigure as error:
            raise UnknownFigure(f"{path}: {error}") from None
    return texts


def _section(result: Result, machine: dict[str, Any]) -> str:
    about = [_ABOUT[result.benchmark], ""] if result.benchmark in _ABOUT else []
    lines = [f"## {result.benchmark}", "", *about, f"Data: {'; '.join(result.data)}."]
    if result.figures:
        lines += ["", "| | measured | limit | |", "|-|-|-|-|", *map(_verdict, result.figures)]
    for table in result.tables:
        lines += ["", *_markdown(table)]
    lines += ["", *(f"- {note}" for note in result.notes)] if result.notes else []
    return "\n".join([*lines, "", _measured_on(machine), ""])


def _verdict(figure: Figure) -> str:
    unit = f" {figure.unit}" if figure.unit else ""
    bound = f"at {'least' if figure.least else 'most'} {figure.limit:,g}{unit}"
    verdict = "met" if figure.met else "**missed**"
    return f"| {figure.what} | {rounded(figure.value)}{unit} | {bound} | {verdict} |"


def _markdown(table: Table) -> list[str]:
    rows = [f"| {' | '.join(map(rounded, row))} |" for row in table.rows]
    return [f"{table.title}:", "", f"| {' | '.join(table.columns)} |", "|-" * len(table.columns) + "|", *rows]


def _measured_on(machine: dict[str, Any]) -> str:
    libraries = ", ".join(f"{name} {version}" for name, version in machine["libraries"].items())
    taken = machine["CPU taken by others"]
    busy = " **The machine was busy: walls mean nothing, CPU little.**" if taken > _BUSY else ""
    return (
        f"Measured {machine['date']} at commit {machine['commit']}; load average {machine['load average'][0]} at the "
        f"start, {taken:.0%} of the CPU time taken by other work.{busy} {machine['cpu']}, {machine['cores']} cores, "
        f"{machine['memory GiB']} GiB; {machine['system']}; Python {machine['python']}; {libraries}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--take", type=Path, help="folder with the JSON of a run, to be copied to benchmarks/measured")
    args = parser.parse_args()
    if args.take:
        MEASURED.mkdir(exist_ok=True)
        for file in args.take.glob("*.json"):
            shutil.copy(file, MEASURED)
    try:
        for path, text in written().items():
            path.write_text(text, encoding="utf-8")
    except UnknownFigure as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
