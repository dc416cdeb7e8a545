"""The trainer: ``python -m trainer PLAN_DIR`` trains the models of a plan, and measures them on its targets.

It imports JAX, Equinox, Optax and NumPy, and nothing else of this project, so a machine needs this folder and the plan
alone. A plan is a folder: ``plan.json``; ``tokens.bin``, the tokens of each document once, as little-endian 16-bit
numbers; ``starts.npy``, where each document starts; for each run a list of documents; for each target a file of tokens.
Each training is a job, which writes ``results/JOB.json`` under another name and renames it. The same command does the
jobs that have no result. A job that was killed goes on from its last checkpoint, and on a CPU ends with the same bits.

A plan on disk, and the shape of its models, are here. ``training`` has a model and its training, and imports JAX.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FORMAT = 1
PLAN, TOKENS, STARTS, RESULTS, CHECKPOINTS = "plan.json", "tokens.bin", "starts.npy", "results", "checkpoints"


class PlanError(Exception):
    """A plan or a machine cannot be used; the message is one line."""


class Shape(NamedTuple):
    """A model's shape."""

    vocabulary: int
    width: int
    layers: int
    heads: int
    hidden: int
    context: int

    @property
    def parameters(self) -> int:
        """The number of parameters. The embeddings are counted, once: input and output share them."""
        block = 4 * self.width**2 + 3 * self.width * self.hidden + 2 * self.width
        return self.vocabulary * self.width + self.layers * block + self.width

    @property
    def operations(self) -> int:
        """Floating-point operations of training by a token: 6 x parameters + 6 x layers x width x context.

        Each matrix, the shared embeddings included, multiplies once forward and twice backward. The second term is
        causal attention, half of what attention without a mask would take.
        """
        return 6 * self.parameters + 6 * self.layers * self.width * self.context


def load_plan(folder: Path) -> dict[str, Any]:
    """Return the content of ``plan.json``. Raises PlanError."""
    try:
        plan: dict[str, Any] = json.loads((folder / PLAN).read_bytes())
        if plan["format"] != FORMAT:
            raise PlanError(f"{folder / PLAN} has format {plan['format']}; this trainer reads format {FORMAT}")
    except OSError as error:
        raise PlanError(f"{folder / PLAN} cannot be read: {error.strerror}") from None
    except (ValueError, LookupError, TypeError):
        raise PlanError(f"{folder / PLAN} is damaged; make the plan again") from None
    return plan


def result_path(folder: Path, job: str) -> Path:
    """Return where the result of a job is written."""
    return folder / RESULTS / f"{job}.json"


def missing_jobs(folder: Path, plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the jobs of a plan that have no result."""
    return [job for job in plan["jobs"] if not result_path(folder, job["name"]).exists()]


def run_tokens(folder: Path, order: str, wanted: int) -> np.ndarray[Any, np.dtype[np.uint16]]:
    """Return the first ``wanted`` tokens of a run: those of its documents, one behind the other. Raises PlanError."""
    tokens = np.memmap(folder / TOKENS, dtype="<u2", mode="r")
    starts, documents = np.load(folder / STARTS), np.load(folder / order)
    found, count = np.empty(wanted, np.uint16), 0
    for document in documents:
        part = tokens[starts[document] : starts[document + 1]][: wanted - count]
        found[count : count + len(part)] = part
        count += len(part)
        if count == wanted:
            return found
    raise PlanError(f"{folder / order} has {count:,} tokens of {wanted:,}; make the plan again")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the path of a file that takes the place of ``path`` when the block ends well. Raises OSError."""
    temporary = path.with_name(f"{path.name}.open")
    path.parent.mkdir(exist_ok=True)
    try:
        yield temporary
        temporary.replace(path)
    finally:
        with suppress(OSError):
            temporary.unlink()
