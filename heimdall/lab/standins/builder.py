"""ONNX graphs with made-up weights, written down layer by layer.

Batch normalisation is folded into convolutions, as every runtime does, where one comes before it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
INPUT = "image"
Shape = tuple[int, ...]


class Builder:
    """A graph that knows the shapes of its tensors, the first of which is INPUT.

    ``shared``: weights of the same shape are one tensor, which keeps files small; what runs is the
    same, but for what of it stays in a cache. Not so those of layers on the same input: they would
    be one layer.
    """

    def __init__(self, shape: Shape, *, shared: bool = True) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[Any, onnx.TensorProto] = {}
        self.shapes: dict[str, Shape] = {INPUT: shape}
        self.outputs: list[str] = []
        self._shared, self._draw = shared, np.random.default_rng(0)
        self._uses: Counter[tuple[str, Shape]] = Counter()  # of weights of a shape on an input

    def channels(self, x: str) -> int:
        return self.shapes[x][1]

    def add(self, kind: str, inputs: Sequence[str], shape: Shape, **attributes: Any) -> str:
        """One node, whose output has this shape."""
        name = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        self.shapes[name] = shape
        return name

    # --- pictures: N x C x H x W ------------------------------------------------------------------

    def conv(
        self,
        x: str,
        channels: int,
        kernel: int | tuple[int, int],
        stride: int = 1,
        groups: int = 1,
        act: str = "",
    ) -> str:
        """A convolution with its bias, that keeps the size at stride 1."""
        sides = (kernel, kernel) if isinstance(kernel, int) else kernel
        before, height, width = self.shapes[x][1:]
        weights = self.random((channels, before // groups, *sides), on=x)
        pads = [side // 2 for side in sides] * 2
        shape = (1, channels, -(-height // stride), -(-width // stride))
        y = self.add(
            "Conv",
            [x, weights, self.random((channels,), 0.1)],
            shape,
            kernel_shape=list(sides),
            strides=[stride] * 2,
            pads=pads,
            group=groups,
        )
        return self.act(y, act)

    def act(self, x: str, kind: str) -> str:
        """An activation; "" for none."""
        if kind == "Gelu":  # of a later opset as one operator
            return self._gelu(x)
        limits = [self.constant(np.float32(each)) for each in (0, 6)] if kind == "Clip" else []
        return self.add(kind, [x, *limits], self.shapes[x]) if kind else x

    def pool(self, x: str, kernel: int, stride: int, pad: int = 0, kind: str = "MaxPool") -> str:
        batch, channels, *sides = self.shapes[x]
        shape = (batch, channels, *((side + 2 * pad - kernel) // stride + 1 for side in sides))
        sizes = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
        return self.add(kind, [x], shape, **sizes)

    def resize(self, x: str, height: int, width: int) -> str:
        """To the nearest pixels."""
        batch, channels = self.shapes[x][:2]
        shape = (batch, channels, height, width)
        how = {"mode": "nearest", "nearest_mode": "floor"}
        how["coordinate_transformation_mode"] = "asymmetric"
        return self.add("Resize", [x, "", "", self.whole(shape)], shape, **how)

    def up(self, x: str, times: int = 2) -> str:
        """A larger picture."""
        height, width = self.shapes[x][2:]
        return self.resize(x, times * height, times * width)

    def scaled(self, x: str, act: str = "") -> str:
        """Batch normalisation that stands before a convolution, where it cannot be folded."""
        ones, zeros = (np.full(self.channels(x), each, np.float32) for each in (1, 0))
        ends = [self.constant(each) for each in (ones, zeros, zeros, ones)]
        return self.act(self.add("BatchNormalization", [x, *ends], self.shapes[x]), act)

    def join(self, *parts: str) -> str:
        """All channels, one after the other."""
        batch, _, *sides = self.shapes[parts[0]]
        shape = (batch, sum(self.channels(each) for each in parts), *sides)
        return self.add("Concat", parts, shape, axis=1)

    def inverted(
        self, x: str, expand: float, channels: int, stride: int, kernel: int, act: str,
        squeezed: bool = False,
    ) -> str:  # fmt: skip
        """MobileNetV2's block (Sandler et al. 2018), with MobileNetV3's ``squeezed`` gate."""
        before = self.channels(x)
        y = self.conv(x, round(expand * before), 1, act=act) if expand > 1 else x
        y = self.conv(y, self.channels(y), kernel, stride, self.channels(y), act)
        if squeezed:
            y = self._gated(y)
        y = self.conv(y, channels, 1)
        return self.plus(x, y) if stride == 1 and before == channels else y

    def _gated(self, x: str) -> str:
        channels = self.channels(x)
        y = self.add("GlobalAveragePool", [x], (1, channels, 1, 1))
        y = self.conv(self.conv(y, max(8, channels // 4), 1, act="Relu"), channels, 1)
        return self.add("Mul", [x, self.act(y, "HardSigmoid")], self.shapes[x])

    # --- anything ---------------------------------------------------------------------------------

    def plus(self, x: str, y: str, act: str = "") -> str:
        return self.act(self.add("Add", [x, y], self.shapes[x]), act)

    def shaped(self, x: str, *shape: int) -> str:
        return self.add("Reshape", [x, self.whole(shape)], shape)

    def turned(self, x: str, *axes: int) -> str:
        shape = self.shapes[x]
        return self.add("Transpose", [x], tuple(shape[axis] for axis in axes), perm=list(axes))

    def product(self, x: str, y: str) -> str:
        return self.add("MatMul", [x, y], (*self.shapes[x][:-1], self.shapes[y][-1]))

    def linear(self, x: str, width: int, act: str = "") -> str:
        """A fully connected layer on the last axis."""
        y = self.product(x, self.random((self.shapes[x][-1], width), on=x))
        y = self.add("Add", [y, self.random((width,), 0.1)], self.shapes[y])
        return self.act(y, act)

    def _gelu(self, x: str) -> str:
        """x (1 + erf(x / sqrt 2)) / 2 (Hendrycks and Gimpel 2016)."""
        shape = self.shapes[x]
        half, one, root = (self.constant(np.float32(each)) for each in (0.5, 1, math.sqrt(2)))
        erf = self.add("Erf", [self.add("Div", [x, root], shape)], shape)
        more = self.add("Mul", [x, self.add("Add", [erf, one], shape)], shape)
        return self.add("Mul", [more, half], shape)

    def attention(self, x: str, heads: int) -> str:
        """Attention of all tokens to all, 1 x L x D (Vaswani et al. 2017, section 3.2)."""
        _, tokens, width = self.shapes[x]
        query, key, value = (
            self.shaped(self.linear(x, width), 1, tokens, heads, width // heads) for _ in range(3)
        )
        keys, values = self.turned(key, 0, 2, 3, 1), self.turned(value, 0, 2, 1, 3)
        found = self.attended(self.turned(query, 0, 2, 1, 3), keys, values)
        return self.linear(self.shaped(self.turned(found, 0, 2, 1, 3), 1, tokens, width), width)

    def normed(self, x: str) -> str:
        """Layer normalisation of the last axis."""
        width = self.shapes[x][-1]
        ends = [self.constant(np.ones(width, np.float32)), self.constant(np.zeros(width, "f4"))]
        return self.add("LayerNormalization", [x, *ends], self.shapes[x], axis=-1)

    def attended(self, query: str, key: str, value: str) -> str:
        """softmax(Q K) V, where keys are turned already: ... x L x D, ... x D x L, ... x L x D."""
        scores = self.product(query, key)
        scale = self.constant(np.float32(1 / math.sqrt(self.shapes[query][-1])))
        scaled = self.add("Mul", [scores, scale], self.shapes[scores])
        return self.product(self.add("Softmax", [scaled], self.shapes[scores], axis=-1), value)

    def classifier(self, x: str, classes: int) -> None:
        """The end of a network: the mean over all places, and one layer."""
        channels = self.channels(x)
        mean = self.add("GlobalAveragePool", [x], (1, channels, 1, 1))
        y = self.add("Flatten", [mean], (1, channels))
        ends = [self.random((channels, classes)), self.random((classes,), 0.1)]
        self.outputs.append(self.add("Gemm", [y, *ends], (1, classes)))

    # --- weights ----------------------------------------------------------------------------------

    def random(self, shape: Shape, spread: float | None = None, on: str = "") -> str:
        """Weights that keep what passes them at its size; of ``shape`` (out, in, ...), or (in,
        out). ``on``: the input that they are for."""
        fan_in = shape[0] if len(shape) == 2 else max(1, math.prod(shape[1:]))
        spread = 1 / math.sqrt(fan_in) if spread is None else spread
        self._uses[on, shape] += bool(on)
        key = (shape, spread, self._uses[on, shape]) if self._shared else len(self.constants)
        if key not in self.constants:
            values = self._draw.normal(0, spread, shape).astype(np.float32)
            name = f"w{len(self.constants)}"
            self.constants[key] = numpy_helper.from_array(values, name)
            self.shapes[name] = shape
        return str(self.constants[key].name)

    def constant(self, values: Any) -> str:
        array = np.asarray(values)
        key = (array.shape, array.dtype.str, array.tobytes())
        if key not in self.constants:
            self.constants[key] = numpy_helper.from_array(array, f"w{len(self.constants)}")
        return str(self.constants[key].name)

    def whole(self, numbers: Sequence[int]) -> str:
        """Whole numbers, such as a shape."""
        return self.constant(np.array(numbers, np.int64))

    def model(self) -> onnx.ModelProto:
        """The graph, whose tensors have the shapes that ONNX infers."""
        image, *outputs = (
            helper.make_tensor_value_info(name, TensorProto.FLOAT, self.shapes[name])
            for name in (INPUT, *self.outputs)
        )
        stored = list(self.constants.values())
        graph = helper.make_graph(self.nodes, "network", [image], outputs, stored)
        imports = [helper.make_opsetid("", OPSET)]
        return onnx.shape_inference.infer_shapes(
            helper.make_model(graph, opset_imports=imports, ir_version=8), strict_mode=True
        )
