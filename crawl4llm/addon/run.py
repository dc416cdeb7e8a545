"""The run of the add-on: workers, archive, crawl log and figures, which its components share during a crawl."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import scrapy
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider
from scrapy.settings import BaseSettings
from scrapy.utils.asyncio import is_asyncio_available

from crawl4llm.addon.meta import found
from crawl4llm.addon.request_budgets import RequestBudgets
from crawl4llm.addon.request_parts import RequestParts
from crawl4llm.base.crawl_log import failure_line
from crawl4llm.base.errors import InputError, Why
from crawl4llm.base.output_dir import ClaimedOutputDir
from crawl4llm.base.pages import utc_date
from crawl4llm.base.run_folder import STATS, WARC, write_json, write_settings
from crawl4llm.base.stats import PREFIX
from crawl4llm.base.urls import normalise_url
from crawl4llm.base.version import __version__
from crawl4llm.crawl import BAD_INPUT, CrawlLog, LiveCorpus, load_rater, open_archive, warcinfo_fields
from crawl4llm.engine import SOFTWARE, misspelt
from crawl4llm.frontier import Outcome
from crawl4llm.live import crawler_name, from_the_network
from crawl4llm.options import Options, read_options
from crawl4llm.parts import Refusal, load_part
from crawl4llm.policies import Candidate
from crawl4llm.scoring import (
    HtmlPage,
    PageTasks,
    PageWorkers,
    RatedText,
    Rating,
    gives_probabilities,
    influence_task,
    require_library,
)
from crawl4llm.warc import Archive, ArchiveInfo, host_name

logger = logging.getLogger(__name__)

OPTIONS = (
    *("SCORER", "SCORER_MODEL", "SCORER_LABEL", "SCORING_WORKERS", "TEXT_EXTRACTOR"),
    *("CRAWL_CONCURRENT_LEASES", "OUTPUT_DIR", "URL_BUDGET", "CRAWL_SCOPE", "SCOPE_DOMAINS", "SCOPE_HTTPS_ONLY"),
    *("SCOPE_SKIPPED_TYPES", "SCOPE_DENY", "SCOPE_ALLOW", "BLOCKLISTS", "URL_TRAPS", "SITE_RULES"),
    *("SKIPPED_LINK_TYPES", "NOINDEX", "CRAWL_LANGUAGES", "KNOWN_URLS", "KNOWN_LINKS", "KNOWN_TEXTS"),
    *("NEAR_DUPLICATES", "URL_WORTHLESS_PAGES", "QUALITY_THRESHOLD", "CRAWL_PARTS"),
    *("WARC_ENABLED", "WARC_MAX_BYTES", "WARC_PREFIX", "WARC_MAX_AGE", "WARC_COMPRESSION", "WARC_TEXT"),
    *("WARC_REVISITS", "WARC_OPERATOR", "ARCHIVE_CREDENTIALS"),
)
"""The settings of crawl4llm that the add-on reads. The names of others may mean something else in the project."""
_WENT = ("TEXT_TIME_LIMIT", "WARC_FSYNC")
"""Removed settings; each is reported (crawl4llm.options.WENT)."""

_DOORS = ("TELNETCONSOLE_ENABLED", "REMOTE_CONTROL_ENABLED")

POLICY = "parent_first"
"""The order of requests: by the influence of the first page on which each was found."""


class AddonRun:
    """Scrapy extension: opens the parts of a crawl when the spider opens, and closes them with it.

    If a part cannot be opened, the log says so in one line, and the crawl ends before its first request. It also ends
    if a page cannot be written, or if the scorer returns NaN. The finish reason is ``bad_input`` then.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.failure: str | None = None
        """The error that keeps the crawl from starting, or has stopped it, in one line."""
        self.crawler_name = crawler_name(crawler.settings)
        """The name by which opt-outs are addressed to the crawl."""
        self.concurrent_requests = 0
        """Requests between the scheduler and the end of their callback, at most; 0: any number."""
        self.parts_asked = False
        """True if parts are asked about requests before they are queued, False if before they are sent."""
        self.budgets: RequestBudgets | None = None
        """Set if URL_BUDGET is."""
        self.stats = crawler.stats
        self._crawler = crawler
        self._opened = ExitStack()
        self._output: Path | None = None
        self._stopping: asyncio.Task[None] | None = None
        crawler.signals.connect(self._open, signal=signals.spider_opened)
        crawler.signals.connect(self._when_idle, signal=signals.spider_idle)
        crawler.signals.connect(self._close, signal=signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> AddonRun:
        return cls(crawler)

    @classmethod
    def of(cls, crawler: Crawler) -> AddonRun:
        """Return the run of a crawler."""
        run = crawler.get_extension(cls)
        assert run is not None
        return run

    def count(self, key: str) -> None:
        """Add one to a figure of :mod:`crawl4llm.base.stats`."""
        self.stats.inc_value(PREFIX + key)

    def publish(self, key: str, value: float) -> None:
        """Set a figure of :mod:`crawl4llm.base.stats`."""
        self.stats.set_value(PREFIX + key, value)

    def refuse(self, error: InputError) -> None:
        """Keep the crawl from starting."""
        if self.failure is None:
            self.failure = str(error)
            logger.error("%s", error)

    def stop(self, error: InputError) -> None:
        """End the crawl while it runs."""
        self.refuse(error)
        self.end(BAD_INPUT)

    def end(self, reason: str) -> None:
        """End the crawl, for a reason that is Scrapy's ``finish_reason``."""
        if self._stopping is None:
            self._stopping = asyncio.ensure_future(self._crawler.engine.close_spider_async(reason=reason))

    def wanted(self, request: Request) -> bool:
        """Ask all parts about a request; one that is dropped is counted. Raises InputError, as the next two do."""
        return self.parts.follows(request) and self.may_be_queued(request)

    def may_be_queued(self, request: Request) -> bool:
        """Ask about one that is followed, and no duplicate."""
        return self._heed(request, self.parts.refusal(request))

    def may_be_sent(self, request: Request) -> bool:
        """Ask about one that is for no page, such as a robots.txt or an image."""
        return self._heed(request, self.parts.blocked(request))

    def _heed(self, request: Request, refusal: Refusal | None) -> bool:
        if refusal is not None:
            self.drop(request, refusal)
        return refusal is None

    def drop(self, request: Request, refusal: Refusal) -> None:
        """Count a request that a part drops, and write its line, as :meth:`lost` does."""
        self.lost(request, Outcome.DROPPED, refusal.reason, refusal.why)

    def lost(self, request: Request, outcome: Outcome, reason: str, why: Why | None = None) -> None:
        """Count a request that has led to no page, and write its line of ``failures.jsonl``; ``why``: the rule that
        says so."""
        self.count(f"{outcome.value}/{reason}")
        origin = found(request)
        document = Candidate(normalise_url(request.url), request.url, origin.depth, origin.page)
        try:
            self.log.write([], [failure_line(outcome.value, reason, document, why)])
        except InputError as error:
            self.stop(error)

    # -- Scrapy's signals -----------------------------------------------------------------------------------------

    def _open(self) -> None:
        if self.failure is not None:
            return
        try:
            with ExitStack() as opened:
                self._open_parts(self._crawler.settings, opened)
                self._opened = opened.pop_all()
        except InputError as error:
            self.refuse(error)

    def _when_idle(self) -> None:
        """End a crawl that was refused; it has no requests, as LinkScoring keeps back those of the spider's start.

        CloseSpider from spider_opened would do, but before Scrapy 2.18 it is logged in full and not heeded.
        """
        if self.failure is not None:
            raise CloseSpider(BAD_INPUT)

    def _close(self) -> None:
        for end in (self._publish_parts, self._opened.close, self._write_stats):
            try:
                end()
            except InputError as error:  # what comes after it is done all the same
                self.refuse(error)

    def _publish_parts(self) -> None:
        if self._output is not None:
            ours = {key.removeprefix(PREFIX): n for key, n in self.stats.get_stats().items() if key.startswith(PREFIX)}
            for key, value in self.parts.figures(ours).items():
                self.publish(key, value)

    def _write_stats(self) -> None:
        if self._output is not None:
            write_json(self._output / STATS, dict(sorted(self.stats.get_stats().items())))
            logger.info("The crawl's output is in %s", self._output)

    # -- its parts ------------------------------------------------------------------------------------------------

    def _open_parts(self, settings: BaseSettings, opened: ExitStack) -> None:
        """Open the parts in the order that makes bad input fail first and cheapest."""
        if not is_asyncio_available():
            raise InputError(f"TWISTED_REACTOR {settings['TWISTED_REACTOR']} has no asyncio; leave it at its default")
        options = _read_options(settings)
        _warn_of_open_doors(settings)
        if options.url_budget:
            require_library()
        self.parts = RequestParts(options)
        needs = self.parts.needs
        rater = load_rater(LiveCorpus, options, options.text_extractor)
        rater = replace(rater, known_texts=needs.known_texts, classifiers=needs.classifiers, lines=needs.lines)
        self.concurrent_requests = options.crawl_concurrent_leases or settings.getint("CONCURRENT_REQUESTS")
        self.model_digest = f"sha256:{rater.scorer.digest}"
        self.extractor = options.text_extractor
        output = opened.enter_context(ClaimedOutputDir(options.output_dir))
        self.parts.publish(output)
        keeps_text = options.warc_enabled and options.warc_text
        if options.url_budget:
            probabilities = gives_probabilities(options.scorer)
            self.budgets = RequestBudgets(options.url_budget, probabilities=probabilities)
        signature = self.budgets is not None or needs.signature
        workers = opened.enter_context(PageWorkers(rater, options.workers))
        workers.start()
        task = influence_task(text=keeps_text, signature=signature, more=rater.tells_more)
        self.workers: PageTasks[HtmlPage, Rating | RatedText] = PageTasks(workers, task)
        crawl_id = uuid.uuid4()
        write_settings(output, self._settings(crawl_id, options))
        self.log = CrawlLog(output)
        opened.callback(self.log.close)
        self.archive = self._archive(output / WARC, crawl_id, options)
        opened.callback(self.archive.close)
        self._output = output
        logger.info("Scoring with %s; the crawl goes to %s", options.scorer_model or options.scorer, output)

    def _settings(self, crawl_id: uuid.UUID, options: Options) -> dict[str, Any]:
        return {
            "crawl_id": str(crawl_id),
            "model_digest": self.model_digest,
            "label": options.scorer_label,
            "extractor": options.text_extractor,
            "policy": POLICY,
            **self.parts.identity,
            "versions": {"crawl4llm": __version__, "scrapy": scrapy.__version__},
            "settings": {name: getattr(options, name.lower()) for name in OPTIONS},
        }

    def _archive(self, directory: Path, crawl_id: uuid.UUID, options: Options) -> Archive:
        source = from_the_network(self._crawler.settings, "signals in heads of responses and of HTML are recorded")
        fields = warcinfo_fields(
            options, SOFTWARE, source, policy=POLICY, extractor=options.text_extractor, model_digest=self.model_digest
        )
        info = ArchiveInfo(crawl_id, options.warc_prefix, utc_date(), fields, host_name())
        return open_archive(directory, options, info)


def _warn_of_open_doors(settings: BaseSettings) -> None:
    """Warn of Scrapy's two ways to run code in a crawl from outside, which are on by default."""
    if opened := [name for name in _DOORS if settings.getbool(name)]:
        logger.warning(
            "%s: the crawl listens on a port, and anyone with its password can run code in the crawl; to close it, "
            "set %s",
            " and ".join(opened),
            " and ".join(f"{name} = False" for name in opened),
        )


def _read_options(settings: BaseSettings) -> Options:
    """Read the settings of the add-on. Raises InputError, also for one whose name is misspelt."""
    options = _options_of(settings, (*OPTIONS, *_WENT))
    own = [name for path in options.crawl_parts for name in load_part(path).SETTINGS]
    for given, meant in misspelt(settings, own).items():
        if ours := [name for name in meant if name in OPTIONS]:
            raise InputError(f"setting {given} is not known; did you mean {' or '.join(ours)}?")
    return _options_of(settings, (*OPTIONS, *own)) if own else options


def _options_of(settings: BaseSettings, names: Sequence[str]) -> Options:
    return read_options(BaseSettings({name: settings[name] for name in names if name in settings}))
