"""The trainer: ``python trainer.py PLAN_DIR`` trains the models of a plan, and measures them on its targets.

It imports JAX, Equinox, Optax and NumPy, and nothing of this project, so a machine needs this file and the plan alone.
A plan is a folder: ``plan.json``; ``tokens.bin``, the tokens of each document once, as little-endian 16-bit numbers;
``starts.npy``, where each document starts; for each run a list of documents; for each target a file of tokens. Each
training is a job, which writes ``results/JOB.json`` under another name and renames it. The same command does the jobs
that have no result. A job that was killed goes on from its last checkpoint, and on a CPU ends with the same bits.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import math
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import jax

FORMAT = 1
PLAN, TOKENS, STARTS, RESULTS, CHECKPOINTS = "plan.json", "tokens.bin", "starts.npy", "results", "checkpoints"
PEAKS = {"H100": 989e12, "H200": 989e12, "A100": 312e12, "L40S": 362e12, "L4": 121e12}
"""Dense bf16 operations a second of a chip (NVIDIA's data sheets, SXM forms), by a part of its name."""
_STEPS_AT_ONCE = 50
_SECONDS_BETWEEN_LINES = 10.0


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
        """Floating-point operations of training by a token: 6 for each parameter, as each matrix, the shared embeddings
        included, multiplies once forward and twice backward; and 6 x layers x width x context for causal attention."""
        return 6 * self.parameters + 6 * self.layers * self.width * self.context


def load_plan(folder: Path) -> dict[str, Any]:
    """Return the content of ``plan.json``. Raises PlanError."""
    try:
        plan: dict[str, Any] = json.loads((folder / PLAN).read_bytes())
        if plan["format"] != FORMAT:
            raise PlanError(f"{folder / PLAN} has format {plan['format']}, and this trainer reads format {FORMAT}")
    except OSError as error:
        raise PlanError(f"{folder / PLAN} cannot be read: {error.strerror}") from None
    except (ValueError, LookupError, TypeError):
        raise PlanError(f"{folder / PLAN} is damaged; make the plan anew") from None
    return plan


def result_path(folder: Path, job: str) -> Path:
    """Return where the result of a job is written."""
    return folder / RESULTS / f"{job}.json"


def missing_jobs(folder: Path, plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the jobs of a plan that have no result."""
    return [job for job in plan["jobs"] if not result_path(folder, job["name"]).exists()]


# -- the texts ---------------------------------------------------------------------------------------------------------


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
    raise PlanError(f"{folder / order} has {count:,} tokens of {wanted:,}; make the plan anew")


# -- the model ---------------------------------------------------------------------------------------------------------


def make_model(shape: Shape, seed: int) -> Any:
    """Return a Llama-like model with fresh weights: normalisation before each layer (RMSNorm), rotary positions, gated
    SiLU, no biases, input and output embeddings shared (Touvron et al. 2023, LLaMA, section 2.2)."""
    import equinox as eqx
    import jax

    key, *keys = jax.random.split(jax.random.key(seed), 1 + 4 * shape.layers)
    embeddings = 0.02 * jax.random.normal(key, (shape.vocabulary, shape.width))
    shrink = (2 * shape.layers) ** -0.5  # of what is added to the residual stream (Radford et al. 2019, section 2.3)

    def linear(place: int, into: int, out: int, scale: float = 1.0) -> Any:
        layer = eqx.nn.Linear(into, out, use_bias=False, key=keys[place])
        return eqx.tree_at(lambda one: one.weight, layer, layer.weight * scale)

    def block(place: int) -> dict[str, Any]:
        return {
            "attention_norm": eqx.nn.RMSNorm(shape.width, use_bias=False),
            "queries_keys_values": linear(4 * place, shape.width, 3 * shape.width),
            "attention_out": linear(4 * place + 1, shape.width, shape.width, shrink),
            "gated_norm": eqx.nn.RMSNorm(shape.width, use_bias=False),
            "gate_and_up": linear(4 * place + 2, shape.width, 2 * shape.hidden),
            "down": linear(4 * place + 3, shape.hidden, shape.width, shrink),
        }

    return {
        "embeddings": eqx.nn.Embedding(weight=embeddings),
        "blocks": [block(place) for place in range(shape.layers)],
        "norm": eqx.nn.RMSNorm(shape.width, use_bias=False),
    }


def logits_of(model: Any, inputs: jax.Array, heads: int, fused: bool) -> jax.Array:
    """Return logits for the token after each input; inputs are (sequences, context). ``fused``: by cuDNN's kernel."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    weight = model["embeddings"].weight
    look_up, project = _on_gpu() if fused else (lambda weight, inputs: weight[inputs], _project)
    state = look_up(weight, inputs)
    count, length, width = state.shape
    rotary = eqx.nn.RotaryPositionalEmbedding(width // heads, dtype=state.dtype)

    def every(layer: Any, values: jax.Array) -> jax.Array:
        return jax.vmap(jax.vmap(layer))(values)

    def turned(values: jax.Array) -> jax.Array:
        return jax.vmap(jax.vmap(rotary, in_axes=1, out_axes=1))(values)

    for block in model["blocks"]:
        mixed = every(block["attention_norm"], state) @ block["queries_keys_values"].weight.T
        queries, keys, values = jnp.moveaxis(mixed.reshape(count, length, 3, heads, width // heads), 2, 0)
        attended = jax.nn.dot_product_attention(
            turned(queries), turned(keys), values, is_causal=True, implementation="cudnn" if fused else "xla"
        )
        state += attended.reshape(count, length, width) @ block["attention_out"].weight.T
        gate, up = jnp.split(every(block["gated_norm"], state) @ block["gate_and_up"].weight.T, 2, axis=-1)
        state += (jax.nn.silu(gate) * up) @ block["down"].weight.T
    found: jax.Array = project(weight, every(model["norm"], state))
    return found


def _project(weight: jax.Array, state: jax.Array) -> jax.Array:
    """Return logits in float32, by the embeddings and the last state."""
    import jax.numpy as jnp

    return jnp.matmul(state, weight.T, preferred_element_type=jnp.float32)


@cache
def _on_gpu() -> tuple[Any, Any]:
    """Return the look-up of embeddings, and their product with the state, whose slopes are bf16 matrix products too.

    JAX's own slopes are a scatter of bf16 numbers, in which the tokens of a batch wait for each other, and a product in
    float32.
    """
    import jax

    look_up = jax.custom_vjp(lambda weight, inputs: weight[inputs])

    def of_look_up(kept: Any, slope: jax.Array) -> Any:
        inputs, size = kept
        ones = jax.nn.one_hot(inputs.reshape(-1), size, dtype=slope.dtype)
        return ones.T @ slope.reshape(-1, slope.shape[-1]), None

    look_up.defvjp(lambda weight, inputs: (weight[inputs], (inputs, weight.shape[0])), of_look_up)
    project = jax.custom_vjp(_project)

    def of_project(kept: Any, slope: jax.Array) -> Any:
        weight, state = kept
        slope = slope.astype(state.dtype)
        rows = slope.reshape(-1, slope.shape[-1])
        return rows.T @ state.reshape(-1, state.shape[-1]), slope @ weight

    project.defvjp(lambda weight, state: (_project(weight, state), (weight, state)), of_project)
    return look_up, project


class Machine(NamedTuple):
    """Where models are trained."""

    name: str
    on_gpu: bool
    peak: float | None
    """bf16 operations a second, where they are known."""


def open_machine(wanted: str) -> Machine:
    """Return the device ``auto``, ``cpu`` or ``cuda``, which JAX uses from now on. Raises PlanError."""
    if wanted != "auto":
        os.environ["JAX_PLATFORMS"] = wanted
    import jax

    try:
        device = jax.devices()[0]
    except RuntimeError:
        raise PlanError(f"--device {wanted}: JAX finds no such device here; give --device cpu") from None
    name, on_gpu = device.device_kind, device.platform == "gpu"
    if wanted == "cuda" and not on_gpu:
        raise PlanError("--device cuda: JAX finds no GPU here; give --device cpu")
    peak = next((peak for part, peak in PEAKS.items() if part in name), None) if on_gpu else None
    return Machine(name, on_gpu, peak)


class Functions(NamedTuple):
    """Compiled functions, the same for all jobs of a plan."""

    steps: Any
    """(state, tokens, starts, from step, to step, all steps) to (state, sum of losses)."""
    losses: Any
    """(weights, windows, counts) to the sum of the losses of the first so many tokens of each window, in nats."""
    fresh: Any
    """(seed) to the state of a training: model and optimiser's state."""


def compiled(shape: Shape, training: Mapping[str, Any], machine: Machine) -> Functions:
    """Return the functions that train and measure. On a GPU they calculate in bf16, and keep weights in float32."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import optax

    dtype = jnp.bfloat16 if machine.on_gpu else jnp.float32
    decayed = optax.add_decayed_weights(
        training["weight_decay"], lambda model: jax.tree.map(lambda leaf: leaf.ndim > 1, model)
    )
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.scale_by_adam(b1=0.9, b2=0.95), decayed)
    window = jnp.arange(shape.context + 1)
    _, static = eqx.partition(eqx.filter_eval_shape(partial(make_model, shape), 0), _is_weight)

    def losses(weights: Any, windows: jax.Array) -> jax.Array:
        model = eqx.combine(jax.tree.map(lambda leaf: leaf.astype(dtype), weights), static)
        logits = logits_of(model, windows[:, :-1], shape.heads, machine.on_gpu)
        return optax.softmax_cross_entropy_with_integer_labels(logits, windows[:, 1:])

    def mean_loss(weights: Any, windows: jax.Array) -> jax.Array:
        return losses(weights, windows).mean()

    def rate(step: jax.Array, steps: jax.Array) -> jax.Array:
        """Rise over the first twentieth, then fall by a cosine to a tenth."""
        warm = jnp.maximum(0.05 * steps, 1.0)
        done = (step - warm) / jnp.maximum(steps - warm, 1.0)
        fallen = 0.55 + 0.45 * jnp.cos(jnp.pi * jnp.clip(done, 0.0, 1.0))
        scale: jax.Array = training["rate"] * jnp.minimum((step + 1.0) / warm, fallen)
        return scale

    @partial(jax.jit, donate_argnums=0)
    def steps(state: Any, tokens: jax.Array, starts: jax.Array, first: Any, last: Any, all_steps: Any) -> Any:
        def one(step: Any, carried: Any) -> Any:
            (weights, memory), total = carried
            places = jax.lax.dynamic_slice_in_dim(starts, step * training["batch"], training["batch"])
            windows = tokens[places[:, None] + window].astype(jnp.int32)
            loss, slopes = jax.value_and_grad(mean_loss)(weights, windows)
            changes, memory = optimiser.update(slopes, memory, weights)
            scale = -rate(step.astype(jnp.float32), all_steps.astype(jnp.float32))
            weights = jax.tree.map(lambda leaf, change: leaf + scale * change, weights, changes)
            return (weights, memory), total + loss

        return jax.lax.fori_loop(first, last, one, (state, jnp.float32(0)))

    @jax.jit
    def fresh(seed: Any) -> Any:
        weights, _ = eqx.partition(make_model(shape, seed), _is_weight)
        return weights, optimiser.init(weights)

    @jax.jit
    def summed(weights: Any, windows: jax.Array, counts: jax.Array) -> jax.Array:
        found = losses(weights, windows.astype(jnp.int32))
        return jnp.where(window[:-1] < counts[:, None], found, 0.0).sum(axis=-1)

    return Functions(steps, summed, fresh)


def _is_weight(leaf: Any) -> bool:
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype")


# -- a training --------------------------------------------------------------------------------------------------------


class Trainer:
    """Trains the models of one plan."""

    def __init__(self, folder: Path, plan: Mapping[str, Any], machine: Machine) -> None:
        self._folder, self._plan, self._machine = folder, plan, machine
        self.shape = Shape(**plan["model"])
        self._functions = compiled(self.shape, plan["training"], machine)
        self._most = max(job["tokens"] for job in plan["jobs"])
        self._told = 0.0
        self._digest = hashlib.sha256((folder / PLAN).read_bytes()).hexdigest()

    def do(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Train by one job, and write its result. Raises PlanError, and OSError if the disk is full."""
        import jax.numpy as jnp

        began = time.perf_counter()
        tokens = np.zeros(self._most, np.uint16)  # as long as all others, so that nothing is compiled again
        tokens[: job["tokens"]] = run_tokens(self._folder, job["order"], job["tokens"])
        count = (job["tokens"] - 1) // self.shape.context
        order = np.random.default_rng(job["seed"]).permutation(count)
        batch = self._plan["training"]["batch"]
        steps = count // batch
        if not steps:
            raise PlanError(f"{job['name']}: {job['tokens']:,} tokens are less than a batch; give a larger --tokens")
        starts = np.zeros(self._most // self.shape.context + batch, np.int32)
        starts[:count] = order * self.shape.context
        on_device, places = jnp.asarray(tokens), jnp.asarray(starts)
        state, first, losses = self._begin(job)
        timed, saved = [], time.perf_counter()
        while first < steps:
            last = min(first + _STEPS_AT_ONCE, steps)
            at = time.perf_counter()
            state, loss = self._functions.steps(
                state, on_device, places, np.int32(first), np.int32(last), np.int32(steps)
            )
            losses.append([last, float(loss) / (last - first)])  # waits until the device has done them
            timed.append(((last - first) * batch * self.shape.context, time.perf_counter() - at))
            first = last
            self._tell(f"{job['name']}: {first:,} of {steps:,} steps, loss {losses[-1][1]:.3f}")
            if first < steps and time.perf_counter() - saved >= self._plan["training"]["checkpoint_seconds"]:
                self._save(job, state, first, losses)
                saved = time.perf_counter()
        found = {
            "job": job["name"],
            "tokenizer": self._plan["tokenizer"],
            "parameters": self.shape.parameters,
            "tokens": job["tokens"],
            "steps": steps,
            "losses": losses,
            "targets": {target["name"]: self._measure(state[0], target) for target in self._plan["targets"]},
            "seconds": time.perf_counter() - began,
            **self._speed(timed[1:]),
        }
        self._write(job, found)
        return found

    def _tell(self, line: str) -> None:
        """Say how far it is, on standard error, now and then."""
        if time.perf_counter() - self._told >= _SECONDS_BETWEEN_LINES:
            self._told = time.perf_counter()
            print(line, file=sys.stderr, flush=True)  # noqa: T201 - this is what prints

    def _speed(self, timed: Sequence[tuple[int, float]]) -> dict[str, Any]:
        """Return the speed of the pieces after the first one, in which functions are compiled."""
        seconds = sum(part[1] for part in timed)
        speed = sum(part[0] for part in timed) / seconds if seconds else None
        peak = self._machine.peak
        share = speed * self.shape.operations / peak if speed and peak else None
        return {
            "device": self._machine.name,
            "tokens_a_second": speed,
            "operations_a_token": self.shape.operations,
            "share_of_peak": share,
        }

    def _measure(self, weights: Any, target: Mapping[str, Any]) -> dict[str, float]:
        """Return bits, and bits per byte of UTF-8, of a target's held-out texts."""
        context, batch = self.shape.context, self._plan["training"]["batch"]
        tokens = np.fromfile(self._folder / target["tokens"], dtype="<u2")
        padded = np.concatenate([tokens, np.zeros(-(len(tokens) - 1) % (context * batch), np.uint16)])
        windows = np.lib.stride_tricks.sliding_window_view(padded, context + 1)[::context]
        nats, left = 0.0, len(tokens) - 1
        for start in range(0, len(windows), batch):
            counts = np.clip(left - context * np.arange(start, start + batch), 0, context)
            nats += float(np.asarray(self._functions.losses(weights, windows[start : start + batch], counts)).sum())
        bits = nats / math.log(2)
        return {"bits": bits, "bits_per_byte": bits / target["bytes"]}

    # -- checkpoints ---------------------------------------------------------------------------------------------------

    def _begin(self, job: Mapping[str, Any]) -> tuple[Any, int, list[Any]]:
        """Return the state of the last checkpoint, or a fresh one; the next step; and the losses so far."""
        import jax

        state = self._functions.fresh(job["seed"])
        with suppress(OSError, ValueError, KeyError), np.load(self._checkpoint(job)) as kept:
            if str(kept["plan"]) == self._digest:
                leaves, shape = jax.tree.flatten(state)
                read = [jax.numpy.asarray(kept[f"leaf{place}"]) for place in range(len(leaves))]
                return jax.tree.unflatten(shape, read), int(kept["step"]), json.loads(str(kept["losses"]))
        return state, 0, []

    def _save(self, job: Mapping[str, Any], state: Any, step: int, losses: Sequence[Any]) -> None:
        import jax

        leaves = {f"leaf{place}": np.asarray(leaf) for place, leaf in enumerate(jax.tree.leaves(state))}
        with _replacing(self._checkpoint(job)) as path, path.open("wb") as file:
            np.savez(file, plan=self._digest, step=step, losses=json.dumps(losses), **leaves)

    def _checkpoint(self, job: Mapping[str, Any]) -> Path:
        return self._folder / CHECKPOINTS / f"{job['name']}.npz"

    def _write(self, job: Mapping[str, Any], found: Mapping[str, Any]) -> None:
        with _replacing(result_path(self._folder, job["name"])) as path:
            path.write_text(json.dumps(found) + "\n", encoding="utf-8")
        self._checkpoint(job).unlink(missing_ok=True)


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Yield the path of a file that takes the place of ``path`` when the block ends well. Raises OSError."""
    temporary = path.with_name(f"{path.name}.open")
    path.parent.mkdir(exist_ok=True)
    try:
        yield temporary
        temporary.replace(path)
    finally:
        with suppress(OSError):
            temporary.unlink()


def train(folder: Path, device: str) -> Iterator[dict[str, Any]]:
    """Do the jobs of a plan that have no result; yield their results. Raises PlanError."""
    plan = load_plan(folder)
    with (folder / "lock").open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PlanError(f"{folder} is in use by another training; wait for it") from None
        machine = open_machine(device)
        if jobs := missing_jobs(folder, plan):
            trainer = Trainer(folder, plan, machine)
            for job in jobs:
                yield trainer.do(job)


def main() -> int:
    """Train by the command line; print a line of JSON for each job, and one line for an error."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("plan", type=Path, metavar="PLAN_DIR")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    args = parser.parse_args()
    try:
        for found in train(args.plan, args.device):
            print(json.dumps(found), flush=True)  # noqa: T201 - this is what prints
    except PlanError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 - likewise
        return 1
    except OSError as error:
        print(f"error: {error.filename or args.plan}: {error.strerror or error}", file=sys.stderr)  # noqa: T201
        return 1
    except ImportError as error:
        print(f"error: {error.name} is not installed; pip install jax equinox optax", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
