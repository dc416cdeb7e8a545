"""The names of runs, and ``trainlm.json``: the losses of models trained on them, as trainlm and evaluate show them."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.formats import require_format
from crawl4llm.base.input_files import json_or_none, read_input

NAME: Final = "trainlm.json"
FORMAT: Final = 1
LARGEST: Final = 1 << 26
"""Bytes of such a file."""
_AGAIN: Final = "scrapy trainlm RUN ... --out DIR"


@dataclass(frozen=True)
class Point:
    """The losses of a run's models after some number of tokens."""

    tokens: int
    pages: int
    """Pages that were crawled for them."""
    fetched: int
    """Documents that were fetched."""
    losses: Mapping[str, Sequence[float]]
    """By target: bits per byte of each training seed."""

    def mean(self, target: str) -> float:
        """Return the mean over training seeds."""
        return statistics.fmean(self.losses[target])

    def spread(self, target: str) -> float:
        """Return the standard deviation over training seeds; 0 for one."""
        losses = self.losses[target]
        return statistics.stdev(losses) if len(losses) > 1 else 0.0


@dataclass(frozen=True)
class Learnt:
    """A run with the losses of its models."""

    name: str
    facts: Mapping[str, Any]
    points: Sequence[Point]
    """By tokens; the last one has all."""
    estimates: Mapping[str, float]
    """By target: bits per byte by n-grams, an estimate without training."""


@dataclass(frozen=True)
class Results:
    """The results of one plan. All numbers in it may be compared: they have tokenizer, budget and targets in common."""

    about: Mapping[str, Any]
    targets: Sequence[str]
    runs: Sequence[Learnt]


def results_json(results: Results) -> str:
    """Return the text of ``trainlm.json``."""
    return json.dumps({"kind": "crawl4llm trainlm", "format": FORMAT, **asdict(results)}, indent=1) + "\n"


def read_results(path: Path) -> Results:
    """Read a ``trainlm.json``, or that in a folder of results. Raises InputError."""
    path = path / NAME if path.is_dir() else path
    with as_input_error(f"--trained {path} cannot be read"):
        content = json_or_none(read_input(path, LARGEST))
    if not isinstance(content, dict) or content.get("kind") != "crawl4llm trainlm":
        raise InputError(f"--trained {path}: is no {NAME}; make one: {_AGAIN}")
    require_format(f"--trained {path}", content.get("format"), FORMAT, _AGAIN)
    try:
        return _checked(content)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"--trained {path} is damaged ({error!r:.200}); make it again: {_AGAIN}") from None


def _checked(content: Mapping[str, Any]) -> Results:
    targets = [str(name) for name in content["targets"]]
    runs = [
        Learnt(str(run["name"]), dict(run["facts"]), [_point(one, targets) for one in run["points"]], {})
        for run in content["runs"]
    ]
    if not targets or not all(run.points for run in runs):
        raise ValueError("nothing was trained")
    return Results(dict(content["about"]), targets, runs)


def _point(one: Mapping[str, Any], targets: Sequence[str]) -> Point:
    losses = {name: [float(loss) for loss in one["losses"][name]] for name in targets}
    if not all(losses.values()) or not all(0 <= loss < 1e6 for some in losses.values() for loss in some):
        raise ValueError("a loss")
    return Point(int(one["tokens"]), int(one["pages"]), int(one["fetched"]), losses)


def names_of(paths: Sequence[Path], facts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of runs: their policies, with the folder if several have one."""
    policies = [str(theirs["policy"]) for theirs in facts]
    names = [
        policy if policies.count(policy) == 1 else f"{policy} ({path.resolve().name})"
        for policy, path in zip(policies, paths, strict=True)
    ]
    if len(set(names)) < len(names):
        names = [f"{policy} ({path})" for policy, path in zip(policies, paths, strict=True)]
    return names


def rank_correlation(one: list[float], other: list[float]) -> float | None:
    """Return Spearman's rank correlation; None for fewer than three pairs, and for values that are all equal."""
    # slow to import
    from scipy.stats import spearmanr

    if len(one) < 3 or len({*one}) < 2 or len({*other}) < 2:
        return None
    found = float(spearmanr(one, other).statistic)
    return None if math.isnan(found) else found
