"""Operators that compute each value by itself, and BatchNormalization, which folds into others."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np

from heimdall.engine.opencl.functions import FUNCTIONS
from heimdall.engine.opencl.lowered import Cast, Lowered, Reshape
from heimdall.engine.opencl.operators.chain import Chain, step
from heimdall.engine.opencl.operators.context import FLOAT, TRUTH, Context, register

_UNARY = {function.onnx: name for name, function in FUNCTIONS.items() if function.onnx}
_BINARY = {
    **{name.title(): name for name in ("add", "sub", "mul", "div", "pow", "min", "max", "mod")},
    **{name.title(): name for name in ("equal", "less", "greater", "and", "or", "xor")},
    **{"LessOrEqual": "less_or_equal", "GreaterOrEqual": "greater_or_equal"},
    **{"Sum": "add", "Mean": "add", "PRelu": "prelu"},
}


def elementwise(context: Context, function: str, *args: str | float) -> Lowered:
    """One step whose result is the node's output."""
    spec, tensors = step(context, function, *args)
    return context.op(spec, *tensors)


@register(*_UNARY)
def _unary(context: Context) -> list[Lowered]:
    function = _UNARY[context.node.op_type]
    numbers = (context.attribute(*each) for each in FUNCTIONS[function].attributes)
    return [elementwise(context, function, context.node.inputs[0], *numbers)]


@register("Gelu")
def _gelu(context: Context) -> list[Lowered]:
    tanh = context.attribute("approximate", "none") == "tanh"
    return [elementwise(context, "gelu_tanh" if tanh else "gelu", context.node.inputs[0])]


@register(*_BINARY)
def _binary(context: Context) -> list[Lowered] | None:
    """Two tensors, or any number of them, one after the other."""
    inputs, op_type = context.node.inputs, context.node.op_type
    if op_type == "Mod" and not context.attribute("fmod", 0):
        return None  # of floats since opset 28, with the sign of the divisor
    power = context.scalar(1)
    if op_type == "Pow" and power in (1.0, 2.0, 0.5):
        function = {1.0: "identity", 2.0: "square", 0.5: "sqrt"}[power]
        return [elementwise(context, function, inputs[0])]
    function = _BINARY[op_type]
    if len(inputs) == 1:
        return [elementwise(context, "identity", *inputs)]
    if len(inputs) == 2 and op_type != "Mean":
        return [elementwise(context, function, *inputs)]
    chain = Chain(context)
    total = reduce(lambda a, b: chain(function, a, b), inputs)
    return chain.end(chain("mul", total, 1 / len(inputs)) if op_type == "Mean" else total)


@register("Where")
def _where(context: Context) -> list[Lowered]:
    return [elementwise(context, "where", *context.node.inputs)]


@register("Clip")
def _clip(context: Context) -> list[Lowered]:
    x, chain = context.node.inputs[0], Chain(context)
    limits: list[float | str] = []
    for index, (name, least) in enumerate((("min", -math.inf), ("max", math.inf)), 1):
        given = context.scalar(index)
        if context.has(index) and given is None:
            limits.append(context.node.inputs[index])
        else:
            limits.append(context.attribute(name, least) if given is None else given)
    low, high = limits
    if isinstance(low, str) or isinstance(high, str):
        return chain.end(chain("min", chain("max", x, low), high))
    return [elementwise(context, "clip", x, min(low, high), high)]


@register("Cast", any_type=True)
def _cast(context: Context) -> list[Lowered] | None:
    """Whatever comes to the device becomes float32 on the way; inputs of the network before
    any other op reads them."""
    x = context.node.inputs[0]
    source, target = (context.graph.tensors[name].dtype for name in (x, context.node.outputs[0]))
    if target == FLOAT:
        given = source != FLOAT and x in [tensor.name for tensor in context.graph.inputs]
        return [context.op(Cast() if given else Reshape(), x)]
    if target == TRUTH and source == FLOAT:
        return [elementwise(context, "is_true", x)]
    return None


@register("BatchNormalization")
def _batch_norm(context: Context) -> list[Lowered] | None:
    x, *names = context.node.inputs
    epsilon = context.attribute("epsilon", 1e-5)
    shape = (1, -1, *[1] * (len(context.x) - 2))
    chain = Chain(context)
    if context.attribute("training_mode", 0) or len(context.outputs) > 1:
        return None
    if not context.attribute("spatial", 1):  # opset 7 and 8: numbers for each value
        return None
    arrays = [context.constant(index) for index in range(1, 5)]
    if any(array is None for array in arrays):
        columns = (1, context.x[1], *[1] * (len(context.x) - 2))
        scale, shift, mean, variance = (chain.reshape(name, columns) for name in names)
        factor = chain("div", scale, chain("sqrt", chain("add", variance, epsilon)))
        return chain.end(chain("add", chain("mul", chain("sub", x, mean), factor), shift))
    scales, shifts, means, variances = (np.asarray(array, np.float64) for array in arrays)
    factors = scales / np.sqrt(variances + epsilon)
    scaled = chain("mul", x, chain.constant(factors.reshape(shape)))
    return chain.end(
        chain("add", scaled, chain.constant((shifts - means * factors).reshape(shape)))
    )
