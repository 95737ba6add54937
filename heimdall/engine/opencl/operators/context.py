"""One node on its way to lowered ops, and the table of functions that lower it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from heimdall.engine.opencl.lowered import Lowered, Module
from heimdall.graph.graph import Node

Lowering = Callable[["Context"], "list[Lowered] | None"]
FLOAT, TRUTH = np.dtype(np.float32), np.dtype(bool)


class Operator(NamedTuple):
    """How an ONNX operator is lowered, and whether its tensors may be of any type: else only
    float32 and truth values are, which are 0 or 1."""

    lowering: Lowering
    any_type: bool


TABLE: dict[str, Operator] = {}


class Context:
    """One node and what its lowering may ask about it."""

    def __init__(self, module: Module, node: Node) -> None:
        self.module, self.graph, self.node = module, module.graph, node

    def attribute(self, name: str, default: Any = None) -> Any:
        return self.node.attributes.get(name, default)

    def has(self, index: int) -> bool:
        return index < len(self.node.inputs) and bool(self.node.inputs[index])

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.module.shapes[name])

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

    @property
    def outputs(self) -> list[str]:
        """The outputs that are asked for."""
        return [name for name in self.node.outputs if name]

    def is_float(self, name: str) -> bool:
        return bool(self.graph.tensors[name].dtype == FLOAT)

    def is_picture(self, name: str | None = None) -> bool:
        shape = self.shape(name) if name else self.x
        return len(shape) == 4 and shape[0] == 1

    def tensor(self, suffix: str, shape: Sequence[int]) -> str:
        """A new tensor, named after the node's output."""
        return self.module.tensor(f"{self.node.outputs[0]}/{suffix}", shape)

    def weight(self, suffix: str, array: np.ndarray) -> str:
        """A new constant."""
        name = self.tensor(suffix, array.shape)
        self.module.constants[name] = np.asarray(array, np.float32)
        return name

    def op(self, spec: Any, *inputs: str, output: str | None = None) -> Lowered:
        return Lowered(spec, inputs, (output or self.node.outputs[0],), (self.node.name,))


def register(*op_types: str, any_type: bool = False) -> Callable[[Lowering], Lowering]:
    """Enter the decorated function in ``TABLE`` for these ONNX operators; those of another domain
    with that before them: "com.microsoft:Gelu"."""

    def add(function: Lowering) -> Lowering:
        TABLE.update(dict.fromkeys(op_types, Operator(function, any_type)))
        return function

    return add
