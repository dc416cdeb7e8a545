"""Memory and time of ``archive check`` and ``scrapy export`` of very many documents, each command as a user starts it.

    python -m benchmarks.many_documents [DOCUMENTS ...] [--only check,export,...] [--keep FOLDER] [--out FOLDER]

A run of that many pages is written as a simulation archives those of a corpus of texts. Each has 12 words drawn from
5,000, so that hardly any are near duplicates. Memory is the sum over all processes, with shared memory counted once;
the table has its peak. 1,000,000 documents take 1.1 GB of disk. ``--keep`` leaves the runs there, and takes those that
are there. Evaluate has a benchmark of its own, ``benchmarks.evaluation_memory``.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Final
from uuid import UUID

from benchmarks.processes import Cost, measure
from benchmarks.results import PROJECT, Result, Table, add_output, publish
from crawl4llm.base.pages import PageRecord
from crawl4llm.warc import ArchiveFormat, ArchiveInfo, ArchiveWriter

_DATE: Final = "2026-11-20T12:00:00Z"
_FILE_BYTES: Final = 10**9
COMMANDS: Final = {
    "check": ["archive", "check", "{run}"],
    "export": ["export", "{run}", "--out", "{out}"],
    "export-best": ["export", "{run}", "--out", "{out}", "--top-share", "0.1"],
    "export-parquet": ["export", "{run}", "--out", "{out}", "--format", "parquet"],
}
"""What follows ``scrapy``; ``{out}`` is in a folder of the command's own."""


def write_run(run: Path, documents: int) -> None:
    """Write a run of computed pages."""
    rng = random.Random(0)
    words = ["".join(rng.choices("aeioulnrst", k=rng.randint(2, 9))) for _ in range(5000)]
    info = ArchiveInfo(UUID(int=0), "pages", _DATE, {})
    archive = ArchiveWriter(run / "warc", info, _FILE_BYTES, form=ArchiveFormat())
    with (run / "crawl.jsonl").open("w") as log:
        for number in range(documents):
            text = f"Page {number} tells of {' '.join(rng.choices(words, k=12))}."
            key, url = f"page{number:09d}", f"https://host{number % 9973}.example/{number}.html"
            influence = rng.random()
            page = PageRecord(key, url, _DATE, text=text, language="en")
            archive.write(page, {"id": key, "order": number, "influence": influence, "language": "en"})
            log.write(json.dumps({"id": key, "url": url, "order": number, "influence": influence}) + "\n")
    archive.close()


def cost(name: str, run: Path) -> Cost:
    """Run a command on a run."""
    with tempfile.TemporaryDirectory(dir=run.parent) as folder:
        given = [part.format(run=run, out=Path(folder) / "out") for part in COMMANDS[name]]
        return measure([sys.executable, "-m", "scrapy", *given, "--json"], PROJECT)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("documents", nargs="*", type=int, default=[10_000, 100_000])
    parser.add_argument("--only", default=",".join(COMMANDS), metavar="NAMES")
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    add_output(parser)
    args = parser.parse_args()
    rows: list[list[str | float | None]] = []
    for documents in args.documents:
        with tempfile.TemporaryDirectory() as folder:
            run = (args.keep or Path(folder)) / f"{documents}"
            if not run.exists():
                (partial := run.with_name(f"{documents}.partial")).mkdir(parents=True)
                write_run(partial, documents)
                partial.rename(run)
            for name in args.only.split(","):
                wall, cpu, memory, tree = cost(name, run)
                rows.append([name, f"{documents:,}", wall, cpu, len(memory), tree])
                print(rows[-1], file=sys.stderr, flush=True)
    columns = ["command", "documents", "wall s", "CPU s", "processes", "MiB"]
    publish(Result("many_documents", ["computed pages of 12 words"], [Table("Commands", columns, rows)]), args)


if __name__ == "__main__":
    main()
