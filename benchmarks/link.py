"""How near ``link`` comes to what could be known, over webs and scorers of several kinds, worst first.

    python -m benchmarks.link [--tuning] [--webs NAME,...] [--scorers NAME,...] [--archives RUN ...] [--seed-sets N]
                              [--keep FILE] [--out DIR]

What is tuned is not what is reported. ``--tuning`` takes draws of 25 hosts of one half of ../shared/clueweb22-real (by
a hash of the host's name), and scorers that report nothing. The report takes the other half; its documentation and its
lessons by themselves; two demo webs; and archives of live crawls, such as those of benchmarks.websoftware. It has three
scorers: ``prose.bin``, a model that ``scrapy trainscorer`` makes of the tuning half's lessons against the rest of it,
and the share of function words, which is no model. A demo web has its own.

Each web is crawled by each scorer from the same sets of random seeds, one for each 80 pages, 10 to 100, and n is as
many: with 100 a small web would end before a policy has learnt. A crawl takes half of the pages in reach. The other
policies are ``parent_mean``, ``bound``, and ``influence``, which looks ahead (by pages crawled). A share is what
``link`` finds above ``parent_mean`` by what the bound, or looking ahead, finds above it, pooled over the seed sets; a
gap of less than 0.05 has none. Intervals are 95%, by resampling the seed sets. ``--keep``
is a JSON file of what was crawled before. Only the crawls by ``link`` are done again.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from itertools import chain
from pathlib import Path

from scrapy.settings import Settings

from benchmarks import policies
from benchmarks.link_scorers import REPORTING, TUNING, is_lesson, scorer
from benchmarks.policies import REAL, SHARES, Recalls, Subject, crawl
from benchmarks.policy_webs import MemoryWeb, RememberedScores, half_of, open_web
from benchmarks.results import Figure, Result, Table, add_output, publish
from crawl4llm.base.errors import PageError
from crawl4llm.base.pages import Corpus
from crawl4llm.base.processes import cores
from crawl4llm.scoring.text import EXTRACTORS, extract_text
from crawl4llm.tools.evaluate.shares import BASE, BOUND, Closed, closed, interval, resampled
from simulate import data_dir, ensure_demo
from simulate.opening import open_corpus

DRAWS, DRAWN_HOSTS = 6, 25
DEMO_PAGES, DEMO_HOSTS = 20_000, 500
TUNING_WEBS = tuple(f"tuning{number}" for number in range(DRAWS))
REPORTED_WEBS = ("reporting", "documentation", "lessons", "demo5", "demo6")
"""Demo webs 1 to 3 served to tune; these did not."""
AHEAD, LINK = "influence", "link"
CRAWLED_BY = (LINK, BASE, AHEAD, BOUND)
EARLY, QUARTER = 1, 2
"""Places of marks in SHARES: 10%; 25%."""
_FOUND, _LOST = 0.5, 0.1
"""Shares of a host's oracle pages: of one that the bound finds, and of one that ``link`` drops."""

Crawls = dict[str, list[Recalls]]
"""By policy, a crawl for each set of seeds."""


def webs(names: Sequence[str], archives: Sequence[Path]) -> Iterator[MemoryWeb]:
    """Read the webs of some names, and those of archives, which are called by their folders."""
    whole = open_web("whole", REAL)
    hosts = sorted(host for host in whole.hosts() if half_of(host) == 0)
    for name in names:
        if name.startswith("demo"):
            seed = int(name.removeprefix("demo"))
            paths = ensure_demo(data_dir(), pages=DEMO_PAGES, hosts=DEMO_HOSTS, seed=seed)
            yield open_web(name, paths.corpus)
        elif name.startswith("tuning"):
            yield whole.of_hosts(name, set(random.Random(name).sample(hosts, DRAWN_HOSTS)).__contains__)
        else:
            yield whole.of_hosts(name, _KINDS[name])
    for path in archives:
        corpus = open_corpus(Settings({"CORPUS": str(path)}))
        yield MemoryWeb.read(path.name, corpus, cache(partial(_extracted, corpus)))


def _extracted(corpus: Corpus, key: str) -> str:
    try:
        return extract_text(corpus.html(key), EXTRACTORS["both"])
    except PageError:
        return ""


def _reported(host: str) -> bool:
    return half_of(host) == 1


_KINDS: dict[str, Callable[[str], bool]] = {
    "reporting": _reported,
    "documentation": lambda host: _reported(host) and not is_lesson(f"https://{host}/", ""),
    "lessons": lambda host: _reported(host) and is_lesson(f"https://{host}/", ""),
}


def _scorers(web: MemoryWeb, names: Sequence[str], real: dict[str, RememberedScores]) -> dict[str, RememberedScores]:
    """Return the scorers of a web by name: real pages have them all, a demo web has its own."""
    if not web.title.startswith("demo"):
        return {name: real[name] for name in names}
    seed = int(web.title.removeprefix("demo"))
    paths = ensure_demo(data_dir(), pages=DEMO_PAGES, hosts=DEMO_HOSTS, seed=seed)
    return {"its own": RememberedScores(paths.model)}


def seeds_of(subject: str) -> int:
    """Return the number of seeds of a crawl, and of pages that it crawls at once."""
    return min(max(len(policies._subjects[subject].web) // 80, 10), policies.SEEDS)


def prepare(web: MemoryWeb, scorers: dict[str, RememberedScores]) -> list[str]:
    """Score a web's pages by each scorer, bound included; returns the names of its subjects."""
    names = []
    for name, scores in scorers.items():
        names.append(f"{web.title}, {name}")
        policies._subjects[names[-1]] = Subject(web, scores, web.oracle(scores), Path(), web.bound(scores))
    return names


# -- what is reported -------------------------------------------------------------------------------------------------


def _recall(one: Recalls, policy: str, place: int) -> float:
    return (one.by_crawled if policy == AHEAD else one.by_fetched)[place]


def _column(crawls: Crawls, policy: str, place: int) -> list[float]:
    return [_recall(one, policy, place) for one in crawls[policy]]


def share(crawls: Crawls, top: str, place: int) -> float | None:
    """Return what ``link`` gains as a share of what ``top`` does; None if that is little."""
    return _closed(crawls, top, place).share


def _closed(crawls: Crawls, top: str, place: int) -> Closed:
    return closed(*([_column(crawls, policy, place)] for policy in (LINK, BASE, top)))


def _cell(crawls: Crawls, top: str, place: int) -> str:
    return _closed(crawls, top, place).told() or "-"


def is_worse(crawls: Crawls, place: int) -> bool:
    """Return whether ``link`` is below parent_mean at a mark, and all of the interval is."""
    paired = [one - two for one, two in zip(_column(crawls, LINK, place), _column(crawls, BASE, place), strict=True)]
    ends = interval(resampled(paired))
    return ends is not None and ends[1] < 0


def dropped(crawls: Crawls) -> int:
    """Return how many oracle pages, over all sets of seeds, the bound finds by a quarter on hosts of which it finds at
    least half, and ``link`` less than a tenth."""
    lost = 0
    for link, bound in zip(crawls[LINK], crawls[BOUND], strict=True):
        for host, held in bound.on_hosts.items():
            found, ours = bound.found_on.get(host, 0), link.found_on.get(host, 0)
            if found >= _FOUND * held and ours < _LOST * held:
                lost += found - ours
    return lost


def judge(all_crawls: dict[str, Crawls]) -> tuple[list[Table], list[Figure]]:
    """Return shares and recalls by web and scorer, worst first, and the figures that have a limit."""
    ordered = sorted(all_crawls, key=lambda name: _or_best(share(all_crawls[name], BOUND, QUARTER)))
    tables = [
        Table(
            f"to {'look-ahead' if top == AHEAD else 'the bound'}: share of the gap from {BASE} that link closes",
            ("web, scorer", *(f"{mark:.0%}" for mark in SHARES)),
            [(name, *(_cell(all_crawls[name], top, place) for place in range(len(SHARES)))) for name in ordered],
        )
        for top in (BOUND, AHEAD)
    ]
    columns = [(policy, place) for place in (EARLY, QUARTER) for policy in (LINK, BASE, BOUND, AHEAD)]
    heads = [f"{policy} {SHARES[place]:.0%}" for policy, place in columns]
    rows: list[Sequence[str | float | None]] = [
        (name, *(statistics.fmean(_column(all_crawls[name], *column)) for column in columns), dropped(all_crawls[name]))
        for name in ordered
    ]
    tables.append(Table("recall, and oracle pages on hosts that are dropped", ("web, scorer", *heads, "dropped"), rows))
    at = {
        place: [one for one in (share(crawls, BOUND, place) for crawls in all_crawls.values()) if one is not None]
        for place in (EARLY, QUARTER)
    }
    worse = sum(is_worse(crawls, place) for crawls in all_crawls.values() for place in (EARLY, QUARTER))
    figures = [Figure(f"webs and scorers, at 10 and 25%, on which link is worse than {BASE}", worse, 0)]
    if at[QUARTER]:
        figures.append(Figure("share of the bound at 25%, median", statistics.median(at[QUARTER]), 0.9, "", True))
        figures.append(Figure("share of the bound at 25%, worst", min(at[QUARTER]), 0.7, "", True))
    if at[EARLY]:
        figures.append(Figure("share of the bound at 10%, median", statistics.median(at[EARLY]), 0.5, "", True))
    return tables, figures


def _or_best(value: float | None) -> float:
    return float("inf") if value is None else value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--tuning", action="store_true", help="the webs and scorers for tuning, not those of the report"
    )
    parser.add_argument("--webs", help="some of them (default: all)")
    parser.add_argument("--scorers", help="some of them (default: all)")
    parser.add_argument("--archives", nargs="*", type=Path, default=[], help="run folders or WARC files, a web each")
    parser.add_argument("--seed-sets", type=int, default=12)
    parser.add_argument("--processes", type=int, default=cores())
    parser.add_argument("--keep", type=Path, help="JSON of the crawls; those in it, but for link's, are not done again")
    add_output(parser)
    args = parser.parse_args()
    if not REAL.exists():
        print(f"skipped: {REAL} is not here")
        return
    kinds, known = (TUNING_WEBS, TUNING) if args.tuning else (REPORTED_WEBS, REPORTING)
    names, scorers = (
        asked.split(",") if asked else all_ for asked, all_ in ((args.webs, kinds), (args.scorers, known))
    )
    kept = json.loads(args.keep.read_text()) if args.keep and args.keep.exists() else {}
    subjects: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        others = open_web("others", REAL).of_hosts("others", lambda host: half_of(host) == args.tuning)
        real = {name: scorer(name, others, Path(folder)) for name in scorers}
        for web in webs(names, args.archives):  # here, as a model is loaded when it first scores
            subjects += prepare(web, _scorers(web, scorers, real))
    asked = {
        f"{name}; {policy}; {number}": (name, policy, number)
        for name in subjects
        for policy in CRAWLED_BY
        for number in range(args.seed_sets)
    }
    with ProcessPoolExecutor(args.processes, multiprocessing.get_context("fork")) as pool:
        futures = {
            told: pool.submit(crawl, *of, SHARES[-1], seeds_of(of[0]))
            for told, of in asked.items()
            if of[1] == LINK or told not in kept
        }
        for told, future in futures.items():
            kept[told] = future.result()
            if args.keep:
                args.keep.write_text(json.dumps(kept))
    found: dict[str, Crawls] = {name: {policy: [] for policy in CRAWLED_BY} for name in subjects}
    for told, (name, policy, _) in asked.items():
        found[name][policy].append(Recalls(*kept[told]))
    result = Result("link", [f"{args.seed_sets} sets of 10 to {policies.SEEDS} random seeds, n as many"])
    result.tables, result.figures = judge(found)
    speeds = [one.links_per_second for one in chain.from_iterable(crawls[LINK] for crawls in found.values())]
    result.figures.append(
        Figure("links scored and learnt a CPU second, median", statistics.median(speeds), 10_000, "", True)
    )
    publish(result, args)


if __name__ == "__main__":
    main()
