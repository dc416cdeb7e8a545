"""Polite stops at random moments: what a crawl with JOBDIR loses by them, which must be nothing.

    python -m benchmarks.stopping [--stops 200] [-n N] [--pages 10000] [--seed 0] [--parts] [--kill]
                                  [--corpus PATH --model PATH] [--out FOLDER]

Crawls with n = 1, 100, 1,000, 5,000 and n = 0 get SIGINT or SIGTERM at random moments, and are resumed, stopped again
and resumed to their end. After each stop ``scrapy frontier --verify`` must find every visited document in exactly one
state. At the end a crawl in batches must have written the bytes of one that was never stopped; one in continuous order,
which runs until its frontier is empty, must have archived the same documents, none of them twice.

``--parts``: every part of a crawl is on (scope, block list, traps, known URLs and texts, near duplicates, quality,
budgets, mixture). ``--kill``: they get SIGKILL instead.

Tells for each n the stops that came while the crawl ran, and ends with status 1 if anything was lost. The peer is the
crawl that was not stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.results import PROJECT, Figure, Result, Table, add_output, publish

SHARED = PROJECT.parent / "shared"
_INTERRUPTED = 130
_LONGEST = 600
"""Seconds a crawl may take, or take to stop."""
_COLUMNS = ("", "pages", "stops", "crawls", "with a loss")


class Case(NamedTuple):
    """A crawl that is stopped."""

    batch_size: int
    pages: int
    seeds: int = 500

    def command(self, folder: Path, given: list[str]) -> list[str]:
        """The crawl as a user starts it, and resumes it."""
        settings = {
            "CRAWL_BATCH_SIZE": self.batch_size,
            "CRAWL_MAX_PAGES": self.pages,
            "CRAWL_SEEDS": self.seeds,
            "CRAWL_CONCURRENT_LEASES": 8,
            "SCORING_WORKERS": 1,
            "OUTPUT_DIR": folder / "run",
            "JOBDIR": folder / "job",
        }
        options = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
        return [sys.executable, "-m", "scrapy", "crawl", "influence", *options, *given]


def start(command: list[str]) -> subprocess.Popen[str]:
    """Begin a crawl in this checkout."""
    return subprocess.Popen(
        command,
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
    )


def finish(command: list[str]) -> None:
    """Run a command to its end. Raises RuntimeError where it fails."""
    process = start(command)
    _, err = process.communicate(timeout=_LONGEST)
    if process.returncode or "Traceback" in err:
        raise RuntimeError(f"status {process.returncode}: {err[-2000:]}")


def with_parts(folder: Path, model: Path) -> list[str]:
    """Return settings that ask for every part, and write the files that they name."""
    text = {"text": "A page that somebody has already. " * 20, "url": "http://have.example/"}
    (folder / "have.jsonl").write_text(json.dumps(text) + "\n")
    known = ["corpus", "known", str(folder / "known"), str(folder / "have.jsonl")]
    finish([sys.executable, "-m", "scrapy", *known])
    (folder / "blocked.txt").write_text("blocked.example\n")
    classes = {"quality": {"model": str(model), "shares": {"__label__hq": 0.5, "*": 0.5}}}
    (folder / "mixture.json").write_text(json.dumps(classes))
    settings = {
        "SCOPE_SKIPPED_TYPES": "images,media,archives",
        "BLOCKLISTS": folder / "blocked.txt",
        "URL_TRAPS": "cgi_bin,repeated_path,calendar,session_id,deep_path,many_parameters",
        "KNOWN_URLS": folder / "known/urls.known",
        "KNOWN_TEXTS": folder / "known/texts.known",
        "SITE_RULES": "wikis,blogs,forums,shops,trackers,repositories,mail,docs,generators",
        "SKIPPED_LINK_TYPES": "nofollow,ugc,sponsored",
        "NOINDEX": "archive",
        "CRAWL_LANGUAGES": "en",
        "URL_ALIAS_PAIRS": 5,
        "URL_WORTHLESS_PAGES": 20,
        "NEAR_DUPLICATES": "leave",
        "NEAR_DUPLICATES_WORTHLESS": 1,
        "LOWER_LEFT_OVERS": 1,
        "QUALITY_THRESHOLD": 0.5,
        "URL_BUDGET": 5,
        "MIXTURE": folder / "mixture.json",
        "URL_POLICY": "parent_first",
    }
    return [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]


def stop(
    command: list[str], folder: Path, total: int, draw: random.Random, signals: tuple[signal.Signals, ...]
) -> bool:
    """Stop a crawl at a random moment; whether it was still running. Raises RuntimeError where it fails.

    One in ten is stopped while it starts, the others anywhere in the first half of what is left to be crawled.
    """
    signum = draw.choice(signals)
    begun = pages(folder)
    wanted = begun + draw.uniform(0, 0.5) * (total - begun)
    starting = draw.random() < 0.1
    process = start(command)
    if starting:
        time.sleep(draw.uniform(0.1, 1.5))
    while not starting and pages(folder) < wanted and process.poll() is None:
        time.sleep(0.005)
    time.sleep(draw.uniform(0, 0.2))
    process.send_signal(signum)
    _, err = process.communicate(timeout=_LONGEST)
    # Before Scrapy has loaded the command, and after the crawl has ended, Python itself answers a signal.
    if process.returncode not in {0, _INTERRUPTED, -signum} or "ERROR" in err:
        raise RuntimeError(f"status {process.returncode} after {signum.name}: {err[-2000:]}")
    return process.returncode in {_INTERRUPTED, -signal.SIGKILL}


def pages(folder: Path) -> int:
    """Pages in the log of a crawl, which may not have begun."""
    try:
        return (folder / "run/crawl.jsonl").read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


def verify(folder: Path) -> None:
    """Raise RuntimeError unless the JOBDIR, if it was begun, is sound."""
    if not (folder / "job/job.json").exists():
        return
    command = [sys.executable, "-m", "scrapy", "frontier", str(folder / "job"), "--verify"]
    result = subprocess.run(
        [*command, "-s", f"OUTPUT_DIR={folder / 'run'}"], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    if not result.stdout.startswith("sound: "):
        raise RuntimeError(f"--verify: {result.stdout}{result.stderr[-2000:]}")


def difference(whole: Path, stopped: Path, *, ordered: bool) -> str | None:
    """What a crawl that was stopped has otherwise than one that was not; None: nothing."""
    if ordered:
        names = ["crawl.jsonl", "failures.jsonl", *(f"warc/{path.name}" for path in sorted((whole / "warc").iterdir()))]
        return next((name for name in names if (whole / name).read_bytes() != (stopped / name).read_bytes()), None)
    logs = [[json.loads(line)["id"] for line in (run / "crawl.jsonl").open()] for run in (whole, stopped)]
    if len(set(logs[1])) < len(logs[1]):
        return f"{len(logs[1]) - len(set(logs[1]))} documents were archived twice"
    return None if set(logs[0]) == set(logs[1]) else f"{len(set(logs[0]) ^ set(logs[1]))} other documents"


def trial(
    case: Case, folder: Path, given: list[str], draw: random.Random, total: int, signals: tuple[signal.Signals, ...]
) -> int:
    """Stop a crawl a few times, and let it end; returns how often it was running."""
    command = case.command(folder, given)
    running = 0
    for _ in range(draw.choice([1, 2, 4])):
        running += stop(command, folder, total, draw, signals)
        verify(folder)
    finish(command)
    verify(folder)
    return running


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stops", type=int, default=200)
    parser.add_argument("--pages", type=int, default=10_000, help="of the crawl with n = 5,000; others have fewer")
    parser.add_argument("-n", type=int, action="append", help="only this n; may be repeated")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--corpus", type=Path, default=SHARED / "clueweb22-real")
    parser.add_argument("--model", type=Path, default=SHARED / "scorers/prose.bin")
    parser.add_argument("--parts", action="store_true", help="with every part of a crawl on")
    parser.add_argument("--kill", action="store_true", help="kill -9 instead of polite stops")
    add_output(parser)
    args = parser.parse_args()
    signals = (signal.SIGKILL,) if args.kill else (signal.SIGINT, signal.SIGTERM)
    given = ["-s", f"CORPUS={args.corpus}", "-s", f"SCORER_MODEL={args.model}"]
    cases = [
        Case(1, 500, seeds=50),
        Case(100, args.pages // 4),
        Case(1_000, args.pages // 2),
        Case(5_000, args.pages),
        Case(0, 1_000_000, seeds=5),
    ]
    draw = random.Random(args.seed)
    rows: list[list[str | float | None]] = []
    lost = 0
    with tempfile.TemporaryDirectory(prefix="crawl4llm-") as scratch:
        if args.parts:
            given += with_parts(Path(scratch), args.model)
        for case in cases if args.n is None else [case for case in cases if case.batch_size in args.n]:
            whole = Path(scratch, f"whole-{case.batch_size}")
            whole.mkdir()
            finish(case.command(whole, given))
            total = pages(whole)
            stops = crawls = found = 0
            while stops < args.stops / len(cases):
                folder = Path(scratch, f"stopped-{case.batch_size}-{crawls}")
                folder.mkdir()
                try:
                    stops += trial(case, folder, given, draw, total, signals)
                    problem = difference(whole / "run", folder / "run", ordered=case.batch_size > 0)
                except RuntimeError as error:
                    stops, problem = stops + 1, str(error)
                if problem:
                    found += 1
                    print(f"n = {case.batch_size}, crawl {crawls}: {problem}", file=sys.stderr, flush=True)
                shutil.rmtree(folder)
                crawls += 1
            rows.append([f"n = {case.batch_size:,}", total, stops, crawls, found])
            lost += found
            shutil.rmtree(whole)
    how = ", ".join(one.name for one in signals) + (", with every part" if args.parts else "")
    result = Result("stopping", [f"{args.corpus.name}; {how}"], [Table("Stopped", _COLUMNS, rows)])
    result.figures.append(Figure("crawls with a loss", lost, 0))
    publish(result, args)
    return 0 if result.met else 1


if __name__ == "__main__":
    sys.exit(main())
