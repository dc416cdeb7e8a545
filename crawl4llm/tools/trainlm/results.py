"""Results of a plan: losses of the trained models, means over training seeds, and estimates by n-grams.

An estimate is a quick look without training: the bits per byte that n-grams of a run's tokens leave of a target, by
interpolated Witten-Bell smoothing (Chen and Goodman 1999, 2.6): p(w|h) = (c(hw) + t(h) p(w|h')) / (c(h) + t(h)). There
c are the counts in the run, t(h) is how many tokens follow h there, and h' is the history h without its oldest token.
Below single tokens each token has the same probability.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.input_files import parse_json, read_input
from crawl4llm.base.processes import interruptible
from crawl4llm.tools._learnt import LARGEST, Learnt, Point, Results
from crawl4llm.tools.trainlm.trainer import load_plan, missing_jobs, result_path, run_tokens

ORDER: Final = 3
"""Tokens of the longest n-gram. Four would still fit in 64 bits."""
_BITS: Final = np.uint64(16)

_Keys = NDArray[np.uint64]
_Floats = NDArray[np.float64]


def collect(folder: Path, *, trained: bool = True) -> Results:
    """Return the results of a plan. Raises InputError if jobs have no result.

    ``trained`` False: only the estimates, without points.
    """
    plan = load_plan(folder)
    if trained and (missing := missing_jobs(folder, plan)):
        raise InputError(f"{folder}: {len(missing):,} trainings have no result yet; run the same command again")
    names = [target["name"] for target in plan["targets"]]
    found: dict[tuple[int, int], list[dict[str, float]]] = {}
    speeds = []
    for job in plan["jobs"] if trained else ():
        losses, speed = _result(result_path(folder, job["name"]), plan["tokenizer"], names)
        found.setdefault((job["run"], job["point"]), []).append(losses)
        speeds.append(speed)
    runs = []
    for place, run in enumerate(plan["runs"]):
        facts = {name: value for name, value in run.items() if name not in {"name", "points", "order"}}
        points = [
            Point(**end, losses={name: [losses[name] for losses in found[place, number]] for name in names})
            for number, end in enumerate(run["points"])
            if (place, number) in found
        ]
        runs.append(Learnt(run["name"], facts, points, _estimates(folder, plan, run)))
    about = {name: plan[name] for name in ("tokenizer", "model", "training", "tokens", "seeds", "targets")}
    return Results({**about, "speed": _speed(speeds)}, names, runs)


def _result(path: Path, tokenizer: str, names: Sequence[str]) -> tuple[dict[str, float], dict[str, Any]]:
    """Return the losses by target, and the speed, of a training's result. Raises InputError."""
    with as_input_error(f"{path} cannot be read"):
        data = read_input(path, LARGEST)
    try:
        result = parse_json(data)
        if result["tokenizer"] != tokenizer:
            raise InputError(f"{path} is of another tokenizer; remove it")
        losses = {name: float(result["targets"][name]["bits_per_byte"]) for name in names}
        speed = {name: result[name] for name in ("device", "tokens_a_second", "share_of_peak", "seconds")}
    except (LookupError, TypeError, ValueError):
        raise InputError(f"{path} is damaged; remove it, and the same command trains again") from None
    return losses, speed


def _speed(speeds: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the median speed, and the seconds of all trainings."""
    known = [one for one in speeds if one["tokens_a_second"]]
    if not known:
        return {}
    middle = sorted(known, key=lambda one: one["tokens_a_second"])[len(known) // 2]
    return {**middle, "seconds": math.fsum(one["seconds"] for one in speeds)}


def _estimates(folder: Path, plan: Mapping[str, Any], run: Mapping[str, Any]) -> dict[str, float]:
    tokens, vocabulary = run_tokens(folder, run["order"], plan["tokens"]), plan["model"]["vocabulary"]

    def estimate(target: Mapping[str, Any]) -> float:
        held_out = np.fromfile(folder / target["tokens"], "<u2")
        return bits_per_byte(tokens, held_out, target["bytes"], vocabulary)

    return {target["name"]: interruptible(partial(estimate, target)) for target in plan["targets"]}


# -- estimates by n-grams ----------------------------------------------------------------------------------------------


def bits_per_byte(run: NDArray[np.uint16], target: NDArray[np.uint16], size: int, vocabulary: int) -> float:
    """Return the estimate for a target of ``size`` bytes, all of whose tokens but the first are predicted."""
    probability: _Floats = np.full(len(target) - 1, 1 / vocabulary)
    for order in range(1, ORDER + 1):
        probability = _mixed(run, target, order, probability)
    return float(-np.log2(probability).sum() / size)


def _mixed(run: NDArray[Any], target: NDArray[Any], order: int, lower: _Floats) -> _Floats:
    """Return the probabilities by n-grams of one order, of which the first tokens of the target have none."""
    grams, counts = np.unique(_grams(run, order), return_counts=True)
    histories, places, following = np.unique(grams >> _BITS, return_index=True, return_counts=True)
    totals = np.add.reduceat(counts, places)
    wanted = _grams(target, order)[1 if order == 1 else 0 :]
    count = _found(grams, counts, wanted)
    total, distinct = (_found(histories, values, wanted >> _BITS) for values in (totals, following))
    known = total > 0
    before = lower[len(lower) - len(wanted) :]
    mixed = before.copy()
    mixed[known] = (count[known] + distinct[known] * before[known]) / (total[known] + distinct[known])
    return np.concatenate([lower[: len(lower) - len(wanted)], mixed])


def _grams(tokens: NDArray[Any], order: int) -> _Keys:
    """Return the n-grams of tokens as numbers, the last token in the lowest bits."""
    keys = np.zeros(max(len(tokens) - order + 1, 0), np.uint64)
    for place in range(order):
        keys = keys << _BITS | tokens[place : place + len(keys)].astype(np.uint64)
    return keys


def _found(keys: _Keys, values: NDArray[Any], wanted: _Keys) -> _Floats:
    """Return the value of each wanted key, 0 for one that is not there."""
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[places] == wanted, values[places], 0).astype(np.float64)


# -- comparisons -------------------------------------------------------------------------------------------------------


def fetches_for(curve: Learnt, target: str, loss: float) -> float | None:
    """Return after how many fetches a run's model has a loss, by lines between the points of its curve over the
    logarithm of the fetches; None if the curve does not reach it. A loss above the first point gives that point."""
    before: tuple[float, float] | None = None
    for point in curve.points:
        here = math.log(max(point.fetched, 1)), point.mean(target)
        if here[1] <= loss:
            if before is None:
                return float(point.fetched)
            share = (before[1] - loss) / (before[1] - here[1])
            return math.exp(before[0] + share * (here[0] - before[0]))
        before = here
    return None


def sentences(results: Results) -> Iterator[str]:
    """Yield, from the curves, the share of another run's fetches that a run needs for the other one's loss."""
    curved = [run for run in results.runs if len(run.points) > 1]
    for run in curved:
        for other in curved:
            for target in results.targets:
                last = other.points[-1]
                if run is other or run.points[-1].mean(target) > last.mean(target):
                    continue
                needed = fetches_for(run, target, last.mean(target))
                if needed is not None:
                    yield (
                        f"{run.name} needs {needed / max(last.fetched, 1):.0%} of the fetches of {other.name} for the "
                        f"same loss on {target} ({last.mean(target):.3f} bits a byte)"
                    )
