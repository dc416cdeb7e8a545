"""Writes a crawl from its storage as one run folder, as a crawl of one process leaves it."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from crawl4llm.base.crawl_log import CrawlLine
from crawl4llm.base.errors import InputError, PageError
from crawl4llm.base.object_store import flat_name
from crawl4llm.base.pages import PageRecord
from crawl4llm.base.reasons import KNOWN_PAGE
from crawl4llm.base.received import Given, refuse_code
from crawl4llm.base.run_folder import SEEDS, STATS, WARC, write_json, write_settings
from crawl4llm.base.settings import is_dotted
from crawl4llm.base.stats import PREFIX
from crawl4llm.cluster import Batch, BatchesSoundness, Controls, Ended, History, News, news_of, objects, write_log
from crawl4llm.crawl import REDIRECTS, UNCOUNTED, Counters, Crawl, CrawlLog, PageWriter, write_blocked
from crawl4llm.frontier import Entry, MemoryVisited
from crawl4llm.parts import Rated
from crawl4llm.policies import load_policy
from crawl4llm.tools._merging_journals import Merge
from crawl4llm.warc import Archive, ArchiveFormat, ArchiveInfo, NullArchive, cdxj, read_record


def merge(history: History, folder: Path, out: Path, settings: Given, *, index_only: bool, flat: bool = False) -> int:
    """Write a crawl into a folder, which ``out`` is to be; return the number of pages. ``flat``: objects are called by
    :func:`crawl4llm.base.object_store.flat_name` in the index. A policy of somebody else's runs only if ``settings``
    name it too. Raises InputError."""
    with TemporaryDirectory(prefix="crawl4llm-") as segments:
        writer = _Merge(history, folder, out, Path(segments), settings, index_only=index_only, flat=flat)
        return writer.run_journals() if history.is_continuous else writer.run()


_PAGES: Final = {"pages/crawled", UNCOUNTED}
"""Figures that are counted line by line, before those of exchanges are added."""


class _Merge:
    """Follows the history of a crawl, as :class:`crawl4llm.crawl.crawl.Crawl` would have gone through it."""

    def __init__(
        self,
        history: History,
        folder: Path,
        out: Path,
        segments: Path,
        settings: Given,
        *,
        index_only: bool,
        flat: bool,
    ) -> None:
        self._history, self._folder, self._segments, self._flat = history, folder, segments, flat
        self._facts: dict[str, Any] = history.crawl["facts"]
        self._facts["settings"]["OUTPUT_DIR"] = str(out)
        self._policy = str(self._facts["policy"])
        policy = load_policy(_trusted(history, settings))
        self._looks_ahead, self._rates = policy.looks_ahead, not policy.scores_influence
        self._counters = Counters()
        self._visited = self._fetched = 0
        self._waiting: tuple[int, int] = (0, 0)
        """New documents on pages that may be the crawl's last, as Crawl holds their links back."""
        self._held: list[Ended] = []
        """Those of them that ended at once."""
        self._ended: Counter[str] = Counter()
        self._iterations = 0
        self._index_only = index_only or not self._facts["settings"]["WARC_ENABLED"]
        self._archive = NullArchive() if self._index_only or history.is_continuous else self._open_archive()
        names = ("model_digest", "extractor", "corpus")
        self._writer = PageWriter(
            self._archive,
            _no_rating,
            visited=MemoryVisited(),
            counters=self._counters,
            provenance={name.replace("_", "-"): self._facts[name] for name in names},
        )

    def run(self) -> int:
        """Write everything; return the number of pages."""
        with closing(self._archive), closing(CrawlLog(self._folder)) as self._log:
            self._write_facts()
            self._counters.counts.update(self._history.crawl["seeds"])
            news = news_of(self._history.iteration(0).offers())
            self._log_ended(news.failures.get(objects.SEEDS_PLACE, []))
            self._take(news.visited.get(objects.SEEDS_PLACE, (0, 0)))
            self._counters.counts.update(news.counts)
            for batch, indexes in BatchesSoundness(self._history).batches():
                with self._history.storage.reading(objects.folder(batch.number)):
                    self._merge(batch, indexes)
        write_json(self._folder / STATS, self._stats() | self._reason())
        return self._counters.crawled

    def run_journals(self) -> int:
        """Do the same of a crawl in continuous order."""
        self._write_facts()
        merge = Merge(self._history, self._folder, index_only=self._index_only, flat=self._flat)
        figures = merge.run()
        for key, count in self._history.crawl["seeds"].items():
            figures[PREFIX + key] = figures.get(PREFIX + key, 0) + count
        write_json(self._folder / STATS, dict(sorted(figures.items())) | self._reason())
        return merge.pages

    def _write_facts(self) -> None:
        write_settings(self._folder, self._facts)
        storage = self._history.storage
        (self._folder / SEEDS).write_bytes(storage.get(objects.SEEDS) or b"")
        write_log(storage, self._folder)
        (controls := Controls(storage)).look()
        if controls.number:
            write_blocked(self._folder, controls.control.blocked)

    def _reason(self) -> dict[str, Any]:
        return {"finish_reason": self._history.end["reason"]} if self._history.end else {}

    def _merge(self, batch: Batch, indexes: list[dict[str, cdxj.IndexLine]]) -> None:
        news, rows = news_of(batch.after), batch.rows()
        at_once = Crawl.pages_at_once
        with self._opened(batch, indexes) as contents:
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
        batch: Batch,
        rows: Sequence[tuple[int, Sequence[Any]]],
        news: News,
        contents: _Contents,
        *,
        may_be_last: bool,
    ) -> None:
        lines: list[Any] = []
        failures: list[Any] = []
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
            if not self._index_only:
                page = contents.page(partition, entry, about)
                rated = Rated(line["influence"], None)
                self._writer.archive(page, entry, rated, policy=self._policy, iteration=batch.number)
            elif contents.index is not None:
                contents.index.write(contents.line(partition, entry.key, flat=self._flat))
            of_all = {"order": self._counters.crawled, "iteration": batch.number}
            of_all |= {"visited": self._visited, "fetched": self._fetched}
            lines.append({name: {**line, **of_all}[name] for name in CrawlLine.__annotations__} | line)
            self._counters.page(line["influence"], is_counted=not line.get("noindex"))
        self._log.write(lines, failures)

    def _take(self, found: tuple[int, int]) -> None:
        """Count documents that were found."""
        self._visited += found[0]
        self._fetched += found[1] if self._looks_ahead else 0

    def _log_held(self) -> None:
        held, self._held = self._held, []
        self._log_ended(held)

    def _log_ended(self, ended: Sequence[Ended]) -> None:
        """Log documents that ended when they were found."""
        self._log.write([], [one.line for one in sorted(ended, key=lambda one: one[:3])])

    def _take_waiting(self) -> None:
        waiting, self._waiting = self._waiting, (0, 0)
        self._take(waiting)

    def _open_archive(self) -> Archive:
        # most storages have no archive to write
        from crawl4llm.warc import ArchiveWriter

        stated, given = self._history.crawl["archive"], self._facts["settings"]
        info = ArchiveInfo(uuid.UUID(self._facts["crawl_id"]), stated["prefix"], stated["start_date"], stated["fields"])
        form = ArchiveFormat(compression=given["WARC_COMPRESSION"])
        return ArchiveWriter(self._folder / WARC, info, given["WARC_MAX_BYTES"], None, form)

    def _opened(self, batch: Batch, indexes: list[dict[str, cdxj.IndexLine]]) -> _Contents:
        warc, index_only = self._folder / WARC, self._index_only
        return _Contents(self._history, batch, indexes, self._segments, warc, index_only=index_only)

    def _stats(self) -> dict[str, Any]:
        counts: dict[str, Any] = dict(self._counters.counts)
        for key, count in self._ended.items():
            counts[key] = counts.get(key, 0) + count
        ended = sum(count for key, count in counts.items() if key.partition("/")[0] in ("failed", "dropped"))
        zeros = ("errors", "frontier/leased", "frontier/reranked", "pages/no_text", REDIRECTS)
        figures = {
            **dict.fromkeys(zeros, 0),
            **({"pages/unrated": 0} if self._rates else {}),
            **counts,
            "pages/fetched": self._fetched,
            "pages/visited": self._visited,
            "frontier/queued": self._visited - self._counters.crawled - ended,
            "influence/mean": self._counters.mean_influence,
            "iterations": self._iterations,
        }
        return dict(sorted({PREFIX + key: value for key, value in figures.items()}.items()))


def _is_known(line: Mapping[str, Any] | None, failure: Mapping[str, Any] | None) -> bool:
    """Return whether a document was answered without a request; a redirect to a known one was requested."""
    if line is None or failure is None or failure["reason"] != KNOWN_PAGE:
        return False
    return bool(line["id"] == failure["id"])


class _Contents:
    """The archived pages of a batch, each partition's file on disk while it is needed."""

    def __init__(
        self,
        history: History,
        batch: Batch,
        indexes: list[dict[str, cdxj.IndexLine]],
        folder: Path,
        warc: Path,
        *,
        index_only: bool,
    ) -> None:
        self._history, self._batch, self._folder = history, batch, folder
        self._lines = indexes
        self._places: dict[int, tuple[str, int]] = {}
        self._warc = warc
        self._index_only = index_only
        self.index: Any = None

    def __enter__(self) -> _Contents:
        names = [exchange.head["pages"] for exchange in self._batch.exchanges]
        if self._index_only and any(names):
            self._warc.mkdir(exist_ok=True)
            self.index = (self._warc / cdxj.INDEX_NAME).open("ab")
        for number, name in enumerate(names):
            if name is None:
                continue
            if self._index_only:
                self._places[number] = self._history.pages.place(name)
            else:
                (self._folder / str(number)).write_bytes(self._history.pages.get(name))
        return self

    def __exit__(self, *_: object) -> None:
        for path in self._folder.iterdir():
            path.unlink()
        if self.index is not None:
            self.index.close()

    def page(self, partition: int, entry: Entry, about: Mapping[str, Any]) -> PageRecord:
        """Return a page as it was archived. Raises InputError and PageError."""
        _, offset, length = self._line(partition, entry.key).place
        line = self._line(partition, entry.key).at(str(partition), offset, length)
        at = cdxj.parse_entry(line.decode(), f"STORAGE {self._history.storage.url}: the index of {entry.key}")
        try:
            content = read_record(self._folder, at)
        except PageError as error:
            name = self._batch.exchanges[partition].head["pages"]
            raise self._history.storage.damaged(name, str(error).rpartition("/")[2]) from None
        page = PageRecord(entry.key, entry.url, about["date"], language=about["language"], opt_outs=about["opt_outs"])
        if at.mime == "text/html":
            page.html = content
        else:
            page.text = content.decode("utf-8", "replace")
        return page

    def line(self, partition: int, key: str, *, flat: bool) -> bytes:
        """Return the line of the index of all, which names objects of the storage."""
        name, start = self._places[partition]
        line = self._line(partition, key)
        _, offset, length = line.place
        return line.at(flat_name(name) if flat else name, start + offset, length)

    def _line(self, partition: int, key: str) -> cdxj.IndexLine:
        try:
            return self._lines[partition][key]
        except LookupError:
            raise InputError(f"STORAGE {self._history.storage.url}: the page {key} is not in the archive") from None


def _trusted(history: History, settings: Given) -> str:
    """Return the name of a crawl's policy. Raises InputError if it is code that the user does not name."""
    name: str = history.crawl["facts"]["settings"]["URL_POLICY"]
    if is_dotted(name):
        refuse_code(f"STORAGE {history.storage.url}", objects.CRAWL, "URL_POLICY", name, settings.get("URL_POLICY"))
    return name


async def _no_rating(pages: Sequence[PageRecord]) -> list[Any]:
    raise NotImplementedError  # pages were rated when they were crawled
