"""A classifier with three exits, built in memory, and the same without early ones.

Heads begin in different ways: with a pool, with a 3x3 convolution that wants a halo, and with a
reduction that wants a picture as rows, so that what they convert for themselves differs.
"""

import json

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from heimdall.graph.exits import METADATA
from heimdall.graph.graph import graph_from_model

EXITS = (("first", "y1", 0.5), ("second", "y2", 0.75), ("whole", "y3", 0.9))


def weights():
    random = np.random.default_rng(3)
    shapes = {
        "w1": (8, 3, 3, 3),
        "w2": (8, 8, 3, 3),
        "w3": (16, 8, 3, 3),
        "w4": (16, 16, 3, 3),
        "h1": (4, 8),
        "h2": (4, 8, 3, 3),
        "h2b": (4, 4),
        "h3": (4, 16 * 3 * 4),
        "rows": (1, 16, 12),
    }
    return {name: random.standard_normal(s).astype(np.float32) * 0.3 for name, s in shapes.items()}


def _conv(given, weight, made, stride=1):
    pads, strides = [1, 1, 1, 1], [stride, stride]
    return helper.make_node("Conv", [given, weight], [made], made, pads=pads, strides=strides)


def _relu(given, made):
    return helper.make_node("Relu", [given], [made], made)


def _full(given, weight, made):
    return helper.make_node("Gemm", [given, weight], [made], made, transB=1)


BACKBONE = [
    _conv("x", "w1", "c1", 2),
    _relu("c1", "r1"),
    _conv("r1", "w2", "c2"),
    helper.make_node("Add", ["c2", "r1"], ["a2"], "a2"),
    _relu("a2", "r2"),
    _conv("r2", "w3", "c3", 2),
    _relu("c3", "r3"),
    helper.make_node("Reshape", ["r3", "as_rows"], ["rows3"], "rows3"),
    helper.make_node("Add", ["rows3", "rows"], ["moved"], "moved"),
    helper.make_node("Reshape", ["moved", "as_picture"], ["back"], "back"),
    _conv("back", "w4", "c4"),
    _relu("c4", "r4"),
    helper.make_node("Flatten", ["r4"], ["f4"], "f4"),
    _full("f4", "h3", "y3"),
]
HEADS = [
    [
        helper.make_node("GlobalAveragePool", ["r1"], ["g1"], "g1"),
        helper.make_node("Flatten", ["g1"], ["f1"], "f1"),
        _full("f1", "h1", "y1"),
    ],
    [
        # as rows: before the backbone, which needs them, too
        helper.make_node("ReduceMax", ["r3"], ["peaks"], "peaks", axes=[1], keepdims=1),
        helper.make_node("Flatten", ["peaks"], ["flat"], "flat"),
        _conv("r2", "h2", "hc2"),
        _relu("hc2", "hr2"),
        helper.make_node("GlobalAveragePool", ["hr2"], ["g2"], "g2"),
        helper.make_node("Flatten", ["g2"], ["f2"], "f2"),
        _full("f2", "h2b", "s2"),
        helper.make_node("ReduceMean", ["flat"], ["peak"], "peak", axes=[1], keepdims=1),
        helper.make_node("Add", ["s2", "peak"], ["y2"], "y2"),
    ],
]


def model(nodes, outputs, exits=None, name="exits"):
    constants = [numpy_helper.from_array(array, key) for key, array in weights().items()]
    for key, shape in (("as_rows", [1, 16, 12]), ("as_picture", [1, 16, 3, 4])):
        constants.append(numpy_helper.from_array(np.array(shape, np.int64), key))
    read = {key for node in nodes for key in node.input}
    proto = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 12, 16])],
        [helper.make_tensor_value_info(key, TensorProto.FLOAT, [1, 4]) for key in outputs],
        [each for each in constants if each.name in read],
    )
    imports = [helper.make_opsetid("", 13)]
    made = helper.make_model(proto, opset_imports=imports, ir_version=8)
    if exits is not None:
        text = exits if isinstance(exits, str) else json.dumps(exits)
        helper.set_model_props(made, {METADATA: text})
    return made


def declared(*rows):
    return [{"name": n, "output": o, "accuracy": a} for n, o, a in rows or EXITS]


def with_exits(nodes=None, exits=None):
    """The heads last, as a careless exporter would leave them."""
    nodes = [*BACKBONE, *HEADS[1], *HEADS[0]] if nodes is None else nodes
    return graph_from_model(
        model(nodes, ["y3", "y1", "y2"], declared() if exits is None else exits), "exits"
    )


def without_exits():
    return graph_from_model(model(BACKBONE, ["y3"]), "backbone")
