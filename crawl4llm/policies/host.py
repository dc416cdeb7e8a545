"""The mean influence score of a host's crawled pages, shrunken, with a bonus for hosts of which little is known."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import TYPE_CHECKING, Any

from crawl4llm.base.domains import domain_of
from crawl4llm.base.urls import host_of
from crawl4llm.policies import Candidate, CrawledPage
from crawl4llm.policies._seen_links import PageByPagePolicy

if TYPE_CHECKING:
    from crawl4llm.frontier import Entry

_PRIOR_MEAN = 0.5
_PRIOR_PAGES = 5.0
"""How many pages of its own weigh as much as what is known of hosts of the same domain, and of all domains."""
_LEAST_MOVE = 0.01
"""A host's documents are ranked anew when its score has moved so far: the means of large hosts move ever less, so that
each document is ranked anew a number of times that grows with the logarithm of the host's pages."""


@dataclass(slots=True)
class _Mean:
    """Influence scores of some pages."""

    total: float = 0.0
    pages: int = 0

    def add(self, influence: float) -> None:
        self.total += influence
        self.pages += 1

    def shrunken(self, towards: float) -> float:
        """Their mean, as if there were a few pages more that have the mean of a larger population."""
        return (self.total + _PRIOR_PAGES * towards) / (self.pages + _PRIOR_PAGES)


@dataclass(slots=True)
class _Host:
    """A host's pages, and its documents in the frontier."""

    mean: _Mean = field(default_factory=_Mean)
    score: float = math.inf
    """What its documents have; infinite before the first is scored."""
    queued: dict[str, None] = field(default_factory=dict)


class Policy(PageByPagePolicy):
    """A host's mean shrinks towards that of its registrable domain, and a domain's towards that of all pages.

    The bonus is HOST_EXPLORATION divided by the root of the host's pages plus one: that of UCB1 (Auer et al. 2002)
    without the logarithm of all pages, which would change the score of every host at every page. All documents of a
    host have one score. Pages without an influence score say nothing.
    """

    name = "host"
    reranks = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._hosts: dict[str, _Host] = {}
        self._domains: dict[str, _Mean] = {}
        self._all = _Mean()
        self._moved: dict[str, None] = {}

    def identity(self) -> Mapping[str, object]:
        return {"host_exploration": self._options.host_exploration}

    def _take(self, page: CrawledPage, found: Sequence[Candidate]) -> Mapping[str, float]:
        self._learn(page)
        return {candidate.key: self._queue(candidate) for candidate in found}

    def reranked(self) -> Iterable[tuple[str, float]]:
        moved, self._moved = self._moved, {}
        return [(key, self._hosts[name].score) for name in moved for key in self._hosts[name].queued]

    def dequeued(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if host := self._hosts.get(host_of(entry.url)):
                host.queued.pop(entry.key, None)

    def save(self) -> bytes:
        hosts = {
            name: [*astuple(host.mean), None if math.isinf(host.score) else host.score, list(host.queued)]
            for name, host in self._hosts.items()
        }
        domains = {name: astuple(mean) for name, mean in self._domains.items()}
        return json.dumps([hosts, domains, astuple(self._all)]).encode()

    def load(self, state: bytes) -> None:
        hosts, domains, everything = json.loads(state)
        self._hosts = {
            name: _Host(_Mean(total, pages), math.inf if score is None else score, dict.fromkeys(queued))
            for name, (total, pages, score, queued) in hosts.items()
        }
        self._domains = {name: _Mean(*mean) for name, mean in domains.items()}
        self._all = _Mean(*everything)

    def _learn(self, page: CrawledPage) -> None:
        if page.influence is None:
            return
        name = host_of(page.entry.url)
        host = self._hosts.setdefault(name, _Host())
        for mean in (host.mean, self._domains.setdefault(domain_of(name), _Mean()), self._all):
            mean.add(page.influence)
        score = self._score_of(name)
        if abs(score - host.score) > _LEAST_MOVE:
            host.score = score
            self._moved[name] = None

    def _queue(self, candidate: Candidate) -> float:
        name = host_of(candidate.url)
        host = self._hosts.setdefault(name, _Host())
        host.queued[candidate.key] = None
        if math.isinf(host.score):
            host.score = self._score_of(name)
        return host.score

    def _score_of(self, name: str) -> float:
        host = self._hosts[name].mean
        domain = self._domains.get(domain_of(name), _Mean())
        bonus = self._options.host_exploration / math.sqrt(host.pages + 1)
        return host.shrunken(domain.shrunken(self._all.shrunken(_PRIOR_MEAN))) + bonus
