"""What the tests of the demo web share."""

from __future__ import annotations

import hashlib
import heapq
import os
import subprocess
import sys
from pathlib import Path
from random import Random
from statistics import fmean

from demo_traits import Graph

PROJECT = Path(__file__).resolve().parents[2]


def start_python(code: str, *args: object, **environment: str) -> subprocess.Popen[str]:
    """A Python process that runs some lines with the project at hand."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, args)],
        env={**os.environ, "PYTHONPATH": str(PROJECT), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file of a folder, by its path in it."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def best_first(graph: Graph, seeds: list[int], pages: int, batch: int = 100) -> list[int]:
    """A crawl by look-ahead influence: Algorithm 1 of the paper, in memory."""
    visited, crawled = set(seeds), list(seeds)
    frontier = _scored(graph, _discover(graph, seeds, visited))
    heapq.heapify(frontier)
    while frontier and len(crawled) < pages:
        size = min(batch, len(frontier), pages - len(crawled))
        popped = [heapq.heappop(frontier)[1] for _ in range(size)]
        crawled += popped
        for entry in _scored(graph, _discover(graph, popped, visited)):
            heapq.heappush(frontier, entry)
    return crawled


def random_order(graph: Graph, seeds: list[int], pages: int, seed: int) -> list[int]:
    """A crawl that takes any page of the frontier next."""
    random = Random(seed)
    visited, crawled = set(seeds), list(seeds)
    frontier = _discover(graph, seeds, visited)
    while frontier and len(crawled) < pages:
        place = random.randrange(len(frontier))
        frontier[place], frontier[-1] = frontier[-1], frontier[place]
        crawled.append(frontier.pop())
        frontier += _discover(graph, crawled[-1:], visited)
    return crawled


def gain(graph: Graph, seed: int) -> float:
    """Mean influence of a fifth of the web crawled by influence, over that of a crawl in random order."""
    pages = len(graph.texts) // 5
    seeds = Random(seed).sample(range(len(graph.texts)), 100)
    chosen, control = best_first(graph, seeds, pages), random_order(graph, seeds, pages, seed)
    assert len(chosen) == len(control) == pages
    return fmean(graph.influence[page] for page in chosen) / fmean(graph.influence[page] for page in control)


def _discover(graph: Graph, pages: list[int], visited: set[int]) -> list[int]:
    new = []
    for page in pages:
        for target in graph.outlinks[page]:
            if target not in visited:
                visited.add(target)
                new.append(target)
    return new


def _scored(graph: Graph, pages: list[int]) -> list[tuple[float, int]]:
    return [(-graph.influence[page], page) for page in pages]
