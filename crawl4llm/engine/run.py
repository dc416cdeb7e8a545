"""A run: one crawl with everything it needs opened, checked and, at the end, closed."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import scrapy

from crawl4llm import __version__
from crawl4llm.base.crawl_log import CrawlLog
from crawl4llm.base.domains import Domain
from crawl4llm.base.errors import InputError
from crawl4llm.base.pages import utc_date
from crawl4llm.base.run_folder import SEEDS, SETTINGS, STATS, WARC, claim_output_dir, write_json, write_text
from crawl4llm.crawl.algorithm import Crawl
from crawl4llm.crawl.archiving import from_the_network, open_archive, warcinfo_fields
from crawl4llm.crawl.commits import NoCommits
from crawl4llm.crawl.job.job import Job
from crawl4llm.crawl.scope import Limits
from crawl4llm.crawl.seeds import Seeds, read_seeds, sample_seeds
from crawl4llm.frontier import Caps
from crawl4llm.frontier.memory import MemoryFrontier
from crawl4llm.frontier.visited import MemoryVisited
from crawl4llm.live.web import LiveWeb, check_policy, is_live
from crawl4llm.options import Options, misspelt, read_options
from crawl4llm.policies import Policy, load_policy
from crawl4llm.policies._ordering import make_policy
from crawl4llm.scoring import load_scorer, load_scorers
from crawl4llm.scoring.rating import PageRater, rate_by_html, rate_by_key
from crawl4llm.scoring.text import load_extractor
from crawl4llm.scoring.workers import PageWorkers
from crawl4llm.warc import Archive, ArchiveInfo, ArchivePosition
from crawl4llm.warc.names import host_name
from simulate.open import DEMO, StoredCorpus, demo_web, open_corpus

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_CRAWL_IDS = uuid.UUID("6f3a2b1e-1d2c-5c57-9a5e-0c4a11f0e2d3")
"""Name space of crawl ids: a crawl's id is a function of what decides its pages and their order."""


class Run:
    """Opens all parts of a crawl in the order that makes bad input fail first and cheapest.

    ``seeds_file`` is None for random seeds. Worker processes are forked here: before the reactor runs, they share the
    model that was loaded. Raises InputError.
    """

    crawl: Crawl
    corpus: StoredCorpus
    live: bool
    """Whether pages come over the network."""
    output: Path
    seeds: Seeds
    workers: PageWorkers[PageRater]
    job: Job | None
    """What makes it outlive its process, if JOBDIR is set."""

    def __init__(self, settings: BaseSettings, seeds_file: str | None = None) -> None:
        with ExitStack() as opened:
            self._open(settings, seeds_file, opened)
            self._opened = opened.pop_all()

    def _open(self, settings: BaseSettings, seeds_file: str | None, opened: ExitStack) -> None:
        self._scrapy_settings = settings
        self.options = options = read_options(settings)
        for given, meant in misspelt(settings).items():
            raise InputError(f"setting {given} is not known; did you mean {' or '.join(meant)}?")
        self._limits = Limits(settings.getint("DEPTH_LIMIT"), settings.getint("URLLENGTH_LIMIT"))
        self.live = is_live(settings)
        policy_class = load_policy(options.url_policy)
        if self.live:
            check_policy(policy_class, options)
        self.job = job = Job(Path(settings["JOBDIR"]), options) if settings.get("JOBDIR") else None
        if job is not None:
            opened.callback(job.close)
        self.corpus, rater = open_rater(settings, policy_class.scorers(options), live=self.live)
        opened.callback(self.corpus.close)
        self.corpus.check()
        self.corpus.require("outlinks", *policy_class.corpus_parts)
        if seeds_file is None:
            self.seeds = sample_seeds(self.corpus, options.crawl_seeds, options.crawl_seed)
        else:
            self.seeds = read_seeds(Path(seeds_file), self.corpus)
        self.workers = workers = opened.enter_context(PageWorkers(rater, options.workers, options.text_time_limit))
        policy = make_policy(workers, options)
        identity = self._identity(policy, rater)
        crawl_id = str(uuid.uuid4() if self.live else uuid.uuid5(_CRAWL_IDS, json.dumps(identity, sort_keys=True)))
        if job is None:
            self.output = claim_output_dir(options.output_dir)
        else:
            job.settle(crawl_id, identity)
            self.output, crawl_id = job.output, job.crawl_id
        workers.start()
        fsync = job is not None and options.commit_fsync
        write_json(self.output / SETTINGS, {"crawl_id": crawl_id, **identity, **self._settings()}, fsync=fsync)
        write_text(self.output / SEEDS, "".join(f"{key}\n" for key in self.seeds.keys), fsync=fsync)
        if job is not None:
            job.open(reranks=policy.reranks)
        log = CrawlLog(self.output, at=job.state.log if job else None)
        opened.callback(log.close)
        archive = self._archive(crawl_id, identity, at=job.state.archive if job else None)
        opened.callback(archive.close)
        caps = Caps(options.frontier_max_urls or None, options.frontier_max_urls_per_host or None)
        self.crawl = Crawl(
            options,
            policy=policy,
            rate=partial(rate_by_html if self.live else rate_by_key, workers, text=archive.keeps_text),
            frontier=job.frontier if job else MemoryFrontier(caps),
            visited=job.visited if job else MemoryVisited(),
            archive=archive,
            log=log,
            commits=job.commits(log, archive) if job else NoCommits(archive),
            provenance={name.replace("_", "-"): identity[name] for name in ("model_digest", "extractor", "corpus")},
            concurrent_leases=options.crawl_concurrent_leases or settings.getint("CONCURRENT_REQUESTS"),
            opted_out=[Domain(name) for name in job.state.purged] if job else [],
            spool=job.answers() if job and self.live else None,
            limits=self._limits,
        )
        if job is not None and job.state.crawl is not None:
            policy.load(job.state.policy)
            self.crawl.load(job.state.crawl, job.frontier.leases())
        else:
            self.crawl.tally.counts.update(self.seeds.counts)

    @property
    def finished(self) -> str | None:
        """Why there is nothing to do, in a crawl that was taken up again; None where there is."""
        if self.job is None or self.job.state.crawl is None or self.job.state.seeds:
            return None
        return self.crawl.finished

    async def start(self) -> None:
        """Queue the seeds, or, where a crawl is taken up again, those that were added to it meanwhile."""
        if self.job is None or self.job.state.crawl is None:
            await self.crawl.start(self.seeds.keys)
        else:
            await self.crawl.go_on()
            if self.job.state.seeds:
                await self.crawl.add_seeds(self.job.state.seeds)

    def _identity(self, policy: Policy, rater: PageRater) -> dict[str, Any]:
        """What decides which pages are crawled in which order, but for N."""
        options = self.options
        return {
            "corpus": self.corpus.name,
            "corpus_digest": self.corpus.identity(),
            "model_digest": f"sha256:{rater.scorer.digest}",
            "scorer": options.scorer,
            "label": options.scorer_label,
            "text": "extracted" if self.live else options.simulation_text,
            "extractor": rater.extractor,
            "policy": policy.name,
            "policy_settings": policy.identity(),
            "scope": options.crawl_scope,
            "batch_size": options.crawl_batch_size,
            "random_seed": options.crawl_seed,
            "seeds_digest": _digest(self.seeds.keys),
            **({"limits": self._limits._asdict()} if any(self._limits) else {}),
        }

    def _settings(self) -> dict[str, Any]:
        values = asdict(self.options)
        return {
            "versions": {"crawl4llm": __version__, "scrapy": scrapy.__version__},
            "settings": {name.upper(): value for name, value in values.items()},
        }

    def _archive(self, crawl_id: str, identity: dict[str, Any], at: ArchivePosition | None) -> Archive:
        options = self.options
        source = from_the_network(self._scrapy_settings) if self.live else _from_a_corpus(identity)
        facts = {name: identity[name] for name in ("policy", "extractor", "model_digest")}
        info = ArchiveInfo(
            crawl_id=uuid.UUID(crawl_id),
            prefix=options.warc_prefix,
            start_date=utc_date() if self.live else options.simulation_date,
            fields=warcinfo_fields(options, source, **facts),
            host=host_name() if self.live else None,
        )
        return open_archive(self.output / WARC, options, info, at)

    def write_stats(self, stats: dict[str, Any]) -> None:
        """Write ``stats.json``."""
        write_json(self.output / STATS, dict(sorted(stats.items())))

    def close(self) -> None:
        """Stop the workers, close all files. A second time does nothing."""
        self._opened.close()


def open_rater(
    settings: BaseSettings, others: Collection[str] = (), *, live: bool = False
) -> tuple[StoredCorpus, PageRater]:
    """The corpus, or the live web, and the scorer that the settings name; and other scorers, by name.

    Raises InputError.
    """
    options = read_options(settings)
    if options.scorer_model is None and options.corpus == DEMO:
        options = replace(options, scorer_model=str(demo_web().model))
    scorer = load_scorer(options)
    corpus: StoredCorpus = LiveWeb() if live else open_corpus(settings)
    extractor = _extractor(options, live=live)
    corpus.require("text" if extractor is None else "html")
    return corpus, PageRater(corpus, scorer, extractor, load_scorers(others, options))


def _from_a_corpus(identity: dict[str, Any]) -> dict[str, str | None]:
    """What the archive says of where the pages of a simulation come from."""
    return {
        "robots": "none: pages come from a corpus, no requests are sent",
        "opt-out": "as the corpus: what its sites asked for was up to who made it",
        "corpus": identity["corpus"],
        "corpus-digest": identity["corpus_digest"],
    }


def _extractor(options: Options, *, live: bool) -> str | None:
    """Name of the extractor that is used, tried out; None where the corpus's clean text is scored."""
    if options.simulation_text == "corpus" and not live:
        return None
    load_extractor(options.text_extractor)
    return options.text_extractor


def _digest(keys: Sequence[str]) -> str:
    return f"sha256:{hashlib.sha256(json.dumps(keys).encode()).hexdigest()}"
