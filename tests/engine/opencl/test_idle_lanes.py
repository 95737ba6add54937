"""Lanes beyond the last channel are multiplied by weights of zero: they must be finite.

An inference on NaN leaves NaN in a job's memory; the next one must not see it. And what lies in
other channels of the same block must not show.
"""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from heimdall.engine.opencl.launch import Traits


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def pool(x, y):
    return node("MaxPool", x, y, kernel_shape=[1, 1])


def numbers(*shape):
    return np.random.default_rng(0).uniform(0.1, 1, shape).astype(np.float32)


def full_of_infinity(x, zero):
    """``zero`` is 0, and where x was is free again and holds -inf."""
    return [node("Mul", f"{x} nothing", "i"), node("Log", "i", "h"),
            node("ReduceMax", "h", "m", keepdims=1), node("Exp", "m", zero)]  # fmt: skip


def joined(outputs=20, size=1, first=3, second=3):
    """Two tensors moved into one picture, channel by channel."""
    nodes = [
        *full_of_infinity("x", "zero"), node("Add", "z zero", "d"), pool("d", "e"),
        node("Concat", "d e", "j", axis=1), node("Conv", "j k", "y", pads=[size // 2] * 4),
    ]  # fmt: skip
    weights = {"k": numbers(outputs, first + second, size, size), "nothing": np.float32(0)}
    return nodes, {"x": (1, 32, 8, 9), "z": (1, first, 8, 9)}, weights


def product(size=10, outputs=7):
    """An array in the place of a picture of one pixel."""
    nodes = [
        *full_of_infinity("x", "zero"), node("Add", "z zero", "d"),
        node("Softmax", "d", "s", axis=3), node("ReduceSum", "s axis", "v", keepdims=0),
        node("Gemm", "v w", "y", transB=1),
    ]  # fmt: skip
    weights = {"w": numbers(outputs, size), "axis": np.array([1, 2], np.int64)}
    return nodes, {"x": (1, 32, 8, 9), "z": (1, 40, size)}, weights | {"nothing": np.float32(0)}


NETWORKS = {
    "a concat": joined(),
    "a concat of few outputs": joined(outputs=2),
    "a concat with a halo": joined(outputs=40, size=3),
    "a vector": product(),
    "a vector of few outputs": product(9, 3),
}
KINDS = {"cpu": Traits("cpu", 16), "narrow cpu": Traits("cpu", 8, 2, 16), "gpu": Traits("gpu", 4)}


@pytest.fixture(scope="module", params=KINDS)
def any_engine(request, engine_for):
    return engine_for(KINDS[request.param])


@pytest.mark.parametrize("name", NETWORKS)
def test_infinity_and_broken_inferences_leave_nothing_behind(any_engine, shared, build, name):
    nodes, shapes, constants = NETWORKS[name]
    graph = build(nodes, shapes, constants)
    network = any_engine.load(graph)
    state, random = network.new_state(), np.random.default_rng(0)
    for value in (1.0, np.nan, np.inf, -np.inf, 1.0):
        inputs = {k: random.uniform(0.5, 2, s).astype(np.float32) for k, s in shapes.items()}
        inputs = {k: a * np.float32(value) for k, a in inputs.items()}
        found = shared.run(network, state, inputs)
        if np.isfinite(value):
            assert shared.relative_error(found, shared.reference(graph, inputs)) < 1e-4
    network.close()


def constant(*values):
    return np.array(values, np.int64)


CUT = {"begin": constant(0), "end": constant(6), "axis": constant(1)}
ROWS = {"begin": constant(0, 1), "end": constant(6, 7), "axis": constant(1, 2)}
UNALIGNED = {"begin": constant(3), "end": constant(9), "axis": constant(1)}
CUTS = {"a view": CUT, "rows": ROWS, "lane by lane": UNALIGNED}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("outputs", [2, 20])
def test_channels_that_were_cut_off_do_not_show(any_engine, shared, build, cut, outputs):
    nodes = [pool("x", "a"), node("Slice", "a begin end axis", "b"), node("Conv", "b k", "y")]
    shape = {"x": (1, 40, 8, 9)}
    graph = build(nodes, shape, CUTS[cut] | {"k": numbers(outputs, 6, 1, 1)})
    network = any_engine.load(graph)
    x = numbers(*shape["x"])
    first = int(CUTS[cut]["begin"][0])
    x[:, :first], x[:, first + 6 :] = np.inf, np.nan
    found = shared.run(network, network.new_state(), {"x": x})
    assert shared.relative_error(found, shared.reference(graph, {"x": x})) < 1e-4
    network.close()


@pytest.mark.parametrize("channels", [1, 6])
def test_infinity_that_reaches_all_channels_stays_infinity(any_engine, shared, build, channels):
    """Added to six channels, and times weights of one sign: -inf, not NaN."""
    nodes = [pool("x", "a"), pool("z", "b"), node("Add", "a b", "c"), node("Conv", "c k", "y")]
    shapes = {"x": (1, 6, 4, 5), "z": (1, channels, 4, 5)}
    graph = build(nodes, shapes, {"k": numbers(20, 6, 1, 1)})
    network = any_engine.load(graph)
    inputs = {"x": numbers(*shapes["x"]), "z": numbers(*shapes["z"])}
    inputs["z"][..., 2] = -np.inf
    found = shared.run(network, network.new_state(), inputs)["y"]
    assert np.allclose(found, shared.reference(graph, inputs)["y"])
    network.close()


def test_padding_with_infinity_stays_in_its_channels(any_engine, shared, build):
    """As exporters write it in front of MaxPool."""
    pads = np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64)
    nodes = [pool("x", "a"), node("Pad", "a pads least", "b"),
             pool("b", "c"), node("Conv", "c k", "y")]  # fmt: skip
    shape = {"x": (1, 6, 4, 5)}
    fixed = {"pads": pads, "least": np.float32(-np.inf), "k": numbers(20, 6, 1, 1)}
    graph = build(nodes, shape, fixed)
    network = any_engine.load(graph)
    x = numbers(*shape["x"])
    found = shared.run(network, network.new_state(), {"x": x})["y"]
    assert np.allclose(found, shared.reference(graph, {"x": x})["y"])
    network.close()
