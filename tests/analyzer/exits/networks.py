"""A small classifier with random weights, and pictures of stripes, to give exits to."""

import cv2
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from heimdall.graph.graph import graph_from_model

CLASSES = ("across", "down", "flat")


def classifier(*, blocks=4, classes=3, softmax=False, channels=8):
    """Stem, residual blocks, pool, full layer, over pictures of 16x16."""
    random = np.random.default_rng(0)
    nodes, weights = [], []

    def add(kind, given, made, *shape, **attributes):
        names = [made + "/weight"] if shape else []
        for name in names:
            spread = np.sqrt(np.prod(shape[1:]))
            array = (random.standard_normal(shape) / spread).astype(np.float32)
            weights.append(numpy_helper.from_array(array, name))
        nodes.append(helper.make_node(kind, [*given, *names], [made], made, **attributes))
        return made

    pads = {"pads": [1, 1, 1, 1]}
    x = add("Conv", ["image"], "stem", channels, 1, 3, 3, **pads)
    x = add("Relu", [x], "stem/relu")
    for block in range(blocks):
        y = add("Conv", [x], f"b{block}/conv", channels, channels, 3, 3, **pads)
        x = add("Relu", [add("Add", [y, x], f"b{block}/sum")], f"b{block}")
    x = add("Flatten", [add("GlobalAveragePool", [x], "pool")], "features")
    x = add("Gemm", [x], "scores", classes, channels, transB=1)
    if softmax:
        x = add("Softmax", [x], "chances", axis=1)
    graph = helper.make_graph(
        nodes,
        "stripes",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 1, 16, 16])],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, ["n", classes])],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def small(**choices):
    return graph_from_model(classifier(**choices), "stripes")


def write_pictures(folder, count=20, classes=CLASSES):
    """Noise with stripes across, down, or none: ``count`` a class."""
    random = np.random.default_rng(1)
    for name in classes:
        (folder / name).mkdir(parents=True)
        for index in range(count):
            image = random.integers(0, 100, (16, 16)).astype(np.uint8)
            if name == "across":
                image[::4] += 150
            elif name == "down":
                image[:, ::4] += 150
            cv2.imwrite(str(folder / name / f"{index:03}.png"), image)
    return folder
