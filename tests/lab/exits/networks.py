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


def seeing(*, blocks=3, channels=8, last=False):
    """A network with random weights and two outputs, over pictures of 16x16: a mask of scores
    (``last``: (1, h, w, 1)), from a pyramid that adds the stem to what is twice as coarse, and two
    values."""
    random = np.random.default_rng(3)
    nodes, weights = [], []

    def add(kind, given, made, *shape, **attributes):
        names = [made + "/weight"] if shape else []
        for name in names:
            array = random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
            weights.append(numpy_helper.from_array(array.astype(np.float32), name))
        nodes.append(helper.make_node(kind, [*given, *names], [made], made, **attributes))
        return made

    pads = {"pads": [1, 1, 1, 1]}
    stem = add("Relu", [add("Conv", ["image"], "stem", channels, 1, 3, 3, **pads)], "stem/relu")
    x = add("MaxPool", [stem], "half", kernel_shape=[2, 2], strides=[2, 2])
    for block in range(blocks):
        y = add("Conv", [x], f"b{block}/conv", channels, channels, 3, 3, **pads)
        x = add("Relu", [add("Add", [y, x], f"b{block}/sum")], f"b{block}")
    flat = add("Flatten", [add("GlobalAveragePool", [x], "mean")], "flat")
    add("Gemm", [flat], "values", 2, channels, transB=1)
    up = add("ConvTranspose", [x], "up", channels, channels, 2, 2, strides=[2, 2])
    y = add("Conv", [add("Add", [up, stem], "top")], "logit", 1, channels, 1, 1)
    y = add("Sigmoid", [y], "mask")
    if last:
        y = add("Transpose", [y], "mask/last", perm=[0, 2, 3, 1])
    shapes = {y: [1, 16, 16, 1] if last else [1, 1, 16, 16], "values": [1, 2]}
    graph = helper.make_graph(
        nodes,
        "seeing",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, 16, 16])],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def write_flat(folder, count=12):
    """Pictures of noise and stripes directly in a folder, without labels."""
    random = np.random.default_rng(2)
    folder.mkdir(parents=True, exist_ok=True)
    for index in range(count):
        image = random.integers(0, 120, (40, 60, 3)).astype(np.uint8)
        image[index % 5 :: 6] += 120
        cv2.imwrite(str(folder / f"{index:03}.png"), image)
    return folder


def write_clip(path, frames=20):
    """A clip whose frames get lighter."""
    out = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"mp4v"), 10, (64, 48))
    for index in range(frames):
        out.write(np.full((48, 64, 3), min(10 * index, 255), np.uint8))
    out.release()
    return path
