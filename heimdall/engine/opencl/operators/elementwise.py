"""Unary, binary and parametric operators, and normalisations made of them."""

from __future__ import annotations

import math

import numpy as np

from heimdall.engine.opencl.expression import Expression, Operand, Value
from heimdall.engine.opencl.lowered import (
    Elementwise,
    Lowered,
    Moments,
)
from heimdall.engine.opencl.operators.context import Context, register

_UNARY = {
    **{name: name.lower() for name in ("Relu", "Sigmoid", "Tanh", "Abs", "Neg", "Sqrt", "Exp")},
    **{name: name.lower() for name in ("Log", "Erf", "Floor", "Ceil", "Round", "Sin", "Cos")},
    **{name: name.lower() for name in ("Reciprocal", "Softplus", "Softsign")},
}
_BINARY = {name: name.lower() for name in ("Add", "Sub", "Mul", "Div", "Pow", "Min", "Max")}


def elementwise(context: Context, function: str, *args: str | float) -> Lowered:
    """One step; constants of one element become scalars."""
    tensors: list[str] = []
    values: list[Value] = []
    for arg in args:
        if isinstance(arg, str):
            array = context.graph.constants.get(arg)
            if array is not None and array.size == 1:
                values.append(float(array.reshape(-1)[0]))
                continue
            if arg not in tensors:
                tensors.append(arg)
            values.append(Operand(tensors.index(arg)))
        else:
            values.append(float(arg))
    return context.op(Elementwise(Expression.of(function, *values)), *tensors)


@register(*_UNARY)
def _unary(context: Context) -> list[Lowered]:
    return [elementwise(context, _UNARY[context.node.op_type], context.node.inputs[0])]


@register(*_BINARY)
def _binary(context: Context) -> list[Lowered] | None:
    if len(context.node.inputs) != 2:
        return _variadic(context)
    a, b = context.node.inputs
    power = context.scalar(1)
    if context.node.op_type == "Pow" and power in (1.0, 2.0, 0.5):
        function = {1.0: "identity", 2.0: "square", 0.5: "sqrt"}[power]
        return [elementwise(context, function, a)]
    return [elementwise(context, _BINARY[context.node.op_type], a, b)]


@register("Sum")
def _variadic(context: Context) -> list[Lowered] | None:
    inputs = context.node.inputs
    function = {"Sum": "add", "Min": "min", "Max": "max"}.get(context.node.op_type)
    if function is None:
        return None
    if len(inputs) == 1:
        return [elementwise(context, "identity", inputs[0])]
    if len(inputs) == 2:
        return [elementwise(context, function, *inputs)]
    if any(context.shape(name) != context.y for name in inputs):
        return None
    ops, value = [], inputs[0]
    for index, name in enumerate(inputs[1:]):
        last = index == len(inputs) - 2
        output = context.node.outputs[0] if last else context.tensor(f"{index}", context.y)
        expression = Expression.of(function, Operand(0), Operand(1))
        ops.append(context.op(Elementwise(expression), value, name, output=output))
        value = output
    return ops


@register("LeakyRelu", "Elu", "HardSigmoid", "HardSwish", "Clip", "PRelu")
def _parametric(context: Context) -> list[Lowered] | None:
    x, get = context.node.inputs[0], context.attribute
    match context.node.op_type:
        case "LeakyRelu":
            return [elementwise(context, "prelu", x, get("alpha", 0.01))]
        case "Elu":
            return [elementwise(context, "elu", x, get("alpha", 1.0))]
        case "HardSigmoid":
            return [elementwise(context, "hard_sigmoid", x, get("alpha", 0.2), get("beta", 0.5))]
        case "HardSwish":
            return [elementwise(context, "hard_swish", x, 1 / 6, 0.5)]
        case "PRelu":
            return [elementwise(context, "prelu", x, context.node.inputs[1])]
        case "Clip":
            low = context.scalar(1) if context.has(1) else get("min", -math.inf)
            high = context.scalar(2) if context.has(2) else get("max", math.inf)
            if low is None or high is None:
                return None  # limits that are computed
            low = min(low, high)  # ONNX: the upper limit is the last word
            return [elementwise(context, "clip", x, low, high)]
    return None


@register("BatchNormalization")
def _batch_norm(context: Context) -> list[Lowered] | None:
    arrays = [context.constant(index) for index in range(1, 5)]
    if any(array is None for array in arrays) or context.attribute("training_mode", 0):
        return None
    scale, shift, mean, variance = (np.asarray(array, np.float64) for array in arrays)
    factor = scale / np.sqrt(variance + context.attribute("epsilon", 1e-5))
    return _affine(context, factor, shift - mean * factor)


_ADD = Elementwise(Expression.of("add", Operand(0), Operand(1)))
_SUB = Elementwise(Expression.of("sub", Operand(0), Operand(1)))
_MUL = Elementwise(Expression.of("mul", Operand(0), Operand(1)))


def _affine(context: Context, factor: np.ndarray, shift: np.ndarray, x: str = "") -> list[Lowered]:
    """x * factor + shift for each channel, as two steps with new constants."""
    shape = (1, -1, *[1] * (len(context.x) - 2))
    scaled = context.tensor("scaled", context.y)
    factors = context.weight("factor", factor.reshape(shape))
    shifts = context.weight("shift", shift.reshape(shape))
    return [
        context.op(_MUL, x or context.node.inputs[0], factors, output=scaled),
        context.op(_ADD, scaled, shifts),
    ]


@register("InstanceNormalization")
def _instance_norm(context: Context) -> list[Lowered] | None:
    """Moments, then (x - mean) * deviation * scale + bias; fusion joins the steps."""
    scale, shift = context.constant(1), context.constant(2)
    if not context.is_picture() or scale is None or shift is None:
        return None
    x, vector = context.node.inputs[0], (1, context.x[1], 1, 1)
    mean, deviation = context.tensor("mean", vector), context.tensor("deviation", vector)
    centred, unit = context.tensor("centred", context.x), context.tensor("unit", context.x)
    spec = Moments(context.attribute("epsilon", 1e-5))
    return [
        Lowered(spec, (x,), (mean, deviation), (context.node.name,)),
        context.op(_SUB, x, mean, output=centred),
        context.op(_MUL, centred, deviation, output=unit),
        *_affine(context, scale, shift, unit),
    ]
