"""A crawl from seeds to N pages: the loop of Algorithm 1, independent of how pages are fetched."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from crawl4llm.base.errors import InputError, Why
from crawl4llm.base.pages import Capture, PageRecord
from crawl4llm.base.reasons import TOO_MANY_REDIRECTS
from crawl4llm.crawl.algorithm import Algorithm
from crawl4llm.crawl.answering import unknown_of
from crawl4llm.crawl.counting import REDIRECTS, Balance, balance
from crawl4llm.crawl.driven import Driven
from crawl4llm.crawl.ends import FRONTIER_EMPTY, MAX_PAGES, ONLY_PARKED, UNANSWERED
from crawl4llm.crawl.reorder_buffer import Answer, Arrivals, Hop, Injected, RaisedN, ReorderBuffer, Spool
from crawl4llm.crawl.scope import Blocking
from crawl4llm.crawl.turns import Clock
from crawl4llm.frontier import MOST_HOPS, Lease, Outcome
from crawl4llm.options import Options
from crawl4llm.policies import Candidate, CrawledPage

if TYPE_CHECKING:
    from crawl4llm.crawl.commits import Commits
    from crawl4llm.crawl.gate import Layers

_REORDER_FACTOR = 8
"""Continuous order: most unmerged leases, as a multiple of those in flight, so that few pages wait for a slow one."""


class Crawl(Driven):
    """A crawl that has all its documents in this process.

    Batch order (n > 0) finishes all leases of a batch before the next. Continuous order (n = 0) hands out the best
    document whenever fewer than ``concurrent_leases`` are in flight. In both, pages enter log and archive in the order
    in which they were dequeued. With a frontier of owners they enter in the order in which they came, so that a slow
    owner holds up no other.
    """

    def __init__(
        self,
        options: Options,
        algorithm: Algorithm,
        layers: Layers,
        *,
        commits: Commits | None = None,
        clock: Clock | None = None,
        concurrent_leases: int = 1,
        spool: Spool | None = None,
        url_of_seed: Callable[[str], str] | None = None,
    ) -> None:
        """``commits``: for a crawl that outlives this process. ``url_of_seed`` returns the URL of a seed whose key does
        not tell its owner."""
        owners = None if layers.owned is None else layers.owned.owners
        facts = options, algorithm.policy, algorithm.scope, algorithm.counters, algorithm.parts
        super().__init__(*facts, owners, clock, concurrent_leases)
        self.algorithm, self.frontier = algorithm, algorithm.frontier
        self.sites = layers.sites
        self.buffer = ReorderBuffer(spool, in_order=owners is None)
        self.unknown = partial(unknown_of, self.parts.answering, self.scope, self.buffer, owners)
        """Answers the known ones of some leased documents; returns the others."""
        self.granted: int | None = None
        """Most pages that it may begin with, in all; None: N."""
        self.held_back = RaisedN()
        self.arrivals = Arrivals()
        self._commits, self._gate, self._url_of_seed = commits, layers.gate, url_of_seed
        self._blocking = None if layers.owned is None else Blocking(self.scope, layers.owned, algorithm.log)
        self._merging = 0
        """Answers that advance() has taken and not yet merged."""
        self._begun = False
        self._ends, self._spent = self.parts.having("finished"), [part.spent for part in self.parts if part.spent]
        self._figures, self._hear = self.parts.having("figures"), self.parts.having("committed")
        self.start_batch(0)

    def start_batch(self, number: int) -> None:
        """Begin with a batch; in continuous order it is always 0."""
        self.iteration = number
        self.algorithm.iteration = None if self.continuous else number

    # -- the loop of Algorithm 1 --------------------------------------------------------------------------------------

    async def begin(self, seeds: Sequence[str], added: Sequence[str] = ()) -> None:
        """Visit the seeds. A resumed crawl that is to crawl more first follows the links of its previously last
        pages."""
        if not self._begun:
            self._begun = True
            self.counters.counts[REDIRECTS] = 0
            await self.algorithm.enqueue(self.visit_seeds(seeds))
            self.commit_now()
            return
        if not self.buffer and not self.held_back.places and not self.finished:
            await self.algorithm.enqueue(self._extract_held_back())
        if added:
            await self.algorithm.enqueue(self.visit_seeds(added))

    def visit_seeds(self, seeds: Sequence[str]) -> list[Candidate]:
        """Visit documents without a page that links to them, and return those that may be crawled."""
        keys = self.visited.add(seeds)
        self.seeds += len(keys)
        urls = map(self._url_of_seed, keys) if self._url_of_seed else [""] * len(keys)
        return self.algorithm.visit_seeds([Candidate(key, url, 0, None) for key, url in zip(keys, urls, strict=True)])

    def dequeue(self) -> list[Lease]:
        if self._is_full or self._is_over:
            return []  # nor is a batch begun: if N is raised, links that were held back are followed first
        wanted = self.missing
        if self.continuous:
            wanted = min(wanted, self.concurrent_leases - self.buffer.in_flight)
            if self.owners is None:
                wanted = min(wanted, _REORDER_FACTOR * self.concurrent_leases - len(self.buffer))
        elif self.buffer:
            return []
        else:
            wanted = self.held_back.fill(self.options.crawl_batch_size if self.iteration else self.seeds, wanted)
        leases = self.algorithm.dequeue(max(wanted, 0))
        if not len(self.frontier):
            self.held_back.places = 0
        self.buffer.add(leases)
        if self.parts.answering is not None:
            leases = self.unknown(leases)
        if self.turns is not None:
            for lease in leases:
                self.turns.begin(lease)
        return leases

    async def advance(self, *, expand: bool = True) -> None:
        may_be_last = not expand or self.crawled + len(self.buffer) >= self.options.crawl_max_pages
        # Always as many at once, whatever came in by when.
        answers = self.buffer.take(None if self.continuous else self.pages_at_once)
        self.scope.follow_redirects(answers, self.counters.counts)
        new = [] if may_be_last else self._extract_held_back()
        self._merging = len(answers)
        new += await self.algorithm.merge(answers, self.held_back.hold_back if may_be_last else None)
        self._merging = 0
        if not self.buffer and not self.finished:
            self.held_back.places = 0  # as Algorithm 1 has it, others do not take the place of pages that failed
        if not self.buffer and not self.held_back.places:
            self.start_batch(self.iteration + (not self.continuous))
            if expand and not self.finished:
                new += self._extract_held_back()
        lists, self.arrivals.lists = self.arrivals.lists, []
        if expand:
            new += [candidate for links in lists for candidate in self.algorithm.extract(links)]
        await self.algorithm.enqueue(new)
        if self.arrivals.injected:
            some = self.arrivals.take_seeds(self.pages_at_once, self.counters.counts)
            await self.algorithm.enqueue(self.visit_seeds(some))
        self._commit(now=self.finished is not None or bool(self.arrivals.queued))

    def _extract_held_back(self) -> list[Candidate]:
        return [candidate for page in self.held_back.release() for candidate in self.algorithm.extract(page)]

    async def wind_up(self) -> None:
        """End the crawl, for now or for good; documents that were not requested are requeued.

        In a batch that another process will finish, all documents stay on lease. Answers that cannot be merged yet go
        to the spool, if there is one, or are forgotten. The batch, and its slices, will be the same.
        """
        if self.continuous or not self.lasting:
            for lease in self.unanswered():
                self.give_back(lease)
            while self.can_advance:
                await self.advance(expand=self.lasting)
        else:
            self.buffer.keep()
        self.commit_now()

    def commit_now(self) -> None:
        """Commit all that was done, between two calls of :meth:`advance`. Raises InputError."""
        self._commit(now=True)

    def _commit(self, *, now: bool) -> None:
        """Commit now, or if it is due. Raises InputError; RuntimeError if a document was lost."""
        if self._commits is not None:
            (self._commits.commit_now if now else self._commits.commit)(self)
            return
        self.algorithm.writer.flush()
        if now:
            self.balance.check()

    def leave(self) -> None:
        """Do nothing, because there are no other workers."""

    # -- answers (line 6) ---------------------------------------------------------------------------------------------

    def fetched(self, lease: Lease, page: PageRecord, status: int) -> None:
        if answer := self._answer(lease, None):
            answer.page, answer.status = page, status
            self._hold(answer)

    def redirected(self, lease: Lease, page: PageRecord) -> None:
        if lease.entry.hops >= MOST_HOPS:
            self.failed(lease, TOO_MANY_REDIRECTS)
        elif answer := self._answer(lease, None):
            answer.page, answer.outcome = page, Outcome.REDIRECTED
            self._hold(answer)

    def failed(self, lease: Lease, reason: str, why: Why | None = None, *, final: bool = True) -> None:
        answer = self._answer(lease, reason, why)
        if answer and (final or lease.entry.attempts >= self.options.crawl_max_attempts):
            answer.outcome = Outcome.FAILED

    def dropped(self, lease: Lease, reason: str, why: Why | None = None) -> None:
        if answer := self._answer(lease, reason, why):
            answer.outcome = Outcome.DROPPED

    def give_back(self, lease: Lease) -> None:
        if self.buffer.withdraw(lease):
            self.frontier.give_back(lease, attempted=False)
            self._lease_ended(lease, asked=False)

    def broken_off(self, lease: Lease, hop: Hop) -> None:
        self.buffer.redirected(lease, hop)

    def hop_of(self, lease: Lease) -> Hop | None:
        return self.buffer.hop_of(lease)

    def unanswered(self) -> list[Lease]:
        return self.buffer.unanswered()

    def _answer(self, lease: Lease, reason: str | None, why: Why | None = None) -> Answer | None:
        """Return the place for an answer, and note that it came; None if the lease has ended."""
        answer = self.buffer.answer(lease)
        if answer is None:
            self.counters.counts["late"] += 1
            return None
        answer.reason, answer.why = reason, why
        self.counters.heard(reason)
        self._lease_ended(lease)
        return answer

    def _hold(self, answer: Answer) -> None:
        try:
            self.buffer.hold(answer)
        except InputError as error:  # it stays in memory, and the crawl stops
            self.failure = self.failure or str(error)

    def _lease_ended(self, lease: Lease, *, asked: bool = True) -> None:
        if self.turns is not None:
            self.turns.end(lease, asked=asked)

    # -- what is no page's ------------------------------------------------------------------------------------------

    def keep_exchange(self, capture: Capture, purpose: str, about: Mapping[str, str]) -> None:
        try:
            self.algorithm.writer.archive_exchange(capture, purpose, about)
        except InputError as error:
            self.failure = self.failure or str(error)

    # -- steering ---------------------------------------------------------------------------------------------------

    def block(self, domains: Sequence[str]) -> None:
        self.scope.block(domains)
        if self._blocking is not None:
            self._blocking.look_at(domains)

    def lists_changed(self) -> None:
        if self._blocking is not None:
            self._blocking.look_at_all()

    def drop_blocked(self) -> bool:
        try:
            return self._blocking is not None and self._blocking.drop_some(self.pages_at_once)
        except InputError as error:
            self.failure = self.failure or str(error)
            return False

    def inject(self, injected: Injected) -> None:
        self.arrivals.injected.append(injected)

    def follow(self, links: CrawledPage) -> None:
        self.arrivals.lists.append(links)

    # -- how it stands ------------------------------------------------------------------------------------------------

    @property
    def may_lease(self) -> bool:
        return self.in_flight < self.concurrent_leases and self.missing > 0 and not self.lag()

    @property
    def in_flight(self) -> int:
        return self.buffer.in_flight

    @property
    def missing(self) -> int:
        """Pages that N still lacks if all leases become pages; 0 if the crawl is to end."""
        if self._is_over:
            return 0
        most = self.options.crawl_max_pages if self.granted is None else self.granted
        return most - self.crawled - self._merging - len(self.buffer)

    @property
    def lasting(self) -> bool:
        return self._commits is not None

    @property
    def crawled(self) -> int:
        return self.counters.counted

    @property
    def answered(self) -> int:
        return self.buffer.answered

    @property
    def can_advance(self) -> bool:
        waiting = self.buffer
        if (self._seeds_wait or self.arrivals.lists) and not self._is_full:
            return True
        if not waiting.answered:
            return False
        if self.continuous:
            return waiting.heard_of_first(1)
        return not waiting.in_flight or (
            waiting.answered >= self.pages_at_once and waiting.heard_of_first(self.pages_at_once)
        )

    @property
    def must_wait(self) -> bool:
        return self.buffer.answered >= 2 * self.pages_at_once or self.buffer.is_full

    @property
    def finished(self) -> str | None:
        if self._is_full:
            return MAX_PAGES
        if (reason := self._is_over) and not self.buffer:
            return reason
        waits = self._seeds_wait or self.arrivals.lists or self.expects or self.unanswered_sites
        if self.buffer or self.held_back or waits or len(self.frontier):
            return None
        return self._spent[0] if self.set_aside and self._spent else FRONTIER_EMPTY

    @property
    def waits_only(self) -> str | None:
        if self.owners is None or self.held_back:
            return None
        if self.sites is not None and self.sites.only_unanswered:
            return UNANSWERED
        return ONLY_PARKED if not self.buffer and 0 < len(self.frontier) == self.owners.documents.parked else None

    @property
    def _is_full(self) -> bool:
        """True if it has its N pages."""
        return self.crawled >= self.options.crawl_max_pages

    @property
    def _is_over(self) -> str | None:
        """The reason of a part to end the crawl; None without one."""
        return next((reason for end in self._ends if (reason := end()) is not None), None) if self._ends else None

    @property
    def set_aside(self) -> int:
        return 0 if self._gate is None else self._gate.set_aside

    @property
    def unanswered_sites(self) -> int:
        return 0 if self.sites is None else self.sites.waiting

    @property
    def _seeds_wait(self) -> bool:
        """True if injected seeds wait that can be visited at once; in batches they wait for pages, if any are to
        come."""
        return bool(self.arrivals.injected) and (self.continuous or not self.buffer)

    @property
    def balance(self) -> Balance:
        aside = self.set_aside + self.unanswered_sites
        return balance(self.visited, self.frontier, self.counters.counts, self.owners, aside)

    def statistics(self) -> dict[str, float | None]:
        figures = self.counters.figures(self.frontier)
        states = self.balance
        figures["pages/visited"] = states.discovered
        figures["frontier/queued"], figures["frontier/leased"] = states.queued, states.leased
        if self.owners is not None:
            figures["frontier/parked"] = states.parked
            figures["owners/parked"] = self.owners.counts.parked
            figures.update(self.clock.statistics())
        if self._gate is not None:
            figures["frontier/parked"], figures["parked/budget"] = states.parked, self.set_aside
        if self.sites is not None:
            figures["parked/unanswered"] = self.unanswered_sites
        if not self.continuous:
            figures["iterations"] = self.iteration
        for more in self._figures:
            figures.update(more(figures))
        return figures

    # -- pause and resume -----------------------------------------------------------------------------------------

    def committed(self) -> None:
        """Forget answers that were merged before the last commit. Raises InputError."""
        self.buffer.committed()
        self.arrivals.committed()
        for hear in [*self._hear, *self.after_commit]:
            hear()

    def save(self) -> dict[str, Any]:
        """Return its state between two calls of :meth:`advance`, without that of its store, in JSON values."""
        return {
            "counts": dict(self.counters.counts),
            "iteration": self.iteration,
            "seeds": self.seeds,
            "influence": [self.counters.influence_sum, self.counters.influence_pages],
            **self.held_back.save(),
            **({} if self.owners is None else {"clock": self.clock.save()}),
            "parts": self.parts.save(),
        }

    def load(self, state: Mapping[str, Any], leases: Iterable[Lease]) -> None:
        """Restore in a new crawl the state that :meth:`save` returned, with the frontier's leases."""
        self.counters.counts.update(state["counts"])
        self.start_batch(state["iteration"])
        self.seeds = state["seeds"]
        self.counters.influence_sum, self.counters.influence_pages = state["influence"]
        self.held_back.load(state)
        self._begun = True
        self.parts.load(state["parts"])
        if self.owners is not None:
            # They kept no owner from being asked while nothing ran, and two may be of one owner.
            for lease in leases:
                self.frontier.give_back(lease, attempted=False)
            self.clock.load(state.get("clock"), self.owners)
            return
        self.buffer.add(leases)
        self.buffer.recall()
        self.unknown(self.unanswered())
