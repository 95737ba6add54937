"""Every file of kernels, once, over small tensors: a race or an access outside of a buffer that
Oclgrind is to find (``test_implementations``) need not wait until a network happens to use it."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import numpy as np
import pyopencl as cl
import pytest
from onnx import helper

from heimdall.engine.opencl.conv_source import KERNELS
from heimdall.engine.opencl.engine import OpenCLEngine
from heimdall.engine.opencl.launch import Traits

TOLERANCE = 1e-3
PROCESSORS = {"cpu": Traits("cpu", 8, 1, 16), "gpu": Traits("gpu", 4)}
ONLY_CPU = ("conv_separable", "walk", "winograd", "winograd_input")


def entries(file):
    return set(re.findall(r"__kernel void (\w+)\(", file.read_text()))


# These need a cache, or computed indices: test_cached_attention.py runs them.
CACHED = {"append", "turn", "cached_scores", "cached_softmax", "cached_values", "lookup"}
PACKED = {"packed_product", "packed_rows"}  # packed weights: test_packed_product.py
FILES = {
    file.stem: entries(file)
    for file in sorted(KERNELS.glob("*.cl"))
    if entries(file) and file.stem not in CACHED | PACKED
}


def node(op, inputs, outputs="y", **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def ints(*values):
    return np.array(values, np.int64)


def floats(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32) / 4


def conv(*shape, op="Conv", x="a", **attributes):
    """A layer with weights of that shape, and what follows it."""
    return [node(op, f"{x} k", "c", **attributes), node("Relu", "c")], {"k": floats(*shape)}


PICTURE = (1, 20, 6, 7)
SEPARABLE = [
    node("Conv", "a d", "b", group=20, pads=[1, 1, 1, 1]),
    node("Conv", "b p", "c"),
    node("Relu", "c"),
]
ONE = [1, 1, 1, 1]
POOL = {"kernel_shape": [3, 3], "pads": ONE}
WALKED = [  # many launches
    *(node("MaxPool", before, after, **POOL) for before, after in itertools.pairwise("abcdef")),
    node("Conv", "f k", "g"),
    *(node("MaxPool", before, after, **POOL) for before, after in itertools.pairwise("ghijy")),
]
# A file of kernels: nodes that read "a" (a kernel's result) or "x", their constants, and its shape
CASES = {
    "arg": ([node("ArgMax", "a", "i", axis=1), node("Cast", "i", to=1)], {}, PICTURE),
    "conv_dense": (*conv(18, 20, 3, 3, strides=[2, 2], pads=ONE), PICTURE),
    "conv_depthwise": (*conv(20, 1, 3, 3, pads=ONE, group=20), PICTURE),
    "conv_few": (*conv(3, 20, 3, 3, pads=ONE), PICTURE),
    "conv_grouped": (*conv(18, 10, 3, 3, strides=[2, 2], pads=ONE, group=2), PICTURE),
    "conv_planar": (*conv(4, 3, 3, 3, pads=ONE), (1, 3, 6, 40)),
    "conv_separable": (SEPARABLE, {"d": floats(20, 1, 3, 3), "p": floats(18, 20, 1, 1)}, PICTURE),
    "conv_stamp": (*conv(20, 1, 2, 2, op="ConvTranspose", strides=[2, 2]), PICTURE),
    "cumulate": ([node("CumSum", "a n")], {"n": ints(1)}, (2, 5, 3)),
    "elementwise_array": ([node("Mul", "a m")], {"m": floats(5, 3)}, (2, 5, 3)),
    "elementwise_picture": ([node("Mul", "a m")], {"m": floats(20, 1, 1)}, PICTURE),
    "gather": ([node("Resize", "a r s", mode="nearest", nearest_mode="floor")],
               {"r": floats(0), "s": np.array([1, 1, 2, 3], np.float32)}, PICTURE),
    "grid_sample": ([node("GridSample", "a g")], {"g": floats(1, 4, 5, 2)}, PICTURE),
    "halo": ([node("Pad", "a p", "b", mode="reflect"), node("Conv", "b k")],
             {"p": ints(0, 0, 2, 1, 0, 0, 3, 2), "k": floats(18, 20, 3, 3)}, PICTURE),
    "linear": ([node("Resize", "a r s", mode="linear")],
               {"r": floats(0), "s": np.array([1, 1, 2, 3], np.float32)}, PICTURE),
    "lrn": ([node("LRN", "a", size=5, alpha=0.1)], {}, PICTURE),
    "moments": ([node("InstanceNormalization", "a s b")], {"s": floats(4), "b": floats(4)},
                (1, 4, 80, 8)),
    "move_channels": ([node("Exp", "a", "b"), node("Concat", "a b a", "c", axis=1),
                       node("Conv", "c k", pads=ONE)], {"k": floats(6, 60, 3, 3)}, PICTURE),
    "normalise": ([node("LayerNormalization", "a s t")], {"s": floats(37), "t": floats(37)},
                  (2, 5, 37)),
    "pack": ([node("Transpose", "a", "t", perm=[0, 2, 1, 3]), node("Conv", "t k")],
             {"k": floats(18, 6, 3, 3)}, PICTURE),
    "pool": ([node("MaxPool", "a", kernel_shape=[3, 3], strides=[2, 2], pads=ONE)], {}, PICTURE),
    "reduce_array": ([node("ReduceMean", "a", axes=[1])], {}, (2, 5, 3)),
    "reduce_picture": ([node("GlobalAveragePool", "a")], {}, (1, 4, 80, 8)),
    "resample": ([node("Resize", "a r s", mode="cubic")],
                 {"r": floats(0), "s": np.array([1, 1, 2, 1.5], np.float32)}, PICTURE),
    "softmax": ([node("Softmax", "a", axis=1)], {}, (2, 5, 3)),
    "take": ([node("Gather", "a i", axis=1)], {"i": ints(3, 0, 3)}, (2, 5, 3)),
    "walk": (WALKED, {"k": floats(18, 20, 3, 3)}, PICTURE),
    "window": ([node("MaxPool", "a", kernel_shape=[2, 2, 2])], {}, (1, 3, 4, 4, 4)),
    "winograd": (*conv(32, 32, 3, 3, pads=ONE), (1, 32, 16, 24)),
    "winograd_input": (*conv(16, 3, 9, 9, x="x", pads=[4, 4, 4, 4]), (1, 3, 16, 24)),
}  # fmt: skip


@pytest.fixture
def launched(monkeypatch):
    """The names of the kernels that were enqueued."""
    found: set[str] = set()
    enqueue = cl.enqueue_nd_range_kernel

    def remember(queue, kernel, *more):
        found.add(kernel.function_name)
        return enqueue(queue, kernel, *more)

    monkeypatch.setattr(cl, "enqueue_nd_range_kernel", remember)
    return found


KINDS = [
    (file, kind) for file in FILES for kind in PROCESSORS if kind == "cpu" or file not in ONLY_CPU
]


@pytest.mark.parametrize(("file", "kind"), KINDS)
def test_the_kernels_of_each_file_are_run_and_right(
    engine_for, build, shared, launched, file, kind
):
    nodes, constants, shape = CASES[file]
    before = [node("Neg", "x", "a")] if "a" in nodes[0].input else []
    graph = build([*before, *nodes], {"x": shape}, constants)
    random = np.random.default_rng(0)
    inputs = {"x": random.uniform(-2, 2, shape).astype(np.float32)}
    engine = engine_for(PROCESSORS[kind])
    if file == "walk":  # also where the driver says that it is a GPU
        abilities = replace(engine.abilities, walk=True)
        engine = OpenCLEngine(traits=engine.traits, keep_kernels=False, abilities=abilities)
    network = engine.load(graph)
    assert not any(op.fallback for op in network.ops)
    found = shared.run(network, network.new_state(), inputs)
    network.close()
    assert FILES[file] <= launched
    assert shared.relative_error(found, shared.reference(graph, inputs)) <= TOLERANCE
