"""A module that is damaged does not pass, whatever the damage; a good one does.

That the bundled networks and random ones stay whole through every pass, ``test_whole.py`` and
``test_random_networks.py`` show as well: nothing is loaded that was not verified. So does
``test_onnx_nodes.py`` for every operator.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from onnx import TensorProto, helper

from heimdall.engine.opencl.launch import Traits
from heimdall.engine.opencl.lowered import Conv
from heimdall.engine.opencl.lowering import lower
from heimdall.engine.opencl.passes import run_passes
from heimdall.engine.opencl.verify import BrokenModuleError, verify
from heimdall.inspection import load_networks
from heimdall.models.catalog import CATALOG
from tests.engine.opencl.patterns import INSTANCE_NORM, instance_norm, node

CPU, GPU = Traits("cpu"), Traits("gpu", 4)
SHAPE = {"x": (1, 32, 12, 12)}
CONSTANTS = {
    "k": np.ones((16, 32, 3, 3), np.float32),
    "b": np.ones(16, np.float32),
    "t": np.ones((32, 16, 2, 2), np.float32),
    "d": np.ones((32, 1, 3, 3), np.float32),
    "p": np.ones((64, 32, 1, 1), np.float32),
    "m": np.ones((12, 5), np.float32),
    "pads": np.array([0, 0, 1, 1, 0, 0, 1, 1]),
    "flat": np.array([1, 32, 144]),
    "wide": np.array([3, 32, 12, 12]),
    "starts": np.array([2, 1]),
    "ends": np.array([9, 10]),
    "axes": np.array([1, 2]),
    "scales": np.array([1, 1, 2, 2], np.float32),
    **INSTANCE_NORM,
}


# the kind of op that the passes leave -> nodes of which they make it
NODES = {
    "conv": [node("Conv", "x k b", pads=[1, 1, 1, 1], strides=[2, 2])],
    "conv of a matrix": [node("MatMul", "x m")],
    "conv transposed": [node("ConvTranspose", "x t", strides=[2, 2])],
    "conv and residual": [node("Conv", "x k", "c"), node("Conv", "x k b", "r"), node("Add", "r c")],
    "separable": [node("Conv", "x d", "c", group=32, pads=[1, 1, 1, 1]), node("Conv", "c p")],
    "elementwise": [node("Exp", "x", "a"), node("Mul", "a x")],
    "pool": [node("MaxPool", "x", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)],
    "moments": instance_norm(),
    "reduce": [node("ReduceMax", "x", axes=[1, 2], keepdims=0)],
    "gather": [node("Resize", "x  scales", mode="nearest")],
    "linear": [node("Resize", "x  scales", mode="linear")],
    "pad": [node("Pad", "x pads", mode="reflect")],
    "fillhalo": [node("Pad", "x pads", "a", mode="reflect"), node("Conv", "a k")],
    "lrn": [node("LRN", "x", size=3)],
    "concat": [node("Exp", "x", "a"), node("Concat", "x a", axis=1)],
    "slice": [node("Slice", "x starts ends axes")],
    "transpose": [node("Transpose", "x", perm=[0, 3, 1, 2])],
    "reshape": [node("Reshape", "x flat")],
    "expand": [node("Expand", "x wide")],
}
LOWERED = {"pad", "expand"}  # what passes would change is looked at before them


@pytest.fixture(params=NODES)
def module(request, build):
    """A good module with an op of that kind."""
    nodes = NODES[request.param]
    used = {name for each in nodes for name in each.input}
    constants = {name: array for name, array in CONSTANTS.items() if name in used}
    made = lower(build(nodes, SHAPE, constants))
    if request.param not in LOWERED:
        run_passes(made, CPU)
    assert request.param.split()[0] in [op.kind for op in made.ops]
    verify(made)
    return made


def broken(module, said):
    with pytest.raises(BrokenModuleError, match=said):
        verify(module, "a pass")


# Axes whose sizes only the output's shape says: channels of a border, what is repeated, and an
# ``output_padding``.
FREE = {"gather": (1,), "expand": (0,), "conv transposed": (2, 3)}


def test_no_size_of_any_tensor_may_change(request, module):
    free = FREE.get(request.node.callspec.params["module"], ())
    for op in module.ops:
        for name in op.outputs:
            whole = module.shapes[name]
            for axis in {*range(len(whole))}.difference(free):
                longer = (*whole[:axis], whole[axis] + 100, *whole[axis + 1 :])
                module.shapes[name] = longer
                broken(module, f"after a pass: {op.kind} -> .*: does not make ")
            module.shapes[name] = whole
    verify(module)


def test_every_tensor_has_a_shape(module):
    for op in module.ops:
        for name in (*op.inputs, *op.outputs):
            shape = module.shapes.pop(name)
            broken(module, f"'{name}' has no shape")
            module.shapes[name] = shape


def test_inputs_are_made_before_they_are_read(module):
    last = module.ops[-1]
    module.replace(last, replace(last, inputs=(last.output, *last.inputs[1:])))
    broken(module, f"{last.kind} -> y .*: reads 'y', which nothing before it makes")


def test_no_input_is_left_out(module):
    last = module.ops[-1]
    module.replace(last, replace(last, inputs=()))
    broken(module, f"{last.kind} -> ")


def test_nothing_is_made_twice(module):
    module.ops.append(module.ops[-1])
    broken(module, "makes '.*', which is there already")


def test_inputs_and_constants_are_not_overwritten(module):
    module.replace(module.ops[-1], replace(module.ops[-1], outputs=("x",)))
    broken(module, "makes 'x', which is there already")


def test_all_outputs_are_made(module):
    module.outputs = (*module.outputs, "z")
    broken(module, "after a pass: nothing makes the output 'z'")


def test_no_node_is_forgotten(module):
    for op in list(module.ops):
        module.replace(op, replace(op, nodes=()))
    broken(module, f"no op stands for node '{min(module.graph.needed)}'")


def test_a_convolution_fits_its_weights(build):
    module = lower(build(NODES["conv"], SHAPE, {n: CONSTANTS[n] for n in "kb"}))
    (op,) = module.ops
    conv = op.spec
    assert isinstance(conv, Conv)
    for wrong in (
        replace(conv, weights=conv.weights[:, :31]),
        replace(conv, weights=conv.weights[:15]),
        replace(conv, bias=np.ones(15, np.float32)),
        replace(conv, spec=replace(conv.spec, pads=(0, 0, 0, 0))),
        replace(conv, spec=replace(conv.spec, groups=2)),
    ):
        module.ops = [replace(op, spec=wrong)]
        broken(module, "conv -> y .*: does not make 1x16x6x6 of 1x32x12x12")


def test_a_cast_keeps_the_count():
    from heimdall.graph.graph import graph_from_model

    proto = helper.make_graph(
        [node("Cast", "n", "f", to=TensorProto.FLOAT), node("Exp", "f")],
        "test",
        [helper.make_tensor_value_info("n", TensorProto.INT64, [4, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 3])],
    )
    model = helper.make_model(proto, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    module = lower(graph_from_model(model))
    assert module.ops[0].kind == "cast"
    module.shapes["f"] = (4, 4)
    broken(module, "cast -> f .*: does not make 4x4 of 4x3")


def test_fallback_ops_read_and_make_what_the_graph_names(build):
    graph = build([node("Exp", "x", "a"), node("Tanh", "a")], SHAPE)
    module = lower(graph, ["Tanh"])
    verify(module)
    first, last = module.ops
    name = module.tensor("other", module.shapes["a"])
    module.replace(first, replace(first, outputs=(name,)))
    module.replace(last, replace(last, inputs=(name,)))
    broken(module, "fallback -> y .*: runs in onnxruntime, where no tensor is called 'other'")


def test_ops_that_are_known_to_fit_are_not_looked_at_again(build):
    module = lower(build(NODES["elementwise"], SHAPE))
    module.shapes["a"] = (1, 32, 12, 13)
    broken(module, "elementwise -> a")
    verify(module, fitting=module.ops)
    module.replace(module.ops[-1])
    with pytest.raises(BrokenModuleError, match="nothing makes the output"):
        verify(module, fitting=module.ops)


@pytest.mark.parametrize("name", CATALOG)
def test_bundled_networks_are_whole_after_every_pass(name):
    for graph in load_networks(name):
        for traits in (CPU, GPU):
            module = lower(graph)
            run_passes(module, traits)
            verify(module)
