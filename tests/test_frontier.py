"""Every store of the frontier keeps the frontier's contract."""

from __future__ import annotations

from frontier_contract import FrontierContract, entry, keys_of

from crawl4llm.frontier import Frontier
from crawl4llm.frontier.memory import MemoryFrontier


class TestMemoryFrontier(FrontierContract):
    """The store in memory."""

    def new_frontier(self) -> Frontier:
        return MemoryFrontier()

    def test_stale_places_are_cleared_away(self) -> None:
        frontier = MemoryFrontier()
        frontier.push(entry(str(number), 0.0) for number in range(1000))
        for turn in range(1, 100):
            frontier.rerank((str(number), turn / (number + 1)) for number in range(1000))
        assert len(frontier._heap) <= 4000
        assert keys_of(frontier.lease(1000)) == [str(number) for number in range(1000)]
