"""The ONNX file of a network with exits: heads behind their places, and the metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from heimdall.analyzer.exits import heads
from heimdall.analyzer.exits.data import Dataset
from heimdall.analyzer.exits.heads import Head
from heimdall.analyzer.exits.places import Place
from heimdall.graph import half
from heimdall.graph.exits import METADATA, DeclaredExit, order_nodes
from heimdall.graph.graph import Graph
from heimdall.graph.outputs import keep_outputs

WHOLE = "whole"  # the name of the variant without an early exit
CLASSES = "classes"  # the metadata that name the classes, a JSON list


def with_exits(
    graph: Graph,
    made: Mapping[Place, Head],
    dataset: Dataset,
    *,
    accuracy: Mapping[str, float] | None = None,
    kept: Sequence[int] | None = None,
) -> onnx.ModelProto:
    """The network with a head at each place, its nodes in the order of ``heimdall.graph.exits``.

    ``accuracy`` by output. ``kept``: only these exits, from 0, the network's own being the last;
    of the network what leads to them. Where the network's weights are halves, so are those of the
    heads, and all are kept in float16 (``heimdall.graph.half``).
    """
    model = graph.model
    last = graph.outputs[0].name
    softmax = graph.producers[last].op_type == "Softmax"
    outputs = [f"exit{number}" for number in range(1, len(made) + 1)]
    for output, (after, head) in zip(outputs, made.items(), strict=True):
        nodes, weights = heads.nodes(head, graph.tensors[after.tensor], output, softmax=softmax)
        model.graph.node.extend(nodes)
        model.graph.initializer.extend(weights)
        shape = (1, len(dataset.classes))
        value = helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)
        model.graph.output.append(value)
    names = [*outputs, WHOLE]
    declared = [
        DeclaredExit(name, (output,), round((accuracy or {}).get(output, 0.0), 4))
        for name, output in zip(names, [*outputs, last], strict=True)
    ]
    if kept is not None:
        declared = [declared[number] for number in kept]
        keep_outputs(model, [name for each in declared for name in each.outputs])
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    if len(declared) > 1:
        metadata[METADATA] = json.dumps([each.described() for each in declared])
    metadata[CLASSES] = json.dumps(dataset.classes)
    helper.set_model_props(model, metadata)
    order_nodes(Path(graph.name), model)
    del model.graph.value_info[:]  # sizes that readers infer
    if _in_half(graph):
        half.narrow(model)
    onnx.checker.check_model(model)
    return model


def _in_half(graph: Graph) -> bool:
    weights = [each for each in graph.constants.values() if each.dtype == np.float32]
    large = [each for each in weights if each.size >= half.LEAST_VALUES]
    with np.errstate(over="ignore"):
        return all(np.array_equal(each, each.astype(np.float16)) for each in large)
