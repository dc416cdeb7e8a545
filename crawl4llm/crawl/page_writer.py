"""The page writer (line 7 of Algorithm 1): rates fetched pages, and writes them to archive and crawl log."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crawl4llm.base.crawl_log import FAILURES, NAME, CrawlLine, FailureLine, LogPosition
from crawl4llm.base.files import AppendFile, sync_path
from crawl4llm.base.pages import Capture, PageRecord
from crawl4llm.crawl.counting import Counters
from crawl4llm.crawl.reorder_buffer import Answer
from crawl4llm.frontier import Entry
from crawl4llm.options import Options
from crawl4llm.parts import Rated
from crawl4llm.policies import CrawledPage, Policy
from crawl4llm.scoring import RatedText, Rating
from crawl4llm.warc import Archive, ArchiveFormat, ArchiveInfo, ArchivePosition, NullArchive

if TYPE_CHECKING:
    from crawl4llm.frontier import VisitedSet

logger = logging.getLogger(__name__)

RatePages = Callable[[Sequence[PageRecord]], Awaitable[list[Rating | RatedText]]]
"""Gives fetched pages their influence scores, texts and other results that are needed, in the order of the pages."""


class PageWriter:
    """Rates pages, shows them to the parts, archives them, and makes their lines of the crawl log.

    ``provenance``: metadata of all pages of the crawl.
    """

    def __init__(
        self,
        archive: Archive,
        rate: RatePages,
        *,
        visited: VisitedSet,
        counters: Counters,
        provenance: Mapping[str, str],
        rated: Sequence[Callable[[int, Rated], None]] = (),
        reads: bool = False,
    ) -> None:
        """``rated``: hooks of parts (:meth:`crawl4llm.parts.Part.rated`). ``reads``: parts need more of each page than
        its score."""
        self._archive = archive
        self._rate = rate
        self._visited = visited
        self._counters = counters
        self._provenance = provenance
        self._rated, self._reads = rated, reads

    async def rate(self, answers: Sequence[Answer], policy: Policy) -> dict[str, Rated]:
        """Rate the fetched pages among ``answers``, which are archived in this order; return the results by keys of
        leases."""
        fetched = [
            (answer.lease.entry, answer.page)
            for answer in answers
            if answer.page and answer.outcome is None and not answer.known
        ]
        known = policy.scores_influence
        if known and not (self._archive.keeps_text or self._reads):
            ratings: Sequence[Rating | RatedText] = [Rating(entry.score) for entry, _ in fetched]
        else:
            ratings = await self._rate([page for _, page in fetched])
        if not known:
            for rating in ratings:
                self._counters.heard(rating.reason)
                self._counters.note(rating.reason)
                self._counters.counts["pages/unrated"] += rating.score is None
        rated, place = {}, self._counters.crawled
        for (entry, fetch), rating in zip(fetched, ratings, strict=True):
            page = rated[entry.key] = Rated(entry.score if known else rating.score, *rating[2:])
            page.key, page.url, page.noindex, page.head = fetch.key, fetch.url, fetch.noindex, fetch.head
            page.follows = fetch.follows
            for see in self._rated:
                see(place, page)
            place += page.dropped is None
        return rated

    def archive(self, page: PageRecord, leased: Entry, rated: Rated, *, policy: str, iteration: int | None) -> None:
        """Archive the next page of the crawl. Raises InputError if that cannot be written."""
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
                **rated.metadata,
                **self._provenance,
            },
            rated.text,
        )

    def archive_redirects(self, page: PageRecord) -> None:
        """Archive the redirects from a document to another owner. Raises InputError like :meth:`archive`."""
        self._archive.write_redirects(page, {"redirected-to": page.hops[-1], **self._provenance})

    def archive_exchange(self, capture: Capture, purpose: str, about: Mapping[str, str]) -> None:
        """Archive an exchange that belongs to no page. Raises InputError like :meth:`archive`."""
        self._archive.write_exchange(capture, purpose, about)

    def flush(self) -> None:
        """Make the pages so far readable. Raises InputError like :meth:`archive`."""
        self._archive.flush()

    def line(
        self, page: CrawledPage, leased: Entry, status: int | None, iteration: int | None, rated: Rated
    ) -> CrawlLine:
        """Return the crawl log's line of the page that was crawled last, with the figures of this moment."""
        line: CrawlLine = {
            "order": self._counters.crawled - 1,
            "iteration": iteration,
            "id": page.entry.key,
            "url": page.entry.url,
            "status": status,
            "priority": leased.score,
            "influence": rated.influence,
            "depth": leased.depth,
            "parent": leased.parent,
            "visited": len(self._visited),
            "fetched": self._counters.counts["pages/fetched"],
        }
        return {**line, **rated.line}  # type: ignore[typeddict-item]


class CrawlLog:
    """The files of the crawl log, open for appending.

    Lines are handed to the operating system at once, so a killed process loses none of them.
    """

    def __init__(self, directory: Path, at: LogPosition | None = None) -> None:
        """Begin the files in a directory; with ``at``, open them at that position and drop the rest.

        Raises ArchiveError: without ``at`` if a file exists, with ``at`` if one is shorter.
        """
        self._directory = directory
        self._pages = AppendFile(directory / NAME, None if at is None else at.pages)
        self._failures = AppendFile(directory / FAILURES, None if at is None else at.failures)

    def write(self, pages: Iterable[CrawlLine], failures: Iterable[FailureLine]) -> None:
        """Append lines to both files, all or none to each. Raises InputError if they cannot be written (disk full)."""
        for file, lines in ((self._pages, pages), (self._failures, failures)):
            file.append("".join(f"{json.dumps(line)}\n" for line in lines).encode())

    def flush(self, *, fsync: bool = False) -> None:
        """Raise ArchiveError if somebody else has changed the files; with ``fsync``, wait for the disk."""
        for file in (self._pages, self._failures):
            file.check()
            if fsync:
                file.sync()
        if fsync:
            sync_path(self._directory)

    def position(self) -> LogPosition:
        """Return the end of all lines written so far."""
        return LogPosition(self._pages.size, self._failures.size)

    def close(self) -> None:
        """Close the files."""
        self._pages.close()
        self._failures.close()


def open_archive(directory: Path, options: Options, info: ArchiveInfo, at: ArchivePosition | None = None) -> Archive:
    """Open the archive in ``directory``: begin it, or with ``at`` continue there. Raises InputError. A simulation has
    no host in ``info``: each page is stored whole, and no file is closed by its age."""
    if not options.warc_enabled:
        return NullArchive()
    # a crawl that archives nothing needs none of it
    from crawl4llm.warc import ArchiveWriter

    live = info.host is not None
    if options.warc_max_age and not live:
        logger.warning("WARC_MAX_AGE is ignored: a simulation has no clock")
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
    their versions; ``source`` describes the source of the pages."""
    fields = {
        "software": software,
        "operator": options.warc_operator,
        **source,
        "policy": policy,
        "extractor": extractor,
        "model-digest": model_digest,
    }
    return {name: value for name, value in fields.items() if value}
