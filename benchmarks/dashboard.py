"""What the dashboard takes: its first paint and memory on a long crawl, and its share of the CPU beside one that runs.

    python -m benchmarks.dashboard [--lines N] [--rounds 3] [--pages 20000] [--out FOLDER]

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

from benchmarks.results import PROJECT, Figure, Result, Table, add_output, publish
from crawl4llm.base.files import PreadFile
from crawl4llm.base.series import FIELDS, Scores, SeriesFile
from simulate.demo import DemoPaths, ensure_demo

sys.path.append(str(PROJECT / "tests/helpers"))

SEEN = """new MutationObserver((_, it) => { if (document.querySelector('.curve')) { it.disconnect();
requestAnimationFrame(() => { window.drawn = performance.now() }) } }).observe(document, {subtree: true,
childList: true})"""
MOST_PAINT, MOST_MIB, MOST_CPU = 1.0, 200, 0.02
"""Seconds to the first paint, peak memory, and share of a running crawl's CPU."""
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
    """Start a dashboard; return it, its address, and the seconds until that was printed."""
    began = time.monotonic()
    command = [sys.executable, "-m", "scrapy", "dashboard", str(path), "--no-browser"]
    process = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    found = re.search(r"http://\S+", process.stdout.readline())
    assert found is not None
    return process, found[0], time.monotonic() - began


def first_paint(folder: Path, lines: int, result: Result) -> None:
    """Open a long crawl three times, and read its log."""
    import browser

    run = folder / "long"
    make_crawl(run, lines)
    result.data = [*result.data, f"a log of {lines:,} lines, {(run / 'crawl.jsonl').stat().st_size / 1e9:.2f} GB"]
    seen: list[list[float]] = []
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
            seen.append([paint / 1000, drawn / 1000, seconds, int(memory[1]) / 1024])
    began = time.monotonic()
    with (run / "crawl.jsonl").open() as log:
        statistics.fmean(json.loads(line)["influence"] for line in log)
    reading = time.monotonic() - began
    columns = ["", "first paint, s", "charts, s", "address, s", "peak MiB"]
    least, most = ([function(values) for values in zip(*seen, strict=True)] for function in (min, max))
    rows = [["least", *least], ["most", *most], ["reading the log line by line", reading, None, None, None]]
    result.tables.append(Table("A long crawl", columns, rows))
    result.figures += [Figure("first paint", most[0], MOST_PAINT, "s"), Figure("peak memory", most[3], MOST_MIB, "MiB")]


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
    add_output(parser)
    args = parser.parse_args()
    result = Result("dashboard", [])
    if args.lines:
        with tempfile.TemporaryDirectory() as folder:
            first_paint(Path(folder), args.lines, result)
    if args.rounds:
        in_pairs(args.rounds, args.pages, result)
    publish(result, args)


def in_pairs(rounds: int, pages: int, result: Result) -> None:
    """Crawl with series and dashboard, and without, in turn."""
    plain: list[float] = []
    watched: list[float] = []
    shares: list[float] = []
    with tempfile.TemporaryDirectory() as made:
        web = ensure_demo(Path(made), pages=pages, hosts=pages // 40, seed=0, progress=False)
        for number in range(rounds):
            for is_watched in (number % 2 == 0, number % 2 == 1):
                with tempfile.TemporaryDirectory() as folder:
                    spent, share = crawl(Path(folder), web, watched=is_watched)
                (watched if is_watched else plain).append(spent)
                if is_watched:
                    shares.append(share)
    of_plain = statistics.median(one / other for one, other in zip(watched, plain, strict=True))
    rows: list[list[str | float | None]] = [
        ["plain", statistics.median(plain), 1],
        ["series and dashboard", statistics.median(watched), of_plain],
    ]
    result.data = [*result.data, f"crawls of {pages:,} demo pages, medians of {rounds}"]
    result.tables.append(Table("Crawls", ["", "CPU s", "of plain"], rows))
    result.figures.append(Figure("CPU of the dashboard / crawl", statistics.median(shares), MOST_CPU))


if __name__ == "__main__":
    main()
