"""What a JOBDIR's store says of its own state is checked by value, also when its checksum holds."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from crawl4llm.crawl.commits import CRAWL, read_state
from crawl4llm.frontier import Entry, visited as visited_set
from crawl4llm.frontier.composed import FRONTIER_STATE
from crawl4llm.frontier.opening import open_frontier, stored_frontier
from crawl4llm.frontier.store import Store, StoreError
from crawl4llm.frontier.visited import DurableVisited


def written(folder: Path) -> Store:
    """A store with a document queued and visited."""
    store = Store(folder / "store.mdb")
    frontier = open_frontier(store)
    frontier.push([Entry("a", "http://a.example/", 0.5, 0, None)])
    frontier.save()
    visited = DurableVisited(store, folder / "filter", cache=10, filter_bytes=1 << 16)
    visited.add(["a"])
    visited.save()
    visited.close()
    store.commit()
    return store


def put(store: Store, key: bytes, **values: Any) -> None:
    state = json.loads(store.get("state", key) or b"{}")
    store.put("state", key, json.dumps({**state, **values}).encode())


@pytest.mark.parametrize(
    "values",
    [
        {"runs": 5e-324},
        {"runs": {"next": 1, "runs": [-1]}},
        {"runs": {"next": 1, "runs": [[1, 2]]}},
        {"order": 10**30},
        {"queued": -1},
        {"queued": 10**30},
        {"outcomes": [["a"]]},
    ],
)
def test_the_state_of_a_frontier(values: dict[str, Any], tmp_path: Path) -> None:
    with closing(written(tmp_path)) as store:
        assert len(stored_frontier(store)) == 1
        put(store, FRONTIER_STATE, **values)
        with pytest.raises(StoreError, match="is damaged: its state is not that of a crawl: in frontier, its "):
            stored_frontier(store)


@pytest.mark.parametrize("values", [{"runs": [1]}, {"runs": {"next": 0, "blocks": 0, "runs": [[1]]}}, {"filter": 7}])
def test_the_state_of_the_visited_set(values: dict[str, Any], tmp_path: Path) -> None:
    with closing(written(tmp_path)) as store:
        put(store, visited_set.VISITED_STATE, **values)
        with pytest.raises(StoreError, match="is damaged: its state is not that of a crawl: in visited, its "):
            DurableVisited(store, tmp_path / "filter", cache=10, filter_bytes=1 << 16)


@pytest.mark.parametrize("values", [{"crawl": 7}, {"crawl": {"counts": []}}, {"crawl": {"counts": {"a": "b"}}}])
def test_the_state_of_a_crawl(values: dict[str, Any], tmp_path: Path) -> None:
    with closing(written(tmp_path)) as store:
        put(store, CRAWL, **values)
        with pytest.raises(StoreError, match="is damaged: its state is not that of a crawl: in crawl, its "):
            read_state(store)
