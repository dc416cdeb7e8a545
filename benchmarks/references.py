"""References of real pages: how many the URL Standard's parser is needed for, and the time that a link takes.

    python -m benchmarks.references [--part 1] [--out FOLDER]

The pages are those of ../shared/corpora/real-web, or of the demo web. Time is CPU time of resolving all references in
page order, with what is done once for a page, the best of three runs. ``--part 10`` takes every tenth page.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter

from selectolax.lexbor import LexborHTMLParser

from benchmarks.corpora import html_parts, real_html
from benchmarks.results import Result, Table, add_output, publish
from crawl4llm.base.urls import NORMAL_REFERENCE, BaseUrl

RUNS = 3


def references(step: int) -> list[tuple[str, list[str]]]:
    """Return the URL and the references of each page in so many."""
    pages = (page for part in html_parts(1, step) for page in part.pages() if page.html is not None)
    found = ((page.key, LexborHTMLParser(page.html or b"").css("a[href], area[href]")) for page in pages)
    return [(key, [node.attributes["href"] or "" for node in nodes]) for key, nodes in found]


def kind(reference: str) -> str:
    """Return by what a reference is resolved."""
    if reference.startswith("#"):
        return "places of the same page"
    return (
        "resolved as they stand" if NORMAL_REFERENCE.fullmatch(reference) else "read by the parser, or of other schemes"
    )


def seconds(pages: list[tuple[str, list[str]]]) -> float:
    """Return the CPU time of resolving all references."""
    began = time.process_time()
    for url, given in pages:
        resolve = BaseUrl(url).resolve
        for reference in given:
            resolve(reference)
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", type=int, default=1, help="take one page of so many (%(default)s: all)")
    add_output(parser)
    args = parser.parse_args()

    pages = references(args.part)
    kinds = Counter(kind(reference) for _, given in pages for reference in given)
    taken = min(seconds(pages) for _ in range(RUNS))
    result = Result("references", [real_html().what])
    rows: list[list[str | float | None]] = [[name, count, count / kinds.total()] for name, count in kinds.most_common()]
    result.tables = [
        Table(f"References of {len(pages):,} pages", ("", "references", "share"), rows),
        Table("Time", ("", "microseconds a reference"), [["all references", 1e6 * taken / kinds.total()]]),
    ]
    publish(result, args)


if __name__ == "__main__":
    main()
