"""Draws the figures of README and docs/paper.md from crawls of the demo web, and writes benchmarks/measured/demo.json:
``make figures``."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from benchmarks.marked import MEASURED
from benchmarks.results import Result, Table, add_output, publish
from crawl4llm import OpenedRun, simulate

IMAGES = Path(__file__).parent / "images"
PAGES, STEP = 4000, 20
POLICIES = {"influence": "#0b5fa5", "link": "#b3470a", "indegree": "#5a3d8a", "random": "#5f5f5f"}
"""Colours that differ for all kinds of sight, each dark enough for text on white."""


def column(run: OpenedRun, name: str) -> np.ndarray:
    """Return a column of the crawl log; what is null is NaN."""
    return np.asarray(run.crawl_log().column(name).to_numpy(zero_copy_only=False), dtype=float)


def lines(runs: dict[str, OpenedRun], says: str, values: dict[str, np.ndarray], by: str, name: str) -> None:
    """Draw a line a policy, with its name at its end."""
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    for policy, along in values.items():
        at = column(runs[policy], "fetched") if by == "pages fetched" else np.arange(1, len(along) + 1)
        axes.plot(at[::STEP], along[::STEP], color=POLICIES[policy], linewidth=1.8)
        axes.annotate(
            policy, (at[-1], along[-1]), (4, 0), textcoords="offset points", color=POLICIES[policy], va="center"
        )
    axes.set(xlabel=by, ylabel=says, ylim=(0, 1), xlim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.3)
    save(figure, name)


def save(figure: Figure, name: str) -> None:
    """Write a figure, the same bytes for the same crawls, on one line."""
    path = IMAGES / name
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    path.write_text(" ".join(path.read_text().split()) + "\n")


def draw(runs: dict[str, OpenedRun]) -> None:
    """Draw all figures of some crawls, by policy."""
    scores = {policy: column(run, "influence") for policy, run in runs.items()}
    means = {policy: np.cumsum(some) / np.arange(1, len(some) + 1) for policy, some in scores.items()}
    lines(runs, "mean influence so far", means, "pages crawled", "paper-mean.svg")
    lines(runs, "mean influence so far", means, "pages fetched", "paper-fetched.svg")

    figure, axes = plt.subplots(figsize=(6.4, 3.0), layout="constrained")
    for policy in ("random", "influence"):
        axes.hist(scores[policy], bins=40, range=(0, 1), alpha=0.65, color=POLICIES[policy], label=policy)
    axes.set(xlabel="influence score of a page", ylabel="pages crawled", xlim=(0, 1))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    save(figure, "paper-scores.svg")


def measured(runs: dict[str, OpenedRun]) -> Result:
    """Return the mean influence of some crawls, by policy, and what they fetched."""
    rows: list[list[str | float | None]] = []
    means = {policy: float(column(run, "influence").mean()) for policy, run in runs.items()}
    for policy, run in runs.items():
        last = run.crawl_log().slice(PAGES - 1, 1).to_pylist()[0]
        rows.append([policy, means[policy], last["fetched"], means[policy] / means["random"]])
    table = Table(f"After {PAGES:,} pages", ["", "mean influence", "pages fetched", "of random"], rows)
    return Result("demo", ["the demo web: 20,000 generated pages of 500 hosts, 100 random seeds, n = 100"], [table])


def main() -> None:
    """Crawl the demo web by each policy, draw, and write what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_output(parser)
    parser.set_defaults(out=MEASURED)
    args = parser.parse_args()
    mpl.rcParams.update({"svg.hashsalt": "crawl4llm", "svg.fonttype": "path", "font.size": 10})
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        runs = {
            policy: simulate(policy, out=Path(folder) / policy, CRAWL_MAX_PAGES=PAGES, WARC_ENABLED=False)
            for policy in POLICIES
        }
        draw(runs)
        publish(measured(runs), args)


if __name__ == "__main__":
    main()
