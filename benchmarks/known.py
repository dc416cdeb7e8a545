"""Known URLs on disk: bytes an entry, false positives, look-ups a CPU second, at 10^8; against pybloom-live.

    python -m benchmarks.known [--size 100M] [--scratch FOLDER] [--out FOLDER]

The set is of generated fingerprints, as numpy draws them: what BLAKE2b gives for URLs cannot be told from them, and
hashing is measured apart. It is written by what ``scrapy corpus known`` writes with, and read as a crawl reads it.
Looked up are fingerprints of the set, and others; rates are by own CPU time. False positives are counted among as many
others as the set has entries, by numpy on the columns of the set.

The peers hold 10^6 URLs: a Bloom filter of pybloom-live with 1e-4 false positives, and Python's own set; the look-ups
are of URLs, with the hashing. Figures for 10^9 are extrapolated: bytes an entry and false positives by the layout,
times in proportion.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Container, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from pybloom_live import BloomFilter

from benchmarks.frontier import number
from benchmarks.results import Figure, Result, Table, add_output, publish
from crawl4llm.base.known_sets import Fingerprints, KnownSet, start_bits
from crawl4llm.parts.known_urls.work import URL_SCHEME, URLS, url_fingerprint
from crawl4llm.tools._known_files import URL, Spread, write_urls

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


def taken_for_known(entries: memoryview[int], starts: memoryview[int], count: int) -> int:
    """How many of so many others would be found: by the columns of the set, all at once."""
    ends = np.frombuffer(starts, dtype="<u8")
    bits = start_bits(len(entries))
    firsts = np.repeat(np.arange(1 << bits, dtype=np.uint64), np.diff(ends).astype(np.int64))
    table = firsts << np.uint64(32) | np.frombuffer(entries, dtype="<u4")
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
    known = KnownSet(path, URLS, URL_SCHEME, "--scratch")
    opening = time.monotonic() - began
    entries, starts = known.table(URLS)
    fingerprints = Fingerprints(entries, starts)
    inside = next(drawn(ASKED, 0)).tolist()
    outside = next(drawn(ASKED, 1)).tolist()
    right, hits = timed(found, fingerprints, inside)
    _, misses = timed(found, fingerprints, outside)
    assert right == ASKED
    seen = taken_for_known(entries, starts, size)
    bytes_each = path.stat().st_size / len(known)
    rows: list[list[str | float | None]] = [
        ["entries", float(len(known)), float(BILLION)],
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
    ours = Fingerprints(*KnownSet(path, URLS, URL_SCHEME, "--scratch").table(URLS))
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=number, default=100 * MILLION, help="fingerprints, such as 10M (%(default)s)")
    parser.add_argument(
        "--scratch", default=tempfile.gettempdir(), help="where to work: 20 bytes an entry (%(default)s)"
    )
    add_output(parser)
    args = parser.parse_args()
    began = time.monotonic()
    result = Result("known", [f"{args.size:,} generated fingerprints; {2 * MILLION:,} generated URLs"])
    scratch = Path(tempfile.mkdtemp(dir=args.scratch))
    try:
        measure(args.size, scratch, result)
        compare(scratch, result)
    finally:
        shutil.rmtree(scratch)
    result.notes.append(f"It took {time.monotonic() - began:.0f} seconds.")
    publish(result, args)


if __name__ == "__main__":
    main()
