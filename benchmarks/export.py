"""``scrapy export`` of an archive whose texts are there, against reading and compressing alone: what it costs besides.

    python -m benchmarks.export [--rounds N] [--formats jsonl.gz,jsonl.zst] [--pages N] [--out FOLDER] [RUN]

RUN is the OUTPUT_DIR of a crawl with WARC_TEXT, by default one of the demo web. Its texts, one after the other and
again from the start, become an archive of ``--pages`` pages. What its export is held against are loops that read the
same text records, one with warcio, one with FastWARC, and write the export's lines, which they are given, through the
same compressor. All run in turn, each time in a fresh process; wall time and CPU seconds, of all processes, are those
of the work. The export is done by one process, and by two. It counts words and links of each page besides. Texts come
again, so it keeps duplicates, and compares none.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import IO, NamedTuple
from uuid import UUID

import fastwarc.warc
import warcio.archiveiterator

from benchmarks.results import PROJECT, Result, Table, add_output, publish
from crawl4llm.base.pages import PageRecord
from crawl4llm.tools.export.filters import Wanted
from crawl4llm.tools.export.formats import COMPRESSORS, Compressor

_CHUNK = 1 << 20


class Cost(NamedTuple):
    """What a work took, in seconds."""

    wall: float
    cpu: float


def measured(work: Callable[[], None]) -> Cost:
    """Run a work in this process."""
    wall, before = time.perf_counter(), os.times()
    work()
    after = os.times()
    return Cost(time.perf_counter() - wall, sum(after[:4]) - sum(before[:4]))


def loop(run: Path, out: Path, name: str, read: Callable[[IO[bytes]], None]) -> Cost:
    """What reading all texts and compressing what the export writes of them costs; the lines are there before."""
    export(run, out, "jsonl", 1)
    lines = [path.read_bytes() for path in sorted((out / "export" / "documents").iterdir())]
    compressor = COMPRESSORS[name]()
    return measured(partial(_read_and_compress, run, read, b"".join(lines), out / f"texts.{name}", compressor))


def by_fastwarc(stream: IO[bytes]) -> None:
    """Read all records."""
    for record in fastwarc.warc.ArchiveIterator(stream):
        record.reader.read()


def by_warcio(stream: IO[bytes]) -> None:
    """Read all records."""
    for record in warcio.archiveiterator.ArchiveIterator(stream):
        record.content_stream().read()


def _read_and_compress(
    run: Path, read: Callable[[IO[bytes]], None], lines: bytes, out: Path, compressor: Compressor
) -> None:
    for path in sorted((run / "warc").glob("*-text-*.warc.*")):
        with path.open("rb") as stream:
            read(stream)
    with out.open("wb") as file:
        for start in range(0, len(lines), _CHUNK):
            file.write(compressor.compress(lines[start : start + _CHUNK]))
        file.write(compressor.flush())
        file.flush()
        os.fsync(file.fileno())


def export(run: Path, out: Path, name: str, processes: int) -> Cost:
    """What ``scrapy export RUN --keep-duplicates`` costs: it writes the same texts as the loop."""
    from scrapy.settings import Settings  # here, not in each process that the export starts

    from crawl4llm.tools.export.export import export as run_export

    wanted = Wanted(format=name, keep_duplicates=True)
    settings = Settings({"SCORING_WORKERS": processes if processes > 1 else 0, "PROGRESS_BAR": "off"})

    def work() -> None:
        deque(run_export(settings, [str(run)], out / "export", wanted), maxlen=0)

    return measured(work)


def in_new_process(work: Callable[[Path], Cost]) -> Cost:
    """What a work costs in a process of its own; it is given a folder to write to."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_in_folder, work).result()


def _in_folder(work: Callable[[Path], Cost]) -> Cost:
    with tempfile.TemporaryDirectory() as folder:
        return work(Path(folder))


def crawl(run: Path) -> None:
    """Crawl the demo web, and archive the texts."""
    settings = {"OUTPUT_DIR": run, "CRAWL_MAX_PAGES": 2000, "WARC_TEXT": 1, "PROGRESS_BAR": "off", "LOG_LEVEL": "ERROR"}
    given = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    subprocess.run([sys.executable, "-m", "scrapy", "crawl", "influence", *given], cwd=PROJECT, check=True)


def enlarge(run: Path, large: Path, pages: int) -> None:
    """Write a run of so many pages that has the texts of another one."""
    from crawl4llm.warc import ArchiveFormat, ArchiveInfo, ArchiveWriter

    texts = []
    for path in sorted((run / "warc").glob("*-text-*.warc.*")):
        with path.open("rb") as stream:
            records = fastwarc.warc.ArchiveIterator(stream, record_types=fastwarc.warc.WarcRecordType.conversion)
            texts += [record.reader.read().decode() for record in records]
    info = ArchiveInfo(UUID(int=0), "pages", "2022-08-01T12:00:00Z", {})
    archive = ArchiveWriter(large / "warc", info, 10**9, form=ArchiveFormat(text=True))
    size = 0
    with (large / "crawl.jsonl").open("w") as log:
        for number, text in zip(range(pages), cycle(texts), strict=False):
            key, url = (
                f"clueweb22-en0000-{number // 10**5:02d}-{number % 10**5:05d}",
                f"https://example.org/{number}.html",
            )
            archive.write(PageRecord(key, url, html=b"<p>A page", language="en"), {"id": key, "language": "en"}, text)
            size += len(text.encode())
            log.write(json.dumps({"id": key, "url": url, "order": number, "influence": number / pages}) + "\n")
    archive.close()
    (large / "texts.json").write_text(f"{size}")


def compare(run: Path, name: str, rounds: int) -> Table:
    """Return what one format costs: seconds, and the speed relative to the loops."""
    works = {
        "loop with warcio": partial(loop, run, name=name, read=by_warcio),
        "loop with FastWARC": partial(loop, run, name=name, read=by_fastwarc),
        "export": partial(export, run, name=name, processes=1),
        "export, 2 processes": partial(export, run, name=name, processes=2),
    }
    costs: dict[str, list[Cost]] = {what: [] for what in works}
    for _ in range(rounds):
        for what, work in works.items():
            costs[what].append(in_new_process(work))
    documents = sum(1 for _ in (run / "crawl.jsonl").open("rb"))
    medians = {what: Cost(*map(statistics.median, zip(*seen, strict=True))) for what, seen in costs.items()}
    loops = [medians[other] for other in ("loop with warcio", "loop with FastWARC")]
    rows: list[list[str | float | None]] = []
    for what, cost in medians.items():
        relative = [value for alone in loops for value in (alone.wall / cost.wall, alone.cpu / cost.cpu)]
        rows.append([what, *cost, documents / cost.wall, *relative])
    columns = [
        "",
        "wall s",
        "CPU s",
        "texts/s",
        *(f"of the speed of {loop}, {by}" for loop in ("warcio", "FastWARC") for by in ("wall", "CPU")),
    ]
    return Table(name, columns, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("run", nargs="?", help="OUTPUT_DIR of a crawl with WARC_TEXT")
    parser.add_argument("--pages", type=int, default=200_000, help="of them, 100,000 are in a file of the export")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--formats", default="jsonl.gz,jsonl.zst")
    add_output(parser)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run, large = Path(args.run or f"{folder}/run"), Path(folder) / "large"
        if not args.run:
            crawl(run)
        large.mkdir()
        enlarge(run, large, args.pages)
        tables = [compare(large, name, args.rounds) for name in args.formats.split(",")]
        size = json.loads((large / "texts.json").read_text()) / args.pages
    data = f"{args.pages:,} texts of {size:,.0f} bytes; medians of {args.rounds} rounds"
    publish(Result("export", [data], tables), args)


if __name__ == "__main__":
    main()
