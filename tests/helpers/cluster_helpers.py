"""Crawls by several workers: of graphs, driven without Scrapy, and of real processes."""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from archive_helpers import INFO
from driven_crawl import Driven
from graph_corpus import GraphCorpus, NumberScorer

from crawl4llm.base.pages import Link, PageRecord
from crawl4llm.cluster import opening
from crawl4llm.cluster.liveness import Liveness
from crawl4llm.cluster.storage import Storage
from crawl4llm.cluster.worker import Common, Partitions
from crawl4llm.crawl.crawl import Crawl
from crawl4llm.crawl.scope import NO_LIMITS
from crawl4llm.options import Options
from crawl4llm.parts import open_parts
from crawl4llm.policies._ordering import make_policy
from crawl4llm.scoring.rating import PageRater
from crawl4llm.scoring.workers import PageWorkers, rate_by_key
from crawl4llm.tools.cluster import MERGE, VERIFY

SETTINGS = ("URL_POLICY", "CRAWL_BATCH_SIZE", "CRAWL_MAX_PAGES", "WARC_ENABLED", "WARC_COMPRESSION", "WARC_MAX_BYTES")


class HostsCorpus(GraphCorpus):
    """A graph whose documents lie on hosts by their last character."""

    def url(self, key: str) -> str:
        return f"http://{key[-1]}.example/{key}"

    def page(self, key: str) -> PageRecord:
        return replace(super().page(key), url=self.url(key))

    def _outlinks(self, key: str) -> list[Link]:
        return [link._replace(url=self.url(link.key) if link.key else link.url) for link in super()._outlinks(key)]


def random_web(seed: int, documents: int = 120) -> HostsCorpus:
    """A graph with many ties, repeated links, links without a key, and documents that are missing or damaged."""
    draw = random.Random(seed)
    keys = [f"d{number:03}{draw.choice('abcdefg')}" for number in range(documents)]
    targets = [*keys, *keys, *(f"x{number}" for number in range(9)), None]
    links = {key: draw.choices(targets, k=draw.randrange(9)) for key in keys}
    texts = {key: draw.choice(["0", "0.25", "0.5", "0.75", "1"]) for key in keys}
    return HostsCorpus(links, texts, corrupt=draw.sample(keys, documents // 12))


class Died(Exception):
    """What a worker ends with that is not to live on."""


class Mortal(Storage):
    """A storage that lets a worker die when it has put so many objects."""

    def __init__(self, url: str, puts: float) -> None:
        super().__init__(url)
        self._left = puts

    def put_as_is(self, name: str, data: bytes) -> bool:
        if self._left <= 0:
            raise Died
        is_new = super().put_as_is(name, data)
        self._left -= is_new
        return is_new


class Worker(Driven):
    """A worker at the crawl in ``storage``, driven without Scrapy; it takes only partitions that are ``its``, and dies
    when it has put so many objects."""

    def __init__(
        self,
        corpus: GraphCorpus,
        folder: Path,
        storage: str,
        seeds: Sequence[str],
        *,
        its: Collection[int] | None = None,
        puts: float = math.inf,
        **options: Any,
    ) -> None:
        self._storage, self._seeds, self._its = Mortal(storage, puts), list(seeds), its
        folder.mkdir(parents=True)
        super().__init__(corpus, folder, storage=storage, **options)

    def _new_crawl(self, options: Options, leases: int, **parts: Any) -> Crawl:
        workers = PageWorkers(PageRater(self.corpus, NumberScorer(), extractor=None), processes=0, time_limit=1.0)

        async def rate(pages: Any) -> Any:
            return await rate_by_key(workers, pages)

        shared = Common(
            options,
            make_policy=lambda: make_policy(workers, options),
            rate=rate,
            provenance={"corpus": "graph"},
            limits=NO_LIMITS,
            parts=open_parts(options),
            url_of_seed=None,
            info=INFO,
            seeds=self._seeds,
            partitions=Partitions(options.partitions, self.corpus),
            storage=self._storage,
            folder=self._folder / "scratch",
        )
        facts = {
            "crawl_id": str(INFO.crawl_id),
            "policy": make_policy(workers, options).name,
            "corpus": "graph",
            **dict.fromkeys(("model_digest", "extractor")),
            "versions": {"crawl4llm": "1"},
            "settings": {name: getattr(options, name.lower()) for name in SETTINGS},
        }
        crawl = opening.open_cluster(shared, facts, {}, lambda _stored: None)
        crawl._liveness = _Of(options.partitions, self._its)
        return crawl


class _Of(Liveness):
    """May claim some partitions only."""

    def __init__(self, partitions: int, its: Collection[int] | None) -> None:
        super().__init__(partitions)
        if its is not None:
            self._free = set(its)


def merged(storage: str, out: Path, *, verifies: bool = True) -> Path:
    """Merge a crawl, after it was verified; merge checks the same, and more."""
    for action in (VERIFY, MERGE)[not verifies :]:
        options = argparse.Namespace(arguments=[storage], out=str(out), index_only=False)
        assert list(action.run(None, options))  # type: ignore[arg-type]
    return out


def differing(one: Path, other: Path) -> list[str]:
    """Names of the files of two runs that are not the same bytes: logs, and archive."""
    names = {path.relative_to(run) for run in (one, other) for path in run.glob("warc/*")}
    names |= {Path("crawl.jsonl"), Path("failures.jsonl")}
    return [str(name) for name in sorted(names) if _read(one / name) != _read(other / name)]


def _read(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None
