"""The ops between an ONNX graph and kernels: what is computed, not yet where or how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Literal

import numpy as np

from heimdall.engine.opencl.conv_spec import ConvSpec
from heimdall.engine.opencl.kernel_op import OpSpec, Shape, Shapes
from heimdall.engine.opencl.strided import broadcasts
from heimdall.graph.graph import Graph


@dataclass(frozen=True, eq=False)
class Conv(OpSpec):
    """A convolution with everything fused into it. Inputs: x and, optionally, the residual."""

    spec: ConvSpec
    weights: np.ndarray
    bias: np.ndarray | None = None
    matrix: bool = False  # a 1x1 convolution over row-major matrices (Gemm of several rows)

    @property
    def depthwise(self) -> bool:
        """Whether each output channel is made of one input channel, and each of another."""
        return 1 < self.spec.groups == self.weights.shape[0] and self.weights.shape[1] == 1

    @property
    def channels(self) -> tuple[int, int]:
        """The channels that it reads, and those that it makes."""
        first, second = (int(size) for size in self.weights.shape[:2])
        groups = self.spec.groups
        return (first, second * groups) if self.spec.transposed else (second * groups, first)

    @property
    def window(self) -> ConvSpec:
        return self.spec

    @property
    def weight_count(self) -> int:
        return self.weights.size

    @property
    def ignores_halo(self) -> bool:
        spec = self.spec
        return spec.kernel == (1, 1) and not any(spec.pads) and not spec.transposed

    @property
    def wants_pictures(self) -> bool:
        return not self.matrix

    def operations(self, inputs: Shapes, y: Shape) -> int:
        points = prod(inputs[0] if self.spec.transposed else y)
        return 2 * prod(self.weights.shape[1:]) * points

    def fits(self, inputs: Shapes, outputs: Shapes) -> bool:
        (x, *residual), (y,) = inputs, outputs
        if residual not in ([], [y]):
            return False
        if self.bias is not None and self.bias.shape != self.channels[1:]:
            return False
        if self.matrix:
            return (x[-1], y[-1]) == self.channels and prod(x[:-1]) == prod(y[:-1])
        pictures = len(x) == len(y) == 4 and x[0] == y[0] == 1
        return pictures and (x[1], y[1]) == self.channels and self.spec.makes(x[2:], y[2:])


@dataclass(frozen=True, eq=False)
class Separable(OpSpec):
    """A depthwise convolution and the 1x1 convolution of its result. Inputs: x and, optionally,
    the residual of the latter."""

    depthwise: Conv
    pointwise: Conv
    wants_pictures = True

    @property
    def window(self) -> ConvSpec:
        return self.depthwise.spec

    @property
    def weight_count(self) -> int:
        return self.depthwise.weights.size + self.pointwise.weights.size

    def operations(self, inputs: Shapes, y: Shape) -> int:
        return 2 * self.weight_count * prod(y[2:])  # every weight is used once a pixel

    def fits(self, inputs: Shapes, outputs: Shapes) -> bool:
        x, *rest = inputs
        between = (1, x[1], *self.window.output_size(x[2], x[3]))
        return self.depthwise.fits([x], [between]) and self.pointwise.fits(
            [between, *rest], outputs
        )


@dataclass(frozen=True)
class Pad(OpSpec):
    """A border of (top, left, bottom, right) pixels and (before, after) channels."""

    mode: Literal["constant", "reflect", "edge"]
    pads: tuple[int, int, int, int]
    channels: tuple[int, int] = (0, 0)
    fill: float = 0.0

    def fits(self, inputs: Shapes, outputs: Shapes) -> bool:
        ((_, channels, height, width),) = inputs
        top, left, bottom, right = self.pads
        padded = (1, channels + sum(self.channels), height + top + bottom, width + left + right)
        return [padded] == list(outputs)


@dataclass(frozen=True)
class Concat(OpSpec):
    moves = on_exit = wants_pictures = True

    axis: int

    def fits(self, inputs: Shapes, outputs: Shapes) -> bool:
        (y,), axis = outputs, self.axis
        rest = {(x[:axis], x[axis + 1 :]) for x in inputs}
        return rest == {(y[:axis], y[axis + 1 :])} and sum(x[axis] for x in inputs) == y[axis]

    def on_host(self, arrays: Sequence[np.ndarray], shape: Shape) -> np.ndarray:
        return np.concatenate(arrays, axis=self.axis)


@dataclass(frozen=True)
class Slice(OpSpec):
    """``starts`` and ``steps`` of every axis; the output's shape gives the sizes."""

    moves = wants_pictures = True

    starts: tuple[int, ...]
    steps: tuple[int, ...]

    def fits(self, inputs: Shapes, outputs: Shapes) -> bool:
        (x,), (y,) = inputs, outputs
        axes = zip(self.starts, self.steps, x, y, strict=True)
        return all(
            0 <= first < size and 0 <= first + step * (count - 1) < size
            for first, step, size, count in axes
        )


@dataclass(frozen=True)
class Transpose(OpSpec):
    moves = on_entry = on_exit = True

    perm: tuple[int, ...]

    def fits(self, inputs: Shapes, outputs: Shapes) -> bool:
        (x,), (y,) = inputs, outputs
        turned = tuple(x[axis] for axis in self.perm)
        return sorted(self.perm) == list(range(len(x))) and y == turned

    def on_host(self, arrays: Sequence[np.ndarray], shape: Shape) -> np.ndarray:
        return arrays[0].transpose(self.perm)


@dataclass(frozen=True)
class Reshape(OpSpec):
    """The same numbers in row-major order under another shape."""

    moves = on_entry = on_exit = True

    def fits(self, inputs: Shapes, outputs: Shapes) -> bool:
        (x,), (y,) = inputs, outputs
        return prod(x) == prod(y)

    def on_host(self, arrays: Sequence[np.ndarray], shape: Shape) -> np.ndarray:
        return arrays[0].reshape(shape)


@dataclass(frozen=True)
class Expand(OpSpec):
    """Broadcast to the output's shape."""

    moves = True

    def fits(self, inputs: Shapes, outputs: Shapes) -> bool:
        (x,), (y,) = inputs, outputs
        return broadcasts(x, y)


@dataclass(frozen=True)
class Cast(OpSpec):
    """Integers to float32; only on graph inputs, done while they are written."""

    moves = on_entry = True

    def fits(self, inputs: Shapes, outputs: Shapes) -> bool:
        (x,), (y,) = inputs, outputs
        return prod(x) == prod(y)

    def on_host(self, arrays: Sequence[np.ndarray], shape: Shape) -> np.ndarray:
        return arrays[0].astype(np.float32)


@dataclass(frozen=True)
class Fallback(OpSpec):
    """ONNX nodes that run on the CPU."""

    falls_back = ignores_halo = True

    def operations(self, inputs: Shapes, y: Shape) -> int:
        return 0


@dataclass(frozen=True)
class Lowered:
    """One lowered op. ``nodes`` are the ONNX nodes it stands for."""

    spec: OpSpec
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[str, ...]

    @property
    def kind(self) -> str:
        return type(self.spec).__name__.lower()

    @property
    def output(self) -> str:
        return self.outputs[0]


@dataclass
class Module:
    """Lowered ops in order, with the shapes and constants they name."""

    ops: list[Lowered]
    shapes: dict[str, Shape]
    constants: dict[str, np.ndarray]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    graph: Graph = field(repr=False)

    def consumers(self) -> dict[str, list[Lowered]]:
        """Tensor -> the ops that read it."""
        found: dict[str, list[Lowered]] = {}
        for op in self.ops:
            for name in dict.fromkeys(op.inputs):
                found.setdefault(name, []).append(op)
        return found

    def producers(self) -> dict[str, Lowered]:
        """Tensor -> the op that writes it."""
        return {name: op for op in self.ops for name in op.outputs}

    def tensor(self, name: str, shape: Sequence[int]) -> str:
        """A new tensor, and what it is called: ``name`` unless there is one of that name."""
        while name in self.shapes:
            name += "'"
        self.shapes[name] = tuple(shape)
        return name

    def replace(self, op: Lowered, *by: Lowered) -> None:
        """Put other ops, or none, in the place of one."""
        for index, each in enumerate(self.ops):
            if each is op:  # a specification may hold arrays, which do not compare as one value
                self.ops[index : index + 1] = by
                return
        raise ValueError(f"{op.kind} -> {op.output} is not, or no longer, an op of this module")

    def bypass(self, op: Lowered) -> None:
        """Remove an op that changes nothing: its readers get its input, the first its nodes."""
        nodes = op.nodes
        for reader in self.consumers().get(op.output, []):
            inputs = tuple(op.inputs[0] if n == op.output else n for n in reader.inputs)
            self.replace(reader, replace(reader, inputs=inputs, nodes=nodes + reader.nodes))
            nodes = ()
        self.replace(op)

    def drop_unused(self) -> None:
        """Remove ops whose outputs are not read."""
        needed = set(self.outputs)
        kept = []
        for op in reversed(self.ops):
            if needed.intersection(op.outputs):
                kept.append(op)
                needed.update(op.inputs)
        self.ops = kept[::-1]
