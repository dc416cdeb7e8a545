"""A crawl in continuous order, read back from its journals: verified, and how far it is.

Commits are taken by turn and then by partition, so that the order depends on nothing but the storage. A turn is above
those of all commits that its worker knew of, so that it follows the time in which they were made.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

from crawl4llm.base.errors import InputError
from crawl4llm.cluster import journal, shapes
from crawl4llm.cluster.changes import Delta, Edit, records
from crawl4llm.cluster.compacted import digest_of
from crawl4llm.cluster.figures import Figures
from crawl4llm.cluster.history import History
from crawl4llm.cluster.journal import Commit
from crawl4llm.cluster.logged import FINGERPRINT
from crawl4llm.cluster.objects import links_in
from crawl4llm.cluster.shapes import read
from crawl4llm.cluster.storage import unpacked
from crawl4llm.crawl.page_writer import REDIRECTS
from crawl4llm.frontier.aside import TABLE as ASIDE
from crawl4llm.frontier.durable import LEASES
from crawl4llm.frontier.fingerprints import fingerprint
from crawl4llm.frontier.indexed import CURRENT, decode_stored, is_document
from crawl4llm.frontier.memory import MemoryVisited
from crawl4llm.frontier.runs import decode, unpack
from crawl4llm.warc import cdxj

_NO_RULE: Final = {f"links/{name}" for name in ("seen", "new", "without_key", "nofollow", "near_duplicate", "sitemap")}
"""Counts of links that no rule leaves alone."""


class Verify:
    """Checks that each document is in one state, nothing is archived twice or lost, and links came where they lead."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._discovered, self._ended = MemoryVisited(), MemoryVisited()
        self._waiting: dict[int, dict[bytes, str]] = defaultdict(dict)
        """By partition, the keys of documents that have not ended, by where they lie."""
        self._mail: dict[tuple[int, int], list[tuple[int, list[str]]]] = defaultdict(list)
        """By sender and receiver: commits and the documents that links in them lead to, until the receiver has them."""
        self._missing: Counter[int] = Counter()
        """Documents that links lead to and were not discovered, by receiver."""
        self._figures = Figures()
        self.archived = self.others = 0

    def run(self) -> str:
        """Return the equation. Raises InputError that names what is wrong."""
        for partition, commit in self._history.commits():
            self._check(partition, commit)
        partitions = list(self._waiting)
        hops = 0
        for partition in partitions:
            counts = self._figures.counts(partition)
            hops += counts.get(REDIRECTS, 0)
            left_alone = sum(count for key, count in counts.items() if key.startswith("links/") and key not in _NO_RULE)
            if self._missing[partition] > left_alone:
                raise self._wrong(f"partition {partition} lacks {self._missing[partition]} documents it had links to")
            for key in self._waiting[partition].values():
                if key in self._ended:
                    raise self._wrong(f"{key} has come to an end, and waits")
        waiting = sum(map(len, self._waiting.values()))
        discovered = len(self._discovered)
        equation = f"{discovered:,} discovered = {self.archived:,} archived + {self.others:,} failed, dropped or "
        equation += f"redirected + {hops:,} redirect hops + {waiting:,} waiting"
        if discovered != self.archived + self.others + hops + waiting:
            raise self._wrong(f"{equation} does not hold")
        if self.archived > self._history.max_pages:
            raise self._wrong(f"{self.archived:,} pages are more than {self._history.max_pages:,}")
        end = self._history.end
        if end is not None and end["reason"] == "frontier_empty" and any(self._mail.values()):
            raise self._wrong("it has ended, and links were not read")
        return equation

    def _check(self, partition: int, commit: Commit) -> None:
        storage, called = self._history.storage, journal.name(partition, journal.LOG, commit.number)
        lines, failures = read(storage, called, commit.lines, shapes.LINES)
        for at in range(0, len(commit.fingerprints), FINGERPRINT):
            if not self._discovered.add([commit.fingerprints[at : at + FINGERPRINT].hex()]):
                raise self._wrong(f"{called} has a document that was discovered before")
        for line in [*lines, *failures]:
            if not self._ended.add([line["id"]]):
                raise self._wrong(f"{line['id']} has come to an end twice")
            if not self._is_discovered(line["id"]):
                raise self._wrong(f"{line['id']} was never discovered")
        self.archived += len(lines)
        self.others += len(failures)
        self._figures.take(partition, commit)
        waiting = self._waiting[partition]
        for table, key, value in records(unpacked(commit.changes)):
            _note(waiting, table, key, value)
        for receiver, section in commit.sections.items():
            mail = read(storage, called, section, shapes.MAIL)
            found = {link.key for links in links_in(mail).values() for link in links.links}
            found |= {entry.key for entry in journal.redirects_in(mail)}
            self._mail[partition, receiver].append((commit.number, [key for key in found if key is not None]))
        for sender, mark in enumerate(commit.head.marks):
            waits = self._mail[sender, partition]
            while waits and waits[0][0] <= mark:
                self._missing[partition] += sum(not self._is_discovered(key) for key in waits.pop(0)[1])
        _check_pages(self._history, commit, [line["id"] for line in lines])

    def _is_discovered(self, key: str) -> bool:
        return fingerprint(key).hex() in self._discovered

    def _wrong(self, how: str) -> InputError:
        return InputError(f"STORAGE {self._history.storage.url} is not sound: {how}")


def _note(waiting: dict[bytes, str], table: str, key: bytes, value: bytes | Delta | Edit | None) -> None:
    """Note what a change says of documents that have not ended."""
    place = table.encode() + key
    if value is None:
        waiting.pop(place, None)
    elif isinstance(value, Delta | Edit):
        return
    elif table == CURRENT and is_document(value):
        waiting[place] = decode_stored(value).key
    elif table in (LEASES, ASIDE):
        (record,) = unpack(value)
        waiting[place] = decode(record).key


def _check_pages(history: History, commit: Commit, ids: list[str]) -> None:
    """Check what was archived for a commit: the file has the digest in its name, the index lists the pages."""
    name = commit.head.pages
    if name is None:
        listed: list[str] = []
    else:
        if hashlib.sha256(history.pages.get(name)).hexdigest() != digest_of(name):
            raise InputError(f"STORAGE {history.storage.url} is not sound: {name} is damaged: it has another digest")
        lines = [cdxj.parse_index_line(line) for line in history.pages.raw_index(name).splitlines(keepends=True)]
        listed = [line.id for line in lines if line is not None and line.id]
    archives = history.crawl["facts"]["settings"]["WARC_ENABLED"]
    if archives and listed != ids:
        raise InputError(f"STORAGE {history.storage.url} is not sound: {name} has other pages than were crawled")


def newest_heads(history: History) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield partitions with what their newest commits say."""
    for partition in range(history.partitions):
        number = journal.newest(history.storage, partition)
        data = history.storage.get(journal.name(partition, journal.LOG, number)) if number else None
        if data is not None:
            yield partition, journal.decode(history.storage, partition, number, data).head._asdict()
