"""An op with a kernel is one class: the engine asks it for all that it wants to know."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from onnx import helper

from heimdall.engine.opencl.kernel_op import PictureOp, only
from heimdall.engine.opencl.lowering import lower
from heimdall.engine.opencl.operators.context import TABLE, Operator
from heimdall.engine.opencl.ops_picture import Gather
from heimdall.engine.opencl.verify import BrokenModuleError, verify

SHAPE = (1, 5, 6, 7)


@dataclass(frozen=True)
class Mirror(PictureOp):
    """Left is right."""

    def plan_pictures(self, inputs, outputs, traits):
        x = only(inputs)
        picked = Gather(tuple(range(x.height)), tuple(range(x.width))[::-1])
        return picked.plan_pictures(inputs, outputs, traits)

    def operations(self, inputs, y):
        return 1234

    def fits(self, inputs, outputs):
        return inputs == outputs


@pytest.fixture
def graph(build, monkeypatch):
    """Two convolutions with a mirror between, under the name of an operator that there is."""
    monkeypatch.setitem(TABLE, "Sign", Operator(lambda c: [c.op(Mirror(), "a")], False))
    kernel = np.eye(5, dtype=np.float32).reshape(5, 5, 1, 1)
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["a"]),
        helper.make_node("Sign", ["a"], ["b"]),
        helper.make_node("Concat", ["b", "a"], ["y"], axis=1),
    ]
    return build(nodes, {"x": SHAPE}, {"k": kernel})


def test_a_new_op_over_pictures_runs_where_it_is_put(graph, engine, shared):
    network = engine.load(graph)
    x = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    found = shared.run(network, network.new_state(), {"x": x})["y"]
    assert np.array_equal(found, np.concatenate([x[..., ::-1], x], axis=1))
    (op,) = (op for op in network.ops if op.kind == "mirror")
    assert op.flops == 1234
    network.close()


def test_its_own_rule_is_verified(graph):
    module = lower(graph)
    verify(module)
    module.shapes["b"] = (1, 5, 6, 8)
    with pytest.raises(BrokenModuleError, match=r"mirror -> b .*: does not make 1x5x6x8 of"):
        verify(module)
