"""The stores that benchmarks/frontier.py measures, behind one interface, and the entries that they are filled with."""

from __future__ import annotations

import json
import math
import random
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import lmdb

from crawl4llm.crawl.store_check import ID, check_store
from crawl4llm.frontier import Entry, Outcome
from crawl4llm.frontier.opening import open_frontier
from crawl4llm.frontier.runs import decode, encode
from crawl4llm.frontier.store import Store
from crawl4llm.frontier.visited import DurableVisited
from crawl4llm.options import Options

OURS, WITH_VISITED, SCRAPY = "durable", "with visited set", "Scrapy"
LEVELS = 10_000
"""Distinct scores where Scrapy's queues are compared, which have integer priorities."""


class Urls:
    """As many distinct URLs as one likes, each known by its number.

    Their lengths spread as those of the outlinks in ../shared/clueweb22-real do, around a mean of 77 bytes (66 there).
    """

    def __init__(self) -> None:
        rng = random.Random(0)
        words = ["".join(rng.choices("aeioubcdfghlmnprst", k=rng.randint(2, 12))) for _ in range(4096)]
        folders = [rng.choices(words, k=min(1 + int(rng.expovariate(0.3)), 16)) for _ in range(8192)]
        self._words = words
        self._hosts = [rng.choice(["", "www."]) + "".join(rng.choices(words, k=2)) + ".org" for _ in range(4096)]
        self._folders = ["/".join(folder) for folder in folders]

    def __getitem__(self, number: int) -> str:
        bits = number * 0x9E3779B97F4A7C15 >> 27  # the golden ratio: numbers next to each other fall far apart
        host, folder, word = self._hosts[bits & 4095], self._folders[bits >> 12 & 8191], self._words[bits >> 25 & 4095]
        return f"https://{host}/{folder}/{word}-{number:x}.html"


def entries(levels: int) -> Iterator[Entry]:
    """Entries without end, 16 of each parent; ``levels``: how many distinct scores, 0 for any.

    The logits of scores are normal around -4 with a deviation of 7, which gives about the quartiles of
    ../shared/reference-runs/scores.tsv.gz. Scores are multiples of 2**-23 less 1e-5, as fastText's are at both ends.
    """
    urls, rng = Urls(), random.Random(0)
    parent = "https://seed.example/"
    for number in count():
        url = urls[number]
        chance = 1 / (1 + math.exp(4 - 7 * rng.gauss(0, 1)))
        score = round(chance * (levels - 1)) / levels if levels else round(chance * (1 << 23)) / (1 << 23) - 1e-5
        yield Entry(url, url, score, 1 + number % 12, parent)
        if number % 16 == 0:
            parent = url


class Queue(Protocol):
    """A frontier in a folder, which it fills or takes up."""

    def push(self, items: Sequence[Any]) -> None: ...

    def pop(self, n: int) -> Sequence[Any]:
        """The ``n`` best; fewer where there are no more."""
        ...

    def commit(self) -> None: ...

    def close(self) -> None: ...

    def prepare(self, batch: list[Entry]) -> Sequence[Any]:
        """Entries in the form that a crawl with this store would have them in; not timed."""
        return batch

    def order(self, item: Any) -> tuple[float, str]:
        """Score and URL of what was popped; not timed."""
        return item.score, item.url


class Durable(Queue):
    """This project's frontier, opened as a crawl opens it: with a check of the whole store."""

    def __init__(self, folder: Path) -> None:
        path = folder / "store.mdb"
        if path.exists():
            check_store(path, "benchmark")
        self._store = Store(path)
        self._store.put("state", ID, b"benchmark")
        self._frontier = open_frontier(self._store)

    def push(self, items: Sequence[Any]) -> None:
        self._frontier.push(items)

    def pop(self, n: int) -> Sequence[Entry]:
        leases = self._frontier.lease(n)
        for lease in leases:
            self._frontier.settle(lease, Outcome.ARCHIVED)
        return [lease.entry for lease in leases]

    def commit(self) -> None:
        self._frontier.save()
        self._store.commit()

    def close(self) -> None:
        self._store.close()


class DurableWithVisited(Durable):
    """The same with the visited set, which is asked about a link that it knows for each that it does not."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        options = Options()
        self._visited = DurableVisited(
            self._store,
            folder / "visited.filter",
            cache=options.visited_cache,
            filter_bytes=options.visited_filter_bytes,
        )
        self._visited.load_filter()
        self._urls, self._rng = Urls(), random.Random(0)

    def prepare(self, batch: list[Entry]) -> Sequence[Any]:
        """Entries, and the keys of as many documents drawn from all that are known."""
        known = len(self._visited)
        return batch, [self._urls[self._rng.randrange(known)] for _ in batch] if known else []

    def push(self, items: Sequence[Any]) -> None:
        batch, known = items
        new = self._visited.add([*(entry.key for entry in batch), *known])
        assert len(new) == len(batch)
        super().push(batch)

    def commit(self) -> None:
        self._visited.save()
        super().commit()

    def close(self) -> None:
        self._visited.close()
        super().close()


class BTree(Queue):
    """One pair of an LMDB tree for each entry."""

    def __init__(self, folder: Path) -> None:
        self._env = lmdb.open(str(folder / "btree.mdb"), map_size=1 << 40, subdir=False, readahead=False)
        self._txn = self._env.begin(write=True)

    def push(self, items: Sequence[Entry]) -> None:
        self._txn.cursor().putmulti(map(encode, items))

    def pop(self, n: int) -> Sequence[Entry]:
        popped: list[Entry] = []
        with self._txn.cursor() as cursor:
            more = cursor.first()
            while more and len(popped) < n:
                popped.append(decode(cursor.item()))
                cursor.delete()
                more = bool(cursor.key())
        return popped

    def commit(self) -> None:
        self._txn.commit()
        self._txn = self._env.begin(write=True)

    def close(self) -> None:
        self._txn.abort()
        self._env.close()


class SQLite(Queue):
    """A table kept in the frontier's order."""

    def __init__(self, folder: Path) -> None:
        self._db = sqlite3.connect(folder / "frontier.sqlite", isolation_level=None)
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "cache_size=-65536", "wal_autocheckpoint=20000"):
            self._db.execute(f"PRAGMA {pragma}")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS frontier (score REAL, key TEXT, url TEXT, depth INTEGER, parent TEXT, "
            "attempts INTEGER, PRIMARY KEY (score DESC, key)) WITHOUT ROWID"
        )
        self._db.execute("BEGIN")

    def push(self, items: Sequence[Entry]) -> None:
        rows = ((e.score, e.key, e.url if e.url != e.key else None, e.depth, e.parent, e.attempts) for e in items)
        self._db.executemany("INSERT INTO frontier VALUES (?, ?, ?, ?, ?, ?)", rows)

    def pop(self, n: int) -> Sequence[Entry]:
        rows = self._db.execute("SELECT * FROM frontier ORDER BY score DESC, key LIMIT ?", (n,)).fetchall()
        if rows:
            score, key = rows[-1][:2]
            self._db.execute("DELETE FROM frontier WHERE score > ?", (score,))
            self._db.execute("DELETE FROM frontier WHERE score = ? AND key <= ?", (score, key))
        return [
            Entry(key, url or key, score, depth, parent, attempts) for score, key, url, depth, parent, attempts in rows
        ]

    def commit(self) -> None:
        self._db.execute("COMMIT")
        self._db.execute("BEGIN")

    def close(self) -> None:
        self._db.execute("ROLLBACK")
        self._db.close()


class ScrapyDisk(Queue):
    """``scrapy.core.scheduler.Scheduler._dq`` with default settings, but for the priority queue it is compared by."""

    def __init__(self, folder: Path) -> None:
        import scrapy
        from scrapy.crawler import Crawler
        from scrapy.pqueues import ScrapyPriorityQueue
        from scrapy.utils.misc import build_from_crawler, load_object

        self._request = scrapy.Request
        crawler = Crawler(scrapy.Spider)
        crawler.spider = scrapy.Spider("benchmark")
        self._active = folder / "active.json"
        self._queue: Any = build_from_crawler(
            ScrapyPriorityQueue,
            crawler,
            downstream_queue_cls=load_object(crawler.settings["SCHEDULER_DISK_QUEUE"]),
            key=str(folder / "requests.queue"),
            startprios=json.loads(self._active.read_text()) if self._active.exists() else (),
            start_queue_cls=load_object(crawler.settings["SCHEDULER_START_DISK_QUEUE"]),
        )

    def prepare(self, batch: list[Entry]) -> Sequence[Any]:
        return [
            self._request(e.url, priority=round(e.score * LEVELS), meta={"depth": e.depth, "parent": e.parent})
            for e in batch
        ]

    def push(self, items: Sequence[Any]) -> None:
        for request in items:
            self._queue.push(request)

    def pop(self, n: int) -> Sequence[Any]:
        popped: list[Any] = []
        while len(popped) < n and (request := self._queue.pop()) is not None:
            popped.append(request)
        return popped

    def commit(self) -> None:
        """There is none: what it holds is whole only once it is closed."""

    def close(self) -> None:
        self._active.write_text(json.dumps(self._queue.close()))

    def order(self, item: Any) -> tuple[float, str]:
        return item.priority, item.url


STORES: dict[str, Callable[[Path], Queue]] = {
    OURS: Durable,
    WITH_VISITED: DurableWithVisited,
    "SQLite": SQLite,
    "B-tree": BTree,
    SCRAPY: ScrapyDisk,
}
