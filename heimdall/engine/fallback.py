"""Some nodes of a graph, run by onnxruntime on the CPU: ops that an engine lacks (Heimdall paper,
section 7.2), or a part of a network between two cuts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import onnx
import onnxruntime as ort

from heimdall.engine.submodels import DONE_BEFORE, PROVIDERS, session_options
from heimdall.errors import ModelError
from heimdall.graph import weights
from heimdall.graph.graph import Graph


class FallbackOps:
    """Some nodes of a graph as an onnxruntime session whose ``threads`` never spin."""

    def __init__(
        self,
        graph: Graph,
        nodes: Collection[str],
        inputs: Sequence[str],
        outputs: Sequence[str],
        threads: int = 1,
    ) -> None:
        """``nodes`` by name, in the graph's order; ``outputs`` are what others read.

        Raises ModelError when onnxruntime cannot run them either.
        """
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        named = sorted(nodes)
        few = f"{named}" if len(named) < 9 else f"{named[0]!r} ... {named[-1]!r} ({len(named)})"
        self._what = f"nodes {few} of {graph.name}"
        self._tensors = [graph.tensors[name] for name in outputs]
        model = _submodel(graph, set(nodes), inputs, outputs)
        level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        try:
            self._session = ort.InferenceSession(
                model.SerializeToString(),
                session_options(threads, level),
                providers=PROVIDERS,
                disabled_optimizers=DONE_BEFORE,
            )
        except Exception as error:  # onnxruntime raises a dozen types of its own
            raise ModelError(
                f"{self._what} run neither on the GPU nor in onnxruntime: {error}"
            ) from error

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The outputs by name. Callable from any thread.

        Raises ModelError when onnxruntime fails (places outside a tensor, say), or computes
        another shape than was inferred: some ops round sizes differently there.
        """
        feeds = {name: inputs[name] for name in self.inputs}
        try:
            made = dict(zip(self.outputs, self._session.run(self.outputs, feeds), strict=True))
        except Exception as error:  # onnxruntime raises a dozen types of its own
            raise ModelError(f"{self._what} failed in onnxruntime: {error}") from error
        for tensor in self._tensors:
            if not tensor.fits(made[tensor.name].shape):
                raise ModelError(
                    f"{self._what} make {tensor.name!r} of shape {made[tensor.name].shape}, where "
                    f"{tensor.shape} was inferred; fix the attributes of these nodes"
                )
        return made


def _submodel(
    graph: Graph, names: set[str], inputs: Sequence[str], outputs: Sequence[str]
) -> onnx.ModelProto:
    # graph.nodes and the model's nodes are the same list in the same order
    pairs = zip(graph.nodes, graph.bare.graph.node, strict=True)
    nodes = [proto for node, proto in pairs if node.name in names]
    used = {name for proto in nodes for name in proto.input}
    constants = weights.stored(graph.bare, graph.constants, used)
    part = onnx.helper.make_graph(
        nodes,
        f"{graph.name}-fallback",
        [_value(graph, name) for name in inputs],
        [_value(graph, name) for name in outputs],
        constants,
    )
    return onnx.helper.make_model(
        part,
        opset_imports=graph.bare.opset_import,
        ir_version=graph.bare.ir_version,
        functions=graph.bare.functions,
    )


def _value(graph: Graph, name: str) -> onnx.ValueInfoProto:
    tensor = graph.tensors[name]
    kind = onnx.helper.np_dtype_to_tensor_dtype(tensor.dtype)
    shape = [None if size < 0 else size for size in tensor.shape]
    return onnx.helper.make_tensor_value_info(name, kind, shape)
