"""Graphs that are written down layer by layer."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest

from heimdall.lab.standins.builder import INPUT, Builder


def outputs(net: Builder) -> list[np.ndarray]:
    session = ort.InferenceSession(
        net.model().SerializeToString(), providers=["CPUExecutionProvider"]
    )
    given = np.random.default_rng(1).random(net.shapes[INPUT], np.float32)
    return session.run(None, {INPUT: given})


@pytest.mark.parametrize("kernel", [1, 3, 7, (1, 25)])
@pytest.mark.parametrize("stride", [1, 2])
def test_a_convolution_has_the_shape_that_it_says(kernel, stride):
    net = Builder((1, 3, 30, 41))
    net.outputs.append(net.conv(INPUT, 8, kernel, stride, act="Clip"))
    (found,) = outputs(net)
    assert found.shape == net.shapes[net.outputs[0]]


def test_shapes_are_those_that_onnx_infers():
    net = Builder((1, 4, 32, 32))
    x = net.inverted(net.conv(INPUT, 16, 3), 4, 16, 1, 5, "HardSwish", squeezed=True)
    x = net.join(net.up(net.pool(x, 2, 2)), x)
    tokens = net.turned(net.shaped(x, 1, 32, 1024), 0, 2, 1)
    tokens = net.normed(net.linear(tokens, 8))
    seen = net.attended(tokens, net.turned(tokens, 0, 2, 1), tokens)
    net.outputs += [x, seen]
    net.classifier(x, 5)
    assert [each.shape for each in outputs(net)] == [net.shapes[name] for name in net.outputs]


def test_weights_of_the_same_shape_are_shared_unless_the_input_is_the_same():
    def count(shared: bool) -> int:
        net = Builder((1, 8, 4, 4), shared=shared)
        first, second = net.conv(INPUT, 8, 3), net.conv(INPUT, 8, 3)
        net.outputs.append(net.conv(net.plus(first, second), 8, 3))
        return sum(len(each.dims) == 4 for each in net.constants.values())

    assert count(shared=True) == 2
    assert count(shared=False) == 3


def test_the_same_network_is_built_each_time():
    def built() -> bytes:
        net = Builder((1, 3, 8, 8))
        net.outputs.append(net.conv(INPUT, 4, 3))
        return net.model().SerializeToString()

    assert built() == built()
