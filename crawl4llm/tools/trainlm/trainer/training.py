"""A Llama-like model, its weights and its predictions; the training of the models of a plan, with checkpoints."""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from . import CHECKPOINTS, PLAN, PlanError, Shape, load_plan, missing_jobs, replacing, result_path, run_tokens

PEAKS = {"H100": 989e12, "H200": 989e12, "A100": 312e12, "L40S": 362e12, "L4": 121e12}
"""Dense bf16 operations a second of a chip (NVIDIA's data sheets, SXM forms), by a part of its name."""
_STEPS_AT_ONCE = 50
_SECONDS_BETWEEN_LINES = 10.0


# -- a model ----------------------------------------------------------------------------------------------------------


def make_model(shape: Shape, seed: int) -> Any:
    """Return a Llama-like model with fresh weights: normalisation before each layer (RMSNorm), rotary positions, gated
    SiLU, no biases, input and output embeddings shared (Touvron et al. 2023, LLaMA, section 2.2)."""
    key, *keys = jax.random.split(jax.random.key(seed), 1 + 4 * shape.layers)
    embeddings = 0.02 * jax.random.normal(key, (shape.vocabulary, shape.width))
    shrink = (2 * shape.layers) ** -0.5  # of what is added to the residual stream (Radford et al. 2019, section 2.3)

    def linear(key: jax.Array, into: int, out: int, scale: float = 1.0) -> Any:
        layer = eqx.nn.Linear(into, out, use_bias=False, key=key)
        return eqx.tree_at(lambda one: one.weight, layer, layer.weight * scale)

    def norm() -> Any:
        return eqx.nn.RMSNorm(shape.width, use_bias=False)

    def block(first: jax.Array, second: jax.Array, third: jax.Array, fourth: jax.Array) -> dict[str, Any]:
        return {
            "attention_norm": norm(),
            "queries_keys_values": linear(first, shape.width, 3 * shape.width),
            "attention_out": linear(second, shape.width, shape.width, shrink),
            "gated_norm": norm(),
            "gate_and_up": linear(third, shape.width, 2 * shape.hidden),
            "down": linear(fourth, shape.hidden, shape.width, shrink),
        }

    blocks = [block(*keys[place : place + 4]) for place in range(0, len(keys), 4)]
    return {"embeddings": eqx.nn.Embedding(weight=embeddings), "blocks": blocks, "norm": norm()}


def logits_of(model: Any, inputs: jax.Array, heads: int, fused: bool) -> jax.Array:
    """Return logits for the token after each input; inputs are (sequences, context). ``fused``: by cuDNN's kernel."""
    weight = model["embeddings"].weight
    state = _look_up_on_gpu(weight, inputs) if fused else weight[inputs]
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
    state = every(model["norm"], state)
    found: jax.Array = (_project_on_gpu if fused else _project)(weight, state)
    return found


def _project(weight: jax.Array, state: jax.Array) -> jax.Array:
    """Return logits in float32, by the embeddings and the last state."""
    return jnp.matmul(state, weight.T, preferred_element_type=jnp.float32)


def _rows(values: jax.Array) -> jax.Array:
    return values.reshape(-1, values.shape[-1])


def _look_up_on_gpu(weight: jax.Array, inputs: jax.Array) -> Any:
    """Return embeddings, whose slope is a matrix product. JAX's own is a scatter of bf16 numbers, which wait for each
    other."""

    def slope_of(slope: jax.Array) -> jax.Array:
        return jax.nn.one_hot(inputs.reshape(-1), weight.shape[0], dtype=slope.dtype).T @ _rows(slope)

    return jax.custom_gradient(lambda weight: (weight[inputs], slope_of))(weight)


def _project_on_gpu(weight: jax.Array, state: jax.Array) -> Any:
    """Return logits as :func:`_project`, with slopes in bf16. JAX's own would be products in float32."""

    def projected(weight: jax.Array, state: jax.Array) -> Any:
        def slopes_of(slope: jax.Array) -> Any:
            narrow = slope.astype(state.dtype)
            return _rows(narrow).T @ _rows(state), narrow @ weight

        return _project(weight, state), slopes_of

    return jax.custom_gradient(projected)(weight, state)


# -- its training -----------------------------------------------------------------------------------------------------


def open_device(wanted: str) -> Any:
    """Return JAX's device for ``auto``, ``cpu`` or ``cuda``. Raises PlanError."""
    try:
        device = jax.devices()[0]
    except (RuntimeError, AssertionError):  # the latter if JAX was installed without CUDA
        raise PlanError(f"--device {wanted}: JAX finds no such device here; give --device cpu") from None
    if wanted == "cuda" and device.platform != "gpu":
        raise PlanError("--device cuda: JAX finds no GPU here; give --device cpu")
    return device


def compiled(shape: Shape, training: Mapping[str, Any], on_gpu: bool) -> tuple[Any, Any, Any]:
    """Return three compiled functions. On a GPU they calculate in bf16, and keep weights in float32.

    (seed) to the state of a training, which is weights and the optimiser's memory;
    (state, tokens, starts, from step, to step, all steps) to (state, sum of losses);
    (weights, windows, counts) to the sum of the losses, in nats, of the first tokens of each window.
    """
    dtype = jnp.bfloat16 if on_gpu else jnp.float32
    matrices = partial(jax.tree.map, lambda leaf: leaf.ndim > 1)
    decayed = optax.add_decayed_weights(training["weight_decay"], matrices)
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.scale_by_adam(b1=0.9, b2=0.95), decayed)
    window = jnp.arange(shape.context + 1)

    def is_weight(leaf: Any) -> bool:
        return hasattr(leaf, "dtype")

    _, static = eqx.partition(eqx.filter_eval_shape(partial(make_model, shape), 0), is_weight)

    def losses(weights: Any, windows: jax.Array) -> jax.Array:
        model = eqx.combine(jax.tree.map(lambda leaf: leaf.astype(dtype), weights), static)
        logits = logits_of(model, windows[:, :-1], shape.heads, on_gpu)
        return optax.softmax_cross_entropy_with_integer_labels(logits, windows[:, 1:])

    def rate(step: jax.Array, steps: jax.Array) -> jax.Array:
        """Rise over the first twentieth, then fall by a cosine to a tenth."""
        warm = jnp.maximum(0.05 * steps, 1.0)
        done = (step - warm) / jnp.maximum(steps - warm, 1.0)
        fallen = 0.55 + 0.45 * jnp.cos(jnp.pi * jnp.clip(done, 0.0, 1.0))
        scale: jax.Array = training["rate"] * jnp.minimum((step + 1.0) / warm, fallen)
        return scale

    def steps(state: Any, tokens: jax.Array, starts: jax.Array, first: Any, last: Any, all_steps: Any) -> Any:
        def one(step: Any, carried: Any) -> Any:
            (weights, memory), total = carried
            places = jax.lax.dynamic_slice_in_dim(starts, step * training["batch"], training["batch"])
            windows = tokens[places[:, None] + window].astype(jnp.int32)
            loss, slopes = jax.value_and_grad(lambda *given: losses(*given).mean())(weights, windows)
            changes, memory = optimiser.update(slopes, memory, weights)
            scale = -rate(step.astype(jnp.float32), all_steps.astype(jnp.float32))
            weights = jax.tree.map(lambda leaf, change: leaf + scale * change, weights, changes)
            return (weights, memory), total + loss

        return jax.lax.fori_loop(first, last, one, (state, jnp.float32(0)))

    def fresh(seed: Any) -> Any:
        weights, _ = eqx.partition(make_model(shape, seed), is_weight)
        return weights, optimiser.init(weights)

    def summed(weights: Any, windows: jax.Array, counts: jax.Array) -> jax.Array:
        found = losses(weights, windows.astype(jnp.int32))
        return jnp.where(window[:-1] < counts[:, None], found, 0.0).sum(axis=-1)

    return jax.jit(fresh), jax.jit(steps, donate_argnums=0), jax.jit(summed)


class Trainer:
    """Trains the models of one plan."""

    def __init__(self, folder: Path, plan: Mapping[str, Any], device: Any) -> None:
        self._folder, self._plan, self._device = folder, plan, device.device_kind
        self.shape, self._batch = Shape(**plan["model"]), plan["training"]["batch"]
        self._fresh, self._steps, self._losses = compiled(self.shape, plan["training"], device.platform == "gpu")
        self._most = max(job["tokens"] for job in plan["jobs"])
        self._told = 0.0
        self._digest = hashlib.sha256((folder / PLAN).read_bytes()).hexdigest()

    def do(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Train by one job, and write its result. Raises PlanError, and OSError if the disk is full."""
        began = time.perf_counter()
        tokens = np.zeros(self._most, np.uint16)  # as long as all others, so that nothing is compiled again
        tokens[: job["tokens"]] = run_tokens(self._folder, job["order"], job["tokens"])
        count, a_step = (job["tokens"] - 1) // self.shape.context, self._batch * self.shape.context
        if not (steps := count // self._batch):
            raise PlanError(f"{job['name']}: {job['tokens']:,} tokens are less than a batch; give a larger --tokens")
        starts = np.zeros(self._most // self.shape.context + self._batch, np.int32)
        starts[:count] = np.random.default_rng(job["seed"]).permutation(count) * self.shape.context
        data = jnp.asarray(tokens), jnp.asarray(starts)
        state, first, losses = self._begin(job)
        timed, saved = [], time.perf_counter()
        while first < steps:
            last = min(first + _STEPS_AT_ONCE, steps)
            at = time.perf_counter()
            state, loss = self._steps(state, *data, np.int32(first), np.int32(last), np.int32(steps))
            losses.append([last, float(loss) / (last - first)])  # waits until the device has done them
            timed.append(((last - first) * a_step, time.perf_counter() - at))
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
        with replacing(result_path(self._folder, job["name"])) as path:
            path.write_text(json.dumps(found) + "\n", encoding="utf-8")
        self._checkpoint(job).unlink(missing_ok=True)
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
        peak = next((peak for part, peak in PEAKS.items() if part in self._device), None)
        share = speed * self.shape.operations / peak if speed and peak else None
        return {
            "device": self._device,
            "tokens_a_second": speed,
            "operations_a_token": self.shape.operations,
            "share_of_peak": share,
        }

    def _measure(self, weights: Any, target: Mapping[str, Any]) -> dict[str, float]:
        """Return bits, and bits per byte of UTF-8, of a target's held-out texts."""
        context, batch = self.shape.context, self._batch
        tokens = np.fromfile(self._folder / target["tokens"], dtype="<u2")
        padded = np.concatenate([tokens, np.zeros(-(len(tokens) - 1) % (context * batch), np.uint16)])
        windows = np.lib.stride_tricks.sliding_window_view(padded, context + 1)[::context]
        nats, left = 0.0, len(tokens) - 1
        for start in range(0, len(windows), batch):
            counts = np.clip(left - context * np.arange(start, start + batch), 0, context)
            nats += float(np.asarray(self._losses(weights, windows[start : start + batch], counts)).sum())
        bits = nats / math.log(2)
        return {"bits": bits, "bits_per_byte": bits / target["bytes"]}

    # -- checkpoints ---------------------------------------------------------------------------------------------------

    def _begin(self, job: Mapping[str, Any]) -> tuple[Any, int, list[Any]]:
        """Return the state of the last checkpoint, or a fresh one; the next step; and the losses so far."""
        state = self._fresh(job["seed"])
        with suppress(OSError, EOFError, ValueError, KeyError, BadZipFile), np.load(self._checkpoint(job)) as kept:
            if str(kept["plan"]) == self._digest:
                leaves, shape = jax.tree.flatten(state)
                read = [jax.numpy.asarray(kept[f"leaf{place}"]) for place in range(len(leaves))]
                return jax.tree.unflatten(shape, read), int(kept["step"]), json.loads(str(kept["losses"]))
        return state, 0, []

    def _save(self, job: Mapping[str, Any], state: Any, step: int, losses: Sequence[Any]) -> None:
        leaves: dict[str, Any] = {f"leaf{place}": np.asarray(leaf) for place, leaf in enumerate(jax.tree.leaves(state))}
        with replacing(self._checkpoint(job)) as path, path.open("wb") as file:
            np.savez(file, plan=self._digest, step=step, losses=json.dumps(losses), **leaves)

    def _checkpoint(self, job: Mapping[str, Any]) -> Path:
        return self._folder / CHECKPOINTS / f"{job['name']}.npz"


def train(folder: Path, device: str) -> Iterator[dict[str, Any]]:
    """Do the jobs of a plan that have no result; yield their results. Raises PlanError."""
    plan = load_plan(folder)
    with (folder / "lock").open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PlanError(f"{folder} is in use by another training; wait for it") from None
        trainer = Trainer(folder, plan, open_device(device))
        yield from map(trainer.do, missing_jobs(folder, plan))
