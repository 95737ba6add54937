"""Each quantised op as nodes of floats: one function an op, in ``REWRITES``.

The order of operations is that of onnxruntime's kernels for x86-64: half of a step is half of a
step there too, and falls to the same side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from heimdall.graph.whole_numbers import Scaled, WholeNumbers

Names = list[str]  # of a node's inputs, and empty ones
Attributes = dict[str, Any]
Rewrite = Callable[[WholeNumbers, onnx.NodeProto, Names, Attributes], None]


def _triple(of: Names, first: int) -> tuple[str, str, str]:
    """A quantised tensor with its scale and zero point."""
    return of[first], of[first + 1], of[first + 2]


def _quantize_linear(to: WholeNumbers, node: onnx.NodeProto, of: Names, get: Attributes) -> None:
    if get.get("block_size"):
        raise ValueError("blocks of a computed tensor")
    kind = get.get("output_dtype", 0)
    to.quantise(of[0], of[1], of[2], node.output[0], get.get("axis", 1), kind)


def _dequantize_linear(to: WholeNumbers, node: onnx.NodeProto, of: Names, get: Attributes) -> None:
    axis, block = get.get("axis", 1), get.get("block_size", 0)
    to.dequantise(of[0], of[1], of[2], axis, node.output[0], block)


def _dynamic(to: WholeNumbers, node: onnx.NodeProto, of: Names, get: Attributes) -> None:
    """DynamicQuantizeLinear: scale and zero point follow from the values, zero among them."""
    x, (whole, scale, zero) = of[0], node.output
    nothing, steps = to.constant(0.0), to.constant(255.0)
    low = to.emit("Min", to.emit("ReduceMin", x, keepdims=0), nothing)
    high = to.emit("Max", to.emit("ReduceMax", x, keepdims=0), nothing)
    step = to.emit("Div", to.emit("Sub", high, low), steps)
    to.emit("Max", step, to.constant(np.finfo(np.float32).tiny), into=scale)  # all are zero
    place = to.emit("Round", to.emit("Div", to.emit("Neg", low), scale))
    to.emit("Clip", place, nothing, steps, into=to.carry(zero, TensorProto.UINT8))
    to.quantise(x, scale, zero, whole)


def _product(op: str, axes: tuple[int, int], bias_at: int, into_at: int) -> Rewrite:
    """A sum of products. ``axes``: along which x and the weights may have several scales; the
    inputs' places of the bias (0: none) and of the result's scale."""

    def rewrite_it(to: WholeNumbers, node: onnx.NodeProto, of: Names, get: Attributes) -> None:
        along = 0 if get.get("transB", 0) else axes[1]
        x, weights = to.dequantise(*_triple(of, 0), axes[0]), to.dequantise(*_triple(of, 3), along)
        bias, alpha = of[bias_at] if bias_at else "", get.pop("alpha", 1.0)
        numbers = _sum(to, op, x, weights, bias, get)
        if numbers is None:
            rest = [_bias(to, bias, of[1], of[4])] if bias else []
            result = to.emit(op, x, weights, *rest, **get)
            result = result if alpha == 1.0 else to.emit("Mul", result, to.constant(alpha))
            _finish(to, result, node, of, into_at)
            return
        numbers = numbers._replace(scales=np.float32(alpha) * numbers.scales)
        step = to.number(of[into_at])
        if of[into_at] and step is not None:
            to.requantise(numbers, step, of[into_at + 1], node.output[0])
            return
        result = node.output[0] if not of[into_at] else to.name(f"{to.node}/sum")
        to.scale(numbers, into=result)
        _finish(to, result, node, of, into_at)

    return rewrite_it


def _finish(to: WholeNumbers, x: str, node: onnx.NodeProto, of: Names, into_at: int) -> None:
    if of[into_at]:
        to.quantise(x, of[into_at], of[into_at + 1], node.output[0])
    elif x != node.output[0]:
        to.emit("Identity", x, into=node.output[0])


def _sum(
    to: WholeNumbers, op: str, x: str, weights: str, bias: str, get: Attributes
) -> Scaled | None:
    """A sum of whole numbers, where it is exact."""
    a, b = to.scaled.get(x), to.scaled.get(weights)
    if a is None or b is None:
        return None
    steps = None
    if bias:
        data = to.array(bias)
        if data is None:
            raise ValueError("a computed bias")
        scales = (a.scales * b.scales).astype(np.float32)
        low, high = float(data.min(initial=0)), float(data.max(initial=0))
        steps = Scaled(to.floats(bias), scales, low, high)
    return to.sum(op, a, b, steps, get)


def _bias(to: WholeNumbers, bias: str, *scales: str) -> str:
    """A bias in steps of the product of both scales."""
    step, data = np.ones(1), to.array(bias)
    for name in scales:
        array = to.array(name)
        if array is None or data is None:
            raise ValueError("a computed bias")
        step = step * array.astype(np.float64).reshape(-1)
    assert data is not None
    return to.constant(data.astype(np.float64) * step, "bias")


def _known(to: WholeNumbers, of: Names) -> tuple[np.float32, ...] | None:
    """Scale and zero point of two inputs and of the result, where all are constants."""
    found = [to.number(of[at], None if at in (1, 4, 6) else 0) for at in (1, 2, 4, 5, 6, 7)]
    numbers = [each for each in found if each is not None]
    return tuple(numbers) if len(numbers) == 6 else None


def _kind(to: WholeNumbers, of: Names) -> int:
    zero = to.array(of[7])
    if zero is not None:
        return int(onnx.helper.np_dtype_to_tensor_dtype(zero.dtype))
    return to.kinds.get(of[0], TensorProto.UINT8)


def _add(to: WholeNumbers, node: onnx.NodeProto, of: Names, get: Attributes) -> None:
    """a * ra + (b * rb + c), each product fused with its addition where an engine can: behind
    ``Sub`` of a product. onnxruntime swaps a constant a and b."""
    known = _known(to, of)
    if known is None:
        _of_two(to, "Add", node, of)
        return
    sa, za, sb, zb, sc, zc = known
    a, b = of[0], of[3]
    if to.array(a) is not None:
        (a, sa, za), (b, sb, zb) = (b, sb, zb), (a, sa, za)
    ra, rb = sa / sc, sb / sc
    # one rounding less each: the compiler of those kernels fuses here too
    inner = np.float32(np.float64(ra) * np.float64(za) + np.float64(np.float32(rb * zb)))
    rest = np.float32(zc - inner)
    data = to.array(b)
    if data is not None:
        whole = np.float64(rb) * data.astype(np.float64) + np.float64(rest)
        base = to.constant(whole.astype(np.float32), "base")
    else:
        base = to.emit(
            "Sub", to.constant(rest), to.emit("Mul", to.floats(b), to.constant(-rb, "scale"))
        )
    product = to.emit("Mul", to.floats(a), to.constant(-ra, "scale"))
    to.place(to.emit("Sub", base, product), zc, _kind(to, of), node.output[0])


def _mul(to: WholeNumbers, node: onnx.NodeProto, of: Names, get: Attributes) -> None:
    known = _known(to, of)
    if known is None:
        _of_two(to, "Mul", node, of)
        return
    sa, _, sb, _, sc, zc = known
    whole = to.emit("Mul", to.centre(of[0], of[2]), to.centre(of[3], of[5]))
    places = to.emit("Mul", whole, to.constant(sa * sb / sc, "scale"))
    if zc:
        places = to.emit("Add", places, to.constant(zc, "zero"))
    to.place(places, zc, _kind(to, of), node.output[0])


def _of_two(to: WholeNumbers, op: str, node: onnx.NodeProto, of: Names) -> None:
    result = to.emit(op, to.dequantise(*_triple(of, 0)), to.dequantise(*_triple(of, 3)))
    to.quantise(result, of[6], of[7], node.output[0])


def _of_one(op: str) -> Rewrite:
    def rewrite_it(to: WholeNumbers, node: onnx.NodeProto, of: Names, get: Attributes) -> None:
        if get.pop("channels_last", 0):
            raise ValueError("channels_last")
        get.pop("opset", 0)  # of QLinearSoftmax
        to.quantise(
            to.emit(op, to.dequantise(*_triple(of, 0)), **get), of[3], of[4], node.output[0]
        )

    return rewrite_it


def _average(to: WholeNumbers, node: onnx.NodeProto, of: Names, get: Attributes) -> None:
    if get.pop("channels_last", 0):
        raise ValueError("channels_last")
    mean = to.emit("AveragePool", to.dequantise(*_triple(of, 0)), **get)
    step, zero = to.number(of[3]), to.number(of[4], 0)
    if step is None or zero is None:
        to.quantise(mean, of[3], of[4], node.output[0])
        return
    places = to.emit("Div", mean, to.constant(step, "scale"))
    if zero:
        places = to.emit("Add", places, to.constant(zero, "zero"))
    kind = _kind(to, [*of[:5], "", "", of[4]])
    to.place(places, zero, kind, node.output[0])


def _concat(to: WholeNumbers, node: onnx.NodeProto, of: Names, get: Attributes) -> None:
    parts = [to.dequantise(*_triple(of, at)) for at in range(2, len(node.input), 3)]
    result = to.name(f"{to.node}/Concat")
    if not to.concat(parts, result, **get):
        to.emit("Concat", *parts, into=result, **get)
    to.quantise(result, of[0], of[1], node.output[0])


def _integers(op: str, axes: tuple[int, int]) -> Rewrite:
    """ConvInteger and MatMulInteger: sums without scales."""

    def rewrite_it(to: WholeNumbers, node: onnx.NodeProto, of: Names, get: Attributes) -> None:
        one = to.constant(1.0)
        x = to.dequantise(of[0], one, of[2], axes[0])
        weights = to.dequantise(of[1], one, of[3], axes[1])
        carried = to.carry(node.output[0], TensorProto.INT32)
        numbers = _sum(to, op, x, weights, "", get)
        if numbers is not None:
            to.emit("Identity", numbers.whole, into=carried)
        else:
            to.emit(op, x, weights, into=carried, **get)

    return rewrite_it


REWRITES: dict[str, Rewrite] = {
    "QuantizeLinear": _quantize_linear,
    "DequantizeLinear": _dequantize_linear,
    "DynamicQuantizeLinear": _dynamic,
    "QLinearConv": _product("Conv", (1, 0), 8, 6),
    "QLinearMatMul": _product("MatMul", (-2, -1), 0, 6),
    "QGemm": _product("Gemm", (1, -1), 6, 7),
    "QLinearAdd": _add,
    "QLinearMul": _mul,
    "QLinearConcat": _concat,
    "QLinearSigmoid": _of_one("Sigmoid"),
    "QLinearLeakyRelu": _of_one("LeakyRelu"),
    "QLinearSoftmax": _of_one("Softmax"),
    "QLinearAveragePool": _average,
    "QLinearGlobalAveragePool": _of_one("GlobalAveragePool"),
    "ConvInteger": _integers("Conv", (1, 0)),
    "MatMulInteger": _integers("MatMul", (-2, -1)),
}
