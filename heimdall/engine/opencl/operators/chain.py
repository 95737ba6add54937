"""Operators that are several steps: lowered ops written like a calculation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from heimdall.engine.opencl.expression import Expression, Operand, Value
from heimdall.engine.opencl.lowered import Concat, Expand, Lowered, Reshape, Slice, Transpose
from heimdall.engine.opencl.operators.context import Context
from heimdall.engine.opencl.ops_elementwise import Elementwise
from heimdall.engine.opencl.ops_reduce import Reduce, ReduceMode


def step(context: Context, function: str, *args: str | float) -> tuple[Elementwise, list[str]]:
    """A function of tensors and numbers, and the tensors; constants of one element are numbers."""
    tensors: list[str] = []
    values: list[Value] = []
    for arg in args:
        if isinstance(arg, str):
            array = context.module.constants.get(arg)
            if array is not None and array.size == 1:
                values.append(float(array.reshape(-1)[0]))
                continue
            if arg not in tensors:
                tensors.append(arg)
            values.append(Operand(tensors.index(arg)))
        else:
            values.append(float(arg))
    return Elementwise(Expression.of(function, *values)), tensors


def _demand(holds: bool, otherwise: str) -> None:
    """No file may make kernels read what is not theirs. Raises ValueError."""
    if not holds:
        raise ValueError(otherwise)


class Chain:
    """Each call adds an op and returns the name of its tensor; ``end`` returns the ops.

    ``chain("add", x, 1.0)`` applies a function of ``functions.FUNCTIONS`` to tensors, which
    broadcast, and numbers.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.ops: list[Lowered] = []

    def __call__(self, function: str, *args: str | float) -> str:
        spec, tensors = step(self.context, function, *args)
        names = [arg for arg in args if isinstance(arg, str)]
        return self.add(spec, np.broadcast_shapes(*map(self.shape, names)), *tensors)

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.context.module.shapes[name])

    def add(self, spec: Any, shape: Sequence[int], *inputs: str) -> str:
        """Any op with one output of this shape."""
        name = self.context.tensor(f"{len(self.ops)}", shape)
        self.ops.append(self.context.op(spec, *inputs, output=name))
        return name

    def constant(self, array: np.ndarray) -> str:
        constants = self.context.module.constants
        return self.context.weight(f"constant{len(constants)}", np.asarray(array))

    def reshape(self, x: str, shape: Sequence[int]) -> str:
        """One size may be -1: what is left."""
        size = math.prod(self.shape(x)) // math.prod(each for each in shape if each != -1)
        shape = tuple(size if each == -1 else each for each in shape)
        if self.shape(x) == shape:
            return x
        known = self.context.module.constants.get(x)
        if known is not None:
            return self.constant(known.reshape(shape))
        return self._reshaped(x, shape)

    def _reshaped(self, x: str, shape: tuple[int, ...]) -> str:
        _demand(math.prod(self.shape(x)) == math.prod(shape), f"{self.shape(x)} is not {shape}")
        return self.add(Reshape(), shape, x)

    def transpose(self, x: str, perm: Sequence[int]) -> str:
        if list(perm) == sorted(perm):
            return x
        known = self.context.module.constants.get(x)
        if known is not None:
            return self.constant(known.transpose(perm))
        shape = self.shape(x)
        return self.add(Transpose(tuple(perm)), [shape[axis] for axis in perm], x)

    def expand(self, x: str, shape: Sequence[int]) -> str:
        if self.shape(x) == tuple(shape):
            return x
        _demand(
            np.broadcast_shapes(self.shape(x), tuple(shape)) == tuple(shape),
            f"{self.shape(x)} is not a part of {shape}",
        )
        known = self.context.module.constants.get(x)
        if known is not None:
            return self.constant(np.broadcast_to(known, shape))
        return self.add(Expand(), shape, x)

    def slice(self, x: str, axis: int, start: int, count: int) -> str:
        shape = list(self.shape(x))
        _demand(0 <= start < start + count <= shape[axis], f"{shape} has less along axis {axis}")
        starts = tuple(start if each == axis else 0 for each in range(len(shape)))
        shape[axis] = count
        return self.add(Slice(starts, (1,) * len(shape)), shape, x)

    def concat(self, axis: int, *inputs: str) -> str:
        shapes = [list(self.shape(name)) for name in inputs]
        shape = [*shapes[0]]
        shape[axis] = sum(each[axis] for each in shapes)
        for each in shapes:
            _demand(
                [*each[:axis], *each[axis + 1 :]] == [*shape[:axis], *shape[axis + 1 :]],
                f"{each} and {shapes[0]} differ",
            )
        return self.add(Concat(axis), shape, *inputs)

    def reduce(self, mode: ReduceMode, x: str, axes: Sequence[int]) -> str:
        """The axes stay, with one element each."""
        kept = tuple(sorted(axes))
        shape = [1 if axis in kept else size for axis, size in enumerate(self.shape(x))]
        return self.add(Reduce(mode, kept), shape, x)

    def end(self, *results: str) -> list[Lowered]:
        """All ops; ``results`` become the node's outputs, in order and in the shapes they have
        there. Outputs that are not asked for are left out."""
        names = {}
        for name, output in zip(results, self.context.node.outputs, strict=False):
            if not output:
                continue
            made = any(name in op.outputs for op in self.ops) and name not in names
            if not made or self.shape(name) != self.context.shape(output):
                name = self._reshaped(name, self.context.shape(output))
            names[name] = output
        return [
            replace(
                op,
                inputs=tuple(names.get(name, name) for name in op.inputs),
                outputs=tuple(names.get(name, name) for name in op.outputs),
            )
            for op in self.ops
        ]
