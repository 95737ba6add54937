"""What the passes make of common patterns; numbers are checked in test_operators."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from onnx import helper

from heimdall.engine.opencl import lowering
from heimdall.engine.opencl.launch import Traits
from heimdall.engine.opencl.lowered import Conv, Fallback
from heimdall.engine.opencl.ops_picture import FillHalo
from heimdall.engine.opencl.passes import run_passes
from heimdall.graph.graph import load_graph
from tests.engine.opencl.patterns import INSTANCE_NORM, instance_norm, node

KERNEL = np.random.default_rng(0).standard_normal((20, 20, 3, 3)).astype(np.float32)
SHAPE = {"x": (1, 20, 8, 8)}


def lower(graph, force_fallback=()):
    """What all passes make of it, for a device without passes of its own."""
    module = lowering.lower(graph, force_fallback)
    run_passes(module, Traits("gpu"))
    return module


def conv(inputs="x k", output="c"):
    return node("Conv", inputs, output, pads=[1, 1, 1, 1])


def kinds(module):
    return [op.kind for op in module.ops]


def only_conv(module):
    assert kinds(module) == ["conv"]
    assert isinstance(module.ops[0].spec, Conv)
    return module.ops[0].spec


@pytest.mark.parametrize(
    ("nodes", "kind"),
    [
        ([node("Relu", "c")], "relu"),
        ([node("Clip", "c zero six")], "clip"),
        ([node("LeakyRelu", "c")], "prelu"),
        ([node("PRelu", "c slope")], "prelu"),
        ([node("Sigmoid", "c")], "sigmoid"),
        ([node("HardSwish", "c")], "hard_swish"),
        ([node("Sigmoid", "c", "s"), node("Mul", "c s")], "silu"),
        ([node("HardSigmoid", "c", "s"), node("Mul", "s c")], "hard_swish"),
        (
            [
                node("Add", "c three", "a"),
                node("Clip", "a zero six", "g"),
                node("Mul", "c g", "m"),
                node("Div", "m six"),
            ],
            "hard_swish",
        ),
        (
            [
                node("Mul", "sixth c", "m"),
                node("Add", "c three", "a"),
                node("Clip", "a zero six", "g"),
                node("Mul", "m g"),
            ],
            "hard_swish",
        ),
        (
            [node("Add", "c three", "a"), node("Clip", "a zero six", "g"), node("Div", "g six")],
            "hard_sigmoid",
        ),
    ],
)
def test_activations_become_part_of_the_convolution(build, check, nodes, kind):
    constants = {
        "k": KERNEL,
        "zero": np.float32(0),
        "three": np.float32(3),
        "six": np.float32(6),
        "sixth": np.float32(0.1666259765625),
        "slope": np.linspace(-1, 1, 20, dtype=np.float32).reshape(20, 1, 1),
    }
    graph = build([conv(), *nodes], SHAPE, constants)
    assert only_conv(lower(graph)).spec.activation.kind == kind
    check(graph)


@pytest.mark.parametrize("shift", [np.float32(-0.5), np.linspace(-1, 1, 20, dtype=np.float32)])
def test_what_is_added_to_a_hard_swish_before_a_padded_layer_joins_it(build, check, shift):
    depthwise = np.random.default_rng(0).standard_normal((20, 1, 3, 3)).astype(np.float32)
    constants = {"k": KERNEL, "t": shift.reshape(-1, 1, 1), "d": depthwise}
    padded = node("Conv", "a d", group=20, pads=[1, 1, 1, 1])
    graph = build([conv(), node("HardSwish", "c", "h"), node("Add", "t h", "a"), padded], SHAPE,
                  constants)  # fmt: skip
    module = lower(graph)
    assert kinds(module) == ["conv", "conv"]
    check(graph)


def test_what_is_computed_of_a_hard_swish_alone_stays_an_op(build, check):
    graph = build([conv(), node("HardSwish", "c", "h"), node("Exp", "h")], SHAPE, {"k": KERNEL})
    assert kinds(lower(graph)) == ["conv", "elementwise"]
    check(graph)


@pytest.mark.parametrize("high", [55.0, 255.0, 6.0])
def test_a_shifted_clip_that_is_no_gate_reaches_its_limits_exactly(build, engine, shared, high):
    nodes = [node("Add", "x shift", "a"), node("Clip", "a low high")]
    limits = {"low": np.float32(0), "high": np.float32(high), "shift": np.float32(3)}
    graph = build(nodes, {"x": (1, 4, 5, 5)}, limits)
    network = engine.load(graph)
    x = np.linspace(-2 * high, 2 * high, 100, dtype=np.float32).reshape(1, 4, 5, 5)
    found = shared.run(network, network.new_state(), {"x": x})
    assert shared.same(found, shared.reference(graph, {"x": x}))


@pytest.mark.parametrize("before", [node("Relu", "x", "a"), node("Clip", "x zero six", "a")])
def test_a_division_by_zero_is_computed_and_not_folded(build, engine, shared, before):
    constants = {"zero": np.float32(0), "six": np.float32(6)}
    graph = build([before, node("Div", "a zero")], {"x": (1, 4, 5, 5)}, constants)
    network = engine.load(graph)
    x = np.linspace(-9, 9, 100, dtype=np.float32).reshape(1, 4, 5, 5)
    found = shared.run(network, network.new_state(), {"x": x})
    np.testing.assert_array_equal(found["y"], shared.reference(graph, {"x": x})["y"])


def test_scales_and_biases_are_folded_into_the_weights(build, check):
    random = np.random.default_rng(1)
    constants = {"k": KERNEL} | {
        name: random.uniform(0.5, 2, (1, 20, 1, 1)).astype(np.float32) for name in "abcd"
    }
    nodes = [node("Mul", "c0 a", "c1"), node("Add", "b c1", "c2"), node("Sub", "c2 c", "c3"),
             node("Div", "c3 d")]  # fmt: skip
    graph = build([conv(output="c0"), *nodes], SHAPE, constants)
    assert only_conv(lower(graph)).bias is not None
    check(graph)


HALF = {"mean": np.float32(3.5), "half": np.full((20, 1, 1), 0.5, np.float32), "k": KERNEL}


def test_a_scaled_picture_is_read_as_it_comes(build, check):
    nodes = [node("Sub", "x mean", "s"), node("Div", "s half", "d"), conv("d k", "y")]
    graph = build(nodes, SHAPE, HALF)
    module = lower(graph)
    assert kinds(module) == ["fillhalo", "conv"]
    halo = module.ops[0].spec
    assert isinstance(halo, FillHalo)
    assert halo.fill == 3.5
    check(graph)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("mode", ["constant", "reflect"])
def test_the_border_of_a_picture_in_camera_order_is_filled(build, check, channels, mode):
    pads = np.array([0, 0, 1, 2, 0, 0, 2, 1], np.int64)
    constants = {"two": np.float32(2), "p": pads, "k": KERNEL[:, :channels]}
    nodes = [
        node("Transpose", "x", "t", perm=[0, 3, 1, 2]),
        node("Pad", "t p two", "a", mode=mode),
        node("Conv", "a k"),
    ]
    graph = build(nodes, {"x": (1, 9, 7, channels)}, constants)
    assert kinds(lower(graph))[-2:] == ["fillhalo", "conv"]
    check(graph)


def test_a_scaling_that_no_border_undoes_keeps_its_own_op(build, check):
    means = np.arange(20, dtype=np.float32).reshape(1, 20, 1, 1)
    nodes = [node("Sub", "x mean", "s"), conv("s k", "y")]
    graph = build(nodes, SHAPE, HALF | {"mean": means})
    assert kinds(lower(graph)) == ["elementwise", "conv"]
    check(graph)


@pytest.mark.parametrize("order", ["before", "after"])
def test_a_residual_is_added_by_the_convolution(build, check, order):
    if order == "before":
        nodes = [node("Add", "x c", "s"), node("Relu", "s")]
    else:
        nodes = [node("Relu", "c", "s"), node("Add", "s x")]
    graph = build([conv(), *nodes], SHAPE, {"k": KERNEL})
    spec = only_conv(lower(graph)).spec
    assert spec.residual_before_activation == (order == "before")
    check(graph)


def test_of_two_convolutions_the_later_one_adds(build, check):
    nodes = [conv(output="c"), conv("x l", "d"), node("Add", "c d")]
    graph = build(nodes, SHAPE, {"k": KERNEL, "l": KERNEL + 1})
    module = lower(graph)
    assert [len(op.inputs) for op in module.ops] == [1, 2]
    check(graph)


def test_a_result_that_others_read_keeps_its_own_op(build, check):
    graph = build([conv(), node("Relu", "c")], SHAPE, {"k": KERNEL}, outputs=("c", "y"))
    assert kinds(lower(graph)) == ["conv", "elementwise"]
    check(graph)


def test_zero_pads_become_padding_and_other_pads_a_halo(build, check):
    pads = np.array([0, 0, 1, 2, 0, 0, 2, 1], np.int64)
    for mode, wanted in (("constant", ["conv"]), ("reflect", ["fillhalo", "conv"])):
        nodes = [node("Pad", "x p", "a", mode=mode), node("Conv", "a k")]
        graph = build(nodes, SHAPE, {"p": pads, "k": KERNEL})
        module = lower(graph)
        assert kinds(module) == wanted
        last = module.ops[-1].spec
        assert isinstance(last, Conv)
        assert last.spec.pads == (1, 2, 2, 1)
        check(graph)


def test_elementwise_chains_are_one_op(build, check):
    nodes = [node("Exp", "x", "a"), node("Add", "a z", "b"), node("Sigmoid", "b", "c"),
             node("Mul", "c a", "d"), node("Tanh", "d")]  # fmt: skip
    graph = build(nodes, SHAPE | {"z": (1, 20, 1, 1)})
    module = lower(graph)
    assert kinds(module) == ["elementwise", "elementwise"]  # a is read twice
    check(graph)


def test_spelled_out_instance_norm_is_moments_and_one_pass(build, check):
    graph = build([*instance_norm("u"), node("Relu", "u")], SHAPE, INSTANCE_NORM)
    assert kinds(lower(graph)) == ["moments", "elementwise"]
    check(graph)


def test_fully_connected_layers_are_convolutions(build, check):
    constants = {
        name: np.ones(shape, np.float32) for name, shape in (("a", (20, 9)), ("b", (9, 3)))
    }
    nodes = [node("Gemm", "x a", "c"), node("Relu", "c", "d"), node("Gemm", "d b")]
    graph = build(nodes, {"x": (1, 20)}, constants)
    assert kinds(lower(graph)) == ["reshape", "conv", "conv", "reshape"]
    check(graph)


@pytest.mark.parametrize("forced", ["Relu", "the_relu"])
def test_forced_ops_fall_back_by_type_or_name(build, forced):
    relu = helper.make_node("Relu", ["c"], ["y"], "the_relu")
    module = lower(build([conv(), relu], SHAPE, {"k": KERNEL}), [forced])
    assert kinds(module) == ["conv", "fallback"]
    assert isinstance(module.ops[1].spec, Fallback)
    assert module.ops[1].nodes == ("the_relu",)


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("centerface_dynamic", {"conv"}),
        ("hand_palm_lite_192", {"conv", "pool", "gather", "linear"}),
        ("hand_landmark_lite_224", {"conv", "pool", "reduce"}),
    ],
)
def test_bundled_networks_are_little_but_convolutions(assets, name, allowed):
    from heimdall.engine.opencl.edges import find_edges

    shapes = [1, 3, 256, 320] if name == "centerface_dynamic" else None
    module = lower(load_graph(assets / "models" / f"{name}.onnx", shapes))
    absorbed = find_edges(module).absorbed
    left = {op.kind for op in module.ops if id(op) not in absorbed}
    assert left - {"reshape"} <= allowed


def test_a_node_that_is_named_like_an_op_type_is_one_node(build):
    """In half precision nodes that make indices run on the CPU: not all that are of such a type."""
    nodes = [node("Abs", "x", "a"), node("Neg", "a")]
    graph = build(nodes, {"x": (1, 3, 2, 2)})
    named = replace(graph.nodes[0], name="Neg")
    module = lowering.lower(replace(graph, nodes=(named, graph.nodes[1])), on_cpu=["Neg"])
    assert [op.spec.falls_back for op in module.ops] == [True, False]
