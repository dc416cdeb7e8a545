"""The interface of a crawl to the scheduler and to the component that fetches its pages.

:class:`crawl4llm.crawl.crawl.Crawl` has all its documents in this process; a worker's crawl
(:mod:`crawl4llm.cluster.worker`) has those of some partitions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from crawl4llm.base.errors import InputError, Why
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
    again, until :attr:`finished`; finally :meth:`wind_up`. A resumed crawl hands out :meth:`unanswered` leases first.
    """

    pages_at_once: ClassVar[int] = 256
    """Batch order: most pages of one advance(), which bounds the pages in memory for any n."""
    requests: RequestLines | None = None
    """Writes the request log, unless a JOBDIR does."""
    sites: SitedFrontier | None = None
    """The layer that tells the sites of an owner apart, if there is one."""
    iteration = 0
    """The batch that is being fetched; 0 in continuous order."""

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
        """``owners``: those that may be asked now, for a frontier of owners; they wait by the ``clock``."""
        self.options, self.policy, self.scope = options, policy, scope
        self.counters, self.parts, self.visited = counters, parts, scope.visited
        self.continuous = options.crawl_batch_size == 0
        """True in continuous order."""
        self.owners = owners
        self.clock: Clock = clock or RealClock()
        self.turns: Turns | None = None if owners is None else self.clock.turns(owners)
        """Schedule of the owners, which is told of leases, for a frontier of owners."""
        self.seeds = 0
        self.failure: str | None = None
        """The error that broke the crawl off, in one line; only the last commit remains valid."""
        self.stopped: Stop | None = None
        """The reason why it was stopped, if it was."""
        self.wake: Callable[[], None] = lambda: None
        """Called after a command from outside, so that the driver of the crawl checks again what to do."""
        self.lag: Callable[[], int] = int
        """Returns the number of fetched pages that must be read before more is requested; 0 if there is no need. Used
        in continuous order."""
        self.expects = self.doubts_network = False
        """Flags: ``expects``: more links may come although the frontier is empty; ``doubts_network``: the network may
        be down."""
        self.after_commit: list[Callable[[], None]] = []
        """Called after each commit, so that others can make their own state of this crawl durable."""
        self.concurrent_leases = self._most_leases = concurrent_leases
        """Continuous order: leases that may be in flight."""

    # -- driving it -------------------------------------------------------------------------------------------------

    @abstractmethod
    async def begin(self, seeds: Sequence[str], added: Sequence[str] = ()) -> None:
        """Visit the seeds (lines 1 to 4); all of them form the first batch, for any n. A resumed crawl visits only the
        seeds that were ``added`` to it."""

    @abstractmethod
    def dequeue(self) -> list[Lease]:
        """Lease the best documents of the frontier (line 15), never more than N still lacks."""

    @abstractmethod
    async def advance(self, *, expand: bool = True) -> None:
        """Merge the fetched pages into P, extract their links, and enqueue those not visited (lines 7 to 14).

        ``expand=False`` leaves the links alone, as when the crawl has its N pages. Raises InputError if log or archive
        cannot be written; their earlier content stays readable.
        """

    @abstractmethod
    async def wind_up(self) -> None:
        """End the crawl, for now or for good; fetched pages are kept. Raises InputError."""

    def stop(self, reason: str, message: str) -> None:
        """Stop the crawl, and save all; of several reasons the first one counts."""
        self.stopped = self.stopped or Stop(reason, message)

    @abstractmethod
    def leave(self) -> None:
        """Note that the crawl ends here, so that others stop waiting for workers."""

    # -- answers (line 6) ---------------------------------------------------------------------------------------------

    @abstractmethod
    def fetched(self, lease: Lease, page: PageRecord, status: int) -> None:
        """Record the page of a document."""

    @abstractmethod
    def redirected(self, lease: Lease, page: PageRecord) -> None:
        """End a document that redirected to another owner's, for a frontier of owners, or to a known one. The target is
        queued in its place. The ``page`` has no content, the exchanges so far, and the target's key as its last hop."""

    @abstractmethod
    def failed(self, lease: Lease, reason: str, why: Why | None = None, *, final: bool = True) -> None:
        """End a failed document; unless ``final`` it is tried again, up to CRAWL_MAX_ATTEMPTS times in all."""

    @abstractmethod
    def dropped(self, lease: Lease, reason: str, why: Why | None = None) -> None:
        """End a dropped document."""

    @abstractmethod
    def give_back(self, lease: Lease) -> None:
        """Requeue a document that was not requested."""

    @abstractmethod
    def unanswered(self) -> list[Lease]:
        """Return the leases without an answer, in the order in which they were handed out."""

    def broken_off(self, lease: Lease, hop: Hop) -> None:  # noqa: B027 - not if another one begins anew
        """Note how far redirects led before the fetch was broken off; another process may continue there."""

    def hop_of(self, lease: Lease) -> Hop | None:
        """Return the place at which to continue a fetch that another process has broken off."""
        return None

    # -- what is no page's ------------------------------------------------------------------------------------------

    def keep_exchange(self, capture: Capture, purpose: str, about: Mapping[str, str]) -> None:  # noqa: B027 - simulations have none
        """Archive at once an exchange that belongs to no page, such as that of ``robots.txt``, its ``purpose``. It
        precedes all pages that are merged later, and becomes durable with the next commit, as they do."""

    def follow(self, links: CrawledPage) -> None:  # noqa: B027 - simulations have none
        """Let :meth:`advance` follow links that come from no crawled page, for example from a sitemap. The policy sees
        them as links of a page without an influence score."""

    def requested(self, url: str, purpose: str, unsent: str | None, lease: Lease | None) -> None:
        """Count a request of a live crawl that has ended, by its ``purpose``. ``unsent``: the reason, if it was not
        sent. ``lease``: that of its document, if it was for one."""
        if unsent is not None:
            self.counters.counts[f"unsent/{unsent}"] += 1
            return
        self.counters.counts[f"requests/{purpose}"] += 1
        self.counters.counts["pages/fetched"] += lease is not None

    def may_send(self, url: str, *, led: bool = False) -> bool:
        """Return whether a request may be sent to a URL now; ``led``: to a robots.txt to which another site redirects.
        Always true, unless other workers may be asking there."""
        return True

    def sites_of(self, url: str) -> SitedFrontier | None:
        """Return the layer that tells the sites of a URL's owner apart, if there is one."""
        return self.sites

    # -- steering ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def block(self, domains: Sequence[str]) -> None:
        """Drop the documents of these domains, and admit again those of domains that were blocked before.

        New ones never enter the frontier. Queued ones leave it gradually if a whole owner is blocked, otherwise when
        their turn comes.
        """

    def drop_blocked(self) -> bool:
        """Drop some queued documents of blocked owners; return whether there may be more."""
        return False

    def lists_changed(self) -> None:  # noqa: B027 - not if the lists are read once
        """Drop, gradually, the queued documents of owners that are now in block lists."""

    def inject(self, injected: Injected) -> None:
        """Let :meth:`advance` visit more seeds. Raises InputError if the crawl takes none while it runs."""
        raise InputError("a crawl with STORAGE takes no more seeds while it runs")

    def limit(self, *, max_pages: int, concurrent_leases: int) -> None:
        """From now on, end at ``max_pages`` pages and have at most ``concurrent_leases`` leases in flight."""
        self.options = replace(self.options, crawl_max_pages=max_pages)
        self.concurrent_leases = concurrent_leases

    def limit_leases(self, most: int | None) -> None:
        """Hand out documents, in continuous order, while fewer than ``most`` are in flight; None: no such limit."""
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
        """True if :meth:`dequeue` may hand out one more document in continuous order, provided that one is
        available."""

    @property
    @abstractmethod
    def can_advance(self) -> bool:
        """True if there are answers for :meth:`advance`: in batch order, the rest of the batch or many."""

    @property
    @abstractmethod
    def must_wait(self) -> bool:
        """True if the answers that wait for :meth:`advance` are too many to fetch more."""

    @property
    @abstractmethod
    def finished(self) -> str | None:
        """The reason why the crawl is over; None while it is not (line 5)."""

    @property
    def waits_only(self) -> str | None:
        """ONLY_PARKED if the crawl waits for parked owners alone; UNANSWERED if for sites that never answered, perhaps
        also for parked owners; otherwise None."""
        return None

    @property
    @abstractmethod
    def lasting(self) -> bool:
        """True if another process can continue the crawl."""

    @property
    @abstractmethod
    def balance(self) -> Balance:
        """The states of its documents; valid between two calls of :meth:`advance`."""

    @abstractmethod
    def statistics(self) -> dict[str, float | None]:
        """Return all figures of :mod:`crawl4llm.base.stats` at this moment."""
