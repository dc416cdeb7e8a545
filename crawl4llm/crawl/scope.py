"""The scope of a crawl: which outlinks and redirects of a page are followed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from crawl4llm.base.crawl_log import FailureLine, failure_line
from crawl4llm.base.domains import Domain, ascii_host, domain_of_url, is_below, owner_of
from crawl4llm.base.errors import Why
from crawl4llm.base.pages import Link
from crawl4llm.base.reasons import (
    BLOCKLIST,
    DUPLICATE,
    KNOWN_URL,
    OFF_SCOPE,
    OPT_OUT,
    QUEUED,
    TRAP,
    URL_TOO_LONG,
    VISITED,
)
from crawl4llm.base.url_traps import Traps
from crawl4llm.crawl.page_writer import REDIRECTS
from crawl4llm.crawl.reorder_buffer import Answer
from crawl4llm.crawl.url_rules import FILE_TYPE, UrlRules
from crawl4llm.frontier import Entry, Outcome
from crawl4llm.policies import Candidate, CrawledPage

if TYPE_CHECKING:
    from crawl4llm.frontier.visited import VisitedSet


class Limits(NamedTuple):
    """Scrapy's own limits, which its spider middlewares keep elsewhere; 0: none."""

    depth: int = 0
    """DEPTH_LIMIT: links from a seed, at most."""
    url_length: int = 0
    """URLLENGTH_LIMIT: characters of a URL, at most."""


NO_LIMITS = Limits()
_LATELY: Final = 1 << 15
"""Targets of links remembered as visited, by all partitions together, some 150 bytes each; most links lead to one of
these. To look one up in the visited set takes ten times as long."""
_LONGEST: Final = 200
"""Characters of a key that is remembered."""


class Scope:
    """Follows what CRAWL_SCOPE ``name``, ``limits`` and ``rules`` let it, once, and nothing of domains that have opted
    out or are blocked, that leads into a trap by its URL, or that is known by it and is no seed."""

    def __init__(
        self,
        name: str,
        visited: VisitedSet,
        opted_out: Sequence[Domain],
        limits: Limits = NO_LIMITS,
        partitions: int = 1,
        *,
        by_owners: bool = False,
        rules: UrlRules | None = None,
        traps: Sequence[str] = (),
    ) -> None:
        """``partitions``: how many there are that each have a scope. ``by_owners``: the frontier goes by owners, so
        that a redirect to another one ends a lease. ``traps``: rules of :mod:`crawl4llm.base.url_traps`."""
        self._within_domain = name == "domain"
        self._limits = limits
        self._visited = visited
        self._lately: set[str] = set()
        self._most_lately = _LATELY // partitions
        self._opted_out = self._unwanted = frozenset(domain.name for domain in opted_out)
        self._by_owners = by_owners
        self._all_rules = rules
        self._rules = rules if rules is not None and rules.has_scope else None
        self._listed = rules.blocklists if rules is not None and rules.blocklists else None
        self._known = None if rules is None else rules.known
        self._traps = Traps(traps) if traps else None
        self.sends_on: Callable[[str], bool] = lambda _: False
        """Whether the target of a redirect is another crawl's to visit."""

    def block(self, domains: Iterable[str]) -> None:
        """Follow nothing of these domains either, and again what leads to others that were blocked before."""
        self._unwanted = self._opted_out | frozenset(domains)

    def new_documents(self, page: CrawledPage, counts: Counter[str]) -> tuple[list[Candidate], list[FailureLine]]:
        """Visit the new documents that a page links to; return them, and log lines of those not wanted. All its links
        are counted. A document that one link may not lead to is not visited: another link may."""
        entry, links = page.entry, page.links
        if self._within_domain:
            domain = domain_of_url(entry.url)
            links = _kept(links, counts, "links/off_scope", lambda link: domain_of_url(link.url) == domain)
        if self._limits.depth and entry.depth >= self._limits.depth:
            links = _kept(links, counts, "links/too_deep", lambda _: False)
        if self._rules is not None:
            links = self._within_rules(links, counts)
        if self._limits.url_length:
            links = _kept(links, counts, "links/url_too_long", lambda link: not self._is_too_long(link.url))
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
        candidates, trapped = self._without_traps(candidates, counts)
        unwanted: list[FailureLine] = []
        if self._unwanted or self._listed is not None:
            candidates, unwanted = self._divided(candidates, self.blocked, counts)
        candidates, known = self._without_known(candidates, counts)
        return candidates, [*trapped, *unwanted, *known]

    def _visit(self, keys: Sequence[str]) -> list[str]:
        """Visit documents; return those that were not visited before, once each."""
        unknown = [key for key in keys if key not in self._lately]
        if not unknown:
            return unknown
        if len(self._lately) > self._most_lately:
            self._lately.clear()
        self._lately.update([key for key in unknown if len(key) <= _LONGEST])
        return self._visited.add(unknown)

    def wanted_seeds(self, seeds: list[Candidate], counts: Counter[str]) -> tuple[list[Candidate], list[FailureLine]]:
        """Return the seeds that may be crawled, and log lines of the others, which are counted as dropped."""
        if not self._unwanted and self._listed is None and self._rules is None:
            return seeds, []
        return self._divided(seeds, self._forbids, counts)

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
                lines.append(failure_line(Outcome.DROPPED.value, TRAP, candidate, Why(f"URL_TRAPS {rule}")))
        counts[f"{Outcome.DROPPED.value}/{TRAP}"] += len(lines)
        return others, lines

    def _without_known(
        self, candidates: list[Candidate], counts: Counter[str]
    ) -> tuple[list[Candidate], list[FailureLine]]:
        """Return the candidates that KNOWN_URLS does not have, and log lines of the others, which are counted."""
        if self._known is None:
            return candidates, []
        others: list[Candidate] = []
        lines: list[FailureLine] = []
        for candidate in candidates:
            why = self._known.why(candidate.key if "://" in candidate.key else candidate.url)  # keys may be ids
            if why is None:
                others.append(candidate)
            else:
                lines.append(failure_line(Outcome.DROPPED.value, KNOWN_URL, candidate, why))
        counts[f"{Outcome.DROPPED.value}/{KNOWN_URL}"] += len(lines)
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
            reason, refused = None, ""
            for key in within:
                if (reason := self.refusal(entry, refused := key)) is not None:
                    break
                followed += len(self._visited.add([key]))
            if reason is None and target is not None:
                refused = target
                reason = self._forbidden(entry, target) or (URL_TOO_LONG if self._is_too_long(target) else None)
            if reason is not None:
                answer.page, answer.reason, answer.outcome = None, reason, Outcome.DROPPED
                answer.why = self.why(refused, entry.url or entry.key)
            elif target is not None:
                answer.reason = QUEUED if self.sends_on(target) or self._visited.add([target]) else VISITED
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
        if (reason := self._forbids(key)) is not None:
            return reason
        if entry.depth and self._known is not None and self._known.why(key) is not None:
            return KNOWN_URL
        if self._traps is None:
            return None
        rule = self._traps.rule_of(key)  # a seed may be in it
        return None if rule is None or rule == self._traps.rule_of(entry.url or entry.key) else TRAP

    def may_list(self, site: str, url: str) -> bool:
        """Return whether a list of a site's URLs may be asked for, whatever the ending of its name."""
        if self._within_domain and domain_of_url(url) != domain_of_url(site):
            return False
        return self._rules is None or self._rules.off_scope(url) in {None, FILE_TYPE}

    def _forbids(self, url: str) -> str | None:
        """Return why a URL is not crawled, whatever led to it; None where it may be."""
        if self._rules is not None and self._rules.off_scope(url) is not None:
            return OFF_SCOPE
        return self.blocked(url)

    def taken_for_known(self, counts: Mapping[str, int]) -> float | None:
        """Return how many new documents were dropped as known that are not, as is to be expected by the error rate of
        the sets; None where none are known."""
        if self._known is None:
            return None
        return self._known.error_rate * (counts.get("links/new", 0) - counts.get(f"dropped/{KNOWN_URL}", 0))

    def _within_rules(self, links: Sequence[Link], counts: Counter[str]) -> Sequence[Link]:
        """Return the links that the rules let it follow; count the others by rule."""
        assert self._rules is not None
        rule_of = self._rules.off_scope
        rules = [None if link.key is None else rule_of(link.url) for link in links]
        if not any(rules):
            return links
        counts.update(f"links/{rule}" for rule in rules if rule is not None)
        return [link for link, rule in zip(links, rules, strict=True) if rule is None]

    def _is_too_long(self, url: str) -> bool:
        return 0 < self._limits.url_length < len(url)

    def blocked(self, url: str) -> str | None:
        """Return why nothing is sent to a URL's domain: OPT_OUT of one that has opted out or is blocked, BLOCKLIST of
        one that is in a list; None where something may be."""
        if is_below(url, self._unwanted):
            return OPT_OUT
        return BLOCKLIST if self._listed is not None and self._listed.find(url) is not None else None

    def why(self, url: str, source: str | None = None) -> Why | None:
        """Return the rule by which a URL is left alone, to which a ``source`` redirects, if one does."""
        if source is not None and self._within_domain and domain_of_url(url) != domain_of_url(source):
            return Why("CRAWL_SCOPE domain")
        if is_below(url, self._unwanted):
            return Why(f"{ascii_host(url)} is blocked by control.json, or was purged")
        return None if self._all_rules is None else self._all_rules.why(url)

    def _divided(
        self, candidates: list[Candidate], refusal: Callable[[str], str | None], counts: Counter[str]
    ) -> tuple[list[Candidate], list[FailureLine]]:
        """Return the candidates that are not refused, and log lines of the others, which are counted as dropped."""
        wanted: list[Candidate] = []
        dropped: list[FailureLine] = []
        for candidate in candidates:
            url = candidate.url or candidate.key
            if (reason := refusal(url)) is None:
                wanted.append(candidate)
            else:
                counts[f"{Outcome.DROPPED.value}/{reason}"] += 1
                dropped.append(failure_line(Outcome.DROPPED.value, reason, candidate, self.why(url)))
        return wanted, dropped


def _kept(
    links: Sequence[Link], counts: Counter[str], key: str, may_be_followed: Callable[[Link], bool]
) -> Sequence[Link]:
    """Return links without a key, and those that may be followed; count the others."""
    kept = [link for link in links if link.key is None or may_be_followed(link)]
    counts[key] += len(links) - len(kept)
    return kept
