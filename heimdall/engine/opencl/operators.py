"""ONNX operators to lowered ops, one function an operator.

A function returns None for what the kernels do not cover (another rank, mode or type): that
node becomes a fallback op. Shapes are those of the graph, which are all fixed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from heimdall.analyzer.graph import Graph, Node
from heimdall.engine.opencl.conv_spec import ConvSpec
from heimdall.engine.opencl.expression import Expression, Operand, Value
from heimdall.engine.opencl.lowered import (
    Cast,
    Concat,
    Conv,
    Elementwise,
    Expand,
    Gather,
    Linear,
    Lowered,
    Lrn,
    MatMul,
    Module,
    Moments,
    Pad,
    Pool,
    Reduce,
    Reshape,
    Slice,
    Softmax,
    Transpose,
)
from heimdall.engine.opencl.sampling import coordinates, linear_table, nearest

_Lowering = Callable[["Context"], "list[Lowered] | None"]
_TABLE: dict[str, _Lowering] = {}
_FLOAT = np.dtype(np.float32)


class Context:
    """One node and what its lowering may ask about it."""

    def __init__(self, module: Module, node: Node) -> None:
        self.module, self.graph, self.node = module, module.graph, node

    def attribute(self, name: str, default: Any = None) -> Any:
        return self.node.attributes.get(name, default)

    def has(self, index: int) -> bool:
        return index < len(self.node.inputs) and bool(self.node.inputs[index])

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.graph.tensors[name].shape)

    @property
    def x(self) -> tuple[int, ...]:
        """The shape of the first input."""
        return self.shape(self.node.inputs[0])

    @property
    def y(self) -> tuple[int, ...]:
        """The shape of the first output."""
        return self.shape(self.node.outputs[0])

    def constant(self, index: int) -> np.ndarray | None:
        return self.graph.constants.get(self.node.inputs[index]) if self.has(index) else None

    def scalar(self, index: int) -> float | None:
        array = self.constant(index)
        return float(array.reshape(-1)[0]) if array is not None and array.size == 1 else None

    def ints(self, index: int, attribute: str) -> list[int] | None:
        """A list of integers given as an input (newer opsets) or as an attribute."""
        array = self.constant(index)
        if array is not None:
            return [int(value) for value in array.reshape(-1)]
        value = self.attribute(attribute)
        return None if value is None else [int(item) for item in np.atleast_1d(value)]

    def is_picture(self, name: str | None = None) -> bool:
        shape = self.shape(name) if name else self.x
        return len(shape) == 4 and shape[0] == 1

    def tensor(self, suffix: str, shape: Sequence[int]) -> str:
        """A new tensor, named after the node's output."""
        name = f"{self.node.outputs[0]}/{suffix}"
        self.module.shapes[name] = tuple(shape)
        return name

    def weight(self, suffix: str, array: np.ndarray) -> str:
        """A new constant."""
        name = self.tensor(suffix, array.shape)
        self.module.constants[name] = np.asarray(array, np.float32)
        return name

    def op(self, spec: Any, *inputs: str, output: str | None = None) -> Lowered:
        return Lowered(spec, inputs, (output or self.node.outputs[0],), (self.node.name,))


def lower_node(module: Module, node: Node) -> list[Lowered] | None:
    """The lowered ops of a node, or None where it must fall back to the CPU.

    New tensors and constants are added to ``module``.
    """
    lowering = None if node.domain else _TABLE.get(node.op_type)
    if lowering is None or not _all_float(module.graph, node):
        return None
    return lowering(Context(module, node))


def _all_float(graph: Graph, node: Node) -> bool:
    outputs = [name for name in node.outputs if name]
    if node.op_type == "MaxPool":
        outputs = outputs[:1]
    inputs = [name for name in node.inputs if name and name not in graph.constants]
    if node.op_type == "Cast":
        inputs = []
    return bool(outputs) and all(
        name in graph.tensors and graph.tensors[name].dtype == _FLOAT for name in inputs + outputs
    )


def _register(*op_types: str) -> Callable[[_Lowering], _Lowering]:
    def add(function: _Lowering) -> _Lowering:
        _TABLE.update(dict.fromkeys(op_types, function))
        return function

    return add


# --- elementwise ---------------------------------------------------------------------------

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


@_register(*_UNARY)
def _unary(context: Context) -> list[Lowered]:
    return [elementwise(context, _UNARY[context.node.op_type], context.node.inputs[0])]


@_register(*_BINARY)
def _binary(context: Context) -> list[Lowered] | None:
    if len(context.node.inputs) != 2:
        return _variadic(context)
    a, b = context.node.inputs
    power = context.scalar(1)
    if context.node.op_type == "Pow" and power in (1.0, 2.0, 0.5):
        function = {1.0: "identity", 2.0: "square", 0.5: "sqrt"}[power]
        return [elementwise(context, function, a)]
    return [elementwise(context, _BINARY[context.node.op_type], a, b)]


@_register("Sum")
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


@_register("LeakyRelu", "Elu", "HardSigmoid", "HardSwish", "Gelu", "Clip", "PRelu")
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
            return [elementwise(context, "clip", x, low, high)]
    return None


@_register("BatchNormalization")
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


@_register("InstanceNormalization")
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


# --- convolutions and matrices -------------------------------------------------------------


def _pads(
    context: Context, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> tuple[int, int, int, int] | None:
    """(top, left, bottom, right) from ``pads`` or ``auto_pad``."""
    mode = context.attribute("auto_pad", "NOTSET")
    if mode in ("NOTSET", ""):
        pads = context.attribute("pads", [0, 0, 0, 0])
        return (pads[0], pads[1], pads[2], pads[3])
    if mode == "VALID":
        return (0, 0, 0, 0)
    sides = []
    for axis in (0, 1):
        reach = (kernel[axis] - 1) * dilations[axis] + 1
        size = context.x[axis + 2]
        total = max(0, (-(-size // strides[axis]) - 1) * strides[axis] + reach - size)
        small, large = total // 2, total - total // 2
        sides.append((small, large) if mode == "SAME_UPPER" else (large, small))
    return (sides[0][0], sides[1][0], sides[0][1], sides[1][1])


@_register("Conv", "ConvTranspose")
def _conv(context: Context) -> list[Lowered] | None:
    weights, bias = context.constant(1), context.constant(2)
    if weights is None or (context.has(2) and bias is None) or not context.is_picture():
        return None
    if weights.ndim != 4:
        return None
    transposed = context.node.op_type == "ConvTranspose"
    kernel = (weights.shape[2], weights.shape[3])
    strides = tuple(context.attribute("strides", [1, 1]))
    dilations = tuple(context.attribute("dilations", [1, 1]))
    pads = _pads(context, kernel, strides, dilations)
    if transposed and (
        context.attribute("auto_pad", "NOTSET") not in ("NOTSET", "VALID")
        or context.attribute("output_shape")
    ):
        return None
    if pads is None or min(pads) < 0:
        return None
    spec = ConvSpec(
        kernel, strides, dilations, pads, context.attribute("group", 1), transposed=transposed
    )
    return [context.op(Conv(spec, weights, bias), context.node.inputs[0])]


@_register("Gemm")
def _gemm(context: Context) -> list[Lowered] | None:
    weights = context.constant(1)
    if weights is None or len(context.x) != 2 or context.attribute("transA", 0):
        return None
    if not context.attribute("transB", 0):
        weights = weights.T
    weights = weights * np.float32(context.attribute("alpha", 1.0))
    bias = None
    if context.has(2):
        array = context.constant(2)
        if array is None or (array.ndim == 2 and array.shape[0] > 1):
            return None
        bias = np.broadcast_to(array.reshape(-1), weights.shape[:1])
        bias = bias * np.float32(context.attribute("beta", 1.0))
    return _dense(context, weights, bias)


@_register("MatMul")
def _matmul(context: Context) -> list[Lowered] | None:
    weights = context.constant(1)
    if weights is not None and weights.ndim == 2 and len(context.x) >= 2:
        return _dense(context, weights.T, None)
    a, b = context.node.inputs
    ranks = len(context.shape(a)), len(context.shape(b))
    if context.constant(0) is not None or weights is not None or min(ranks) < 2:
        return None
    if context.shape(a)[:-2] != context.shape(b)[:-2]:
        return None
    return [context.op(MatMul(), a, b)]


def _dense(context: Context, weights: np.ndarray, bias: np.ndarray | None) -> list[Lowered]:
    """A product with a constant (N, K) matrix, as a 1x1 convolution.

    A single row is a picture of one pixel; several rows stay row-major.
    """
    rows = math.prod(context.x[:-1])
    kernel = np.ascontiguousarray(weights, np.float32).reshape(*weights.shape, 1, 1)
    conv = Conv(ConvSpec((1, 1)), kernel, bias, matrix=rows > 1)
    x = context.node.inputs[0]
    if rows > 1:
        return [context.op(conv, x)]
    column = context.tensor("column", (1, weights.shape[1], 1, 1))
    pixel = context.tensor("pixel", (1, weights.shape[0], 1, 1))
    return [
        context.op(Reshape(), x, output=column),
        context.op(conv, column, output=pixel),
        context.op(Reshape(), pixel),
    ]


# --- pooling and reductions ----------------------------------------------------------------


@_register("MaxPool", "AveragePool")
def _pool(context: Context) -> list[Lowered] | None:
    if not context.is_picture() or len([name for name in context.node.outputs if name]) > 1:
        return None
    kernel = tuple(context.attribute("kernel_shape"))
    strides = tuple(context.attribute("strides", [1, 1]))
    dilations = tuple(context.attribute("dilations", [1, 1]))
    pads = _pads(context, kernel, strides, dilations)
    average = context.node.op_type == "AveragePool"
    counted = bool(context.attribute("count_include_pad", 0))
    if pads is None or (counted and context.attribute("ceil_mode", 0)):
        return None
    if average and kernel == context.x[2:] and not any(pads):
        return [context.op(Reduce("mean", (2, 3)), context.node.inputs[0])]
    mode: Literal["average", "max"] = "average" if average else "max"
    return [
        context.op(Pool(mode, kernel, strides, pads, dilations, counted), context.node.inputs[0])
    ]


@_register("GlobalAveragePool", "GlobalMaxPool")
def _global_pool(context: Context) -> list[Lowered] | None:
    if not context.is_picture():
        return None
    mode: Literal["mean", "max"] = "mean" if context.node.op_type == "GlobalAveragePool" else "max"
    return [context.op(Reduce(mode, (2, 3)), context.node.inputs[0])]


@_register("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd")
def _reduce(context: Context) -> list[Lowered] | None:
    axes = context.ints(1, "axes")
    if context.has(1) and axes is None:
        return None
    rank = len(context.x)
    if not axes:
        if context.attribute("noop_with_empty_axes", 0):
            return [elementwise(context, "identity", context.node.inputs[0])]
        axes = list(range(rank))
    normal = tuple(sorted(axis % rank for axis in axes))
    mode = context.node.op_type.removeprefix("Reduce").lower()
    return [context.op(Reduce(mode, normal), context.node.inputs[0])]  # type: ignore[arg-type]


@_register("Softmax", "LogSoftmax")
def _softmax(context: Context) -> list[Lowered] | None:
    rank = len(context.x)
    old = context.graph.opset < 13
    axis = context.attribute("axis", 1 if old else -1) % rank
    if old and math.prod(context.x[axis + 1 :]) != 1:
        return None  # before opset 13 all axes from ``axis`` on are one
    return [context.op(Softmax(axis, context.node.op_type == "LogSoftmax"), context.node.inputs[0])]


@_register("LRN")
def _lrn(context: Context) -> list[Lowered] | None:
    if not context.is_picture():
        return None
    get = context.attribute
    spec = Lrn(get("size"), get("alpha", 1e-4), get("beta", 0.75), get("bias", 1.0))
    return [context.op(spec, context.node.inputs[0])]


# --- data movement -------------------------------------------------------------------------


@_register("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Dropout")
def _reshape(context: Context) -> list[Lowered] | None:
    if len([name for name in context.node.outputs if name]) > 1:
        return None  # a Dropout whose mask is asked for
    return [context.op(Reshape(), context.node.inputs[0])]


@_register("Cast")
def _cast(context: Context) -> list[Lowered] | None:
    source = context.node.inputs[0]
    if context.graph.tensors[source].dtype == _FLOAT:
        return [context.op(Reshape(), source)]
    if source in [tensor.name for tensor in context.graph.inputs]:
        return [context.op(Cast(), source)]
    return None


@_register("Transpose")
def _transpose(context: Context) -> list[Lowered]:
    perm = tuple(context.attribute("perm", range(len(context.x))[::-1]))
    return [context.op(Transpose(perm), context.node.inputs[0])]


@_register("Expand")
def _expand(context: Context) -> list[Lowered]:
    return [context.op(Expand(), context.node.inputs[0])]


@_register("Concat")
def _concat(context: Context) -> list[Lowered]:
    axis = context.attribute("axis") % len(context.y)
    return [context.op(Concat(axis), *context.node.inputs)]


@_register("Split")
def _split(context: Context) -> list[Lowered]:
    axis = context.attribute("axis", 0) % len(context.x)
    ops, start, rank = [], 0, len(context.x)
    for name in context.node.outputs:
        starts = tuple(start if index == axis else 0 for index in range(rank))
        ops.append(context.op(Slice(starts, (1,) * rank), context.node.inputs[0], output=name))
        start += context.shape(name)[axis]
    return ops


@_register("Slice")
def _slice(context: Context) -> list[Lowered] | None:
    rank = len(context.x)
    starts, ends = context.ints(1, "starts"), context.ints(2, "ends")
    if starts is None or ends is None:
        return None
    axes = context.ints(3, "axes") or list(range(len(starts)))
    steps = context.ints(4, "steps") or [1] * len(starts)
    first, step = [0] * rank, [1] * rank
    for axis, start, end, jump in zip(axes, starts, ends, steps, strict=True):
        first[axis], _, step[axis] = slice(start, end, jump).indices(context.x[axis])
    return [context.op(Slice(tuple(first), tuple(step)), context.node.inputs[0])]


@_register("Pad")
def _pad(context: Context) -> list[Lowered] | None:
    pads = context.ints(1, "pads")
    mode = context.attribute("mode", "constant")
    fill = context.scalar(2) if context.has(2) else context.attribute("value", 0.0)
    if pads is None or fill is None or not context.is_picture() or context.has(3):
        return None
    if mode not in ("constant", "reflect", "edge") or pads[0] or pads[4]:
        return None
    if (mode != "constant" and (pads[1] or pads[5])) or (fill and (pads[1] or pads[5])):
        return None
    spec = Pad(mode, (pads[2], pads[3], pads[6], pads[7]), (pads[1], pads[5]), fill)
    return [context.op(spec, context.node.inputs[0])]


@_register("Resize", "Upsample")
def _resize(context: Context) -> list[Lowered] | None:
    if not context.is_picture() or context.x[:2] != context.y[:2]:
        return None
    mode = context.attribute("mode", "nearest")
    old = context.node.op_type == "Upsample" or context.graph.opset < 11
    where = (
        "asymmetric" if old else context.attribute("coordinate_transformation_mode", "half_pixel")
    )
    if context.attribute("antialias", 0) or context.attribute("axes") is not None:
        return None
    scales = context.constant(1 if old else 2)
    sources = []
    for axis in (2, 3):
        size, out = context.x[axis], context.y[axis]
        scale = float(scales[axis]) if scales is not None and scales.size == 4 else out / size
        source = coordinates(where, size, out, scale)
        if source is None:
            return None
        sources.append(source)
    if mode == "nearest":
        rounding = "floor" if old else context.attribute("nearest_mode", "round_prefer_floor")
        picked = [nearest(rounding, source) for source in sources]
        rows, columns = (
            tuple(int(i) for i in np.clip(index, 0, context.x[axis + 2] - 1))
            for axis, index in enumerate(picked)
        )
        return [context.op(Gather(rows, columns), context.node.inputs[0])]
    if mode != "linear":
        return None
    tables = [linear_table(source, context.x[axis + 2]) for axis, source in enumerate(sources)]
    return [context.op(Linear(tables[0], tables[1]), context.node.inputs[0])]
