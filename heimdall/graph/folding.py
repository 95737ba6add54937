"""The constants of a model, and those that follow from them.

What a node makes of constants is computed by onnxruntime, many nodes at once, and only after its
size has been looked at.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import onnx
from onnx import TensorProto, TypeProto, helper, numpy_helper

from heimdall.errors import ModelError
from heimdall.graph.sessions import first_line, open_session
from heimdall.graph.values import check_constants, check_stored, tensor_bytes

# Another result each time.
_RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
_RANDOM |= {"Multinomial", "Bernoulli", "Dropout"}


class Constants:
    """Initialisers by name; ``add`` enters a node of constants, whose result is computed when it
    is asked for."""

    def __init__(self, path: object, model: onnx.ModelProto) -> None:
        self._path, self._imports, self._ir = path, list(model.opset_import), model.ir_version
        self._stored = {item.name: item for item in model.graph.initializer}
        self._pending: list[onnx.NodeProto] = []
        self._made: dict[str, TypeProto] = {}
        self._bytes = 0
        for item in model.graph.initializer:
            what = f"tensor {item.name!r} of {path}"
            check_stored(what, item)
            self._count(tensor_bytes(item.data_type, item.dims), what)

    def __contains__(self, name: str) -> bool:
        return name in self._stored or name in self._made

    def store(self, tensor: TensorProto, where: str) -> None:
        """Enter a constant that is known."""
        self._count(tensor_bytes(tensor.data_type, tensor.dims), where)
        self._stored[tensor.name] = tensor

    def folds(self, node: onnx.NodeProto) -> bool:
        """Does its result follow from constants?"""
        named = [name for name in node.input if name]
        return bool(named) and node.op_type not in _RANDOM and all(name in self for name in named)

    def add(self, node: onnx.NodeProto, types: dict[str, TypeProto], where: str) -> None:
        """Enter what ``node`` makes of constants, of these types."""
        for name, kind in types.items():
            made = kind.tensor_type
            self._count(tensor_bytes(made.elem_type, [d.dim_value for d in made.shape.dim]), where)
            self._made[name] = kind
        self._pending.append(node)

    def _count(self, size: int, where: str) -> None:
        self._bytes += size
        check_constants(self._bytes, where)

    def tensor(self, name: str) -> TensorProto:
        """A constant, computed now if it was not before."""
        if name not in self._stored:
            self.compute([name])
        return self._stored[name]

    def array(self, name: str) -> np.ndarray:
        """Its numbers."""
        return numpy_helper.to_array(self.tensor(name))

    def compute(self, names: Iterable[str]) -> None:
        """Compute these and all that they need, at once."""
        wanted = [name for name in dict.fromkeys(names) if name not in self._stored]
        if not wanted:
            return
        nodes = self._needed(wanted)
        values = self._run(nodes, wanted)
        for name, array in zip(wanted, values, strict=True):
            self._stored[name] = numpy_helper.from_array(np.asarray(array, order="C"), name)

    def _needed(self, wanted: list[str]) -> list[onnx.NodeProto]:
        names, nodes = set(wanted), []
        for node in reversed(self._pending):
            if names.intersection(node.output):
                nodes.append(node)
                names.update(name for name in node.input if name not in self._stored)
        return nodes[::-1]

    def _run(self, nodes: list[onnx.NodeProto], wanted: list[str]) -> list[np.ndarray]:
        written = {name for node in nodes for name in node.output}
        read = {name for node in nodes for name in node.input if name} - written
        part = helper.make_graph(
            nodes,
            "constants",
            [],
            [onnx.ValueInfoProto(name=name, type=self._made[name]) for name in wanted],
            [self._stored[name] for name in read],
        )
        model = helper.make_model(part, opset_imports=self._imports, ir_version=self._ir)
        try:
            return open_session(model).run(wanted, {})
        except Exception as error:  # onnxruntime raises a dozen types of its own
            last = f"{nodes[-1].name!r} ({nodes[-1].op_type})"
            raise ModelError(
                f"node {last} of {self._path}, or one that it needs, makes nothing of its "
                f"constants: {first_line(error)}"
            ) from error
