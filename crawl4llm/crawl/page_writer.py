"""The page writer (line 7 of Algorithm 1): rates fetched pages, and writes them to archive and crawl log."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from crawl4llm.base.crawl_log import ComparedLine, CrawlLine
from crawl4llm.base.pages import Capture, PageRecord
from crawl4llm.base.reasons import ERROR, NO_TEXT
from crawl4llm.crawl.reorder_buffer import Answer
from crawl4llm.frontier import Entry, Frontier, Lease, Outcome, Owners
from crawl4llm.frontier.memory import MemoryVisited
from crawl4llm.options import Options
from crawl4llm.policies import CrawledPage, Policy
from crawl4llm.scoring.rating import RatedText, Rating
from crawl4llm.warc import Archive, ArchiveFormat, ArchiveInfo, ArchivePosition, NullArchive

if TYPE_CHECKING:
    from crawl4llm.crawl.algorithm import Crawl
    from crawl4llm.crawl.commits import CrawlStore
    from crawl4llm.crawl.mixture import Mixture
    from crawl4llm.crawl.near_duplicates import NearDuplicates
    from crawl4llm.frontier.visited import VisitedSet

REDIRECTS = "redirects/followed"
"""The count of redirect hops within a fetch."""


class Balance(NamedTuple):
    """The states of all documents discovered; each document is in exactly one."""

    discovered: int
    archived: int
    redirected: int
    """Redirect hops within a fetch, which are part of the document that led to them, and documents that ended with a
    redirect to another owner."""
    failed: int
    dropped: int
    queued: int
    """In the frontier, without those of parked owners."""
    leased: int
    parked: int
    """Of parked owners, or set aside because an owner or URL prefix has no budget, or a site never answered."""

    def __str__(self) -> str:
        """Return the equation."""
        names = ("archived", "redirected", "failed", "dropped", "queued", "leased", "parked")
        states = " + ".join(f"{getattr(self, name):,} {name}" for name in names)
        return f"{self.discovered:,} discovered = {states}"

    @property
    def problem(self) -> str | None:
        """The fault, in one line; None if every document is accounted for."""
        missing = self.discovered - sum(self[1:])
        if not missing:
            return None
        what = f"{missing:,} documents are in no state" if missing > 0 else f"{-missing:,} documents are in two states"
        return f"{what}: {self} does not hold"

    def check(self) -> None:
        """Raise RuntimeError where not every document is accounted for."""
        if problem := self.problem:
            raise RuntimeError(f"not committed: {problem}")


def balance(
    visited: VisitedSet, frontier: Frontier, counts: Mapping[str, int], owners: Owners | None, set_aside: int = 0
) -> Balance:
    """Add up the documents of a crawl; ``counts``: its :attr:`Counters.counts`; ``owners``: its frontier's, if any;
    ``set_aside``: those that wait for a budget, or because their sites never answered."""
    ended = {outcome: sum(reasons.values()) for outcome, reasons in ended_documents(frontier, counts).items()}
    parked = 0 if owners is None else owners.documents.parked
    return Balance(
        discovered=len(visited),
        archived=ended[Outcome.ARCHIVED],
        redirected=ended[Outcome.REDIRECTED] + counts.get(REDIRECTS, 0),
        failed=ended[Outcome.FAILED],
        dropped=ended[Outcome.DROPPED],
        queued=len(frontier) - parked,
        leased=frontier.leased,
        parked=parked + set_aside,
    )


def ended_documents(frontier: Frontier, counts: Mapping[str, int]) -> dict[Outcome, Counter[str]]:
    """Count documents that ended, by outcome and reason, those included that never entered the frontier."""
    ended: dict[Outcome, Counter[str]] = {outcome: Counter() for outcome in Outcome}
    for (outcome, reason), count in frontier.outcomes.items():
        ended[outcome][reason or ""] += count
    for key, count in counts.items():
        kind, _, reason = key.partition("/")
        if kind in {Outcome.FAILED.value, Outcome.DROPPED.value}:
            ended[Outcome(kind)][reason] += count
    return ended


class Counters:
    """Figures of :mod:`crawl4llm.base.stats`, the mean influence score, and how long all has been going wrong."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        """By the keys of :mod:`crawl4llm.base.stats`."""
        self.errors_in_row = 0
        """Unanticipated errors since a page last went well."""
        self.influence_sum = 0.0
        self.influence_pages = 0
        """Pages crawled that have an influence score."""

    @property
    def crawled(self) -> int:
        """Pages crawled so far."""
        return self.counts["pages/crawled"]

    @property
    def mean_influence(self) -> float | None:
        """Mean influence score of the pages crawled, as far as they have one."""
        return self.influence_sum / self.influence_pages if self.influence_pages else None

    def page(self, influence: float | None) -> None:
        """Count a crawled page."""
        self.counts["pages/crawled"] += 1
        if influence is not None:
            self.influence_sum += influence
            self.influence_pages += 1

    def heard(self, reason: str | None) -> None:
        """Note the result of a fetch or of scoring; ``reason`` is None on success."""
        self.errors_in_row = self.errors_in_row + 1 if reason == ERROR else 0

    def note(self, reason: str | None) -> None:
        """Count a page without text, or an unanticipated error.

        Apart from :meth:`heard`: that is for a fetch as soon as it is answered, in any order; this is for all in the
        order of the crawl, so that the counts of a commit do not depend on what else has been answered.
        """
        self.counts["pages/no_text"] += reason == NO_TEXT
        self.counts["errors"] += reason == ERROR


RatePages = Callable[[Sequence[PageRecord]], Awaitable[list[Rating | RatedText]]]
"""Gives fetched pages their influence scores, and where the archive keeps it their text, in their order."""


class Rated(NamedTuple):
    """The ratings of a fetched page."""

    influence: float | None
    """Its influence score; None where that could not be computed."""
    text: str | None
    """Its main text, where the archive keeps that and it could be had."""
    has_new_text: bool = True
    """Whether it has text, which is neither known nor like an earlier page's; True too where texts are not compared."""
    near_duplicate_of: int | None = None
    """The earlier page, by its place in the crawl from 0, that its text is like."""
    known_text: bool = False
    """Whether its text is one of KNOWN_TEXTS."""
    novel: bool | None = None
    """Whether its text is new; None where it has none, or texts are not compared."""
    classes: tuple[int, ...] | None = None
    """See :attr:`crawl4llm.policies.CrawledPage.classes`."""


class PageWriter:
    """Rates pages, archives them, and makes their lines of the crawl log.

    ``provenance``: metadata that all pages of the crawl have in common.
    """

    def __init__(
        self,
        archive: Archive,
        rate: RatePages,
        *,
        visited: VisitedSet,
        counters: Counters,
        provenance: Mapping[str, str],
        near_duplicates: NearDuplicates | None = None,
        known_texts: bool = False,
        mixture: Mixture | None = None,
    ) -> None:
        self._archive = archive
        self._rate = rate
        self._visited = visited
        self._counters = counters
        self._provenance = provenance
        self._near_duplicates = near_duplicates
        self._known_texts = known_texts
        self._mixture = mixture

    async def rate(self, answers: Sequence[Answer], policy: Policy) -> dict[str, Rated]:
        """Rate the pages among ``answers``, which are archived in this order; return the results by the keys of their
        leases."""
        fetched = [(answer.lease.entry, answer.page) for answer in answers if answer.page and answer.outcome is None]
        known = policy.scores_influence
        compared = self._known_texts or self._near_duplicates is not None
        if known and not self._archive.keeps_text and not compared and self._mixture is None:
            return {entry.key: Rated(entry.score, None) for entry, _ in fetched}
        ratings = await self._rate([page for _, page in fetched])
        if not known:
            for rating in ratings:
                self._counters.heard(rating.reason)
                self._counters.note(rating.reason)
                self._counters.counts["pages/unrated"] += rating.score is None
        rated = {}
        for (entry, _), rating in zip(fetched, ratings, strict=True):
            text, classes = (rating.text, rating.classes) if isinstance(rating, RatedText) else (None, None)
            influence = entry.score if known else rating.score
            rated[entry.key] = Rated(influence, text, classes=classes)
            if compared:
                place = self._counters.crawled + len(rated) - 1
                rated[entry.key] = self._compared(place, rated[entry.key], rating)
        return rated

    def _compared(self, place: int, rated: Rated, rating: Rating | RatedText) -> Rated:
        """Say whether the text of the page at a place in the crawl is new."""
        like, signature, known = None, b"", False
        if isinstance(rating, RatedText):
            signature, known = rating.signature, rating.known
        if self._near_duplicates is not None:
            like = self._near_duplicates.add(place, signature)
            self._counters.counts["pages/near_duplicates"] += like is not None
        if self._known_texts:
            self._counters.counts["pages/known_text"] += known
        novel = like is None and not known if signature else None
        return rated._replace(has_new_text=bool(novel), near_duplicate_of=like, known_text=known, novel=novel)

    def archive(self, page: PageRecord, leased: Entry, rated: Rated, *, policy: str, iteration: int | None) -> None:
        """Archive the next page of the crawl. Raises InputError where that cannot be written."""
        self._archive.write(
            page,
            {
                "id": page.key,
                "influence": rated.influence,
                "priority": leased.score,
                "order": self._counters.crawled,
                "iteration": iteration,
                "depth": leased.depth,
                "policy": policy,
                "language": page.language,
                "opt-out-signals": page.opt_outs or None,
                "near-duplicate-of": rated.near_duplicate_of,
                "known-text": "true" if rated.known_text else None,
                **self._provenance,
            },
            rated.text,
        )

    def archive_redirects(self, page: PageRecord) -> None:
        """Archive the redirects that led from a document to another owner. Raises InputError as archive does."""
        self._archive.write_redirects(page, {"redirected-to": page.hops[-1], **self._provenance})

    def archive_exchange(self, capture: Capture, purpose: str, about: Mapping[str, str]) -> None:
        """Archive an exchange that is no page's. Raises InputError as archive does."""
        self._archive.write_exchange(capture, purpose, about)

    def line(
        self, page: CrawledPage, leased: Entry, status: int | None, iteration: int | None, rated: Rated
    ) -> CrawlLine:
        """Return the crawl log's line for the page that was crawled last, as the figures stand now."""
        line: ComparedLine = {
            "order": self._counters.crawled - 1,
            "iteration": iteration,
            "id": page.entry.key,
            "url": page.entry.url,
            "status": status,
            "priority": leased.score,
            "influence": page.influence,
            "depth": leased.depth,
            "parent": leased.parent,
            "visited": len(self._visited),
            "fetched": self._counters.counts["pages/fetched"],
        }
        if self._near_duplicates is not None:
            line["near_duplicate_of"] = rated.near_duplicate_of
        if self._known_texts:
            line["known_text"] = rated.known_text
        if self._mixture is not None:
            line["classes"] = self._mixture.named(rated.classes)
        return line


logger = logging.getLogger(__name__)


class MemoryCrawlStore:
    """Implements :class:`crawl4llm.crawl.commits.CrawlStore`; ends with the process."""

    def __init__(self, frontier: Frontier) -> None:
        self.frontier = frontier
        self.visited: VisitedSet = MemoryVisited()

    def leases(self) -> list[Lease]:
        """Return nothing: no process comes after this one."""
        return []

    def commit(self, balance: Balance, state: Mapping[str, Any]) -> None:
        """Raise RuntimeError where a document is lost; nothing lasts."""
        balance.check()


class NoCommits:
    """The commits of a crawl that ends with its process: log and archive are all that stays."""

    lasting = False

    def __init__(self, archive: Archive, store: CrawlStore | None = None) -> None:
        self._archive = archive
        self._store = store

    def commit(self, crawl: object) -> None:
        """Finish archive files that are full."""
        self._archive.flush()

    def commit_now(self, crawl: Crawl) -> None:
        """Do the same, and see to it that no document was lost: RuntimeError."""
        self._archive.flush()
        if self._store is not None:
            self._store.commit(crawl.balance, {})


def open_archive(directory: Path, options: Options, info: ArchiveInfo, at: ArchivePosition | None = None) -> Archive:
    """Open the archive in ``directory``: begin it, or with ``at`` go on there. Raises InputError. Where ``info`` names
    no host it is a simulation's: each page is stored whole, and no file closes by its age."""
    if not options.warc_enabled:
        return NullArchive()
    from crawl4llm.warc import ArchiveWriter

    live = info.host is not None
    if options.warc_max_age and not live:
        logger.warning("WARC_MAX_AGE is not heeded: a simulation has no clock")
    form = ArchiveFormat(
        compression=options.warc_compression,
        text=options.warc_text,
        revisits=options.warc_revisits if live else 0,
        max_age=options.warc_max_age if live else 0,
        credentials=options.archive_credentials,
    )
    return ArchiveWriter(directory, info, options.warc_max_bytes, at, form)


def warcinfo_fields(
    options: Options,
    software: str,
    source: Mapping[str, str | None],
    *,
    policy: str,
    extractor: str | None,
    model_digest: str,
) -> dict[str, str]:
    """Return the fields of the warcinfo records that have a value. ``software`` names this project and Scrapy with
    their versions; ``source`` says where the pages come from."""
    fields = {
        "software": software,
        "operator": options.warc_operator,
        **source,
        "policy": policy,
        "extractor": extractor,
        "model-digest": model_digest,
    }
    return {name: value for name, value in fields.items() if value}
