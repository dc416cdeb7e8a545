"""A Llama-like model: its weights and its predictions."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .files import Shape


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
