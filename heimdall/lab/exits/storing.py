"""How a model is written small: outputs left out, weights in float16 or in another file.

Weights in float16 have each a Cast to float32, which any ONNX runtime folds when it loads the file,
and Heimdall before that (``heimdall.graph.half``).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LEAST_VALUES = 256  # smaller weights are not worth a Cast
_LARGEST = float(np.finfo(np.float16).max)
_STORED = "__half"  # ends the name of a weight that is cast to the one that nodes read
_LEAST_BYTES = 1024  # of a weight that ``refer`` leaves where it is


def keep_outputs(model: onnx.ModelProto, outputs: Sequence[str]) -> None:
    """Leave out the other outputs, and what only they need."""
    graph, needed, nodes = model.graph, set(outputs), list[onnx.NodeProto]()
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            needed.update(node.input)
            nodes.append(node)
    kept = {
        "node": nodes[::-1],
        "initializer": [item for item in graph.initializer if item.name in needed],
        "output": [value for value in graph.output if value.name in outputs],
    }
    for name, values in kept.items():
        graph.ClearField(name)
        getattr(graph, name).extend(values)


def halves(model: onnx.ModelProto) -> set[str]:
    """The float32 weights of a model that float16 holds as they are."""
    found = set()
    for item in model.graph.initializer:
        if item.data_type == TensorProto.FLOAT:
            array = numpy_helper.to_array(item)
            with np.errstate(over="ignore"):
                exact = np.array_equal(array, array.astype(np.float16))
            found |= {item.name} if exact else set()
    return found


def narrow(model: onnx.ModelProto, only: Collection[str] | None = None) -> float:
    """Store the float32 weights of a model in float16, those that fit its range, or of these
    ``only`` those that are named. Returns the largest error that rounding made, over the largest
    weight of its tensor: 0 where weights were rounded to half precision before, as in many a
    TensorFlow Lite file.
    """
    graph = model.graph
    _take_constants(graph)
    casts, worst = [], 0.0
    for item in graph.initializer:
        array = numpy_helper.to_array(item)
        if item.data_type != TensorProto.FLOAT or array.size < LEAST_VALUES:
            continue
        if only is not None and item.name not in only:
            continue
        largest = float(np.abs(array).max())
        if not largest <= _LARGEST:
            continue
        stored = array.astype(np.float16)
        worst = max(worst, float(np.abs(stored - array).max()) / max(largest, 1e-30))
        name = item.name
        item.CopyFrom(numpy_helper.from_array(stored, name + _STORED))
        casts.append(
            helper.make_node("Cast", [item.name], [name], name + "__cast", to=TensorProto.FLOAT)
        )
    cast = {name for node in casts for name in node.output}
    kept = [value for value in graph.input if value.name not in cast]  # older files list weights
    nodes = [*casts, *graph.node]
    for field, values in (("input", kept), ("node", nodes)):
        graph.ClearField(field)
        getattr(graph, field).extend(values)
    return worst


def _take_constants(graph: onnx.GraphProto) -> None:
    """Weights that are nodes become initialisers."""
    kept = []
    for node in graph.node:
        tensors = [each.t for each in node.attribute if each.name == "value"]
        if node.op_type != "Constant" or not tensors or prod(tensors[0].dims) < LEAST_VALUES:
            kept.append(node)
            continue
        item = graph.initializer.add()
        item.CopyFrom(tensors[0])
        item.name = node.output[0]
    del graph.node[:]
    graph.node.extend(kept)


def refer(model: onnx.ModelProto, path: Path) -> None:
    """Weights that stand in the file at ``path`` as they are stay there: the model, which is to be
    written into the same folder, only says where."""
    content = path.read_bytes()
    for tensor in model.graph.initializer:
        data = numpy_helper.to_array(tensor).tobytes()
        offset = content.find(data) if len(data) >= _LEAST_BYTES else -1
        if offset >= 0:
            for field in ("raw_data", "float_data", "int32_data", "int64_data", "double_data"):
                tensor.ClearField(field)
            where = {"location": path.name, "offset": str(offset), "length": str(len(data))}
            for key, value in where.items():
                tensor.external_data.add(key=key, value=value)
            tensor.data_location = TensorProto.EXTERNAL
