"""Whether two checkouts crawl, archive, export and evaluate alike, byte for byte.

    python -m benchmarks.same_output --base CHECKOUT --new CHECKOUT [--keep DIR]

Crawls ../shared/clueweb22-sample, ../shared/clueweb22-real, the WARC files of ../shared/corpora/real-web, and a small
web on this machine, by the code of each checkout in turn; both must have the same ``__version__``. Compared are crawl
log, failures, index, exports, the records of the archive, and the report of ``scrapy evaluate``: of its Limited Buffer
the figures alone, which an older checkout can give only of crawls with EVALUATION_LOG. Prints a line for each
comparison; the exit status is 1 where anything differs.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import zstandard

PROJECT = Path(__file__).resolve().parents[1]
SHARED = PROJECT.parent / "shared"
SAMPLE, REAL, WARCS = SHARED / "clueweb22-sample", SHARED / "clueweb22-real", SHARED / "corpora/real-web"
SEEDS = SHARED / "reference-runs/seeds-100.txt"
EVALUATION_LOG = "EVALUATION_LOG"
"""The setting without which an older checkout does not note what Limited Buffer needs."""
BUFFER = "limited-buffer-"
"""How the ids of its figures begin."""

SERVER = """
import datetime, importlib, json, os, pkgutil, sys, time, types, uuid
from scrapy.cmdline import execute

for package in ("crawl4llm", "simulate", "scrapy.commands"):
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        try:
            importlib.import_module(module.name)
        except ImportError:
            pass
if "live" in sys.argv:
    now = datetime.datetime(2026, 1, 2, 3, 4, 5, 678900, datetime.timezone.utc)
    class Datetime(datetime.datetime):
        now = staticmethod(lambda zone=None, now=now: now)
    instead = [(datetime.datetime, Datetime)]
    for module, names in (time, {"monotonic": lambda: 1000.0}), (uuid, {"uuid4": lambda: uuid.UUID(int=13)}):
        instead.append((module, types.SimpleNamespace(**{**vars(module), **names})))
    ours = [vars(module) for name, module in sys.modules.items() if name.startswith("crawl4llm.")]
    for names in ours:
        names.update({name: new for name in names for old, new in instead if names[name] is old})
print(sys.modules["crawl4llm"].__version__, flush=True)
for line in sys.stdin:
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        os.dup2(0, 1)
        try:
            execute(json.loads(line))
        except SystemExit as end:
            os._exit(end.code or 0)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Has all modules of a checkout imported, which takes most of a command's time, and forks its commands. In live crawls
our modules see one moment and one UUID; other packages see the true ones."""

Settings = Mapping[str, object]


class Crawl(NamedTuple):
    """A crawl, and what is made of it."""

    name: str
    settings: Settings
    lives: Sequence[int] = ()
    """CRAWL_MAX_PAGES of the processes that crawl it one after another; several need JOBDIR."""
    exports: Sequence[str] = ()
    """Formats that it is exported in."""


def corpus_crawls() -> Iterator[Crawl]:
    """The crawls of corpora. Those of one folder are evaluated together."""
    sample: Settings = {"CORPUS": SAMPLE, "CRAWL_SEEDS": 300, "CRAWL_MAX_PAGES": 600}
    text: Settings = {"SIMULATION_TEXT": "extracted", "WARC_TEXT": 1}
    yield Crawl("sample/n100", {**sample, "WARC_MAX_BYTES": 500_000}, exports=("jsonl", "jsonl.gz", "parquet"))
    yield Crawl("sample-text/n1", {**sample, **text, "CRAWL_BATCH_SIZE": 1, "URL_POLICY": "parent_mean"})
    yield Crawl("sample/n0-zstd", {**sample, **_continuous(600), "WARC_COMPRESSION": "zstd"}, exports=("jsonl.zst",))
    yield Crawl("sample/scope", {**sample, "CRAWL_SCOPE": "domain", "DEPTH_LIMIT": 3, "URLLENGTH_LIMIT": 60})

    real: Settings = {"CORPUS": REAL, "WARC_ENABLED": 0, "CRAWL_MAX_PAGES": 600}
    with_state = ("influence", "random", "backlink", "pagerank", "host", "parent_min", "parent_mean", "link")
    others = ("indegree", "random_static", "parent_first", "breadth_first", "length", "scorer:length", "ensemble")
    for policy in with_state + others:
        name = policy.replace(":", "-")
        crawl = {**real, "URL_POLICY": policy}
        if policy == "ensemble":
            crawl["ENSEMBLE_WEIGHTS"] = "fasttext:1,length:0.5"
        yield Crawl(f"real/{name}-n100", {**crawl, "CRAWL_MAX_PAGES": 1200})
        if policy in with_state:
            job = {"JOBDIR": f"jobs/{name}", "COMMIT_INTERVAL_PAGES": 40, "CRAWL_BATCH_SIZE": 1}
            yield Crawl(f"real/{name}-n1", {**crawl, **job}, lives=(101, 250))
            yield Crawl(f"real/{name}-n0", {**crawl, **_continuous(250)})
    hot: Settings = {**real, "HOT_QUEUE_TOPIC": "algebra,history"}
    yield Crawl("real/asc", {**real, "ORDER": "asc"})
    yield Crawl("real/hot", {**hot, "URL_POLICY": "parent_mean"})
    yield Crawl("real/hot-asc", {**hot, "URL_POLICY": "backlink", "ORDER": "asc"})
    capped = {"FRONTIER_MAX_URLS": 400, "FRONTIER_MAX_URLS_PER_HOST": 50, "URL_POLICY": "parent_min"}
    yield Crawl("real/capped", {**real, **capped})

    warcs: Settings = {"CORPUS": WARCS, "SIMULATION_TEXT": "extracted", "CRAWL_MAX_PAGES": 400, "CRAWL_SEEDS": 50}
    yield Crawl("warcs/influence", {**warcs, "WARC_TEXT": 1}, exports=("jsonl", "parquet"))
    yield Crawl("warcs/link", {**warcs, **_continuous(250), "URL_POLICY": "link"})


def live_crawls() -> Iterator[Crawl]:
    """The crawls of the small web."""
    fast: Settings = {
        "USER_AGENT": "same-output (+http://same-output.example/)",
        "NETWORK_ALLOWED": "127.0.0.0/8",
        "DOWNLOAD_DELAY": 0,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
        "RETRY_TIMES": 1,
    }
    live: Settings = {**fast, "SCORER": "length", "DOWNLOAD_MAXSIZE": 100_000, "CRAWL_MAX_PAGES": 100}
    yield Crawl("live/n5", {**live, "CRAWL_BATCH_SIZE": 5, "WARC_TEXT": 1}, exports=("jsonl", "parquet"))
    yield Crawl("live/n0", {**live, **_continuous(30), "URL_POLICY": "parent_mean"})
    job = {"CRAWL_BATCH_SIZE": 4, "JOBDIR": "jobs/live", "URL_POLICY": "backlink"}
    yield Crawl("live/job", {**live, **job}, lives=(12, 35))


def _continuous(pages: int) -> dict[str, object]:
    """Continuous order; with more than one lease at a time, the order of pages would be a matter of chance."""
    return {"CRAWL_BATCH_SIZE": 0, "CRAWL_CONCURRENT_LEASES": 1, "CRAWL_MAX_PAGES": pages}


class Checkout:
    """One of the two. Its crawls lie in a folder of their own, under the same relative paths as the other's."""

    def __init__(self, code: Path, work: Path, profile: str = "default") -> None:
        self.code, self.work = code.resolve(), work
        work.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.code / "scrapy.cfg", work)
        knows = EVALUATION_LOG in (self.code / "docs/settings.md").read_text()
        self._logged: Settings = {EVALUATION_LOG: 1} if knows else {}
        env = {**os.environ, "PYTHONPATH": str(self.code), "PYTHONDONTWRITEBYTECODE": "1", "SCRAPY_PROJECT": profile}
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen([sys.executable, "-c", SERVER, profile], cwd=work, env=env, **pipes)
        self.version = self._answer()

    def close(self) -> None:
        """End its process."""
        self._process.communicate()

    def scrapy(self, *args: object) -> None:
        """Run a command of Scrapy to its end."""
        assert self._process.stdin is not None
        print(json.dumps(["scrapy", *map(str, args)]), file=self._process.stdin, flush=True)
        if (ended := self._answer()) != "0":
            raise SystemExit(f"{self.code}: {' '.join(map(str, args))} ended with {ended}, see above")

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return str(self._process.stdout.readline()).strip()

    def crawl(self, crawl: Crawl, seeds: Path | None = None) -> None:
        """Crawl in one process, or in several."""
        model = {"SCORER_MODEL": SHARED / "scorers/prose.bin", "SCORING_WORKERS": 1, "LOG_LEVEL": "ERROR"}
        given = {**model, **self._logged, "OUTPUT_DIR": crawl.name, **crawl.settings}
        for pages in crawl.lives or (given["CRAWL_MAX_PAGES"],):
            settings = [f"-s{name}={value}" for name, value in {**given, "CRAWL_MAX_PAGES": pages}.items()]
            self.scrapy("crawl", "influence", *([f"-aseeds={seeds}"] if seeds else []), *settings)

    def export(self, crawl: Crawl) -> None:
        """Export a crawl in each of its formats."""
        for form in crawl.exports:
            options = ("--out", f"{crawl.name}/export-{form}", "--format", form, "--shard-documents", "150")
            self.scrapy("export", crawl.name, *options)

    def corpora(self, crawls: Sequence[Crawl]) -> None:
        """Crawl, export and evaluate corpora."""
        for crawl in crawls:
            self.crawl(crawl, SEEDS if crawl.settings["CORPUS"] == REAL else None)
            self.export(crawl)
        for folder in _folders(crawls):
            runs = [crawl.name for crawl in crawls if crawl.name.startswith(f"{folder}/")]
            wanted = ("--topic", "algebra history", "--scorers", "fasttext,length")
            self.scrapy("evaluate", *runs, "--out", f"{folder}/report", *wanted)


def _folders(crawls: Sequence[Crawl]) -> list[str]:
    return list(dict.fromkeys(crawl.name.split("/")[0] for crawl in crawls))


def crawl_live(codes: Mapping[Path, Path], crawls: Sequence[Crawl], seeds: Path) -> None:
    """Crawl the small web of the tests by one checkout after the other."""
    sys.path.append(str(PROJECT / "tests/helpers"))
    from addon_site import serve
    from live_helpers import small_web

    BaseHTTPRequestHandler.date_time_string = lambda *_: "Fri, 02 Jan 2026 03:04:05 GMT"  # type: ignore[method-assign]
    ThreadingHTTPServer.handle_error = lambda *_: None  # type: ignore[method-assign]  # where the crawler broke off
    with serve(small_web()) as site:
        seeds.write_text("".join(f"{site.url}/{path}\n" for path in ("page-0", "gone", "dir")))
        for work, code in codes.items():
            with closing(Checkout(code, work, "live")) as checkout:
                for crawl in crawls:
                    site.asked.clear()  # it gives some of its answers in turn
                    checkout.crawl(crawl, seeds)
                    checkout.export(crawl)


class Comparison:
    """Compares what two checkouts have made, and prints a line for each thing."""

    def __init__(self, base: Path, new: Path) -> None:
        self._sides = base, new
        self.differences = 0

    def crawl(self, crawl: Crawl) -> None:
        """Log and failures of a crawl, and all files of its archive and its exports."""
        for name in ("crawl.jsonl", "failures.jsonl"):
            self._file(f"{crawl.name}/{name}")
        archived = ["warc"] if crawl.settings.get("WARC_ENABLED", 1) else []
        for folder in (*archived, *(f"export-{form}" for form in crawl.exports)):
            names = [_files(side, f"{crawl.name}/{folder}") for side in self._sides]
            if names[0] != names[1]:
                self._tell(f"files in {crawl.name}/{folder}", same=False, more=f"{names[0]}, {names[1]}")
            for name in names[0]:
                if name in names[1]:
                    self._file(name)

    def report(self, name: str) -> None:
        """A report of ``scrapy evaluate``."""
        reports = [json.loads((side / name).read_bytes()) for side in self._sides]
        buffers: list[dict[tuple[str, str], Any]] = []
        for report in reports:
            found = [section for section in report["sections"] if section["id"].startswith(BUFFER)]
            buffers.append(
                {(section["id"], series["name"]): series for section in found for series in section["series"]}
            )
            report["sections"] = [section for section in report["sections"] if section not in found]
            for run in report["runs"]:
                run["settings"].pop(EVALUATION_LOG, None)
        parts = [_parts(report) for report in reports]
        self._values(f"{name} but for Limited Buffer", *parts)
        self._values(f"{name}: figures of Limited Buffer", *buffers)

    def _values(self, what: str, old: Mapping[Any, Any], new: Mapping[Any, Any]) -> None:
        differ = [key for key in {**old, **new} if old.get(key) != new.get(key)]
        self._tell(what, same=not differ, more=f"{differ} of {len(old)}" if differ else f"{len(old)} parts")

    def _file(self, name: str) -> None:
        """A file, uncompressed."""
        old, new = (_contents(side / name) for side in self._sides)
        if old == new:
            self._tell(name, same=True, more=f"{len(old):,} bytes")
            return
        lines = enumerate(zip_longest(old.split(b"\n"), new.split(b"\n")), 1)
        number, pair = next((number, pair) for number, pair in lines if pair[0] != pair[1])
        self._tell(name, same=False, more="".join([f"line {number}", *(f"\n    {str(line)[:300]}" for line in pair)]))

    def _tell(self, what: str, *, same: bool, more: str) -> None:
        self.differences += not same
        print(f"{'same' if same else 'DIFFERENT':<9} {what}: {more}", flush=True)


def _parts(report: Mapping[str, Any]) -> dict[str, Any]:
    """What a report says, by what it is about."""
    sections = {section["id"]: section for section in report["sections"]}
    runs = {f"run {run['name']}": run for run in report["runs"]}
    return {**sections, **runs, **{name: report[name] for name in report if name not in {"sections", "runs"}}}


def _files(side: Path, folder: str) -> list[str]:
    return sorted(str(path.relative_to(side)) for path in (side / folder).rglob("*") if path.is_file())


def _contents(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix == ".gz":
        return gzip.decompress(data)
    if path.suffix == ".zst":
        return zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True).read()
    return data


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, required=True, help="the older checkout")
    parser.add_argument("--new", type=Path, required=True, help="the newer checkout")
    parser.add_argument("--only", default="", help="only crawls whose names begin so")
    parser.add_argument("--keep", type=Path, help="keep all crawls in this folder, which must not exist")
    args = parser.parse_args()
    corpora = [crawl for crawl in corpus_crawls() if crawl.name.startswith(args.only)]
    live = [crawl for crawl in live_crawls() if crawl.name.startswith(args.only)]
    with tempfile.TemporaryDirectory() as folder:
        work = (args.keep or Path(folder) / "work").absolute()
        work.mkdir()
        codes = {work / "base": args.base, work / "new": args.new}
        checkouts = [Checkout(code, side) for side, code in codes.items()]
        if checkouts[0].version != checkouts[1].version:
            raise SystemExit(f"the versions differ: {checkouts[0].version} and {checkouts[1].version}")
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda checkout: checkout.corpora(corpora), checkouts))
        for checkout in checkouts:
            checkout.close()
        crawl_live(codes, live, work / "seeds.txt")
        comparison = Comparison(*codes)
        for crawl in corpora + live:
            comparison.crawl(crawl)
        for name in _folders(corpora):
            comparison.report(f"{name}/report/report.json")
    print(f"{comparison.differences} differences")
    sys.exit(comparison.differences > 0)


if __name__ == "__main__":
    main()
