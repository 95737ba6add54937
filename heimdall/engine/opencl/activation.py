"""Activations that kernels apply to a value they are about to store.

The two parameters are kernel arguments, not part of the source, so that for example
ReLU6 and any Clip share one kernel. ReLU has its own: a clip costs a depthwise layer 15%.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from heimdall.engine.opencl.functions import FUNCTIONS

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
    "whole",
    "scaled",
    "rounded",
    "requantised",
]

# What the functions' arguments are called: p and q are parameters, s is what lanes differ in.
_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "clip": ("(V)(p)", "(V)(q)"),
    "prelu": ("s",),
    "hard_sigmoid": ("(V)(p)", "(V)(q)"),
    "hard_swish": ("(V)(p)", "(V)(q)"),
}


def _code(function: str) -> str:
    """A function of v, the value: a vector or scalar of type V."""
    return FUNCTIONS[function].code.format("v", *_ARGUMENTS.get(function, ()))


_CLIP = FUNCTIONS["clip"].code
_ROUNDS = "(V)(12582912.0f)"
_CODE: dict[str, str] = {
    "none": "v",
    **{kind: _code(kind) for kind in get_args(Kind) if kind in FUNCTIONS},
    "shifted_hard_swish": f"{_code('hard_swish')} + s",
    # of sums of whole numbers, which are exact: so must be what is done to them, in this order
    "whole": _CLIP.format("rint(v)", "(V)(p)", "(V)(q)"),
    "scaled": "v * s",
    "rounded": "rint(v * s)",
    # rint is a call on PoCL: behind 1.5 * 2^23 there is no room for digits after the point
    "requantised": f"({_CLIP.format('v * s', '(V)(p)', '(V)(q)')} + {_ROUNDS}) - {_ROUNDS}",
}
_EXACT = ("whole", "scaled", "rounded", "requantised")
_OF_LANES = ("prelu", "shifted_hard_swish", "scaled", "rounded", "requantised")  # these read s
LARGEST_STEP = 2.0**22  # up to which "requantised" rounds right


@dataclass(frozen=True)
class Activation:
    """``kind`` with parameters ``p`` and ``q``: the limits of clip; hard_sigmoid is clip(p * x + q,
    0, 1), and hard_swish x times that. ``lanes`` (one, or one a channel) are the slopes of prelu,
    what shifted_hard_swish adds, or scales."""

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
    def exact(self) -> bool:
        """Must the sums that it is applied to be exact, as those of whole numbers can be?"""
        return self.kind in _EXACT

    @property
    def macro(self) -> str:
        """``#define ACT(V, v, p, q, s)``: the activation as an OpenCL C expression of v."""
        return f"#define ACT(V, v, p, q, s) ({_CODE[self.kind]})"


NONE = Activation()
