"""Quantised networks load and give what onnxruntime computes with integers, within one step."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import NodeProto, TensorProto
from onnxruntime import quantization

from heimdall.engine.base import Engine
from heimdall.engine.onnxruntime import OnnxRuntimeEngine
from heimdall.engine.opencl.engine import OpenCLEngine
from heimdall.errors import DeviceError, ModelError
from heimdall.graph.graph import Graph, graph_from_model, load_graph
from heimdall.graph.whole import WHOLE
from heimdall.system import paths
from tests.graph.models import FLOAT, model, node


def as_written(raw: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """What onnxruntime computes, integers with integers."""
    made = onnx.ModelProto()
    made.CopyFrom(raw)
    for value in made.graph.output:
        value.type.tensor_type.ClearField("shape")
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = ort.InferenceSession(made.SerializeToString(), options, ["CPUExecutionProvider"])
    return session.run(None, feeds)


def computed(
    graph: Graph, feeds: dict[str, np.ndarray], engine: Engine | None = None
) -> list[np.ndarray]:
    network = (engine or OnnxRuntimeEngine()).load(graph)
    found = network.infer(network.new_state(), feeds)
    return [found[tensor.name] for tensor in graph.outputs]


def assert_float(graph: Graph) -> None:
    kinds = {tensor.dtype.kind for tensor in graph.tensors.values()}
    integers = [
        each.op_type for each in graph.nodes if "Q" in each.op_type or "Integer" in each.op_type
    ]
    assert "f" in kinds
    assert integers == []


# --- op by op ---

SX, ZX = {"sx": np.float32(0.02)}, {"zx": np.uint8(120)}
SY, ZY = {"sy": np.float32(0.05)}, {"zy": np.uint8(100)}
Q = node("QuantizeLinear", ["x", "sx", "zx"], ["q"])
D = node("DequantizeLinear", ["r", "sy", "zy"], ["y"])
whole = np.random.default_rng(0).integers
W8 = whole(-64, 63, (4, 3, 3, 3)).astype(np.int8)
SW = np.array([0.01, 0.02, 0.01, 0.005], np.float32)
ROW = {"w": whole(0, 255, (6, 5)).astype(np.uint8), "sw": np.float32(0.01), "zw": np.uint8(128)}
COLUMNS: dict[str, Any] = {
    "w": whole(-64, 63, (6, 5)).astype(np.int8),
    "sw": np.linspace(0.01, 0.03, 5, dtype=np.float32),
    "zw": np.zeros(5, np.int8),
}


def contrib(op: str, inputs: list[str], **attributes: Any) -> NodeProto:
    return node(op, inputs, ["r"], domain="com.microsoft", **attributes)


Y2 = ["sy", "zy"]
OPS: dict[str, tuple[list[NodeProto], list[int], dict[str, Any]]] = {
    "QLinearConv, per channel": (
        [
            Q,
            node(
                "QLinearConv",
                ["q", "sx", "zx", "w", "sw", "zw", *Y2, "b"],
                ["r"],
                pads=[1, 1, 1, 1],
            ),
            D,
        ],
        [1, 3, 7, 7],
        {"w": W8, "sw": SW, "zw": np.zeros(4, np.int8), "b": whole(-500, 500, 4).astype(np.int32)},
    ),
    "QLinearConv, per tensor": (
        [Q, node("QLinearConv", ["q", "sx", "zx", "w", "sw", "zw", *Y2], ["r"], strides=[2, 2]), D],
        [1, 3, 7, 7],
        {"w": (W8.astype(int) + 128).astype(np.uint8), "sw": np.float32(0.02), "zw": np.uint8(130)},
    ),
    "QLinearMatMul": (
        [Q, node("QLinearMatMul", ["q", "sx", "zx", "w", "sw", "zw", *Y2], ["r"]), D],
        [3, 6],
        ROW,
    ),
    "QLinearMatMul, per column": (
        [Q, node("QLinearMatMul", ["q", "sx", "zx", "w", "sw", "zw", *Y2], ["r"]), D],
        [3, 6],
        COLUMNS,
    ),
    "QGemm": (
        [Q, contrib("QGemm", ["q", "sx", "zx", "w", "sw", "zw", "b", *Y2], alpha=0.5), D],
        [3, 6],
        ROW | {"b": whole(-500, 500, 5).astype(np.int32)},
    ),
    "QGemm, per column, transposed": (
        [Q, contrib("QGemm", ["q", "sx", "zx", "w", "sw", "zw", "", *Y2], transB=1), D],
        [3, 6],
        COLUMNS | {"w": np.ascontiguousarray(COLUMNS["w"].T)},
    ),
    "QLinearAdd": (
        [Q, contrib("QLinearAdd", ["q", "sx", "zx", "q", "sx", "zx", *Y2]), D],
        [2, 6],
        {},
    ),
    "QLinearMul": (
        [Q, contrib("QLinearMul", ["q", "sx", "zx", "q", "sx", "zx", *Y2]), D],
        [2, 6],
        {},
    ),
    "QLinearConcat": (
        [Q, contrib("QLinearConcat", [*Y2, "q", "sx", "zx", "q", "sx", "zx"], axis=1), D],
        [2, 6],
        {},
    ),
    "QLinearSigmoid": ([Q, contrib("QLinearSigmoid", ["q", "sx", "zx", *Y2]), D], [2, 6], {}),
    "QLinearLeakyRelu": (
        [Q, contrib("QLinearLeakyRelu", ["q", "sx", "zx", *Y2], alpha=0.2), D],
        [2, 6],
        {},
    ),
    "QLinearAveragePool": (
        [Q, contrib("QLinearAveragePool", ["q", "sx", "zx", *Y2], kernel_shape=[2, 2]), D],
        [1, 2, 6, 6],
        {},
    ),
    "QLinearGlobalAveragePool": (
        [Q, contrib("QLinearGlobalAveragePool", ["q", "sx", "zx", *Y2]), D],
        [1, 2, 6, 6],
        {},
    ),
    "ConvInteger": (
        [
            Q,
            node("ConvInteger", ["q", "w", "zx"], ["i"], pads=[1, 1, 1, 1]),
            node("Cast", ["i"], ["f"], to=FLOAT),
            node("Mul", ["f", "sy"], ["y"]),
        ],
        [1, 3, 7, 7],
        {"w": W8},
    ),
    "MatMulInteger": (
        [
            node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
            node("MatMulInteger", ["q", "w", "z", "zw"], ["i"]),
            node("Cast", ["i"], ["f"], to=FLOAT),
            node("Mul", ["f", "s"], ["y"]),
        ],
        [3, 6],
        ROW,
    ),
    "integers pass through": (
        [
            Q,
            node("MaxPool", ["q"], ["m"], kernel_shape=[2, 2]),
            node("Pad", ["m", "pads", "zx"], ["p"]),
            node("Transpose", ["p"], ["t"], perm=[0, 2, 3, 1]),
            node("Concat", ["t", "t"], ["c"], axis=3),
            node("DequantizeLinear", ["c", "sx", "zx"], ["y"]),
        ],
        [1, 2, 6, 6],
        {"pads": np.array([0, 0, 1, 1, 0, 0, 1, 1])},
    ),
    "integers are asked for": (
        [
            Q,
            node("Cast", ["q"], ["f"], to=FLOAT),
            node("ArgMax", ["f"], ["a"], axis=1),
            node("Cast", ["a"], ["g"], to=FLOAT),
            node("Mod", ["q", "seven"], ["e"]),
            node("Cast", ["e"], ["h"], to=FLOAT),
            node("Add", ["g", "h"], ["y"]),
        ],
        [2, 6],
        {"seven": np.uint8(7)},
    ),
    "quantised weights of a float file": (
        [
            node("QuantizeLinear", ["w", "sw", "zw"], ["v"], axis=0),
            node("DequantizeLinear", ["v", "sw", "zw"], ["k"], axis=0),
            node("Conv", ["x", "k"], ["y"]),
        ],
        [1, 3, 7, 7],
        {"w": (W8 * 0.01).astype(np.float32), "sw": SW, "zw": np.zeros(4, np.int8)},
    ),
    "16 bits": (
        [
            node("QuantizeLinear", ["x", "sx", "z16"], ["q"], domain="com.microsoft"),
            node("DequantizeLinear", ["q", "sx", "z16"], ["y"], domain="com.microsoft"),
        ],
        [2, 6],
        {"z16": np.uint16(30000)},
    ),
}


@pytest.fixture(scope="module")
def engines() -> list[Engine]:
    """onnxruntime's, and OpenCL's where there is one."""
    made: list[Engine] = [OnnxRuntimeEngine()]
    with contextlib.suppress(DeviceError):
        made.append(OpenCLEngine(keep_kernels=False))
    return made


@pytest.mark.parametrize("what", OPS)
def test_an_op_gives_what_onnxruntime_computes_within_one_step(what, engines):
    nodes, shape, constants = OPS[what]
    made = model(nodes, {"x": shape}, {"y": FLOAT}, {**SX, **ZX, **SY, **ZY, **constants})
    feeds = {"x": np.random.default_rng(1).normal(0, 1, shape).astype(np.float32)}
    graph = graph_from_model(made)
    assert_float(graph)
    (wanted,) = as_written(made, feeds)
    assert np.abs(wanted).max() > 0.1
    for engine in engines:
        (found,) = computed(graph, feeds, engine)
        assert found.shape == wanted.shape
        off = np.abs(found - wanted)
        step = 1 if what == "integers are asked for" else 0.05
        assert off.max() <= step + 1e-5
        assert (off < 1e-4 * max(1, np.abs(wanted).max())).mean() > 0.85  # the others are ties


def test_integer_inputs_and_outputs_keep_their_types():
    made = model(
        [
            node("DequantizeLinear", ["x", "sx", "zx"], ["f"]),
            node("Neg", ["f"], ["n"]),
            node("QuantizeLinear", ["n", "sy", "zy"], ["y"]),
        ],
        {"x": [2, 6]},
        {"y": TensorProto.UINT8},
        {**SX, **ZX, **SY, **ZY},
        kind=TensorProto.UINT8,
    )
    graph = graph_from_model(made)
    assert (graph.inputs[0].dtype, graph.outputs[0].dtype) == (np.uint8, np.uint8)
    feeds = {"x": np.arange(0, 240, 20, dtype=np.uint8).reshape(2, 6)}
    assert (computed(graph, feeds)[0] == as_written(made, feeds)[0]).all()


def test_whole_numbers_stay_whole_on_every_engine(engines):
    nodes = [Q, node("Cast", ["q"], ["y"], to=FLOAT)]
    graph = graph_from_model(model(nodes, {"x": [1, 3, 32, 32]}, {"y": FLOAT}, {**SX, **ZX}))
    feeds = {"x": np.random.default_rng(1).normal(0, 1, (1, 3, 32, 32)).astype(np.float32)}
    for engine in engines:
        (found,) = computed(graph, feeds, engine)
        assert (found == np.round(found)).all()
        assert len(np.unique(found)) > 100


def test_halves_are_rounded_to_even_and_ends_are_clipped():
    made = model(
        [node("QuantizeLinear", ["x", "one", "zero"], ["q"]), node("Cast", ["q"], ["y"], to=FLOAT)],
        {"x": [6]},
        {"y": FLOAT},
        {"one": np.float32(1), "zero": np.int8(0)},
    )
    feeds = {"x": np.array([0.5, 1.5, 2.5, -0.5, 900, -900], np.float32)}
    assert computed(graph_from_model(made), feeds)[0].tolist() == [0, 2, 2, 0, 127, -128]


@pytest.mark.parametrize(
    "odd",
    [
        node("MatMulBnb4", ["x", "sx"], ["y"], "odd", domain="com.microsoft", K=4, N=4),
        node("QAttention", ["x", "sx", "sx", "sx"], ["y"], "odd", domain="com.microsoft"),
        node("QLinearWhere", ["x"] * 9, ["y"], "odd", domain="com.microsoft"),
    ],
)
def test_quantised_ops_that_are_not_known_are_refused_with_their_node(odd):
    with pytest.raises(ModelError, match=rf"'odd' \({odd.op_type}\).*not known here"):
        graph_from_model(model([odd], {"x": [4]}, {"y": FLOAT}, SX))


def test_a_scale_for_each_channel_of_a_computed_tensor_runs_whole(caplog):
    caplog.set_level(logging.INFO)
    nodes = [
        node("QuantizeLinear", ["x", "sw"], ["q"], "odd"),
        node("Cast", ["q"], ["y"], to=FLOAT),
    ]
    made = model(nodes, {"x": [1, 4, 2, 2]}, {"y": FLOAT}, {"sw": SW})
    assert [each.op_type for each in graph_from_model(made).nodes] == [WHOLE]
    assert re.search(r"'odd' \(QuantizeLinear\).*each channel.*on the CPU", caplog.text)


def test_a_scale_that_is_no_positive_number_is_refused_with_its_node():
    nodes = [node("QuantizeLinear", ["x", "s"], ["q"], "odd"), node("Cast", ["q"], ["y"], to=FLOAT)]
    with pytest.raises(ModelError, match=r"'odd' \(QuantizeLinear\).*scale -0.1.*positive"):
        graph_from_model(model(nodes, {"x": [4]}, {"y": FLOAT}, {"s": np.float32(-0.1)}))


def test_an_opset_without_rounding_runs_whole(caplog):
    caplog.set_level(logging.INFO)
    nodes = [node("QuantizeLinear", ["x", "sx", "zx"], ["q"], "odd")]
    made = model(nodes, {"x": [4]}, {"q": TensorProto.UINT8}, {**SX, **ZX}, opset=10)
    assert [each.op_type for each in graph_from_model(made).nodes] == [WHOLE]
    assert re.search(r"'odd' \(QuantizeLinear\).*opset 11 or newer", caplog.text)


# --- whole networks ---


PHOTO = paths.ASSETS / "media" / "multi_face.jpg"


def photo(graph: Graph, turn: int) -> dict[str, np.ndarray]:
    """A bundled photograph, turned and scaled to a network's only input, 0..1. On patches of
    noise the masks of people are the same everywhere, and would show nothing."""
    tensor = graph.inputs[0]
    channels_last = tensor.shape[3] == 3
    height, width = tensor.shape[1:3] if channels_last else tensor.shape[2:]
    picture = cv2.imread(str(PHOTO))[:, :, ::-1]
    turned = cv2.resize(
        np.rot90(picture, turn).copy(), (width, height), interpolation=cv2.INTER_AREA
    )
    values = (turned / 255).astype(np.float32)[None]
    return {tensor.name: values if channels_last else values.transpose(0, 3, 1, 2).copy()}


class Photos(quantization.CalibrationDataReader):
    """What onnxruntime's quantiser finds the ranges of tensors with."""

    def __init__(self, graph: Graph) -> None:
        self._inputs = iter([photo(graph, turn) for turn in (1, 2, 3)])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._inputs, None)


def quantise(path: Path, graph: Graph, how: str) -> Path:
    target = path.with_name(f"{how}.onnx")
    if how == "dynamic":
        quantization.quantize_dynamic(path, target, weight_type=quantization.QuantType.QUInt8)
        return target
    form, _, channels = how.partition("-")
    quantization.quantize_static(
        path,
        target,
        Photos(graph),
        quant_format=quantization.QuantFormat[form],
        per_channel=bool(channels),
        reduce_range=True,  # 8 bits overflow in onnxruntime's own kernels where there is no VNNI
    )
    return target


HOWS = ("QDQ", "QDQ-channels", "QOperator", "QOperator-channels", "dynamic")
# onnxruntime multiplies dequantised numbers here, and its rounding errors decide some values
INEXACT = {
    ("seg_selfie_256", "QDQ"),
    ("seg_selfie_256", "QDQ-channels"),
    ("seg_selfie_256", "dynamic"),
    ("hand_palm_lite_192", "QDQ-channels"),
    ("hand_palm_lite_192", "dynamic"),
}


def steps_between(
    found: list[np.ndarray], wanted: list[np.ndarray]
) -> Iterator[tuple[np.ndarray, float]]:
    """How far outputs are apart, in steps of what they were quantised to; and the step."""
    for got, expected in zip(found, wanted, strict=True):
        levels = np.unique(expected)
        few = 1 < len(levels) <= 256
        step = float(np.diff(levels).min() if few else max(np.ptp(expected), 1e-3) / 255)
        yield np.abs(got - expected) / step, step


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("name", ["seg_selfie_256", "hand_palm_lite_192"])
def test_a_bundled_network_quantised_by_onnxruntime_rounds_where_that_rounds(
    tmp_path, engines, name, how
):
    """Within a step, where onnxruntime sums whole numbers too; elsewhere what it sums in floats
    may round to the other side, which a network amplifies: there only nearer than the float
    network is."""
    source = load_graph(paths.ASSETS / "models" / f"{name}.onnx")
    path = tmp_path / "float.onnx"
    path.write_bytes(source.serialized)
    quantised = quantise(path, source, how)
    graph = load_graph(quantised)
    assert_float(graph)
    feeds = photo(graph, 0)
    wanted = as_written(onnx.load(quantised), feeds)
    found = computed(graph, feeds, engines[-1])
    lost = list(steps_between(computed(source, feeds), wanted))
    for (off, _), (float_off, _) in zip(steps_between(found, wanted), lost, strict=True):
        if (name, how) in INEXACT:
            assert off.mean() < float_off.mean()
        else:
            assert off.max() <= 1.01
    assert max(off.max() for off, _ in lost) > 2  # else the float network would do as well


class Noise(quantization.CalibrationDataReader):
    """Pictures of noise, as many as a small network needs."""

    def __init__(self, shape: list[int]) -> None:
        random = np.random.default_rng(3)
        self._inputs = iter([random.normal(0, 1, shape).astype(np.float32) for _ in range(4)])

    def get_next(self) -> dict[str, np.ndarray] | None:
        found = next(self._inputs, None)
        return None if found is None else {"x": found}


def small_network() -> onnx.ModelProto:
    """Of what picture networks are made of: 3x3, depthwise, 1x1 and transposed layers, a residual,
    a pool, a gate, a fully connected layer."""
    random = np.random.default_rng(2)

    def weights(*shape: int) -> np.ndarray:
        return random.normal(0, 1 / np.sqrt(np.prod(shape[1:])), shape).astype(np.float32)

    nodes = [
        node("Conv", ["x", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1]),
        node("Relu", ["c1"], ["r1"]),
        node("Conv", ["r1", "w2", "b2"], ["c2"], pads=[1, 1, 1, 1], group=32),
        node("Relu", ["c2"], ["r2"]),
        node("Conv", ["r2", "w3", "b3"], ["c3"], pads=[1, 1, 1, 1]),
        node("Add", ["c3", "r1"], ["a"]),
        node("MaxPool", ["a"], ["m"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["m", "w4"], ["c4"]),
        node("Sigmoid", ["c4"], ["s"]),
        node("Mul", ["m", "s"], ["g"]),
        node("Conv", ["g", "w5", "b5"], ["c5"], pads=[1, 1, 1, 1]),
        node("Flatten", ["c5"], ["f"]),
        node("Gemm", ["f", "w6", "b6"], ["y"], transB=1),
    ]
    constants = {
        "w1": weights(32, 3, 3, 3), "w2": weights(32, 1, 3, 3), "w3": weights(32, 32, 3, 3),
        "w4": weights(32, 32, 1, 1), "w5": weights(8, 32, 3, 3), "w6": weights(10, 8 * 8 * 8),
        **{name: weights(size, 1)[:, 0] for name, size in
           {"b1": 32, "b2": 32, "b3": 32, "b5": 8, "b6": 10}.items()},
    }  # fmt: skip
    return model(nodes, {"x": [1, 3, 16, 16]}, {"y": FLOAT}, constants)


@pytest.mark.parametrize("how", ["QOperator", "QOperator-channels"])
def test_whole_numbers_stay_exact_through_a_network_in_few_launches(tmp_path, how):
    """Fusing neither scales the weights nor adds launches, and no transform rounds."""
    try:
        engine = OpenCLEngine(keep_kernels=False)
    except DeviceError as error:
        pytest.skip(str(error))
    path, target = tmp_path / "float.onnx", tmp_path / "quantised.onnx"
    onnx.save(small_network(), path)
    quantization.quantize_static(
        path,
        target,
        Noise([1, 3, 16, 16]),
        quant_format=quantization.QuantFormat.QOperator,
        per_channel=how.endswith("channels"),
        activation_type=quantization.QuantType.QUInt8,
        reduce_range=True,
    )
    graph = load_graph(target)
    ops = engine.passes(graph)[-1][1]
    # one a layer, the Add, the gate's two, the pool, the first rounding, the last scale, moves
    assert len([op for op in ops if op.kind == "conv"]) == 6
    assert len(ops) <= 14
    for seed in range(3):
        feeds = {"x": np.random.default_rng(seed).normal(0, 1, (1, 3, 16, 16)).astype(np.float32)}
        wanted = as_written(onnx.load(target), feeds)
        assert (computed(graph, feeds, engine)[0] == wanted[0]).all()


def test_sums_beyond_what_floats_count_are_still_within_a_step(engines):
    """4,096 products of 255 and 127 are above 2^24: dequantised numbers are multiplied there."""
    weights = np.full((4, 4096), 127, np.int8)
    weights[:, ::2] = 126
    constants = {**SX, "zx": np.uint8(0), "sy": np.float32(1.7), "zy": np.uint8(0), "w": weights}
    constants |= {"sw": np.float32(1e-3), "zw": np.int8(0)}
    made = model(
        [
            Q,
            node("DequantizeLinear", ["q", "sx", "zx"], ["f"]),
            node("DequantizeLinear", ["w", "sw", "zw"], ["v"]),
            node("Gemm", ["f", "v"], ["g"], transB=1),
            node("QuantizeLinear", ["g", "sy", "zy"], ["r"]),
            D,
        ],
        {"x": [1, 4096]},
        {"y": FLOAT},
        constants,
    )
    graph = graph_from_model(made)
    assert [each.op_type for each in graph.nodes].count("Round") == 2  # none behind the Gemm alone
    feeds = {"x": np.random.default_rng(0).uniform(0, 6, (1, 4096)).astype(np.float32)}
    for engine in engines:
        off = np.abs(computed(graph, feeds, engine)[0] - as_written(made, feeds)[0])
        assert off.max() <= 1.7 + 1e-5
