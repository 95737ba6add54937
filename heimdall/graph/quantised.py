"""Quantised networks become networks of floats that round where the quantised ones do.

Weights are dequantised when the file is read. Where a tensor is quantised, its values are divided
by the scale, rounded half to even and clipped; in between they stay whole numbers, held as
floats. An op's result is that of the quantised op, within one step: a sum that is nearly half way
between two steps may be rounded to the other one, as floats are added in another order. Over a
whole network such steps may add up to several.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from heimdall.errors import ModelError
from heimdall.graph.values import attributes_of, constant_of, node_name

LEAST_OPSET = 11  # the first with Round
# Ops that neither mix nor compare with other numbers: whole numbers pass through them as floats.
# By op, the inputs that are data; None: all of them.
_PASSES: dict[str, tuple[int, ...] | None] = {
    **dict.fromkeys(("MaxPool", "Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze"), (0,)),
    **dict.fromkeys(("Slice", "Gather", "Split", "Identity", "Expand", "Tile", "Relu"), (0,)),
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), (0,)),
    **dict.fromkeys(("Concat", "Max", "Min"), None),
    "Pad": (0, 2),
    "Clip": (0, 1, 2),
}
_RANGES: dict[int, tuple[int, int]] = {
    TensorProto.UINT8: (0, 255),
    TensorProto.INT8: (-128, 127),
    TensorProto.UINT16: (0, 65535),
    TensorProto.INT16: (-32768, 32767),
}


def is_quantised(node: onnx.NodeProto) -> bool:
    """Is it an op of quantised networks, whether ``rewrite`` knows it or not?"""
    kind = node.op_type
    return kind in _OTHERS or kind in _REWRITES or "quantize" in kind.lower() or kind[:2] == "QL"


def rewrite(path: Path, model: onnx.ModelProto) -> None:
    """Replace the quantised ops of a model; it is changed only where there are any.

    Raises ModelError, naming the node, for those that are not known here.
    """
    if any(is_quantised(node) for node in model.graph.node):
        _Rewriting(path, model).all()


class _Rewriting:
    """The new nodes, and for each quantised tensor the float tensor that stands for it."""

    def __init__(self, path: Path, model: onnx.ModelProto) -> None:
        self._path, self._model = path, model
        self._constants = {item.name: item for item in model.graph.initializer}
        self._nodes: list[onnx.NodeProto] = []
        self._floats: dict[str, str] = {}
        self._kinds: dict[str, int] = {}  # the element type of each of those
        self._as_integers: set[str] = set()
        self._names = {name for node in model.graph.node for name in node.output}
        self._names |= set(self._constants) | {value.name for value in model.graph.input}
        self._where, self._node_name = "", ""
        for node in model.graph.node:
            if node.op_type == "Constant" and not node.domain:
                stored = constant_of(node)
                if stored is not None:
                    self._constants[node.output[0]] = stored
        # of constants, and of what they are quantised to
        self._shapes = {name: tuple(item.dims) for name, item in self._constants.items()}

    def all(self) -> None:
        versions = {entry.domain: entry.version for entry in self._model.opset_import}
        opset = versions.get("", versions.get("ai.onnx", 0))
        for index, node in enumerate(self._model.graph.node):
            self._node_name = node_name(index, node)
            self._where = f"node {self._node_name!r} ({node.op_type}) of {self._path}"
            if is_quantised(node):
                if opset < LEAST_OPSET:
                    raise ModelError(
                        f"{self._where}: quantised networks need opset {LEAST_OPSET} or newer, "
                        f"not {opset}. Convert it with onnx.version_converter."
                    )
                self._rewrite(node)
            elif node.op_type in _PASSES and node.input and node.input[0] in self._kinds:
                self._pass(node)
            else:
                self._keep(node)
        for value in self._model.graph.output:
            self._integers(value.name)
        del self._model.graph.node[:]
        self._model.graph.node.extend(self._nodes)

    def _rewrite(self, node: onnx.NodeProto) -> None:
        known = _REWRITES.get(node.op_type)
        if known is None or not node.input:
            raise ModelError(
                f"{self._where}: this quantised op is not supported; export in float32, or "
                "quantise with onnxruntime's quantize_static in QDQ format"
            )
        try:
            known(self, node, [*node.input, *[""] * 9], attributes_of(node))
        except (IndexError, KeyError, ValueError, TypeError, AttributeError) as error:
            raise ModelError(
                f"{self._where}: its scales and zero points are not supported: {error}"
            ) from error

    def _keep(self, node: onnx.NodeProto) -> None:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        for index, name in enumerate(node.input):
            if name in self._kinds:
                if node.op_type == "Cast":
                    copy.input[index] = self._floats[name]
                else:
                    self._integers(name)
        self._nodes.append(copy)

    def _pass(self, node: onnx.NodeProto) -> None:
        """The same op, on floats."""
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        kind = self._kinds[node.input[0]]
        places = _PASSES[node.op_type]
        for index in range(len(node.input)) if places is None else places:
            if index < len(node.input) and node.input[index]:
                copy.input[index] = self.floats(node.input[index])
        for index, name in enumerate(node.output):
            if name and (index == 0 or node.op_type == "Split"):
                copy.output[index] = self.carry(name, kind)
        self._nodes.append(copy)

    def carry(self, name: str, kind: int) -> str:
        """The float tensor that stands for the integers of ``name``."""
        self._kinds[name] = kind
        self._floats[name] = self._fresh(f"{name}/float")
        return self._floats[name]

    def carry_sums(self, name: str) -> str:
        """The same for sums of products."""
        return self.carry(name, TensorProto.INT32)

    def _fresh(self, name: str) -> str:
        while name in self._names:
            name += "_"
        self._names.add(name)
        return name

    def _integers(self, name: str) -> None:
        """Make the integers themselves, for ops and outputs that need them."""
        if name in self._floats and name in self._kinds and name not in self._as_integers:
            self._as_integers.add(name)
            self._nodes.append(
                helper.make_node("Cast", [self._floats[name]], [name], to=self._kinds[name])
            )

    # --- what rewriting functions say ---

    def emit(self, op: str, *inputs: str, into: str = "", **attributes: Any) -> str:
        """A node of one output, which is returned."""
        output = into or self._fresh(f"{self._node_name}/{op}")
        name = self._node_name if into else output
        self._nodes.append(helper.make_node(op, inputs, [output], name, **attributes))
        return output

    def constant(self, array: Any, name: str = "number") -> str:
        """A float constant."""
        made = self._fresh(f"{self._node_name}/{name}")
        stored = numpy_helper.from_array(np.asarray(array, np.float32), made)
        self._model.graph.initializer.append(stored)
        self._constants[made] = stored
        return made

    def array(self, name: str) -> np.ndarray | None:
        """A constant's numbers."""
        return numpy_helper.to_array(self._constants[name]) if name in self._constants else None

    def floats(self, name: str) -> str:
        """Integers as floats."""
        if name not in self._floats:
            array = self.array(name)
            if array is not None:
                self._floats[name] = self.constant(array.astype(np.float32), "constant")
            else:
                self._floats[name] = self.emit("Cast", name, to=TensorProto.FLOAT)
        return self._floats[name]

    def vector(self, name: str, x: str, axis: int, block: int = 0) -> str:
        """A scale or zero point, so that it broadcasts to ``x``: one number, or one for each place
        along ``axis``."""
        array = self.array(name)
        if array is None:
            return self.floats(name) if name in self._floats else name
        array = array.astype(np.float32)
        if array.size == 1:
            return self.constant(array.reshape(()), "scale")
        if axis == -1 and array.ndim == 1:
            return self.constant(array, "scale")
        shape = self._shapes.get(x)
        if shape is None:
            raise ValueError("a scale for each channel of a computed tensor")
        if block:
            array = array.repeat(min(block, shape[axis]), axis)
            array = array[tuple(slice(size) for size in shape)]
        elif array.ndim == 1:
            along = axis % len(shape)
            array = array.reshape([-1 if at == along else 1 for at in range(len(shape))])
        return self.constant(array, "scale")

    def _check_scale(self, name: str) -> None:
        array = self.array(name)
        if array is not None and not (np.isfinite(array).all() and (array > 0).all()):
            raise ValueError(f"scale {array.tolist()}")

    def is_zero(self, name: str) -> bool:
        """Is a zero point left out, or zero?"""
        array = self.array(name)
        return not name or (array is not None and not array.any())

    def dequantise(
        self, x: str, scale: str, zero: str, axis: int = 1, into: str = "", block: int = 0
    ) -> str:
        """(x - zero) * scale."""
        self._check_scale(scale)
        centred = self.floats(x)
        if not self.is_zero(zero):
            centred = self.emit("Sub", centred, self.vector(zero, x, axis, block))
        return self.emit("Mul", centred, self.vector(scale, x, axis, block), into=into)

    def quantise(
        self, x: str, scale: str, zero: str, into: str, axis: int = 1, kind: int = 0
    ) -> None:
        """round(x / scale) + zero within its type, held as floats."""
        self._check_scale(scale)
        if zero in self._constants:
            kind = self._constants[zero].data_type
        elif zero in self._kinds:
            kind = self._kinds[zero]
        if x in self._shapes:
            self._shapes[into] = self._shapes[x]
        low, high = _RANGES[kind or TensorProto.UINT8]
        carried = self.carry(into, kind or TensorProto.UINT8)
        places = self.emit("Round", self.emit("Div", x, self.vector(scale, x, axis)))
        shift = np.zeros(1) if self.is_zero(zero) else self.array(zero)
        if shift is None:  # computed
            places = self.emit("Add", places, self.vector(zero, x, axis))
            self.emit("Clip", places, self.constant(low), self.constant(high), into=carried)
        elif not np.any(shift):
            self.emit("Clip", places, self.constant(low), self.constant(high), into=carried)
        else:
            # Clipped before the zero point is added: "clip x + a to 0..b" looks like a gate to
            # engines, which scale those to 0..1 and back, and whole numbers do not survive that.
            least, most = low - shift.astype(np.float32), high - shift.astype(np.float32)
            if shift.size == 1:
                limits = self.constant(least.reshape(())), self.constant(most.reshape(()))
                places = self.emit("Clip", places, *limits)
            else:
                shape = self._shapes[x]
                along = [-1 if at == axis % len(shape) else 1 for at in range(len(shape))]
                places = self.emit("Max", places, self.constant(least.reshape(along)))
                places = self.emit("Min", places, self.constant(most.reshape(along)))
            self.emit("Add", places, self.vector(zero, x, axis), into=carried)


Names = list[str]
Attributes = dict[str, Any]
Rewrite = Callable[[_Rewriting, onnx.NodeProto, Names, Attributes], None]


def _triple(of: Names, first: int) -> tuple[str, str, str]:
    """A quantised tensor with its scale and zero point."""
    return of[first], of[first + 1], of[first + 2]


def _quantize_linear(to: _Rewriting, node: onnx.NodeProto, of: Names, get: Attributes) -> None:
    if get.get("block_size"):
        raise ValueError("blocks of a computed tensor")
    kind = get.get("output_dtype", 0)
    to.quantise(of[0], of[1], of[2], node.output[0], get.get("axis", 1), kind)


def _dequantize_linear(to: _Rewriting, node: onnx.NodeProto, of: Names, get: Attributes) -> None:
    axis, block = get.get("axis", 1), get.get("block_size", 0)
    to.dequantise(of[0], of[1], of[2], axis, node.output[0], block)


def _conv(to: _Rewriting, node: onnx.NodeProto, of: Names, get: Attributes) -> None:
    x, weights = to.dequantise(*_triple(of, 0)), to.dequantise(*_triple(of, 3), axis=0)
    bias = [_bias(to, of[8], of[1], of[4])] if of[8] else []
    to.quantise(to.emit("Conv", x, weights, *bias, **get), of[6], of[7], node.output[0])


def _bias(to: _Rewriting, bias: str, *scales: str, factor: float = 1.0) -> str:
    """A bias in steps of the product of both scales."""
    step, data = np.float64(1), to.array(bias)
    for name in scales:
        array = to.array(name)
        if array is None or data is None:
            raise ValueError("a computed bias")
        step = step * array.astype(np.float64).reshape(-1)
    assert data is not None
    return to.constant(data.astype(np.float64) * step * factor, "bias")


def _matmul(to: _Rewriting, node: onnx.NodeProto, of: Names, get: Attributes) -> None:
    a, b = to.dequantise(*_triple(of, 0), axis=-2), to.dequantise(*_triple(of, 3), axis=-1)
    to.quantise(to.emit("MatMul", a, b), of[6], of[7], node.output[0])


def _gemm(to: _Rewriting, node: onnx.NodeProto, of: Names, get: Attributes) -> None:
    columns = 0 if get.get("transB", 0) else -1
    a, b = to.dequantise(*_triple(of, 0)), to.dequantise(*_triple(of, 3), axis=columns)
    alpha = get.get("alpha", 1.0)
    bias = [_bias(to, of[6], of[1], of[4], factor=alpha)] if of[6] else []
    into = "" if of[7] else node.output[0]
    result = to.emit("Gemm", a, b, *bias, into=into, **get)
    if of[7]:
        to.quantise(result, of[7], of[8], node.output[0])


def _of_two(op: str) -> Rewrite:
    def rewrite_it(to: _Rewriting, node: onnx.NodeProto, of: Names, get: Attributes) -> None:
        result = to.emit(op, to.dequantise(*_triple(of, 0)), to.dequantise(*_triple(of, 3)))
        to.quantise(result, of[6], of[7], node.output[0])

    return rewrite_it


def _of_one(op: str) -> Rewrite:
    def rewrite_it(to: _Rewriting, node: onnx.NodeProto, of: Names, get: Attributes) -> None:
        if get.pop("channels_last", 0):
            raise ValueError("channels_last")
        get.pop("opset", 0)  # of QLinearSoftmax
        to.quantise(
            to.emit(op, to.dequantise(*_triple(of, 0)), **get), of[3], of[4], node.output[0]
        )

    return rewrite_it


def _concat(to: _Rewriting, node: onnx.NodeProto, of: Names, get: Attributes) -> None:
    parts = [to.dequantise(*_triple(of, at)) for at in range(2, len(node.input), 3)]
    to.quantise(to.emit("Concat", *parts, **get), of[0], of[1], node.output[0])


def _centred(to: _Rewriting, x: str, zero: str, axis: int) -> str:
    whole = to.floats(x)
    return whole if to.is_zero(zero) else to.emit("Sub", whole, to.vector(zero, x, axis))


def _conv_integer(to: _Rewriting, node: onnx.NodeProto, of: Names, get: Attributes) -> None:
    x, weights = _centred(to, of[0], of[2], 1), _centred(to, of[1], of[3], 0)
    to.emit("Conv", x, weights, into=to.carry_sums(node.output[0]), **get)


def _matmul_integer(to: _Rewriting, node: onnx.NodeProto, of: Names, get: Attributes) -> None:
    a, b = _centred(to, of[0], of[2], -2), _centred(to, of[1], of[3], -1)
    to.emit("MatMul", a, b, into=to.carry_sums(node.output[0]))


def _dynamic(to: _Rewriting, node: onnx.NodeProto, of: Names, get: Attributes) -> None:
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


_REWRITES: dict[str, Rewrite] = {
    "QuantizeLinear": _quantize_linear,
    "DequantizeLinear": _dequantize_linear,
    "DynamicQuantizeLinear": _dynamic,
    "QLinearConv": _conv,
    "QLinearMatMul": _matmul,
    "QGemm": _gemm,
    "QLinearAdd": _of_two("Add"),
    "QLinearMul": _of_two("Mul"),
    "QLinearConcat": _concat,
    "QLinearSigmoid": _of_one("Sigmoid"),
    "QLinearLeakyRelu": _of_one("LeakyRelu"),
    "QLinearSoftmax": _of_one("Softmax"),
    "QLinearAveragePool": _of_one("AveragePool"),
    "QLinearGlobalAveragePool": _of_one("GlobalAveragePool"),
    "ConvInteger": _conv_integer,
    "MatMulInteger": _matmul_integer,
}
_OTHERS = {"MatMulIntegerToFloat", "MatMulNBits", "MatMulBnb4", "QAttention", "QMoE"}
_OTHERS |= {"QOrderedMatMul", "GatherBlockQuantized"}
