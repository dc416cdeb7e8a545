"""The hot queue: documents that promise to be on a topic come before all others (Cho et al. 1998, section 7)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

from crawl4llm.policies import Candidate, CrawledPage, Policy, Rating
from crawl4llm.policies._ordering.lift import kept, lifted, original
from crawl4llm.policies._ordering.wrapper import Wrapper
from crawl4llm.policies._seen_graph import SeenGraph
from crawl4llm.policies._seen_links import targets_of
from crawl4llm.scoring.topic import Mentions, mentions_of, topic_pattern

if TYPE_CHECKING:
    from crawl4llm.scoring.rating import PageRater
    from crawl4llm.scoring.workers import PageWorkers

_MENTIONS = 10
"""As many in its text put a page on the topic, or one in its title."""
_LINKS = 3
"""So near to a page on the topic a document is hot."""
_BETWEEN_WORDS = re.compile(r"[_\W]+")


class HotQueue(Wrapper):
    """A document is hot whose URL, or the anchor of the link along which it was found, has a word of the topic, or that
    is within 3 links of a crawled page on the topic; its score is lifted above all others.

    As in the paper's algorithm that is decided when the document is discovered, by the links seen so far, and for good;
    seeds are not hot. Hot documents among themselves, and the others, are ordered by the policy inside.
    """

    def __init__(self, inner: Policy, workers: PageWorkers[PageRater], topic: Sequence[str]) -> None:
        super().__init__(inner, "hot_queue")
        self._workers = workers
        self._topic = tuple(topic)
        self._words = topic_pattern(self._topic)
        self._graph = SeenGraph()
        self._distance: dict[int, int] = {}
        """Links from the nearest page on the topic, by the number in the graph; only of what is near enough."""
        self._hot: set[str] = set()
        """Hot documents that are not crawled."""
        self._crawled: list[CrawledPage] = []
        """Pages whose topic was not looked at yet."""

    def identity(self) -> Mapping[str, object]:
        return {**super().identity(), "hot_queue_topic": list(self._topic)}

    def crawled(self, page: CrawledPage) -> None:
        super().crawled(page)
        self._crawled.append(page)

    async def score(self, candidates: Sequence[Candidate]) -> list[Rating]:
        """Page by page, so that a document's class depends on the pages up to the one on which it was found."""
        pages, self._crawled = self._crawled, []
        found: dict[str | None, list[Candidate]] = {}
        for candidate in candidates:
            found.setdefault(candidate.parent, []).append(candidate)
        topics = await self._workers.run(mentions_of(self._topic), [page.entry.key for page in pages])
        for page, mentions in zip(pages, topics, strict=True):
            self._follow(page, on_topic=isinstance(mentions, Mentions) and _is_on_topic(mentions))
            self._hot.discard(page.entry.key)
            self._hot.update(candidate.key for candidate in found.get(page.entry.key, ()) if self._is_hot(candidate))
        return await super().score(candidates)

    def save(self) -> bytes:
        """One line of its own, then what the policy inside saves."""
        own = json.dumps([self._graph.dump(), sorted(self._distance.items()), sorted(self._hot)])
        return own.encode() + b"\n" + super().save()

    def load(self, state: bytes) -> None:
        own, _, inner = state.partition(b"\n")
        graph, distance, hot = json.loads(own)
        self._graph, self._distance, self._hot = SeenGraph.restored(graph), dict(distance), set(hot)
        super().load(inner)

    def _outer_score(self, key: str, score: float) -> float:
        return lifted(score) if key in self._hot else kept(score)

    def _inner_score(self, score: float) -> float:
        return original(score)

    def _follow(self, page: CrawledPage, *, on_topic: bool) -> None:
        """Note the page's links, and to what they bring the topic nearer."""
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

    def _is_hot(self, candidate: Candidate) -> bool:
        link = f"{candidate.anchor} {unquote(candidate.url)}"
        words = f"{link} {_BETWEEN_WORDS.sub(' ', link)}"
        return self._words.search(words) is not None or self._graph.number(candidate.key) in self._distance


def _is_on_topic(mentions: Mentions) -> bool:
    return mentions.in_title or mentions.in_body >= _MENTIONS
