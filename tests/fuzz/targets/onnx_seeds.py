"""Networks to be damaged: small ones of many ops, whose kernels compile quickly, and real files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

from heimdall.system import paths

REAL = ("seg_selfie_256", "multistyle26_dynamic", "hand_palm_lite_192", "centerface_dynamic")


@cache
def small(name: str) -> bytes:
    """A small network by name, with the shapes of its intermediate tensors, as tools write it."""
    return SMALL[name]().SerializeToString()


@cache
def real(name: str) -> bytes:
    """A bundled file, with the shapes of its intermediate tensors."""
    model = onnx.load(paths.ASSETS / "models" / f"{name}.onnx")
    return onnx.shape_inference.infer_shapes(model).SerializeToString()


def _node(op: str, inputs: str, outputs: str, **attributes: Any) -> NodeProto:
    return helper.make_node(op, inputs.split(), outputs.split(), f"{op}_{outputs}", **attributes)


def _model(
    nodes: Sequence[NodeProto],
    inputs: dict[str, Sequence[int | str]],
    outputs: Sequence[str],
    constants: Mapping[str, Any],
    opset: int = 13,
) -> onnx.ModelProto:
    random = np.random.default_rng(len(nodes))
    stored = {
        name: random.normal(0, 0.4, value).astype(np.float32)
        if isinstance(value, tuple)
        else np.asarray(value)
        for name, value in constants.items()
    }
    graph = helper.make_graph(
        list(nodes),
        "net",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in stored.items()],
    )
    imports = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=8)
    made = onnx.shape_inference.infer_shapes(model, data_prop=True)
    for value in made.graph.output:
        if not value.type.tensor_type.HasField("shape"):  # the checker wants to see one
            value.type.CopyFrom(helper.make_tensor_type_proto(TensorProto.FLOAT, ["n"]))
    return made


def _classifier() -> onnx.ModelProto:
    nodes = [
        _node("Conv", "x w1 b1", "a", pads=[1, 1, 1, 1]),
        _node("BatchNormalization", "a s t m v", "n"),
        _node("Relu", "n", "r"),
        _node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2]),
        _node("Conv", "p w2", "d", group=8, pads=[1, 1, 1, 1], strides=[1, 1]),
        _node("Add", "d p", "e"),
        _node("GlobalAveragePool", "e", "g"),
        _node("Flatten", "g", "f"),
        _node("Gemm", "f w3 b3", "h", transB=1),
        _node("Softmax", "h", "y", axis=1),
    ]
    ones = np.ones(8, np.float32)
    constants = {"w1": (8, 3, 3, 3), "b1": (8,), "s": ones, "t": (8,), "m": (8,), "v": ones}
    constants |= {"w2": (8, 1, 3, 3), "w3": (5, 8), "b3": (5,)}
    return _model(nodes, {"x": ["N", 3, 12, 12]}, ["y"], constants)


def _decoder() -> onnx.ModelProto:
    nodes = [
        _node("Conv", "x w1", "a", strides=[2, 2], pads=[1, 1, 1, 1], dilations=[1, 1]),
        _node("HardSwish", "a", "h"),
        _node("ConvTranspose", "h w2", "b", strides=[2, 2], kernel_shape=[2, 2]),
        _node("Resize", "h  scales", "c", mode="linear"),
        _node("Concat", "b c", "d", axis=1),
        _node("Pad", "d pads", "e", mode="reflect"),
        _node("Slice", "e from to axes steps", "f"),
        _node("Sigmoid", "f", "y"),
    ]
    nodes[3].input[:] = ["h", "", "scales"]
    constants = {
        "w1": (4, 3, 3, 3),
        "w2": (4, 4, 2, 2),
        "scales": np.array([1, 1, 2, 2], np.float32),
        "pads": np.array([0, 0, 1, 1, 0, 0, 1, 1]),
        "from": np.array([1, 0]),
        "to": np.array([7, 1000]),
        "axes": np.array([1, 2]),
        "steps": np.array([1, 2]),
    }
    return _model(nodes, {"x": [1, 3, 8, 8]}, ["y"], constants, opset=14)


def _shapes() -> onnx.ModelProto:
    nodes = [
        _node("Shape", "x", "s"),
        _node("Gather", "s two", "k", axis=0),
        _node("Concat", "k minus", "t", axis=0),
        _node("Reshape", "x t", "a"),
        _node("Transpose", "a", "b", perm=[1, 0]),
        _node("MatMul", "b w", "c"),
        _node("Split", "c sizes", "d e", axis=1),
        _node("ConstantOfShape", "fill", "o"),
        _node("Expand", "d size", "f"),
        _node("Tile", "e repeats", "g"),
        _node("Add", "f o", "i"),
        _node("Range", "zero last one", "r"),
        _node("Mul", "g r", "j"),
        _node("Unsqueeze", "j axis", "y"),
        _node("ReduceMean", "i", "z", axes=[1], keepdims=0),
    ]
    constants = {
        "two": np.array([1]),
        "minus": np.array([-1]),
        "w": (6, 8),
        "sizes": np.array([3, 5]),
        "fill": np.array([20, 3]),
        "size": np.array([20, 3]),
        "repeats": np.array([1, 2]),
        "zero": np.array(0, np.float32),
        "last": np.array(10, np.float32),
        "one": np.array(1, np.float32),
        "axis": np.array([0]),
    }
    return _model(nodes, {"x": [1, 6, 4, 5]}, ["y", "z"], constants)


def _norms() -> onnx.ModelProto:
    nodes = [
        _node("InstanceNormalization", "x s t", "a"),
        _node("PRelu", "a slope", "b"),
        _node("AveragePool", "b", "c", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
        _node("LRN", "c", "d", size=3),
        _node("Clip", "d low high", "e"),
        _node("LeakyRelu", "e", "f", alpha=0.1),
        _node("Transpose", "f", "g", perm=[0, 2, 3, 1]),
        _node("LayerNormalization", "g u v", "h", axis=-1),
        _node("DepthToSpace", "f", "i", blocksize=2),
        _node("ReduceMax", "i", "z", axes=[2, 3]),
        _node("Gather", "h places", "y", axis=1),
    ]
    constants = {
        **dict.fromkeys("stuv", (4,)),
        "slope": (4, 1, 1),
        "low": np.array(-2, np.float32),
        "high": np.array(2, np.float32),
        "places": np.array([2, 0, -1]),
    }
    return _model(nodes, {"x": [1, 4, 9, 9]}, ["y", "z"], constants, opset=17)


def _quantised() -> onnx.ModelProto:
    nodes = [
        _node("QuantizeLinear", "x sx zx", "q"),
        _node("QLinearConv", "q sx zx w sw zw sy zy b", "c", pads=[1, 1, 1, 1]),
        _node("MaxPool", "c", "m", kernel_shape=[2, 2], strides=[2, 2]),
        _node("DequantizeLinear", "m sy zy", "d"),
        _node("DequantizeLinear", "w sw zw", "wf", axis=0),
        _node("Conv", "d wf2", "e"),
        _node("QuantizeLinear", "e se ze", "f"),
        _node("DequantizeLinear", "f se ze", "y"),
        _node("ReduceSum", "wf", "z", keepdims=0),
    ]
    whole = np.random.default_rng(0).integers
    scale = np.float32
    # Weights of seven bits: where a processor has AVX2 and no VNNI, onnxruntime adds two products
    # of a byte and a weight in 16 bits, and more would saturate.
    constants = {  # scales that are no round numbers: ties between two steps are rare then
        **{"sx": scale(0.02137), "zx": np.uint8(128), "sy": scale(0.05291), "zy": np.uint8(100)},
        **{"w": whole(-63, 63, (4, 3, 3, 3)).astype(np.int8), "zw": np.zeros(4, np.int8)},
        **{"sw": np.array([0.01031, 0.01973, 0.01177, 0.00519], np.float32)},
        **{"b": whole(-99, 99, 4).astype(np.int32), "se": scale(0.10193), "ze": np.int8(3)},
        "wf2": (2, 4, 1, 1),
    }
    return _model(nodes, {"x": [1, 3, 8, 8]}, ["y", "z"], constants)


SMALL: dict[str, Callable[[], onnx.ModelProto]] = {
    "classifier": _classifier,
    "decoder": _decoder,
    "shapes": _shapes,
    "norms": _norms,
    "quantised": _quantised,
}
