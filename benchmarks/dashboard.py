"""What the dashboard takes: its first paint and memory on a long crawl, and its share of the CPU beside one that runs.

    python -m benchmarks.dashboard [--lines 10m] [--rounds 3] [--pages 20000]

The long crawl is made up: a log of so many lines, and the series that a crawl would have written. A headless Chromium
opens it; against that stands reading the log, line by line with ``json``, which a page without a series would have to
do. Then crawls of a demo web run in pairs, in turn: with series and dashboard, to which somebody listens, and without
either. CPU of the dashboard counts from when its address was printed to the end of the crawl.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

import psutil

from benchmarks.results import PROJECT
from crawl4llm.base.files import PreadFile
from crawl4llm.base.series import FIELDS, Scores, SeriesFile
from simulate.demo.demo import DemoPaths, ensure_demo

sys.path.append(str(PROJECT / "tests/helpers"))

SEEN = """new MutationObserver((_, it) => { if (document.querySelector('.curve')) { it.disconnect();
requestAnimationFrame(() => { window.drawn = performance.now() }) } }).observe(document, {subtree: true,
childList: true})"""
WITHOUT = '{"crawl4llm.engine.series.Series": null}'


def make_crawl(run: Path, lines: int) -> None:
    """Write a log of so many lines, and its series."""
    draw = random.Random(0)
    run.mkdir()
    with (run / "crawl.jsonl").open("w") as log:
        for order in range(lines):
            url = f"https://www.host-{order % 99_991}.example/section-{order % 97}/a-page-with-a-name-{order}.html"
            head = f'{{"order": {order}, "iteration": {order // 100}, "id": "{url}", "url": "{url}", "status": 200, '
            rest = (
                f'"depth": {order % 17}, "parent": "https://www.host-{order % 89_989}.example/", "visited": {order * 9}'
            )
            log.write(f'{head}"priority": 0.5, "influence": {draw.random() ** 4}, {rest}, "fetched": {order}}}\n')
    settings = {"QUALITY_THRESHOLD": 0.5, "CRAWL_MAX_PAGES": lines}
    (run / "settings.json").write_text(json.dumps({"policy": "influence", "settings": settings}))
    scores, file, log_file, crawled = Scores(0.5), SeriesFile(run, 0), PreadFile(run / "crawl.jsonl"), 0
    while read := scores.read(log_file):
        crawled += read.count(b"\n")
        counts = {"failed/dns": crawled // 9, "dropped/robots": crawled // 7, "failed/http_404": crawled // 5}
        owners = {"ready": [5, 9], "waiting": [crawled // 100, crawled], "busy": [9, 0], "parked": [3, crawled // 50]}
        point = dict.fromkeys(FIELDS, 0) | scores.point() | {"crawled": crawled, "visited": crawled * 9}
        more = {"queued": crawled * 7, "memory": [4e8, 9e8], "cpu": [crawled / 900, crawled / 500], "workers": 2}
        file.add({**point, **more, "seconds": crawled / 300, "time": time.time(), "owners": owners, "counts": counts})
    file.close()


def start(path: Path) -> tuple[subprocess.Popen[str], str, float]:
    """Start a dashboard; its address, and seconds until it was printed."""
    began = time.monotonic()
    command = [sys.executable, "-m", "scrapy", "dashboard", str(path), "--no-browser"]
    process = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    found = re.search(r"http://\S+", process.stdout.readline())
    assert found is not None
    return process, found[0], time.monotonic() - began


def first_paint(folder: Path, lines: int) -> None:
    import browser

    run = folder / "long"
    make_crawl(run, lines)
    print(f"a log of {lines:,} lines, {(run / 'crawl.jsonl').stat().st_size / 1e9:.2f} GB", flush=True)
    with browser.chromium(folder / "profile") as chromium:
        chromium.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": SEEN})
        for _ in range(3):
            process, url, seconds = start(run)
            chromium.get(url)
            while (drawn := chromium.execute_script("return window.drawn")) is None:
                time.sleep(0.01)
            script = "return performance.getEntriesByName('first-contentful-paint')[0].startTime"
            paint = chromium.execute_script(script)
            memory = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
            assert memory is not None
            process.terminate()
            process.wait()
            peak = int(memory[1]) / 1024
            print(
                f"first paint {paint / 1000:.2f} s, charts {drawn / 1000:.2f} s after the page was asked for; the "
                f"address {seconds:.2f} s after the command; peak {peak:.0f} MiB",
                flush=True,
            )
    began = time.monotonic()
    with (run / "crawl.jsonl").open() as log:
        mean = statistics.fmean(json.loads(line)["influence"] for line in log)
    print(f"reading the log line by line: {time.monotonic() - began:.1f} s (mean influence {mean:.4f})", flush=True)


def cpu(process: psutil.Process) -> float:
    """CPU seconds of a process, and of those it has started."""
    spent = 0.0
    for one in (process, *process.children(recursive=True)):
        times = one.cpu_times()
        spent += times.user + times.system + times.children_user + times.children_system
    return spent


def crawl(folder: Path, web: DemoPaths, *, watched: bool) -> tuple[float, float]:
    """Crawl all of a web; its CPU seconds, and the share of its CPU that the dashboard took beside it."""
    run, job = folder / "run", folder / "job"
    settings: dict[str, object] = {"CORPUS": web.corpus, "SCORER_MODEL": web.model, "CRAWL_MAX_PAGES": 1_000_000}
    settings |= {"SIMULATION_TEXT": "extracted", "SCORE_CACHE": "", "OUTPUT_DIR": run}
    settings |= {"SCORING_WORKERS": 1, "JOBDIR": job, **({} if watched else {"EXTENSIONS": WITHOUT})}
    args = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    command, quiet = [sys.executable, "-m", "scrapy", "crawl", "influence", *args], subprocess.DEVNULL
    process = subprocess.Popen(command, cwd=PROJECT, stdout=quiet, stderr=quiet)
    theirs = ours = psutil.Process(process.pid)
    shown: subprocess.Popen[str] | None = None
    if watched:
        while not (run / "series.jsonl").exists() or not (job / "job.json").exists():
            time.sleep(0.05)
        shown, url, _ = start(job)
        threading.Thread(target=listen, args=(f"{url}events",), daemon=True).start()
        ours = psutil.Process(shown.pid)
    before = last = cpu(ours), cpu(theirs)
    while process.poll() is None:
        with suppress(psutil.Error):
            last = cpu(ours), cpu(theirs)
        time.sleep(0.05)
    if shown is not None:
        shown.kill()
        shown.wait()
    return last[1], (last[0] - before[0]) / (last[1] - before[1])


def listen(url: str) -> None:
    """Take what a page would be told, until the dashboard ends."""
    with suppress(OSError, http.client.HTTPException), urllib.request.urlopen(url) as answer:
        for _ in answer:
            pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=10_000_000, help="of the long crawl (%(default)s); 0: none")
    parser.add_argument("--rounds", type=int, default=3, help="pairs of crawls (%(default)s)")
    parser.add_argument("--pages", type=int, default=20_000, help="of their web (%(default)s)")
    args = parser.parse_args()
    if args.lines:
        with tempfile.TemporaryDirectory() as folder:
            first_paint(Path(folder), args.lines)
    more, shares = [], []
    made = tempfile.TemporaryDirectory()
    web = ensure_demo(Path(made.name), pages=args.pages, hosts=args.pages // 40, seed=0, progress=False)
    for number in range(args.rounds):
        spent = {}
        for watched in (number % 2 == 0, number % 2 == 1):
            with tempfile.TemporaryDirectory() as folder:
                spent[watched], share = crawl(Path(folder), web, watched=watched)
            if watched:
                shares.append(share)
        more.append(spent[True] / spent[False] - 1)
        print(
            f"crawl {spent[False]:.1f} s of CPU, with series and dashboard {spent[True]:.1f} s ({more[-1]:+.1%}); "
            f"the dashboard took {shares[-1]:.2%} of that beside it",
            flush=True,
        )
    if args.rounds:
        made.cleanup()
        print(f"medians: crawl {statistics.median(more):+.1%}, dashboard {statistics.median(shares):.2%}")


if __name__ == "__main__":
    main()
