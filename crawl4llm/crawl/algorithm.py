"""Algorithm 1 of Craw4LLM (section 2 of the paper). The numbers in the code are the paper's lines:

     1  Q <- {}                                       5  while |P| < N:
     2  P <- {}                                       6     P_c <- FetchPages(U_c)
     3  V <- U_seed                                   7     merge P_c into P
     4  U_c <- U_seed                                 8     U_out <- ExtractURLs(P_c)
                                                      9     for v in U_out:
    17  return P                                     10        if v not in V:
                                                     11           Enqueue(Q, v, Score_URL(v; M))
                                                     12           Add(V, v)
                                                     15     U_c <- Dequeue(Q, n)

:class:`crawl4llm.crawl.crawl.Crawl` runs the loop (5) and hands over fetched pages (6), in batches or in continuous
order; parts of a crawl (:mod:`crawl4llm.parts`) see each page and each link.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from crawl4llm.base.crawl_log import CrawlLine, FailureLine, LogWriter, RedirectLine, failure_line
from crawl4llm.base.errors import InputError
from crawl4llm.base.pages import PageRecord
from crawl4llm.base.reasons import QUEUED, is_reason
from crawl4llm.crawl.counting import Counters
from crawl4llm.crawl.page_writer import PageWriter
from crawl4llm.crawl.reorder_buffer import Answer
from crawl4llm.crawl.scope import Scope
from crawl4llm.frontier import Entry, Frontier, Lease, Outcome
from crawl4llm.parts import Part, Parts, Rated, Refusal
from crawl4llm.policies import Candidate, CrawledPage, Policy, Rating, overriding


class Neighbours(Protocol):
    """The other partitions of a crawl that is divided among several."""

    def own(self, page: CrawledPage) -> CrawledPage:
        """Return a page with only its links to documents of this partition, and send the others to theirs."""

    def takes(self, target: Entry) -> bool:
        """Send the target of a redirect to its partition; return False if it belongs to this one."""


@dataclass
class Algorithm:
    """The steps between two fetches."""

    frontier: Frontier
    """Q (line 1), ordered by the scores of ``policy``."""
    writer: PageWriter
    """P (line 2): archive and crawl log."""
    scope: Scope
    """V (line 3): the visited set, and the rules for documents that enter it."""
    policy: Policy
    """Score_URL (line 11)."""
    parts: Parts
    log: LogWriter
    counters: Counters
    counts_answers: bool = True
    """True if each answer counts as a fetch; otherwise the sender of requests counts them."""
    neighbours: Neighbours | None = None

    def __post_init__(self) -> None:
        self.iteration: int | None = None
        """The batch, as in log and archive; None in continuous order."""
        self.refused: list[FailureLine] = []
        """Lines to be logged with the next documents that are queued; redirect ``targets`` are queued with them."""
        self.targets: list[Entry] = []
        self._dropped: list[Entry] = []
        """Documents that were dropped when their turn came; the policy is told of them next."""
        self.score: Callable[[Sequence[Candidate]], Awaitable[list[Rating]]] = self.policy.score
        self._crawled, self._leads = self.parts.having("crawled"), self.parts.having("leads")
        self._found, self._place = self.parts.having("found"), self.parts.having("place")
        self._learns, self._dequeued = (overriding(self.policy, hook) for hook in ("crawled", "dequeued"))

    def visit_seeds(self, seeds: Sequence[Candidate]) -> list[Candidate]:
        """Return the seeds that may be crawled; all of them are in V now (lines 3 and 4)."""
        wanted, refused = self.scope.wanted_seeds(list(seeds), self.counters.counts)
        self.refused += refused
        self.counters.counts["pages/fetched"] += self.unknown_in(wanted) * self.policy.looks_ahead  # equation 1
        return wanted

    def dequeue(self, n: int) -> list[Lease]:
        """Take the best documents from Q (line 15)."""
        leases = self.frontier.lease(n)
        dropped, self._dropped = self._dropped, []
        for dequeued in self._dequeued:
            dequeued([*dropped, *(lease.entry for lease in leases)])
        return leases

    def drop(self, entry: Entry, refusal: Refusal) -> None:
        """Note a document that has left Q because a part no longer wants it."""
        self._dropped.append(entry)
        self.counters.counts[f"{Outcome.DROPPED.value}/{refusal.reason}"] += 1
        if refusal.counted:
            self.counters.counts[refusal.counted] += 1
        self.log.write([], [failure_line(Outcome.DROPPED.value, refusal.reason, entry, refusal.why)])

    async def merge(
        self, answers: Sequence[Answer], hold_back: Callable[[CrawledPage], None] | None = None
    ) -> list[Candidate]:
        """Merge fetched pages into P (line 7); return candidates from their links. ``hold_back`` takes the pages
        instead, and their links are not extracted."""
        asked = [not answer.known for answer in answers]
        rated = self._known(answers)
        rated |= await self.writer.rate(answers, self.policy)
        new: list[Candidate] = []
        lines: list[CrawlLine] = []
        failures: list[FailureLine] = []
        try:
            for answer, is_asked in zip(answers, asked, strict=True):
                if is_asked and self.counts_answers and not self.policy.looks_ahead:
                    self.counters.counts["pages/fetched"] += 1
                leased = answer.lease.entry
                if answer.page is None:
                    failures += self._end(answer)
                elif answer.outcome is Outcome.REDIRECTED:
                    failures.append(self._end_elsewhere(answer, answer.page))
                else:
                    of = rated[leased.key]
                    if of.dropped is None:
                        self._archive(answer.lease, answer.page, of)
                    else:
                        failures.append(self._drop(answer, of.dropped))
                    page = self._with_links(leased, answer.page, of)
                    if hold_back is None:
                        new += self.extract(page)
                    else:
                        hold_back(page)
                    if of.dropped is None:
                        lines.append(self.writer.line(page, leased, answer.status, self.iteration, of))
        finally:
            self.log.write(lines, failures)
        return new

    def _known(self, answers: Sequence[Answer]) -> dict[str, Rated]:
        """Give the answers of known documents, and of redirects to them, the pages that a part has. Return what the
        parts see of these, by keys of leases."""
        rated: dict[str, Rated] = {}
        if (part := self.parts.answering) is None:
            return rated
        for answer in answers:
            key = answer.lease.entry.key
            if not answer.known:
                if answer.page is None or answer.outcome is not None or not answer.page.hops:
                    continue
                if part.answers(key := answer.page.key) is None:
                    continue
            page, influence, refusal = part.answer(key)
            answer.page, answer.known = page, True
            of = rated[answer.lease.entry.key] = Rated(influence, dropped=refusal)
            of.key, of.url, of.follows = page.key, page.url, page.follows
        return rated

    def extract(self, page: CrawledPage) -> list[Candidate]:
        """Return the links of a page that were not in V, and add them to V (lines 8 to 10, and 12)."""
        if self.neighbours is not None:
            page = self.neighbours.own(page)
        for learn in self._learns:
            learn(page)
        new, refused = self.scope.new_documents(page, self.counters.counts)
        self.refused += refused
        for found in self._found:
            found(page, new)
        self.counters.counts["pages/fetched"] += self.unknown_in(new) * self.policy.looks_ahead
        return new

    def unknown_in(self, candidates: Sequence[Candidate]) -> int:
        """Return the number of documents that cost a fetch if a policy must see them to score them."""
        if (part := self.parts.answering) is None or not self.policy.looks_ahead:
            return len(candidates)
        return sum(part.answers(candidate.key) is None for candidate in candidates)

    async def _scored(self, candidates: Sequence[Candidate]) -> list[Rating]:
        """Return the ratings of the policy. A known document that it cannot look up has the known influence score."""
        ratings = await self.score(candidates)
        if (part := self.parts.answering) is None or not self.policy.looks_ahead:
            return ratings
        return [
            rated if rated.score is not None or part.answers(one.key) is None else _known_rating(part, one.key)
            for one, rated in zip(candidates, ratings, strict=True)
        ]

    async def enqueue(self, candidates: Sequence[Candidate]) -> None:
        """Put candidates with a score into Q (line 11), and redirect targets with the scores of the documents that led
        to them."""
        entries, self.targets = self.targets, []
        failures, self.refused = self.refused, []
        for candidate, rated in zip(candidates, await self._scored(candidates), strict=True):
            self.counters.heard(rated.reason)
            self.counters.note(rated.reason)
            if rated.score is None:
                reason = str(rated.reason)
                outcome = Outcome.DROPPED if is_reason(Outcome.DROPPED.value, reason) else Outcome.FAILED
                self.counters.counts[f"{outcome.value}/{reason}"] += 1
                failures.append(failure_line(outcome.value, reason, candidate))
            else:
                score = self._checked(candidate.key, rated.score)
                entries.append(Entry(candidate.key, candidate.url, score, candidate.depth, candidate.parent))
        for place in self._place:
            place(entries)
        failures += [failure_line(Outcome.DROPPED.value, why, entry) for entry, why in self.frontier.push(entries)]
        self.counters.counts["frontier/reranked"] += self.frontier.rerank(
            (key, self._checked(key, score)) for key, score in (self.policy.reranked() if self.policy.reranks else ())
        )
        self.log.write([], failures)

    def _archive(self, lease: Lease, page: PageRecord, rated: Rated) -> None:
        """Put one page into P."""
        self.writer.archive(page, lease.entry, rated, policy=self.policy.name, iteration=self.iteration)
        self.frontier.settle(lease, Outcome.ARCHIVED)
        self.counters.page(rated.influence, is_counted=rated.is_counted)
        for crawled in self._crawled:
            crawled(lease.entry, rated)

    def _drop(self, answer: Answer, refusal: Refusal) -> FailureLine:
        """End the lease of a document that a part drops after its page was read."""
        answer.outcome, answer.reason, answer.why = Outcome.DROPPED, refusal.reason, refusal.why
        self.frontier.settle(answer.lease, Outcome.DROPPED, refusal.reason)
        return failure_line(Outcome.DROPPED.value, refusal.reason, answer.lease.entry, refusal.why)

    def _with_links(self, leased: Entry, page: PageRecord, rated: Rated) -> CrawledPage:
        """Return a page with those of its links that have a target."""
        links, left = page.outlinks or (), rated.left if page.follows else "links/nofollow"
        if left is not None:
            self.counters.counts[left] += len(links)
            links = ()
        for leads in self._leads:
            links = leads(rated, links)
        entry = replace(leased, key=page.key, url=page.url)
        influence = rated.influence if rated.is_counted and not rated.is_vain else rated.worth  # as of nearly all pages
        return CrawledPage(entry, influence, links, rated.novel, rated.classes, rated.dropped is None)

    def _end(self, answer: Answer) -> list[FailureLine]:
        """End the lease of a document without a page: it fails, is dropped, or is requeued."""
        self.counters.note(answer.reason)
        if answer.outcome is None:
            self.frontier.give_back(answer.lease, attempted=True)
            self.counters.counts["frontier/retried"] += 1
            return []
        self.frontier.settle(answer.lease, answer.outcome, answer.reason)
        return [failure_line(answer.outcome.value, str(answer.reason), answer.lease.entry, answer.why)]

    def _end_elsewhere(self, answer: Answer, page: PageRecord) -> RedirectLine:
        """End the lease of a document that redirected to another owner; the target takes its place in Q."""
        source, target, reason = answer.lease.entry, page.hops[-1], str(answer.reason)
        self.writer.archive_redirects(page)
        self.frontier.settle(answer.lease, Outcome.REDIRECTED, reason)
        if reason == QUEUED:
            hops = source.hops + 1
            entry = Entry(target, target, source.score, source.depth, source.key, hops=hops, cell=source.cell)
            if self.neighbours is None or not self.neighbours.takes(entry):
                self.targets.append(entry)
        return {**failure_line(Outcome.REDIRECTED.value, reason, source), "target": target}

    def _checked(self, key: str, score: float) -> float:
        """Return a score of the policy. Raises InputError if it is not a number."""
        if not math.isfinite(score):
            raise InputError(f"URL_POLICY {self.policy.name} gave {key} the score {score}")
        return score


def _known_rating(part: Part, key: str) -> Rating:
    return Rating(part.known_influence(key) or 0.0)
