"""The list of passes: run in order, told apart, and blamed for what they break."""

from __future__ import annotations

import numpy as np
import pytest

from heimdall.engine.opencl import passes
from heimdall.engine.opencl.launch import Traits
from heimdall.engine.opencl.lowered import Module
from heimdall.engine.opencl.lowering import lower
from heimdall.engine.opencl.passes import LOWERING, PASSES, run_passes
from heimdall.engine.opencl.verify import BrokenModuleError
from tests.engine.opencl.patterns import INSTANCE_NORM, instance_norm, node

GPU = Traits("gpu")
SHAPE = {"x": (1, 32, 12, 12)}
DEPTHWISE, POINTWISE = np.ones((32, 1, 3, 3), np.float32), np.ones((64, 32, 1, 1), np.float32)


def told(graph, traits=GPU):
    """What each pass that changed something left: (name, kinds of ops)."""
    found = []
    run_passes(lower(graph), traits, lambda name, m: found.append((name, [o.kind for o in m.ops])))
    return found


def test_every_pass_has_a_name_of_its_own():
    names = [name for name, _ in PASSES]
    assert len({LOWERING, *names}) == len(names) + 1


def test_only_passes_that_change_something_are_told(build):
    graph = build([node("Conv", "x p", "c"), node("Relu", "c")], SHAPE, {"p": POINTWISE})
    assert told(graph) == [
        (LOWERING, ["conv", "elementwise"]),
        ("fuse-convolutions", ["conv"]),
    ]


def test_a_pass_may_depend_on_the_device(build):
    layers = [node("Conv", "x d", "c", group=32, pads=[1, 1, 1, 1]), node("Conv", "c p")]
    graph = build(layers, SHAPE, {"d": DEPTHWISE, "p": POINTWISE})
    assert told(graph) == [(LOWERING, ["conv", "conv"])]
    assert told(graph, Traits("cpu"))[-1] == ("fuse-separable", ["separable"])


def test_what_no_output_needs_goes_first(build):
    graph = build([node("Relu", "x", "r"), node("Sigmoid", "x")], SHAPE)
    assert told(graph)[1] == ("drop-unused", ["elementwise"])


def test_a_network_of_views_is_given_a_copy_and_one_with_a_kernel_is_not(build):
    views = [node("Transpose", "x", "t", perm=[0, 2, 3, 1]), node("Flatten", "t")]
    assert told(build(views, SHAPE))[-1][0] == "copy-outputs"
    kernels = [node("Transpose", "x", "t", perm=[0, 2, 3, 1]), node("Exp", "t")]
    assert "copy-outputs" not in dict(told(build(kernels, SHAPE)))


def drop_the_last(module: Module, traits: Traits) -> None:
    del module.ops[-1]


def test_a_pass_that_breaks_a_module_is_named(build, monkeypatch):
    monkeypatch.setattr(passes, "PASSES", (*PASSES[:2], ("cut-tails", drop_the_last), *PASSES[2:]))
    with pytest.raises(BrokenModuleError, match="after cut-tails: nothing makes the output 'y'"):
        run_passes(lower(build([node("Relu", "x")], SHAPE)), GPU)


def test_where_no_pass_was_yet_none_is_blamed(build):
    module = lower(build([node("Relu", "x")], SHAPE))
    module.shapes["y"] = (1, 32, 12, 13)
    with pytest.raises(
        BrokenModuleError, match=r"elementwise -> y \(y\): does not make 1x32x12x13 of"
    ):
        run_passes(module, GPU)


def keep_a_shape_wrong(module: Module, traits: Traits) -> None:
    module.shapes["a"] = (1, 32, 12, 13)


def test_so_is_one_that_only_changes_a_shape(build, monkeypatch):
    monkeypatch.setattr(passes, "PASSES", (("stretch", keep_a_shape_wrong),))
    graph = build([node("Relu", "x", "a"), node("Exp", "a")], SHAPE)
    with pytest.raises(BrokenModuleError, match="after stretch: elementwise -> a"):
        run_passes(lower(graph), GPU)


@pytest.mark.parametrize(
    ("nodes", "constants"),
    [
        (instance_norm(), INSTANCE_NORM),
        (
            [  # hard swish
                node("Add", "x three", "a"),
                node("Clip", "a zero six", "b"),
                node("Mul", "b sixth", "c"),
                node("Mul", "c x"),
            ],
            {
                "three": np.float32(3),
                "zero": np.float32(0),
                "six": np.float32(6),
                "sixth": np.float32(1 / 6),
            },
        ),
        (  # a reshape to the shape there is
            [
                node("Reshape", "x s", "a"),
                node("Exp", "a", "b"),
                node("Reshape", "b t", "c"),
                node("Tanh", "c"),
            ],
            {"s": np.array([1, 32, 144]), "t": np.array([1, 32, 12, 12])},
        ),
    ],
)
def test_fused_ops_stand_for_all_of_their_nodes(build, nodes, constants):
    module = lower(build(nodes, SHAPE, constants))
    run_passes(module, GPU)
    assert {name for op in module.ops for name in op.nodes} == {each.name for each in nodes}
