"""Results of a plan: losses of the trained models, means over training seeds, and estimates by n-grams."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import read_json
from crawl4llm.base.processes import interruptible
from crawl4llm.tools._learnt import LARGEST, Learnt, Point, Results
from crawl4llm.tools.trainlm.estimate import bits_per_byte
from crawl4llm.tools.trainlm.trainer.files import load_plan, missing_jobs, result_path, run_tokens


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
    runs = [
        Learnt(
            run["name"],
            {name: value for name, value in run.items() if name not in {"name", "points", "order"}},
            _points(run, [found.get((place, point), []) for point in range(len(run["points"]))], names),
            _estimates(folder, plan, run),
        )
        for place, run in enumerate(plan["runs"])
    ]
    about = {name: plan[name] for name in ("tokenizer", "model", "training", "tokens", "seeds", "targets")}
    return Results({**about, "speed": _speed(speeds)}, names, runs)


def _result(path: Path, tokenizer: str, names: Sequence[str]) -> tuple[dict[str, float], dict[str, Any]]:
    """Return the losses by target, and the speed, of a training's result. Raises InputError."""
    try:
        result = read_json(path, LARGEST)
        if result["tokenizer"] != tokenizer:
            raise InputError(f"{path} is of another tokenizer; remove it")
        losses = {name: float(result["targets"][name]["bits_per_byte"]) for name in names}
        speed = {name: result[name] for name in ("device", "tokens_a_second", "share_of_peak", "seconds")}
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except (LookupError, TypeError, ValueError):
        raise InputError(f"{path} is damaged; remove it, and the same command trains again") from None
    return losses, speed


def _points(
    run: Mapping[str, Any], found: Sequence[Sequence[Mapping[str, float]]], names: Sequence[str]
) -> list[Point]:
    return [
        Point(**end, losses={name: [losses[name] for losses in seeds] for name in names})
        for end, seeds in zip(run["points"], found, strict=True)
        if seeds
    ]


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
