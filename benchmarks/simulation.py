"""What a simulated crawl costs, against the published implementation (cxcscmu/Crawl4LLM).

    python -m benchmarks.simulation [--sizes n100,n500,200k] [--runs 5] [--peer CHECKOUT] [--out FOLDER]

Crawls by influence, start-up included, each with an empty score cache; then with one that a run of another policy has
filled. With ``--peer``, a checkout of the published implementation crawls the same pages in turn with ours. Without,
its cost is what ../shared/reference-runs/README.md gives, scaled by how long ../shared/calibrate.py takes here; the
generated web there was another one than ours, of a like size.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.corpora import PROJECT, SHARED, Paths, demo, generated, real_pages, seeds, with_ids_first
from benchmarks.processes import Cost, measure, median
from benchmarks.results import Figure, Result, Table, add_output, publish

CPU, WALL = "CPU s", "wall s"
OFF, ARCHIVED, CACHED = "archive off", "WARC and JOBDIR", "cache filled by "
FILLERS = {"random": None, "breadth_first, all pages": 1_000_000}
"""Runs that fill the cache, and how many pages they crawl: as many as the run by influence, or all in reach. They score
what they crawl, while influence scores all that it visits."""
START, PEER = "seeds only", "published implementation"
_PUBLISHED_CALIBRATION = 0.51
_PEAK_MIB = 180
_START_SECONDS = 0.7


class Published(NamedTuple):
    """Cost of the published implementation, from ../shared/reference-runs/README.md."""

    wall: float
    cpu: float
    memory: float


class Size(NamedTuple):
    """A crawl to be measured."""

    web: Callable[[], Paths]
    pages: int
    batch: int
    """Pages of an iteration, and seeds."""
    published: Published | None = None
    limits: Mapping[tuple[str, str], float] = {}


def _limits(cpu: float, archived: float, wall: float, cached: float) -> dict[tuple[str, str], float]:
    return {(OFF, CPU): cpu, (ARCHIVED, CPU): archived, (OFF, WALL): wall, (CACHED, CPU): cached}


SIZES = {
    "n100": Size(real_pages, 6500, 100, Published(13.8, 16.1, 186), _limits(0.20, 0.27, 0.22, 0.12)),
    "n500": Size(real_pages, 8000, 500, Published(6.9, 8.9, 218), _limits(0.40, 0.50, 0.42, 0.24)),
    "20k": Size(lambda: generated(20_000), 6000, 1000),
    "200k": Size(lambda: generated(200_000), 60_000, 1000, Published(50, 58, 264), _limits(0.38, 0.47, 0.42, 0.25)),
}


def our_command(output: Path, size: Size, **settings: object) -> list[str]:
    """Return the crawl as a user starts it, but without a score cache unless the settings name one."""
    web = size.web()
    options = {
        "CORPUS": web.corpus,
        "SCORER_MODEL": web.model,
        "CLUEWEB22_TARGET_PREFIX": "clueweb22-en0",  # what the published implementation is bound to
        "CRAWL_MAX_PAGES": size.pages,
        "CRAWL_BATCH_SIZE": size.batch,
        "WARC_ENABLED": False,
        "OUTPUT_DIR": output,
        "SCORE_CACHE": "",
        **settings,
    }
    given = [part for name, value in options.items() for part in ("-s", f"{name}={value}")]
    return [
        sys.executable,
        "-m",
        "scrapy",
        "crawl",
        "influence",
        "-a",
        f"seeds={seeds(web.corpus, size.batch)}",
        *given,
    ]


def peer_command(work: Path, checkout: Path, size: Size) -> list[str]:
    """Return the same crawl by the published implementation, logging to Weights & Biases off."""
    web = size.web()
    (work / "wandb.py").touch()  # imported, but not used
    config = {
        "cw22_root_path": str(with_ids_first(web.corpus)),
        "seed_docs_file": str(seeds(web.corpus, size.batch)),
        "output_dir": str(work / "peer"),
        "num_selected_docs_per_iter": size.batch,
        "num_workers": 2,
        "save_state_every": -1,
        "max_num_docs": size.pages,
        "selection_method": "dclm_fasttext_score",
        "order": "desc",
        "wandb": False,
        "rating_methods": [
            {"type": "length"},
            {"type": "fasttext_score", "rater_name": "dclm_fasttext_score", "model_path": str(web.model)},
        ],
    }
    (work / "config.json").write_text(json.dumps(config))
    return [sys.executable, str(checkout / "crawl.py"), "crawl", "--config", str(work / "config.json")]


def calibration() -> float:
    """Return the CPU seconds of ../shared/calibrate.py here."""
    command = [sys.executable, str(SHARED / "calibrate.py")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.match(r"[0-9.]+", printed)
    assert found, printed
    return float(found.group())


class Crawls:
    """The crawls of one size, each in a folder of its own that is removed when it is measured."""

    def __init__(self, size: Size) -> None:
        self._size = size
        self.costs: defaultdict[str, list[Cost]] = defaultdict(list)
        self.visited = 0
        self.cached: dict[str, float] = {}
        """Share of the scores that were in the cache, by crawl."""

    @property
    def medians(self) -> dict[str, Cost]:
        """The median cost of each crawl."""
        return {name: median(costs) for name, costs in self.costs.items()}

    def run(self, name: str, filled: Path | None = None, **settings: Any) -> None:
        """Measure one crawl; its score cache is empty or a copy of one that is filled."""
        with tempfile.TemporaryDirectory() as folder:
            work = Path(folder)
            settings["SCORE_CACHE"] = work / "scores"
            if filled:
                shutil.copytree(filled, work / "scores")
            if name == ARCHIVED:
                settings |= {"WARC_ENABLED": True, "JOBDIR": work / "job"}
            command = our_command(work / "run", self._size, **settings)
            self.costs[name].append(measure(command, PROJECT, {"PYTHONPATH": str(PROJECT)}))
            stats = json.loads((work / "run/stats.json").read_text())
            cached, computed = (stats.get(f"crawl4llm/scores/{what}", 0) for what in ("cached", "computed"))
            if cached:
                self.cached[name] = cached / (cached + computed)
            if name == OFF:
                self.visited = stats["crawl4llm/pages/visited"]

    def fill(self, filler: str, cache: Path) -> None:
        """Fill a score cache by a crawl of another policy."""
        settings: dict[str, object] = {"URL_POLICY": filler.partition(",")[0], "SCORE_CACHE": cache}
        if pages := FILLERS[filler]:
            settings["CRAWL_MAX_PAGES"] = pages
        with tempfile.TemporaryDirectory() as folder:
            command = our_command(Path(folder) / "run", self._size, **settings)
            measure(command, PROJECT, {"PYTHONPATH": str(PROJECT)})

    def run_all(self, runs: int, peer: Path | None) -> None:
        """Measure all crawls of the size in turn, ``runs`` times."""
        with tempfile.TemporaryDirectory() as folder:
            caches = {filler: Path(folder) / filler for filler in FILLERS}
            for filler, cache in caches.items():
                self.fill(filler, cache)
            for _ in range(runs):
                self.run(OFF)
                self.run(ARCHIVED)
                for filler, cache in caches.items():
                    self.run(CACHED + filler, cache)
                if peer:
                    with tempfile.TemporaryDirectory() as peer_folder:
                        work = Path(peer_folder)
                        command = peer_command(work, peer, self._size)
                        self.costs[PEER].append(measure(command, work, {"PYTHONPATH": str(work)}))
                self.run(START, CRAWL_MAX_PAGES=1)


def published(size: Size, here: float) -> Cost | None:
    """Return what the published implementation would take here, calibrate.py taking so long; None if unknown."""
    if size.published is None or not here:
        return None
    scale = here / _PUBLISHED_CALIBRATION
    return Cost(size.published.wall * scale, size.published.cpu * scale, (), size.published.memory)


def add_size(result: Result, name: str, crawls: Crawls, here: float) -> None:
    """Add the table of one size to the result, and its figures that have limits."""
    size, medians = SIZES[name], crawls.medians
    scaled = published(size, here)
    peer = medians.get(PEER) or scaled
    if scaled:
        medians[f"{PEER}, as published, scaled"] = scaled
    rows: list[list[str | float | None]] = []
    for what, cost in medians.items():
        ratios = [cost.cpu / peer.cpu, cost.wall / peer.wall] if peer else [None, None]
        rows.append([what, cost.wall, cost.cpu, cost.tree or None, *ratios, crawls.cached.get(what)])
    columns = ("", WALL, CPU, "peak PSS MiB", "CPU / peer", "wall / peer", "scores from the cache")
    title = f"{name}: {size.pages:,} pages crawled, {crawls.visited:,} visited, n = {size.batch}"
    result.tables.append(Table(title, columns, rows))
    for (row, unit), limit in size.limits.items():
        for what, cost in medians.items():
            if peer and (what == row or (row == CACHED and what.startswith(CACHED))):
                value = cost.cpu / peer.cpu if unit == CPU else cost.wall / peer.wall
                result.figures.append(Figure(f"{name}, {what}: {unit[:-2]} / published implementation", value, limit))
    if name == "200k":
        result.figures.append(Figure(f"{name}: peak PSS of the tree", medians[OFF].tree, _PEAK_MIB, "MiB"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="n100,n500,200k", help="some of these (default: all)")
    parser.add_argument("--runs", type=int, default=5, help="runs of each, in turn; medians count")
    parser.add_argument("--peer", type=Path, help="a checkout of cxcscmu/Crawl4LLM")
    add_output(parser)
    args = parser.parse_args()
    names = args.sizes.split(",")
    if unknown := set(names) - SIZES.keys():
        parser.error(f"--sizes: {', '.join(sorted(unknown))}; there are {', '.join(SIZES)}")

    result = Result("simulation", [])
    calibrations: list[float] = []
    for name in names:
        if (SHARED / "calibrate.py").exists():
            calibrations.append(statistics.median(calibration() for _ in range(3)))
        print(f"{name} ...", flush=True)
        crawls = Crawls(SIZES[name])
        crawls.run_all(args.runs, args.peer and args.peer.resolve())
        result.data = [*dict.fromkeys([*result.data, SIZES[name].web().what])]
        here = calibrations[-1] if calibrations and result.data and "demo web" not in result.data[0] else 0.0
        add_size(result, name, crawls, here)
    one_page = Crawls(Size(demo, 1, 1))
    for _ in range(args.runs):
        one_page.run(START)
    what = "a crawl of one page of the demo web, loading the model and ending included"
    result.figures.append(Figure(what, one_page.medians[START].cpu, _START_SECONDS, "CPU s"))
    if calibrations:
        result.notes.append(f"calibrate.py: {', '.join(f'{seconds:.2f}' for seconds in calibrations)} CPU s")
    publish(result, args)


if __name__ == "__main__":
    main()
