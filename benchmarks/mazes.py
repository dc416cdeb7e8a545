"""What mazes take of a crawl, and what budgets cost where there are none.

    python -m benchmarks.mazes [--policies NAME,...] [--mazes N] [--seed-sets N] [--set NAME=VALUE] [--times X] [--real]
                               [--out DIR]

Crawls the demo web, and the same web with mazes (tests/testweb/mazes.py) among its hosts, in continuous order on the
virtual clock of a simulation, as benchmarks.waiting does with its x (0: owners never wait, so that nothing but the
order keeps a crawl out of a maze); each crawl as it is, and with the settings of a live crawl that keep out of mazes,
or those given by ``--set``. Told are the fetches in each maze, and the share of the oracle pages in reach that are
found by the time that so many of the honest pages in reach are fetched: counting all fetches, and the honest ones
alone. ``--real`` crawls ../shared/clueweb22-real, which has no mazes, with and without the settings. The web with mazes
is a corpus for ``scrapy crawl`` too: ``CORPUS=benchmarks.mazes.MazedWeb``.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import multiprocessing
import statistics
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.policies import SEEDS, Subject, _subjects, prepare
from benchmarks.policy_webs import MemoryWeb, open_web
from benchmarks.results import Figure, Result, Table, add_output, publish
from benchmarks.waiting import CAPACITY, _run
from crawl4llm.base.domains import owner_of
from crawl4llm.base.errors import MissingRecord
from crawl4llm.base.pages import Link, PageRecord
from crawl4llm.options import Options, setting_name
from crawl4llm.parts.url_traps.rules import RULES
from simulate import HOSTS, PAGES
from simulate.demo.web import Web
from simulate.opening import demo_web
from simulate.web import VirtualClock
from tests.testweb.mazes import KINDS, Mazes

HONEST, MAZED, REAL_WEB = "demo", "mazed", "whole"
POLICIES = ("link", "parent_first", "host")
SHARES = (0.10, 0.25, 0.50)
SHARES_OF_REAL = (0.10, 0.25)
MOST_IN_A_MAZE = 60
MOST_LOST = 0.01
_MOST_MADE = 1000
KEEPING_OUT = {"URL_BUDGET": "10", "NEAR_DUPLICATES": "follow", "URL_TRAPS": ",".join(RULES)}
"""Settings of live crawls; those that this checkout does not have are left out."""

Settings = tuple[tuple[str, str], ...]


class MazedWeb(MemoryWeb):
    """A web with mazes: their pages are made when they are asked for, and are not among its ``keys``."""

    def __init__(self, honest: MemoryWeb, mazes: Mazes) -> None:
        self._mazes = mazes
        self._made: dict[str, PageRecord] = {}
        """The last ones: each is asked for when it is fetched, and when it is scored."""
        pages = {key: honest.page(key) for key in honest.keys()}
        inlinks = {key: honest.inlinks(key) for key in pages}
        for key, page in pages.items():
            entries = [Link(url, url, anchor, False) for url, anchor in mazes.entries.get(page.url, ())]
            if entries:
                pages[key] = replace(page, outlinks=[*(page.outlinks or ()), *entries])
        super().__init__("the demo web with mazes", pages, inlinks, lambda key: self.page(key).text or honest.text(key))

    @classmethod
    def from_options(cls, options: Options) -> MazedWeb:
        return cls(open_web(HONEST, demo_web().corpus), Mazes(Web(PAGES, HOSTS, 0)))

    def page(self, key: str) -> PageRecord:
        try:
            return super().page(key)
        except MissingRecord:
            if key not in self._made and (page := self._mazes.page(key)) is not None:
                if len(self._made) >= _MOST_MADE:
                    self._made.clear()
                links = [Link(url, url, anchor, False) for url, anchor in page.links]
                self._made[key] = PageRecord(key, key, text=page.text, outlinks=links)
            return self._made[key]

    def inlinks(self, key: str) -> list[Link]:
        return super().inlinks(key) if key in self else []


class Task(NamedTuple):
    """One crawl."""

    web: str
    policy: str
    settings: Settings
    seed_set: int


class Found(NamedTuple):
    """What a crawl found."""

    by_fetched: tuple[float, ...]
    """Share of the oracle pages at each share of the pages in reach, counting all fetches."""
    by_honest: tuple[float, ...]
    """The same, counting honest pages; where it ended before, by its end."""
    in_mazes: Counter[int]
    """Fetches by the number of the maze."""
    honest: int
    """Honest pages fetched."""
    fetched: int


_mazes: list[Mazes] = []
"""Made before the processes are forked, which share them."""


def crawl(task: Task, times: float) -> Found:
    """One crawl, to the last share of the honest pages in reach, and as many more as mazes may have."""
    subject, honest = _subjects[task.web], _subjects[HONEST if task.web == MAZED else task.web]
    seeds = honest.web.sample(SEEDS, task.seed_set)
    reachable = honest.web.reachable(seeds)
    owners = len({owner_of(honest.web.page(key).url) for key in reachable})
    shares = SHARES_OF_REAL if task.web == REAL_WEB else SHARES
    counts = [int(share * len(reachable)) for share in shares]
    most = counts[-1] + (MOST_IN_A_MAZE * len(_mazes[0].mazes) if task.web == MAZED else 0)
    options = Options(
        url_policy=task.policy,
        crawl_max_pages=most,
        crawl_batch_size=0,
        crawl_seed=task.seed_set,
        **_checked(dict(task.settings)),
    )
    clock = VirtualClock(times * owners / CAPACITY, CAPACITY)
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(_run(subject, options, clock, seeds, Path(folder)))
    oracle = honest.oracle & reachable
    kept = [key for key in found if key in reachable]
    mazes = (_mazes[0].maze_of(key) for key in found if key not in reachable)
    return Found(
        tuple(len(oracle.intersection(found[:count])) / len(oracle) for count in counts),
        tuple(len(oracle.intersection(kept[:count])) / len(oracle) for count in counts),
        Counter(maze.number for maze in mazes if maze is not None),
        len(kept),
        len(found),
    )


def _checked(given: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of settings that this checkout has."""
    known = {setting_name(field): field for field in fields(Options)}
    return {known[name].name: known[name].metadata["check"](value) for name, value in given.items() if name in known}


# -- what is told -----------------------------------------------------------------------------------------------------

Crawls = dict[Task, Found]
Row = list[str | float | None]


def in_mazes(crawls: Crawls, policies: Sequence[str], settings: Sequence[Settings], sets: range) -> Table:
    """Return the fetches in mazes of each kind: mazes entered, fetches in all, and in the worst maze."""
    rows: list[Row] = []
    for policy, given in itertools.product(policies, settings):
        mazed = [crawls[Task(MAZED, policy, given, number)] for number in sets]
        for kind in KINDS:
            mazes = [maze for maze in _mazes[0].mazes if maze.kind == kind]
            counts = {maze: [one.in_mazes[maze.number] for one in mazed] for maze in mazes}
            entered = sum(count > 0 for of_maze in counts.values() for count in of_maze) / len(mazed)
            total = sum(map(sum, counts.values())) / len(mazed)
            worst = max(mazes, key=lambda maze: max(counts[maze]))
            place = f"{worst.place}, {worst.bases[0]}"
            rows.append([f"{policy}, {_named(given)}, {kind}", entered, total, float(max(counts[worst])), place])
    return Table("Fetches in mazes", ["", "mazes entered", "fetches", "in the worst", "the worst"], rows)


def recalls(crawls: Crawls, policies: Sequence[str], settings: Sequence[Settings], sets: range) -> Table:
    """Return the share of the oracle pages that are found, with mazes and without."""
    rows: list[Row] = []
    for policy, given in itertools.product(policies, settings):
        without = [crawls[Task(HONEST, policy, given, number)].by_fetched for number in sets]
        mazed = [crawls[Task(MAZED, policy, given, number)] for number in sets]
        rows += [
            [f"{policy}, {_named(given)}, without mazes", *_means(without)],
            [f"{policy}, {_named(given)}, all fetches", *_means([one.by_fetched for one in mazed])],
            [f"{policy}, {_named(given)}, honest fetches", *_means([one.by_honest for one in mazed])],
        ]
    return Table("Oracle pages found, by pages fetched", ["", *(f"{share:.0%}" for share in SHARES)], rows)


def most_in_a_maze(crawls: Crawls, policies: Sequence[str], settings: Sequence[Settings], sets: range) -> list[Figure]:
    """Return the most fetches in a maze with the settings."""
    figures = []
    for policy, given in itertools.product(policies, settings[1:]):
        mazed = [crawls[Task(MAZED, policy, given, number)] for number in sets]
        most = max(max(one.in_mazes.values(), default=0) for one in mazed)
        figures.append(Figure(f"{policy}: most fetches in a maze", most, MOST_IN_A_MAZE))
    return figures


def on_the_real_web(
    crawls: Crawls, policies: Sequence[str], settings: Sequence[Settings], sets: range
) -> tuple[Table, list[Figure]]:
    """Return the oracle pages found on the real web with the settings and without, and what the settings lose."""
    rows: list[Row] = []
    figures = []
    for policy in policies:
        found = {given: [crawls[Task(REAL_WEB, policy, given, n)].by_fetched for n in sets] for given in settings}
        rows += [[f"{policy}, {_named(given)}", *_means(some)] for given, some in found.items()]
        for given in settings[1:]:
            lost = _lost(found[settings[0]], found[given])[-1]
            figures.append(Figure(f"{policy}: lost at {SHARES_OF_REAL[-1]:.0%} of the real web", lost, MOST_LOST))
    return Table("On the real web", ["", *(f"{share:.0%}" for share in SHARES_OF_REAL)], rows), figures


def _named(settings: Settings) -> str:
    given = " ".join(f"{name}={value}" for name, value in settings)
    return "rules and budgets" if dict(settings) == KEEPING_OUT else given or "as it is"


def _means(recalls: Sequence[tuple[float, ...]]) -> list[str]:
    return [f"{statistics.mean(column):.3f}" for column in zip(*recalls, strict=True)]


def _lost(before: Sequence[tuple[float, ...]], after: Sequence[tuple[float, ...]]) -> list[float]:
    """Return the share that is lost of what was found before, at each share of the pages."""
    columns = zip(zip(*before, strict=True), zip(*after, strict=True), strict=True)
    return [1 - statistics.mean(new) / statistics.mean(old) for old, new in columns]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--policies", default=",".join(POLICIES), help="names (%(default)s)")
    parser.add_argument("--mazes", type=int, default=50, help="how many (%(default)s); 0: only --real")
    parser.add_argument("--seed-sets", type=int, default=3)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument(
        "--set", action="append", metavar="NAME=VALUE", help="settings to try instead of a live crawl's"
    )
    parser.add_argument("--times", type=float, default=0.0, help="x of benchmarks.waiting (%(default)s)")
    parser.add_argument("--real", action="store_true", help="crawl the real web too")
    add_output(parser)
    args = parser.parse_args()
    policies, sets = args.policies.split(","), range(args.seed_sets)
    given = dict(one.partition("=")[::2] for one in args.set) if args.set else KEEPING_OUT
    known = {setting_name(field) for field in fields(Options)}
    settings = list(dict.fromkeys([(), tuple((name, value) for name, value in given.items() if name in known)]))
    webs = [HONEST, MAZED] if args.mazes else []
    webs += [REAL_WEB] if args.real else []
    with tempfile.TemporaryDirectory() as folder:
        prepare([web for web in webs if web != MAZED], Path(folder))
        if MAZED in webs:
            _mazes.append(Mazes(Web(PAGES, HOSTS, 0), args.mazes))
            honest = _subjects[HONEST]
            _subjects[MAZED] = Subject(MazedWeb(honest.web, _mazes[0]), honest.scorer, honest.oracle, honest.ranks)
        with ProcessPoolExecutor(args.processes, multiprocessing.get_context("fork")) as pool:
            tasks = [Task(*one, number) for one in _products(webs, policies, settings) for number in sets]
            crawls = dict(zip(tasks, pool.map(partial(crawl, times=args.times), tasks), strict=True))
    given_all = (crawls, policies, settings, sets)
    result = Result("mazes", [f"the demo web with {args.mazes} mazes, {len(sets)} sets of {SEEDS} seeds"])
    if MAZED in webs:
        result.tables += [in_mazes(*given_all), recalls(*given_all)]
        result.figures += most_in_a_maze(*given_all)
    if args.real:
        table, figures = on_the_real_web(*given_all)
        result.tables.append(table)
        result.figures += figures
    publish(result, args)


def _products(
    webs: Sequence[str], policies: Sequence[str], settings: Sequence[Settings]
) -> list[tuple[str, str, Settings]]:
    return [(web, policy, given) for web in webs for policy in policies for given in settings]


if __name__ == "__main__":
    main()
