"""Two small networks, and who runs them."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from heimdall.engine.network import LoadedNetwork
from heimdall.engine.onnxruntime import OnnxRuntimeEngine
from heimdall.errors import AppError
from heimdall.graph.graph import graph_from_model


def _graph(nodes: list[Any], inputs: list[Any], outputs: list[Any], name: str) -> Any:
    made = helper.make_graph(nodes, name, inputs, outputs)
    opset = [helper.make_opsetid("", 13)]
    return graph_from_model(helper.make_model(made, opset_imports=opset, ir_version=8), name)


def twice_network(width: int = 4) -> LoadedNetwork:
    """``y`` is twice ``x``, and ``z`` its opposite, of so many values each."""
    x, y, z = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, width]) for name in "xyz")
    nodes = [helper.make_node("Add", ["x", "x"], ["y"]), helper.make_node("Neg", ["y"], ["z"])]
    return OnnxRuntimeEngine().load(_graph(nodes, [x], [y, z], "twice"))


def _plus_network() -> LoadedNetwork:
    a, b, total = (
        helper.make_tensor_value_info(name, TensorProto.INT64, [2, 3]) for name in ("a", "b", "sum")
    )
    nodes = [helper.make_node("Add", ["a", "b"], ["sum"])]
    return OnnxRuntimeEngine().load(_graph(nodes, [a, b], [total], "plus"))


class EngineModels:
    """Models on a thread of their own. ``asked`` is what was submitted, in the order in which it
    ran; nothing runs while ``held``."""

    def __init__(self) -> None:
        self.networks = {"twice": twice_network(), "plus": _plus_network()}
        self.asked: list[tuple[str, float | None, str | None]] = []
        self.free = threading.Event()
        self.free.set()
        self.failure: Exception | None = None
        self._worker = ThreadPoolExecutor(1)

    def names(self) -> list[str]:
        return list(self.networks)

    def describe(self, name: str) -> Any:
        return self.networks[name].inputs, self.networks[name].outputs

    def submit(
        self, name: str, inputs: Any, *, slo_ms: float | None, priority: str | None
    ) -> Future[dict[str, np.ndarray]]:
        return self._worker.submit(self._run, name, inputs, slo_ms, priority)

    def _run(
        self, name: str, inputs: Any, slo_ms: float | None, priority: str | None
    ) -> dict[str, np.ndarray]:
        if not self.free.wait(60):
            raise AppError("held for too long")
        self.asked.append((name, slo_ms, priority))
        if self.failure is not None:
            raise self.failure
        network = self.networks[name]
        return network.infer(network.new_state(), inputs)

    def close(self) -> None:
        self.free.set()
        self._worker.shutdown(cancel_futures=True)
