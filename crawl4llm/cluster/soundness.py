"""Checks a crawl in its storage. ``verify`` and ``merge`` both read it through here, so that they refuse the same.

Each document is in one state, and nothing is archived twice or lost. Links came where they lead. Commits and iterations
have no gap, and the end says how many pages there are. The checksum of each object holds.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from crawl4llm import frontier
from crawl4llm.base.errors import InputError
from crawl4llm.cluster import journal, objects, shapes
from crawl4llm.cluster.history import Batch, Figures, History, news_of
from crawl4llm.cluster.objects import Exchange, is_counted, links_in, redirects_in
from crawl4llm.cluster.stores import Patch, each_fingerprint
from crawl4llm.crawl import FRONTIER_EMPTY, REDIRECTS
from crawl4llm.warc import cdxj

_NO_RULE: Final = {
    *(f"links/{name}" for name in ("seen", "new", "without_key", "nofollow", "near_duplicate", "sitemap")),
    *(f"links/{name}" for name in ("nofollow_own", "nofollow_elsewhere", "ugc", "sponsored", "language")),
}
"""Counts of links that no rule leaves alone, or that no other partition hears of."""
_WITH_CHECKSUM: Final = re.compile(
    r"crawl\.json|seeds\.txt|end\.json|(?:i|p)/(?!.*\.warc\.).+|(?:quota|control|requests)/.+|warc/.+\.segments"
)
"""Names of the objects that end with a checksum. Compacted indexes have one for each of their parts."""
_NUMBERED: Final = ("quota", "control")
"""Folders whose objects have ascending numbers from 1 on."""


class CheckedCommit(NamedTuple):
    """A commit with its content."""

    partition: int
    commit: journal.Commit
    lines: list[dict[str, Any]]
    failures: list[Any]
    listed: list[cdxj.IndexLine]
    """The lines of the index of its WARC file."""


class Soundness:
    """Reads and checks a crawl. All methods raise InputError that names the fault."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._storage = history.storage
        self._storage.checked = {objects.CRAWL}
        self._ended = frontier.MemoryVisited()
        self.equation = ""
        """Says how many documents are in each state, once all is read."""

    def wrong(self, how: str) -> InputError:
        """Return the error that says so."""
        return InputError(f"STORAGE {self._storage.url} is not sound: {how}")

    def _end(self, key: str) -> None:
        """Note that a document ended; no document may end twice."""
        if not self._ended.add([key]):
            raise self.wrong(f"{key} has come to an end twice")

    def _check_end(self, pages: int) -> None:
        """Check the end that was noted, by the number of pages, and all objects that nobody has read yet."""
        if pages > self._history.max_pages:
            raise self.wrong(f"{pages:,} pages are more than {self._history.max_pages:,}")
        if (end := self._history.end) is not None and pages != end["crawled"]:
            raise self.wrong(f"{objects.END} says that {end['crawled']:,} pages were crawled, and {pages:,} are there")
        if self._storage.size(objects.SEEDS) is None:
            raise self.wrong(f"{objects.SEEDS} is missing")
        checked, self._storage.checked = self._storage.checked or set(), None
        for name in self._storage.names(""):
            if name not in checked and _WITH_CHECKSUM.fullmatch(name):
                self._storage.get(name)
        for folder in _NUMBERED:
            for number, name in enumerate(self._storage.names(folder), 1):
                if name != f"{folder}/{number:08}":
                    raise self.wrong(f"{folder}/{number:08} is missing")

    def _check_index(self, name: str, listed: Sequence[str | None], ids: Sequence[str]) -> None:
        if list(listed) != list(ids):
            raise self.wrong(f"{name}: its index lists other pages than were crawled")


class CommitsSoundness(Soundness):
    """Of a crawl in continuous order."""

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._discovered = frontier.MemoryVisited()
        self._waiting: dict[int, dict[bytes, str]] = defaultdict(dict)
        """By partition, the keys of documents that have not ended, by where they lie."""
        self._mail: dict[tuple[int, int], list[tuple[int, list[str]]]] = defaultdict(list)
        """By sender and receiver: commits and the documents that links in them lead to, until the receiver has them."""
        self._missing: Counter[int] = Counter()
        """Documents that links lead to and were not discovered, by receiver."""
        self.figures = Figures()
        self._crawled: Counter[int] = Counter()
        """Pages that count to N, by partition."""
        self._archived = 0
        self._newest: Counter[int] = Counter()
        """Commits by partition."""
        self._read: Counter[int] = Counter()
        """By partition, the newest of its commits that another one has read."""
        self._others = 0

    def commits(self) -> Iterator[CheckedCommit]:
        """Yield all commits, by turn and partition; ``equation`` is there when the last was taken."""
        for partition, commit in self._history.commits():
            called = journal.name(partition, journal.LOG, commit.number)
            with self._storage.reading(called):
                checked = self._check(partition, commit, called)
            yield checked
        self._check_partitions()

    def segments(self) -> Iterator[str]:
        """Check all commits; yield the names of their WARC files."""
        return (one.commit.head.pages for one in self.commits() if one.commit.head.pages is not None)

    def _check_partitions(self) -> None:
        hops = 0
        for sender, number in self._read.items():
            called = journal.name(sender, journal.LOG, number)
            # while the crawl goes on, it may have been put since the sender's others were read
            if number > self._newest[sender] and self._storage.size(called) is None:
                raise self.wrong(f"{called} is missing, which others have read")
        for partition in list(self._waiting):
            counts = self.figures.counts(partition)
            hops += counts.get(REDIRECTS, 0)
            left_alone = sum(count for key, count in counts.items() if key.startswith("links/") and key not in _NO_RULE)
            if self._missing[partition] > left_alone:
                raise self.wrong(f"partition {partition} lacks {self._missing[partition]} documents it had links to")
            for key in self._waiting[partition].values():
                if key in self._ended:
                    raise self.wrong(f"{key} has come to an end, and waits")
        self._check_end(self._crawled.total())
        waiting = sum(map(len, self._waiting.values()))
        discovered, archived = len(self._discovered), self._archived
        equation = f"{discovered:,} discovered = {archived:,} archived + {self._others:,} failed, dropped or "
        equation += f"redirected + {hops:,} redirect hops + {waiting:,} waiting"
        if discovered != archived + self._others + hops + waiting:
            raise self.wrong(f"{equation} does not hold")
        end = self._history.end
        if end is not None and end["reason"] == FRONTIER_EMPTY and any(self._mail.values()):
            raise self.wrong("it has ended, and links were not read")
        self.equation = equation

    def _check(self, partition: int, commit: journal.Commit, called: str) -> CheckedCommit:
        lines, failures, _ = self._storage.read(called, commit.lines, shapes.LINES)
        for new in each_fingerprint(commit.fingerprints):
            if not self._discovered.add([new.hex()]):
                raise self.wrong(f"{called} has a document that was discovered before")
        for line in [*lines, *failures]:
            self._end(line["id"])
            if not self._is_discovered(line["id"]):
                raise self.wrong(f"{line['id']} was never discovered")
        self._newest[partition] = commit.number
        self._archived += len(lines)
        self._crawled[partition] += sum(map(is_counted, lines))
        if self._crawled[partition] != commit.head.crawled:
            raise self.wrong(f"{called} says {commit.head.crawled:,} pages, and {self._crawled[partition]:,} are there")
        self._others += len(failures)
        waiting = self._waiting[partition]
        for change in self.figures.take(partition, commit):
            _note(waiting, *change)
        for receiver, section in commit.sections.items():
            mail = self._storage.read(called, section, shapes.SECTION)
            found = {link.key for links in links_in(mail).values() for link in links.links}
            found |= {entry.key for entry in redirects_in(mail)}
            self._mail[partition, receiver].append((commit.number, [key for key in found if key is not None]))
        for sender, mark in enumerate(commit.head.marks):
            self._read[sender] = max(self._read[sender], mark)
            waits = self._mail[sender, partition]
            while waits and waits[0][0] <= mark:
                self._missing[partition] += sum(not self._is_discovered(key) for key in waits.pop(0)[1])
        return CheckedCommit(partition, commit, lines, failures, self._index(commit, [line["id"] for line in lines]))

    def _index(self, commit: journal.Commit, ids: Sequence[str]) -> list[cdxj.IndexLine]:
        """Return the index of a commit's WARC file, which lists its pages."""
        name = commit.head.pages
        index = [] if name is None else self._history.pages.index(name)
        if self._history.crawl["facts"]["settings"]["WARC_ENABLED"]:
            self._check_index(str(name), [line.id for line in index if line.id], ids)
        return index

    def _is_discovered(self, key: str) -> bool:
        return frontier.fingerprint(key).hex() in self._discovered


def _note(waiting: dict[bytes, str], table: str, key: bytes, value: bytes | Patch | None) -> None:
    """Record a change of documents that have not ended."""
    place = table.encode() + key
    if value is None:
        waiting.pop(place, None)
    elif isinstance(value, Patch):
        return
    elif table == frontier.CURRENT and frontier.is_document(value):
        waiting[place] = frontier.decode_stored(value).key
    elif table in (frontier.LEASES, frontier.TABLE):
        (record,) = frontier.unpack(value)
        waiting[place] = frontier.decode(record).key


class BatchesSoundness(Soundness):
    """Of a crawl in batch order."""

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._discovered = self._archived = self._failed = self._counted = 0

    def batches(self) -> Iterator[tuple[Batch, list[dict[str, cdxj.IndexLine]]]]:
        """Yield the iterations that all partitions have ended, with the lines of the index of each partition's pages,
        by document key; ``equation`` is there when the last was taken."""
        with self._storage.reading(objects.folder(0)):
            self._find(self._history.iteration(0).offers())
        batches = 0
        for batch in self._history.batches():
            batches += 1
            with self._storage.reading(objects.folder(batch.number)):
                indexes = self._check(batch)
            yield batch, indexes
            if not batch.after:
                continue
            with self._storage.reading(objects.folder(batch.number + 1)):
                self._find(batch.after)
                queued = sum(offer["queued"] for offer in batch.after)
            if self._discovered != len(self._ended) + queued:
                states = f"{len(self._ended):,} ended + {queued:,} queued"
                raise self.wrong(f"after iteration {batch.number}, {self._discovered:,} discovered are not {states}")
        self._check_last(batches)
        self._check_end(self._counted)
        done = f"{self._archived:,} archived + {self._failed:,} failed or dropped"
        queued = self._discovered - len(self._ended)
        self.equation = f"{self._discovered:,} discovered = {done} + {queued:,} queued"

    def segments(self) -> Iterator[str]:
        """Check all iterations; yield the names of their WARC files."""
        exchanges = (exchange for batch, _ in self.batches() for exchange in batch.exchanges)
        return (exchange.head["pages"] for exchange in exchanges if exchange.head["pages"] is not None)

    def _check_last(self, batches: int) -> None:
        """Check that no iteration is missing, by the end that was noted, or by later iterations."""
        ended = self._history.ended_iterations()
        if self._history.end is not None and batches != ended:
            raise self.wrong(f"{objects.END} says that it ended after {ended:,} iterations, not {batches:,}")
        if ended > batches + self._is_exchanged(batches):
            raise self.wrong(f"{objects.folder(ended)} is there, and {objects.folder(batches)} is not whole")

    def _is_exchanged(self, iteration: int) -> bool:
        """Return whether all partitions may have gone on to the next iteration."""
        of = self._history.iteration(iteration)
        return of.plan() is not None and bool(of.exchanges())

    def _find(self, offers: Sequence[Mapping[str, Any]]) -> None:
        """Note the documents that were discovered, and those that ended then."""
        news = news_of(offers)
        for ended in news.failures.values():
            for one in ended:
                self._end(one.line["id"])
                self._failed += 1
        self._discovered += sum(new for new, _ in news.visited.values())

    def _check(self, batch: Batch) -> list[dict[str, cdxj.IndexLine]]:
        """Check that each document of the batch came to one end, and return the indexes, which list its pages."""
        for number, exchange in enumerate(batch.exchanges):
            if [row[0] for row in exchange.rows] != batch.plan.places(number):
                raise self.wrong(f"partition {number} has other documents of iteration {batch.number} than planned")
            for place, line, failure, _ in exchange.rows:
                key = batch.plan.keys[place]
                if any(one is not None and one["id"] != key for one in (line, failure)):
                    raise self.wrong(f"iteration {batch.number} has another document in place {place} than {key}")
                if line is not None or failure is not None:
                    self._end(key)
                    self._archived += failure is None
                    self._failed += failure is not None
                    self._counted += failure is None and is_counted(line)
        return list(map(self._index, batch.exchanges))

    def _index(self, exchange: Exchange) -> dict[str, cdxj.IndexLine]:
        """Return the index of a partition's pages of a batch."""
        if (name := exchange.head["pages"]) is None:
            return {}
        index = {line.id: line for line in self._history.pages.index(name)}
        self._check_index(name, list(index), [line["id"] for line in exchange.archived])
        return index
