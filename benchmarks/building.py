"""How a tree that ``scrapy corpus build`` made of ../shared/corpora/real-web agrees with ../shared/clueweb22-real.

    python -m benchmarks.building [--tree DIR] [--jobs N]

Builds the tree first where DIR has none: some 6 minutes of processor time, nearly all of it trafilatura. Pages are
found under their canonical links too, as in the reference. Prints what the build took, the shares of pages, matched by
URL, with the same text and with the same link targets, and for those that differ, what differs.
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

from simulate.build.chunks import TextOptions
from simulate.build.pool import BuildOptions
from simulate.build.tree import build_tree
from simulate.clueweb22.corpus import ClueWeb22Corpus
from simulate.warcs.corpus import WarcCorpus
from simulate.warcs.index_build import IndexOptions

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


def build(tree: Path, jobs: int) -> None:
    """Build the tree and print what it took."""
    options = BuildOptions(TextOptions("trafilatura", always_extract=False), "2022-08-01T00:00:00Z", time_limit=30.0)
    with tempfile.TemporaryDirectory() as index:
        source = WarcCorpus(SOURCE, Path(index), IndexOptions(canonical_links=True))
        started = time.perf_counter()
        summary = build_tree(source, tree, options, jobs=jobs)
    wall = time.perf_counter() - started
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    cpu = sum(usage.ru_utime + usage.ru_stime for usage in (own, children))
    print(
        f"build: {wall:.0f} s with {jobs} processes, {cpu:.0f} CPU seconds; resident at most: "
        f"{own.ru_maxrss >> 10} MiB, and {children.ru_maxrss >> 10} MiB a process"
    )
    print(f"counted: {dict(summary)}")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description="Agreement of a built tree with ../shared/clueweb22-real.")
    parser.add_argument("--tree", type=Path, help="a finished build, or where to build (default: a temporary folder)")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        tree = options.tree or Path(temporary) / "tree"
        if not tree.exists():
            build(tree, options.jobs)
        built = pages(tree)
    _compare(built, pages(REFERENCE))


def _compare(built: dict[str, BuiltPage], reference: dict[str, BuiltPage]) -> None:
    found = list(differences(built, reference))
    shared = len(built.keys() & reference.keys())
    print(f"pages: {len(built)} built, {len(reference)} in the reference, {shared} in both")
    for name, tree in (("built", built), ("reference", reference)):
        print(f"links to other pages, {name}: {sum(len(page.targets) for page in tree.values())}")
    for part in ("text", "targets"):
        differing = sum(what.startswith(part) for _, what in found)
        print(f"same {part}: {1 - differing / shared:.4f} ({differing} pages differ)")
    for what, count in Counter(what for _, what in found).most_common(10):
        print(f"{count:6}  {what}")
    for url, what in found[:: max(1, len(found) // _EXAMPLES)]:
        print(f"  {url}  {what}")


if __name__ == "__main__":
    main()
