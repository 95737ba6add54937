"""Depthwise and pointwise layers in one launch, against onnxruntime.

``HEIMDALL_EXAMPLES`` searches longer.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from heimdall.engine.opencl.launch import Traits
from tests.engine.opencl.drawn import search

TOLERANCE = 1e-4
few_builds = search(6)
WIDE = Traits("cpu", 16)
TRAITS = {"narrow CPU": Traits("cpu", 8, 2, 16), "NEON": Traits("cpu", 4, 1, 32)}
_ACTIVATIONS = {"relu": "Relu", "swish": "HardSwish", "sigmoid": "Sigmoid", "leaky": "LeakyRelu"}


@pytest.fixture(scope="module", params=["this device", *TRAITS])
def processor(request, engine_for):
    return _for_a_cpu(engine_for, TRAITS.get(request.param))


def _for_a_cpu(engine_for, traits=None):
    """With ``traits``, or as it is: on a GPU, whose own kernels leave these layers apart, with
    those of a CPU."""
    own = engine_for(traits)
    return own if own.traits.kind == "cpu" else engine_for(WIDE)


@st.composite
def pairs(draw):
    """(nodes, shape of x, constants): Neg, depthwise, pointwise, and what follows each."""
    random = np.random.default_rng(0)
    constants: dict[str, np.ndarray] = {}
    nodes = [helper.make_node("Neg", ["x"], ["x_"], "neg")]

    def convolve(name, x, y, shape, bias=True, **attributes):
        scale = 1 / np.sqrt(np.prod(shape[1:]))
        constants[f"{name}_w"] = (random.standard_normal(shape) * scale).astype(np.float32)
        inputs = [x, f"{name}_w"]
        if bias:
            constants[f"{name}_b"] = random.standard_normal(shape[0]).astype(np.float32)
            inputs.append(f"{name}_b")
        nodes.append(helper.make_node("Conv", inputs, [y], name, **attributes))
        return y

    def activate(x, kinds):
        kind = draw(st.sampled_from(["none", *kinds]))
        if kind != "none":
            nodes.append(helper.make_node(_ACTIVATIONS[kind], [x], [f"{x}_"], f"act_{x}"))
            x += "_"
        return x

    channels, outputs = draw(st.integers(2, 80)), draw(st.integers(5, 80))
    side, stride = draw(st.sampled_from([3, 5])), draw(st.integers(1, 2))
    pads = draw(st.lists(st.integers(0, 2), min_size=4, max_size=4))
    size = draw(st.integers(5, 20)), draw(st.integers(5, 30))
    at = convolve(
        *("depthwise", "x_", "d", (channels, 1, side, side), draw(st.booleans())),
        group=channels, strides=[stride, stride], pads=pads,
    )  # fmt: skip
    at = convolve("pointwise", activate(at, ["relu", "swish"]), "p", (outputs, channels, 1, 1))
    before = draw(st.booleans())
    at = at if before else activate(at, list(_ACTIVATIONS))
    if draw(st.booleans()):  # a residual of the same shape
        convolve(
            "other", "x_", "r", (outputs, channels, side, side), strides=[stride] * 2, pads=pads
        )
        nodes.append(helper.make_node("Add", [at, "r"], ["s"], "add"))
        at = "s"
    at = activate(at, list(_ACTIVATIONS)) if before else at
    # a reader of the halo
    convolve("after", at, "y", (6, outputs, 3, 3), pads=[1, 1, 1, 1])
    return nodes, {"x": (1, channels, *size)}, constants


@few_builds
@given(pairs())
def test_pairs_match_onnxruntime(processor, build, shared, pair):
    graph = build(*pair)
    random = np.random.default_rng(1)
    network = processor.load(graph)
    assert any({"depthwise", "pointwise"} <= set(op.nodes) for op in network.ops)
    state = network.new_state()
    for _ in range(2):  # the second time memory holds what was there before
        inputs = {"x": random.standard_normal(graph.inputs[0].shape).astype(np.float32)}
        whole = shared.run(network, state, inputs)
        assert shared.relative_error(whole, shared.reference(graph, inputs)) <= TOLERANCE
        assert shared.same(shared.run(network, state, inputs, range(len(network.ops))), whole)
    network.close()


def _pair(build, channels=20, outputs=("y",), **window):
    random = np.random.default_rng(0)
    constants = {
        "k": random.standard_normal((channels, 1, 3, 3)).astype(np.float32),
        "w": random.standard_normal((10, channels, 1, 1)).astype(np.float32),
    }
    window = {"group": channels, "pads": [1, 1, 1, 1]} | window
    nodes = [
        helper.make_node("Neg", ["x"], ["x_"], "neg"),
        helper.make_node("Conv", ["x_", "k"], ["d"], "depthwise", **window),
        helper.make_node("Conv", ["d", "w"], ["p"], "pointwise"),
        helper.make_node("Relu", ["p"], ["y"], "relu"),
    ]
    return build(nodes, {"x": (1, channels, 9, 11)}, constants, outputs)


def _names(network):
    return [op.nodes for op in network.ops]


def test_the_tensor_in_between_takes_no_memory(engine_for, build):
    engine = _for_a_cpu(engine_for)
    graph = _pair(build)
    joined = engine.load(graph)
    assert _names(joined) == [("neg",), ("depthwise", "pointwise", "relu")]
    apart = engine.load(_pair(build, outputs=("y", "d")))
    assert joined.memory.activation_bytes < apart.memory.activation_bytes


def test_a_result_that_is_an_output_is_left_apart(engine, build, shared):
    graph = _pair(build, outputs=("y", "d"))
    network = engine.load(graph)
    assert _names(network) == [("neg",), ("depthwise",), ("pointwise", "relu")]
    inputs = {"x": np.ones((1, 20, 9, 11), np.float32)}
    found = shared.run(network, network.new_state(), inputs)
    assert shared.relative_error(found, shared.reference(graph, inputs)) <= TOLERANCE


@pytest.mark.parametrize("forced", ["depthwise", "pointwise"])
def test_either_layer_can_be_forced_to_fall_back(engine, build, shared, forced):
    graph = _pair(build)
    network = engine.load(graph, force_fallback=[forced])
    assert [op.nodes for op in network.ops if op.fallback] == [(forced,)]
    inputs = {"x": np.ones((1, 20, 9, 11), np.float32)}
    found = shared.run(network, network.new_state(), inputs)
    assert shared.relative_error(found, shared.reference(graph, inputs)) <= TOLERANCE


def test_layers_that_would_not_gain_are_left_apart(engine, engine_for, build):
    apart = [("neg",), ("depthwise",), ("pointwise", "relu")]
    too_wide = _pair(build, channels=3200)  # its pixels do not fit into the nearest cache
    dilated = _pair(build, dilations=[2, 2], pads=[2, 2, 2, 2])
    assert _names(engine.load(too_wide)) == apart
    assert _names(engine.load(dilated)) == apart
    on_gpu = engine_for(Traits("gpu", 4)).load(_pair(build))
    assert _names(on_gpu) == apart
