"""Small networks in PyTorch, and the same as ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from heimdall.lab.exits.heads import load_torch

OPSET, IR = 17, 8


def pytorch() -> Any:
    """PyTorch, on one thread. Raises ConfigError, naming the extra, where it is not installed."""
    torch = load_torch()
    torch.set_num_threads(1)
    return torch


def mlp(*sizes: int) -> Any:
    """Layers of these sizes with ReLU between them."""
    nn = pytorch().nn
    layers: list[Any] = []
    for index, (inputs, outputs) in enumerate(pairwise(sizes)):
        layers += [nn.ReLU()] if index else []
        layers.append(nn.Linear(inputs, outputs))
    return nn.Sequential(*layers)


class OnnxGraph:
    """An ONNX graph that is written node by node."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._weights: dict[int, Any] = {}  # by the values they were made of
        self._names = 0

    def node(self, kind: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Add a node; the name of its output."""
        self._names += 1
        output = output or f"{kind.lower()}_{self._names}"
        self._nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def weight(self, values: Any) -> str:
        """Add weights once; their name."""
        if id(values) not in self._weights:
            array = np.ascontiguousarray(values.detach().numpy(), np.float32)
            name = f"weight_{len(self._weights)}"
            self._weights[id(values)] = numpy_helper.from_array(array, name)
        return str(self._weights[id(values)].name)

    def mlp(self, layers: Any, x: str) -> str:
        """What ``mlp`` made, applied to ``x``."""
        for layer in layers:
            if hasattr(layer, "weight"):
                x = self.node(
                    "Gemm", x, self.weight(layer.weight), self.weight(layer.bias), transB=1
                )
            else:
                x = self.node("Relu", x)
        return x

    def model(
        self,
        inputs: dict[str, Sequence[int | str]],
        outputs: dict[str, Sequence[int | str]],
        metadata: dict[str, str],
    ) -> bytes:
        """The file: inputs and outputs by name with their shapes."""
        graph = helper.make_graph(
            self._nodes,
            "heimdall",
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in outputs.items()],
            list(self._weights.values()),
        )
        opset = helper.make_opsetid("", OPSET)
        model = helper.make_model(graph, opset_imports=[opset], ir_version=IR)
        helper.set_model_props(model, metadata)
        onnx.checker.check_model(model)
        return bytes(model.SerializeToString())
