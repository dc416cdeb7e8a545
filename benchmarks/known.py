"""Known URLs on disk: bytes an entry, false positives, look-ups a CPU second, at 10^8; against pybloom-live. And how
many new good pages are in reach with KNOWN_URLS and KNOWN_LINKS.

    python -m benchmarks.known [--size 100M] [--draws N] [--links-only] [--scratch FOLDER] [--out FOLDER]

The set is of generated fingerprints, as numpy draws them: what BLAKE2b gives for URLs cannot be told from them, and
hashing is measured apart. It is written by what ``scrapy corpus known`` writes with, and read as a crawl reads it.
Looked up are fingerprints of the set, and others; rates are by own CPU time. False positives are counted among as many
others as the set has entries, by numpy on the columns of the set.

The peers hold 10^6 URLs: a Bloom filter of pybloom-live with 1e-4 false positives, and Python's own set; the look-ups
are of URLs, with the hashing. Figures for 10^9 are extrapolated: bytes an entry and false positives by the layout,
times in proportion.

Links: ../shared/clueweb22-real, scored by ../shared/scorers/prose.bin. In each draw all pages of a random half of the
hosts, or a random half of all pages, are known. Crawls from 100 random seeds by `parent_mean`, n = 100, go on until the
frontier is empty. Counted are the pages of the best tenth that were crawled and are not known. Memory is what the part
keeps for known pages without a score that wait in a crawl without JOBDIR, by tracemalloc.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import resource
import shutil
import statistics
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from pybloom_live import BloomFilter

from benchmarks.frontier import number
from benchmarks.policies import REAL, REAL_MODEL, SEEDS
from benchmarks.policy_webs import MemoryWeb, RememberedScores, open_web
from benchmarks.results import Figure, Result, Table, add_output, publish
from crawl4llm.base.crawl_log import read_log
from crawl4llm.base.pages import PageRecord
from crawl4llm.base.sorted_file import HashTable, SortedFile, known, start_bits, starts_of
from crawl4llm.base.spread import Spread
from crawl4llm.base.urls import host_of
from crawl4llm.crawl.opening import open_crawl
from crawl4llm.crawl.page_writer import CrawlLog
from crawl4llm.frontier import Entry
from crawl4llm.frontier.memory import MemoryVisited
from crawl4llm.frontier.opening import memory_frontier
from crawl4llm.options import Options
from crawl4llm.parts import open_parts
from crawl4llm.parts.known_links.file import CLUEWEB22, KnownLinks, links_record, scheme_of
from crawl4llm.parts.known_links.work import KnownLinksPart
from crawl4llm.parts.known_urls.work import URL_SCHEME, URLS, url_fingerprint
from crawl4llm.policies import Candidate, CrawledPage, load_policy
from crawl4llm.scoring.rating import PageRater
from crawl4llm.scoring.workers import PageWorkers, rate_by_key
from crawl4llm.tools._known_files import URL, LinkedPage, LinkSpread, write_links, write_urls
from crawl4llm.warc import NullArchive

T = TypeVar("T")

BILLION = 1_000_000_000
MILLION = 1_000_000
ASKED = MILLION
PIECE = 10 * MILLION
ERROR_RATE = 1e-4


def drawn(count: int, seed: int) -> Iterator[np.ndarray[Any, np.dtype[np.uint64]]]:
    """Fingerprints, by pieces."""
    generator = np.random.Generator(np.random.PCG64(seed))
    for start in range(0, count, PIECE):
        yield generator.integers(0, 1 << 64, min(PIECE, count - start), dtype=np.uint64)


def timed(work: Callable[..., T], *args: Any) -> tuple[T, float]:
    """What some work returns, and its CPU seconds in this process."""
    began = time.process_time()
    return work(*args), time.process_time() - began


def spread_all(spread: Spread, count: int) -> None:
    for piece in drawn(count, 0):
        spread.add(piece)


def found(known: Container[Any], asked: Iterable[Any]) -> int:
    return sum(one in known for one in asked)


def taken_for_known(urls: SortedFile, count: int) -> int:
    """How many of so many others would be found: by the columns of the set, all at once."""
    starts, entries = (np.concatenate([*map(np.asarray, urls.pieces(name))]) for name in (starts_of(URLS), URLS))
    bits = (len(starts) - 1).bit_length() - 1
    firsts = np.repeat(np.arange(1 << bits, dtype=np.uint64), np.diff(starts).astype(np.int64))
    table = firsts << np.uint64(32) | entries
    hits = 0
    for piece in drawn(count, 2):
        asked = np.sort(piece >> np.uint64(32 - bits))
        places = np.minimum(np.searchsorted(table, asked), len(table) - 1)
        hits += int((table[places] == asked).sum())
    return hits


def measure(size: int, scratch: Path, result: Result) -> None:
    """Write a set of one size, and look things up in it."""
    path = scratch / "urls.known"
    spread = Spread(scratch / "spread", URL)
    began = time.monotonic()
    _, making = timed(spread_all, spread, size)
    _, writing = timed(write_urls, spread, scratch, path)
    made = time.monotonic() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    began = time.monotonic()
    urls = SortedFile(path, known(URLS), URL_SCHEME, "--scratch")
    opening = time.monotonic() - began
    fingerprints = HashTable(urls, URLS)
    inside = next(drawn(ASKED, 0)).tolist()
    outside = next(drawn(ASKED, 1)).tolist()
    right, hits = timed(found, fingerprints, inside)
    _, misses = timed(found, fingerprints, outside)
    assert right == ASKED
    seen = taken_for_known(urls, size)
    bytes_each = path.stat().st_size / len(urls)
    rows: list[list[str | float | None]] = [
        ["entries", float(len(urls)), float(BILLION)],
        ["bytes an entry", bytes_each, 4 + 8 * (1 << start_bits(BILLION)) / BILLION],
        ["false positives, by the layout", fingerprints.error_rate, BILLION / 2.0 ** (start_bits(BILLION) + 32)],
        [f"false positives expected, of {size:,}", fingerprints.error_rate * size, None],
        [f"false positives seen, of {size:,}", float(seen), None],
        ["look-ups of entries a CPU second", ASKED / hits, None],
        ["look-ups of others a CPU second", ASKED / misses, None],
        ["seconds to spread, CPU", making, making * BILLION / size],
        ["seconds to sort and write, CPU", writing, writing * BILLION / size],
        ["seconds to make, wall", made, made * BILLION / size],
        ["seconds to open, all of it read", opening, opening * BILLION / size],
        ["memory while it is made, MB, peak", memory / 1e6, None],
    ]
    result.tables.append(Table("A set of known URLs", ["", f"{size:,}", "10^9, extrapolated"], rows))
    result.figures += [
        Figure(f"false positives, of {size:,}", seen / size, ERROR_RATE),
        Figure("bytes an entry", bytes_each, 8),
    ]


def compare(scratch: Path, result: Result) -> None:
    """Look up URLs in ours and in the peers, a million in each."""
    urls = [
        f"https://host{one % 9973}.example/path/{one}/page-{one * 7919 % MILLION}.html" for one in range(2 * MILLION)
    ]
    inside, outside = urls[:MILLION], urls[MILLION:]
    path = scratch / "million.known"
    spread = Spread(scratch / "million", URL)
    spread.add(np.fromiter(map(url_fingerprint, inside), dtype=URL))
    write_urls(spread, scratch, path)
    ours = HashTable(SortedFile(path, known(URLS), URL_SCHEME, "--scratch"), URLS)
    bloom = BloomFilter(MILLION, ERROR_RATE)
    for url in inside:
        bloom.add(url)
    python = set(inside)

    def in_ours(asked: list[str]) -> int:
        return sum(url_fingerprint(url) in ours for url in asked)

    rows: list[list[str | float | None]] = []
    seconds: dict[str, float] = {}
    for name, look_up, size in (
        ("ours", in_ours, float(path.stat().st_size)),
        ("pybloom-live, 1e-4", lambda asked: found(bloom, asked), len(bloom.bitarray) / 8),
        ("set of Python", lambda asked: found(python, asked), sys.getsizeof(python) + sum(map(sys.getsizeof, python))),
    ):
        (hits, known_seconds), (wrong, other_seconds) = timed(look_up, inside), timed(look_up, outside)
        spent = (known_seconds, other_seconds)
        seconds[name] = sum(spent)
        assert hits == MILLION
        rows.append(
            [name, *(MILLION / one for one in spent), wrong / MILLION, size / MILLION, seconds["ours"] / sum(spent)]
        )
    columns = ["10^6 URLs", "known/CPU s", "others/CPU s", "false positives", "bytes each", "time, ours / peer"]
    result.tables.append(Table("Look-ups of URLs, with their hashing and normal form", columns, rows))
    result.figures.append(
        Figure("time of look-ups, ours / pybloom-live", seconds["ours"] / seconds["pybloom-live, 1e-4"], 1)
    )


# -- links --------------------------------------------------------------------------------------------------------

NONE, OF_URLS, OF_LINKS = "nothing", "KNOWN_URLS", "KNOWN_LINKS"
MEMORY_PAGES = 200_000
MOST_MEMORY = 200


def write_file(to: Path, web: MemoryWeb, keys: Collection[str], scores: Iterable[tuple[str, float]]) -> None:
    """Write the file of known links for some pages of a web."""
    with tempfile.TemporaryDirectory() as folder:
        spread = LinkSpread(Path(folder) / "links")
        pages = (PageRecord(key, web.page(key).url, outlinks=web.outlinks(key)) for key in sorted(keys))
        spread.add([LinkedPage(one.key, 0, links_record(one, follows=True, by_url=False) or b"") for one in pages])
        spread.add_scores(scores)
        write_links(spread, scheme_of(CLUEWEB22), Path(folder), to)


def crawled_with(
    web: MemoryWeb, scorer: RememberedScores, seeds: Sequence[str], folder: Path, **given: Any
) -> set[str]:
    """Return the pages that a crawl to the end of the frontier has crawled."""
    options = Options(url_policy="parent_mean", crawl_max_pages=len(web), crawl_batch_size=100, **given)
    workers = PageWorkers(PageRater(web, scorer, extractor=None), processes=0, time_limit=60.0)
    folder.mkdir()

    async def run() -> None:
        crawl = open_crawl(
            options,
            policy=load_policy(options.url_policy)(workers, options),
            rate=lambda pages: rate_by_key(workers, pages),
            frontier=memory_frontier(),
            visited=MemoryVisited(),
            archive=NullArchive(),
            log=(log := CrawlLog(folder)),
            provenance={},
            parts=open_parts(options),
        )
        await crawl.begin(seeds)
        while not crawl.finished:
            for lease in crawl.dequeue():
                crawl.fetched(lease, web.page(lease.entry.key), 200)
            while crawl.can_advance:
                await crawl.advance()
        log.close()

    asyncio.run(run())
    return {str(line["id"]) for line in read_log(folder / "crawl.jsonl")}


def measure_reach(draws: int, scratch: Path, result: Result) -> None:
    """Count new good pages in reach with known pages, without them, and with their links."""
    web, scorer = open_web("whole", REAL), RememberedScores(REAL_MODEL)
    oracle, hosts, keys = web.oracle(scorer), sorted(web.hosts()), sorted(web.keys())
    least = 1.0
    for name in ("half of the hosts", "half of the pages"):
        rows: dict[str, list[float]] = {NONE: [], OF_URLS: [], OF_LINKS: [], f"{OF_LINKS}, without scores": []}
        for draw in range(draws):
            chance, seeds = random.Random(draw), web.sample(SEEDS, draw)
            half = set(chance.sample(hosts, len(hosts) // 2))
            some = set(chance.sample(keys, len(keys) // 2))
            known = {key for key in keys if host_of(web.page(key).url) in half} if name.endswith("hosts") else some
            folder = scratch / f"{name} {draw}"
            folder.mkdir()
            (folder / "urls.txt").write_text("".join(f"{web.page(key).url}\n" for key in sorted(known)))
            scores = [(key, scorer.score([web.text(key)])[0]) for key in sorted(known) if web.text(key).strip()]
            write_file(folder / "links", web, known, scores)
            write_file(folder / "unscored", web, known, ())
            given: dict[str, dict[str, Any]] = {
                NONE: {},
                OF_URLS: {"known_urls": (str(folder / "urls.txt"),)},
                OF_LINKS: {"known_links": str(folder / "links")},
                f"{OF_LINKS}, without scores": {"known_links": str(folder / "unscored")},
            }
            for what, settings in given.items():
                found = crawled_with(web, scorer, seeds, folder / what, **settings)
                rows[what].append(float(len(found & oracle - known)))
        least = min(
            [least, *(with_links / alone for with_links, alone in zip(rows[OF_LINKS], rows[NONE], strict=True))]
        )
        cells: list[list[str | float | None]] = [
            [what, statistics.mean(found), min(found), max(found)] for what, found in rows.items()
        ]
        columns = ["new good pages in reach", "mean", "least", "most"]
        result.tables.append(Table(f"{len(web):,} pages, {name} known, {draws} draws", columns, cells))
    result.figures.append(Figure("new good pages in reach, KNOWN_LINKS / nothing known", least, 1, least=True))


def measure_memory(scratch: Path, result: Result) -> None:
    """Measure what the part keeps for known pages that wait, and what a look-up takes."""
    keys = [f"https://host{one % 9973}.example/path/{one}/page.html" for one in range(MEMORY_PAGES)]
    record = links_record(PageRecord("https://a.example/", "", outlinks=[]), follows=True, by_url=True) or b""
    spread = LinkSpread(scratch / "spread-links")
    for start in range(0, MEMORY_PAGES, 1000):
        spread.add([LinkedPage(key, 0, record) for key in keys[start : start + 1000]])
    write_links(spread, scheme_of(None), scratch, scratch / "links.known")
    part = KnownLinksPart(Options(known_links=str(scratch / "links.known")))
    part.begin()
    sum(part.answers(key) is not None for key in keys)  # the table keeps the pieces of itself that were read
    parents = [
        CrawledPage(Entry(key, key, 0.5, 1, None), 0.1 + place / 1e6, []) for place, key in enumerate(keys[::40])
    ]
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for place, parent in enumerate(parents):
        part.found(parent, [Candidate(key, key, 2, parent.entry.key) for key in keys[40 * place : 40 * place + 40]])
    kept = (tracemalloc.get_traced_memory()[0] - before) / MEMORY_PAGES
    tracemalloc.stop()
    file = KnownLinks(scratch / "links.known")
    _, hits = timed(lambda: [file.find(key) for key in keys[::4]])
    _, misses = timed(lambda: [file.find(f"{key}?") for key in keys[::4]])
    rows: list[list[str | float | None]] = [
        ["bytes of memory a page that waits", kept],
        ["look-ups of entries a CPU second", MEMORY_PAGES / 4 / hits],
        ["look-ups of others a CPU second", MEMORY_PAGES / 4 / misses],
    ]
    result.tables.append(Table(f"Known links, {MEMORY_PAGES:,} pages without a score", ["", "links"], rows))
    result.figures.append(Figure("bytes of memory a known page reached", kept, MOST_MEMORY))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=number, default=100 * MILLION, help="fingerprints, such as 10M (%(default)s)")
    parser.add_argument(
        "--scratch", default=tempfile.gettempdir(), help="where to work: 20 bytes an entry (%(default)s)"
    )
    parser.add_argument("--draws", type=int, default=5, help="draws of known pages (%(default)s)")
    parser.add_argument("--links-only", action="store_true", help="measure only known links")
    add_output(parser)
    args = parser.parse_args()
    began = time.monotonic()
    of_urls = [] if args.links_only else [f"{args.size:,} generated fingerprints; {2 * MILLION:,} generated URLs"]
    result = Result("known", [*of_urls, f"{args.draws} draws of known pages, each with {SEEDS} random seeds"])
    scratch = Path(tempfile.mkdtemp(dir=args.scratch))
    try:
        if not args.links_only:
            measure(args.size, scratch, result)
            compare(scratch, result)
        measure_reach(args.draws, scratch, result)
        measure_memory(scratch, result)
    finally:
        shutil.rmtree(scratch)
    result.notes.append(f"It took {time.monotonic() - began:.0f} seconds.")
    publish(result, args)


if __name__ == "__main__":
    main()
