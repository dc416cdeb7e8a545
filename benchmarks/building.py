"""How a tree that ``scrapy corpus build`` made of ../shared/corpora/real-web agrees with ../shared/clueweb22-real.

    python -m benchmarks.building [--tree DIR] [--jobs N] [--out FOLDER]

Builds the tree first if DIR has none: some 6 minutes of processor time, nearly all of it trafilatura. Pages are found
under their canonical links too, as in the reference; a second tree, for its link targets only, does without. Tells what
the build took, the shares of pages, matched by URL, with the same text and with the same link targets, and for those
that differ, what differs.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.results import Result, Table, add_output, publish
from simulate.build import build_tree
from simulate.build.plan import BuildOptions
from simulate.clueweb22.corpus import ClueWeb22Corpus
from simulate.warcs.corpus import WarcCorpus

SHARED = Path(__file__).resolve().parents[2] / "shared"
SOURCE, REFERENCE = SHARED / "corpora/real-web", SHARED / "clueweb22-real"
_EXAMPLES = 20


class BuiltPage(NamedTuple):
    """What is compared of a page; targets are URLs of pages in the tree, since ids differ from tree to tree."""

    text: str
    targets: frozenset[str]


def pages(root: Path) -> dict[str, BuiltPage]:
    """The pages of a tree by URL."""
    corpus = ClueWeb22Corpus(root)
    urls = {key: corpus.url(key) for key in corpus.keys()}
    return {
        url: BuiltPage(
            corpus.text(key), frozenset(urls[link.key] for link in corpus.outlinks(key) if link.key is not None)
        )
        for key, url in urls.items()
    }


def differences(built: dict[str, BuiltPage], reference: dict[str, BuiltPage]) -> Iterator[tuple[str, str]]:
    """What differs in the pages that both have, by URL."""
    for url in sorted(built.keys() & reference.keys()):
        ours, theirs = built[url], reference[url]
        if ours.text != theirs.text:
            yield url, _difference_of_texts(ours.text, theirs.text)
        if ours.targets != theirs.targets:
            yield url, f"targets: {len(ours.targets - theirs.targets)} more, {len(theirs.targets - ours.targets)} less"


def _difference_of_texts(ours: str, theirs: str) -> str:
    if not (ours and theirs):
        return f"text: only {'the built tree' if ours else 'the reference'} has one"
    return "text: differs in blanks only" if ours.split() == theirs.split() else "text: differs"


def build(tree: Path, jobs: int, *, extractor: str, canonical_links: bool) -> Table:
    """Build a tree and return what it took."""
    options = BuildOptions(extractor, False, time_limit=30.0)
    with tempfile.TemporaryDirectory() as index:
        source = WarcCorpus(SOURCE, Path(index), canonical_links)
        started = time.perf_counter()
        build_tree(source, tree, options, jobs=jobs)
    wall = time.perf_counter() - started
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    cpu = sum(usage.ru_utime + usage.ru_stime for usage in (own, children))
    columns = ["", "processes", "wall s", "CPU s", "MiB, main process", "MiB, largest other"]
    return Table("Build", columns, [[extractor, jobs, wall, cpu, own.ru_maxrss >> 10, children.ru_maxrss >> 10]])


def main() -> None:
    parser = argparse.ArgumentParser(description="Agreement of a built tree with ../shared/clueweb22-real.")
    parser.add_argument("--tree", type=Path, help="a finished build, or where to build (default: a temporary folder)")
    parser.add_argument("--jobs", type=int, default=2)
    add_output(parser)
    options = parser.parse_args()
    took = []  # before other trees are read, since children begin with the memory of this process
    with tempfile.TemporaryDirectory() as temporary:
        tree, other = options.tree or Path(temporary, "tree"), Path(temporary, "other")
        if not tree.exists():
            took = [build(tree, options.jobs, extractor="trafilatura", canonical_links=True)]
        build(other, options.jobs, extractor="resiliparse", canonical_links=False)
        built, without = pages(tree), pages(other)
    result, found = compare(built, without, pages(REFERENCE))
    result.tables += took
    publish(result, options)
    for url, what in found[:: max(1, len(found) // _EXAMPLES)]:
        print(f"  {url}  {what}")


def compare(
    built: dict[str, BuiltPage], without: dict[str, BuiltPage], reference: dict[str, BuiltPage]
) -> tuple[Result, list[tuple[str, str]]]:
    """Return how far a tree, and one without canonical links, agree with the reference, and what differs."""
    found = list(differences(built, reference))
    differing = {
        "text": sum(what.startswith("text") for _, what in found),
        "link targets": sum(what.startswith("targets") for _, what in found),
        "link targets without canonical links": sum(
            without[url].targets != page.targets for url, page in reference.items() if url in without
        ),
    }
    both = len(built.keys() & reference.keys())
    links = [sum(len(page.targets) for page in tree.values()) for tree in (built, reference)]
    data = f"{len(built):,} pages built, {len(reference):,} in ../shared/clueweb22-real, {both:,} in both"
    same = Table("Same", ["", "share", "pages"], [[what, 1 - n / both, both - n] for what, n in differing.items()])
    counts = Counter(what for _, what in found).most_common(10)
    note = f"Links to other pages: {links[0]:,} in the built tree, {links[1]:,} in the reference."
    return Result("building", [data], [same, Table("Differences", ["", "pages"], counts)], notes=[note]), found


if __name__ == "__main__":
    main()
