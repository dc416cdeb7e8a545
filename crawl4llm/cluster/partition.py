"""One partition of a crawl in batch order: its frontier, visited set and policy, and its part of each batch.

A partition goes through an iteration in stages, and from any state that the storage has of it: what others have put
there already is taken, not done again. So one that is taken over is one that goes on.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from crawl4llm.base.errors import InputError
from crawl4llm.base.shapes import fits
from crawl4llm.cluster import objects, shapes
from crawl4llm.cluster.objects import SEEDS_PLACE, Exchange, Plan, line_of, page_of
from crawl4llm.cluster.storage import StorageError
from crawl4llm.cluster.stores import Scratch
from crawl4llm.cluster.worker import Common, OnePartition
from crawl4llm.crawl import Balance, balance
from crawl4llm.frontier import Entry, Lease, Outcome, Store
from crawl4llm.policies import COUNTED, NOT_OURS, BasePolicy, Candidate, CrawledPage, Rating

_AT_LEAST: Final = 16
"""Documents offered besides those that are to be expected in a batch."""
_ENDED: Final = (f"{Outcome.FAILED.value}/", f"{Outcome.DROPPED.value}/")


class Stage(enum.IntEnum):
    """How far a partition is with an iteration."""

    BEGUN = 0
    OFFERED = 1
    OFFERED_WHOLE = 2
    """It has offered as many of its documents as the batch has."""
    TAKEN = 3
    """Its documents of the batch are on lease."""
    EXCHANGED = 4
    FOUND = 5
    """The links to its documents are followed, the new ones not scored."""


class Partition(OnePartition):
    """The part of a crawl that is done apart for each partition: the steps of Algorithm 1, in the order in which all
    partitions go."""

    _store: Scratch

    def __init__(self, number: int, common: Common, iteration: int, data: bytes | None) -> None:
        """Begin, or go on from a snapshot before an iteration. Raises InputError."""
        super().__init__(number, common)
        policy = common.make_policy()
        self._tables = Store(self._path, fsync=False)
        with self._reading(objects.snapshot_name(number, iteration)):
            self._store = Scratch(self._tables, common.options, policy, data)
            if data is not None and not fits([self._store.state()], shapes.SNAPSHOT):
                raise ValueError("it is no snapshot")
        self.crawl = self._open(common.options, policy)
        self._store.keep_others(self.crawl.parts)
        self.crawl.start_batch(iteration)
        self._frontier, self._algorithm, self._buffer = self.crawl.frontier, self.crawl.algorithm, self.crawl.buffer
        self._counters, self._policy = self.crawl.counters, policy
        self._algorithm.score = self._score
        self._hears_all = getattr(policy.crawled, "__func__", None) is not BasePolicy.crawled
        """True if the policy also hears of pages without a link to this partition. With many partitions most pages are
        such."""
        self.stage = Stage.BEGUN
        state = self._store.state()
        self.pages_before: int = state.get("crawled", 0)
        """Pages of the whole crawl before this iteration."""
        self._share: int = state.get("share", 0)
        """Documents that it had in the batch before."""
        self._since = 0
        """Bytes of exchanges since the last snapshot."""
        self._snapshot_bytes = len(data or b"")
        self._counted: Counter[str] = Counter()
        """Figures that were reported already."""
        self._hand: list[Lease] = []
        """The offered documents, on lease."""
        self._places: dict[str, int] = {}
        """Of its documents of the batch, by key."""
        self._rows: list[list[Any]] = []
        self._refused_at: dict[str, tuple[int, int]] = {}
        self._found: list[tuple[int, int, Candidate]] = []
        """New documents, with the place of the page and the number of the link."""
        self._is_own: list[bool] | None = None
        """COUNTED: which of the documents that all partitions have found are its own, while they are scored."""
        self._news: list[list[int]] = state.get("news", [])
        self._failures: list[list[Any]] = state.get("failures", [])
        self._counters.counts.update(state.get("counts", {}))
        self._ended_before = Counter[str](state.get("ended", {}))
        """Documents that never entered the frontier, by stats key, as reported by an earlier worker."""

    @property
    def iteration(self) -> int:
        """The iteration that it is in."""
        return self.crawl.iteration

    # -- the offer ------------------------------------------------------------------------------------------------

    async def queue_seeds(self) -> None:
        """Visit, score and queue its seeds; for a partition that begins without a snapshot."""
        number_of, own = {key: number for number, key in enumerate(self._common.seeds)}, self.seeds()
        wanted = self.crawl.visit_seeds(own)
        self._refused_at = {line["id"]: (SEEDS_PLACE, number_of[line["id"]]) for line in self._algorithm.refused}
        self._news = [[SEEDS_PLACE, len(own), self._algorithm.unknown_in(wanted)]]
        self._found = [(SEEDS_PLACE, number_of[candidate.key], candidate) for candidate in wanted]
        if not self.is_counted:
            await self.queue_found(None)
            return
        url_of = self._common.url_of_seed or (lambda _: "")
        seeds = [Candidate(key, url_of(key), 0, None) for key in self._common.seeds]
        all_wanted, _ = self.crawl.scope.wanted_seeds(seeds, Counter())  # which depends on nothing but the seed
        await self.queue_found([[[SEEDS_PLACE, number_of[candidate.key]] for candidate in all_wanted]])

    def offer(self, n: int) -> dict[str, Any]:
        """Return the offer for a batch of ``n`` documents, and the results of the iteration before."""
        most = n if not self.iteration else min(n, 2 * self._share + n // self._common.options.partitions + _AT_LEAST)
        queued = len(self._frontier)
        self._hand = self._frontier.lease(most)
        self.stage = Stage.OFFERED
        return {"queued": queued, **self._shown(), **self._results()}

    def offer_whole(self, n: int) -> dict[str, Any]:
        """Return its best documents, as many as the batch has."""
        self._hand += self._frontier.lease(n - len(self._hand))
        self.stage = Stage.OFFERED_WHOLE
        return self._shown()

    def _shown(self) -> dict[str, Any]:
        entries = [lease.entry for lease in self._hand]
        return {"keys": [entry.key for entry in entries], "scores": [entry.score for entry in entries]}

    # -- its documents of the batch -------------------------------------------------------------------------------

    def take(self, plan: Plan) -> list[Lease]:
        """Lease its documents of the batch, and return the leases. Raises InputError if it has others."""
        places = plan.places(self.number)
        self._hand += self._frontier.lease(max(len(places) - len(self._hand), 0))
        share, rest = self._hand[: len(places)], self._hand[len(places) :]
        for lease in rest:
            self._frontier.give_back(lease, attempted=False)
        self._hand = []
        if [lease.entry.key for lease in share] != [plan.keys[place] for place in places]:
            raise InputError(
                f"STORAGE {self._common.storage.url}: iteration {self.iteration} was planned of other documents than "
                f"partition {self.number} has here; do all workers have the same version, model and corpus?"
            )
        self._places = {lease.entry.key: place for lease, place in zip(share, places, strict=True)}
        self._share = len(share)
        self._news, self._failures = [], []  # told in the offer
        self._counts()
        self._rows = []
        self._links = self._new_sections()
        left = [lease.entry for lease in share]
        if plan.keys and (not places or places[-1] < len(plan.keys) - 1):
            left.append(Entry(plan.keys[-1], "", plan.last_score, 0, None))  # a policy may go by the last of a batch
        self._policy.dequeued(left)
        self._buffer.add(share)
        self._segments.number = self.iteration
        self.stage = Stage.TAKEN
        return share

    async def merge(self) -> None:
        """Archive the fetched pages in order; record the targets of their links."""
        answers = self._buffer.take(self.crawl.pages_at_once)
        pages: list[CrawledPage] = []
        await self._algorithm.merge(answers, pages.append)
        lines, failures = (iter(taken) for taken in self._lines.take())
        merged, of = iter(pages), self._common.partitions.of
        for answer in answers:
            place, fetched = self._places[answer.lease.entry.key], answer.page
            failure = None if answer.outcome is None else next(failures)
            if fetched is None:
                self._rows.append([place, None, failure, None])
                continue
            page = next(merged)
            if failure is None:
                facts = {"date": fetched.date, "language": fetched.language, "opt_outs": fetched.opt_outs}
                self._rows.append([place, next(lines), None, facts])
            else:
                self._rows.append([place, line_of(page), failure, None])
            self._links.add(place, [(0 if link.key is None else of(link.key), link) for link in page.links])

    @property
    def balance(self) -> Balance:
        counts = self._counters.counts + self._ended_before
        return balance(self.crawl.visited, self._frontier, counts, None)

    def exchange(self) -> bytes:
        """Put its pages into the storage, and return the facts that the partitions need."""
        for _, line, _, _ in self._rows:
            for name in ("order", "iteration", "visited", "fetched") if line else ():
                line.pop(name, None)  # of the whole crawl, and known when that is merged
        segment, base = self._segments.take(), objects.name(self.iteration, objects.PAGES, self.number)
        head = {
            "rows": self._rows,
            "pages": None if segment is None else segment.put(self._common.storage, base),
            "counts": self._counts(),
        }
        self._counters.influence_sum, self._counters.influence_pages = 0.0, 0
        return objects.encode(head, (), self._links.packed())

    def settle(self, exchange: Exchange) -> None:
        """End its leases as another worker's exchange says, which was first. Raises StorageError if that is of other
        documents."""
        leases = self._buffer.unanswered()
        if [row[0] for row in exchange.rows] != [self._places[lease.entry.key] for lease in leases]:
            raise self._damaged(objects.EXCHANGE)
        for lease, (_, line, failure, _) in zip(leases, exchange.rows, strict=True):
            self._buffer.withdraw(lease)
            if failure is not None:
                self._frontier.settle(lease, Outcome(failure["outcome"]), failure["reason"])
            elif line is not None:
                self._frontier.settle(lease, Outcome.ARCHIVED)
            else:
                self._frontier.give_back(lease, attempted=True)
        self.stage = Stage.EXCHANGED

    # -- the links of the batch -----------------------------------------------------------------------------------

    async def follow_links(self, exchanges: Sequence[Exchange]) -> None:
        """Follow the links of all pages of the batch to its own documents, in the order of pages and links."""
        pages: list[tuple[int, Mapping[str, Any], objects.Links | None]] = []
        for exchange in exchanges:
            links = exchange.links_to(self.number)
            heard = exchange.lines if self._hears_all else exchange.lines.keys() & links.keys()
            pages += ((place, exchange.lines[place], links.get(place)) for place in heard)
        pages.sort(key=itemgetter(0))
        for _, of_slice in groupby(pages, lambda page: page[0] // self.crawl.pages_at_once):
            for page in of_slice:
                self._follow_page(*page)
            if not self.is_counted:
                await self.queue_found(None)
        self._since += sum(exchange.size for exchange in exchanges)
        self.pages_before += sum(exchange.pages for exchange in exchanges)

    @property
    def is_counted(self) -> bool:
        """True if found links must be counted over all partitions before they are scored."""
        return getattr(self._policy, "partitioned", None) == COUNTED

    def found(self) -> list[list[int]]:
        """Return the place of the page and the number of the link of each new document."""
        self.stage = Stage.FOUND
        return [[place, number] for place, number, _ in self._found]

    async def queue_found(self, found: Sequence[Sequence[Sequence[int]]] | None) -> None:
        """Score and queue the found documents; ``found``: those of all partitions, if they are counted. Raises
        StorageError if the own is not there once."""
        new, self._found = self._found, []
        places = {candidate.key: (place, number) for place, number, candidate in new}
        if found is not None:
            own, all_of_them = set(places.values()), sorted((place, number) for one in found for place, number in one)
            self._is_own = [place in own for place in all_of_them]
            if sum(self._is_own) != len(new):
                raise self._damaged(objects.FOUND)
        refused = len(self._algorithm.refused)
        await self._algorithm.enqueue([candidate for _, _, candidate in new])
        self._is_own = None
        _, failures = self._lines.take()
        for index, line in enumerate(failures):
            place, number = places.get(line["id"]) or self._refused_at[line["id"]]
            self._failures.append([place // self.crawl.pages_at_once, index >= refused, place, number, line])
        self._refused_at = {}

    def next_iteration(self) -> bytes | None:
        """Start the next iteration; return a snapshot if it is due: when replaying the iterations since the last one
        takes more than that."""
        self._store.tables.commit()  # else what was written takes memory: LMDB has a transaction that has not ended
        self.crawl.start_batch(self.iteration + 1)
        self.stage = Stage.BEGUN
        if self._since // self._common.options.partitions <= self._snapshot_bytes:
            return None
        self._since = 0
        results = self._results()
        self._counted.subtract(results["counts"])  # they are told in the offer
        ended = sorted(item for item in (self._ended_before + self._counted).items() if item[0].startswith(_ENDED))
        self._store.commit(self.balance, {**results, "share": self._share, "ended": dict(ended)})
        data = self._store.snapshot()
        self._snapshot_bytes = len(data)
        return data

    # -- its parts ------------------------------------------------------------------------------------------------

    def _follow_page(self, place: int, line: Mapping[str, Any], links: objects.Links | None) -> None:
        page = page_of(line, () if links is None else links.links)
        if links is None:
            self._policy.crawled(page)
            return
        counts, refused = self._counters.counts, len(self._algorithm.refused)
        known = counts["links/new"]
        new = self._algorithm.extract(page)
        if counts["links/new"] == known:
            return
        self._news.append([place, counts["links/new"] - known, self._algorithm.unknown_in(new)])
        numbered = list(zip(links.links, links.numbers, strict=False))  # those without a key are last, and have none
        number_of = {(link.key, link.url): number for link, number in reversed(numbered)}
        self._found += [(place, number_of[one.key, one.url], one) for one in new]
        for failure in self._algorithm.refused[refused:]:
            self._refused_at[failure["id"]] = place, number_of[failure["id"], failure["url"]]

    async def _score(self, candidates: Sequence[Candidate]) -> list[Rating]:
        """Score documents; those of others in their places, if they are counted."""
        if self._is_own is None:
            return await self._policy.score(candidates)
        own = iter(candidates)
        ratings = await self._policy.score([next(own) if ours else NOT_OURS for ours in self._is_own])
        return [rating for rating, ours in zip(ratings, self._is_own, strict=True) if ours]

    def _damaged(self, kind: str) -> StorageError:
        name = objects.name(self.iteration, kind, self.number)
        return self._common.storage.damaged(name, "it is of other documents than this partition has")

    def _results(self) -> dict[str, Any]:
        """Return the results of the iteration before."""
        results = {"crawled": self.pages_before, "news": self._news, "failures": self._failures}
        return {**results, "counts": self._counts()}

    def _counts(self) -> dict[str, int]:
        """Return the growth of its figures since the last call."""
        new = self._counters.counts - self._counted
        self._counted = self._counters.counts.copy()
        return {key: count for key, count in sorted(new.items()) if count}
