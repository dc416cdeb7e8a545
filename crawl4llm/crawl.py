"""Algorithm 1 of Craw4LLM: fetch, log and archive, expand, score, enqueue, dequeue."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, takewhile

from crawl4llm import rating
from crawl4llm.archive import Archive
from crawl4llm.crawl_log import CrawlLine, CrawlLog, FailureLine
from crawl4llm.domains import domain_of_url
from crawl4llm.errors import InputError
from crawl4llm.frontier import Entry, Frontier, Lease, Outcome
from crawl4llm.options import Options
from crawl4llm.policies import Candidate, CrawledPage, Policy
from crawl4llm.rating import PageRater
from crawl4llm.visited import VisitedSet
from crawl4llm.workers import PageWorkers
from simulate.corpus import PageRecord

MAX_PAGES, FRONTIER_EMPTY = "max_pages", "frontier_empty"

_PAGES_AT_ONCE = 256
"""Batch order: pages that advance() takes; bounds the pages held in memory, whatever n."""
_REORDER_FACTOR = 8
"""Continuous order: leases that may be out for each one in flight, so that one slow page bounds what waits for it."""


@dataclass(slots=True)
class _Leased:
    """A document on lease: what came of it, once something did."""

    lease: Lease
    done: bool = False
    page: PageRecord | None = None
    status: int | None = None
    failure: tuple[Outcome, str] | None = None
    """How it ended without a page; None too where it went back to the frontier."""


class Crawl:
    """The state of a crawl, from seeds to N pages, without a word on how pages are fetched.

    The scheduler calls, in turn: :meth:`start`; :meth:`dequeue`; for each lease one of :meth:`fetched`, :meth:`failed`
    and :meth:`dropped`; :meth:`advance` once :attr:`can_advance`; then dequeue again, until :attr:`finished`.

    Batch order (n > 0) finishes all leases of a batch before the next. Continuous order (n = 0) hands out the best
    document whenever fewer than ``concurrent_leases`` are in flight. Pages enter log and archive in the order in which
    they were dequeued, in either.
    """

    def __init__(
        self,
        options: Options,
        *,
        policy: Policy,
        workers: PageWorkers[PageRater],
        frontier: Frontier,
        visited: VisitedSet,
        archive: Archive,
        log: CrawlLog,
        provenance: Mapping[str, str],
        concurrent_leases: int = 1,
    ) -> None:
        self.options = options
        self.policy = policy
        self.frontier = frontier
        self.visited = visited
        self.counts: Counter[str] = Counter()
        self.iteration = 0
        self.seeds = 0
        self.failure: str | None = None
        """What stopped the crawl before its end, in one line, if something did."""
        self._workers = workers
        self._archive = archive
        self._log = log
        self._provenance = provenance
        self._concurrent_leases = concurrent_leases
        self.errors_in_row = 0
        """Unanticipated errors since a page last went well."""
        self._leased: dict[int, _Leased] = {}
        self._held_back: list[CrawledPage] = []
        """Pages that may be the last: their links are followed only if others fail, so that N is not reached."""
        self._in_flight = 0
        self._influence_sum = 0.0
        self._influence_pages = 0

    # -- what is known of it --------------------------------------------------------------------------------------

    @property
    def continuous(self) -> bool:
        """Whether it runs in continuous order."""
        return self.options.crawl_batch_size == 0

    @property
    def crawled(self) -> int:
        """Pages crawled so far (\\|P\\|)."""
        return self.counts["pages/crawled"]

    @property
    def mean_influence(self) -> float | None:
        """Mean influence score of the pages crawled, as far as they have one."""
        return self._influence_sum / self._influence_pages if self._influence_pages else None

    @property
    def answered(self) -> int:
        """Leases of which something has been heard, and which :meth:`advance` has not taken yet."""
        return len(self._leased) - self._in_flight

    @property
    def can_advance(self) -> bool:
        """Whether there are answers that :meth:`advance` may take: in batch order, the rest of the batch or many."""
        if not self._leased:
            return False
        if self.continuous:
            return next(iter(self._leased.values())).done
        return not self._in_flight or (self.answered >= _PAGES_AT_ONCE and self._finished_in_front(_PAGES_AT_ONCE))

    @property
    def must_wait(self) -> bool:
        """Whether so many answers wait for :meth:`advance` that no more should be fetched."""
        return self.answered >= 2 * _PAGES_AT_ONCE

    @property
    def finished(self) -> str | None:
        """Why the crawl is over; None while it is not."""
        if self.crawled >= self.options.crawl_max_pages:
            return MAX_PAGES
        return FRONTIER_EMPTY if not (self._leased or self._held_back or len(self.frontier)) else None

    def statistics(self) -> dict[str, float | None]:
        """All figures of :mod:`crawl4llm.stats`, as they stand."""
        figures: dict[str, float | None] = dict(self.counts)
        for (outcome, reason), count in self.frontier.outcomes.items():
            if outcome is not Outcome.ARCHIVED:
                figures[f"{outcome.value}/{reason}"] = count + (figures.get(f"{outcome.value}/{reason}") or 0)
        figures["pages/visited"] = len(self.visited)
        figures["frontier/queued"] = len(self.frontier)
        figures["frontier/leased"] = self.frontier.leased
        figures["influence/mean"] = self.mean_influence
        if not self.continuous:
            figures["iterations"] = self.iteration
        return figures

    # -- Algorithm 1 ----------------------------------------------------------------------------------------------

    async def start(self, seeds: Sequence[str]) -> None:
        """Lines 1 to 4: the seeds are visited; all of them form the first batch, whatever n."""
        keys = self.visited.add(seeds)
        self.seeds = len(keys)
        if self.policy.looks_ahead:
            self.counts["pages/fetched"] += len(keys)
        await self._enqueue([Candidate(key, "", 0, None) for key in keys])

    def dequeue(self) -> list[Lease]:
        """Line 15: the best documents of the frontier; never more than are missing to N."""
        wanted = self.options.crawl_max_pages - self.crawled - len(self._leased)
        if self.continuous:
            room = _REORDER_FACTOR * self._concurrent_leases - len(self._leased)
            wanted = min(wanted, self._concurrent_leases - self._in_flight, room)
        elif self._leased:
            return []
        elif self.iteration:
            wanted = min(wanted, self.options.crawl_batch_size)
        leases = self.frontier.lease(max(wanted, 0))
        self._leased.update((lease.token, _Leased(lease)) for lease in leases)
        self._in_flight += len(leases)
        self.policy.dequeued([lease.entry for lease in leases])
        return leases

    def fetched(self, lease: Lease, page: PageRecord, status: int) -> None:
        """Line 6, for one document: its page."""
        if leased := self._answer(lease):
            leased.page, leased.status = page, status
            self._note(None)

    def failed(self, lease: Lease, reason: str, *, final: bool = True) -> None:
        """The document could not be had; unless that is final it is tried again, CRAWL_MAX_ATTEMPTS times in all."""
        leased = self._answer(lease)
        if leased is None:
            return
        self._note(reason)
        if final or lease.entry.attempts >= self.options.crawl_max_attempts:
            self._end(leased, Outcome.FAILED, reason)
        else:
            self.frontier.give_back(lease, attempted=True)
            self.counts["frontier/retried"] += 1

    def dropped(self, lease: Lease, reason: str) -> None:
        """The document is not wanted."""
        if leased := self._answer(lease):
            self._end(leased, Outcome.DROPPED, reason)

    def give_back(self, lease: Lease) -> None:
        """The document was never asked for: it stays in the frontier."""
        if self._answer(lease):
            del self._leased[lease.token]
            self.frontier.give_back(lease, attempted=False)

    def unanswered(self) -> list[Lease]:
        """Leases of which nothing has been heard, in the order of their hand-out."""
        return [leased.lease for leased in self._leased.values() if not leased.done]

    async def advance(self, *, expand: bool = True) -> None:
        """Lines 7 to 14: log and archive the pages that were fetched, then score and enqueue their new outlinks.

        ``expand=False`` leaves the outlinks alone, as it is when the crawl has its N pages. Raises InputError where log
        or archive cannot be written; what they held before can still be read.
        """
        may_be_last = not expand or self.crawled + len(self._leased) >= self.options.crawl_max_pages
        done = self._take_done()
        influence = await self._influence(done)
        candidates: list[Candidate] = []
        lines: list[CrawlLine] = []
        if not may_be_last:
            candidates += self._expand_held_back()
        try:
            for leased in done:
                entry, page = leased.lease.entry, leased.page
                if not self.policy.looks_ahead:
                    self.counts["pages/fetched"] += 1
                if page is None:
                    continue
                self._take_page(leased.lease, page, influence[entry.key])
                crawled = CrawledPage(replace(entry, url=page.url), influence[entry.key], page.outlinks or ())
                if may_be_last:
                    self._held_back.append(crawled)
                else:
                    candidates += self._expand(crawled)
                lines.append(self._line(entry, page, leased.status, influence[entry.key]))
        finally:
            try:
                self._archive.flush()
            finally:
                self._log.write(lines, [self._failure_line(leased) for leased in done if leased.failure])
        if not self._leased:
            self.iteration += not self.continuous
            if expand and not self.finished:
                candidates += self._expand_held_back()
        await self._enqueue(candidates)

    # -- its parts ------------------------------------------------------------------------------------------------

    def _answer(self, lease: Lease) -> _Leased | None:
        leased = self._leased.get(lease.token)
        if leased is None or leased.done:
            self.counts["late"] += 1
            return None
        leased.done = True
        self._in_flight -= 1
        return leased

    def _note(self, reason: str | None) -> None:
        """Keep count of pages without text, and of unanticipated errors."""
        self.counts["pages/no_text"] += reason == rating.NO_TEXT
        if reason == rating.ERROR:
            self.counts["errors"] += 1
            self.errors_in_row += 1
        else:
            self.errors_in_row = 0

    def _end(self, leased: _Leased, outcome: Outcome, reason: str) -> None:
        self.frontier.settle(leased.lease, outcome, reason)
        leased.failure = (outcome, reason)

    def _finished_in_front(self, n: int) -> bool:
        """Whether the first ``n`` leases are done."""
        return all(leased.done for leased in islice(self._leased.values(), n))

    def _take_done(self) -> list[_Leased]:
        """The answers that are next in the order of dequeueing; always as many at once, whatever came in by when."""
        most = None if self.continuous else _PAGES_AT_ONCE
        done = list(islice(takewhile(lambda leased: leased.done, self._leased.values()), most))
        for leased in done:
            del self._leased[leased.lease.token]
        return done

    async def _influence(self, done: Sequence[_Leased]) -> dict[str, float | None]:
        """Influence scores of the pages among ``done``, by key."""
        entries = [leased.lease.entry for leased in done if leased.page is not None]
        if self.policy.scores_influence:
            return {entry.key: entry.score for entry in entries}
        ratings = await self._workers.run(rating.influence, [entry.key for entry in entries])
        for rated in ratings:
            self._note(rated.reason)
            self.counts["pages/unrated"] += rated.score is None
        return {entry.key: rated.score for entry, rated in zip(entries, ratings, strict=True)}

    def _take_page(self, lease: Lease, page: PageRecord, influence: float | None) -> None:
        """Archive one page."""
        self._archive.write(
            page,
            {
                "id": lease.entry.key,
                "influence": influence,
                "priority": lease.entry.score,
                "order": self.crawled,
                "iteration": None if self.continuous else self.iteration,
                "depth": lease.entry.depth,
                "policy": self.policy.name,
                **self._provenance,
            },
        )
        self.frontier.settle(lease, Outcome.ARCHIVED)
        self.counts["pages/crawled"] += 1
        if influence is not None:
            self._influence_sum += influence
            self._influence_pages += 1

    def _expand(self, page: CrawledPage) -> list[Candidate]:
        """Lines 8 to 10, and 12: the outlinks of a page that were not visited, which now are."""
        self.policy.crawled(page)
        entry, _, links = page
        if self.options.crawl_scope == "domain":
            domain = domain_of_url(entry.url)
            links = [link for link in links if link.key is None or domain_of_url(link.url) == domain]
            self.counts["links/off_scope"] += len(page.links) - len(links)
        targets = {link.key: link for link in reversed(links) if link.key is not None}
        new = self.visited.add(link.key for link in links if link.key is not None)
        self.counts["links/seen"] += len(page.links)
        self.counts["links/without_key"] += sum(link.key is None for link in links)
        self.counts["links/new"] += len(new)
        if self.policy.looks_ahead:
            self.counts["pages/fetched"] += len(new)
        depth = entry.depth + 1
        return [Candidate(key, targets[key].url, depth, entry.key, targets[key].anchor) for key in new]

    def _expand_held_back(self) -> list[Candidate]:
        held_back, self._held_back = self._held_back, []
        return [candidate for page in held_back for candidate in self._expand(page)]

    async def _enqueue(self, candidates: Sequence[Candidate]) -> None:
        """Line 11, in bulk: candidates that the policy has a score for enter the frontier."""
        entries: list[Entry] = []
        failures: list[FailureLine] = []
        for candidate, rated in zip(candidates, await self.policy.score(candidates), strict=True):
            self._note(rated.reason)
            if rated.score is None:
                reason = str(rated.reason)
                self.counts[f"{Outcome.FAILED.value}/{reason}"] += 1
                failures.append(_failure(Outcome.FAILED, reason, candidate))
            else:
                score = self._checked(candidate.key, rated.score)
                entries.append(Entry(candidate.key, candidate.url, score, candidate.depth, candidate.parent))
        self.frontier.push(entries)
        self.counts["frontier/reranked"] += self.frontier.rerank(
            (key, self._checked(key, score)) for key, score in self.policy.reranked()
        )
        self._log.write([], failures)
        if self.options.evaluation_log:
            self._log.write_estimates(self.crawled, list(self.policy.estimates()))

    def _checked(self, key: str, score: float) -> float:
        """A score that the policy gave, if it is one."""
        if not math.isfinite(score):
            raise InputError(f"URL_POLICY {self.policy.name} gave {key} the score {score}")
        return score

    def _line(self, entry: Entry, page: PageRecord, status: int | None, influence: float | None) -> CrawlLine:
        """The crawl log's line for the page that was just taken."""
        return {
            "order": self.crawled - 1,
            "iteration": None if self.continuous else self.iteration,
            "id": entry.key,
            "url": page.url,
            "status": status,
            "priority": entry.score,
            "influence": influence,
            "depth": entry.depth,
            "parent": entry.parent,
            "visited": len(self.visited),
            "fetched": self.counts["pages/fetched"],
        }

    @staticmethod
    def _failure_line(leased: _Leased) -> FailureLine:
        assert leased.failure is not None
        return _failure(*leased.failure, leased.lease.entry)


def _failure(outcome: Outcome, reason: str, document: Entry | Candidate) -> FailureLine:
    return {
        "id": document.key,
        "url": document.url,
        "outcome": outcome.value,
        "reason": reason,
        "depth": document.depth,
        "parent": document.parent,
    }
