"""Sizes and weights of a decoder of Llama's architecture (Touvron et al. 2023): RMS norm, rotary
positions, heads that share keys and values, a gated layer, one table for tokens in and out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from heimdall.errors import ConfigError

Weights = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class DecoderShape:
    """``width``: of a token's vector; ``kv_heads``: heads that keys and values have, each read by
    ``heads / kv_heads`` others; ``inner``: width of the gated layer; ``positions``: tokens that a
    text has at most; ``theta``: the base of rotary positions (Su et al. 2021).

    Raises ConfigError for sizes that do not divide.
    """

    vocabulary: int
    width: int
    layers: int
    heads: int
    kv_heads: int
    inner: int
    positions: int = 2048
    theta: float = 10_000.0
    epsilon: float = 1e-5

    def __post_init__(self) -> None:
        if self.width % (2 * self.heads) or self.heads % self.kv_heads:
            raise ConfigError(
                f"a decoder of width {self.width} cannot have {self.heads} heads on "
                f"{self.kv_heads} of keys and values: a head has an even share of the width, and "
                "reads one of keys and values"
            )

    @property
    def head_width(self) -> int:
        return self.width // self.heads

    @property
    def frequencies(self) -> np.ndarray:
        """By how much each pair of a head is turned from one token to the next, in radians."""
        exponents = np.arange(0, self.head_width, 2, dtype=np.float32) / self.head_width
        return (1 / self.theta**exponents).astype(np.float32)


# The sizes of SmolLM (Allal et al. 2024), from its configurations.
SMOLLM_135M = DecoderShape(49152, 576, 30, 9, 3, 1536)
SMOLLM_360M = DecoderShape(49152, 960, 32, 15, 5, 2560)


def weight_shapes(shape: DecoderShape) -> dict[str, tuple[int, ...]]:
    """Every weight by its name in Hugging Face's Llama; matrices are (out, in)."""
    width, kv_width = shape.width, shape.kv_heads * shape.head_width
    layer = {
        "input_layernorm": (width,),
        "self_attn.q_proj": (width, width),
        "self_attn.k_proj": (kv_width, width),
        "self_attn.v_proj": (kv_width, width),
        "self_attn.o_proj": (width, width),
        "post_attention_layernorm": (width,),
        "mlp.gate_proj": (shape.inner, width),
        "mlp.up_proj": (shape.inner, width),
        "mlp.down_proj": (width, shape.inner),
    }
    found: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (shape.vocabulary, width)}
    for index in range(shape.layers):
        found |= {f"model.layers.{index}.{name}.weight": size for name, size in layer.items()}
    return found | {"model.norm.weight": (width,)}


def random_weights(shape: DecoderShape, seed: int = 0) -> dict[str, np.ndarray]:
    """Made-up weights that keep what passes them at its size."""
    draw = np.random.default_rng(seed)
    return {name: _drawn(draw, size) for name, size in weight_shapes(shape).items()}


def _drawn(draw: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
    values = draw.standard_normal(size, np.float32)
    if len(size) == 1:  # of a norm
        return 1 + values / 10
    values *= np.float32(1 / math.sqrt(size[1]))
    return values


def chosen_weights(shape: DecoderShape, weights: Weights | None, seed: int) -> Weights:
    """Those that are given, or made-up ones. Raises ConfigError for weights of other names or
    sizes than the shape has."""
    if weights is None:
        return random_weights(shape, seed)
    wanted = weight_shapes(shape)
    if different := sorted(wanted.keys() ^ weights.keys()):
        what = "missing" if different[0] in wanted else "not of this architecture"
        raise ConfigError(f"weights of a decoder: {different[0]} is {what}")
    for name, size in wanted.items():
        if weights[name].shape != size:
            found = weights[name].shape
            raise ConfigError(f"weights of a decoder: {name} is of shape {found}, not {size}")
    return weights
