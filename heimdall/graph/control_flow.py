"""Ops that hold graphs: If, Loop, Scan.

Where a condition is known when a model is read, its branch takes the place of the If. Whatever else
there is makes the model one node, a function of its inputs and weights: no engine of a GPU has it,
so it runs whole on the CPU, by onnxruntime.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import compose, helper

from heimdall.errors import ModelError
from heimdall.graph.sessions import first_line, open_session
from heimdall.graph.values import fixed_shape, node_name

OPS = {"If", "Loop", "Scan", "SequenceMap"}
DOMAIN, WHOLE = "heimdall", "Model"  # of the node that stands for a whole model


class UnknownPathError(ModelError):
    """What a node with graphs does depends on what the network is given."""


def nodes_of(graph: onnx.GraphProto) -> Iterator[tuple[int, onnx.NodeProto]]:
    """All nodes with their numbers in their graphs, those of graphs inside nodes, too."""
    for index, node in enumerate(graph.node):
        yield index, node
        for attribute in node.attribute:
            for inner in [attribute.g, *attribute.graphs]:
                yield from nodes_of(inner)


def branch(node: onnx.NodeProto, condition: bool) -> onnx.GraphProto:
    """The graph that an If takes under a condition, as nodes to put in its place: names of its own
    do not collide with others', and it ends with those that write the If's outputs."""
    wanted = "then_branch" if condition else "else_branch"
    graph = next(item.g for item in node.attribute if item.name == wanted)
    own = {name for inner in graph.node for name in inner.output}
    own |= {item.name for item in graph.initializer}
    prefix = f"{node.output[0]}/"
    # its outputs may be values of the graph around it, which keep their names
    sources = [prefix + value.name if value.name in own else value.name for value in graph.output]
    placed = onnx.GraphProto()
    placed.CopyFrom(graph)
    del placed.output[:]
    placed = compose.add_prefix_graph(placed, prefix)
    for source, name in zip(sources, node.output, strict=True):
        placed.node.append(helper.make_node("Identity", [source], [name], f"{node.name}/{name}"))
    return placed


def as_one_node(path: Path, model: onnx.ModelProto, why: str) -> onnx.ModelProto:
    """The model as a function, and one node that calls it. Shapes of outputs are those that it has
    for zeros, which are places in any table. Raises ModelError where onnxruntime cannot run it on
    these; ``why`` says what keeps it from being anything else."""
    names = [value.name for value in model.graph.input]
    outputs = [value.name for value in model.graph.output]
    try:
        made = open_session(model).run(outputs, _zeros(model))
    except Exception as error:  # onnxruntime raises a dozen types of its own
        raise ModelError(
            f"{why}: so it would run whole on the CPU, but onnxruntime fails there on a sample: "
            f"{first_line(error)}; where an input decides what runs, give its value, such as "
            f"shapes={{{names[-1]!r}: 16000}}"
        ) from error
    for name, array in zip(outputs, made, strict=True):
        if not isinstance(array, np.ndarray) or array.dtype.hasobject or not array.size:
            raise ModelError(f"{why}: so it would run whole on the CPU, but {name!r} is no tensor")
    constants = [item.name for item in model.graph.initializer]
    function = helper.make_function(
        DOMAIN, WHOLE, [*names, *constants], outputs, model.graph.node, model.opset_import
    )
    call = helper.make_node(WHOLE, [*names, *constants], outputs, path.stem, domain=DOMAIN)
    values = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in zip(outputs, made, strict=True)
    ]
    graph = helper.make_graph(
        [call], model.graph.name, model.graph.input, values, model.graph.initializer
    )
    imports = [*model.opset_import, helper.make_opsetid(DOMAIN, 1)]
    whole = helper.make_model(
        graph, opset_imports=imports, ir_version=max(model.ir_version, 8), functions=[function]
    )
    whole.metadata_props.extend(model.metadata_props)
    return whole


def _zeros(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    kind_of = helper.tensor_dtype_to_np_dtype
    return {
        each.name: np.zeros(fixed_shape(each.type) or (), kind_of(each.type.tensor_type.elem_type))
        for each in model.graph.input
    }


def where(path: object, index: int, node: onnx.NodeProto) -> str:
    """A node of a file, as messages name it."""
    return f"node {node_name(index, node)!r} ({node.op_type}) of {path}"
