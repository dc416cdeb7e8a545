"""The scope of a crawl: which outlinks and redirects of a page are followed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from crawl4llm.base.crawl_log import FailureLine, failure_line
from crawl4llm.base.domains import Domain, domain_of_url, is_below, owner_of
from crawl4llm.base.pages import Link
from crawl4llm.base.reasons import DUPLICATE, OFF_SCOPE, OPT_OUT, QUEUED, TRAP, URL_TOO_LONG, VISITED
from crawl4llm.base.url_traps import Traps
from crawl4llm.crawl.page_writer import REDIRECTS
from crawl4llm.crawl.reorder_buffer import Answer
from crawl4llm.frontier import Entry, Outcome
from crawl4llm.frontier.visited import VisitedSet
from crawl4llm.policies import Candidate, CrawledPage


class Limits(NamedTuple):
    """Scrapy's own limits, which its spider middlewares keep elsewhere; 0: none."""

    depth: int = 0
    """DEPTH_LIMIT: links from a seed, at most."""
    url_length: int = 0
    """URLLENGTH_LIMIT: characters of a URL, at most."""


NO_LIMITS = Limits()


class Scope:
    """Follows what CRAWL_SCOPE ``name`` and ``limits`` let it, once, and nothing of domains that have opted out or are
    blocked, or that leads into a trap by its URL."""

    def __init__(
        self,
        name: str,
        visited: VisitedSet,
        opted_out: Sequence[Domain],
        limits: Limits = NO_LIMITS,
        *,
        by_owners: bool = False,
        traps: Sequence[str] = (),
    ) -> None:
        """``by_owners``: the frontier goes by owners, so that a redirect to another one ends a lease. ``traps``: rules
        of :mod:`crawl4llm.base.url_traps`."""
        self._within_domain = name == "domain"
        self._limits = limits
        self._visited = visited
        self._opted_out = self._unwanted = frozenset(domain.name for domain in opted_out)
        self._by_owners = by_owners
        self._traps = Traps(traps) if traps else None

    def block(self, domains: Iterable[str]) -> None:
        """Follow nothing of these domains either, and again what leads to others that were blocked before."""
        self._unwanted = self._opted_out | frozenset(domains)

    def new_documents(self, page: CrawledPage, counts: Counter[str]) -> tuple[list[Candidate], list[FailureLine]]:
        """Visit the new documents that a page links to; return them, and log lines of those not wanted. All its links
        are counted. A document that one link may not lead to is not visited: another link may."""
        entry, _, links = page
        if self._within_domain:
            domain = domain_of_url(entry.url)
            links = _kept(links, counts, "links/off_scope", lambda link: domain_of_url(link.url) == domain)
        if self._limits.depth and entry.depth >= self._limits.depth:
            links = _kept(links, counts, "links/too_deep", lambda _: False)
        if self._limits.url_length:
            links = _kept(links, counts, "links/url_too_long", lambda link: not self._is_too_long(link.url))
        targets = {link.key: link for link in reversed(links) if link.key is not None}
        new = self._visited.add(link.key for link in links if link.key is not None)
        counts["links/seen"] += len(page.links)
        counts["links/without_key"] += sum(link.key is None for link in links)
        counts["links/new"] += len(new)
        depth = entry.depth + 1
        candidates = [Candidate(key, targets[key].url, depth, entry.key, targets[key].anchor) for key in new]
        candidates, trapped = self._without_traps(candidates, counts)
        if not self._unwanted:
            return candidates, trapped
        wanted: list[Candidate] = []
        unwanted: list[Candidate] = []
        for candidate in candidates:
            (unwanted if self.has_opted_out(candidate.url) else wanted).append(candidate)
        counts[f"{Outcome.DROPPED.value}/{OPT_OUT}"] += len(unwanted)
        return wanted, [*trapped, *(failure_line(Outcome.DROPPED.value, OPT_OUT, one) for one in unwanted)]

    def _without_traps(
        self, candidates: list[Candidate], counts: Counter[str]
    ) -> tuple[list[Candidate], list[FailureLine]]:
        """Return the candidates that no rule of URL_TRAPS holds of, and log lines of the others, which are counted."""
        if self._traps is None:
            return candidates, []
        others: list[Candidate] = []
        lines: list[FailureLine] = []
        for candidate in candidates:
            rule = self._traps.rule_of(candidate.url)
            if rule is None:
                others.append(candidate)
            else:
                counts[f"links/trap/{rule}"] += 1
                lines.append(failure_line(Outcome.DROPPED.value, TRAP, candidate))
        counts[f"{Outcome.DROPPED.value}/{TRAP}"] += len(lines)
        return others, lines

    def follow_redirects(self, answers: Sequence[Answer], counts: Counter[str]) -> None:
        """Visit targets of redirects, which take the place of the documents; drop those that may not be followed.

        Where they lead to another owner, the last target is to be queued unless it was visited before: the reason says
        which.
        """
        followed = 0
        for answer in answers:
            if answer.page is None:
                continue
            entry, within, target = answer.lease.entry, answer.page.hops, None
            if answer.outcome is Outcome.REDIRECTED:
                *within, target = within
            reason = None
            for key in within:
                if (reason := self.refusal(entry, key)) is not None:
                    break
                followed += len(self._visited.add([key]))
            if reason is None and target is not None:
                reason = self._forbidden(entry, target) or (URL_TOO_LONG if self._is_too_long(target) else None)
            if reason is not None:
                answer.page, answer.reason, answer.outcome = None, reason, Outcome.DROPPED
            elif target is not None:
                answer.reason = QUEUED if self._visited.add([target]) else VISITED
        if REDIRECTS in counts:
            counts[REDIRECTS] += followed

    def ends_lease(self, entry: Entry, key: str) -> bool:
        """Return whether a redirect of a leased document ends the lease: its target is another owner's."""
        return self._by_owners and owner_of(key) != owner_of(entry.url or entry.key)

    def refusal(self, entry: Entry, key: str) -> str | None:
        """Return why a redirect of a leased document to another one is not followed; None where it is."""
        if key == entry.key:
            return None
        return self._forbidden(entry, key) or (DUPLICATE if key in self._visited else None)

    def _forbidden(self, entry: Entry, key: str) -> str | None:
        """Return why no redirect of a document may lead to another one, visited before or not."""
        if self._within_domain and domain_of_url(key) != domain_of_url(entry.url or entry.key):
            return OFF_SCOPE
        if self.has_opted_out(key):
            return OPT_OUT
        if self._traps is not None and (rule := self._traps.rule_of(key)) is not None:
            return TRAP if rule != self._traps.rule_of(entry.url or entry.key) else None  # a seed may be in it
        return None

    def _is_too_long(self, url: str) -> bool:
        return 0 < self._limits.url_length < len(url)

    def has_opted_out(self, url: str) -> bool:
        """Return whether a URL is of a domain that has opted out or is blocked."""
        return is_below(url, self._unwanted)


def _kept(
    links: Sequence[Link], counts: Counter[str], key: str, may_be_followed: Callable[[Link], bool]
) -> Sequence[Link]:
    """Return links without a key, and those that may be followed; count the others."""
    kept = [link for link in links if link.key is None or may_be_followed(link)]
    counts[key] += len(links) - len(kept)
    return kept
