"""The state of a crawl: what it consists of, what is known of it, and how another process takes it up."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from crawl4llm.base.crawl_log import FailureLine, LogWriter
from crawl4llm.base.domains import Domain, owner_of
from crawl4llm.base.errors import InputError
from crawl4llm.base.pages import Capture
from crawl4llm.crawl.budgeted_frontier import BudgetedFrontier
from crawl4llm.crawl.page_writer import Balance, Counters, PageWriter, RatePages, balance
from crawl4llm.crawl.reorder_buffer import RaisedN, ReorderBuffer, Spool
from crawl4llm.crawl.scope import NO_LIMITS, Limits, Scope
from crawl4llm.crawl.seeds import Seeds
from crawl4llm.crawl.turns import Clock, RealClock, Turns
from crawl4llm.frontier import Entry, Frontier, Lease, Outcome, OwnerFrontier, Owners
from crawl4llm.options import Options
from crawl4llm.policies import CrawledPage, Policy

if TYPE_CHECKING:
    from crawl4llm.crawl.commits import Commits
    from crawl4llm.crawl.mixture import Mixture
    from crawl4llm.crawl.near_duplicates import NearDuplicates
    from crawl4llm.crawl.request_files import RequestLines
    from crawl4llm.crawl.sited_frontier import SitedFrontier
    from crawl4llm.crawl.url_rules import UrlRules
    from crawl4llm.frontier.visited import VisitedSet
    from crawl4llm.warc import Archive

MAX_PAGES, FRONTIER_EMPTY = "max_pages", "frontier_empty"
ONLY_PARKED, UNANSWERED = "only_parked", "unanswered"
"""Reasons for which a crawl ends after CRAWL_WAIT seconds: it waits for nothing else."""
BUDGETS_SPENT, ALL_KNOWN = "budgets_spent", "all_known"
DONE = (MAX_PAGES, FRONTIER_EMPTY, BUDGETS_SPENT, ALL_KNOWN)
"""Reasons for which a crawl ends that has done what it was to do."""
LIMITS = tuple(
    f"closespider_{name}"
    for name in ("timeout", "pagecount", "itemcount", "timeout_no_item", "pagecount_no_item", "errorcount")
)
"""Reasons for which a crawl ends at a limit of Scrapy's that its user has set; the last one is of errors."""
KNOWN_AT_FIRST = 1000
"""Pages that no seed is, and have text, after which a crawl ends whose KNOWN_TEXTS has them all."""


class Stop(NamedTuple):
    """Why a crawl was stopped before its end, with all that it has saved."""

    reason: str
    """A word, for Scrapy's ``finish_reason``."""
    message: str
    """One line that says what to do."""


class Injected(NamedTuple):
    """Seeds for a crawl that runs."""

    seeds: Seeds
    when_committed: Callable[[], None]
    """Called after the first commit that includes all of them."""


class CrawlState:
    """What :class:`crawl4llm.crawl.algorithm.Crawl` works on.

    ``by_owners``: the frontier, if it goes by owners; only in continuous order. They wait by the ``clock``;
    ``url_of_seed`` returns a seed's URL, which tells its owner, where its key does not.
    """

    pages_at_once: ClassVar[int] = 256
    """Batch order: pages that advance() takes; bounds the pages held in memory, whatever n."""
    requests: RequestLines | None = None
    """Takes the request log, unless a JOBDIR does."""

    def __init__(
        self,
        options: Options,
        *,
        policy: Policy,
        rate: RatePages,
        frontier: Frontier,
        visited: VisitedSet,
        archive: Archive,
        log: LogWriter,
        commits: Commits,
        provenance: Mapping[str, str],
        concurrent_leases: int = 1,
        opted_out: Sequence[Domain] = (),
        spool: Spool | None = None,
        limits: Limits = NO_LIMITS,
        by_owners: OwnerFrontier | None = None,
        clock: Clock | None = None,
        url_of_seed: Callable[[str], str] | None = None,
        rules: UrlRules | None = None,
        near_duplicates: NearDuplicates | None = None,
        mixture: Mixture | None = None,
        sites: SitedFrontier | None = None,
        sends: bool = False,
    ) -> None:
        self.options = options
        self.policy = policy
        self.frontier = frontier
        self.visited = visited
        self.counters = Counters()
        bounds = options.crawl_scope, visited, opted_out, limits, options.partitions
        self.scope = Scope(*bounds, by_owners=by_owners is not None, rules=rules, traps=options.url_traps)
        self.iteration = self.seeds = 0
        self.failure: str | None = None
        """What broke the crawl off, in one line, if something did: only the last commit stands."""
        self.stopped: Stop | None = None
        """Why it was stopped, if it was."""
        self._writer = PageWriter(
            *(archive, rate),
            visited=visited,
            counters=self.counters,
            provenance=provenance,
            near_duplicates=near_duplicates,
            known_texts=options.known_texts is not None,
            mixture=mixture,
        )
        self.mixture, self.sites = mixture, sites
        self._all_known: int | None = None if options.known_texts is None else 0
        """Pages that no seed is whose texts were looked up, all of them known; None where one is not, or none are."""
        self._log = log
        self._commits = commits
        self._concurrent_leases = self._most_leases = concurrent_leases
        self._by_owners = by_owners
        self._budgeted = frontier if isinstance(frontier, BudgetedFrontier) else None
        self.clock = clock or RealClock()
        self.turns: Turns | None = None if by_owners is None else self.clock.turns(by_owners.owners)
        """Who is told of leases, where the frontier goes by owners."""
        self._url_of_seed, self._sends = url_of_seed, sends  # if it sends, requested() counts fetches, and not answers
        self._buffer = ReorderBuffer(spool, in_order=by_owners is None)
        self._merging = 0
        """Answers that advance() has taken and not merged yet."""
        self._raised_n = RaisedN()
        self._begun = False
        self._refused: list[FailureLine] = []
        """To be logged with the candidates that were not refused."""
        self._targets: list[Entry] = []
        """Of redirects to other owners, to be queued with the candidates."""
        self.wake: Callable[[], None] = lambda: None
        """Lets whoever drives the crawl look again at what may be done: it was steered from outside."""
        self.lag: Callable[[], int] = int
        """Returns how many pages came that are still to be read, where no more should be asked for until they are; else
        0. Heeded in continuous order."""
        self._injected: deque[Injected] = deque()
        self._queued: list[Injected] = []
        """Injected seeds that are queued, or visited before, and await a commit."""
        self._lists: list[CrawledPage] = []
        """Of links that are no page's, to be followed."""
        self.expects = self.doubts_network = False
        """Flags: more such links may come although the frontier is empty; the network may be down."""
        self._to_look_at: deque[str] = deque()
        """Owners who may be blocked, and whose queued documents have not all been dropped yet."""
        self.after_commit: list[Callable[[], None]] = []
        """Called after each commit: what others keep of this crawl may last from then on."""

    # -- steering ---------------------------------------------------------------------------------------------------

    def limit(self, *, max_pages: int, concurrent_leases: int) -> None:
        """Let it end at another number of pages, and have so many leases in flight, from now on."""
        self.options = replace(self.options, crawl_max_pages=max_pages)
        self._concurrent_leases = concurrent_leases

    def block(self, domains: Sequence[str]) -> None:
        """Drop the documents of these domains, and let in those of others that were blocked before.

        New ones never enter the frontier; those queued leave it in time, where they are all of an owner's, or when
        their turn comes.
        """
        self.scope.block(domains)
        if self._by_owners is not None:
            self._to_look_at.extendleft(name for name in domains if owner_of(f"http://{name}/") == name)

    def lists_changed(self) -> None:
        """Drop what is queued, in time, for owners that block lists have now."""
        if self._by_owners is not None:
            self._to_look_at.extend(self._by_owners.owners.names)

    def inject(self, injected: Injected) -> None:
        """Let :meth:`advance` visit more seeds."""
        self._injected.append(injected)

    def follow(self, links: CrawledPage) -> None:
        """Let :meth:`advance` follow links that were found on no page of the crawl, such as a sitemap's. To the policy
        they are those of a page without an influence score."""
        self._lists.append(links)

    # -- what is no page's ------------------------------------------------------------------------------------------

    def keep_exchange(self, capture: Capture, purpose: str, about: Mapping[str, str]) -> None:
        """Archive an exchange that is no page's, such as one for ``robots.txt``, which is its ``purpose``, at once: it
        stands before all pages that are merged later, and lasts with the next commit, as they do."""
        try:
            self._writer.archive_exchange(capture, purpose, about)
        except InputError as error:
            self.failure = self.failure or str(error)

    def requested(self, url: str, purpose: str, unsent: str | None, lease: Lease | None) -> None:
        """Count a request of a live crawl that has ended, by its ``purpose``. ``unsent``: the reason, if it was not
        sent. ``lease``: that of its document, if it was for one."""
        if unsent is not None:
            self.counters.counts[f"unsent/{unsent}"] += 1
            return
        self.counters.counts[f"requests/{purpose}"] += 1
        self.counters.counts["pages/fetched"] += lease is not None

    # -- what is known of it --------------------------------------------------------------------------------------

    @property
    def continuous(self) -> bool:
        """Whether it runs in continuous order."""
        return self.options.crawl_batch_size == 0

    @property
    def owners(self) -> Owners | None:
        """Who may be asked now, where the frontier goes by owners."""
        return None if self._by_owners is None else self._by_owners.owners

    @property
    def may_lease(self) -> bool:
        """Whether :meth:`dequeue` would hand out one more document in continuous order, if it could be had now."""
        return self._buffer.in_flight < self._concurrent_leases and self._missing > 0 and not self.lag()

    @property
    def in_flight(self) -> int:
        """Leases without an answer."""
        return self._buffer.in_flight

    @property
    def _missing(self) -> int:
        """Pages that are missing to N if all leases become pages; none where the crawl is to end."""
        if self.knows_all:
            return 0
        return self.options.crawl_max_pages - self.crawled - self._merging - len(self._buffer)

    def limit_leases(self, most: int | None) -> None:
        """Hand out documents, in continuous order, while fewer than ``most`` are in flight; None: as many as ever."""
        self._concurrent_leases = self._most_leases if most is None else most

    def may_send(self, url: str, *, led: bool = False) -> bool:
        """Return whether something may be sent to a URL now; ``led``: a robots.txt to which another site redirects.
        Always, unless other workers may be asking there."""
        return True

    def leave(self) -> None:
        """Hear that the crawl ends here: who waits for other workers waits no longer."""

    def stop(self, reason: str, message: str) -> None:
        """Have the crawl stopped, and all that it has saved; of several reasons the first one counts."""
        self.stopped = self.stopped or Stop(reason, message)

    def sites_of(self, url: str) -> SitedFrontier | None:
        """Return what tells the sites of a URL's owner apart, if something does."""
        return self.sites

    @property
    def waits_only(self) -> str | None:
        """ONLY_PARKED if the crawl waits for parked owners alone; UNANSWERED if for sites that never answered, perhaps
        with parked owners; else None."""
        if self.owners is None or self._raised_n:
            return None
        if self.sites is not None and self.sites.only_unanswered:
            return UNANSWERED
        return ONLY_PARKED if not self._buffer and 0 < len(self.frontier) == self.owners.documents.parked else None

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
        return self.counters.crawled

    @property
    def answered(self) -> int:
        """Answered leases that :meth:`advance` has not consumed yet."""
        return self._buffer.answered

    @property
    def can_advance(self) -> bool:
        """Whether there are answers that :meth:`advance` may take: in batch order, the rest of the batch or many."""
        waiting = self._buffer
        if (self._seeds_wait or self._lists) and not self.is_full:
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
        """Whether so many answers wait for :meth:`advance` that no more should be fetched."""
        return self._buffer.answered >= 2 * self.pages_at_once or self._buffer.is_full

    @property
    def finished(self) -> str | None:
        """Why the crawl is over; None while it is not."""
        if self.is_full:
            return MAX_PAGES
        if self.knows_all and not self._buffer:
            return ALL_KNOWN
        waits = self._seeds_wait or self._lists or self.expects or self.unanswered_sites
        if self._buffer or self._raised_n or waits or len(self.frontier):
            return None
        return BUDGETS_SPENT if self.set_aside else FRONTIER_EMPTY

    @property
    def new_quality(self) -> int:
        """Pages crawled so far that are as good as QUALITY_THRESHOLD wants, with a new text."""
        return self.counters.counts["pages/new_quality"]

    @property
    def is_full(self) -> bool:
        """Whether it has its N pages."""
        return self.crawled >= self.options.crawl_max_pages

    @property
    def knows_all(self) -> bool:
        """Whether KNOWN_TEXTS has the texts of all pages but the seeds, and that of enough of them."""
        return self._all_known is not None and self._all_known >= KNOWN_AT_FIRST

    @property
    def set_aside(self) -> int:
        """Documents for which an owner or URL prefix has no budget."""
        return 0 if self._budgeted is None else self._budgeted.set_aside

    @property
    def unanswered_sites(self) -> int:
        """Documents that wait because their sites have not answered."""
        return 0 if self.sites is None else self.sites.waiting

    @property
    def _seeds_wait(self) -> bool:
        """Whether injected seeds are there that are taken up at once; in batches they wait for pages, if any come."""
        return bool(self._injected) and (self.continuous or not self._buffer)

    @property
    def balance(self) -> Balance:
        """The states of its documents; sound between two calls of :meth:`advance`."""
        aside = self.set_aside + self.unanswered_sites
        return balance(self.visited, self.frontier, self.counters.counts, self.owners, aside)

    def statistics(self) -> dict[str, float | None]:
        """Return all figures of :mod:`crawl4llm.base.stats`, as they stand."""
        figures: dict[str, float | None] = dict(self.counters.counts)
        for (outcome, reason), count in self.frontier.outcomes.items():
            if outcome is not Outcome.ARCHIVED:
                figures[f"{outcome.value}/{reason}"] = count + (figures.get(f"{outcome.value}/{reason}") or 0)
        if (lost := self.scope.taken_for_known(self.counters.counts)) is not None:
            figures["links/taken_for_known"] = lost
        states = self.balance
        figures["pages/visited"] = states.discovered
        figures["frontier/queued"] = states.queued
        figures["frontier/leased"] = states.leased
        if self.owners is not None:
            figures["frontier/parked"] = states.parked
            figures["owners/parked"] = self.owners.counts.parked
        if self._budgeted is not None:
            figures["frontier/parked"] = states.parked
            figures["parked/budget"] = self.set_aside
        if self.sites is not None:
            figures["parked/unanswered"] = self.unanswered_sites
        figures["influence/mean"] = self.counters.mean_influence
        if self.options.quality_threshold is not None and (fetched := figures.get("pages/fetched")):
            figures["new_quality/per_1000_fetches"] = 1000 * (figures.get("pages/new_quality") or 0) / fetched
        if self.mixture is not None:
            figures.update(self.mixture.statistics())
        if self._by_owners is not None:
            figures.update(self.clock.statistics())
        if not self.continuous:
            figures["iterations"] = self.iteration
        return figures

    # -- pause and resume -----------------------------------------------------------------------------------------

    def committed(self) -> None:
        """Forget answers that were taken before the commit that was just made. Raises InputError."""
        self._buffer.committed()
        for injected in self._queued:
            injected.when_committed()
        self._queued.clear()
        for kept in self.after_commit:
            kept()

    def save(self) -> dict[str, Any]:
        """Return its state between two calls of :meth:`advance`, apart from its parts', as JSON takes it."""
        return {
            "counts": dict(self.counters.counts),
            "iteration": self.iteration,
            "seeds": self.seeds,
            "influence": [self.counters.influence_sum, self.counters.influence_pages],
            **self._raised_n.save(),
            **({} if self._by_owners is None else {"clock": self.clock.save()}),
            **({} if self._budgeted is None else {"budgets": self._budgeted.save()}),
            **({} if self._all_known is None else {"all_known": self._all_known}),
            **({} if self.mixture is None else {"mixture": self.mixture.save()}),
        }

    def load(self, state: Mapping[str, Any], leases: Iterable[Lease]) -> None:
        """Go on, in a new crawl, from what :meth:`save` returned, with the frontier's leases."""
        self.counters.counts.update(state["counts"])
        self.iteration = state["iteration"]
        self.seeds = state["seeds"]
        self.counters.influence_sum, self.counters.influence_pages = state["influence"]
        self._raised_n.load(state)
        self._begun = True
        if self._budgeted is not None:
            self._budgeted.budgets.load(state.get("budgets", []))
        if self.mixture is not None:
            self.mixture.load(state["mixture"])
        self._all_known = state.get("all_known")
        if self._by_owners is not None:
            # They kept no owner from being asked while nothing ran, and two may be of one owner.
            for lease in leases:
                self.frontier.give_back(lease, attempted=False)
            self.clock.load(state.get("clock"), self._by_owners.owners)
            return
        self._buffer.add(leases)
        self._buffer.recall()
