"""What a simulated crawl costs, against the published implementation (cxcscmu/Crawl4LLM).

    python -m benchmarks.simulation [--runs 3] [--peer CHECKOUT]

The crawl is that of ../shared/reference-runs: 6,500 pages of ../shared/clueweb22-real by influence, n = 100. With
``--peer``, a checkout of the published implementation runs it too, in turn with ours; without, its cost is what the
README there gives, scaled by how long ../shared/calibrate.py takes here. The crawl with JOBDIR is compared with that
without.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from benchmarks.processes import Cost, measure, median

PROJECT = Path(__file__).resolve().parents[1]
SHARED = PROJECT.parent / "shared"
CORPUS, MODEL = SHARED / "clueweb22-real", SHARED / "scorers/prose.bin"
SEEDS = SHARED / "reference-runs/seeds-100.txt"
PAGES, VISITED, BATCH = 6500, 10_800, 100

PUBLISHED_CPU, PUBLISHED_CALIBRATION = 16.1, 0.51
"""../shared/reference-runs/README.md, "Cost": CPU seconds of the peer, and of calibrate.py on that machine."""


class Ours(NamedTuple):
    """A way to run the crawl."""

    pages: int = PAGES
    archive: bool = False
    durable: bool = False


def our_command(output: Path, run: Ours) -> list[str]:
    """The crawl as a user starts it."""
    settings = {
        "CORPUS": CORPUS,
        "SCORER_MODEL": MODEL,
        "CRAWL_MAX_PAGES": run.pages,
        "CRAWL_BATCH_SIZE": BATCH,
        "WARC_ENABLED": run.archive,
        "OUTPUT_DIR": output,
        "JOBDIR": output.with_suffix(".job") if run.durable else "",
    }
    options = [option for name, value in settings.items() for option in ("-s", f"{name}={value}")]
    return [sys.executable, "-m", "scrapy", "crawl", "influence", "-a", f"seeds={SEEDS}", *options]


def slim_copy(target: Path) -> Path:
    """A copy of the corpus whose links begin with the target's id, where the published implementation looks for it."""
    for kind, field in (("outlink", "outlinks"), ("inlink", "anchors")):
        for offsets in (CORPUS / kind).rglob("*.offset"):
            places = [int(line) for line in offsets.read_text().split()]
            data = offsets.with_suffix(".json.gz").read_bytes()
            folder = target / offsets.parent.relative_to(CORPUS)
            folder.mkdir(parents=True, exist_ok=True)
            members = []
            for begin, end in pairwise(places):
                text = gzip.decompress(data[begin:end])
                if text.strip():
                    record = json.loads(text)
                    record[field] = [[link[5], *link[:5]] for link in record[field]]
                    text = json.dumps(record).encode() + b"\n"
                members.append(gzip.compress(text, 6))
            position, lines = 0, []
            for member in [*members, b""]:
                lines.append(f"{position:010d}\n")
                position += len(member)
            (folder / offsets.with_suffix(".json.gz").name).write_bytes(b"".join(members))
            (folder / offsets.name).write_text("".join(lines))
    (target / "txt").symlink_to(CORPUS / "txt")
    return target


def peer_command(work: Path, checkout: Path) -> tuple[list[str], dict[str, str]]:
    """The same crawl by the published implementation, logging to Weights & Biases off."""
    corpus = work / "slim"
    if not corpus.exists():
        slim_copy(corpus)
        (work / "wandb.py").touch()  # imported, but not used
    config = {
        "cw22_root_path": str(corpus),
        "seed_docs_file": str(SEEDS),
        "output_dir": str(work / "peer"),
        "num_selected_docs_per_iter": BATCH,
        "num_workers": 2,
        "save_state_every": -1,
        "max_num_docs": PAGES,
        "selection_method": "dclm_fasttext_score",
        "order": "desc",
        "wandb": False,
        "rating_methods": [
            {"type": "length"},
            {"type": "fasttext_score", "rater_name": "dclm_fasttext_score", "model_path": str(MODEL)},
        ],
    }
    (work / "config.json").write_text(json.dumps(config))
    command = [sys.executable, str(checkout / "crawl.py"), "crawl", "--config", str(work / "config.json")]
    return command, {"PYTHONPATH": str(work)}


def calibration() -> float:
    """CPU seconds of ../shared/calibrate.py here."""
    printed = subprocess.run(
        [sys.executable, SHARED / "calibrate.py"], capture_output=True, text=True, check=True
    ).stdout
    found = re.match(r"[0-9.]+", printed)
    assert found, printed
    return float(found.group())


def describe(name: str, cost: Cost) -> None:
    """Print one line of the table."""
    memory = " + ".join(f"{peak:.0f}" for peak in cost.memory[:4])
    if len(cost.memory) > 4:
        memory += f" + {len(cost.memory) - 4} more processes of at most {cost.memory[4]:.0f}"
    print(f"{name:<34} {cost.wall:7.2f} {cost.cpu:7.2f}   {memory}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="runs of each, in turn; medians are printed")
    parser.add_argument("--peer", type=Path, help="a checkout of cxcscmu/Crawl4LLM")
    args = parser.parse_args()
    if not CORPUS.exists():
        sys.exit(f"needs {CORPUS}, which is not here")

    names = {
        "archive off": Ours(),
        "archive off, JOBDIR": Ours(durable=True),
        "archive on": Ours(archive=True),
        "archive on, JOBDIR": Ours(archive=True, durable=True),
        "start-up (seeds only)": Ours(pages=1),
    }
    costs: dict[str, list[Cost]] = {name: [] for name in (*names, "published implementation")}
    calibrations = []
    env = {"PYTHONPATH": str(PROJECT)}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for run in range(args.runs):
            calibrations.append(calibration())
            for number, (name, ours) in enumerate(names.items()):
                costs[name].append(measure(our_command(work / f"{run}-{number}", ours), PROJECT, env))
            if args.peer:
                command, peer_env = peer_command(work, args.peer.resolve())
                costs["published implementation"].append(measure(command, work, peer_env))

    print(f"{PAGES} pages crawled, {VISITED} visited, n = {BATCH}, {os.cpu_count()} cores, medians of {args.runs}")
    print(f"{'':<34} {'wall s':>7} {'CPU s':>7}   peak PSS in MiB by process, the crawler first")
    medians = {name: median(runs) for name, runs in costs.items() if runs}
    for name, cost in medians.items():
        describe(name, cost)
    started = medians["start-up (seeds only)"].cpu
    for name in ("archive off", "archive on"):
        cpu = medians[name].cpu - started
        print(f"{name}: {PAGES / cpu:,.0f} pages crawled, {VISITED / cpu:,.0f} visited a CPU second, start-up apart")
    for name in ("archive off", "archive on"):
        ratio = medians[f"{name}, JOBDIR"].cpu / medians[name].cpu
        print(f"{name}: ratio of CPU with JOBDIR to that without: {ratio:.2f}")
    cpu = medians["archive off"].cpu
    if args.peer:
        print(f"ratio of CPU to the published implementation: {cpu / medians['published implementation'].cpu:.2f}")
    else:
        here = sorted(calibrations)[len(calibrations) // 2]
        peer = PUBLISHED_CPU * here / PUBLISHED_CALIBRATION
        print(f"calibrate.py: {here:.2f} CPU s, so the published implementation would take {peer:.1f} CPU s")
        print(f"ratio of CPU to the published implementation (scaled): {cpu / peer:.2f}")


if __name__ == "__main__":
    main()
