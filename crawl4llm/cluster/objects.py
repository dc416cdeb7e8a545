"""The objects of a crawl in batch order, by which partitions communicate in each iteration.

``crawl.json`` names the crawl, ``seeds.txt`` its seeds, and ``end.json`` why it ended. The objects of iteration 12 are
in ``i/00000012/``; those of partition 3 bear its number:

- ``offer-0003``: its best documents, and the results of the links of the iteration before;
- ``whole-0003``: as many of its best as a batch has, if the first offer was too short;
- ``plan``: which documents are the batch;
- ``exchange-0003``: the results of the partition's documents, and the links of its pages, separately for each
  partition;
- ``found-0003``: the places of the new documents, if the policy counts them;
- ``pages-0003-DIGEST.warc.gz`` and ``.cdxj``: its pages.

``p/0003/00000012`` is a snapshot of the partition before that iteration.
"""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from operator import neg
from typing import Any, Final, NamedTuple

from crawl4llm.base.command_lines import command
from crawl4llm.base.formats import require_format
from crawl4llm.base.pages import Link
from crawl4llm.cluster import shapes
from crawl4llm.cluster.storage import Storage, StorageError, pack
from crawl4llm.frontier import Entry
from crawl4llm.parts import Rated
from crawl4llm.policies import CrawledPage

FORMAT: Final = 6
"""Format version of a storage."""
CRAWL, SEEDS, END, PLAN = "crawl.json", "seeds.txt", "end.json", "plan"
OFFER, WHOLE, EXCHANGE, FOUND, PAGES = "offer", "whole", "exchange", "found", "pages"
SEEDS_PLACE: Final = -1
"""The place in a batch that stands for the seeds, which are found before the first."""
_SIZE: Final = struct.Struct("<I")


def read_crawl(storage: Storage) -> dict[str, Any] | None:
    """Return which crawl a storage holds; None if it holds none. Raises StorageError."""
    if (data := storage.get(CRAWL)) is None:
        return None
    crawl = storage.read(CRAWL, data)
    if isinstance(crawl, dict) and type(crawl.get("format")) is int:
        make = f"{command('crawl', 'influence', CLUSTER='URL', STORAGE='FOLDER')} with an empty FOLDER"
        require_format(f"STORAGE {storage.url}", crawl["format"], FORMAT, make, error=StorageError)
    checked: dict[str, Any] = storage.read(CRAWL, data, shapes.CRAWL)
    return checked


def folder(iteration: int) -> str:
    """Return the folder of an iteration."""
    return f"i/{iteration:08}/"


def name(iteration: int, kind: str, partition: int) -> str:
    """Return the name of a partition's object."""
    return f"{folder(iteration)}{kind}-{partition:04}"


def snapshot_name(partition: int, iteration: int) -> str:
    """Return the name of a snapshot."""
    return f"p/{partition:04}/{iteration:08}"


class Plan(NamedTuple):
    """A batch."""

    crawled: int
    """Pages crawled before."""
    partitions: list[int]
    """The partition of each document, best first."""
    keys: list[str]
    last_score: float

    def places(self, partition: int) -> list[int]:
        """Return the places of a partition's documents."""
        return [place for place, number in enumerate(self.partitions) if number == partition]


def make_plan(offers: Sequence[Mapping[str, Any]], whole: Mapping[int, Mapping[str, Any]], n: int) -> Plan | list[int]:
    """Return the ``n`` best documents offered by partitions, in the frontier's order; or the partitions that must offer
    more first, ``whole`` what they then offer."""
    best: list[tuple[float, str, int]] = []
    for number, offer in enumerate(offers):
        shown = whole.get(number, offer)
        best += zip(map(neg, shown["scores"]), shown["keys"], repeat(number))
    best.sort()  # by code points, in whose order UTF-8 is too
    del best[n:]
    taken = [number for _, _, number in best]
    all_taken = Counter(taken)
    short = [
        number
        for number, offer in enumerate(offers)
        if number not in whole
        and len(offer["keys"]) < min(n, offer["queued"])
        and all_taken[number] == len(offer["keys"])
    ]
    if short:
        return short
    keys = [key for _, key, _ in best]
    return Plan(offers[0]["crawled"], taken, keys, -best[-1][0] if best else 0.0)


@dataclass
class Exchange:
    """The results of a partition's documents of a batch."""

    head: Mapping[str, Any]
    """``rows``; ``counts``, to be added to the crawl's figures; ``pages``: name of the WARC file, or None."""
    rows: list[list[Any]]
    """By place: place; the crawl log's line (None without a page); the failure's line (None for a page, or before
    another try); the page's facts for the archive. A page that was dropped after it was read has a line and a failure;
    its line is not logged."""
    size: int
    """Bytes of all of it."""
    _name: str
    _storage: Storage
    _sections: Mapping[int, bytes]

    @cached_property
    def lines(self) -> Mapping[int, Mapping[str, Any]]:
        """The crawl log's lines of the pages, and of those that were dropped, by place."""
        return {place: line for place, line, *_ in self.rows if line is not None}

    @property
    def pages(self) -> int:
        """Pages crawled that count to N."""
        return sum(map(is_counted, self.archived))

    @property
    def archived(self) -> list[Mapping[str, Any]]:
        """The crawl log's lines of the pages that were archived."""
        return [line for _, line, failure, _ in self.rows if line is not None and failure is None]

    def links_to(self, partition: int) -> dict[int, Links]:
        """Return the links of pages to a partition's documents, by place of the page."""
        section = self._sections.get(partition)
        return {} if section is None else links_in(self._storage.read(self._name, section, shapes.SECTION))


def is_counted(line: Mapping[str, Any]) -> bool:
    """Return whether a page counts to N, by its line of the crawl log."""
    return not line.get("noindex")


def page_of(line: Mapping[str, Any], links: Sequence[Link], *, is_vain: bool = False) -> CrawledPage:
    """Return a page in the form that policies receive, from its line of the crawl log. ``is_vain``: whether it brings
    nothing."""
    entry = Entry(line["id"], line["url"], line["priority"], line["depth"], line["parent"])
    rated = Rated(line["influence"], is_counted=is_counted(line), is_vain=is_vain)
    return CrawledPage(entry, rated.worth, links)


def line_of(page: CrawledPage) -> dict[str, Any]:
    """Return the facts that other partitions need of a page that was dropped after it was read, as a line of the crawl
    log has it."""
    entry = page.entry
    facts = {"id": entry.key, "url": entry.url, "priority": entry.score, "influence": page.influence}
    return {**facts, "depth": entry.depth, "parent": entry.parent}


_KEYLESS: Final = Link("", None, "", False)


class Links(NamedTuple):
    """The links of a page to one partition's documents."""

    links: Sequence[Link]
    """In page order; those without a key, which are there for the page's own partition, last and without URL."""
    numbers: Sequence[int]
    """For each with a key, its number among all links of the page."""


def links_in(section: Mapping[str, Any]) -> dict[int, Links]:
    """Return the links of pages to a partition's documents, by place of the page."""
    targets = [Link(url or key, key, anchor, boilerplate) for key, url, anchor, boilerplate in section["targets"]]
    found: dict[int, Links] = {}
    for place, refs, numbers, keyless in section["pages"]:
        links = [*map(targets.__getitem__, refs), *repeat(_KEYLESS, keyless)]
        found[place] = Links(links, range(len(refs)) if numbers is None else numbers)
    return found


def redirects_in(section: Mapping[str, Any]) -> list[Entry]:
    """Return the documents of redirects in a section."""
    return [
        Entry(key, key, score, depth, parent, hops=hops) for key, score, depth, parent, hops in section["redirects"]
    ]


class Sections:
    """Links of a partition's pages, and targets of their redirects, in a section for each partition."""

    def __init__(self, own: int, *, anchors: bool) -> None:
        """``anchors``: whether the policy uses them."""
        self._own = own
        self._anchors = anchors
        self._targets: defaultdict[int, dict[tuple[str | bool, ...], int]] = defaultdict(dict)
        self._pages: defaultdict[int, list[list[Any]]] = defaultdict(list)
        self._redirects: defaultdict[int, list[list[Any]]] = defaultdict(list)

    def add(self, place: int, links: Iterable[tuple[int, Link]]) -> None:
        """Add the links of the page at a place, each with the partition it leads to."""
        by_target: dict[int, tuple[list[int], list[int]]] = {}
        keyless = 0
        for number, (partition, link) in enumerate(links):
            if link.key is None:
                keyless += 1
                continue
            targets = self._targets[partition]
            refs, numbers = by_target.setdefault(partition, ([], []))
            told = link[2:4] if self._anchors else ("", False)
            target = (link.key, "" if link.url == link.key else link.url, *told)
            refs.append(targets.setdefault(target, len(targets)))
            numbers.append(number)
        if keyless:
            by_target.setdefault(self._own, ([], []))
        for partition, (refs, numbers) in by_target.items():
            all_here = numbers == list(range(len(numbers)))
            without = keyless if partition == self._own else 0
            self._pages[partition].append([place, refs, None if all_here else numbers, without])

    def redirected(self, partition: int, target: Entry) -> None:
        """Add a document that is to take the place of one that led there."""
        self._redirects[partition].append([target.key, target.score, target.depth, target.parent, target.hops])

    def packed(self) -> dict[int, bytes]:
        """Return the sections by partition, without empty ones."""
        targets, pages, redirects = self._targets, self._pages, self._redirects
        return {
            one: pack({"targets": list(targets[one]), "pages": pages[one], "redirects": redirects[one]})
            for one in sorted(pages.keys() | redirects.keys())
        }


def encode(facts: Any, parts: Sequence[bytes], sections: Mapping[int, bytes]) -> bytes:
    """Return an object of parts, and of sections for partitions, as bytes. The size of its head comes first, then the
    head: the facts, and the sizes of all that follows."""
    of_sections = [(partition, len(section)) for partition, section in sections.items()]
    head = pack([facts, list(map(len, parts)), of_sections])
    return b"".join([_SIZE.pack(len(head)), head, *parts, *sections.values()])


def decode(
    storage: Storage, name: str, data: bytes, shape: Any, parts: int
) -> tuple[Any, list[bytes], dict[int, bytes]]:
    """Return the facts, the parts and the sections of an object that was encoded. Raises StorageError."""
    start = _SIZE.size + int.from_bytes(data[: _SIZE.size], "little")
    facts, own, of_sections = storage.read(name, data[_SIZE.size : start], shapes.in_parts(shape, parts))
    found: list[bytes] = []
    for size in [*own, *(size for _, size in of_sections)]:
        found.append(data[start : start + size])
        start += size
    if start != len(data):
        raise storage.damaged(name)
    partitions = (partition for partition, _ in of_sections)
    return facts, found[:parts], dict(zip(partitions, found[parts:], strict=True))


def read_exchange(storage: Storage, name: str, data: bytes) -> Exchange:
    """Return the exchange that was encoded. Raises StorageError."""
    head, _, sections = decode(storage, name, data, shapes.EXCHANGE, 0)
    return Exchange(head, head["rows"], len(data), name, storage, sections)


class Iteration:
    """The objects of an iteration, as far as they are seen. Those of a kind are read once, if all partitions have put
    theirs. Methods raise StorageError."""

    def __init__(self, storage: Storage, partitions: int, number: int) -> None:
        self._storage, self._partitions, self.number = storage, partitions, number
        self._seen: frozenset[str] = frozenset()
        self._known: dict[str, list[Any]] = {}
        """Content that was read, by kind."""
        self.short: list[int] = []
        """Partitions that must offer more before the batch can be planned."""

    def look(self) -> None:
        """See which objects are there now."""
        self._seen = frozenset(self._storage.names(folder(self.number)))

    def plan(self) -> Plan | None:
        """Return the batch; None if it is not planned yet."""
        plans = self._once(PLAN, [folder(self.number) + PLAN], shapes.PLAN)
        return Plan(*plans[0]) if plans else None

    def make_plan(self, size_of: Callable[[int], int]) -> None:
        """Plan the batch if it is not planned and the offers are enough; ``size_of`` returns its size, by the number of
        pages crawled before."""
        if self.plan() is not None or not (offers := self.offers()):
            return
        plan = make_plan(offers, self._whole(), size_of(offers[0]["crawled"]))
        if isinstance(plan, Plan):
            self._storage.put_packed(folder(self.number) + PLAN, list(plan))
            self._known = {PLAN: [plan]}
        else:
            self.short = plan

    def offers(self) -> list[Mapping[str, Any]]:
        """Return the offers of the partitions; nothing if one is missing."""
        return self._of_all(OFFER, shapes.OFFER)

    def exchanges(self) -> list[Exchange]:
        """Return the results of the batch, by partition; nothing if one is missing."""
        return self._of_all(EXCHANGE)

    def exchange(self, partition: int) -> Exchange | None:
        """Return the results of a partition's documents; None if they are missing."""
        called = name(self.number, EXCHANGE, partition)
        return self._get([called])[0] if called in self._seen else None

    def found(self) -> list[list[list[int]]]:
        """Return the places of the new documents, by partition, if they are counted; nothing if some are missing."""
        return self._of_all(FOUND, shapes.FOUND)

    def _whole(self) -> dict[int, Mapping[str, Any]]:
        names = {number: name(self.number, WHOLE, number) for number in range(self._partitions)}
        there = {number: called for number, called in names.items() if called in self._seen}
        return dict(zip(there, self._get(there.values(), shapes.WHOLE), strict=True))

    def _of_all(self, kind: str, shape: Any = None) -> list[Any]:
        return self._once(kind, [name(self.number, kind, partition) for partition in range(self._partitions)], shape)

    def _once(self, kind: str, names: list[str], shape: Any) -> list[Any]:
        """Return the content of the objects of a kind, which are read once; nothing if one is missing."""
        if kind not in self._known and self._seen.issuperset(names):
            self._known[kind] = self._get(names, shape)
        return self._known.get(kind, [])

    def _get(self, names: Collection[str], shape: Any = None) -> list[Any]:
        """Return the content of objects of a shape, or, without one, exchanges."""
        pairs = zip(names, self._storage.get_all(names), strict=True)
        if shape is None:
            return [read_exchange(self._storage, called, one) for called, one in pairs]
        return [self._storage.read(called, one, shape) for called, one in pairs]
