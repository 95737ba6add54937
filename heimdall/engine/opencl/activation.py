"""Activations that kernels apply to a value they are about to store.

The two parameters are kernel arguments, not part of the source, so that for example
ReLU6 and any Clip share one kernel. ReLU has its own: a clip costs a depthwise layer 15%.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "none",
    "relu",
    "clip",
    "prelu",
    "hard_sigmoid",
    "hard_swish",
    "shifted_hard_swish",
    "sigmoid",
    "silu",
    "tanh",
]

# V is the vector (or scalar) type, v the value, p and q the parameters, s what its lanes differ in.
# The comparisons let NaN through, as onnxruntime does; fmax on vectors is slow on PoCL.
_GATE = "(v * (V)(p) + (V)(q))"
_UNIT = f"({_GATE} < (V)(0.0f) ? (V)(0.0f) : ({_GATE} > (V)(1.0f) ? (V)(1.0f) : {_GATE}))"
_CODE: dict[str, str] = {
    "none": "v",
    "relu": "(v < (V)(0.0f) ? (V)(0.0f) : v)",
    "clip": "(v < (V)(p) ? (V)(p) : (v > (V)(q) ? (V)(q) : v))",
    "prelu": "(v < (V)(0.0f) ? v * s : v)",
    "hard_sigmoid": _UNIT,
    "hard_swish": f"v * {_UNIT}",
    "shifted_hard_swish": f"v * {_UNIT} + s",
    "sigmoid": "(V)(1.0f) / ((V)(1.0f) + exp(-v))",
    "silu": "v / ((V)(1.0f) + exp(-v))",
    "tanh": "tanh(v)",
}
_OF_LANES = ("prelu", "shifted_hard_swish")  # these read s


@dataclass(frozen=True)
class Activation:
    """``kind`` with parameters ``p`` and ``q``; ``lanes`` (one, or one a channel) are the slopes of
    prelu, or what shifted_hard_swish adds."""

    kind: Kind = "none"
    p: float = 0.0
    q: float = 0.0
    lanes: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in _CODE:
            raise ValueError(f"unknown activation {self.kind!r}; choose one of {sorted(_CODE)}")
        if (self.kind in _OF_LANES) != bool(self.lanes):
            raise ValueError(f"{' and '.join(_OF_LANES)}, and no others, need values of lanes")

    @property
    def macro(self) -> str:
        """``#define ACT(V, v, p, q, s)``: the activation as an OpenCL C expression of v."""
        return f"#define ACT(V, v, p, q, s) ({_CODE[self.kind]})"


NONE = Activation()


def relu() -> Activation:
    return Activation("relu")


def clip(low: float = -math.inf, high: float = math.inf) -> Activation:
    return Activation("clip", low, high)


def prelu(slopes: tuple[float, ...]) -> Activation:
    """One slope for all channels, or one a channel."""
    return Activation("prelu", lanes=slopes)


def hard_sigmoid(alpha: float = 0.2, beta: float = 0.5) -> Activation:
    """clip(alpha * x + beta, 0, 1)"""
    return Activation("hard_sigmoid", alpha, beta)


def hard_swish(alpha: float = 1 / 6, beta: float = 0.5) -> Activation:
    """x * clip(alpha * x + beta, 0, 1)"""
    return Activation("hard_swish", alpha, beta)
