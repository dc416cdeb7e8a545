"""The reorder buffer: answers, which come in any order and are merged in a fixed one. Also the part of a batch that a
raised N needs, and seeds and links that come from no page."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from crawl4llm.base.errors import Why
from crawl4llm.base.pages import Capture, Link, PageRecord
from crawl4llm.frontier import Entry, Lease, Outcome
from crawl4llm.policies import CrawledPage

if TYPE_CHECKING:
    from scrapy import Request

    from crawl4llm.crawl.seeds import Seeds


_BYTES_IN_MEMORY = 64 << 20
"""Most bytes of waiting pages in memory; if there is a spool, further pages go there. Also the most that are merged at
once."""
_FULL = _BYTES_IN_MEMORY // 2
"""Bytes at which no more is requested; the rest is for pages on their way."""
_LINK_BYTES = 200
"""Bytes of a link besides its URL and anchor."""
_OF_ENTRY = 6
"""Fields of an entry that are kept for a page whose links wait; the later ones are no longer needed."""


@dataclass(slots=True)
class Answer:
    """The result of fetching a document on lease."""

    lease: Lease
    heard: bool = False
    page: PageRecord | None = None
    """If the outcome is REDIRECTED, a page without content whose hops end with the document of another owner."""
    status: int | None = None
    reason: str | None = None
    """The reason why there is no page."""
    why: Why | None = None
    """The rule that decided, if there is one."""
    outcome: Outcome | None = None
    """How it ends without being archived as a page; None also if it is tried again."""
    size: int = 0
    """Bytes of the page's content and links, and of other content that waits with it."""
    spooled: bool = False
    """True if all but the lease and the size is in the spool."""
    known: bool = False
    """True if a part has its page, which is read when it is merged; ``size`` is that of the part's answer."""


class Hop(NamedTuple):
    """The state of a fetch that redirects have led elsewhere."""

    url: str
    """The URL to be requested next."""
    captures: Sequence[Capture]
    """The redirects so far."""


class Spool(Protocol):
    """Keeps answers on disk; see :class:`crawl4llm.crawl.answer_spool.AnswerSpool`."""

    def put(self, answer: Answer) -> None:
        """Write an answer, and take its page out of memory. Raises InputError if it cannot be written."""

    def restore(self, answer: Answer) -> None:
        """Give an answer its page back. Raises InputError if it cannot be read."""

    def put_hop(self, lease: Lease, hop: Hop) -> None:
        """Write how far redirects have led for a document without an answer. Raises InputError."""

    def recall(self, answers: Iterable[Answer]) -> tuple[list[Answer], dict[int, Hop]]:
        """Return the answers that an earlier process has spooled for the same leases; and hops, by token."""

    def sync(self) -> None:
        """Wait until all of it is on the disk."""

    def empty(self) -> None:
        """Remove everything. Raises InputError."""


class ReorderBuffer:
    """Leases that have not been merged yet. ``in_order`` merges answers in the order of the leases, so that a slow
    document holds back later ones; otherwise they are merged in the order in which they came."""

    def __init__(self, spool: Spool | None = None, *, in_order: bool = True) -> None:
        self._answers: dict[int, Answer] = {}
        self._in_order = in_order
        self._came: dict[int, Answer] = {}
        """Answers in the order in which they came, if they are merged in that order."""
        self.in_flight = 0
        """Leases without an answer."""
        self._spool = spool
        self._bytes = 0
        """Bytes of pages in memory."""
        self._hops: dict[int, Hop] = {}

    def __len__(self) -> int:
        """Return the number of leases that have not been merged yet."""
        return len(self._answers)

    @property
    def answered(self) -> int:
        """Leases with an answer."""
        return len(self._answers) - self.in_flight

    def add(self, leases: Iterable[Lease]) -> None:
        """Wait for the answers of more leases."""
        for lease in leases:
            self._answers[lease.token] = Answer(lease)
            self.in_flight += 1

    def answer(self, lease: Lease) -> Answer | None:
        """Return the place for an answer; None if the lease has had one, or was merged."""
        answer = self._answers.get(lease.token)
        if answer is None or answer.heard:
            return None
        self._hear(answer)
        return answer

    def hold(self, answer: Answer) -> None:
        """Hold the page of an answer in memory or, if there are many, in the spool. Raises InputError."""
        if answer.page is not None:
            answer.size = _size_of(answer.page)
            if self._spool is not None and self._bytes + answer.size > _BYTES_IN_MEMORY:
                self._spool.put(answer)
            else:
                self._bytes += answer.size

    @property
    def is_full(self) -> bool:
        """True if waiting pages take so much memory that no more should be fetched."""
        return self._bytes >= _FULL

    def redirected(self, lease: Lease, hop: Hop) -> None:
        """Note how far redirects have led from a document whose fetch has been broken off."""
        self._hops[lease.token] = hop

    def hop_of(self, lease: Lease) -> Hop | None:
        """Return the place at which to continue with a document, if an earlier process has noted one."""
        return self._hops.get(lease.token)

    def keep(self) -> None:
        """Write all answers and hops to the spool, if there is one, for another process. Raises InputError."""
        if self._spool is not None:
            for answer in self._answers.values():
                if answer.known:
                    continue  # the part will have it again
                if answer.heard and not answer.spooled:
                    self._spool.put(answer)
                elif not answer.heard and (hop := self._hops.get(answer.lease.token)):
                    self._spool.put_hop(answer.lease, hop)
            self._bytes = 0
            self._spool.sync()

    def recall(self) -> None:
        """Read the answers and hops that :meth:`keep` has written for these leases."""
        if self._spool is not None:
            answers, self._hops = self._spool.recall(self._answers.values())
            for answer in answers:
                self._hear(answer)
                answer.spooled = True

    def committed(self) -> None:
        """Empty the spool, if there is one, once a commit needs nothing in it. Raises InputError."""
        if self._spool is not None and not self._hops and not any(answer.spooled for answer in self._answers.values()):
            self._spool.empty()

    def withdraw(self, lease: Lease) -> bool:
        """Stop waiting for a lease; return whether it had no answer."""
        if self.answer(lease) is None:
            return False
        self._forget(lease)
        return True

    def unanswered(self) -> list[Lease]:
        """Return the leases without an answer, in their order."""
        return [answer.lease for answer in self._answers.values() if not answer.heard]

    def heard_of_first(self, n: int) -> bool:
        """Return whether the first ``n`` leases to be merged have an answer; there must be one."""
        if not self._in_order:
            return self.answered >= min(n, len(self))
        return all(answer.heard for answer in islice(self._answers.values(), n))

    def take(self, most: int | None) -> list[Answer]:
        """Take the answers that have come, in order up to the first missing one: at most ``most``, and no more than fit
        in memory. Raises InputError if one cannot be read."""
        taken: list[Answer] = []
        room = _BYTES_IN_MEMORY
        in_turn = self._answers if self._in_order else self._came
        for answer in islice(takewhile(lambda answer: answer.heard, in_turn.values()), most):
            room -= answer.size
            if room < 0 and taken:
                break
            taken.append(answer)
        for answer in taken:
            if answer.spooled:
                assert self._spool is not None
                self._spool.restore(answer)
            elif not answer.known:
                self._bytes -= answer.size
            self._forget(answer.lease)
        return taken

    def _hear(self, answer: Answer) -> None:
        answer.heard = True
        self.in_flight -= 1
        if not self._in_order:
            self._came[answer.lease.token] = answer

    def _forget(self, lease: Lease) -> None:
        del self._answers[lease.token]
        self._came.pop(lease.token, None)
        self._hops.pop(lease.token, None)


def _size_of(page: PageRecord) -> int:
    bodies = len(page.html or b"") + sum([len(capture.body) for capture in page.captures])
    return page.beside + bodies + sum([_LINK_BYTES + len(link.url) + len(link.anchor) for link in page.outlinks or ()])


class Injected(NamedTuple):
    """Seeds added to a running crawl."""

    seeds: Seeds
    when_committed: Callable[[], None]
    """Called after the first commit that includes all of them."""


class Arrivals:
    """Seeds and links that are not links of pages, until they are visited."""

    def __init__(self) -> None:
        self.injected: deque[Injected] = deque()
        """More seeds, to be visited."""
        self.queued: list[Injected] = []
        """Injected seeds that are queued, or were visited before, until they are committed."""
        self.lists: list[CrawledPage] = []
        """Lists of links that come from no page, for example from sitemaps."""

    def take_seeds(self, most: int, counts: Counter[str]) -> list[str]:
        """Return some of the seeds that were injected first; count them once all are taken."""
        injected = self.injected[0]
        keys = injected.seeds.keys
        some, keys[:] = keys[:most], keys[most:]
        if not keys:
            counts.update(injected.seeds.counts)
            self.queued.append(self.injected.popleft())
        return some

    def committed(self) -> None:
        """Report injected seeds that are now durable."""
        for injected in self.queued:
            injected.when_committed()
        self.queued.clear()


class RaisedN:
    """The part of the last batch that N cut off: unfilled places, and pages whose links wait.

    The links of a crawl's last pages are not followed, because nothing would crawl their targets. They are followed
    later if others of these pages fail, so that N is not reached, or if N is raised.
    """

    def __init__(self) -> None:
        self.places = 0
        """Places of this batch left unfilled because of N; used first when a resumed run raises it."""
        self._pages: list[CrawledPage] = []

    def __bool__(self) -> bool:
        """Return whether there are pages whose links wait."""
        return bool(self._pages)

    def fill(self, places: int, missing: int) -> int:
        """Return how many of a batch's places may be filled while N lacks ``missing`` pages."""
        places = self.places or places
        filled = min(places, missing)
        self.places = places - filled
        return filled

    def hold_back(self, page: CrawledPage) -> None:
        """Keep a page whose links are not followed yet."""
        self._pages.append(page)

    def release(self) -> list[CrawledPage]:
        """Return the pages held back, in crawl order; their links are followed now."""
        pages, self._pages = self._pages, []
        return pages

    def save(self) -> dict[str, Any]:
        """Return its state in JSON values."""
        return {
            "kept_out": self.places,
            "held_back": [
                [*astuple(page.entry)[:_OF_ENTRY], page.influence, page.links, *_of_text(page)] for page in self._pages
            ],
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Restore the state that :meth:`save` returned."""
        self.places = state["kept_out"]
        for fields in state["held_back"]:
            influence, links, novel, classes = [*fields[_OF_ENTRY:], None, None][:4]
            links = [Link(*link) for link in links]
            classes = None if classes is None else tuple(classes)
            self._pages.append(CrawledPage(Entry(*fields[:_OF_ENTRY]), influence, links, novel, classes))


def _of_text(page: CrawledPage) -> list[Any]:
    """Return the fields of a page's text that are kept, if any are known."""
    if page.classes is not None:
        return [page.novel, page.classes]
    return [] if page.novel is None else [page.novel]


_LEASE, _LEASES, _PAGE, _PAGES = "crawl4llm_lease", "crawl4llm_leases", "crawl4llm_page", "crawl4llm_pages"


def leased(lease: Lease) -> dict[str, Any]:
    """Return the meta of a request for a leased document."""
    return {_LEASE: lease}


def leased_together(leases: Sequence[Lease]) -> dict[str, Any]:
    """Return the meta of one request for several leased documents."""
    return {_LEASES: leases}


def lease_of(request: Request | None) -> Lease:
    """Return the lease a request was made for."""
    assert request is not None
    lease: Lease = request.meta[_LEASE]
    return lease


def leases_of(request: Request | None) -> Sequence[Lease]:
    """Return the leases a request was made for, one or several; none if it was made for no lease."""
    meta = {} if request is None else request.meta
    leases: Sequence[Lease] = [meta[_LEASE]] if _LEASE in meta else meta.get(_LEASES, ())
    return leases


def is_leased(request: Request) -> bool:
    """Return whether the request was made for one leased document."""
    return _LEASE in request.meta


def is_for_several(request: Request) -> bool:
    """Return whether the request was made for several leased documents."""
    return _LEASES in request.meta


def page_of(request: Request | None) -> PageRecord | None:
    """Return the page that was fetched for a request, if there is one."""
    assert request is not None
    return request.meta.get(_PAGE)


def attach_page(request: Request, page: PageRecord) -> None:
    """Attach a fetched page to the request for its callback."""
    request.meta[_PAGE] = page


Found = PageRecord | Exception | None
"""The result for one of several documents: its page, an error, or nothing."""


def pages_of(request: Request | None) -> Iterable[Found]:
    """Return the results of a request for several documents, in the order of its leases."""
    assert request is not None
    found: Iterable[Found] = request.meta[_PAGES]
    return found


def attach_pages(request: Request, found: Iterable[Found]) -> None:
    """Attach results to a request for several documents, for its callback."""
    request.meta[_PAGES] = found
