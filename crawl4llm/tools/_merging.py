"""Writes a crawl from its storage as one run folder, as a crawl of one process leaves it."""

from __future__ import annotations

import uuid
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

from crawl4llm import cluster
from crawl4llm.base.crawl_log import CrawlLine
from crawl4llm.base.errors import InputError, PageError
from crawl4llm.base.object_store import flat_name
from crawl4llm.base.pages import PageRecord
from crawl4llm.base.reasons import KNOWN_PAGE
from crawl4llm.base.received import Given, refuse_code
from crawl4llm.base.run_folder import SEEDS, STATS, WARC, write_json, write_settings
from crawl4llm.base.settings import is_dotted
from crawl4llm.base.stats import PREFIX
from crawl4llm.cluster import journal, objects
from crawl4llm.crawl import REDIRECTS, UNCOUNTED, Counters, Crawl, CrawlLog, PageWriter, write_blocked
from crawl4llm.frontier import Entry, MemoryVisited
from crawl4llm.parts import Rated
from crawl4llm.policies import load_policy
from crawl4llm.warc import Archive, ArchiveFormat, ArchiveInfo, FileNames, NullArchive, cdxj, read_record

if TYPE_CHECKING:
    from crawl4llm.policies import Policy


def merge(
    history: cluster.History, folder: Path, out: Path, settings: Given, *, index_only: bool, flat: bool = False
) -> int:
    """Write a crawl into a folder, which ``out`` is to be; return the number of pages. ``flat``: objects are called by
    :func:`crawl4llm.base.object_store.flat_name` in the index. A policy of somebody else's runs only if ``settings``
    name it too. Raises InputError."""
    facts: dict[str, Any] = history.crawl["facts"]
    facts["settings"]["OUTPUT_DIR"] = str(out)
    policy = load_policy(_trusted(history, settings))
    has_archive = facts["settings"]["WARC_ENABLED"]
    if has_archive and (index_only or history.is_continuous):  # else the archive's writer makes it
        (folder / WARC).mkdir()
        (folder / WARC / cdxj.INDEX_NAME).touch()
    write_settings(folder, facts)
    (folder / SEEDS).write_bytes(history.storage.get(objects.SEEDS) or b"")
    cluster.write_log(history.storage, folder)
    (controls := cluster.Controls(history.storage)).look()
    if controls.number:
        write_blocked(folder, controls.control.blocked)
    to = _Target(history, folder, index_only=index_only or not has_archive, flat=flat)
    merging: _Commits | _Batches = _Commits(to) if history.is_continuous else _Batches(to, policy)
    figures = merging.write()
    reason = {"finish_reason": history.end["reason"]} if history.end else {}
    write_json(folder / STATS, dict(sorted(figures.items())) | reason)
    return merging.pages


class _Target(NamedTuple):
    """The run folder that is written, and the history of the crawl."""

    history: cluster.History
    folder: Path
    index_only: bool
    flat: bool

    def listed(self, line: cdxj.IndexLine, name: str) -> bytes:
        """Return the line of a page that stays in the storage, in the segment of that name."""
        filename, start = self.history.pages.place(name)
        return _moved(line, flat_name(filename) if self.flat else filename, start)

    def list(self, lines: Iterable[bytes]) -> None:
        """Put lines into the index."""
        with (self.folder / WARC / cdxj.INDEX_NAME).open("ab") as index:
            index.writelines(lines)


def _moved(line: cdxj.IndexLine, filename: str, start: int) -> bytes:
    """Return the line of an index for a page whose segment begins at ``start`` in a file."""
    _, offset, length = line.place
    return line.at(filename, start + offset, length)


# -- batch order -------------------------------------------------------------------------------------------------------

_PAGES: Final = {"pages/crawled", UNCOUNTED}
"""Figures that are counted line by line, before those of exchanges are added."""


class _Batches:
    """Follows the history of a crawl, as :class:`crawl4llm.crawl.crawl.Crawl` would have gone through it."""

    def __init__(self, to: _Target, policy: type[Policy]) -> None:
        self._to, self._history = to, to.history
        self._facts: dict[str, Any] = to.history.crawl["facts"]
        self._looks_ahead, self._rates = policy.looks_ahead, not policy.scores_influence
        self._counters = Counters()
        self._visited = self._fetched = self._iterations = 0
        self._waiting: tuple[int, int] = (0, 0)
        """New documents on pages that may be the crawl's last, as Crawl holds their links back."""
        self._held: list[cluster.Ended] = []
        """Those of them that ended at once."""
        self._ended: Counter[str] = Counter()
        self._archive = NullArchive() if to.index_only else self._open_archive()
        names = ("model_digest", "extractor", "corpus")
        self._writer = PageWriter(
            self._archive,
            _no_rating,
            visited=MemoryVisited(),
            counters=self._counters,
            provenance={name.replace("_", "-"): self._facts[name] for name in names},
        )

    @property
    def pages(self) -> int:
        """The number of pages so far."""
        return self._counters.crawled

    def write(self) -> dict[str, Any]:
        """Write logs and archive; return the figures."""
        with closing(self._archive), closing(CrawlLog(self._to.folder)) as self._log:
            self._counters.counts.update(self._history.crawl["seeds"])
            news = cluster.news_of(self._history.iteration(0).offers())
            self._held += news.failures.get(objects.SEEDS_PLACE, [])
            self._log_held()
            self._take(news.visited.get(objects.SEEDS_PLACE, (0, 0)))
            self._counters.counts.update(news.counts)
            for batch, indexes in cluster.BatchesSoundness(self._history).batches():
                with (
                    self._history.storage.reading(objects.folder(batch.number)),
                    TemporaryDirectory(dir=self._to.folder) as segments,
                ):
                    self._merge(batch, _Contents(self._history, batch, indexes, Path(segments)))
        return self._stats()

    def _merge(self, batch: cluster.Batch, contents: _Contents) -> None:
        if not self._to.index_only:
            contents.fetch()
        news, rows = cluster.news_of(batch.after), batch.rows()
        at_once = Crawl.pages_at_once
        for start in range(0, len(rows), at_once):
            may_be_last = self._counters.counted + len(rows) - start >= self._history.max_pages
            if not may_be_last:
                self._take_waiting()
            self._merge_slice(batch, rows[start : start + at_once], news, contents, may_be_last=may_be_last)
            self._held += news.failures.get(start // at_once, [])
            if not may_be_last:
                self._log_held()
        if batch.after:
            self._take_waiting()
            self._log_held()
        for exchange in batch.exchanges:
            counts = exchange.head["counts"]  # pages are counted already
            self._counters.counts.update({key: count for key, count in counts.items() if key not in _PAGES})
        self._counters.counts.update(news.counts)
        places = self._history.crawl["identity"]["CRAWL_BATCH_SIZE"] if batch.number else len(rows)
        self._iterations += bool(batch.after) or len(rows) == places
        self._archive.flush()

    def _merge_slice(
        self,
        batch: cluster.Batch,
        rows: Sequence[tuple[int, Sequence[Any]]],
        news: cluster.News,
        contents: _Contents,
        *,
        may_be_last: bool,
    ) -> None:
        lines: list[Any] = []
        failures: list[Any] = []
        listed: list[bytes] = []
        for partition, (place, line, failure, about) in rows:
            self._fetched += not self._looks_ahead and not _is_known(line, failure)
            if failure is not None:
                failures.append(failure)
                self._ended[f"{failure['outcome']}/{failure['reason']}"] += 1
            if line is None:
                continue
            found = news.visited.get(place, (0, 0))
            if may_be_last:
                self._waiting = self._waiting[0] + found[0], self._waiting[1] + found[1]
            else:
                self._take(found)
            if failure is not None:
                continue
            entry = Entry(line["id"], line["url"], line["priority"], line["depth"], line["parent"])
            if not self._to.index_only:
                page, rated = contents.page(partition, entry, about), Rated(line["influence"], None)
                self._writer.archive(page, entry, rated, policy=str(self._facts["policy"]), iteration=batch.number)
            elif (name := contents.segment(partition)) is not None:
                listed.append(self._to.listed(contents.line(partition, entry.key), name))
            of_all = {"order": self._counters.crawled, "iteration": batch.number}
            of_all |= {"visited": self._visited, "fetched": self._fetched}
            lines.append({name: {**line, **of_all}[name] for name in CrawlLine.__annotations__} | line)
            self._counters.page(line["influence"], is_counted=not line.get("noindex"))
        self._log.write(lines, failures)
        if listed:
            self._to.list(listed)

    def _take(self, found: tuple[int, int]) -> None:
        """Count documents that were found."""
        self._visited += found[0]
        self._fetched += found[1] if self._looks_ahead else 0

    def _log_held(self) -> None:
        """Log documents that ended when they were found."""
        self._log.write([], [one.line for one in sorted(self._held, key=lambda one: one[:3])])
        self._held = []

    def _take_waiting(self) -> None:
        self._take(self._waiting)
        self._waiting = (0, 0)

    def _open_archive(self) -> Archive:
        # most storages have no archive to write
        from crawl4llm.warc import ArchiveWriter

        stated, given = self._history.crawl["archive"], self._facts["settings"]
        info = ArchiveInfo(uuid.UUID(self._facts["crawl_id"]), stated["prefix"], stated["start_date"], stated["fields"])
        form = ArchiveFormat(compression=given["WARC_COMPRESSION"])
        return ArchiveWriter(self._to.folder / WARC, info, given["WARC_MAX_BYTES"], None, form)

    def _stats(self) -> dict[str, Any]:
        counts = self._counters.counts.copy()
        counts.update(self._ended)
        ended = sum(count for key, count in counts.items() if key.partition("/")[0] in ("failed", "dropped"))
        zeros = ("errors", "frontier/leased", "frontier/reranked", "pages/no_text", REDIRECTS)
        figures: dict[str, Any] = {
            **dict.fromkeys(zeros, 0),
            **({"pages/unrated": 0} if self._rates else {}),
            **counts,
            "pages/fetched": self._fetched,
            "pages/visited": self._visited,
            "frontier/queued": self._visited - self._counters.crawled - ended,
            "influence/mean": self._counters.mean_influence,
            "iterations": self._iterations,
        }
        return {PREFIX + key: value for key, value in figures.items()}


def _is_known(line: Mapping[str, Any] | None, failure: Mapping[str, Any] | None) -> bool:
    """Return whether a document was answered without a request; a redirect to a known one was requested."""
    if line is None or failure is None or failure["reason"] != KNOWN_PAGE:
        return False
    return bool(line["id"] == failure["id"])


class _Contents(NamedTuple):
    """The archived pages of a batch, each partition's segment on disk while it is needed."""

    history: cluster.History
    batch: cluster.Batch
    indexes: Sequence[Mapping[str, cdxj.IndexLine]]
    folder: Path

    def segment(self, partition: int) -> str | None:
        """Return the name of a partition's segment; None if it has archived no page."""
        name: str | None = self.batch.exchanges[partition].head["pages"]
        return name

    def fetch(self) -> None:
        """Put all segments on disk. Raises InputError."""
        for partition in range(len(self.batch.exchanges)):
            if (name := self.segment(partition)) is not None:
                (self.folder / str(partition)).write_bytes(self.history.pages.get(name))

    def page(self, partition: int, entry: Entry, about: Mapping[str, Any]) -> PageRecord:
        """Return a page as it was archived. Raises InputError and PageError."""
        line = _moved(self.line(partition, entry.key), str(partition), 0)
        at = cdxj.parse_entry(line.decode(), f"STORAGE {self.history.storage.url}: the index of {entry.key}")
        try:
            content = read_record(self.folder, at)
        except PageError as error:
            raise self.history.storage.damaged(str(self.segment(partition)), str(error).rpartition("/")[2]) from None
        page = PageRecord(entry.key, entry.url, about["date"], language=about["language"], opt_outs=about["opt_outs"])
        if at.mime == "text/html":
            page.html = content
        else:
            page.text = content.decode("utf-8", "replace")
        return page

    def line(self, partition: int, key: str) -> cdxj.IndexLine:
        """Return the line of a page in its segment's index. Raises InputError."""
        try:
            return self.indexes[partition][key]
        except LookupError:
            raise InputError(f"STORAGE {self.history.storage.url}: the page {key} is not in the archive") from None


# -- continuous order --------------------------------------------------------------------------------------------------


class _Commits:
    """Writes a crawl in continuous order from its journals.

    Commits are taken by turn and then by partition, so that the order depends on nothing but the storage. A turn is
    above those of all commits that its worker knew of, so that it follows the time in which they were made.
    """

    def __init__(self, to: _Target) -> None:
        self._to, self._history = to, to.history
        self.pages = self._visited = 0
        self._own_visited, self._own_fetched = Counter[int](), Counter[int]()
        self._orders: dict[int, array[int]] = defaultdict(lambda: array("Q"))
        """By partition, the order in the crawl of each of its pages."""
        self._file: IO[bytes] | None = None
        self._serial, self._largest = -1, to.history.crawl["facts"]["settings"]["WARC_MAX_BYTES"]
        self._names = FileNames(to.history.crawl["archive"]["prefix"], "")

    def write(self) -> dict[str, Any]:
        """Write logs and archive; return the figures."""
        sound = cluster.CommitsSoundness(self._history)
        with closing(CrawlLog(self._to.folder)) as log, ExitStack() as self._files:
            for one in sound.commits():
                name = one.commit.head.pages
                with self._history.storage.reading(journal.name(one.partition, journal.LOG, one.commit.number)):
                    log.write(self._lines(one), one.failures)
                if name is None:
                    continue
                with self._history.storage.reading(cluster.index_name(name)):
                    self._put(name, one.listed)
        figures = sound.figures.all(self._visited)
        for key, count in self._history.crawl["seeds"].items():
            figures[PREFIX + key] = figures.get(PREFIX + key, 0) + count
        return figures

    def _lines(self, checked: cluster.CheckedCommit) -> list[Any]:
        partition, lines = checked.partition, checked.lines
        for line in lines:
            self._own_fetched[partition] = line["fetched"]
            others = self._visited - self._own_visited[partition]
            line |= {"order": self.pages, "visited": others + line["visited"], "fetched": self._own_fetched.total()}
            if (like := line.get("near_duplicate_of")) is not None:
                if like >= len(self._orders[partition]):
                    name = journal.name(partition, journal.LOG, checked.commit.number)
                    raise self._history.storage.damaged(name, f"a page is like page {like}, which is not before it")
                line["near_duplicate_of"] = self._orders[partition][like]
            if "near_duplicate_of" in line:
                self._orders[partition].append(self.pages)
            self.pages += 1
        new = len(checked.commit.fingerprints) // cluster.FINGERPRINT
        self._own_visited[partition] += new
        self._visited += new
        return lines

    def _put(self, name: str, lines: list[cdxj.IndexLine]) -> None:
        """Put a segment into the present file or the next one, and its lines into the index."""
        if self._to.index_only:
            self._to.list(self._to.listed(line, name) for line in lines)
            return
        data = self._history.pages.get(name)
        if self._file is None or self._file.tell() + len(data) > self._largest:
            self._files.close()
            self._serial += 1
            filename = f"{self._names.new(self._serial)}{''.join(Path(name).suffixes[-2:])}"
            self._file = self._files.enter_context((self._to.folder / WARC / filename).open("wb"))
        self._to.list(_moved(line, Path(self._file.name).name, self._file.tell()) for line in lines)
        self._file.write(data)


def _trusted(history: cluster.History, settings: Given) -> str:
    """Return the name of a crawl's policy. Raises InputError if it is code that the user does not name."""
    name: str = history.crawl["facts"]["settings"]["URL_POLICY"]
    if is_dotted(name):
        refuse_code(f"STORAGE {history.storage.url}", objects.CRAWL, "URL_POLICY", name, settings.get("URL_POLICY"))
    return name


async def _no_rating(pages: Sequence[PageRecord]) -> list[Any]:
    raise NotImplementedError  # pages were rated when they were crawled
