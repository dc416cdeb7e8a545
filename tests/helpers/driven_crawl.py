"""A crawl of a graph in memory, driven as the scheduler drives it, without Scrapy."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from archive_helpers import INFO
from graph_corpus import GraphCorpus, NumberScorer

from crawl4llm.base.errors import PageError
from crawl4llm.base.run_folder import SETTINGS, WARC, write_json
from crawl4llm.crawl.crawl import Crawl
from crawl4llm.crawl.driven import Driven as DrivenCrawl
from crawl4llm.crawl.job import Job
from crawl4llm.crawl.opening import open_crawl
from crawl4llm.crawl.page_writer import CrawlLog
from crawl4llm.frontier import Entry, Lease, OwnerFrontier
from crawl4llm.frontier.aside import Aside, MemoryAside
from crawl4llm.frontier.memory import MemoryVisited
from crawl4llm.frontier.opening import memory_frontier
from crawl4llm.options import Options
from crawl4llm.parts import Parts, open_parts
from crawl4llm.policies import BasePolicy, Candidate, Policy, Rating, load_policy, overriding
from crawl4llm.policies._ordering import make_policy
from crawl4llm.scoring.rating import PageRater
from crawl4llm.scoring.workers import PageWorkers, rate_by_key
from crawl4llm.warc import Archive, ArchiveFormat, ArchiveWriter, NullArchive

Graph = Mapping[str, Sequence[str | None]]


def scored(links: Graph, **kwargs: Any) -> GraphCorpus:
    """A graph whose documents have their score for a key: ``9`` scores 0.9, ``35`` 0.35, ``9b`` 0.9."""
    digits = {key: "".join(filter(str.isdigit, key)) for key in links}
    return GraphCorpus(links, {key: f"0.{number} text of {key}" for key, number in digits.items()}, **kwargs)


class NoTexts:
    """Known texts of which there are none."""

    identity = "none"

    def knows(self, text: str, signature: bytes) -> bool:
        return False


def _parts(options: Options) -> Parts:
    """Return the parts of a crawl; KNOWN_TEXTS ``given`` is no file, and has no texts."""
    if options.known_texts != "given":
        return open_parts(options)
    from crawl4llm.parts.known_texts.work import KnownTextsPart

    return Parts([*open_parts(replace(options, known_texts=None)), KnownTextsPart(options, NoTexts())])


@contextmanager
def pages_at_once(pages: int) -> Iterator[None]:
    """Let a batch be taken in slices of so many pages; by itself it is so many that small graphs have one slice."""
    before, DrivenCrawl.pages_at_once = DrivenCrawl.pages_at_once, pages
    try:
        yield
    finally:
        DrivenCrawl.pages_at_once = before


class NotingPolicy(BasePolicy):
    """Scores all alike, and notes what it is told."""

    name = "noting"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.candidates: list[Candidate] = []
        self.taken: list[list[str]] = []

    async def score(self, candidates: Sequence[Candidate]) -> list[Rating]:
        self.candidates += candidates
        return [Rating(0.5) for _ in candidates]

    def dequeued(self, entries: Sequence[Entry]) -> None:
        self.taken.append([entry.key for entry in entries])


class Driven:
    """A crawl of a graph, and what it logged; ``options`` are settings of Options in lower case."""

    def __init__(
        self,
        corpus: GraphCorpus,
        folder: Path,
        *,
        archive: Archive | None = None,
        leases: int = 1,
        by_owners: OwnerFrontier | None = None,
        **options: Any,
    ) -> None:
        self.corpus = corpus
        self._folder = folder
        checked = Options(**options)
        self._log = CrawlLog(folder)
        weakref.finalize(self, self._log.close)  # its files would stay open, as many as there are crawls
        self.crawl = self._new_crawl(
            checked,
            leases,
            frontier=memory_frontier() if by_owners is None else by_owners,
            by_owners=by_owners,
            visited=MemoryVisited(),
            archive=archive or NullArchive(),
            log=self._log,
        )
        self.dequeued: list[str] = []
        """Keys in the order in which they were leased."""

    def _new_crawl(self, options: Options, leases: int, **parts: Any) -> Crawl:
        opened = _parts(options)
        needs = opened.needs()
        rater = PageRater(self.corpus, NumberScorer(), extractor=None, lines=needs.lines, known_texts=needs.known_texts)
        workers = PageWorkers(rater, processes=0, time_limit=1.0)
        return open_crawl(
            options,
            policy=make_policy(workers, options),
            rate=partial(rate_by_key, workers, text=options.warc_text, signature=needs.signature),
            parts=opened,
            aside=self._aside(),
            provenance={"corpus": "graph"},
            concurrent_leases=leases,
            **parts,
        )

    def _aside(self) -> Aside:
        return MemoryAside()

    def take_policy(self, policy: Policy) -> None:
        """Go on by another policy than the settings name."""
        self.crawl.policy = self.crawl.algorithm.policy = policy
        self.crawl.algorithm.score = policy.score
        self.crawl.algorithm._learns = overriding(policy, "crawled")
        self.crawl.algorithm._dequeued = overriding(policy, "dequeued")

    def start(self, *seeds: str) -> None:
        asyncio.run(self.crawl.begin(seeds))

    def dequeue(self) -> list[Lease]:
        leases = self.crawl.dequeue()
        self.dequeued += [lease.entry.key for lease in leases]
        return leases

    def advance(self) -> None:
        """Take all answers that may be taken."""
        assert self.crawl.can_advance
        while self.crawl.can_advance:
            asyncio.run(self.crawl.advance())

    def fetch(self, lease: Lease) -> None:
        """Answer a lease from the corpus."""
        try:
            page = self.corpus.page(lease.entry.key)
        except PageError as error:
            self.crawl.failed(lease, error.reason)
        else:
            self.crawl.fetched(lease, page, 200)

    def batch(self) -> list[str]:
        """Take, fetch and finish one batch; returns its keys."""
        leases = self.dequeue()
        for lease in leases:
            self.fetch(lease)
        self.advance()
        return [lease.entry.key for lease in leases]

    def run(self, *seeds: str, shuffled_by: int | None = None) -> Driven:
        """Run it to its end; answers come in the order of leases, or in a random one."""
        asyncio.run(self._run(seeds, None if shuffled_by is None else random.Random(shuffled_by)))
        return self

    async def _run(self, seeds: Sequence[str], order: random.Random | None) -> None:
        in_flight = await self._begin(seeds)
        while not self.crawl.finished:
            in_flight += self.dequeue()
            if self.crawl.can_advance:  # known documents were answered at once
                await self.crawl.advance()
                continue
            assert in_flight or self.crawl.set_aside or self.crawl.finished, (
                "the crawl is not finished, yet there is nothing to do"
            )
            if not in_flight:
                continue
            self.fetch(in_flight.pop(order.randrange(len(in_flight)) if order else 0))
            while self.crawl.can_advance:
                await self.crawl.advance()
        assert not in_flight

    async def _begin(self, seeds: Sequence[str]) -> list[Lease]:
        """Start it; returns what is on lease from before."""
        await self.crawl.begin(seeds)
        return []

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self._folder / "crawl.jsonl").read_text().splitlines()]

    @property
    def failures(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self._folder / "failures.jsonl").read_text().splitlines()]

    @property
    def ids(self) -> list[str]:
        return [line["id"] for line in self.lines]

    @property
    def batches(self) -> list[list[str]]:
        """Ids of the pages crawled, by iteration."""
        grouped = itertools.groupby(self.lines, key=lambda line: line["iteration"])
        return [[line["id"] for line in group] for _, group in grouped]

    @property
    def figures(self) -> dict[str, float | None]:
        """The statistics that are not 0."""
        return {key: value for key, value in self.crawl.statistics().items() if value}

    def close(self) -> None:
        self._log.close()


class JobCrawl(Driven):
    """A crawl of a graph with a JOBDIR, begun or taken up again; ``folder`` holds that and the output."""

    def __init__(self, corpus: GraphCorpus, folder: Path, *, leases: int = 1, **options: Any) -> None:
        self.corpus = corpus
        checked = Options(**options, output_dir=str(folder / "run"))
        self.job = job = Job(folder / "job", checked)
        with ExitStack() as opened:
            opened.callback(job.close)
            job.settle(str(INFO.crawl_id), {"corpus_digest": "graph", "model_digest": "", "seeds_digest": ""})
            write_json(job.output / SETTINGS, {"crawl_id": job.crawl_id}, fsync=True)
            self._folder = job.output
            job.open(reranks=checked.known_texts is not None or load_policy(checked.url_policy).reranks)
            self._log = CrawlLog(job.output, at=job.state.log)
            form = ArchiveFormat(text=checked.warc_text)
            self.archive = ArchiveWriter(job.output / WARC, INFO, checked.warc_max_bytes, job.state.archive, form)
            self.crawl = self._new_crawl(
                checked,
                leases,
                frontier=job.store.frontier,
                visited=job.store.visited,
                archive=self.archive,
                log=self._log,
                commits=job.commits(self._log, self.archive),
            )
            job.take_up(self.crawl.policy, self.crawl.parts)
            if job.state.crawl is not None:
                self.crawl.load(job.state.crawl, job.store.frontier.leases())
            opened.pop_all()
        self.dequeued = []

    def _aside(self) -> Aside:
        return self.job.aside()

    async def _begin(self, seeds: Sequence[str]) -> list[Lease]:
        if self.job.state.crawl is None:
            await self.crawl.begin(seeds)
        return self.crawl.unanswered()

    def close(self) -> None:
        self.archive.close()
        self._log.close()
        self.job.close()
