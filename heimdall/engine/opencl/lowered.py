"""The ops between an ONNX graph and kernels: what is computed, not yet where or how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from heimdall.engine.opencl.conv_spec import ConvSpec
from heimdall.engine.opencl.kernel_op import KernelOp, Shape
from heimdall.graph.graph import Graph


@dataclass(frozen=True, eq=False)
class Conv:
    """A convolution with everything fused into it. Inputs: x and, optionally, the residual."""

    spec: ConvSpec
    weights: np.ndarray
    bias: np.ndarray | None = None
    matrix: bool = False  # a 1x1 convolution over row-major matrices (Gemm of several rows)

    @property
    def depthwise(self) -> bool:
        """Whether each output channel is made of one input channel, and each of another."""
        return 1 < self.spec.groups == self.weights.shape[0] and self.weights.shape[1] == 1


@dataclass(frozen=True, eq=False)
class Separable:
    """A depthwise convolution and the 1x1 convolution of its result. Inputs: x and, optionally,
    the residual of the latter."""

    depthwise: Conv
    pointwise: Conv


@dataclass(frozen=True)
class Pad:
    """A border of (top, left, bottom, right) pixels and (before, after) channels."""

    mode: Literal["constant", "reflect", "edge"]
    pads: tuple[int, int, int, int]
    channels: tuple[int, int] = (0, 0)
    fill: float = 0.0


@dataclass(frozen=True)
class Concat:
    axis: int


@dataclass(frozen=True)
class Slice:
    """``starts`` and ``steps`` of every axis; the output's shape gives the sizes."""

    starts: tuple[int, ...]
    steps: tuple[int, ...]


@dataclass(frozen=True)
class Transpose:
    perm: tuple[int, ...]


@dataclass(frozen=True)
class Reshape:
    """The same numbers in row-major order under another shape."""


@dataclass(frozen=True)
class Expand:
    """Broadcast to the output's shape."""


@dataclass(frozen=True)
class Cast:
    """Integers to float32; only on graph inputs, done while they are written."""


@dataclass(frozen=True)
class Fallback:
    """ONNX nodes that run on the CPU."""


Spec = (
    Conv
    | Separable
    | Pad
    | Concat
    | Slice
    | Transpose
    | Reshape
    | Expand
    | Cast
    | KernelOp
    | Fallback
)


@dataclass(frozen=True)
class Lowered:
    """One lowered op. ``nodes`` are the ONNX nodes it stands for."""

    spec: Spec
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
