"""Fold what follows a convolution into it: scales, biases, the activation, a residual.

Every step below takes the convolution and the one op that reads its result, and returns the
convolution that does both, or None.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from heimdall.engine.opencl.activation import LARGEST_STEP, Activation
from heimdall.engine.opencl.expression import Operand, Step
from heimdall.engine.opencl.lowered import Conv, Lowered, Module
from heimdall.engine.opencl.neighbours import Neighbours

Side = str | float | None  # None: the convolution's result
Affine = tuple[np.ndarray, np.ndarray]  # factor and shift of every channel


def fuse_convolutions(module: Module) -> None:
    """Fuse in place until nothing more fits."""
    Neighbours(module).join_pairs(_absorb)


def fuse_shifts(module: Module) -> None:
    """hard_swish(conv) + t, where no other convolution could take t in: one that pads its input
    with zeros cannot, and PP-LCNet has such a sum after every layer."""
    Neighbours(module).join_pairs(_shifted_after)


def _absorb(around: Neighbours, op: Lowered, reader: Lowered) -> Lowered | None:
    module, conv = around.module, op.spec
    found = step_of(module, op.output, reader)
    if found is None or not isinstance(conv, Conv):
        return None
    step, sides = found
    linear = conv.spec.activation.kind == "none"
    inputs = op.inputs
    fused = _scaled(module, conv, step, sides, len(inputs) > 1) if linear else None
    if fused is None and linear:
        fused = _activated(module, conv, step, sides)
    if fused is None and len(inputs) == 1:
        fused = _requantised(module, conv, step, sides)
    if fused is None and not linear and len(inputs) == 1:
        fused = _scaled_after(conv, step, sides)
    if fused is None:
        other = _residual(around, op, conv, step, sides)
        if other is None:
            return None
        fused = replace(conv, spec=replace(conv.spec, residual_before_activation=linear))
        inputs = (*inputs, other)
    return Lowered(fused, inputs, reader.outputs, op.nodes + reader.nodes)


def _shifted_after(around: Neighbours, op: Lowered, reader: Lowered) -> Lowered | None:
    module, conv = around.module, op.spec
    found = step_of(module, op.output, reader)
    if found is None or not isinstance(conv, Conv) or conv.spec.activation.kind != "hard_swish":
        return None
    step, sides = found
    shift = _values(module, conv, sides)
    if shift is None or step.function != "add":
        return None
    act = replace(conv.spec.activation, kind="shifted_hard_swish", lanes=_lanes(shift))
    fused = replace(conv, spec=replace(conv.spec, activation=act))
    return Lowered(fused, op.inputs, reader.outputs, op.nodes + reader.nodes)


def step_of(module: Module, x: str, reader: Lowered) -> tuple[Step, list[Side]] | None:
    """The only step of an elementwise reader of the same shape, and its sides, one being x."""
    step = reader.spec.step
    if step is None or module.shapes[reader.output] != module.shapes[x]:
        return None
    sides = [_side(reader, x, arg) for arg in step.args]
    return (step, sides) if sides.count(None) == 1 else None


def _side(reader: Lowered, x: str, arg: object) -> Side:
    """The convolution's result, the name of another tensor, or a scalar."""
    if isinstance(arg, Operand):
        name = reader.inputs[arg.index]
        return None if name == x else name
    assert isinstance(arg, float)
    return arg


def _other(sides: list[Side]) -> Side:
    """The first side that is not the convolution's result; None where there is no other."""
    return next((side for side in sides if side is not None), None)


def _lanes(values: np.ndarray) -> tuple[float, ...]:
    """One value a channel as an activation's lanes: one for all where they are the same."""
    same = bool(np.all(values == values[0]))
    return tuple(float(each) for each in (values[:1] if same else values))


def _values(module: Module, conv: Conv, sides: list[Side]) -> np.ndarray | None:
    """What ``channel_values`` finds for the result of a convolution."""
    return channel_values(module, sides, conv.channels[1], 1 if conv.matrix else 3)


def channel_values(
    module: Module, sides: list[Side], channels: int, axis: int = 3, dtype: type = np.float32
) -> np.ndarray | None:
    """The other side as (channels,), where it is a scalar, or a constant with one value a channel:
    along the ``axis``-th axis from the end."""
    side = _other(sides)
    if side is None or (isinstance(side, str) and side not in module.constants):
        return None
    array: np.ndarray = np.asarray(module.constants[side] if isinstance(side, str) else side, dtype)
    if array.size == 1:
        return np.full(channels, array.reshape(-1)[0])
    per_channel = array.ndim >= axis and array.shape[-axis] == array.size == channels
    return array.reshape(-1) if per_channel else None


def affine(function: str, first: bool, value: np.ndarray) -> Affine | None:
    """x + - * / value (or, unless x is ``first``, the other way round) as factor and shift."""
    one, zero = np.ones_like(value), np.zeros_like(value)
    match function:
        case "add":
            return one, value
        case "sub":
            return (one, -value) if first else (-one, value)
        case "mul":
            return value, zero
        case "div" if first and np.all(value):
            return one / value, zero
    return None


def _rescale(conv: Conv, factor: np.ndarray, shift: np.ndarray | float = 0.0) -> Conv:
    """conv(x) * factor + shift, one value a channel."""
    weights = conv.weights
    if conv.spec.transposed:
        groups = conv.spec.groups
        split = weights.reshape(groups, -1, *weights.shape[1:])
        weights = (split * factor.reshape(groups, 1, -1, 1, 1)).reshape(weights.shape)
    else:
        weights = weights * factor.reshape(-1, 1, 1, 1)
    bias = (conv.bias if conv.bias is not None else 0.0) * factor + shift
    return replace(conv, weights=weights.astype(np.float32), bias=bias.astype(np.float32))


def _scaled(
    module: Module, conv: Conv, step: Step, sides: list[Side], has_residual: bool
) -> Conv | None:
    """+ - * / by a constant. After a residual only an addition still commutes."""
    first, value = sides[0] is None, _values(module, conv, sides)
    adds = step.function == "add" or (step.function == "sub" and first)
    if value is None or (has_residual and not adds):
        return None
    found = affine(step.function, first, value)
    return None if found is None else _rescale(conv, *found)


def _activated(module: Module, conv: Conv, step: Step, sides: list[Side]) -> Conv | None:
    if sides[0] is not None:
        return None
    match step.function, [side for side in sides[1:] if isinstance(side, float)]:
        case "prelu", _ if (slopes := _values(module, conv, sides)) is not None:
            act = Activation("prelu", lanes=_lanes(slopes))
        case (("relu" | "sigmoid" | "silu" | "tanh") as function, []):
            act = Activation(function)
        case (("clip" | "hard_sigmoid" | "hard_swish") as function, [p, q]):
            act = Activation(function, p, q)
        case _:
            return None
    return replace(conv, spec=replace(conv.spec, activation=act))


def _requantised(module: Module, conv: Conv, step: Step, sides: list[Side]) -> Conv | None:
    """round(conv), * s, round, clip: what follows a sum of whole numbers in a quantised network.
    The first says that the sum is whole; s stays out of the weights, which are whole too."""
    act, first = conv.spec.activation, sides[0] is None
    match act.kind, step.function, sides[1:]:
        case "none", "round", []:
            act = Activation("whole", -math.inf, math.inf)
        case "whole", "mul", [_] if act.p == -math.inf and act.q == math.inf:
            scales = _values(module, conv, sides)
            if scales is None:
                return None
            act = Activation("scaled", lanes=_lanes(scales))
        case "scaled", "round", []:
            act = replace(act, kind="rounded")
        case "whole", "clip", [float(low), float(high)] if first:
            act = replace(act, p=max(low, act.p), q=min(high, act.q))
        case "rounded", "clip", [float(low), float(high)] if first and _steps(low, high):
            act = replace(act, kind="requantised", p=low, q=high)
        case _:
            return None
    return replace(conv, spec=replace(conv.spec, activation=act))


def _steps(low: float, high: float) -> bool:
    """Limits between which rounding before or behind the clip is the same."""
    return low.is_integer() and high.is_integer() and max(-low, high) <= LARGEST_STEP


def _scaled_after(conv: Conv, step: Step, sides: list[Side]) -> Conv | None:
    """act(conv) * s: ReLU and its kin are homogeneous, and x * gate(a * x + b) takes s into x
    with a / s in the gate. Exporters write hard-swish with 0.1666 for 1/6; this keeps it exact.
    """
    scale = next((side for side in sides if isinstance(side, float)), None)
    if scale is None or step.function not in ("mul", "div"):
        return None
    if step.function == "div":
        if sides[0] is not None or scale == 0.0:
            return None
        scale = 1.0 / scale
    if scale <= 0.0 or not math.isfinite(scale):
        return None
    act = conv.spec.activation
    if act.kind == "clip":
        act = replace(act, p=act.p * scale, q=act.q * scale)
    elif act.kind == "hard_swish":
        act = replace(act, p=act.p / scale)
    elif act.kind not in ("relu", "prelu"):
        return None
    scaled = _rescale(conv, np.full(conv.channels[1], scale, np.float32))
    return replace(scaled, spec=replace(conv.spec, activation=act))


def _residual(
    around: Neighbours, op: Lowered, conv: Conv, step: Step, sides: list[Side]
) -> str | None:
    """The other tensor of an addition, where it has the same shape."""
    module = around.module
    if step.function != "add" or len(op.inputs) > 1 or conv.matrix:
        return None
    other = _other(sides)
    if not isinstance(other, str) or other in module.constants:
        return None
    if module.shapes[other] != module.shapes[op.output]:
        return None
    # of two convolutions that meet in the addition the later one takes it: shorter lifetimes
    rival = around.writer(other)
    takes_one = rival is not None and isinstance(rival.spec, Conv) and len(rival.inputs) == 1
    if rival and takes_one and around.read_once(other) and around.precedes(op, rival):
        return None
    return other
