"""Line 7 of Algorithm 1: fetched pages, with their influence scores, on their way into archive and crawl log."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from crawl4llm.base.crawl_log import CrawlLine
from crawl4llm.base.pages import PageRecord
from crawl4llm.crawl.counters import Tally
from crawl4llm.crawl.reorder_buffer import Answer
from crawl4llm.frontier import Entry
from crawl4llm.frontier.visited import VisitedSet
from crawl4llm.policies import CrawledPage, Policy
from crawl4llm.scoring.rating import RatedText, Rating
from crawl4llm.warc import Archive

RateInWorkers = Callable[..., Awaitable[list[Rating | RatedText]]]
"""RatePages before it is told the workers, the first argument, and by ``text`` whether the text is wanted."""
RatePages = Callable[[Sequence[PageRecord]], Awaitable[list[Rating | RatedText]]]
"""Gives fetched pages their influence scores, and where the archive keeps it their text, in their order."""


class Rated(NamedTuple):
    """What was found out of a fetched page."""

    influence: float | None
    """Its influence score; None where that could not be computed."""
    text: str | None
    """Its main text, where the archive keeps that and it could be had."""


class Recorder:
    """Rates pages, archives them, and makes their lines of the crawl log.

    ``provenance``: metadata that all pages of the crawl have in common.
    """

    def __init__(
        self, archive: Archive, rate: RatePages, *, visited: VisitedSet, tally: Tally, provenance: Mapping[str, str]
    ) -> None:
        self._archive = archive
        self._rate = rate
        self._visited = visited
        self._tally = tally
        self._provenance = provenance

    async def rate(self, answers: Sequence[Answer], policy: Policy) -> dict[str, Rated]:
        """What is found out of the pages among ``answers``, by the keys of their leases."""
        fetched = [(answer.lease.entry, answer.page) for answer in answers if answer.page is not None]
        known = policy.scores_influence
        if known and not self._archive.keeps_text:
            return {entry.key: Rated(entry.score, None) for entry, _ in fetched}
        ratings = await self._rate([page for _, page in fetched])
        if not known:
            for rating in ratings:
                self._tally.heard(rating.reason)
                self._tally.note(rating.reason)
                self._tally.counts["pages/unrated"] += rating.score is None
        return {
            entry.key: Rated(
                entry.score if known else rating.score, rating.text if isinstance(rating, RatedText) else None
            )
            for (entry, _), rating in zip(fetched, ratings, strict=True)
        }

    def archive(self, page: PageRecord, leased: Entry, rated: Rated, *, policy: str, iteration: int | None) -> None:
        """Archive the next page of the crawl. Raises InputError where that cannot be written."""
        self._archive.write(
            page,
            {
                "id": page.key,
                "influence": rated.influence,
                "priority": leased.score,
                "order": self._tally.crawled,
                "iteration": iteration,
                "depth": leased.depth,
                "policy": policy,
                "language": page.language,
                **self._provenance,
            },
            rated.text,
        )

    def line(self, page: CrawledPage, leased: Entry, status: int | None, iteration: int | None) -> CrawlLine:
        """The crawl log's line for the page that was crawled last, as the figures stand now."""
        return {
            "order": self._tally.crawled - 1,
            "iteration": iteration,
            "id": page.entry.key,
            "url": page.entry.url,
            "status": status,
            "priority": leased.score,
            "influence": page.influence,
            "depth": leased.depth,
            "parent": leased.parent,
            "visited": len(self._visited),
            "fetched": self._tally.counts["pages/fetched"],
        }
