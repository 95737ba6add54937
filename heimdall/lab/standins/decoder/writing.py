"""A graph whose nodes are named as exporters name them: by the layer that they belong to, their
kind, and a number if it has several of a kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from heimdall.lab.standins.decoder.shape import DecoderShape

Dims = Sequence[int | str]
MICROSOFT = "com.microsoft"  # operators that onnxruntime adds to ONNX's


class Writer:
    """Nodes and weights in the order in which they are written. ``output`` ends a node's name to
    that of what it makes."""

    def __init__(self, output: str) -> None:
        self._output = output
        self._nodes: list[onnx.NodeProto] = []
        self._weights: dict[str, onnx.TensorProto] = {}
        self._values: dict[str, list[onnx.ValueInfoProto]] = {"in": [], "out": []}
        self._used: Counter[str] = Counter()

    def node(self, layer: str, kind: str, *given: str, made: str = "", **attributes: Any) -> str:
        """One node; returns the name of what it makes, ``made`` or one of its own."""
        return self.nodes(layer, kind, *given, made=(made or None,), **attributes)[0]

    def nodes(
        self, layer: str, kind: str, *given: str, made: Sequence[str | None], **attributes: Any
    ) -> list[str]:
        """One node that makes several tensors: "" is left out, None gets a name."""
        name = f"{layer}/{kind}"
        self._used[name] += 1
        if self._used[name] > 1:
            name = f"{name}_{self._used[name] - 1}"
        outputs = [
            f"{name}{self._output}{index}" if each is None else each
            for index, each in enumerate(made)
        ]
        self._nodes.append(helper.make_node(kind, given, outputs, name, **attributes))
        return outputs

    def weight(self, name: str, array: np.ndarray, kind: type[np.generic] = np.float32) -> str:
        """A stored tensor, once."""
        if name not in self._weights:
            stored = np.ascontiguousarray(array, kind)
            self._weights[name] = numpy_helper.from_array(stored, name)
        return name

    def constant(self, value: Any) -> str:
        """A node that is a number, or several."""
        array = np.asarray(value)
        made = f"/Constant/{array.dtype.name}/{array.tolist()}"
        if not self._used[made]:
            self._used[made] += 1
            tensor = numpy_helper.from_array(array)
            self._nodes.append(helper.make_node("Constant", [], [made], made, value=tensor))
        return made

    def given(self, name: str, kind: int, dims: Dims) -> str:
        """An input of the graph."""
        self._values["in"].append(helper.make_tensor_value_info(name, kind, dims))
        return name

    def made(self, name: str, dims: Dims) -> str:
        """An output of the graph."""
        info = helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
        self._values["out"].append(info)
        return name

    def cache(self, shape: DecoderShape, length: str, width: int | str) -> None:
        """The inputs and outputs of every layer's keys and values, with ``length`` tokens after,
        of a ``width`` that some files do not tell."""
        heads = shape.kv_heads
        for layer in range(shape.layers):
            for part in ("key", "value"):
                before: Dims = ["batch_size", heads, "past_sequence_length", width]
                after: Dims = ["batch_size", heads, length, width]
                self.given(f"past_key_values.{layer}.{part}", TensorProto.FLOAT, before)
                self.made(f"present.{layer}.{part}", after)

    def model(self, producer: str, opset: int, **others: int) -> onnx.ModelProto:
        """The file. ``others``: versions of operators that are not ONNX's."""
        values, stored = self._values, list(self._weights.values())
        graph = helper.make_graph(self._nodes, "main_graph", values["in"], values["out"], stored)
        versions = {"": opset, **others}
        imports = [helper.make_opsetid(*each) for each in versions.items()]
        return helper.make_model(
            graph, opset_imports=imports, ir_version=10, producer_name=producer
        )


def path(name: str) -> str:
    """A module of PyTorch's as exporters write it: model.layers.0.mlp is /model/layers.0/mlp."""
    return "/" + name.replace(".", "/").replace("layers/", "layers.")
