"""A run: one crawl with everything it needs opened, checked and, at the end, closed."""

from __future__ import annotations

import logging
import platform
import resource
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import scrapy

from crawl4llm.base import crawl_log
from crawl4llm.base.domains import Domain
from crawl4llm.base.errors import InputError
from crawl4llm.base.output_dir import SCRATCH, STORED_CRAWL, ClaimedOutputDir, check_worker_of, give_back
from crawl4llm.base.run_folder import ERRORS, SEEDS, STATS, WARC, write_json, write_settings, write_text
from crawl4llm.base.stats import PREFIX
from crawl4llm.base.version import __version__
from crawl4llm.cluster_options import without_cluster
from crawl4llm.crawl import (
    Clock,
    CrawlLog,
    Driven,
    Limits,
    Seeds,
    Web,
    open_archive,
    open_crawl,
    patience_of,
    read_seeds,
    sample_seeds,
    warcinfo_fields,
)
from crawl4llm.engine.logs import error_log
from crawl4llm.engine.settings import misspelt
from crawl4llm.engine.software import SOFTWARE
from crawl4llm.engine.webs import web_class
from crawl4llm.frontier import IMPATIENT, Caps, Frontier, MemoryVisited, OwnerFrontier, memory_frontier
from crawl4llm.options import Options, read_options
from crawl4llm.parts import open_parts
from crawl4llm.policies import Policy, load_policy, make_policy
from crawl4llm.scoring import PageRater, open_workers
from crawl4llm.warc import Archive, ArchiveInfo

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawl4llm.crawl import Job, RatePages
    from crawl4llm.frontier import Shares

logger = logging.getLogger(__name__)


class Run:
    """Opens all parts of a crawl in the order that makes bad input fail first and cheapest.

    ``seeds`` is a file of seeds, or seeds; None for random ones. Worker processes are forked here, before the reactor
    runs, so that they share the loaded model. Raises InputError.
    """

    job: Job | None
    """Its durable state, if JOBDIR is set."""

    def __init__(self, settings: BaseSettings, seeds: str | Sequence[str] | None = None) -> None:
        with ExitStack() as opened:
            _check_names(settings)
            self._limits = Limits(settings.getint("DEPTH_LIMIT"), settings.getint("URLLENGTH_LIMIT"))
            self.web = web_class(settings)(settings)
            self.options = options = self.web.options
            self._concurrent_leases = options.crawl_concurrent_leases or settings.getint("CONCURRENT_REQUESTS")
            self._clock = _clock(self.web, options)
            if options.storage is not None or options.cluster is not None:
                from crawl4llm.cluster import check_lease, refuse_settings  # crawls by several workers only

                is_live = self.web.host is not None
                has_clock, has_jobdir = self._clock is not None, bool(settings.get("JOBDIR"))
                refuse_settings(options, is_live=is_live, has_clock=has_clock, has_jobdir=has_jobdir)
                if is_live:
                    check_lease(options, settings.getfloat("DOWNLOAD_TIMEOUT"))
            self.parts = open_parts(options)
            policy_class = load_policy(options.url_policy)
            self.web.check_policy(policy_class)
            self.job = None
            if settings.get("JOBDIR"):
                from crawl4llm.crawl import Job  # with lmdb, and the frontier on disk

                self.job = Job(Path(settings["JOBDIR"]), options)
                opened.push(self.job.close_start)
            rater = self._open_web(policy_class, opened)
            self.seeds = self._read_seeds(seeds)
            self.workers = opened.enter_context(open_workers(rater, options.workers, self.web.scores))
            policy = make_policy(self.workers, options)
            if options.storage is not None:
                from crawl4llm.cluster import divided  # crawls by several workers only

                self._partitions = divided(policy, self.web.corpus, options)
            identity = self._identity(policy, rater)
            self._begin(identity, opened)
            self.crawl = self._open_crawl(policy, identity, opened)
            self._found_before = self._new_quality
            self.added_seeds: Sequence[str] = self.job.state.seeds if self.job else ()
            """Seeds added to a paused crawl that is now resumed."""
            self.close = opened.pop_all().close
            """Stops the workers and closes all files; further calls do nothing."""

    def _open_web(self, policy: type[Policy], opened: ExitStack) -> PageRater:
        rater = self.web.open(policy.scorers(self.options))
        corpus = self.web.corpus
        opened.callback(corpus.close)
        corpus.check()
        corpus.require("outlinks", *policy.corpus_parts)
        for meet in self.parts.having("meet"):
            meet(corpus)
        needs = self._needs = self.parts.needs()
        return replace(rater, known_texts=needs.known_texts, classifiers=needs.classifiers, lines=needs.lines)

    def _read_seeds(self, given: str | Sequence[str] | None) -> Seeds:
        if given is None:
            return sample_seeds(self.web.corpus, self.options.crawl_seeds, self.options.crawl_seed)
        return read_seeds(Path(given) if isinstance(given, str) else given, self.web.corpus)

    def _begin(self, identity: dict[str, Any], opened: ExitStack) -> None:
        """Take the output directory of this crawl, new or not, and start the workers."""
        options, job = self.options, self.job
        self.crawl_id = self.web.crawl_id(identity)
        if job is None:
            worker = options.storage is not None
            self.output = opened.enter_context(ClaimedOutputDir(options.output_dir, worker=worker))
        else:
            job.settle(self.crawl_id, identity)
            self.output, self.crawl_id = job.output, job.crawl_id
        opened.enter_context(error_log(self.output / ERRORS))
        fsync = job is not None and options.commit_fsync
        for publish in self.parts.having("publish"):
            publish(self.output, fsync=fsync)
        self.workers.start()
        versions = {"crawl4llm": __version__, "scrapy": scrapy.__version__, "python": platform.python_version()}
        values = without_cluster({name.upper(): value for name, value in asdict(options).items()})
        if not options.own:
            del values["OWN_SETTINGS"]  # which few crawls have: reports and descriptions show all that is here
        self._facts = {"crawl_id": self.crawl_id, **identity, "versions": versions, "settings": values}
        if options.storage is None:
            self._write_facts(fsync=fsync)

    def _write_facts(self, *, fsync: bool) -> None:
        write_settings(self.output, self._facts, fsync=fsync)
        write_text(self.output / SEEDS, "".join(f"{key}\n" for key in self.seeds.keys), fsync=fsync)

    def _open_crawl(self, policy: Policy, identity: dict[str, Any], opened: ExitStack) -> Driven:
        options, job, web = self.options, self.job, self.web
        if options.storage is not None:
            return self._join(identity, opened)
        clock = self._clock
        if job is not None:
            job.open(reranks=policy.reranks, clock=clock, shares=self._shares)
        log = CrawlLog(self.output, at=job.state.log if job else None)
        opened.callback(log.close)
        archive = self._open_archive(identity)
        opened.callback(archive.close)
        caps = Caps(options.frontier_max_urls or None, options.frontier_max_urls_per_host or None)
        frontier: Frontier
        owned: OwnerFrontier | None
        frontier, owned = (job.store.frontier, job.by_owners) if job else self._frontier_in_memory(caps)
        crawl = open_crawl(
            options,
            policy=policy,
            rate=self._rating(text=archive.keeps_text),
            frontier=frontier,
            by_owners=owned,
            visited=job.store.visited if job else MemoryVisited(),
            archive=archive,
            log=log,
            commits=job.commits(log, archive) if job else None,
            parts=self.parts,
            provenance=_provenance(identity),
            aside=job.aside() if job else None,
            clock=clock,
            tells_sites_apart=web.tells_sites_apart,
            sends=web.host is not None,
            concurrent_leases=(clock and clock.most_leases) or self._concurrent_leases,
            opted_out=[Domain(name) for name in job.state.purged] if job else [],
            limits=self._limits,
            spool=job.answers() if job and web.keeps_answers else None,
            url_of_seed=web.url_of_seed if clock or self._asks_for_urls else None,
        )
        if job is not None:
            job.take_up(policy, crawl.parts, crawl.sites)
        if job is not None and job.state.crawl is not None:
            job.go_on(crawl)
            if job.by_owners is not None and (number := job.by_owners.owners.unpark_within(options.crawl_delay_cap)):
                logger.info("%d owners are no longer parked: CRAWL_DELAY_CAP is now long enough", number)
        else:
            crawl.counters.counts.update(self.seeds.counts)
        return crawl

    @property
    def _asks_for_urls(self) -> bool:
        """True if a part needs the URLs of seeds."""
        return any(self.parts.having(hook) for hook in ("seeds", "blocks", "lease"))

    def _rating(self, *, text: bool) -> RatePages:
        """Return a function that rates pages; ``text``: whether it also gives their main text."""
        return self.web.rating(self.workers, text=text, signature=self._needs.signature)

    @property
    def _shares(self) -> Shares | None:
        """The wanted shares of classes, for a frontier by class."""
        return next((part.shares for part in self.parts if part.shares is not None), None)

    def _join(self, identity: dict[str, Any], opened: ExitStack) -> Driven:
        """Join a cluster crawl, whose state is in the storage."""
        from crawl4llm.cluster import opening, storage, worker  # crawls by several workers only

        options, web = self.options, self.web
        common = worker.Common(
            options,
            make_policy=lambda: make_policy(self.workers, options),
            rate=self._rating(text=False),
            provenance=_provenance(identity),
            limits=self._limits,
            parts=self.parts,
            url_of_seed=web.url_of_seed if self._asks_for_urls else None,
            info=self._archive_info(identity),
            seeds=self.seeds.keys,
            partitions=self._partitions,
            storage=storage.Storage(str(options.storage)),
            folder=self.output / SCRATCH,
            clock=self._clock,
            concurrent_leases=self._concurrent_leases,
            tells_sites_apart=web.tells_sites_apart,
        )
        crawl = opening.open_cluster(common, self._facts, self.seeds.counts, self._join_as)
        opened.callback(crawl.close)
        return crawl

    def _join_as(self, stored_crawl: str) -> None:
        """Make the output directory that of a worker of the crawl with this id in the storage. Raises InputError."""
        check_worker_of(self.output, stored_crawl)
        self._facts[STORED_CRAWL] = stored_crawl
        self._write_facts(fsync=False)

    def _frontier_in_memory(self, caps: Caps) -> tuple[Frontier, OwnerFrontier | None]:
        """Return a frontier that ends with this process, and again as a frontier of owners, if it is one."""
        clock = self._clock
        patience = IMPATIENT if clock is None else patience_of(self.options, clock)
        frontier = memory_frontier(caps, by_owners=clock is not None, shares=self._shares, patience=patience)
        return frontier, None if clock is None else frontier

    def give_back_if_empty(self) -> bool:
        """Remove the files of a crawl that has no pages and cannot be resumed; return whether there were any. To be
        called when it is closed."""
        if self.job is not None or self.options.storage is not None:
            return False
        logs = [self.output / name for name in (crawl_log.NAME, crawl_log.FAILURES)]
        if any(path.is_file() and path.stat().st_size for path in [*logs, *(self.output / WARC).rglob("*")]):
            return False
        give_back(self.output)
        return True

    @property
    def finished(self) -> str | None:
        """The reason why a resumed crawl has nothing to do; None if it has."""
        if self.job is None or self.job.state.crawl is None or self.job.state.seeds:
            return None
        return None if self.web.seeds_wait() else self.crawl.finished

    def _identity(self, policy: Policy, rater: PageRater) -> dict[str, Any]:
        """Return the settings and digests that decide which pages are crawled in which order, except N."""
        options = self.options
        return {
            "corpus": self.web.corpus.name,
            "corpus_digest": self.web.corpus.identity(),
            "model_digest": f"sha256:{rater.scorer.digest}",
            "scorer": options.scorer,
            "label": options.scorer_label,
            "text": self.web.text,
            "extractor": rater.extractor,
            "policy": policy.name,
            "policy_settings": policy.identity(),
            "scope": options.crawl_scope,
            "batch_size": options.crawl_batch_size,
            "random_seed": options.crawl_seed,
            "seeds_digest": self.seeds.digest,
            **({"limits": self._limits._asdict()} if any(self._limits) else {}),
            **self.parts.identity(),
            **({"own_settings": dict(options.own)} if options.own else {}),
        }

    def _open_archive(self, identity: dict[str, Any]) -> Archive:
        info, at = self._archive_info(identity), self.job.state.archive if self.job else None
        return open_archive(self.output / WARC, self.options, info, at)

    def _archive_info(self, identity: dict[str, Any]) -> ArchiveInfo:
        options, web = self.options, self.web
        facts = {name: identity[name] for name in ("policy", "extractor", "model_digest")}
        return ArchiveInfo(
            crawl_id=uuid.UUID(self.crawl_id),
            prefix=options.warc_prefix,
            start_date=web.start_date,
            fields=warcinfo_fields(options, SOFTWARE, web.source(identity), **facts),
            host=web.host,
        )

    @property
    def _new_quality(self) -> int:
        """Crawled pages so far with a new text and an influence of at least QUALITY_THRESHOLD."""
        return self.crawl.counters.counts["pages/new_quality"]

    def costs(self, stats: Mapping[str, Any]) -> dict[str, float]:
        """Return the cost of new quality documents since the crawl was begun or resumed, by keys of
        :mod:`crawl4llm.base.stats`. Only if requests are sent, because a simulation has no clock. ``stats`` are
        Scrapy's. Workers count when they have ended."""
        if self.options.quality_threshold is None or self.web.host is None:
            return {}
        found = self._new_quality - self._found_before
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        spent = {
            "new_quality/per_gb": stats.get("downloader/response_bytes", 0) / 1e9,
            "new_quality/per_cpu_hour": sum(usage.ru_utime + usage.ru_stime for usage in used) / 3600,
        }
        return {key: found / cost for key, cost in spent.items() if cost}

    def write_stats(self, stats: dict[str, Any]) -> None:
        """Write ``stats.json``."""
        stats |= {PREFIX + key: value for key, value in self.costs(stats).items()}
        if (scores := self.web.scores) is not None:
            stats |= {f"{PREFIX}scores/cached": scores.found, f"{PREFIX}scores/computed": scores.added}
        write_json(self.output / STATS, dict(sorted(stats.items())))


def _provenance(identity: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of all pages of a crawl."""
    return {name.replace("_", "-"): identity[name] for name in ("model_digest", "extractor", "corpus")}


def _clock(web: Web, options: Options) -> Clock | None:
    """Return the clock by which owners wait; None if they do not."""
    clock = web.clock if options.crawl_batch_size == 0 else None
    if options.crawl_patience and clock is None:
        raise InputError(
            "CRAWL_PATIENCE is for crawls in which owners wait: live ones in continuous order, or simulations with "
            "SIMULATION_OWNER_DELAY; leave it out"
        )
    return clock


def _check_names(settings: BaseSettings) -> None:
    """Raise InputError for a setting whose name is misspelt."""
    for given, meant in misspelt(settings, read_options(settings).own).items():
        raise InputError(f"setting {given} is not known; did you mean {' or '.join(meant)}?")
