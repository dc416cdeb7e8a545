"""The mean influence score of a host's crawled pages, shrunken, with a bonus for hosts of which little is known."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from crawl4llm.base.domains import domain_of
from crawl4llm.base.shapes import NUMBER, Maybe, is_of, whole
from crawl4llm.base.urls import host_of
from crawl4llm.policies._means import MEAN, shrunken
from crawl4llm.policies._policy import EACH, Candidate, CrawledPage, Pieces, not_kept, saved_state
from crawl4llm.policies._seen_links import PageByPagePolicy

if TYPE_CHECKING:
    from crawl4llm.frontier import Entry

_STATE: Final = ({...: (*MEAN, Maybe(NUMBER), [{str}])}, {...: MEAN}, MEAN)
_PRIOR_MEAN: Final = 0.5
_PRIOR_PAGES: Final = 5.0
"""Number of a host's own pages that weigh as much as the mean of its domain; likewise for a domain and all pages."""
_LEAST_MOVE: Final = 0.01
"""A host's documents are ranked again when its score has moved so far. The means of large hosts move less and less, so
each document is ranked a number of times that grows with the logarithm of the host's pages."""
EXPLORATION: Final = 0.2
"""The bonus of a host of which no page is crawled; it falls with the root of their number."""
_IN_BUCKET: Final = 16
"""Keys that a bucket holds on average, at most."""
_MOST_BUCKETS: Final = 1 << 20
"""Of a host; its buckets hold more keys then."""


class _Mean(NamedTuple):
    """Influence scores of some pages."""

    total: float = 0.0
    pages: int = 0

    def add(self, influence: float) -> _Mean:
        return _Mean(self.total + influence, self.pages + 1)

    def shrunken(self, towards: float) -> float:
        return shrunken(*self, towards, _PRIOR_PAGES)


class _Host(NamedTuple):
    """A host: its pages crawled, and its documents in the frontier."""

    total: float = 0.0
    pages: int = 0
    score: float | None = None
    """The score of its documents; None before the first is scored."""
    queued: int = 0
    buckets: int = 1
    """Into how many buckets their keys are divided, by a hash: each is found without an index, and moves alone."""

    def bucket(self, key: str) -> int:
        """Return the number of the bucket of a document."""
        digest = blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self.buckets


class Policy(PageByPagePolicy):
    """A host's mean shrinks towards that of its registrable domain, and a domain's towards that of all pages.

    The bonus is EXPLORATION divided by the root of the host's pages plus one. This is the bonus of UCB1 (Auer et al.
    2002) without the logarithm of all pages, which would change every host's score at every page. All documents of a
    host have one score. Pages without an influence score do not count.
    """

    name = "host"
    partitioned = EACH
    reranks = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._hosts: MutableMapping[str, Sequence[Any]] = {}
        """By name, the fields of a _Host."""
        self._queued: MutableMapping[str, list[str]] = {}
        """Keys of documents in the frontier, by host and bucket, so that a host's lie together: ``example.org 3``."""
        self._domains: MutableMapping[str, Sequence[Any]] = {}
        self._all = _Mean()
        self._moved: dict[str, None] = {}

    def identity(self) -> Mapping[str, object]:
        return {"host_exploration": EXPLORATION}

    def keep_in(self, pieces: Pieces) -> None:
        self._hosts = pieces.mapping("hosts", is_of((*MEAN, Maybe(NUMBER), whole(), whole(1, _MOST_BUCKETS))))
        self._queued = pieces.mapping("queued", is_of([{str}]))
        self._domains = pieces.mapping("domains", is_of(MEAN))

    def _take(self, page: CrawledPage, found: Sequence[Candidate]) -> Mapping[str, float]:
        self._learn(page)
        return {candidate.key: self._queue(candidate) for candidate in found}

    def reranked(self) -> Iterable[tuple[str, float]]:
        moved, self._moved = self._moved, {}
        hosts = [(name, _Host(*self._hosts[name])) for name in moved]
        return [(key, float(host.score or 0)) for name, host in hosts for key in self._keys_of(name, host)]

    def dequeued(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            name = host_of(entry.url)
            host = _Host(*self._hosts.get(name, ()))
            bucket = f"{name} {host.bucket(entry.key)}"
            keys = self._queued.get(bucket, [])
            if entry.key not in keys:
                continue
            if left := [key for key in keys if key != entry.key]:
                self._queued[bucket] = left
            else:
                del self._queued[bucket]
            queued = host.queued - 1
            self._hosts[name] = host._replace(queued=queued, buckets=host.buckets if queued else 1)

    def save(self) -> bytes:
        kept = not_kept(self._hosts).items()
        hosts = {name: [*stored[:3], list(self._keys_of(name, _Host(*stored)))] for name, stored in kept}
        return json.dumps([hosts, not_kept(self._domains), self._all]).encode()

    def load(self, state: bytes) -> None:
        hosts, domains, everything = saved_state(state, _STATE)
        for name, (total, pages, score, queued) in hosts.items():
            self._hosts[name] = _Host(total, pages, score)
            for key in queued:
                self._add(name, key)
        self._domains.update(domains)
        self._all = _Mean(*everything)

    def _learn(self, page: CrawledPage) -> None:
        if page.influence is None:
            return
        name = host_of(page.entry.url)
        domain = domain_of(name)
        host = _Host(*self._hosts.get(name, ()))
        host = host._replace(total=host.total + page.influence, pages=host.pages + 1)
        self._domains[domain] = _Mean(*self._domains.get(domain, ())).add(page.influence)
        self._all = self._all.add(page.influence)
        score = self._score_of(name, host)
        if host.score is None or abs(score - host.score) > _LEAST_MOVE:
            host = host._replace(score=score)
            self._moved[name] = None
        self._hosts[name] = host

    def _queue(self, candidate: Candidate) -> float:
        name = host_of(candidate.url)
        host = self._add(name, candidate.key)
        if host.score is None:
            host = self._hosts[name] = host._replace(score=self._score_of(name, host))
        return float(host.score or 0)

    def _score_of(self, name: str, host: _Host) -> float:
        domain = _Mean(*self._domains.get(domain_of(name), ()))
        bonus = EXPLORATION / math.sqrt(host.pages + 1)
        return _Mean(host.total, host.pages).shrunken(domain.shrunken(self._all.shrunken(_PRIOR_MEAN))) + bonus

    # -- documents in the frontier --------------------------------------------------------------------------------

    def _keys_of(self, name: str, host: _Host) -> Iterator[str]:
        for bucket in range(host.buckets):
            yield from self._queued.get(f"{name} {bucket}", ())

    def _add(self, name: str, key: str) -> _Host:
        """Note that a document is queued; its host's buckets double if they are full."""
        host = _Host(*self._hosts.get(name, ()))
        added = [key]
        if host.queued >= _IN_BUCKET * host.buckets and host.buckets < _MOST_BUCKETS:
            added += self._keys_of(name, host)
            for bucket in range(host.buckets):
                self._queued.pop(f"{name} {bucket}", None)
            host = host._replace(buckets=2 * host.buckets)
        filled: dict[str, list[str]] = {}
        for one in added:
            filled.setdefault(f"{name} {host.bucket(one)}", []).append(one)
        for bucket_name, keys in filled.items():
            self._queued[bucket_name] = [*self._queued.get(bucket_name, ()), *keys]
        host = self._hosts[name] = host._replace(queued=host.queued + 1)
        return host
