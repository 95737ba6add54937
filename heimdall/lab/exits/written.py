"""The ONNX file of a network with exits: heads behind their places, and the metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper

from heimdall.graph.exits import METADATA, DeclaredExit, order_nodes
from heimdall.graph.graph import Graph, Tensor
from heimdall.lab.exits import distilled, heads
from heimdall.lab.exits.data import Dataset
from heimdall.lab.exits.distilled import Distilled
from heimdall.lab.exits.exit_points import ExitPoint
from heimdall.lab.exits.heads import Head
from heimdall.lab.exits.storing import LEAST_VALUES, halves, keep_outputs, narrow

WHOLE = "whole"  # the name of the variant without an early exit
CLASSES = "classes"  # the metadata that name the classes, a JSON list


def with_exits(
    graph: Graph,
    made: Mapping[ExitPoint, Head | Distilled],
    dataset: Dataset | None = None,
    *,
    accuracy: Mapping[str, float] | None = None,
    kept: Sequence[int] | None = None,
) -> onnx.ModelProto:
    """The network with a head at each place, its nodes in the order of ``heimdall.graph.exits``.

    ``dataset``: the classes of a classifier are told in the metadata. ``accuracy`` by the first
    output of each exit. ``kept``: only these exits, from 0, the network's own being the last;
    of the network what leads to them. Weights that are halves are kept in float16
    (``heimdall.graph.half``). Where all of the network's are, those of the heads are made so; heads
    that learned from the network are so anyway.
    """
    model = graph.model
    whole = tuple(each.name for each in graph.outputs)
    named: dict[str, tuple[str, ...]] = {}
    for number, (after, head) in enumerate(made.items(), 1):
        name = f"exit{number}"
        named[name] = (name,) if len(whole) == 1 else tuple(f"{name}/{each}" for each in whole)
        nodes, weights = _nodes(head, graph, graph.tensors[after.tensor], named[name])
        model.graph.node.extend(nodes)
        model.graph.initializer.extend(weights)
        for output, like in zip(named[name], graph.outputs, strict=True):
            value = helper.make_tensor_value_info(output, TensorProto.FLOAT, like.shape)
            model.graph.output.append(value)
    declared = [
        DeclaredExit(name, outputs, round((accuracy or {}).get(outputs[0], 0.0), 4))
        for name, outputs in (named | {WHOLE: whole}).items()
    ]
    if kept is not None:
        declared = [declared[number] for number in kept]
        keep_outputs(model, [name for each in declared for name in each.outputs])
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    if len(declared) > 1:
        metadata[METADATA] = json.dumps([each.described() for each in declared])
    if dataset is not None:
        metadata[CLASSES] = json.dumps(dataset.classes)
    helper.set_model_props(model, metadata)
    order_nodes(Path(graph.name), model)
    del model.graph.value_info[:]  # sizes that readers infer
    taught = any(isinstance(head, Distilled) for head in made.values())
    new = {item.name for item in model.graph.initializer} - graph.constants.keys()
    narrow(model, halves(model) | (new if _in_half(graph) or taught else set()))
    onnx.checker.check_model(model)
    return model


def _nodes(
    head: Head | Distilled, graph: Graph, tensor: Tensor, names: Sequence[str]
) -> tuple[list[NodeProto], list[TensorProto]]:
    if isinstance(head, Distilled):
        return distilled.nodes(head, tensor, names)
    softmax = graph.producers[graph.outputs[0].name].op_type == "Softmax"
    return heads.nodes(head, tensor, names[0], softmax=softmax)


def _in_half(graph: Graph) -> bool:
    weights = [each for each in graph.constants.values() if each.dtype == np.float32]
    large = [each for each in weights if each.size >= LEAST_VALUES]
    with np.errstate(over="ignore"):
        return all(np.array_equal(each, each.astype(np.float16)) for each in large)
