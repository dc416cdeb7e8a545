"""The scope of a crawl: which outlinks and redirects of a page are followed, once each."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from crawl4llm.base.crawl_log import FailureLine, failure_line
from crawl4llm.base.domains import Domain, ascii_host, is_below, owner_of
from crawl4llm.base.errors import Why
from crawl4llm.base.reasons import DUPLICATE, OPT_OUT, QUEUED, URL_TOO_LONG, VISITED
from crawl4llm.crawl.counting import REDIRECTS
from crawl4llm.crawl.reorder_buffer import Answer
from crawl4llm.frontier import Entry, Outcome, OwnerFrontier
from crawl4llm.parts import Parts, Refusal
from crawl4llm.policies import Candidate, CrawledPage

if TYPE_CHECKING:
    from crawl4llm.base.crawl_log import LogWriter
    from crawl4llm.frontier import VisitedSet


class Limits(NamedTuple):
    """Scrapy's own limits, which its spider middlewares would keep; 0: no limit."""

    depth: int = 0
    """DEPTH_LIMIT: most links from a seed."""
    url_length: int = 0
    """URLLENGTH_LIMIT: most characters of a URL."""


NO_LIMITS = Limits()
_LATELY: Final = 1 << 14
"""Link targets remembered as visited, by all partitions together, some 150 bytes each; most links lead to one of these.
A look-up in the visited set takes ten times as long."""
_LONGEST: Final = 200
"""Most characters of a key that is remembered."""


class Scope:
    """Follows each link once if ``limits`` and parts allow it, and none to domains that have opted out or are
    blocked."""

    def __init__(
        self,
        visited: VisitedSet,
        opted_out: Sequence[Domain] = (),
        limits: Limits = NO_LIMITS,
        parts: Parts | None = None,
        *,
        partitions: int = 1,
        by_owners: bool = False,
    ) -> None:
        """``partitions``: their number; each has a scope. ``by_owners``: the frontier is one of owners, so that a
        redirect to another owner ends a lease."""
        self._limits = limits
        self.visited = visited
        self._lately: set[str] = set()
        self._most_lately = _LATELY // partitions
        self._opted_out = self._unwanted = frozenset(domain.name for domain in opted_out)
        self._by_owners = by_owners
        parts = Parts() if parts is None else parts
        self._follows, self._admits = parts.having("follows"), parts.having("admits")
        self._redirects, self._seeds = parts.having("redirects"), parts.having("seeds")
        self._blocks, self._lists = parts.having("blocks"), parts.having("may_list")
        self._answering = parts.answering
        self.sends_on: Callable[[str], bool] = lambda _: False
        """Tells whether another crawl visits the target of a redirect."""

    def block(self, domains: Iterable[str]) -> None:
        """Follow no links to these domains, and again those to domains that were blocked before."""
        self._unwanted = self._opted_out | frozenset(domains)

    def new_documents(self, page: CrawledPage, counts: Counter[str]) -> tuple[list[Candidate], list[FailureLine]]:
        """Visit the new documents that a page links to; return them, and log lines of dropped ones. All its links are
        counted. A document that this link may not lead to is not visited, because another link may."""
        entry, links = page.entry, page.links
        if self._limits.depth and entry.depth >= self._limits.depth:
            links = [link for link in links if link.key is None]
            counts["links/too_deep"] += len(page.links) - len(links)
        for follows in self._follows:
            links = follows(entry, links)
        if longest := self._limits.url_length:
            short = [link for link in links if link.key is None or len(link.url) <= longest]
            counts["links/url_too_long"] += len(links) - len(short)
            links = short
        keys = [link.key for link in links if link.key is not None]
        new = self._visit(keys)
        counts["links/seen"] += len(page.links)
        counts["links/without_key"] += len(links) - len(keys)
        counts["links/new"] += len(new)
        if not new:
            return [], []
        unseen = set(new)
        targets = {link.key: link for link in reversed(links) if link.key in unseen}
        depth = entry.depth + 1
        candidates = [Candidate(key, targets[key].url, depth, entry.key, targets[key].anchor) for key in new]
        return self._divided(candidates, self._refusals(self._admits), counts)

    def _visit(self, keys: Sequence[str]) -> list[str]:
        """Visit documents; return those that were not visited before, once each."""
        unknown = [key for key in keys if key not in self._lately]
        if not unknown:
            return unknown
        if len(self._lately) > self._most_lately:
            self._lately.clear()
        self._lately.update([key for key in unknown if len(key) <= _LONGEST])
        return self.visited.add(unknown)

    def wanted_seeds(self, seeds: list[Candidate], counts: Counter[str]) -> tuple[list[Candidate], list[FailureLine]]:
        """Return the seeds that may be crawled, and log lines of the others, which are counted as dropped."""
        return self._divided(seeds, self._refusals([_by_url(refuses) for refuses in self._seeds]), counts)

    def _refusals(self, others: Sequence[_Check]) -> list[_Check]:
        """Return the checks that can drop a candidate: that its URL is not blocked, and ``others``."""
        return [*([_by_url(self.blocked)] if self._unwanted or self._blocks else []), *others]

    def follow_redirects(self, answers: Sequence[Answer], counts: Counter[str]) -> None:
        """Visit targets of redirects, which take the place of the documents; drop those that may not be followed.

        If redirects lead to another owner, the last target is to be queued unless it was visited before; the reason
        tells which.
        """
        followed = 0
        for answer in answers:
            if answer.page is None:
                continue
            entry, within, target, refusal = answer.lease.entry, answer.page.hops, None, None
            if answer.outcome is Outcome.REDIRECTED:
                *within, target = within
            for key in within:
                if (refusal := self.refusal(entry, key)) is not None:
                    break
                followed += len(self.visited.add([key]))
            if refusal is None and target is not None:
                refusal = self._forbidden(entry, target)
                if refusal is None and 0 < self._limits.url_length < len(target):
                    refusal = Refusal(URL_TOO_LONG)
            if refusal is not None:
                answer.page, answer.outcome = None, Outcome.DROPPED
                answer.reason, answer.why = refusal.reason, refusal.why
            elif target is not None:
                answer.reason = QUEUED if self.sends_on(target) or self.visited.add([target]) else VISITED
        counts[REDIRECTS] += followed

    def ends_lease(self, entry: Entry, key: str) -> bool:
        """Return whether a redirect of a leased document ends the lease, because its target belongs to another owner,
        or needs no request."""
        if self._answering is not None and key != entry.key and self._answering.answers(key) is not None:
            return True
        return self._by_owners and owner_of(key) != owner_of(entry.url or entry.key)

    def refusal(self, entry: Entry, key: str) -> Refusal | None:
        """Return why a redirect of a leased document to another one is not followed; None if it is."""
        if key == entry.key:
            return None
        if (refusal := self._forbidden(entry, key)) is not None:
            return refusal
        return Refusal(DUPLICATE) if key in self.visited else None

    def _forbidden(self, entry: Entry, key: str) -> Refusal | None:
        """Return why redirects of a document to another one are forbidden, visited before or not; None if they are
        allowed."""
        if (refusal := self.blocked(key)) is not None:
            return refusal
        found = (redirects(entry, key) for redirects in self._redirects)
        return next((refusal for refusal in found if refusal is not None), None)

    def may_list(self, site: str, url: str) -> bool:
        """Return whether a site's list of URLs may be requested."""
        return all(lists(site, url) for lists in self._lists)

    def blocked(self, url: str) -> Refusal | None:
        """Return why no request is sent to a URL's domain, whatever led to it: it has opted out, or its operator or a
        part blocks it. None if requests are allowed."""
        if is_below(url, self._unwanted):
            return Refusal(OPT_OUT, Why(f"{ascii_host(url)} is blocked by control.json, or was purged"))
        found = (blocks(url) for blocks in self._blocks)
        return next((refusal for refusal in found if refusal is not None), None)

    def _divided(
        self, candidates: list[Candidate], checks: Sequence[_Check], counts: Counter[str]
    ) -> tuple[list[Candidate], list[FailureLine]]:
        """Return the candidates that all checks accept, and log lines of the others, which are counted as dropped."""
        dropped: list[FailureLine] = []
        for check in checks:
            wanted: list[Candidate] = []
            for candidate in candidates:
                if (refusal := check(candidate)) is None:
                    wanted.append(candidate)
                    continue
                counts[f"{Outcome.DROPPED.value}/{refusal.reason}"] += 1
                if refusal.counted:
                    counts[refusal.counted] += 1
                dropped.append(failure_line(Outcome.DROPPED.value, refusal.reason, candidate, refusal.why))
            candidates = wanted
        return candidates, dropped


_Check = Callable[[Candidate], Refusal | None]


def _by_url(refuses: Callable[[str], Refusal | None]) -> _Check:
    """Return the check of a candidate's URL."""
    return lambda candidate: refuses(candidate.url or candidate.key)


_OWNERS_AT_ONCE = 1000
"""Owners for which one call checks whether they are blocked."""


class Blocking:
    """Drops queued documents of owners that are blocked while the crawl runs, some at a time."""

    def __init__(self, scope: Scope, frontier: OwnerFrontier, log: LogWriter) -> None:
        self._scope, self._frontier, self._log = scope, frontier, log
        self._owners: deque[str] = deque()
        """Owners that may be blocked and have queued documents left."""

    def look_at(self, domains: Sequence[str]) -> None:
        """Check first those of ``domains`` that are owners."""
        self._owners.extendleft(name for name in domains if owner_of(f"http://{name}/") == name)

    def look_at_all(self) -> None:
        """Check all owners, gradually."""
        self._owners.extend(self._frontier.owners.names)

    def drop_some(self, most: int) -> bool:
        """Drop ``most`` documents of one blocked owner; return whether there may be more. Raises InputError if the log
        cannot be written."""
        for _ in range(min(_OWNERS_AT_ONCE, len(self._owners))):
            if self._drop_some(self._owners[0], most):
                return True
            self._owners.popleft()
        return bool(self._owners)

    def _drop_some(self, owner: str, most: int) -> bool:
        if (refusal := self._scope.blocked(f"http://{owner}/")) is None:
            return False
        ended = self._frontier.drop_owner(owner, Outcome.DROPPED, refusal.reason, most)
        lines = [failure_line(Outcome.DROPPED.value, refusal.reason, entry, refusal.why) for entry in ended]
        self._log.write([], lines)
        return bool(ended)
