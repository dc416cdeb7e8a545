"""What models learn, of benchmarks/measured/trainlm.json: a section of docs/paper.md, its pictures, and notes."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.results import PROJECT
from crawl4llm.tools._learnt import Learnt, Point, rank_correlation
from crawl4llm.tools.trainlm.results import fetches_for

MEASURED: Final = PROJECT / "benchmarks/measured/trainlm.json"
PAGE, IMAGES = PROJECT / "docs/paper.md", PROJECT / "docs/images"
NOTES: Final = PROJECT / "benchmarks/notes-trainlm.md"
BEGIN, END = "<!-- begin: python -m benchmarks.trainlm --report -->", "<!-- end -->"
_COLOURS: Final = ("#0b5fa5", "#b3470a")
_COMPARED: Final = (("select 5x", "prose"), ("random", "prose"), ("indegree", "prose"))
_TICKS: Final = (200, 500, 1000, 2000)
_BASE: Final = ("influence", "prose")
_SHOWN: Final = ("influence", "link", "select 5x", "indegree", "random")

Arms = dict[tuple[str, str], list[Learnt]]
"""By policy and scorer, a run for each set of seeds."""


def report() -> str:
    """Write the section, the notes and the pictures; return the section."""
    measured = json.loads(MEASURED.read_text())
    for path, content in texts(measured).items():
        path.write_text(content)
    _draw(measured)
    return "\n".join(_section(measured))


def texts(measured: Mapping[str, Any]) -> dict[Path, str]:
    """Return what docs/paper.md and the notes should say."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    section, notes = ("\n".join(some) for some in (_section(measured), _notes(measured)))
    return {PAGE: f"{before}{BEGIN}\n\n{section}\n\n{END}{after}", NOTES: f"{notes}\n"}


def arms_of(table: Mapping[str, Any]) -> Arms:
    """Return the runs of a table by policy and scorer, in the order of their seeds."""
    found: Arms = defaultdict(list)
    for run in sorted(table["runs"], key=lambda run: run["facts"]["random_seed"]):
        points = [Point(**point) for point in run["points"]]
        learnt = Learnt(run["name"], run["facts"], points, run["estimates"])
        found[run["facts"]["policy"], run["facts"]["scorer"]].append(learnt)
    return found


def _title(arm: tuple[str, str]) -> str:
    policy, scorer = arm
    return f"`{policy}`" if scorer == "prose" else f"`{policy}`, scorer `{scorer}`"


def _losses(runs: Sequence[Learnt], target: str) -> list[float]:
    return [run.points[-1].mean(target) for run in runs]


def _mean(runs: Sequence[Learnt], target: str) -> float:
    return statistics.fmean(_losses(runs, target))


def _section(measured: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the page shows: a picture, and what it shows of the largest model."""
    name, table = list(measured["tables"].items())[-1]
    yield "![Loss by policy, with error bars, for both models and targets](images/paper-learnt.svg)"
    yield ""
    yield "Bits a byte of held-out texts (pages of six hosts, Debian's documentation), less is better, with the"
    yield "standard deviation over three sets of crawl seeds."
    yield f"With model `{name}` and {table['about']['tokens']:,} tokens:"
    yield ""
    yield "| | pages | fetched | loss |"
    yield "|-|-|-|-|"
    arms = arms_of(table)
    for arm in sorted(((policy, "prose") for policy in _SHOWN), key=lambda arm: _all_losses(arms[arm], table)):
        pages, fetched = _seen(arms[arm])
        yield f"| {_title(arm)} | {pages:,.0f} | {fetched:,.0f} | {_all_losses(arms[arm], table):.3f} |"
    yield ""
    yield "Loss: mean of both targets. [All numbers](../benchmarks/notes-trainlm.md), with definitions."


def _all_losses(runs: Sequence[Learnt], table: Mapping[str, Any]) -> float:
    return statistics.fmean(_mean(runs, target) for target in table["targets"])


def _seen(runs: Sequence[Learnt]) -> tuple[float, float]:
    """Return the mean numbers of pages crawled and fetched."""
    last = [run.points[-1] for run in runs]
    return statistics.fmean(one.pages for one in last), statistics.fmean(one.fetched for one in last)


def _notes(measured: Mapping[str, Any]) -> Iterator[str]:
    """Yield all that was measured."""
    page = "[The paper in pictures](../docs/paper.md#what-a-model-learns)"
    yield f"# What models learnt from crawls\n\nAll numbers behind a section of {page}. Written by"
    yield "`python -m benchmarks.trainlm --report`.\n"
    yield from _head(measured)
    for name, table in measured["tables"].items():
        yield ""
        yield from _table(name, table)
        yield ""
        yield from (" ".join(_findings(arms_of(table), target)) for target in table["targets"])
        yield _correlation(table)
        yield _speed(table)
    yield ""
    yield "![Loss by documents fetched, for influence and indegree](../docs/images/paper-learnt-curve.svg)"


def _head(measured: Mapping[str, Any]) -> Iterator[str]:
    about = measured["about"]
    yield from (
        "- **Six hosts**: pages with an influence over 0.5 of six hosts that a seed has drawn. `BLOCKLISTS` keeps them",
        f"  out of all crawls: {', '.join(about['hosts'])}.",
        "- **Debian**: English pages of Debian's documentation packages.",
        "- **Loss** is in bits a byte of held-out texts; less is better. It is the mean ± standard deviation of three",
        "  sets of crawl seeds, each the mean of three training seeds.",
        "- **`select 5x`** crawls at random until it has five times the tokens. It keeps the pages of best influence.",
        "- **Scorers beside `prose`**: `target` was trained on halves of the targets that no model is measured on.",
        "  `reference` prefers what `prose` calls bad, as a control.",
    )
    yield from (f"- {note}." for note in about["notes"])


def _table(name: str, table: Mapping[str, Any]) -> Iterator[str]:
    arms, targets = arms_of(table), table["targets"]
    about = table["about"]
    vocabulary = f"{about['model']['vocabulary']:,} tokens of vocabulary"
    yield f"**Model `{name}`, {vocabulary}, trained on {about['tokens']:,} tokens:**"
    yield ""
    yield f"| | pages | fetched | {' | '.join(targets)} | spread of training seeds |"
    yield f"|-|-|-|{'-|' * len(targets)}-|"
    for arm in sorted(arms, key=lambda arm: _all_losses(arms[arm], table)):
        runs = arms[arm]
        pages, fetched = _seen(runs)
        losses = [_losses(runs, target) for target in targets]
        cells = [f"{statistics.fmean(some):.3f}±{statistics.stdev(some):.3f}" for some in losses]
        spread = statistics.fmean(run.points[-1].spread(target) for run in runs for target in targets)
        yield f"| {_title(arm)} | {pages:,.0f} | {fetched:,.0f} | {' | '.join(cells)} | {spread:.3f} |"


def _findings(arms: Arms, target: str) -> Iterator[str]:
    """Yield what a table says of influence, whatever it is."""
    ranked = sorted((arm for arm in arms if arm[1] == "prose"), key=lambda arm: _mean(arms[arm], target))
    place = ranked.index(_BASE) + 1
    yield f"- **{target}**: by loss `influence` is number {place} of the {len(ranked)} ways with the scorer `prose`."
    others = [arm for arm in (*ranked[:2], *_COMPARED) if arm != _BASE]
    differences = [f"{_difference(arms, arm, target)} to {_title(arm)}" for arm in dict.fromkeys(others)]
    yield f"Its loss minus another's, paired by crawl seeds, ± standard error: {'; '.join(differences)}."
    yield from _needed(arms, target)


def _difference(arms: Arms, other: tuple[str, str], target: str) -> str:
    paired = [one - two for one, two in zip(_losses(arms[_BASE], target), _losses(arms[other], target), strict=True)]
    return f"{statistics.fmean(paired):+.3f}±{statistics.stdev(paired) / len(paired) ** 0.5:.3f}"


def _needed(arms: Arms, target: str) -> Iterator[str]:
    """Yield which share of the pages and fetches of in-degree ``influence`` needs for its loss, by mean curves."""
    if len(arms[_BASE][0].points) < 2:
        return
    one, other = _mean_curve(arms[_BASE], target), _mean_curve(arms["indegree", "prose"], target)
    loss = other.points[-1].mean(target)
    shares = []
    for what, name in (("pages", "pages crawled"), ("fetched", "documents fetched")):
        needed = fetches_for(_by(one, what), target, loss)
        if needed is None:
            yield f"It does not reach the loss of `indegree` ({loss:.3f})."
            return
        shares.append(f"{needed / getattr(other.points[-1], what):.0%} of the {name}")
    yield f"It reaches the loss of `indegree` ({loss:.3f}) with {' and '.join(shares)}."


def _mean_curve(runs: Sequence[Learnt], target: str) -> Learnt:
    """Return the curve whose points are means over sets of seeds."""
    points = []
    for same in zip(*(run.points for run in runs), strict=True):
        pages, fetched = (
            round(statistics.fmean(getattr(one, field) for one in same)) for field in ("pages", "fetched")
        )
        points.append(Point(same[0].tokens, pages, fetched, {target: [one.mean(target) for one in same]}))
    return Learnt("mean", {}, points, {})


def _by(curve: Learnt, what: str) -> Learnt:
    """Return a curve whose fetches are another of its counts."""
    points = [Point(one.tokens, one.pages, getattr(one, what), one.losses) for one in curve.points]
    return Learnt(curve.name, curve.facts, points, {})


def _correlation(table: Mapping[str, Any]) -> str:
    arms = arms_of(table)
    said = []
    for target in table["targets"]:
        for name, chosen in (
            ("all", arms),
            ("without the control", {a: r for a, r in arms.items() if a[1] != "reference"}),
        ):
            runs = [run for some in chosen.values() for run in some]
            found = rank_correlation(_losses(runs, target), [run.estimates[target] for run in runs])
            said.append(f"{target}, {name}: {'-' if found is None else f'{found:.2f}'} of {len(runs)} runs")
    return f"- Rank correlation (Spearman) of the n-gram estimates with the trained models: {'; '.join(said)}."


def _speed(table: Mapping[str, Any]) -> str:
    speed = table["about"]["speed"]
    share = "" if speed["share_of_peak"] is None else f", {speed['share_of_peak']:.1%} of its peak"
    return (
        f"- Trained on {speed['device']}: {speed['tokens_a_second']:,.0f} tokens a second{share}, "
        f"{speed['seconds']:,.0f} s in all."
    )


# -- pictures ----------------------------------------------------------------------------------------------------------


def _draw(measured: Mapping[str, Any]) -> None:
    """Draw both pictures, the same bytes for the same numbers."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "crawl4llm", "svg.fonttype": "path", "font.size": 9})
    _draw_losses(measured["tables"])
    _draw_curves(measured["tables"])


def _draw_losses(tables: Mapping[str, Any]) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(tables), figsize=(4.2 * len(tables), 3.6), layout="constrained", squeeze=False)
    for axis, (name, table) in zip(axes[0], tables.items(), strict=True):
        arms = {arm: runs for arm, runs in arms_of(table).items() if arm[1] != "reference"}
        order = sorted(arms, key=lambda arm: -sum(_mean(arms[arm], target) for target in table["targets"]))
        for place, target in enumerate(table["targets"]):
            means = [_mean(arms[arm], target) for arm in order]
            errors = [statistics.stdev(_losses(arms[arm], target)) for arm in order]
            at = [row + 0.2 * place - 0.1 for row in range(len(order))]
            axis.errorbar(means, at, xerr=errors, fmt="o", color=_COLOURS[place], markersize=4, label=target)
        axis.set_yticks(range(len(order)), [_title(arm).replace("`", "") for arm in order])
        axis.set(xlabel="bits a byte", title=f"model {name}, {table['about']['tokens']:,} tokens")
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="x", alpha=0.3)
    axes[0][0].legend(frameon=False, loc="lower left")
    _save(figure, "paper-learnt.svg")


def _draw_curves(tables: Mapping[str, Any]) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(tables), figsize=(4.2 * len(tables), 3.2), layout="constrained", squeeze=False)
    for axis, (name, table) in zip(axes[0], tables.items(), strict=True):
        arms = arms_of(table)
        for place, target in enumerate(table["targets"]):
            for policy, style in (("influence", "-"), ("indegree", "--")):
                curve = _mean_curve(arms[policy, "prose"], target)
                losses = [point.mean(target) for point in curve.points]
                errors = [statistics.stdev(point.losses[target]) for point in curve.points]
                fetched = [point.fetched for point in curve.points]
                label = f"{policy}, {target}"
                axis.errorbar(fetched, losses, yerr=errors, fmt=f"o{style}", color=_COLOURS[place], label=label, ms=3)
        axis.set(xscale="log", xlabel="documents fetched", ylabel="bits a byte", title=f"model {name}")
        axis.set_xticks(_TICKS, [f"{tick:,}" for tick in _TICKS])
        axis.xaxis.set_minor_formatter("")
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.3)
    axes[0][0].legend(frameon=False)
    _save(figure, "paper-learnt-curve.svg")


def _save(figure: Any, name: str) -> None:
    """Write a picture on one line."""
    path: Path = IMAGES / name
    figure.savefig(path, metadata={"Date": None})
    path.write_text(" ".join(path.read_text().split()) + "\n")
