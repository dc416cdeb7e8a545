"""Algorithm 1 of Craw4LLM: fetch, log and archive, expand, score, enqueue, dequeue."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, replace
from typing import Any

from crawl4llm.base.crawl_log import CrawlLine, CrawlLog, FailureLine, failure_line
from crawl4llm.base.domains import Domain
from crawl4llm.base.errors import InputError, TooLarge
from crawl4llm.base.pages import Link, PageRecord
from crawl4llm.crawl.commits import Commits
from crawl4llm.crawl.counters import REDIRECTS, Balance, Tally, balance
from crawl4llm.crawl.page_writer import Rated, RatePages, Recorder
from crawl4llm.crawl.reorder_buffer import Answer, Hop, Outstanding, Spool
from crawl4llm.crawl.scope import NO_LIMITS, Limits, Scope
from crawl4llm.frontier import Entry, Frontier, Lease, Outcome
from crawl4llm.frontier.visited import VisitedSet
from crawl4llm.options import Options
from crawl4llm.policies import Candidate, CrawledPage, Policy
from crawl4llm.warc import Archive

MAX_PAGES, FRONTIER_EMPTY = "max_pages", "frontier_empty"

_PAGES_AT_ONCE = 256
"""Batch order: pages that advance() takes; bounds the pages held in memory, whatever n."""
_REORDER_FACTOR = 8
"""Continuous order: leases that may be out for each one in flight, so that one slow page bounds what waits for it."""


class Crawl:
    """The state of a crawl, from seeds to N pages, without a word on how pages are fetched.

    The scheduler calls, in turn: :meth:`start`; :meth:`dequeue`; for each lease one of :meth:`fetched`, :meth:`failed`
    and :meth:`dropped`; :meth:`advance` once :attr:`can_advance`; then dequeue again, until :attr:`finished`; at last
    :meth:`wind_up`. A crawl that was taken up again hands out :meth:`unanswered` leases first.

    Batch order (n > 0) finishes all leases of a batch before the next. Continuous order (n = 0) hands out the best
    document whenever fewer than ``concurrent_leases`` are in flight. Pages enter log and archive in the order in which
    they were dequeued, in either.
    """

    def __init__(
        self,
        options: Options,
        *,
        policy: Policy,
        rate: RatePages,
        frontier: Frontier,
        visited: VisitedSet,
        archive: Archive,
        log: CrawlLog,
        commits: Commits,
        provenance: Mapping[str, str],
        concurrent_leases: int = 1,
        opted_out: Sequence[Domain] = (),
        spool: Spool | None = None,
        limits: Limits = NO_LIMITS,
    ) -> None:
        self.options = options
        self.policy = policy
        self.frontier = frontier
        self.visited = visited
        self.tally = Tally()
        self.scope = Scope(options.crawl_scope, visited, opted_out, limits)
        self.iteration = 0
        self.seeds = 0
        self.failure: str | None = None
        """What stopped the crawl before its end, in one line, if something did."""
        self._recorder = Recorder(archive, rate, visited=visited, tally=self.tally, provenance=provenance)
        self._log = log
        self._commits = commits
        self._concurrent_leases = concurrent_leases
        self._outstanding = Outstanding(spool)
        self._kept_out = 0
        """Documents that N keeps out of this batch: the first in turn if N is raised."""
        self._refused: list[FailureLine] = []
        """To be logged with the candidates that were not refused."""
        self._held_back: list[CrawledPage] = []
        """Pages that may be the last: their links are followed only if others fail, so that N is not reached."""

    # -- what is known of it --------------------------------------------------------------------------------------

    @property
    def continuous(self) -> bool:
        """Whether it runs in continuous order."""
        return self.options.crawl_batch_size == 0

    @property
    def _batch(self) -> int | None:
        """The iteration, as log and archive tell it."""
        return None if self.continuous else self.iteration

    @property
    def lasting(self) -> bool:
        """Whether another process can go on where this one ends."""
        return self._commits.lasting

    @property
    def crawled(self) -> int:
        """Pages crawled so far (\\|P\\|)."""
        return self.tally.crawled

    @property
    def answered(self) -> int:
        """Leases of which something has been heard, and which :meth:`advance` has not taken yet."""
        return self._outstanding.answered

    @property
    def can_advance(self) -> bool:
        """Whether there are answers that :meth:`advance` may take: in batch order, the rest of the batch or many."""
        waiting = self._outstanding
        if not waiting.answered:
            return False
        if self.continuous:
            return waiting.heard_of_first(1)
        return not waiting.in_flight or (waiting.answered >= _PAGES_AT_ONCE and waiting.heard_of_first(_PAGES_AT_ONCE))

    @property
    def must_wait(self) -> bool:
        """Whether so many answers wait for :meth:`advance` that no more should be fetched."""
        return self._outstanding.answered >= 2 * _PAGES_AT_ONCE

    @property
    def finished(self) -> str | None:
        """Why the crawl is over; None while it is not."""
        if self.crawled >= self.options.crawl_max_pages:
            return MAX_PAGES
        return FRONTIER_EMPTY if not (self._outstanding or self._held_back or len(self.frontier)) else None

    @property
    def balance(self) -> Balance:
        """The states of its documents; sound between two calls of :meth:`advance`."""
        return balance(self.visited, self.frontier, self.tally.counts)

    def statistics(self) -> dict[str, float | None]:
        """All figures of :mod:`crawl4llm.base.stats`, as they stand."""
        figures: dict[str, float | None] = dict(self.tally.counts)
        for (outcome, reason), count in self.frontier.outcomes.items():
            if outcome is not Outcome.ARCHIVED:
                figures[f"{outcome.value}/{reason}"] = count + (figures.get(f"{outcome.value}/{reason}") or 0)
        figures["pages/visited"] = len(self.visited)
        figures["frontier/queued"] = len(self.frontier)
        figures["frontier/leased"] = self.frontier.leased
        figures["influence/mean"] = self.tally.mean_influence
        if not self.continuous:
            figures["iterations"] = self.iteration
        return figures

    # -- Algorithm 1 ----------------------------------------------------------------------------------------------

    async def start(self, seeds: Sequence[str]) -> None:
        """Lines 1 to 4: the seeds are visited; all of them form the first batch, whatever n."""
        self.tally.counts[REDIRECTS] = 0
        await self.add_seeds(seeds)
        self._commits.commit_now(self)

    async def add_seeds(self, seeds: Sequence[str]) -> None:
        """Visit documents that no page led to, and queue them."""
        keys = self.visited.add(seeds)
        self.seeds += len(keys)
        if self.policy.looks_ahead:
            self.tally.counts["pages/fetched"] += len(keys)
        await self._enqueue([Candidate(key, "", 0, None) for key in keys])

    def dequeue(self) -> list[Lease]:
        """Line 15: the best documents of the frontier; never more than are missing to N."""
        if self.crawled >= self.options.crawl_max_pages:
            return []  # nor is a batch begun: if N is raised, links that were held back are followed first
        waiting = self._outstanding
        wanted = self.options.crawl_max_pages - self.crawled - len(waiting)
        if self.continuous:
            room = _REORDER_FACTOR * self._concurrent_leases - len(waiting)
            wanted = min(wanted, self._concurrent_leases - waiting.in_flight, room)
        elif waiting:
            return []
        else:
            room = self._kept_out or (self.options.crawl_batch_size if self.iteration else self.seeds)
            wanted = min(wanted, room)
            self._kept_out = room - wanted
        leases = self.frontier.lease(max(wanted, 0))
        if not len(self.frontier):
            self._kept_out = 0
        waiting.add(leases)
        self.policy.dequeued([lease.entry for lease in leases])
        return leases

    def fetched(self, lease: Lease, page: PageRecord, status: int) -> None:
        """Line 6, for one document: its page."""
        if answer := self._answer(lease, None):
            answer.page, answer.status = page, status
            try:
                self._outstanding.hold(answer)
            except InputError as error:  # it stays in memory, and the crawl stops
                self.failure = self.failure or str(error)

    def failed(self, lease: Lease, reason: str, *, final: bool = True) -> None:
        """The document could not be had; unless that is final it is tried again, CRAWL_MAX_ATTEMPTS times in all."""
        answer = self._answer(lease, reason)
        if answer and (final or lease.entry.attempts >= self.options.crawl_max_attempts):
            answer.outcome = Outcome.FAILED

    def dropped(self, lease: Lease, reason: str) -> None:
        """The document is not wanted."""
        if answer := self._answer(lease, reason):
            answer.outcome = Outcome.DROPPED

    def broken_off(self, lease: Lease, hop: Hop) -> None:
        """Fetching the document was broken off after redirects; another process can go on where they led."""
        self._outstanding.redirected(lease, hop)

    def hop_of(self, lease: Lease) -> Hop | None:
        """Where to go on with the fetch of a document that another process has broken off."""
        return self._outstanding.hop_of(lease)

    def unanswered(self) -> list[Lease]:
        """Leases of which nothing has been heard, in the order of their hand-out."""
        return self._outstanding.unanswered()

    async def advance(self, *, expand: bool = True) -> None:
        """Lines 7 to 14: log and archive the pages that were fetched, then score and enqueue their new outlinks.

        ``expand=False`` leaves the outlinks alone, as it is when the crawl has its N pages. Raises InputError where log
        or archive cannot be written; what they held before can still be read.
        """
        may_be_last = not expand or self.crawled + len(self._outstanding) >= self.options.crawl_max_pages
        # Always as many at once, whatever came in by when.
        taken = self._outstanding.take(None if self.continuous else _PAGES_AT_ONCE)
        self.scope.follow_redirects(taken, self.tally.counts)
        rated = await self._recorder.rate(taken, self.policy)
        candidates: list[Candidate] = []
        lines: list[CrawlLine] = []
        failures: list[FailureLine] = []
        if not may_be_last:
            candidates += self._expand_held_back()
        try:
            for answer in taken:
                if not self.policy.looks_ahead:
                    self.tally.counts["pages/fetched"] += 1
                if answer.page is None:
                    failures += self._end(answer)
                    continue
                leased = answer.lease.entry
                page = self._take_page(answer.lease, answer.page, rated[leased.key])
                if may_be_last:
                    self._held_back.append(page)
                else:
                    candidates += self._expand(page)
                lines.append(self._recorder.line(page, leased, answer.status, self._batch))
        finally:
            self._log.write(lines, failures)
        if not self._outstanding and not self.finished:
            self._kept_out = 0  # as Algorithm 1 has it, others do not take the place of pages that failed
        if not self._outstanding and not self._kept_out:
            self.iteration += not self.continuous
            if expand and not self.finished:
                candidates += self._expand_held_back()
        await self._enqueue(candidates)
        if self.finished:
            self._commits.commit_now(self)
        else:
            self._commits.commit(self)

    async def go_on(self) -> None:
        """Follow the links of what were the last pages, in a crawl that was taken up again to crawl more."""
        if not self._outstanding and not self._kept_out and not self.finished:
            await self._enqueue(self._expand_held_back())

    async def wind_up(self) -> None:
        """The crawl ends here, for now or for good; documents that were not asked for go back to the frontier.

        In a batch that another process will finish all documents stay on lease, and answers that cannot be taken yet
        are kept where there is a spool, else forgotten: the batch, and its slices, will be the same.
        """
        if self.continuous or not self.lasting:
            for lease in self.unanswered():
                self._outstanding.withdraw(lease)
                self.frontier.give_back(lease, attempted=False)
            while self.can_advance:
                await self.advance(expand=self.lasting)
        else:
            self._outstanding.keep()
        self._commits.commit_now(self)

    # -- pause and resume -----------------------------------------------------------------------------------------

    def committed(self) -> None:
        """Called after each commit: answers that were taken before it are not needed any more. Raises InputError."""
        self._outstanding.committed()

    def save(self) -> dict[str, Any]:
        """Its state between two calls of :meth:`advance`, apart from its parts', as JSON takes it."""
        return {
            "counts": dict(self.tally.counts),
            "iteration": self.iteration,
            "kept_out": self._kept_out,
            "seeds": self.seeds,
            "influence": [self.tally.influence_sum, self.tally.influence_pages],
            "held_back": [[*astuple(page.entry), page.influence, page.links] for page in self._held_back],
        }

    def load(self, state: Mapping[str, Any], leases: Iterable[Lease]) -> None:
        """Go on, in a new crawl, from what :meth:`save` gave, with the frontier's leases."""
        self.tally.counts.update(state["counts"])
        self.iteration = state["iteration"]
        self._kept_out = state["kept_out"]
        self.seeds = state["seeds"]
        self.tally.influence_sum, self.tally.influence_pages = state["influence"]
        self._held_back = [
            CrawledPage(Entry(*entry), influence, [Link(*link) for link in links])
            for *entry, influence, links in state["held_back"]
        ]
        self._outstanding.add(leases)
        self._outstanding.recall()

    # -- its parts ------------------------------------------------------------------------------------------------

    def _answer(self, lease: Lease, reason: str | None) -> Answer | None:
        """Note an answer; None where the lease has ended."""
        answer = self._outstanding.answer(lease)
        if answer is None:
            self.tally.counts["late"] += 1
            return None
        answer.reason = reason
        self.tally.heard(reason)
        return answer

    def _end(self, answer: Answer) -> list[FailureLine]:
        """What becomes of a document that there is no page of."""
        self.tally.note(answer.reason)
        if answer.outcome is None:
            self.frontier.give_back(answer.lease, attempted=True)
            self.tally.counts["frontier/retried"] += 1
            return []
        self.frontier.settle(answer.lease, answer.outcome, answer.reason)
        return [failure_line(answer.outcome.value, str(answer.reason), answer.lease.entry)]

    def _take_page(self, lease: Lease, page: PageRecord, rated: Rated) -> CrawledPage:
        """Archive one page."""
        self._recorder.archive(page, lease.entry, rated, policy=self.policy.name, iteration=self._batch)
        self.frontier.settle(lease, Outcome.ARCHIVED)
        self.tally.page(rated.influence)
        return CrawledPage(replace(lease.entry, key=page.key, url=page.url), rated.influence, page.outlinks or ())

    def _expand(self, page: CrawledPage) -> list[Candidate]:
        """Lines 8 to 10, and 12: the outlinks of a page that were not visited, which now are."""
        self.policy.crawled(page)
        candidates, refused = self.scope.new_documents(page, self.tally.counts)
        self._refused += refused
        if self.policy.looks_ahead:
            self.tally.counts["pages/fetched"] += len(candidates)
        return candidates

    def _expand_held_back(self) -> list[Candidate]:
        held_back, self._held_back = self._held_back, []
        return [candidate for page in held_back for candidate in self._expand(page)]

    async def _enqueue(self, candidates: Sequence[Candidate]) -> None:
        """Line 11, in bulk: candidates that the policy has a score for enter the frontier."""
        entries: list[Entry] = []
        failures, self._refused = self._refused, []
        for candidate, rated in zip(candidates, await self.policy.score(candidates), strict=True):
            self.tally.heard(rated.reason)
            self.tally.note(rated.reason)
            if rated.score is None:
                reason = str(rated.reason)
                outcome = Outcome.DROPPED if reason == TooLarge.reason else Outcome.FAILED
                self.tally.counts[f"{outcome.value}/{reason}"] += 1
                failures.append(failure_line(outcome.value, reason, candidate))
            else:
                score = self._checked(candidate.key, rated.score)
                entries.append(Entry(candidate.key, candidate.url, score, candidate.depth, candidate.parent))
        failures += [failure_line(Outcome.DROPPED.value, why, entry) for entry, why in self.frontier.push(entries)]
        self.tally.counts["frontier/reranked"] += self.frontier.rerank(
            (key, self._checked(key, score)) for key, score in self.policy.reranked()
        )
        self._log.write([], failures)

    def _checked(self, key: str, score: float) -> float:
        """A score that the policy gave, if it is one."""
        if not math.isfinite(score):
            raise InputError(f"URL_POLICY {self.policy.name} gave {key} the score {score}")
        return score
