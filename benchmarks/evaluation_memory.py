"""Memory that an evaluation takes a document, on a web that is computed.

    python -m benchmarks.evaluation_memory [DOCUMENTS ...] [--out FOLDER]

Each page has 15 links, of which some pages get most; scores have ties, and some pages have none. Two runs have crawled
a hundredth of it. Scores and links are looked up before, by a process of its own; then another makes the report, but
for the plots. What the first number of documents takes is the base: the bytes a document are over that.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple, cast

from benchmarks.results import Result, Table, add_output, publish
from crawl4llm.base.errors import CorruptRecord, InputError
from crawl4llm.base.pages import Corpus, Link
from crawl4llm.options import Options
from crawl4llm.scoring.rating import PageRater
from crawl4llm.tools.evaluate.evaluate import Wanted, _report
from crawl4llm.tools.evaluate.runs import read_runs
from crawl4llm.tools.evaluate.survey import Survey

LINKS = 15
_PRIME = 2_654_435_761
_FACTS = {
    "corpus_digest": "",
    "model_digest": "",
    "scorer": "computed",
    "label": "",
    "text": "corpus",
    "extractor": None,
    "settings": {"CRAWL_MAX_PAGES": 1},
}


class Computed:
    """A corpus of so many documents, whose keys are numbers."""

    def __init__(self, size: int) -> None:
        self._size = size

    def __len__(self) -> int:
        return self._size

    def identity(self) -> str:
        return f"computed {self._size}"

    def require(self, part: str) -> None:
        if part == "inlinks":
            raise InputError("computed: holds no inlinks")

    def keys(self) -> Iterator[str]:
        return map(str, range(self._size))

    def text(self, key: str) -> str:
        if key.endswith("77"):
            raise CorruptRecord(f"computed: record {key} is damaged")
        return f"{int(key) * _PRIME % 10_007 / 10_007}"

    def outlinks(self, key: str) -> list[Link]:
        shares = (((int(key) * LINKS + place + 1) * _PRIME % 2**32) / 2**32 for place in range(LINKS))
        return [Link("", str(int(share**3 * self._size)), "", False) for share in shares]


class Reads:
    """A scorer that reads the score."""

    digest = "computed"

    def score(self, texts: Sequence[str]) -> list[float]:
        return list(map(float, texts))


class Taken(NamedTuple):
    """What a report took."""

    anonymous: int
    """Bytes of memory at most, without pages of files, which the system can drop."""
    memory: int
    """Bytes of memory at most."""
    cpu: float
    """Seconds."""


def _survey(size: int, folder: Path) -> tuple[Survey, PageRater]:
    corpus = cast("Corpus", Computed(size))
    rater = PageRater(corpus, Reads(), None)  # type: ignore[arg-type]  # it is made of no options
    return Survey(corpus, Options(scoring_workers=0, progress_bar="off"), cache=folder / "cache"), rater


def look_up(size: int, folder: Path) -> None:
    """Compute scores and links."""
    survey, rater = _survey(size, folder)
    survey.scores(rater, survey.options.scorer)
    survey.graph(rater)


def report(size: int, folder: Path) -> Taken:
    """Make the report."""
    ended, most = threading.Event(), [0]

    def watch() -> None:
        while not ended.wait(0.01):
            status = Path("/proc/self/status").read_text(encoding="ascii")
            most.append(max(most.pop(), int(status.partition("RssAnon:")[2].split()[0]) << 10))

    watching = threading.Thread(target=watch)
    watching.start()
    started = time.process_time()
    survey, rater = _survey(size, folder)
    _report(read_runs([folder / "run0", folder / "run1"]), survey, rater, Wanted(), None)
    cpu = time.process_time() - started
    ended.set()
    watching.join()
    return Taken(most[0], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10, cpu)


def crawl(size: int, folder: Path) -> None:
    """Write the runs."""
    for run in range(2):
        path = folder / f"run{run}"
        path.mkdir()
        (path / "settings.json").write_text(json.dumps({**_FACTS, "policy": f"policy{run}"}))
        with (path / "crawl.jsonl").open("w") as log:
            for place in range(size // 100):
                key = str(place * (37 + run))
                told = {"id": key, "url": f"http://{place % 97}.example/", "parent": None if place < 10 else "0"}
                counts = {"order": place, "visited": place + 1, "fetched": place + 1, "iteration": 0, "depth": 0}
                log.write(json.dumps({**told, **counts, "status": 200, "priority": 0.5, "influence": 0.5}) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("documents", nargs="*", type=int, default=[10_000, 1_000_000])
    add_output(parser)
    args = parser.parse_args()
    base: tuple[int, Taken] | None = None
    rows: list[list[str | float | None]] = []
    for size in args.documents:
        with tempfile.TemporaryDirectory() as folder:
            crawl(size, Path(folder))
            for work in (look_up, report):
                with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
                    taken = pool.submit(work, size, Path(folder)).result()
        assert isinstance(taken, Taken)
        base = base or (size, taken)
        more = (taken.anonymous - base[1].anonymous) / (size - base[0]) if size > base[0] else None
        rows.append([f"{size:,}", taken.anonymous / 1e6, taken.memory / 1e6, taken.cpu, more])
    columns = ["documents", "MB", "MB with files", "CPU s", "bytes a document"]
    data = f"computed webs of {LINKS} links a page, two runs that have crawled a hundredth"
    publish(Result("evaluation_memory", [data], [Table("Report", columns, rows)]), args)


if __name__ == "__main__":
    main()
