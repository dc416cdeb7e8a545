"""The crawls of a contest: one in memory with its recall of the oracle set at each point, and all crawls of a web as
jobs. The file of a job holds the crawl's findings."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from importlib import import_module
from itertools import accumulate
from operator import methodcaller
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from crawl4llm.base.crawl_log import CrawlLine
from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.input_files import digest_of, given_path
from crawl4llm.base.jobs import KILLED, J, Jobs, R, Told, run_missing
from crawl4llm.base.pages import PageRecord
from crawl4llm.base.processes import ChildEnded, in_children
from crawl4llm.base.reasons import CORRUPT_RECORD
from crawl4llm.base.run_folder import read_json, write_text
from crawl4llm.base.shapes import Maybe, Where, fits, whole
from crawl4llm.base.terminal import wants_bar
from crawl4llm.base.version import __version__
from crawl4llm.cluster import Lines
from crawl4llm.crawl import RatePages, load_scorers, open_crawl
from crawl4llm.frontier import MemoryVisited, memory_frontier
from crawl4llm.options import Options, own_settings
from crawl4llm.parts import Parts
from crawl4llm.policies import SCORER_PREFIX, Policy, known_policies, load_policy, make_policy
from crawl4llm.scoring import P, PageRater, Raters, Rating, T, influence, rate_by_key
from crawl4llm.tools.evaluate.contest.web import FetchedPages
from crawl4llm.tools.evaluate.shares import BOUND
from crawl4llm.warc import NullArchive

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawl4llm.tools.evaluate.contest.track import Subject, Track

MARKS: Final = (5, 10, 25, 50)
"""Per cent of the pages in reach at which crawls are compared; a crawl ends at the last."""
POINTS: Final = range(1, MARKS[-1] + 1)
"""Percentages of the pages in reach at which the findings are recorded."""
TEXT: Final = {str}
COUNT: Final = whole(0, 10**15)
NUMBER: Final = Where({int, float}, lambda number: abs(number) < 1e15)
CRAWL: Final = {
    "web": TEXT,
    "policy": TEXT,
    "set": COUNT,
    "area": NUMBER,
    "found": Where([COUNT], lambda found: len(found) == len(POINTS)),
    "influence": Where([Maybe(NUMBER)], lambda means: len(means) == len(MARKS)),
}
"""The shape of a crawl's findings."""
AHEAD: Final = "influence"
"""The policy that looks ahead, by pages crawled: it knows the influence of all documents that it discovers."""
_ENSEMBLE: Final = "fasttext:1,length:0.5"
_DECIDE: Final = (
    *("*.py", "base/**/*.py", "scoring/**/*.py", "policies/**/*.py", "frontier/**/*.py", "crawl/**/*.py"),
    *("tools/evaluate/contest/crawling.py", "tools/evaluate/contest/web.py", "tools/evaluate/bound.py"),
    "tools/_fit.py",
)
"""The code that decides a crawl's findings."""


async def crawl_in_memory(
    fetch: Callable[[str], PageRecord],
    options: Options,
    *,
    policy: Policy,
    rate: RatePages,
    seeds: Sequence[str],
    parts: Parts | None = None,
) -> list[CrawlLine]:
    """Crawl pages that ``fetch`` gives at once, by Algorithm 1 without Scrapy; return the lines of the crawl log."""
    log = Lines()
    crawling = open_crawl(
        options,
        policy=policy,
        rate=rate,
        frontier=memory_frontier(),
        visited=MemoryVisited(),
        archive=NullArchive(),
        log=log,
        provenance={},
        parts=parts or Parts(),
    )
    await crawling.begin(seeds)
    while not crawling.finished:
        for lease in crawling.dequeue():
            crawling.fetched(lease, fetch(lease.entry.key), 200)
        while crawling.can_advance:
            await crawling.advance()
    return log.pages


def crawl(subject: Subject, entrant: Entrant, track: Track, number: int, files: Mapping[str, Any]) -> dict[str, Any]:
    """Crawl half of the pages in reach of a set of seeds; return the entry of the results.

    ``files`` are the options that name files, such as HARMONIC_RANKS. Raises what the policy raises.
    """
    start = subject.starts[number]
    options = replace(
        subject.options,
        url_policy=entrant.url_policy,
        own_settings={**subject.options.own, **entrant.own} or None,
        crawl_max_pages=_count(MARKS[-1], start.reach),
        crawl_batch_size=track.batch,
        crawl_seed=number,
        ensemble_weights=_ENSEMBLE,
        **files,
    )
    web = subject.web if entrant.looks_ahead else FetchedPages(subject.web, entrant.reads)
    others = load_scorers(load_policy(entrant.url_policy).scorers(options), options)
    workers = _Workers(replace(subject.rater, corpus=web, others=others), subject.scores)
    policy, rate = make_policy(workers, options), partial(rate_by_key, workers)
    lines = asyncio.run(crawl_in_memory(web.fetch, options, policy=policy, rate=rate, seeds=start.seeds))
    return {
        "web": subject.name,
        "policy": entrant.name,
        "set": number,
        **found(lines, subject.oracle, start.reach, start.oracle),
        "log": hashlib.sha256("".join(f"{json.dumps(line)}\n" for line in lines).encode()).hexdigest(),
    }


def found(lines: Sequence[CrawlLine], oracle: set[str], reach: int, in_reach: int) -> dict[str, Any]:
    """Return a crawl's findings by pages crawled; a crawl that ended earlier finds no more.

    ``found``: oracle pages at each of POINTS. ``area``: mean recall over all numbers of pages to the last mark.
    ``influence``: mean influence of the pages crawled by each of MARKS, None if none has a score.
    """
    last = _count(MARKS[-1], reach)
    so_far = [0, *accumulate(line["id"] in oracle for line in lines)]
    so_far += [so_far[-1]] * (last + 1 - len(so_far))
    scores = [line["influence"] for line in lines]
    known = [[score for score in scores[: _count(mark, reach)] if score is not None] for mark in MARKS]
    return {
        "crawled": len(lines),
        "fetched": lines[-1]["fetched"] if lines else 0,
        "found": [so_far[_count(point, reach)] for point in POINTS],
        "area": sum(so_far[1 : last + 1]) / (last * in_reach) if last else 0.0,
        "influence": [fmean(some) if some else None for some in known],
    }


def _count(per_cent: int, pages: int) -> int:
    return per_cent * pages // 100


class _Workers(Raters[PageRater]):
    """Looks pages up in this process, by a rater whose corpus limits what may be read; influence scores are known."""

    def __init__(self, rater: PageRater, scores: Mapping[str, float | None]) -> None:
        super().__init__(rater)
        self._known = scores

    async def run(self, task: Callable[[PageRater, P], T], pages: Sequence[P]) -> list[T | Rating]:
        """See :class:`Raters`."""
        if task is not influence:
            return await super().run(task, pages)
        scores = [self._known[self.rater.corpus.page(str(page)).key] for page in pages]
        return [Rating(score, CORRUPT_RECORD if score is None else None) for score in scores]


# -- policies ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entrant:
    """A policy of a contest."""

    name: str
    url_policy: str
    """A value of URL_POLICY."""
    digest: str | None
    """SHA-256 of its file; None for one of the project's own, which the version and the digest of the code identify."""
    looks_ahead: bool
    """True if it is a bound, which is not ranked: it looks ahead, or has read pages beforehand."""
    reads: list[str]
    """The parts that it reads of pages that were not fetched: its ``corpus_parts``."""
    own: Mapping[str, Any]
    """Values of its own settings."""


def read_entrants(names: Sequence[str], settings: BaseSettings) -> list[Entrant]:
    """Return the policies that are named, by name, file or dotted path; by default the project's that do not look
    ahead, and AHEAD. Raises InputError, naming the policy."""
    found: dict[str, Entrant] = {}
    for name in names or [name for name in known_policies() if not load_policy(name).looks_ahead] + [AHEAD]:
        entrant = _entrant(name, settings)
        if entrant.name in found:
            raise InputError(f"--policies: two are called {entrant.name}; name each once, and rename files if needed")
        found[entrant.name] = entrant
    return list(found.values())


def _entrant(given: str, settings: BaseSettings) -> Entrant:
    name = url_policy = given
    digest = None
    if given.endswith(".py"):
        path = given_path(given)
        name, digest = path.stem, digest_of(path)
        url_policy = f"{_import(path)}.Policy"
    elif "." in given and not given.startswith(SCORER_PREFIX):
        name = given.removesuffix(".Policy").rpartition(".")[2]
        with _anybodys(given):
            digest = digest_of(Path(str(import_module(given.rpartition(".")[0]).__file__)))
    found = load_policy(url_policy)
    own = own_settings(settings, Options(url_policy=url_policy)) or {}
    is_bound = bool(found.looks_ahead) or url_policy == BOUND
    return Entrant(name, url_policy, digest, is_bound, list(found.corpus_parts), own)


def _import(path: Path) -> str:
    """Run a file that the user named as a module; return the module's name."""
    name = "contest_" + re.sub(r"\W", "_", path.stem)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    with _anybodys(str(path)):
        spec.loader.exec_module(module)
    return name


@contextmanager
def _anybodys(given: str) -> Iterator[None]:
    """Raise InputError if code that is imported fails, in whatever way."""
    try:
        yield
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it is not ours
        raise InputError(f"--policies {given} cannot be loaded ({type(error).__name__}: {error})") from None


# -- all crawls of a web -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CrawlJob:
    """A crawl by a policy from a set of seeds."""

    entrant: Entrant
    number: int
    path: Path
    """The file of its findings, whose name is a digest of all facts that decide them."""
    size: int = 1

    def find(self) -> dict[str, Any] | None:
        """Return the saved findings; None without any, or if the file is damaged."""
        found = read_json(self.path)
        return found if fits([found], CRAWL) else None

    def do(self, subject: Subject, track: Track, files: Mapping[str, Any]) -> None:
        """Crawl, and save the findings wholly or not at all. Raises InputError with the failure in one line."""
        try:
            found = crawl(subject, self.entrant, track, self.number, files)
            with as_input_error(f"{self.path.parent} cannot be written"):
                self.path.parent.mkdir(parents=True, exist_ok=True)
            write_text(self.path, json.dumps(found), fsync=True)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - policies are anybody's code
            kind = "" if isinstance(error, InputError) else f"{type(error).__name__}: "
            raise InputError(" ".join(f"{kind}{error}".split())) from None


class OwnProcesses:
    """The executor of crawls: each has a forked process of its own, so what a policy leaves behind or breaks is nothing
    to the next one. A crawl that fails has no result."""

    tasks: int | None = None

    def __init__(self) -> None:
        self.failed: list[tuple[Any, str]] = []
        """The crawls that failed, and why in one line."""

    def processes(self, workers: int) -> int:
        return max(workers, 1)

    def run(self, jobs: Jobs[J, R], missing: Sequence[J], processes: int | None, told: Told) -> Iterator[tuple[J, R]]:
        """See :class:`~crawl4llm.base.jobs.Executor`."""
        with told.bar(len(jobs.jobs), len(jobs.jobs) - len(missing)) as bar:
            for job, outcome in in_children(lambda job: list(jobs.work([job])), missing, processes or 1):
                bar.update()
                if error := outcome.exception():
                    ended = "its process ended with " if isinstance(error, ChildEnded) else ""
                    self.failed.append((job, f"{ended}{error}"))
                else:
                    yield job, outcome.result()[0]


def jobs_of(subject: Subject, track: Track, entrants: Sequence[Entrant], folder: Path) -> list[CrawlJob]:
    """Return the crawls of a web: one by each policy from each set of seeds."""
    shared = {
        "version": __version__,
        "code": code_digest(),
        "web": subject.name,
        "digest": subject.digest,
        "scorer": subject.options.scorer,
        "model": subject.rater.scorer.digest,
        "seeds": track.seeds,
        "batch": track.batch,
    }

    def path(entrant: Entrant, number: int) -> Path:
        identity = json.dumps({**shared, "set": number, "policy": asdict(entrant)}, sort_keys=True)
        return folder / f"{hashlib.sha256(identity.encode()).hexdigest()}.json"

    numbers = range(track.seed_sets)
    return [CrawlJob(entrant, number, path(entrant, number)) for entrant in entrants for number in numbers]


def do_missing(
    subject: Subject, track: Track, jobs: Sequence[CrawlJob], options: Options
) -> list[tuple[CrawlJob, str]]:
    """Do the crawls that are not saved; return those that failed, by the sets of seeds, and why."""
    policies = {job.entrant.url_policy for job in jobs if job.find() is None}
    executor, show = OwnProcesses(), wants_bar(options.progress_bar)
    with tempfile.TemporaryDirectory() as name:
        do = methodcaller("do", subject, track, subject.files_for(policies, Path(name)))
        all_jobs = Jobs(partial(map, do), jobs, jobs[0].path.parent, done=lambda job: job.find() is not None)
        told = Told(" crawls", KILLED, subject.name, show)
        for _ in run_missing(all_jobs, executor, max(options.workers, 1), told):
            pass
    return sorted(executor.failed, key=lambda one: one[0].number)


@cache
def code_digest() -> str:
    """Return the SHA-256 of the source files that decide a crawl's findings, because the version does not identify
    them."""
    package = Path(__file__).parents[3]
    digest = hashlib.sha256()
    for path in sorted(path for pattern in _DECIDE for path in package.glob(pattern)):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(package)} {content}\n".encode())
    return digest.hexdigest()
