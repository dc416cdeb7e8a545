"""Draws the figures of docs/paper.md from crawls of the demo web, and writes their numbers there: ``make figures``."""

from __future__ import annotations

import tempfile
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from crawl4llm import OpenedRun, simulate

IMAGES, PAGE = Path(__file__).parent / "images", Path(__file__).parent / "paper.md"
BEGIN, END = "<!-- begin: python docs/figures.py -->", "<!-- end -->"
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


def tell(runs: dict[str, OpenedRun]) -> str:
    """Write the crawls' means into the page; return the sentence."""
    means = {policy: column(run, "influence").mean() for policy, run in runs.items()}
    listed = [f"{mean:.3f} with `{policy}`" for policy, mean in sorted(means.items(), key=lambda item: -item[1])]
    fetched = int(column(runs["influence"], "fetched")[-1])
    told = (
        f"After {PAGES:,} pages the mean influence is {', '.join(listed[:-1])} and {listed[-1]}.\n"
        f"`influence` has fetched {fetched:,} documents by then."
    )
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n\n{told}\n\n{END}{rest.partition(END)[2]}")
    return told


def main() -> None:
    """Crawl the demo web by each policy, and draw."""
    mpl.rcParams.update({"svg.hashsalt": "crawl4llm", "svg.fonttype": "path", "font.size": 10})
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        runs = {
            policy: simulate(policy, out=Path(folder) / policy, CRAWL_MAX_PAGES=PAGES, WARC_ENABLED=False)
            for policy in POLICIES
        }
        draw(runs)
        print(tell(runs))


if __name__ == "__main__":
    main()
