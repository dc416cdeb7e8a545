"""The figures of a crawl in continuous order, read back from the newest commits of its partitions."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import Any

from crawl4llm.base.stats import PREFIX
from crawl4llm.cluster.changes import records
from crawl4llm.cluster.history import History
from crawl4llm.cluster.journal import Commit
from crawl4llm.cluster.storage import unpacked
from crawl4llm.crawl.commits import CRAWL
from crawl4llm.frontier.composed import STATE


class Figures:
    """Sums of the partitions' states, as of their newest commits."""

    def __init__(self) -> None:
        self._states: dict[int, dict[bytes, Any]] = defaultdict(dict)
        self._stored: dict[tuple[int, bytes], bytes] = {}

    def take(self, partition: int, commit: Commit) -> None:
        """Note the state in a partition's next commit. Raises ValueError where that does not go with those before."""
        for table, key, value in records(unpacked(commit.changes)):
            if table == "state" and key in (CRAWL, STATE) and value is not None:
                before = self._stored.get((partition, key), b"")
                self._stored[partition, key] = new = value if isinstance(value, bytes) else value.applied_to(before)
                self._states[partition][key] = json.loads(new)

    def counts(self, partition: int) -> dict[str, int]:
        """Return the figures of a partition that are counted."""
        counts: Counter[str] = Counter(self._states[partition][CRAWL]["crawl"]["counts"])
        for outcome, reason, count in self._states[partition][STATE]["outcomes"]:
            counts[f"{outcome}/{reason}"] += count
        return counts

    def queued(self, partition: int) -> int:
        """Return how many documents a partition has queued."""
        state = self._states[partition].get(STATE)
        return int(state["queued"]) if state else 0

    def all(self, visited: int) -> dict[str, Any]:
        """Return the figures of the crawl, with the prefix that stats have."""
        counts: Counter[str] = Counter()
        influence, rated = 0.0, 0
        for partition, state in self._states.items():
            counts.update(self.counts(partition))
            counts["frontier/queued"] += self.queued(partition)
            some, pages = state[CRAWL]["crawl"]["influence"]
            influence, rated = influence + some, rated + pages
        mean = influence / rated if rated else None
        figures: dict[str, Any] = {**counts, "pages/visited": visited, "influence/mean": mean}
        return dict(sorted({PREFIX + key: value for key, value in figures.items()}.items()))


def queued_by_partition(history: History) -> list[int]:
    """Return how many documents each partition had queued at its newest commit."""
    figures = Figures()
    for partition, commit in history.commits():
        figures.take(partition, commit)
    return [figures.queued(partition) for partition in range(history.partitions)]
