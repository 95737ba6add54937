"""The networks of TOP's Table II, beside the table and the files of the onnx package."""

from __future__ import annotations

from collections import Counter
from math import prod

import onnx
import pytest

from heimdall.errors import ConfigError
from heimdall.lab.bench.standin import standin_path
from heimdall.lab.simulator.together.networks import ARCHITECTURES, network


@pytest.mark.parametrize(
    ("name", "ops", "blocks", "gflop"),
    [("Inception-V3", 119, 13, 5.7), ("ResNet-50", 87, 5, 7.7), ("SqueezeNet", 38, 12, 1.56)],
)
def test_they_have_the_operators_and_blocks_of_table_2(name, ops, blocks, gflop):
    made = network(name)
    assert (len(made.ops), len(made.blocks)) == (ops, blocks)
    assert sum(op.flops for op in made.ops) / 1e9 == pytest.approx(gflop, rel=0.02)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_ops_need_what_is_before_them_and_blocks_one_tensor_of_the_one_before(name):
    made = network(name)
    assert [start for start, _ in made.blocks[1:]] == [end for _, end in made.blocks[:-1]]
    assert made.blocks[-1][1] == len(made.ops)
    for start, end in made.blocks:
        outside = {n for op in range(start, end) for n in made.ops[op].needs if n < start}
        assert outside == {start - 1}
    for number, op in enumerate(made.ops):
        assert all(need < number for need in op.needs)
        assert [made.ops[need].output for need in op.needs if need >= 0] == [
            shape for need, shape in zip(op.needs, op.inputs, strict=True) if need >= 0
        ]


@pytest.mark.parametrize(
    ("name", "standin", "other"),
    [
        ("ResNet-50", "light:resnet50", {}),
        # Its version 1.1, whose first layer is smaller than the paper's.
        ("SqueezeNet", "light:squeezenet", {(96, 3, 7, 7): 1, (16, 96, 1, 1): 1}),
    ],
)
def test_their_convolutions_are_those_of_the_onnx_package(name, standin, other):
    graph = onnx.load(standin_path(standin)).graph
    shapes = {item.name: tuple(axis.dim_value for axis in item.type.tensor_type.shape.dim)
              for item in graph.input}  # fmt: skip
    for node in graph.node:
        if node.op_type == "ConstantOfShape":  # of a shape that is an initializer
            shapes[node.output[0]] = _constant(graph, node.input[0])
    theirs = Counter(shapes[node.input[1]] for node in graph.node if node.op_type == "Conv")
    made = [op for op in network(name).ops if op.kind == "conv"]
    ours = Counter((op.output[0], op.inputs[0][0], *op.kernel) for op in made)
    assert ours - theirs == Counter(other)
    assert (theirs - ours).total() == len(other)


def _constant(graph, name):
    (found,) = [item for item in graph.initializer if item.name == name]
    return tuple(int(each) for each in onnx.numpy_helper.to_array(found))


def test_flops_and_bytes_by_hand():
    first = network("ResNet-50").ops[0]  # 7 x 7, 3 to 64 channels, 112 x 112
    assert first.flops == 2 * 7 * 7 * 3 * 64 * 112 * 112
    assert first.moved_bytes == 4 * (3 * 224 * 224 + 64 * 112 * 112 + 64 * 3 * 7 * 7)
    pool = network("SqueezeNet").ops[-1]
    assert pool.flops == prod(pool.inputs[0])


def test_a_network_that_is_not_written_down():
    with pytest.raises(ConfigError, match="VGG"):
        network("VGG")
