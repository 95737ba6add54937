"""Shuffles of channels: taken into the convolutions behind them, with the same results."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

CHANNELS, SIDE = 24, 7


def node(op, inputs, output, **attributes):
    return helper.make_node(op, inputs.split(), [output], **attributes)


def shuffle(x, output):
    """The nodes of a channel shuffle; it reads the constants ``split`` and ``join``."""
    return [
        node("Reshape", f"{x} split", f"{output}_split"),
        node("Transpose", f"{output}_split", f"{output}_mixed", perm=[0, 2, 1, 3, 4]),
        node("Reshape", f"{output}_mixed join", output),
    ]


def constants(groups, **weights):
    random = np.random.default_rng(7)
    each = CHANNELS // groups
    shapes = {
        "split": np.array([1, groups, each, SIDE, SIDE]),
        "join": np.array([1, CHANNELS, SIDE, SIDE]),
    }
    made = {name: random.normal(size=shape).astype(np.float32) for name, shape in weights.items()}
    return {**shapes, **made}


def kinds(network):
    return [op.kind for op in network.ops]


@pytest.mark.parametrize("last", [1, 3, 4])
@pytest.mark.parametrize("groups", [2, 3, 4])
def test_a_depthwise_layer_moves_before_the_shuffle(build, check, groups, last):
    nodes = [
        node("Conv", "x a", "c", group=groups),
        node("Relu", "c", "r"),
        *shuffle("r", "s"),
        node("Conv", "s b bias", "d", group=CHANNELS, pads=[1] * 4),
        node("PRelu", "d slope", "p"),
        node("Conv", "p k", "e", group=last),
        node("Add", "e x", "y"),
    ]
    each, per = CHANNELS // groups, CHANNELS // last
    known = constants(
        groups,
        a=(CHANNELS, each, 1, 1),
        b=(CHANNELS, 1, 3, 3),
        bias=CHANNELS,
        slope=(CHANNELS, 1, 1),
        k=(CHANNELS, per, 1, 1),
    )
    network = check(build(nodes, {"x": (1, CHANNELS, SIDE, SIDE)}, known))
    assert set(kinds(network)) <= {"conv", "separable"}


@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("last", [1, 4])
def test_a_layer_behind_two_shuffles_reads_through_both(build, check, kernel, last):
    nodes = [
        node("Conv", "x a", "c", group=4),
        *shuffle("c", "s"),
        *shuffle("s", "t"),
        node("Conv", "t k", "y", group=last, pads=[kernel // 2] * 4),
    ]
    known = constants(
        4, a=(CHANNELS, CHANNELS // 4, 1, 1), k=(CHANNELS, CHANNELS // last, kernel, kernel)
    )
    check(build(nodes, {"x": (1, CHANNELS, SIDE, SIDE)}, known))


def test_a_shuffle_that_others_read_is_computed(build, check):
    nodes = [
        node("Conv", "x a", "c", group=4),
        *shuffle("c", "s"),
        node("Conv", "s k", "d", group=4),
        node("Mul", "d s", "y"),
    ]
    known = constants(4, a=(CHANNELS, 6, 1, 1), k=(CHANNELS, 6, 1, 1))
    check(build(nodes, {"x": (1, CHANNELS, SIDE, SIDE)}, known))


def test_a_depthwise_layer_with_a_residual_stays_behind_the_shuffle(build, check):
    nodes = [
        node("Conv", "x a", "c", group=4),
        *shuffle("c", "s"),
        node("Conv", "s b", "d", group=CHANNELS),
        node("Add", "d x", "e"),
        node("Conv", "e k", "y", group=4),
    ]
    known = constants(4, a=(CHANNELS, 6, 1, 1), b=(CHANNELS, 1, 1, 1), k=(CHANNELS, 6, 1, 1))
    check(build(nodes, {"x": (1, CHANNELS, SIDE, SIDE)}, known))
