"""New nodes and constants of a model whose nodes are being replaced."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class NodeWriter:
    """The new ``nodes``; constants are added to the model itself. ``node`` is the name of the one
    being replaced, from which the names of new tensors are made."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._model = model
        self._constants = {item.name: item for item in model.graph.initializer}
        self._names = {name for node in model.graph.node for name in node.output}
        self._names |= set(self._constants) | {value.name for value in model.graph.input}
        # those that are known: of constants, and of what they are made into
        self._shapes = {name: tuple(item.dims) for name, item in self._constants.items()}
        self.nodes: list[onnx.NodeProto] = []
        self.node = ""

    def store(self, name: str, constant: TensorProto) -> None:
        """Enter a constant."""
        self._constants[name] = constant
        self._shapes[name] = tuple(constant.dims)

    def name(self, name: str) -> str:
        """A new name."""
        while name in self._names:
            name += "_"
        self._names.add(name)
        return name

    def emit(self, op: str, *inputs: str, into: str = "", **attributes: Any) -> str:
        """A node of one output, which is returned."""
        output = into or self.name(f"{self.node}/{op}")
        name = self.node if into else output
        self.nodes.append(helper.make_node(op, inputs, [output], name, **attributes))
        return output

    def constant(self, array: Any, name: str = "number") -> str:
        """A float constant."""
        made = self.name(f"{self.node}/{name}")
        stored = numpy_helper.from_array(np.asarray(array, np.float32), made)
        self._model.graph.initializer.append(stored)
        self.store(made, stored)
        return made

    def array(self, name: str) -> np.ndarray | None:
        """A constant's numbers."""
        return numpy_helper.to_array(self._constants[name]) if name in self._constants else None

    def number(self, name: str, default: float | None = None) -> np.float32 | None:
        """A constant of one element; the default where it is left out."""
        array = self.array(name)
        if not name and default is not None:
            return np.float32(default)
        return None if array is None or array.size != 1 else np.float32(array.reshape(()))
