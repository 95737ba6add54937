"""Half precision against float32 on the same device, where it has cl_khr_fp16."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from heimdall.engine.opencl.engine import OpenCLEngine
from heimdall.engine.opencl.launch import Traits
from heimdall.errors import DeviceError
from heimdall.graph.decoder import CONTEXT
from heimdall.graph.decoder_names import PAST, SEEN, TOKENS, TOTAL
from heimdall.graph.graph import graph_from_model, load_graph
from heimdall.graph.samples import sample_inputs
from heimdall.vocabulary.enums import Precision
from tests.graph.decoders import decoder

ROUNDING = 2.0**-11  # of a number that is stored as half, relative
STORED = 6  # times a number is rounded in one op: inputs, weights, what lies between, the output
KINDS = {"this device": None, "a GPU": Traits("gpu", 4), "narrow CPU": Traits("cpu", 8, 2, 16)}
NETWORKS = {  # of the bundled ones, those that rounded weights alone do not change more
    "hand_palm_lite_192": None,
    "hand_landmark_lite_224": None,
    "multistyle26_dynamic": {"image": [1, 3, 120, 160]},
}
SMALL = 0.55  # of the memory that float32 takes


@pytest.fixture(scope="module", params=KINDS)
def engines(request, engine_for):
    """(float32, half)"""
    engine = engine_for(KINDS[request.param])
    if Precision.FP16 not in engine.precisions:
        pytest.skip(f"{engine.device.name.strip()} has no cl_khr_fp16")
    return engine.in_precision(Precision.FP32), engine.in_precision(Precision.FP16)


def node(kind, *inputs, **attributes):
    return [helper.make_node(kind, list(inputs), ["y"], name="n", **attributes)]


def weights(*shape: int) -> np.ndarray:
    values = np.random.default_rng(1).uniform(-1, 1, shape)
    return values.astype(np.float32)


PICTURE = {"x": (1, 20, 13, 11)}
OPS: dict[str, tuple[list, dict, dict]] = {
    "dense": (node("Conv", "x", "w", pads=[1, 1, 1, 1]), PICTURE, {"w": weights(24, 20, 3, 3)}),
    "strided": (node("Conv", "x", "w", strides=[2, 2]), PICTURE, {"w": weights(40, 20, 3, 3)}),
    "pointwise": (node("Conv", "x", "w"), PICTURE, {"w": weights(33, 20, 1, 1)}),
    "grouped": (node("Conv", "x", "w", group=4), PICTURE, {"w": weights(16, 5, 1, 1)}),
    "depthwise": (
        node("Conv", "x", "w", group=20, pads=[1, 1, 1, 1]), PICTURE, {"w": weights(20, 1, 3, 3)},
    ),
    "large depthwise": (
        node("Conv", "x", "w", group=20, dilations=[2, 2]), PICTURE, {"w": weights(20, 1, 3, 3)},
    ),
    "few outputs": (node("Conv", "x", "w"), PICTURE, {"w": weights(2, 20, 3, 3)}),
    "planar": (
        node("Conv", "x", "w", pads=[4, 4, 4, 4]), {"x": (1, 3, 40, 50)},
        {"w": weights(3, 3, 9, 9)},
    ),
    "transposed": (
        node("ConvTranspose", "x", "w", strides=[2, 2]), PICTURE, {"w": weights(20, 12, 3, 3)},
    ),
    "stamp": (
        node("ConvTranspose", "x", "w", strides=[2, 2]), PICTURE, {"w": weights(20, 1, 2, 2)},
    ),
    "gemm": (node("Gemm", "x", "w"), {"x": (5, 24)}, {"w": weights(24, 30)}),
    "matmul": (node("MatMul", "x", "z"), {"x": (2, 5, 24), "z": (2, 24, 37)}, {}),
    "add": (node("Add", "x", "w"), PICTURE, {"w": weights(20, 1, 1)}),
    "array": (node("Mul", "x", "w"), {"x": (6, 7)}, {"w": weights(7)}),
    "sigmoid": (node("Sigmoid", "x"), PICTURE, {}),
    "max pool": (node("MaxPool", "x", kernel_shape=[2, 2], strides=[2, 2]), PICTURE, {}),
    "average pool": (node("AveragePool", "x", kernel_shape=[3, 3]), PICTURE, {}),
    "global pool": (node("GlobalAveragePool", "x"), PICTURE, {}),
    "normalise": (
        node("InstanceNormalization", "x", "s", "b"), PICTURE, {"s": weights(20), "b": weights(20)},
    ),
    "lrn": (node("LRN", "x", size=5), PICTURE, {}),
    "softmax": (node("Softmax", "x", axis=1), {"x": (3, 9)}, {}),
    "sum": (node("ReduceSum", "x", "axes", keepdims=1), {"x": (3, 4, 5)},
            {"axes": np.array([1], np.int64)}),
    "pad": (node("Pad", "x", "p", mode="reflect"), PICTURE,
            {"p": np.array([0, 0, 2, 1, 0, 0, 1, 2], np.int64)}),
    "resize": (node("Resize", "x", "", "scales", mode="linear"), PICTURE,
               {"scales": np.array([1, 1, 2, 2], np.float32)}),
    "nearest": (node("Resize", "x", "", "scales", mode="nearest"), PICTURE,
                {"scales": np.array([1, 1, 2, 2], np.float32)}),
    "concat": (node("Concat", "x", "z", axis=1), {**PICTURE, "z": (1, 5, 13, 11)}, {}),
    "take": (node("Gather", "x", "i", axis=2), PICTURE, {"i": np.array([3, 0, 7], np.int64)}),
    "cumulate": (node("CumSum", "x", "i"), {"x": (4, 9)}, {"i": np.array(1, np.int64)}),
    "window": (node("MaxPool", "x", kernel_shape=[2, 2, 2]), {"x": (1, 3, 5, 6, 7)}, {}),
    "cubic": (node("Resize", "x", "", "scales", mode="cubic"), PICTURE,
              {"scales": np.array([1, 1, 2, 2], np.float32)}),
    "samples": (node("GridSample", "x", "z"), {**PICTURE, "z": (1, 6, 5, 2)}, {}),
    "transpose": (
        [
            helper.make_node("Neg", ["x"], ["n"], name="n"),
            helper.make_node("Transpose", ["n"], ["t"], name="t", perm=[0, 3, 1, 2]),
            *node("Softmax", "t", axis=2),
        ],
        PICTURE, {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("op", OPS)
def test_every_kernel_is_as_near_as_half_allows(engines, build, shared, op):
    nodes, shapes, constants = OPS[op]
    graph = build(nodes, shapes, constants)
    random = np.random.default_rng(0)
    inputs = {name: random.uniform(-1, 1, s).astype(np.float32) for name, s in shapes.items()}
    found = []
    for engine in engines:
        network = engine.load(graph)
        assert not any(each.fallback for each in network.ops)
        state = network.new_state()
        shared.run(network, state, inputs)  # the second time memory is no longer zeros
        found.append(shared.run(network, state, inputs))
    assert shared.relative_error(found[1], found[0]) <= STORED * ROUNDING


def test_indices_are_not_counted_in_half(engines, build, shared):
    graph = build(node("ArgMax", "x", axis=1), {"x": (2, 5001)})
    inputs = {"x": np.zeros((2, 5001), np.float32)}
    inputs["x"][:, 4999] = 1
    network = engines[1].load(graph)
    assert shared.run(network, network.new_state(), inputs)["y"].ravel().tolist() == [4999, 4999]


def test_given_indices_are_not_rounded(engines, build, shared):
    """Line 4999 of a table is not line 5000."""
    lines = np.repeat(np.arange(6000, dtype=np.float32)[:, None] % 2, 4, axis=1)
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, [1, 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3, 4])
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["line"]),
        helper.make_node("Neg", ["line"], ["y"]),
    ]
    table = numpy_helper.from_array(lines, "table")
    model = helper.make_model(
        helper.make_graph(nodes, "net", [ids], [y], [table]),
        opset_imports=[helper.make_opsetid("", 17)],
    )
    network = engines[1].load(graph_from_model(model))
    found = shared.run(network, network.new_state(), {"ids": np.array([[4999, 5000, 2049]])})["y"]
    assert found[0, :, 0].tolist() == [-1, 0, -1]


@pytest.mark.parametrize("rows", [1, 8])
@pytest.mark.parametrize("form", ["optimum", "genai"])
def test_a_language_model_far_along_a_long_cache(engines, shared, form, rows):
    """Its positions are beyond what half counts; its cache takes half the memory."""
    context, filled = 4096, 3001
    graph = load_graph(decoder(form), {TOKENS: (1, rows), CONTEXT: context})
    inputs = sample_inputs(graph)
    for tensor in graph.inputs:
        if PAST.fullmatch(tensor.name):
            inputs[tensor.name] *= np.arange(context)[:, None] < filled
    inputs |= {
        SEEN: np.array([filled + rows - 1], np.int32),
        TOTAL: np.array([filled + rows], np.int32),
    }
    networks = [engine.load(graph) for engine in engines]
    full, half = (shared.run(network, network.new_state(), inputs) for network in networks)
    assert shared.relative_error(half, full) <= 1e-2
    if rows == 1:  # with more, scores, which are float, take as much as the cache of so small a one
        taken = [each.memory.activation_bytes for each in networks]
        assert taken[1] <= SMALL * taken[0]


@pytest.mark.parametrize("name", NETWORKS)
def test_bundled_networks_take_half_the_memory(engines, assets, shared, name):
    graph = load_graph(assets / "models" / f"{name}.onnx", NETWORKS[name])
    inputs = sample_inputs(graph)
    networks = [engine.load(graph) for engine in engines]
    full, half = (shared.run(network, network.new_state(), inputs) for network in networks)
    assert shared.relative_error(half, full) <= 1e-2
    taken = [each.memory.weights_bytes + each.memory.activation_bytes for each in networks]
    assert taken[1] <= SMALL * taken[0]


def test_an_engine_of_that_precision_is_the_same_engine(engines):
    full, half = engines
    assert half.in_precision(Precision.FP16) is half
    assert full.in_precision(Precision.FP32) is full
    assert full.describe() != half.describe()  # profiles of one are not the other's


def test_engines_of_both_precisions_know_each_other_while_they_are_used():
    """So networks of the same graph share their weights in half precision, too."""
    known = OpenCLEngine(keep_kernels=False)
    able = replace(known.abilities, half=True)  # nothing is compiled here
    full = OpenCLEngine(keep_kernels=False, abilities=able)
    half = full.in_precision(Precision.FP16)
    assert half is not full
    assert full.in_precision(Precision.FP16) is half
    assert half.in_precision(Precision.FP32) is full
    for other in (full.beside(), full.for_branches):  # with queues, or networks, of their own
        assert other.in_precision(Precision.FP16) is not half
        assert other.in_precision(Precision.FP32) is other


def test_a_device_without_half_says_so():
    engine = OpenCLEngine(keep_kernels=False)
    if Precision.FP16 in engine.precisions:
        pytest.skip("it has half precision")
    with pytest.raises(DeviceError, match="no half precision"):
        engine.in_precision(Precision.FP16)
