"""Algorithm 1 of Craw4LLM (section 2 of the paper), line by line.

- lines 1 to 4, Q and P empty, V and U_c the seeds: :meth:`Crawl.begin`;
- line 5, until P has N pages: :attr:`Crawl.finished`;
- line 6, FetchPages: :meth:`Crawl.fetched`, :meth:`Crawl.redirected`, :meth:`Crawl.failed` or :meth:`Crawl.dropped`,
  for each document of U_c;
- line 7, merge P_c into P: ``_merge``; lines 8 to 10 and 12, ExtractURLs, not in V, Add: ``_extract``;
- line 11, Enqueue by Score_URL: ``_enqueue``, in bulk; line 15, Dequeue n: :meth:`Crawl.dequeue`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from crawl4llm.base.crawl_log import CrawlLine, FailureLine, RedirectLine, failure_line
from crawl4llm.base.errors import InputError, Why
from crawl4llm.base.pages import PageRecord
from crawl4llm.base.reasons import QUEUED, TOO_LARGE, TOO_MANY_REDIRECTS
from crawl4llm.crawl.crawl_state import CrawlState
from crawl4llm.crawl.page_writer import REDIRECTS, Rated
from crawl4llm.crawl.reorder_buffer import Answer, Hop
from crawl4llm.frontier import MOST_HOPS, Entry, Lease, Outcome
from crawl4llm.policies import Candidate, CrawledPage, Rating
from crawl4llm.scope_options import LEAVE

_OWNERS_AT_ONCE = 1000
"""Owners of whom is asked at once whether they are blocked."""
_REORDER_FACTOR = 8
"""Continuous order: leases that may be out for each one in flight, so that one slow page bounds what waits for it."""


class Crawl(CrawlState):
    """A crawl from seeds to N pages, without a word on how pages are fetched.

    The scheduler calls, in turn: :meth:`begin`; :meth:`dequeue`; for each lease one of :meth:`fetched`,
    :meth:`redirected`, :meth:`failed` and :meth:`dropped`; :meth:`advance` once :attr:`can_advance`; then dequeue
    again, until :attr:`finished`; at last :meth:`wind_up`. A crawl that was taken up again hands out :meth:`unanswered`
    leases first.

    Batch order (n > 0) finishes all leases of a batch before the next. Continuous order (n = 0) hands out the best
    document whenever fewer than ``concurrent_leases`` are in flight. Pages enter log and archive in the order in which
    they were dequeued, in either; but where the frontier goes by owners, in the order in which they came, so
    that a slow owner holds up nobody.
    """

    # -- Algorithm 1 ----------------------------------------------------------------------------------------------

    async def begin(self, seeds: Sequence[str], added: Sequence[str] = ()) -> None:
        """Visit the seeds (lines 1 to 4); all of them form the first batch, whatever n.

        A crawl that is taken up again follows the links of what were its last pages, if it is to crawl more, and takes
        only the seeds that were ``added`` to it.
        """
        if not self._begun:
            self._begun = True
            self.counters.counts[REDIRECTS] = 0
            await self._add_seeds(seeds)
            self._commits.commit_now(self)
            return
        if not self._buffer and not self._raised_n.places and not self.finished:
            await self._enqueue(self._extract_held_back())
        if added:
            await self._add_seeds(added)

    async def _add_seeds(self, seeds: Sequence[str]) -> None:
        """Visit documents that no page led to, and queue them."""
        await self._enqueue(self._visit_seeds(seeds))

    def _visit_seeds(self, seeds: Sequence[str]) -> list[Candidate]:
        """Visit documents that no page led to, and return those that may be crawled."""
        keys = self.visited.add(seeds)
        self.seeds += len(keys)
        urls = map(self._url_of_seed, keys) if self._url_of_seed else [""] * len(keys)
        new = [Candidate(key, url, 0, None) for key, url in zip(keys, urls, strict=True)]
        wanted, refused = self.scope.wanted_seeds(new, self.counters.counts)
        self._refused += refused
        if self.policy.looks_ahead:
            self.counters.counts["pages/fetched"] += len(wanted)
        return wanted

    async def _add_injected(self) -> None:
        """Visit some of the seeds that were injected."""
        injected = self._injected[0]
        keys = injected.seeds.keys
        some, keys[:] = keys[: self.pages_at_once], keys[self.pages_at_once :]
        await self._add_seeds(some)
        if not keys:
            self.counters.counts.update(injected.seeds.counts)
            self._queued.append(self._injected.popleft())

    def dequeue(self) -> list[Lease]:
        """Lease the best documents of the frontier (line 15), never more than are missing to N."""
        if self.crawled >= self.options.crawl_max_pages or self.knows_all:
            return []  # nor is a batch begun: if N is raised, links that were held back are followed first
        waiting = self._buffer
        wanted = self._missing
        if self.continuous:
            wanted = min(wanted, self._concurrent_leases - waiting.in_flight)
            if self._by_owners is None:
                wanted = min(wanted, _REORDER_FACTOR * self._concurrent_leases - len(waiting))
        elif waiting:
            return []
        else:
            wanted = self._raised_n.fill(self.options.crawl_batch_size if self.iteration else self.seeds, wanted)
        leases = self.frontier.lease(max(wanted, 0))
        if not len(self.frontier):
            self._raised_n.places = 0
        waiting.add(leases)
        if self.turns is not None:
            for lease in leases:
                self.turns.begin(lease)
        self.policy.dequeued([lease.entry for lease in leases])
        return leases

    def fetched(self, lease: Lease, page: PageRecord, status: int) -> None:
        """Take the page of a document (line 6)."""
        if answer := self._answer(lease, None):
            answer.page, answer.status = page, status
            self._hold(answer)

    def redirected(self, lease: Lease, page: PageRecord) -> None:
        """End a document that redirects led from to another owner's, which is queued in its place. Only where the
        frontier goes by owners. The ``page`` has no content, the exchanges so far, and that document's key as its last
        hop."""
        if lease.entry.hops >= MOST_HOPS:
            self.failed(lease, TOO_MANY_REDIRECTS)
        elif answer := self._answer(lease, None):
            answer.page, answer.outcome = page, Outcome.REDIRECTED
            self._hold(answer)

    def failed(self, lease: Lease, reason: str, why: Why | None = None, *, final: bool = True) -> None:
        """End a document that could not be had; unless ``final`` it is tried again, CRAWL_MAX_ATTEMPTS times in all."""
        answer = self._answer(lease, reason, why)
        if answer and (final or lease.entry.attempts >= self.options.crawl_max_attempts):
            answer.outcome = Outcome.FAILED

    def dropped(self, lease: Lease, reason: str, why: Why | None = None) -> None:
        """End a document that is not wanted."""
        if answer := self._answer(lease, reason, why):
            answer.outcome = Outcome.DROPPED

    def give_back(self, lease: Lease) -> None:
        """Queue a document again that was not asked for."""
        if self._buffer.withdraw(lease):
            self.frontier.give_back(lease, attempted=False)
            self._lease_ended(lease, asked=False)

    def drop_blocked(self) -> bool:
        """Drop some queued documents of owners that are blocked; return whether there may be more."""
        for _ in range(min(_OWNERS_AT_ONCE, len(self._to_look_at))):
            owner = self._to_look_at[0]
            if (reason := self.scope.blocked(f"http://{owner}/")) and self._drop_some(owner, reason):
                return True
            self._to_look_at.popleft()
        return bool(self._to_look_at)

    def _drop_some(self, owner: str, reason: str) -> bool:
        """Drop some documents that an owner has queued; return whether there were any."""
        assert self._by_owners is not None
        outcome = Outcome.DROPPED
        ended = self._by_owners.drop_owner(owner, outcome, reason, self.pages_at_once)
        try:
            why = self.scope.why(f"http://{owner}/")
            self._log.write([], [failure_line(outcome.value, reason, entry, why) for entry in ended])
        except InputError as error:
            self.failure = self.failure or str(error)
        return bool(ended)

    def broken_off(self, lease: Lease, hop: Hop) -> None:
        """Note where redirects led before the fetch was broken off; another process can go on there."""
        self._buffer.redirected(lease, hop)

    def hop_of(self, lease: Lease) -> Hop | None:
        """Return where to go on with a fetch that another process has broken off."""
        return self._buffer.hop_of(lease)

    def unanswered(self) -> list[Lease]:
        """Return the leases without an answer, in the order of their hand-out."""
        return self._buffer.unanswered()

    async def advance(self, *, expand: bool = True) -> None:
        """Merge the pages that were fetched into P, extract their links, and enqueue those not visited (lines 7 to 14).

        ``expand=False`` leaves the links alone, as it is when the crawl has its N pages. Raises InputError where log
        or archive cannot be written; what they held before can still be read.
        """
        may_be_last = not expand or self.crawled + len(self._buffer) >= self.options.crawl_max_pages
        # Always as many at once, whatever came in by when.
        answers = self._buffer.take(None if self.continuous else self.pages_at_once)
        self.scope.follow_redirects(answers, self.counters.counts)
        new = [] if may_be_last else self._extract_held_back()
        new += await self._merge(answers, extract=not may_be_last)
        if not self._buffer and not self.finished:
            self._raised_n.places = 0  # as Algorithm 1 has it, others do not take the place of pages that failed
        if not self._buffer and not self._raised_n.places:
            self.iteration += not self.continuous
            if expand and not self.finished:
                new += self._extract_held_back()
        lists, self._lists = self._lists, []
        if expand:
            new += [candidate for links in lists for candidate in self._extract(links)]
        await self._enqueue(new)
        if self._injected:
            await self._add_injected()
        if self.finished or self._queued:
            self._commits.commit_now(self)
        else:
            self._commits.commit(self)

    async def wind_up(self) -> None:
        """End the crawl, for now or for good; documents that were not asked for go back to the frontier.

        In a batch that another process will finish all documents stay on lease, and answers that cannot be taken yet
        are kept where there is a spool, else forgotten: the batch, and its slices, will be the same.
        """
        if self.continuous or not self.lasting:
            for lease in self.unanswered():
                self.give_back(lease)
            while self.can_advance:
                await self.advance(expand=self.lasting)
        else:
            self._buffer.keep()
        self._commits.commit_now(self)

    def _answer(self, lease: Lease, reason: str | None, why: Why | None = None) -> Answer | None:
        """Return the place for an answer, which is noted; None where the lease has ended."""
        answer = self._buffer.answer(lease)
        if answer is None:
            self.counters.counts["late"] += 1
            return None
        answer.reason, answer.why = reason, why
        self.counters.heard(reason)
        self._lease_ended(lease)
        return answer

    def _hold(self, answer: Answer) -> None:
        try:
            self._buffer.hold(answer)
        except InputError as error:  # it stays in memory, and the crawl stops
            self.failure = self.failure or str(error)

    def _lease_ended(self, lease: Lease, *, asked: bool = True) -> None:
        if self.turns is not None:
            self.turns.end(lease, asked=asked)

    async def _merge(self, answers: Sequence[Answer], *, extract: bool) -> list[Candidate]:
        """Merge each answer in its turn (line 7), and if ``extract``, extract the links of its page."""
        self._merging = len(answers)
        rated = await self._writer.rate(answers, self.policy)
        self._merging = 0
        new: list[Candidate] = []
        lines: list[CrawlLine] = []
        failures: list[FailureLine] = []
        try:
            for answer in answers:
                if not (self.policy.looks_ahead or self._sends):
                    self.counters.counts["pages/fetched"] += 1
                leased = answer.lease.entry
                if answer.page is None:
                    failures += self._end(answer)
                    continue
                if answer.outcome is Outcome.REDIRECTED:
                    failures.append(self._end_elsewhere(answer, answer.page))
                    continue
                page = self._archive(answer.lease, answer.page, rated[leased.key])
                if extract:
                    new += self._extract(page)
                else:
                    self._raised_n.hold_back(page)
                lines.append(self._writer.line(page, leased, answer.status, self._batch, rated[leased.key]))
        finally:
            self._log.write(lines, failures)
        return new

    def _end(self, answer: Answer) -> list[FailureLine]:
        """End the lease of a document without a page: it fails, is dropped, or goes back to the frontier."""
        self.counters.note(answer.reason)
        if answer.outcome is None:
            self.frontier.give_back(answer.lease, attempted=True)
            self.counters.counts["frontier/retried"] += 1
            return []
        self.frontier.settle(answer.lease, answer.outcome, answer.reason)
        return [failure_line(answer.outcome.value, str(answer.reason), answer.lease.entry, answer.why)]

    def _end_elsewhere(self, answer: Answer, page: PageRecord) -> RedirectLine:
        """End the lease of a document that led to another owner's, and let that take its place in the frontier."""
        source, target, reason = answer.lease.entry, page.hops[-1], str(answer.reason)
        self._writer.archive_redirects(page)
        self.frontier.settle(answer.lease, Outcome.REDIRECTED, reason)
        if reason == QUEUED:
            hops = source.hops + 1
            entry = Entry(target, target, source.score, source.depth, source.key, hops=hops, cell=source.cell)
            self._targets.append(entry)
        return {**failure_line(Outcome.REDIRECTED.value, reason, source), "target": target}

    def _archive(self, lease: Lease, page: PageRecord, rated: Rated) -> CrawledPage:
        """Put one page into the archive."""
        self._writer.archive(page, lease.entry, rated, policy=self.policy.name, iteration=self._batch)
        self.frontier.settle(lease, Outcome.ARCHIVED)
        self.counters.page(rated.influence)
        if (least := self.options.quality_threshold) is not None and rated.has_new_text:
            self.counters.counts["pages/new_quality"] += rated.influence is not None and rated.influence >= least
        if self._all_known is not None and lease.entry.parent is not None and rated.novel is not None:
            self._all_known = self._all_known + 1 if rated.known_text else None
        if self._budgeted is not None:
            self._budgeted.crawled(lease.entry, rated.influence, new_text=rated.has_new_text)
        if self.mixture is not None:
            self.mixture.crawled(rated.classes)
        links = page.outlinks or ()
        if not page.follows:
            self.counters.counts["links/nofollow"] += len(links)
            links = ()
        elif rated.near_duplicate_of is not None and self.options.near_duplicates == LEAVE:
            self.counters.counts["links/near_duplicate"] += len(links)
            links = ()
        entry = replace(lease.entry, key=page.key, url=page.url)
        return CrawledPage(entry, rated.influence, links, rated.novel, rated.classes)

    def _extract(self, page: CrawledPage) -> list[Candidate]:
        """Return the links of a page that were not visited, and now are (lines 8 to 10, and 12)."""
        self.policy.crawled(page)
        new, refused = self.scope.new_documents(page, self.counters.counts)
        self._refused += refused
        if self._budgeted is not None:
            self._budgeted.linked(page, new)
        if self.mixture is not None:
            self.mixture.found(page, new)
        if self.policy.looks_ahead:
            self.counters.counts["pages/fetched"] += len(new)
        return new

    def _extract_held_back(self) -> list[Candidate]:
        return [candidate for page in self._raised_n.release() for candidate in self._extract(page)]

    async def _enqueue(self, candidates: Sequence[Candidate]) -> None:
        """Queue the candidates that the policy has a score for (line 11), and the targets of redirects to other owners,
        with the scores that the documents had which led to them."""
        entries, self._targets = self._targets, []
        failures, self._refused = self._refused, []
        for candidate, rated in zip(candidates, await self._score(candidates), strict=True):
            self.counters.heard(rated.reason)
            self.counters.note(rated.reason)
            if rated.score is None:
                reason = str(rated.reason)
                outcome = Outcome.DROPPED if reason == TOO_LARGE else Outcome.FAILED
                self.counters.counts[f"{outcome.value}/{reason}"] += 1
                failures.append(failure_line(outcome.value, reason, candidate))
            else:
                score = self._checked(candidate.key, rated.score)
                entries.append(Entry(candidate.key, candidate.url, score, candidate.depth, candidate.parent))
        if self.mixture is not None:
            self.mixture.place(entries)
        failures += [failure_line(Outcome.DROPPED.value, why, entry) for entry, why in self.frontier.push(entries)]
        self.counters.counts["frontier/reranked"] += self.frontier.rerank(
            (key, self._checked(key, score)) for key, score in self.policy.reranked()
        )
        self._log.write([], failures)

    async def _score(self, candidates: Sequence[Candidate]) -> list[Rating]:
        return await self.policy.score(candidates)

    def _checked(self, key: str, score: float) -> float:
        """Return a score that the policy gave. Raises InputError where it is none."""
        if not math.isfinite(score):
            raise InputError(f"URL_POLICY {self.policy.name} gave {key} the score {score}")
        return score
