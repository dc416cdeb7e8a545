"""How many new quality documents are found by a policy that learns where novelty is.

    python -m benchmarks.novelty [--hosts whole,tuning,reporting] [--draws N] [--processes N] [--out DIR]

Crawls ../shared/clueweb22-real, scored by ../shared/scorers/prose.bin. In each draw all texts of a random half of the
hosts are known; their URLs are not, as if they were mirrors. `link` with KNOWN_TEXTS is compared with `link` that is
told nothing of them, and with `random`: documents of the best tenth by influence whose texts are not known, crawled by
the time that 10% and 25% of the pages in reach of 100 random seeds are fetched; n = 100. A second table has what near
duplicates within the crawl would make of it, if the policy learnt from them alone (it does not: there is no gain):
documents of the best tenth that are like no earlier page's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import random
import statistics
import tempfile
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.policies import REAL, REAL_MODEL, SEEDS
from benchmarks.policy_webs import MemoryWeb, RememberedScores, half_of, open_web
from benchmarks.results import Figure, Result, Table, add_output, publish
from crawl4llm.base.crawl_log import CrawlLog
from crawl4llm.base.processes import cores
from crawl4llm.base.urls import host_of
from crawl4llm.crawl.opening import open_crawl
from crawl4llm.frontier.memory import MemoryVisited
from crawl4llm.frontier.opening import memory_frontier
from crawl4llm.options import Options
from crawl4llm.parts import Parts
from crawl4llm.parts.known_texts.work import KnownTextsPart
from crawl4llm.parts.near_duplicates.work import NearDuplicatesPart
from crawl4llm.policies import Policy, load_policy
from crawl4llm.policies._novelty import Novelty
from crawl4llm.scoring.rating import PageRater
from crawl4llm.scoring.signatures import SIGNATURE, are_alike, signature_of
from crawl4llm.scoring.workers import PageWorkers, rate_by_key
from crawl4llm.warc import NullArchive

SHARES = (0.10, 0.25)
LINK, PLAIN, RANDOM = "link", "link, told nothing", "random"
WANTED = {PLAIN: (1.5, 1.2), RANDOM: (5.0, None)}
"""How many times the new quality documents of others `link` is to find, at each of SHARES."""


@dataclass(frozen=True)
class Known:
    """Known texts in memory, as KnownTexts has them in a file; here it is known beforehand which pages have one."""

    texts: frozenset[str]
    identity = "memory"

    def knows(self, text: str, signature: bytes) -> bool:
        return text in self.texts


class Subject(NamedTuple):
    """A web, and what all crawls of it share."""

    web: MemoryWeb
    scorer: RememberedScores
    oracle: set[str]
    known: Sequence[Known]
    """By draw."""


_subjects: dict[str, Subject] = {}
"""Read before the processes are forked, which share them."""


def known_texts(web: MemoryWeb, hosts: Collection[str], signatures: dict[str, bytes]) -> Known:
    """All texts of a web that are the same as, or nearly, one of those hosts."""
    texts: set[str] = set()
    others: set[str] = set()
    for key in web.keys():
        page = web.page(key)
        (texts if host_of(page.url) in hosts else others).add(page.text or "")
    by_checksum: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for signature in filter(None, (signatures[text] for text in sorted(texts))):
        first, second, *checksums = SIGNATURE.unpack(signature)
        for band, checksum in enumerate(checksums):
            by_checksum.setdefault((band, checksum), []).append((first, second))

    def nearly(signature: bytes) -> bool:
        first, second, *checksums = SIGNATURE.unpack(signature)
        found = (by_checksum.get(place, ()) for place in enumerate(checksums))
        return any(are_alike(first, second, *other) for some in found for other in some)

    near = {text for text in others - texts if signatures[text] and nearly(signatures[text])}
    return Known(frozenset((texts | near) - {text for text in texts if not text.strip()}))


def crawl(hosts: str, policy: str, draw: int, *, near: bool) -> tuple[int, ...]:
    """One crawl; returns new quality documents at each of SHARES. ``near``: nothing is known, and pages are compared
    with earlier ones instead."""
    subject = _subjects[hosts]
    web = subject.web
    seeds = web.sample(SEEDS, draw)
    reachable = len(web.reachable(seeds))
    options = Options(
        url_policy=policy.partition(",")[0],
        crawl_max_pages=int(SHARES[-1] * reachable),
        crawl_seed=draw,
        near_duplicates="follow" if near else "off",
        known_texts=None if near else "in memory",
    )
    known = None if near else subject.known[draw]
    rater = PageRater(web, subject.scorer, extractor=None, known_texts=known)
    workers = PageWorkers(rater, processes=0, time_limit=60.0)
    learns = policy == LINK
    ordering: Policy = load_policy(options.url_policy)(workers, options)
    if learns:
        ordering = Novelty(ordering)
    with tempfile.TemporaryDirectory() as folder:
        lines = asyncio.run(_run(subject, options, ordering, workers, seeds, Path(folder)))
    is_new = [
        line["id"] in subject.oracle and line.get("near_duplicate_of") is None and not line.get("known_text")
        for line in lines
    ]
    return tuple(sum(is_new[: int(share * reachable)]) for share in SHARES)


async def _run(
    subject: Subject,
    options: Options,
    policy: Any,
    workers: PageWorkers[PageRater],
    seeds: Sequence[str],
    folder: Path,
) -> list[dict[str, Any]]:
    """The crawl log of a crawl."""
    known = workers.rater.known_texts
    crawling = open_crawl(
        options,
        policy=policy,
        rate=partial(rate_by_key, workers, signature=True),
        frontier=memory_frontier(),
        visited=MemoryVisited(),
        archive=NullArchive(),
        log=(log := CrawlLog(folder)),
        provenance={},
        parts=Parts([NearDuplicatesPart(options) if known is None else KnownTextsPart(options, known)]),
    )
    await crawling.begin(seeds)
    while not crawling.finished:
        for lease in crawling.dequeue():
            crawling.fetched(lease, subject.web.page(lease.entry.key), 200)
        while crawling.can_advance:
            await crawling.advance()
    log.close()
    return [json.loads(line) for line in (folder / "crawl.jsonl").read_text().splitlines()]


def prepare(names: Iterable[str], draws: int) -> None:
    """Read the webs, score their pages, and draw whose texts are known."""
    whole, scores = open_web("whole", REAL), RememberedScores(REAL_MODEL)
    signatures = {text: signature_of(text) for text in {whole.text(key) for key in whole.keys()}}
    for name in names:
        web = whole if name == "whole" else whole.of_hosts(name, partial(_is_of, _HALVES[name]))
        hosts = sorted(web.hosts())
        drawn = [random.Random(draw).sample(hosts, len(hosts) // 2) for draw in range(draws)]
        known = [known_texts(web, set(half), signatures) for half in drawn]
        _subjects[name] = Subject(web, scores, web.oracle(scores), known)


def _is_of(half: int, host: str) -> bool:
    return half_of(host) == half


_HALVES = {"tuning": 0, "reporting": 1}
Found = dict[str, list[tuple[int, ...]]]
"""By policy, new quality documents at each of SHARES, draw by draw."""


def table(title: str, found: Found) -> Table:
    """Return means and standard deviations of what was found, and of how many times that of others `link` found."""
    rows: list[list[str | float | None]] = []
    for policy, draws in found.items():
        row: list[str | float | None] = [policy]
        for place in range(len(SHARES)):
            counts = [counted[place] for counted in draws]
            times = ratios(found, policy, place)
            row += [_spread(counts, 0), "" if policy == LINK else _spread(times, 2)]
        rows.append(row)
    columns = [part for share in SHARES for part in (f"at {share:.0%}", "link is times that")]
    return Table(title, ["new quality documents", *columns], rows)


def ratios(found: Found, other: str, place: int) -> list[float]:
    """Return how many times the documents of another policy `link` found, draw by draw."""
    return [ours[place] / max(theirs[place], 1) for ours, theirs in zip(found[LINK], found[other], strict=True)]


def _spread(values: Sequence[float], digits: int) -> str:
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.{digits}f}±{spread:.{digits}f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", default="whole", help="some of whole, tuning, reporting (default: %(default)s)")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--processes", type=int, default=cores())
    add_output(parser)
    args = parser.parse_args()
    names = args.hosts.split(",")
    prepare(names, args.draws)
    result = Result("novelty", [f"{args.draws} draws of a half of the hosts, each with {SEEDS} random seeds, n = 100"])
    with ProcessPoolExecutor(args.processes, multiprocessing.get_context("fork")) as pool:
        crawls = {
            (name, near, policy): [pool.submit(crawl, name, policy, draw, near=near) for draw in range(args.draws)]
            for name in names
            for near in (False, True)
            for policy in (LINK, PLAIN, RANDOM)
        }
        for name in names:
            pages = f"{name}: {len(_subjects[name].web):,} pages of {len(_subjects[name].web.hosts())} hosts"
            for near, what in ((False, "half of them known"), (True, "near duplicates of earlier pages alone")):
                found = {
                    policy: [future.result() for future in crawls[name, near, policy]]
                    for policy in (LINK, PLAIN, RANDOM)
                }
                result.tables.append(table(f"{pages}, {what}", found))
                if name == "whole" and not near:
                    result.figures += [
                        Figure(
                            f"times the new quality documents of {other} at {SHARES[place]:.0%}",
                            statistics.mean(ratios(found, other, place)),
                            least,
                            least=True,
                        )
                        for other, wanted in WANTED.items()
                        for place, least in enumerate(wanted)
                        if least is not None
                    ]
    publish(result, args)


if __name__ == "__main__":
    main()
