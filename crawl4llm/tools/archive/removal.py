"""``scrapy archive repair`` and ``purge``: the removal of records from a dataset, all or nothing.

A repair removes everything that is no complete page, and rewrites the indexes. A page stays if all its records exist,
if a payload that it repeats exists, and if the crawl log has it. A killed crawl may have archived pages that it had not
logged; when resumed, it treats them as not crawled. The first copy of a repeated record stays.

A purge removes a domain that opted out: pages, redirects through the domain, texts, and the entries of indexes and log.
Lines of other pages stay in the crawl log, even if the pages were found on a page of the domain. The lines of
``failures.jsonl`` stay too: they say that the domain's documents were refused. It removes documents from exports, and
rewrites manifest and card.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime
from functools import lru_cache
from itertools import chain, count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import orjson

from crawl4llm.base.bars import Progress
from crawl4llm.base.command_lines import command
from crawl4llm.base.compression import zstd
from crawl4llm.base.domains import Domain, domain_to_purge
from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.input_files import LONGEST_ROW, input_lines, open_input
from crawl4llm.base.run_folder import read_json
from crawl4llm.base.tables import Fact, Line, Part, facts as named
from crawl4llm.base.terminal import add_question_options, can_ask, confirm
from crawl4llm.base.within import require_all_within, require_within
from crawl4llm.tools._action import Action
from crawl4llm.tools._text_sources import parquet_rows
from crawl4llm.tools.archive.facts import TEXT, Facts, parse_log_line, read_lines
from crawl4llm.tools.archive.folder import LOST, PURGED, Changes, Dataset, changing, idle_dataset, now, resumable
from crawl4llm.tools.archive.rewrite import find_refilled, keep_texts, stage_rewrite
from crawl4llm.tools.archive.survey import surveyed
from crawl4llm.tools.export.card import CARD, card, damaged
from crawl4llm.tools.export.folder import DOCUMENTS, MANIFEST, counted, listed_shards
from crawl4llm.tools.export.formats import PARQUET, Document, ShardFacts, ShardWriter, date_of
from crawl4llm.warc import WarcReader, parse_index_line

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_CUT = ".cut"
_COPIED = 1 << 20
_Ask: TypeAlias = "Callable[[str], None]"


# -- repair -----------------------------------------------------------------------------------------------------------


def repair(dataset: Dataset, processes: int | None, *, discard: bool) -> Iterator[str]:
    """Repair a dataset; yields lines about the changes once all are in place. Raises InputError."""
    with changing(dataset.base) as changes, surveyed(dataset, processes, digests=True) as facts:
        _refuse_foreign(dataset, facts)
        told = [*_mend_log(dataset, facts, changes)]
        _select_whole_pages(dataset, facts)
        files = facts.column("SELECT file FROM damage UNION SELECT file FROM gone")
        told += [_cut(dataset, facts, changes, file, discard=discard) for file in files]
        of_indexes = stage_rewrite(dataset, facts, changes, files)
        told += [*_index_changes(dataset, changes), *of_indexes, *_lost_pages(dataset, facts, changes)]
        if told:
            changes.commit()
    yield from told or ["nothing to repair"]


def _refuse_foreign(dataset: Dataset, facts: Facts) -> None:
    foreign = """SELECT f.name, p.what FROM files f JOIN problems p ON p.file = f.name
        WHERE f.bytes = 0 AND p.offset = 0"""
    for name, what in facts.rows(foreign):
        path = dataset.warc_files()[name]
        if path.stat().st_size:
            raise InputError(f"{path}: {what}; it cannot be read to its end: move it away, then repair the rest")


def _mend_log(dataset: Dataset, facts: Facts, changes: Changes) -> Iterator[str]:
    """Read the log into the facts, without its last line if that is incomplete."""
    number = rest = 0
    for number, line in enumerate(read_lines(dataset.log), 1):
        if rest:
            raise InputError(f"{dataset.log} line {number - 1} is no whole entry; restore the file from a backup")
        parsed = parse_log_line(line)
        if parsed is None:
            rest = len(line)
        else:
            facts.add("log", [(number, parsed["id"], None)])
    if rest:
        changes.write(dataset.log, islice(read_lines(dataset.log), number - 1))
        yield f"{dataset.log.name}: its last line was cut short, {rest:,} bytes are removed"


def _select_whole_pages(dataset: Dataset, facts: Facts) -> None:
    if facts.first("SELECT 1 FROM documents") is None:  # not of a crawl of ours: each record is by itself
        facts.execute("INSERT OR IGNORE INTO kept SELECT file, offset FROM records WHERE kind != 'unreadable'")
        return
    logged = "AND d.doc IN (SELECT doc FROM log)" if dataset.log.exists() else ""
    facts.execute(f"""INSERT OR IGNORE INTO kept SELECT r.file, r.offset
        FROM documents d JOIN records c ON c.file = d.file AND c.offset = d.offset
        JOIN records r ON r.file = d.file AND r.page = d.page
        WHERE d.m_file = d.file AND d.m_page = d.page {logged}
        AND (c.kind != 'revisit' OR EXISTS (SELECT 1 FROM originals o JOIN documents e
            ON e.file = o.file AND e.offset = o.offset AND e.m_page = e.page WHERE o.rid = c.refers))""")
    facts.execute("""INSERT OR IGNORE INTO kept SELECT r.file, r.offset
        FROM no_pages e JOIN records r ON r.file = e.file AND r.page = e.page""")
    keep_texts(facts)
    facts.execute("""DELETE FROM kept WHERE (file, offset) IN (SELECT file, offset FROM (
        SELECT file, offset, row_number() OVER (PARTITION BY rid ORDER BY file, offset) AS copy
        FROM kept JOIN records USING (file, offset) WHERE name != '') WHERE copy > 1)""")


def _cut(dataset: Dataset, facts: Facts, changes: Changes, file: int, *, discard: bool) -> str:
    """Keep aside the stretches that a file loses, and describe them."""
    path = dataset.warc_files()[facts.names()[file]]
    query = """SELECT offset, length, 1 FROM gone WHERE file = ?1
        UNION ALL SELECT offset, length, 0 FROM damage WHERE file = ?1 ORDER BY 1"""
    stretches = list(facts.rows(query, file))
    size = sum(length for _, length, _ in stretches)
    records = sum(whole for _, _, whole in stretches)
    said = f"{path.name}: {size:,} bytes from offset {stretches[0][0] if stretches else 0} on are cut"
    said += f", {records:,} records among them" if records else ""
    if discard or not size:
        return said
    names = chain([f"{path.name}{_CUT}"], (f"{path.name}.{number}{_CUT}" for number in count(2)))
    aside = next(one for one in map(path.with_name, names) if not one.exists())
    reader = WarcReader(path)
    places = (
        (at, offset + length) for offset, length, _ in stretches for at in range(offset, offset + length, _COPIED)
    )
    changes.write(aside, (reader.raw(at, min(_COPIED, end - at)) for at, end in places), like=path)
    return f"{said}; they are kept in {aside.name}"


def _index_changes(dataset: Dataset, changes: Changes) -> Iterator[str]:
    """Yield the changes of the indexes; those that have none are left alone."""
    for index in (dataset.index, dataset.text_index, dataset.sorted_index):
        new = changes.staged(index)
        if new is None:
            continue
        if index.exists() and filecmp.cmp(index, new, shallow=False):
            changes.leave(index)
        else:
            now = sum(1 for _ in read_lines(new))
            whole = sum(parse_index_line(line) is not None for line in read_lines(index))
            yield f"{index.name}: {now:,} entries, there were {whole:,}"


def _lost_pages(dataset: Dataset, facts: Facts, changes: Changes) -> list[str]:
    """Note the pages of the log that are gone."""
    path = dataset.base / LOST
    facts.load_lost(dataset)
    gone = facts.column("""SELECT doc FROM log WHERE doc NOT IN (SELECT doc FROM lost) AND doc NOT IN
        (SELECT d.doc FROM documents d JOIN kept k ON k.file = d.file AND k.offset = d.offset) ORDER BY number""")
    if not gone:
        return []
    date = now()
    lines = (f"{json.dumps({'date': date, 'id': doc})}\n".encode() for doc in gone)
    changes.write(path, chain(read_lines(path), lines))
    return [f"{dataset.log.name}: {len(gone):,} of its pages are gone; they are listed in {LOST}"]


def _add_repair_options(parser: argparse._ArgumentGroup) -> None:
    parser.add_argument("--discard", action="store_true", help="do not keep the removed bytes")


def _repair(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[str]:
    dataset = idle_dataset(opts.arguments[0], settings)
    with resumable(dataset, settings):
        yield from repair(dataset, opts.jobs, discard=opts.discard)


REPAIR = Action(
    "Cut files back to their last whole page, remove damaged pages, and repair the indexes; removed bytes are kept in "
    "FILE.cut (also takes --jobs).",
    _repair,
    "DIR",
    _add_repair_options,
)


# -- purge ------------------------------------------------------------------------------------------------------------


def purge(
    dataset: Dataset, domain: Domain, processes: int | None, listing: Path | None = None, ask: _Ask | None = None
) -> Iterator[Part]:
    """Purge a domain with all below it; yields lines about the removed documents afterwards.

    ``ask`` receives what will be removed, before it is, and may raise InputError. ``listing`` is a file that ``scrapy
    frontier --purge`` wrote; the run's own is used if it exists. Raises InputError without any change if a file is
    damaged, because the damaged part may hold pages of the domain.
    """
    if listing is None:
        listing = dataset.base / f"purge-{domain.name}.jsonl"
        require_within(dataset.base, listing)
    with changing(dataset.base) as changes, surveyed(dataset, processes) as facts:
        problem = facts.first(
            "SELECT f.name, d.offset FROM damage d JOIN files f ON f.file = d.file ORDER BY d.file, d.offset"
        )
        if problem is not None:
            raise InputError(f"{dataset.root / problem[0]}: damaged at {problem[1]}; repair the dataset, then purge it")
        _find_documents(dataset, facts, domain, listing)
        _select_others(facts)
        counts = _counts(facts)
        if not any(counts.values()) and not listing.exists():
            yield f"nothing of {domain.name} in {dataset.given}"
            return
        if ask is not None:
            going = ", ".join(f"{count:,} {what}" for what, count in counts.items())
            ask(f"purge {domain.name} and all below it from {dataset.given}: {going}")
        files = facts.column("SELECT DISTINCT file FROM gone UNION SELECT file FROM refilled")
        told = stage_rewrite(dataset, facts, changes, files)
        counts["pages in the log"] = _stage_log(dataset, facts, changes)
        _stage_note(dataset, facts, changes, domain, counts)
        if listing.exists() and listing.resolve().parent == dataset.base.resolve():
            changes.remove(dataset.base / listing.name)
        changes.commit()
    yield from named(counts)
    yield from told


def _find_documents(dataset: Dataset, facts: Facts, domain: Domain, listing: Path) -> None:
    """Fill the table ``purged``: documents of the domain, by the URL of their record, the log, or the listing."""
    facts.define("of_domain", lru_cache(maxsize=1 << 16)(domain.holds))
    facts.execute("CREATE TEMP TABLE purged(doc TEXT PRIMARY KEY)")
    facts.execute("INSERT OR IGNORE INTO purged SELECT doc FROM documents WHERE of_domain(url)")
    for path in (dataset.log, listing):
        for number, line in enumerate(read_lines(path), 1):
            parsed = parse_log_line(line)
            if parsed is None:
                raise InputError(f"{path} line {number} is no whole entry; repair the dataset, then purge it")
            if path == dataset.log:
                facts.execute("INSERT OR IGNORE INTO log VALUES (?, ?, NULL)", number, parsed["id"])
            if path == listing or domain.holds(str(parsed.get("url"))):
                facts.execute("INSERT OR IGNORE INTO purged VALUES (?)", parsed["id"])


def _select_others(facts: Facts) -> None:
    """Fill the tables ``kept`` and ``refilled``: revisits of other domains, whose original goes."""
    facts.execute("INSERT OR IGNORE INTO kept SELECT file, offset FROM records WHERE NOT of_domain(url)")
    facts.execute("""DELETE FROM kept WHERE (file, offset) IN (SELECT r.file, r.offset FROM documents d
        JOIN records r ON r.file = d.file AND r.page = d.page AND r.kind != 'warcinfo'
        WHERE d.doc IN (SELECT doc FROM purged))""")
    facts.execute("""DELETE FROM kept WHERE (file, offset) IN
        (SELECT t.file, t.offset FROM texts t JOIN gone g ON g.rid = t.refers)""")
    find_refilled(facts)


def _counts(facts: Facts) -> dict[str, int]:
    return {
        "documents": facts.count("SELECT count(*) FROM documents WHERE doc IN (SELECT doc FROM purged)"),
        "records": facts.count("SELECT count(*) FROM gone"),
        "texts": facts.count(f"SELECT count(*) FROM gone WHERE kind = '{TEXT}'"),
        "revisits filled": facts.count("SELECT count(*) FROM refilled"),
    }


def _stage_log(dataset: Dataset, facts: Facts, changes: Changes) -> int:
    """Stage the crawl log without the domain's pages; returns how many there were."""
    if not dataset.log.exists():
        return 0
    is_gone = "SELECT 1 FROM log JOIN purged USING (doc) WHERE number = ?"
    lines = enumerate(read_lines(dataset.log), 1)
    changes.write(dataset.log, (line for number, line in lines if facts.first(is_gone, number) is None))
    return facts.count("SELECT count(*) FROM log JOIN purged USING (doc)")


def _stage_note(dataset: Dataset, facts: Facts, changes: Changes, domain: Domain, counts: dict[str, int]) -> None:
    """Stage the log of purges with one line more."""
    path = dataset.base / PURGED
    records = facts.column("SELECT name FROM gone ORDER BY file, offset")
    note = {"date": now(), "domain": domain.name, "counts": counts, "records": records}
    changes.write(path, chain(read_lines(path), [f"{json.dumps(note)}\n".encode()]))


def purge_export(folder: Path, domain: Domain, ask: _Ask | None = None) -> Iterator[Part]:
    """Purge a domain from a finished export; yields how many documents went. Raises InputError.

    ``ask`` is told before how many will go, and may raise InputError.
    """
    require_all_within(folder)
    with changing(folder) as changes:
        manifest = read_json(folder / MANIFEST)
        kept, gone = [], 0
        for shard in Progress(listed_shards(folder, manifest), "Purging", unit=" files"):
            path = folder / DOCUMENTS / shard["name"]
            facts = _purge_shard(path, changes.stage(path), domain, tokens=shard.get("tokens") is not None)
            gone += shard["documents"] - facts.documents
            if facts.documents == shard["documents"]:
                changes.leave(path)
                kept.append(shard)
            elif facts.documents:
                kept.append({**shard, **facts.entry(), "name": shard["name"]})
            else:
                changes.leave(path)
                changes.remove(path)
        if gone:
            if ask is not None:
                ask(f"purge {domain.name} and all below it from {folder}: {gone:,} documents")
            _stage_manifest(folder, changes, {**manifest, "shards": kept}, domain, gone)
            changes.commit()
    yield Fact("documents", gone, "")
    yield Line(f"{folder}: {gone:,} documents")


def _stage_manifest(folder: Path, changes: Changes, manifest: dict[str, Any], domain: Domain, gone: int) -> None:
    """Stage a manifest and a card, with the counts of the files that are left and a note of the purge."""
    try:
        manifest |= counted(manifest["shards"], tokens="tokenizer" in manifest.get("tokens", {}))
        manifest["purged"] = [*manifest.get("purged", []), {"date": now(), "domain": domain.name, "documents": gone}]
    except (KeyError, TypeError):
        raise damaged(folder / MANIFEST) from None
    changes.write(folder / CARD, [card(manifest, folder / MANIFEST).encode()])
    changes.write(folder / MANIFEST, [f"{json.dumps(manifest, indent=2)}\n".encode()])


def _purge_shard(path: Path, new: Path, domain: Domain, *, tokens: bool) -> ShardFacts:
    """Write a file without the domain's documents; returns its entry of the manifest."""
    form = path.name.partition(".")[2]
    failed = as_input_error(f"{path} cannot be written")
    with failed, new.open("wb") as file, closing(ShardWriter(file, form, tokens=tokens)) as shard:
        for document in _documents(path):
            if not domain.holds(document.url):
                shard.add(document)
        return shard.finish(path.name)


def _documents(path: Path) -> Iterator[Document]:
    """Yield the documents in a file of an export. Raises InputError if it cannot be read."""
    try:
        lines = input_lines(path, newline="\n", longest=LONGEST_ROW)
        for row in _parquet_rows(path) if path.name.endswith(PARQUET) else map(orjson.loads, lines):
            if {type(row["id"]), type(row["url"]), type(row["text"])} != {str} or type(row["words"]) is not int:
                raise TypeError("its id, url or text is no text, or its words are no number")  # noqa: TRY301
            yield Document(**{name: row[name] for name in Document._fields if name in row})
    except (OSError, EOFError, KeyError, TypeError, ValueError, zlib.error, zstd.ZstdError) as error:
        raise InputError(f"{path} cannot be read as a file of an export: {error!r}") from None


def _parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    for _, values in parquet_rows(path, Document._fields, "get the export again"):
        row = dict(zip(Document._fields, values, strict=True))
        date = row["date"]
        yield {**row, "date": date_of(date)} if isinstance(date, datetime) else row  # older ones have text


def _add_purge_options(parser: argparse._ArgumentGroup) -> None:
    parser.add_argument(
        "--export", type=Path, action="append", default=[], metavar="DIR", help="purge this export too; may be repeated"
    )
    parser.add_argument(
        "--listing",
        type=Path,
        metavar="FILE",
        help="the list that `scrapy frontier JOBDIR --purge DOMAIN` wrote (default: purge-DOMAIN.jsonl in DIR)",
    )
    add_question_options(parser)


def _purge(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    domain = domain_to_purge(opts.arguments[0], whole_suffix=opts.whole_suffix)
    ask = None if opts.yes or not can_ask() else confirm
    dataset = idle_dataset(opts.arguments[1], settings)
    if opts.listing is not None:
        asks = command("frontier", "JOBDIR", "--purge", "DOMAIN")
        with as_input_error(
            f"--listing {opts.listing} cannot be read", form=f"{{}}: {{}}; give the file that {asks} wrote"
        ):
            open_input(opts.listing).close()
    for folder in opts.export:
        require_all_within(folder)
        listed_shards(folder, read_json(folder / MANIFEST))
    with resumable(dataset, settings):
        yield from purge(dataset, domain, opts.jobs, opts.listing, ask)
    for folder in opts.export:
        yield from purge_export(folder, domain, ask)


PURGE = Action(
    "Remove a domain that opted out, and all below it, from WARC files, indexes, texts, crawl log and exports; "
    "purged.jsonl lists what was removed (also takes --jobs).",
    _purge,
    "DOMAIN DIR",
    _add_purge_options,
)
