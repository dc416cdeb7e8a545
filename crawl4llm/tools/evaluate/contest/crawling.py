"""A crawl of a web in memory, and its recall of the oracle set at each point."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from crawl4llm.base.crawl_log import CrawlLine, FailureLine
from crawl4llm.base.pages import PageRecord
from crawl4llm.base.reasons import CORRUPT_RECORD
from crawl4llm.crawl import CrawlLog, RatePages, load_scorers, open_crawl
from crawl4llm.frontier import MemoryVisited, memory_frontier
from crawl4llm.options import Options
from crawl4llm.parts import Parts
from crawl4llm.policies import Policy, load_policy, make_policy
from crawl4llm.scoring import P, PageRater, PageWorkers, Rating, T, influence, rate_by_key
from crawl4llm.tools.evaluate.contest.web import FetchedPages
from crawl4llm.warc import NullArchive

if TYPE_CHECKING:
    from crawl4llm.tools.evaluate.contest.subject import Subject
    from crawl4llm.tools.evaluate.contest.track import Entrant, Track

MARKS: Final = (5, 10, 25, 50)
"""Per cent of the pages in reach at which crawls are compared; a crawl ends at the last."""
POINTS: Final = range(1, MARKS[-1] + 1)
"""Percentages of the pages in reach at which the findings are recorded."""
_ENSEMBLE: Final = "fasttext:1,length:0.5"


class Lines(CrawlLog):
    """A crawl log that stays in memory."""

    def __init__(self) -> None:
        self.pages: list[CrawlLine] = []

    def write(self, pages: Iterable[CrawlLine], failures: Iterable[FailureLine]) -> None:
        self.pages += pages


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
    started = time.process_time()
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
    knows = _Workers(subject.rater, subject.scores)
    asked, fetch = knows, subject.web.page
    if not entrant.looks_ahead:
        fetched = FetchedPages(subject.web, entrant.reads)
        asked, fetch = _Workers(replace(subject.rater, corpus=fetched), subject.scores), fetched.fetch
    others = load_scorers(load_policy(entrant.url_policy).scorers(options), options)
    asked.rater = replace(asked.rater, others=others)
    policy = make_policy(asked, options)
    rate = partial(rate_by_key, knows)
    lines = asyncio.run(crawl_in_memory(fetch, options, policy=policy, rate=rate, seeds=start.seeds))
    return {
        "web": subject.name,
        "policy": entrant.name,
        "set": number,
        **found(lines, subject.oracle, start.reach, start.oracle),
        "log": hashlib.sha256("".join(f"{json.dumps(line)}\n" for line in lines).encode()).hexdigest(),
        "seconds": time.process_time() - started,
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


class _Workers(PageWorkers[PageRater]):
    """Looks pages up in this process, by a rater whose corpus limits what may be read; influence scores are known."""

    def __init__(self, rater: PageRater, scores: Mapping[str, float | None]) -> None:
        super().__init__(rater, processes=0, time_limit=60.0)
        self._known = scores

    async def run(self, task: Callable[[PageRater, P], T], pages: Sequence[P]) -> list[T | Rating]:
        """See :class:`PageWorkers`."""
        if task is not influence:
            return await super().run(task, pages)
        scores = [self._known[self.rater.corpus.page(str(page)).key] for page in pages]
        return [Rating(score, CORRUPT_RECORD if score is None else None) for score in scores]
