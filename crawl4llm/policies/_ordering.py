"""From a policy to the order of the frontier: settings that change the meaning of a policy's scores, as wrappers."""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import unquote

from crawl4llm.base.shapes import whole
from crawl4llm.policies import _policy as base
from crawl4llm.policies._seen_graph import DUMPED, SeenGraph
from crawl4llm.policies._seen_links import targets_of
from crawl4llm.scoring import Mentions, PageRater, Raters, mentions_of, topic_pattern


def _bits(number: float) -> int:
    """Return the bits of a positive double; larger numbers have larger ones."""
    return int(struct.unpack("<q", struct.pack("<d", number))[0])


def _number(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<q", bits))[0])


_BOUND: Final = 2.0**128
_LEAST: Final = _bits(1 / _BOUND)
_RANGE: Final = _bits(_BOUND) - _LEAST
_ZERO: Final = _bits(_BOUND) + 1 + _RANGE
"""The score that 0 is lifted to: the lowest lifted score is next to the bound."""


def kept(score: float) -> float:
    """Return a score that is not lifted."""
    return min(max(score, -_BOUND), _BOUND) if math.isfinite(score) else score


def lifted(score: float) -> float:
    """Return a score above all that are not lifted."""
    if not math.isfinite(score):
        return score
    magnitude = max(_bits(min(abs(score), _BOUND)) - _LEAST, 0)
    return _number(_ZERO + magnitude if score > 0 else _ZERO - magnitude)


def original(score: float) -> float:
    """Return the score that was lifted, or kept."""
    if score <= _BOUND:
        return score
    magnitude = _bits(score) - _ZERO
    return math.copysign(_number(abs(magnitude) + _LEAST), magnitude) if magnitude else 0.0


class Ascending(base.Wrapper):
    """Negative scores. Ties break by key, ascending, in either order."""

    def __init__(self, inner: base.Policy) -> None:
        super().__init__(inner, "asc")
        self.partitioned = getattr(inner, "partitioned", base.NO)

    def _outer_score(self, key: str, score: float) -> float:
        return -score

    def _inner_score(self, key: str, score: float) -> float:
        return -score


_MENTIONS = 10
"""As many in its text put a page on the topic, or one in its title."""
_LINKS = 3
"""So near to a page on the topic a document is hot."""
_BETWEEN_WORDS = re.compile(r"[_\W]+")


class HotQueue(base.Wrapper):
    """A document is hot if its URL, or the anchor of the link to it, has a word of the topic, or if it is within 3
    links of a crawled page on the topic. Its score is lifted above all others.

    As in the paper's algorithm, the links seen so far decide it once, when the document is discovered. Seeds are not
    hot. Hot documents among themselves, and the others, are ordered by the policy inside.
    """

    def __init__(self, inner: base.Policy, workers: Raters[PageRater], topic: Sequence[str]) -> None:
        super().__init__(inner, "hot_queue")
        self._workers = workers
        self._topic = tuple(topic)
        self._words = topic_pattern(self._topic)
        self._graph = SeenGraph()
        self._distance: dict[int, int] = {}
        """Links from the nearest page on the topic, by the number in the graph; only of documents that are near
        enough."""
        self._hot: set[str] = set()
        """Hot documents that are not crawled."""
        self._crawled: list[base.CrawledPage] = []
        """Pages whose topic was not looked at yet."""

    def identity(self) -> Mapping[str, object]:
        return {**super().identity(), "hot_queue_topic": list(self._topic)}

    def crawled(self, page: base.CrawledPage) -> None:
        super().crawled(page)
        self._crawled.append(page)

    async def score(self, candidates: Sequence[base.Candidate]) -> list[base.Rating]:
        """Score page by page, so that a document's class depends on the pages up to the one on which it was found."""
        pages, self._crawled = self._crawled, []
        found: dict[str | None, list[base.Candidate]] = {}
        for candidate in candidates:
            found.setdefault(candidate.parent, []).append(candidate)
        topics = await self._workers.run(mentions_of(self._topic), [page.entry.key for page in pages])
        for page, mentions in zip(pages, topics, strict=True):
            on_topic = isinstance(mentions, Mentions) and (mentions.in_title or mentions.in_body >= _MENTIONS)
            self._follow(page, on_topic=on_topic)
            self._hot.discard(page.entry.key)
            self._hot.update(candidate.key for candidate in found.get(page.entry.key, ()) if self._is_hot(candidate))
        return await super().score(candidates)

    def save(self) -> bytes:
        """Return one line of its own, then the saved lines of the policy inside."""
        own = json.dumps([self._graph.dump(), sorted(self._distance.items()), sorted(self._hot)])
        return own.encode() + b"\n" + super().save()

    def load(self, state: bytes) -> None:
        own, _, inner = state.partition(b"\n")
        graph, distance, hot = base.saved_state(own, (DUMPED, [(whole(), whole())], [{str}]))
        self._graph, self._distance, self._hot = SeenGraph.restored(graph), dict(distance), set(hot)
        super().load(inner)

    def _outer_score(self, key: str, score: float) -> float:
        return lifted(score) if key in self._hot else kept(score)

    def _inner_score(self, key: str, score: float) -> float:
        return original(score)

    def _follow(self, page: base.CrawledPage, *, on_topic: bool) -> None:
        """Record the page's links, and the documents that they bring nearer to the topic."""
        number = self._graph.add(page.entry.key, targets_of(page.links))
        if on_topic:
            self._distance[number] = 0
        nearer = [number] if number in self._distance else []
        for source in nearer:
            distance = self._distance[source] + 1
            for target in self._graph.targets(source) if distance <= _LINKS else ():
                if self._distance.get(target, distance + 1) > distance:
                    self._distance[target] = distance
                    nearer.append(target)

    def _is_hot(self, candidate: base.Candidate) -> bool:
        link = f"{candidate.anchor} {unquote(candidate.url)}"
        words = f"{link} {_BETWEEN_WORDS.sub(' ', link)}"
        return self._words.search(words) is not None or self._graph.number(candidate.key) in self._distance


def make_policy(workers: Raters[PageRater], options: base.PolicyOptions) -> base.Policy:
    """Return the policy URL_POLICY in the given ORDER. It is behind the hot queue of HOT_QUEUE_TOPIC, if that is set,
    and with KNOWN_TEXTS its scores are multiplied by novelty. Raises InputError."""
    policy: base.Policy = base.load_policy(options.url_policy)(workers, options)
    if options.known_texts is not None:
        from crawl4llm.policies._novelty import Novelty  # few crawls look for it, and it needs the learner's module

        policy = Novelty(policy)
    if options.order == "asc":
        policy = Ascending(policy)
    if options.hot_queue_topic:
        policy = HotQueue(policy, workers, options.hot_queue_topic)
    return policy
