"""A crawl as whoever drives it sees it: the scheduler, and what fetches its pages.

:class:`crawl4llm.crawl.crawl.Crawl` is one whose documents this process has all; a worker's crawl
(:mod:`crawl4llm.cluster.worker`) has those of some partitions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from crawl4llm.base.errors import Why
from crawl4llm.base.pages import Capture, PageRecord
from crawl4llm.crawl.counting import Balance, Counters
from crawl4llm.crawl.ends import Stop
from crawl4llm.crawl.turns import Clock, RealClock, Turns
from crawl4llm.frontier import Lease, Owners
from crawl4llm.options import Options
from crawl4llm.parts import Parts
from crawl4llm.policies import CrawledPage, Policy

if TYPE_CHECKING:
    from crawl4llm.crawl.reorder_buffer import Hop, Injected
    from crawl4llm.crawl.request_files import RequestLines
    from crawl4llm.crawl.scope import Scope
    from crawl4llm.crawl.sited_frontier import SitedFrontier


class Driven(ABC):
    """A crawl that is driven from outside.

    The scheduler calls, in turn: :meth:`begin`; :meth:`dequeue`; for each lease one of :meth:`fetched`,
    :meth:`redirected`, :meth:`failed` and :meth:`dropped`; :meth:`advance` once :attr:`can_advance`; then dequeue
    again, until :attr:`finished`; at last :meth:`wind_up`. A crawl that was taken up again hands out :meth:`unanswered`
    leases first.
    """

    pages_at_once: ClassVar[int] = 256
    """Batch order: pages that advance() takes; bounds the pages held in memory, whatever n."""
    requests: RequestLines | None = None
    """Takes the request log, unless a JOBDIR does."""
    sites: SitedFrontier | None = None
    """Tells the sites of an owner apart, if something does."""
    iteration = 0
    """The batch that is fetched; 0 in continuous order."""

    def __init__(
        self,
        options: Options,
        policy: Policy,
        scope: Scope,
        counters: Counters,
        parts: Parts,
        owners: Owners | None,
        clock: Clock | None,
        concurrent_leases: int,
    ) -> None:
        """``owners``: who may be asked now, if the frontier goes by owners; they wait by the ``clock``."""
        self.options, self.policy, self.scope = options, policy, scope
        self.counters, self.parts, self.visited = counters, parts, scope.visited
        self.continuous = options.crawl_batch_size == 0
        """Whether it runs in continuous order."""
        self.owners = owners
        self.clock: Clock = clock or RealClock()
        self.turns: Turns | None = None if owners is None else self.clock.turns(owners)
        """Who is told of leases, if the frontier goes by owners."""
        self.seeds = 0
        self.failure: str | None = None
        """What broke the crawl off, in one line, if something did: only the last commit stands."""
        self.stopped: Stop | None = None
        """Why it was stopped, if it was."""
        self.wake: Callable[[], None] = lambda: None
        """Lets whoever drives the crawl look again at what may be done: it was steered from outside."""
        self.lag: Callable[[], int] = int
        """Returns how many pages came that are still to be read, if no more should be asked for until they are; else 0.
        Heeded in continuous order."""
        self.expects = self.doubts_network = False
        """Flags: more links may come although the frontier is empty; the network may be down."""
        self.after_commit: list[Callable[[], None]] = []
        """Called after each commit: what others keep of this crawl may last from then on."""
        self.concurrent_leases = self._most_leases = concurrent_leases
        """Continuous order: leases that may be in flight."""

    # -- driving it -------------------------------------------------------------------------------------------------

    @abstractmethod
    async def begin(self, seeds: Sequence[str], added: Sequence[str] = ()) -> None:
        """Visit the seeds (lines 1 to 4); all of them form the first batch, whatever n. A crawl that is taken up again
        takes only the seeds that were ``added`` to it."""

    @abstractmethod
    def dequeue(self) -> list[Lease]:
        """Lease the best documents of the frontier (line 15), never more than are missing to N."""

    @abstractmethod
    async def advance(self, *, expand: bool = True) -> None:
        """Merge the pages that were fetched into P, extract their links, and enqueue those not visited (lines 7 to 14).

        ``expand=False`` leaves the links alone, as it is when the crawl has its N pages. Raises InputError if log or
        archive cannot be written; what they held before can still be read.
        """

    @abstractmethod
    async def wind_up(self) -> None:
        """End the crawl, for now or for good; what was fetched lasts. Raises InputError."""

    def stop(self, reason: str, message: str) -> None:
        """Have the crawl stopped, and all that it has saved; of several reasons the first one counts."""
        self.stopped = self.stopped or Stop(reason, message)

    @abstractmethod
    def leave(self) -> None:
        """Hear that the crawl ends here: who waits for other workers waits no longer."""

    # -- answers (line 6) ---------------------------------------------------------------------------------------------

    @abstractmethod
    def fetched(self, lease: Lease, page: PageRecord, status: int) -> None:
        """Take the page of a document."""

    @abstractmethod
    def redirected(self, lease: Lease, page: PageRecord) -> None:
        """End a document that redirects led from to another owner's, which is queued in its place. Only if the frontier
        goes by owners. The ``page`` has no content, the exchanges so far, and that document's key as its last hop."""

    @abstractmethod
    def failed(self, lease: Lease, reason: str, why: Why | None = None, *, final: bool = True) -> None:
        """End a document that could not be had; unless ``final`` it is tried again, CRAWL_MAX_ATTEMPTS times in all."""

    @abstractmethod
    def dropped(self, lease: Lease, reason: str, why: Why | None = None) -> None:
        """End a document that is not wanted."""

    @abstractmethod
    def give_back(self, lease: Lease) -> None:
        """Queue a document again that was not asked for."""

    @abstractmethod
    def unanswered(self) -> list[Lease]:
        """Return the leases without an answer, in the order of their hand-out."""

    def broken_off(self, lease: Lease, hop: Hop) -> None:  # noqa: B027 - not if another one begins anew
        """Note where redirects led before the fetch was broken off; another process can go on there, if one can."""

    def hop_of(self, lease: Lease) -> Hop | None:
        """Return where to go on with a fetch that another process has broken off."""
        return None

    # -- what is no page's ------------------------------------------------------------------------------------------

    @abstractmethod
    def keep_exchange(self, capture: Capture, purpose: str, about: Mapping[str, str]) -> None:
        """Archive an exchange that is no page's, such as one for ``robots.txt``, which is its ``purpose``, at once: it
        stands before all pages that are merged later, and lasts with the next commit, as they do."""

    @abstractmethod
    def follow(self, links: CrawledPage) -> None:
        """Let :meth:`advance` follow links that were found on no page of the crawl, such as a sitemap's. To the policy
        they are those of a page without an influence score."""

    def requested(self, url: str, purpose: str, unsent: str | None, lease: Lease | None) -> None:
        """Count a request of a live crawl that has ended, by its ``purpose``. ``unsent``: the reason, if it was not
        sent. ``lease``: that of its document, if it was for one."""
        if unsent is not None:
            self.counters.counts[f"unsent/{unsent}"] += 1
            return
        self.counters.counts[f"requests/{purpose}"] += 1
        self.counters.counts["pages/fetched"] += lease is not None

    def may_send(self, url: str, *, led: bool = False) -> bool:
        """Return whether something may be sent to a URL now; ``led``: a robots.txt to which another site redirects.
        Always, unless other workers may be asking there."""
        return True

    def sites_of(self, url: str) -> SitedFrontier | None:
        """Return what tells the sites of a URL's owner apart, if something does."""
        return self.sites

    # -- steering ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def block(self, domains: Sequence[str]) -> None:
        """Drop the documents of these domains, and let in those of others that were blocked before.

        New ones never enter the frontier; those queued leave it in time, if they are all of an owner's, or when their
        turn comes.
        """

    @abstractmethod
    def drop_blocked(self) -> bool:
        """Drop some queued documents of owners that are blocked; return whether there may be more."""

    def lists_changed(self) -> None:  # noqa: B027 - not if the lists are read once
        """Drop what is queued, in time, for owners that block lists have now."""

    @abstractmethod
    def inject(self, injected: Injected) -> None:
        """Let :meth:`advance` visit more seeds."""

    def limit(self, *, max_pages: int, concurrent_leases: int) -> None:
        """Let it end at another number of pages, and have so many leases in flight, from now on."""
        self.options = replace(self.options, crawl_max_pages=max_pages)
        self.concurrent_leases = concurrent_leases

    def limit_leases(self, most: int | None) -> None:
        """Hand out documents, in continuous order, while fewer than ``most`` are in flight; None: as many as ever."""
        self.concurrent_leases = self._most_leases if most is None else most

    # -- how it stands ------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def crawled(self) -> int:
        r"""Pages crawled so far (\|P\|)."""

    @property
    @abstractmethod
    def answered(self) -> int:
        """Answered leases that :meth:`advance` has not consumed yet."""

    @property
    def set_aside(self) -> int:
        """Documents that parts have set aside."""
        return 0

    @property
    def unanswered_sites(self) -> int:
        """Documents that wait because their sites have not answered."""
        return 0

    @property
    @abstractmethod
    def in_flight(self) -> int:
        """Leases without an answer."""

    @property
    @abstractmethod
    def may_lease(self) -> bool:
        """Whether :meth:`dequeue` would hand out one more document in continuous order, if it could be had now."""

    @property
    @abstractmethod
    def can_advance(self) -> bool:
        """Whether there are answers that :meth:`advance` may take: in batch order, the rest of the batch or many."""

    @property
    @abstractmethod
    def must_wait(self) -> bool:
        """Whether so many answers wait for :meth:`advance` that no more should be fetched."""

    @property
    @abstractmethod
    def finished(self) -> str | None:
        """Why the crawl is over; None while it is not (line 5)."""

    @property
    def waits_only(self) -> str | None:
        """ONLY_PARKED if the crawl waits for parked owners alone; UNANSWERED if for sites that never answered, perhaps
        with parked owners; else None."""
        return None

    @property
    @abstractmethod
    def lasting(self) -> bool:
        """Whether another process can go on where this one ends."""

    @property
    @abstractmethod
    def balance(self) -> Balance:
        """The states of its documents; sound between two calls of :meth:`advance`."""

    @abstractmethod
    def statistics(self) -> dict[str, float | None]:
        """Return all figures of :mod:`crawl4llm.base.stats`, as they stand."""
