"""What language models learn from crawls of the real pages: the paper's last table at our scale.

    python -m benchmarks.trainlm [--prepare] [--train] [--take] [--report] [--work DIR] [--device auto|cpu|cuda]

Without a stage it does all of them. ``--prepare`` crawls ../shared/clueweb22-real in memory by each policy and scorer,
from three sets of seeds, and writes a plan for each model; ``--train`` does the trainings, on the CPU in some hours, on
a GPU in minutes (a plan may also be trained elsewhere, as ``scrapy trainlm --plan`` says); ``--take`` writes what was
measured to benchmarks/measured/trainlm.json; ``--report`` makes a section of docs/paper.md, its pictures and the notes
benchmarks/notes-trainlm.md of that.

No crawl may enter the six hosts of the first target, which BLOCKLISTS names. The second target comes from Debian's
documentation packages, if apt-get can download them.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Final

from benchmarks import trainlm_arms
from benchmarks.corpora import kept
from benchmarks.policy_webs import RememberedScores
from benchmarks.results import PROJECT, machine
from benchmarks.trainlm_report import MEASURED, report
from crawl4llm.tools.trainlm.plan import SIZES, Asked, Target, Tokenizer, write_plan
from crawl4llm.tools.trainlm.results import collect

PLANS: Final = {"1m": 1_000_000, "5m": 2_000_000}
"""Models, and the tokens on which each is trained. The first takes some 5 CPU hours, the second is for a GPU."""
TRAINING_SEEDS, POINTS = 3, 4
STAGES: Final = ("prepare", "train", "take", "report")


def prepare(work: Path) -> None:
    """Write a plan for each model."""
    work.mkdir(parents=True, exist_ok=True)
    subject = trainlm_arms.open_subject(work)
    aims, notes = trainlm_arms.targets(subject)
    scored = trainlm_arms.scorers(subject, aims)
    about = {**trainlm_arms.described(subject, aims), "notes": notes}
    (work / "about.json").write_text(json.dumps(about))
    for name, tokens in PLANS.items():
        print(f"crawling for {name}", flush=True)
        _prepare_one(work / name, SIZES[name].shape.vocabulary, name, tokens, subject, aims, scored)


def _prepare_one(
    folder: Path,
    vocabulary: int,
    name: str,
    tokens: int,
    subject: trainlm_arms.Subject,
    aims: list[Target],
    scored: dict[str, RememberedScores],
) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    tokenizer = Tokenizer.trained((text for target in aims for text in target.others), vocabulary)
    arms = list(trainlm_arms.arms(subject, scored, tokenizer, tokens))
    curved = [arm.name for arm in arms if arm.facts["curved"]]
    asked = Asked(SIZES[name], tokens, TRAINING_SEEDS, POINTS, tokenizer, curved)
    write_plan(folder, arms, aims, asked, "benchmarks.trainlm")


def train(work: Path, device: str) -> None:
    """Do the trainings that have no result."""
    for name in PLANS:
        command = [sys.executable, "-m", "crawl4llm.tools.trainlm.trainer", str(work / name), "--device", device]
        subprocess.run(command, cwd=PROJECT, check=True, stdout=subprocess.DEVNULL)


def take(work: Path) -> None:
    """Write what was measured, with the machine that collected it."""
    tables = {name: asdict(collect(work / name)) for name in PLANS}
    content = {"about": json.loads((work / "about.json").read_text()), "machine": machine(), "tables": tables}
    MEASURED.write_text(json.dumps(content, indent=1) + "\n")


def main() -> None:
    """Do the stages that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for stage in STAGES:
        parser.add_argument(f"--{stage}", action="store_true")
    parser.add_argument("--work", type=Path, default=kept() / "trainlm", help="folder of the plans (default: a cache)")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    args = parser.parse_args()
    asked = [stage for stage in STAGES if getattr(args, stage)] or STAGES
    if "prepare" in asked:
        prepare(args.work)
    if "train" in asked:
        train(args.work, args.device)
    if "take" in asked:
        take(args.work)
    if "report" in asked:
        print(report())


if __name__ == "__main__":
    main()
