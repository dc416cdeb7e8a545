"""How many new quality documents are found by a policy that learns where new texts are.

    python -m benchmarks.novelty [--tuning] [--webs NAME,...] [--scorers NAME,...] [--known KIND,...] [--draws N]
                                 [--processes N] [--out DIR]

Crawls parts of ../shared/clueweb22-real by several scorers: webs and scorers are those of benchmarks.link, so what is
tuned (``--tuning``) is not what is reported. In each draw some texts are known; their URLs are not, as if they were
mirrors. ``hosts``: all texts of a random half of the hosts. ``pages``: those of a random half of all pages, spread over
all hosts. Nearly equal texts are known too, but not with ``exact pages``. With ``nothing`` and ``everything`` the crawl
should be the same as without KNOWN_TEXTS.

`link` with KNOWN_TEXTS is compared with `link` that is told nothing of them, and with `random`: documents of the best
tenth by influence whose texts are not known, crawled by the time that 10% and 25% of the pages in reach of 100 random
seeds are fetched; n = 100. A ratio is the mean over the draws, each draw by itself, with the 95% interval of that mean.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import multiprocessing
import random
import statistics
import tempfile
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.link import TUNING_WEBS, webs
from benchmarks.link_scorers import REPORTING, TUNING, scorer
from benchmarks.policies import REAL, SEEDS
from benchmarks.policy_webs import MemoryWeb, RememberedScores, half_of, open_web
from benchmarks.results import Figure, Result, Table, add_output, publish
from crawl4llm.base.processes import cores
from crawl4llm.base.urls import host_of
from crawl4llm.crawl.opening import open_crawl
from crawl4llm.crawl.page_writer import CrawlLog
from crawl4llm.frontier.memory import MemoryVisited
from crawl4llm.frontier.opening import memory_frontier
from crawl4llm.options import Options
from crawl4llm.parts import Parts
from crawl4llm.parts.known_texts.work import KnownTextsPart
from crawl4llm.policies import Policy, load_policy
from crawl4llm.policies._novelty import Novelty
from crawl4llm.scoring.rating import PageRater
from crawl4llm.scoring.signatures import SIGNATURE, are_alike, signature_of
from crawl4llm.scoring.workers import PageWorkers, rate_by_key
from crawl4llm.warc import NullArchive

SHARES = (0.10, 0.25)
LINK = "link"
PLAIN, RANDOM = OTHERS = ("link, told nothing", "random")
HOSTS, PAGES, EXACT, NOTHING, EVERYTHING = KINDS = ("hosts", "pages", "exact pages", "nothing", "everything")
REPORTED_WEBS = ("whole", "reporting")
WANTED = {HOSTS: (1.7, 1.2), PAGES: (0.97, 0.97), EXACT: (0.97, 0.97)}
"""How many times the new quality documents of a crawl without KNOWN_TEXTS are to be found at SHARES: the mean for whole
hosts, the lower end of its interval for spread pages."""
_TUNING_DRAWS = 1000
"""The first draw with --tuning."""
_T = 2.262
"""Student's t for the 95% interval of ten draws; others take it too."""


@dataclass(frozen=True)
class Known:
    """Known texts in memory, as KnownTexts has them in a file; here it is known beforehand which pages have one."""

    texts: frozenset[str]
    identity = "memory"

    def knows(self, text: str, signature: bytes) -> bool:
        return text in self.texts


class Subject(NamedTuple):
    """A web and a scorer, and what all crawls of them share."""

    web: MemoryWeb
    scorer: RememberedScores
    oracle: set[str]
    known: Mapping[tuple[str, int], Known]
    """By kind and draw."""


_subjects: dict[str, Subject] = {}
"""Read before the processes are forked, which share them."""


def known_texts(web: MemoryWeb, keys: Collection[str], signatures: Mapping[str, bytes]) -> Known:
    """All texts of a web that are the same as, or nearly, one of those pages."""
    texts: set[str] = set()
    others: set[str] = set()
    for key in web.keys():
        (texts if key in keys else others).add(web.text(key))
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


def draw_known(web: MemoryWeb, kind: str, draw: int, signatures: Mapping[str, bytes]) -> Known:
    """Draw which texts of a web are known."""
    drawn, keys = random.Random(draw), sorted(web.keys())
    if kind == HOSTS:
        hosts = sorted(web.hosts())
        half = set(drawn.sample(hosts, len(hosts) // 2))
        return known_texts(web, {key for key in keys if host_of(web.page(key).url) in half}, signatures)
    if kind in {PAGES, EXACT}:
        half = set(drawn.sample(keys, len(keys) // 2))
        return known_texts(web, half, signatures if kind == PAGES else dict.fromkeys(signatures, b""))
    return known_texts(web, keys if kind == EVERYTHING else (), signatures)


def crawl(name: str, policy: str, draw: int, kind: str) -> list[str]:
    """One crawl, to the last of SHARES; returns its pages in order. Only `link` is told what is known."""
    subject = _subjects[name]
    seeds = subject.web.sample(SEEDS, draw)
    told = policy == LINK
    options = Options(
        url_policy=policy.partition(",")[0],
        crawl_max_pages=int(SHARES[-1] * len(subject.web.reachable(seeds))),
        crawl_seed=draw,
        known_texts="in memory" if told else None,
    )
    rater = PageRater(subject.web, subject.scorer, extractor=None, known_texts=subject.known[kind, draw])
    workers = PageWorkers(rater, processes=0, time_limit=60.0)
    ordering: Policy = load_policy(options.url_policy)(workers, options)
    parts = Parts([KnownTextsPart(options, subject.known[kind, draw])] if told else [])
    with tempfile.TemporaryDirectory() as folder:
        log = CrawlLog(Path(folder))
        crawling = open_crawl(
            options,
            policy=Novelty(ordering) if told else ordering,
            rate=partial(rate_by_key, workers, signature=told),
            frontier=memory_frontier(),
            visited=MemoryVisited(),
            archive=NullArchive(),
            log=log,
            provenance={},
            parts=parts,
        )
        asyncio.run(_finish(crawling, subject.web, seeds))
        log.close()
        return [json.loads(line)["id"] for line in (Path(folder) / "crawl.jsonl").read_text().splitlines()]


async def _finish(crawling: Any, web: MemoryWeb, seeds: Sequence[str]) -> None:
    await crawling.begin(seeds)
    while not crawling.finished:
        for lease in crawling.dequeue():
            crawling.fetched(lease, web.page(lease.entry.key), 200)
        while crawling.can_advance:
            await crawling.advance()


def prepare(args: argparse.Namespace) -> None:
    """Read the webs, score their pages, and draw what is known."""
    whole = open_web("whole", REAL)
    signatures = {text: signature_of(text) for text in {whole.text(key) for key in whole.keys()}}
    with tempfile.TemporaryDirectory() as folder:
        others = whole.of_hosts("others", lambda host: half_of(host) == args.tuning)
        scorers = {name: scorer(name, others, Path(folder)) for name in args.scorers}
        for web in (whole if name == "whole" else next(webs([name], [])) for name in args.webs):
            known = {
                (kind, draw): draw_known(web, kind, draw, signatures) for kind in args.known for draw in args.drawn
            }
            for name, scores in scorers.items():
                _subjects[f"{web.title}, {name}"] = Subject(web, scores, web.oracle(scores), known)


# -- what is reported -------------------------------------------------------------------------------------------------


class Compared(NamedTuple):
    """What `link` found in a draw of what is known, and what another policy did."""

    ours: list[int]
    theirs: list[int]
    """New quality documents at each of SHARES."""
    same: bool
    """Whether both crawled the same pages in the same order, as far as `link` went."""


def compare(name: str, kind: str, draw: int, ours: Sequence[str], theirs: Sequence[str]) -> Compared:
    """Count what two crawls found."""
    subject = _subjects[name]
    texts = subject.known[kind, draw].texts
    new = {key for key in subject.oracle if subject.web.text(key) not in texts}
    reachable = len(subject.web.reachable(subject.web.sample(SEEDS, draw)))
    found, others = (
        [len(new.intersection(keys[: int(share * reachable)])) for share in SHARES] for keys in (ours, theirs)
    )
    return Compared(found, others, list(ours) == list(theirs[: len(ours)]))


def ratio(draws: Sequence[Compared], place: int) -> tuple[float, float]:
    """Return how many times the documents of the other policy `link` found at a mark, and half the width of the 95%
    interval."""
    ratios = [draw.ours[place] / max(draw.theirs[place], 1) for draw in draws]
    half = _T * statistics.stdev(ratios) / math.sqrt(len(ratios)) if len(ratios) > 1 else 0.0
    return statistics.fmean(ratios), half


def row(kind: str, found: Mapping[str, Sequence[Compared]]) -> list[str | float | None]:
    """Return a row of a web's table: what is found at each mark, and how many times what others find."""
    cells: list[str | float | None] = [kind]
    for place in range(len(SHARES)):
        cells.append(statistics.fmean(draw.ours[place] for draw in found[PLAIN]))
        for draws in found.values():
            mean, half = ratio(draws, place)
            cells.append(None if kind == EVERYTHING else f"{mean:.2f}±{half:.2f}")
    return [*cells, f"{sum(draw.same for draw in found[PLAIN])} of {len(found[PLAIN])}"]


def figures(name: str, kind: str, draws: Sequence[Compared]) -> list[Figure]:
    """Return the ratios that have a limit."""
    found = []
    for place, least in enumerate(WANTED.get(kind, ())):
        mean, half = ratio(draws, place)
        what = f"{name}, {kind} known: times the new quality documents at {SHARES[place]:.0%}"
        found.append(
            Figure(f"{what}, lower end", mean - half, least, "", True)
            if kind != HOSTS
            else Figure(what, mean, least, "", True)
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tuning", action="store_true", help="webs, scorers and draws for tuning, not the report's")
    for name, what in (("webs", "webs"), ("scorers", "scorers"), ("known", "kinds of what is known")):
        parser.add_argument(f"--{name}", type=lambda asked: asked.split(","), help=f"some of the {what} (default: all)")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--processes", type=int, default=cores())
    add_output(parser)
    args = parser.parse_args()
    args.webs = args.webs or (TUNING_WEBS if args.tuning else REPORTED_WEBS)
    args.scorers = args.scorers or (TUNING if args.tuning else REPORTING)
    args.known = args.known or KINDS
    args.drawn = [draw + _TUNING_DRAWS * args.tuning for draw in range(args.draws)]
    prepare(args)
    result = Result("novelty", [f"{args.draws} draws of what is known, each with {SEEDS} random seeds, n = 100"])
    columns = [part for share in SHARES for part in (f"at {share:.0%}", "of told nothing", "of random")]
    asked = [(name, LINK, draw, kind) for name in _subjects for draw in args.drawn for kind in args.known]
    asked += [(name, policy, draw, args.known[0]) for name in _subjects for draw in args.drawn for policy in OTHERS]
    with ProcessPoolExecutor(args.processes, multiprocessing.get_context("fork")) as pool:
        crawls = dict(zip(asked, pool.map(crawl, *zip(*asked, strict=True)), strict=True))
    for name, subject in _subjects.items():
        rows = []
        for kind in args.known:
            found = {
                other: [
                    compare(name, kind, draw, crawls[name, LINK, draw, kind], crawls[name, other, draw, args.known[0]])
                    for draw in args.drawn
                ]
                for other in OTHERS
            }
            rows.append(row(kind, found))
            result.figures += figures(name, kind, found[PLAIN])
        title = f"{name}: {len(subject.web):,} pages of {len(subject.web.hosts())} hosts"
        result.tables.append(Table(title, ["known", *columns, "same crawl"], rows))
    publish(result, args)


if __name__ == "__main__":
    main()
