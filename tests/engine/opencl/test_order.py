"""What layers wait for, held against the numbers in memory that each of them reads and writes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from onnx import helper

from heimdall.engine.opencl.compiled import Compiled
from heimdall.engine.opencl.launch import Traits
from heimdall.engine.opencl.lowered import Fallback
from heimdall.engine.opencl.memory import needs_clearing
from heimdall.engine.opencl.ops_picture import FillHalo
from heimdall.engine.opencl.placed import Array, Picture
from heimdall.graph.branches import ancestors
from tests.engine.opencl.drawn import search
from tests.engine.opencl.test_random_networks import a_network, drawn_graph

drawn = search(25)


@pytest.fixture(scope="module", params=["sequence", "branches"])
def compiled_for(request, engine_for):
    engine = engine_for(Traits("cpu", 8, 2, 16))
    planned = engine.for_branches if request.param == "branches" else engine
    return lambda graph: Compiled(planned, graph, ())


def floats_of(value, *, halo=True):
    """Which numbers of the arena a value takes."""
    storage = value.storage
    own = np.zeros(storage.floats, bool)
    if isinstance(value, Array) or storage.picture is None:
        own[:] = True
        return own
    whole = storage.layout
    top, left = whole.halo[:2]
    stored = own[: whole.floats].reshape(whole.blocks, whole.stored_height, -1, whole.block)
    first = value.start // whole.block
    blocks = stored[first : first - (-value.channels // whole.block)]
    inner = blocks[:, top : top + value.height, left : left + value.width]
    (blocks if halo else inner)[...] = True
    return own


class Memory:
    """Which numbers of the arena each layer reads and writes."""

    def __init__(self, compiled):
        count = len(compiled.placer.ops)
        self.reads = np.zeros((count, compiled.arena_floats), bool)
        self.writes = np.zeros((count, compiled.arena_floats), bool)
        storages, step_layer = compiled.placer.storages, []
        for layer, placed in enumerate(compiled.placer.ops):
            for step in placed.steps:
                step_layer.append(layer)
                fills = isinstance(step.spec, FillHalo)
                for value in (*step.inputs, *(step.outputs if fills else ())):
                    self._mark(self.reads, layer, value, halo=True)
                for value in step.outputs:
                    all_of_it = fills or step.clears or isinstance(step.spec, Fallback)
                    self._mark(self.writes, layer, value, halo=all_of_it)
            for bound in compiled.bound[layer]:
                if "scratch" in bound.storages:
                    scratch = bound.storages["scratch"]
                    span = slice(scratch.offset, scratch.offset + scratch.floats)
                    self.reads[layer, span] = self.writes[layer, span] = True
        for storage in storages:
            if needs_clearing(storage, storages):
                whole = Picture(storage, *storage.picture)
                ring = floats_of(whole) & ~floats_of(whole, halo=False)
                own = self.writes[step_layer[storage.first], storage.offset :]
                own[: len(ring)] |= ring

    @staticmethod
    def _mark(kind, layer, value, *, halo):
        if isinstance(value, (Picture, Array)) and not value.storage.dedicated:
            own = floats_of(value, halo=halo)
            kind[layer, value.storage.offset :][: len(own)] |= own

    def clash(self, a, b):
        used = self.reads[a] | self.writes[a]
        return bool((self.writes[a] & (self.reads[b] | self.writes[b])).any()) or bool(
            (self.writes[b] & used).any()
        )


@drawn
@given(*a_network)
def test_layers_that_touch_the_same_numbers_wait_for_each_other(
    compiled_for, build, channels, size, kinds, data
):
    graph, _ = drawn_graph(build, channels, size, kinds, data)
    compiled = compiled_for(graph)
    before = ancestors(compiled.needs)
    last = {layer: op for op, layer in enumerate(compiled.layer_of)}
    memory = Memory(compiled)
    for b in last:
        for a in range(b):
            assert before[last[b]] >> last[a] & 1 or not memory.clash(a, b)


def two_branches(build):
    random = np.random.default_rng(0)
    weights = {name: random.standard_normal((16, 16, 3, 3)).astype(np.float32) for name in "uvw"}
    same: dict[str, Any] = {"pads": [1, 1, 1, 1]}
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], "fork"),
        helper.make_node("Conv", ["a", "u"], ["b"], "left", **same),
        helper.make_node("Conv", ["b", "v"], ["c"], "left2", **same),
        helper.make_node("Conv", ["a", "w"], ["d"], "right", **same),
        helper.make_node("Mul", ["c", "d"], ["y"], "join"),
    ]
    return build(nodes, {"x": (1, 16, 8, 8)}, weights)


def test_only_a_plan_for_branches_lets_them_run_together(build, engine_for):
    """One after the other, what "right" makes takes the place of what "left" has made."""
    engine = engine_for(Traits("cpu", 8, 2, 16))
    planned, plain = (each.load(two_branches(build)) for each in (engine.for_branches, engine))
    fork, _, left2, right, join = range(5)
    assert [op.nodes[-1] for op in planned.ops] == ["fork", "left", "left2", "right", "join"]
    assert planned.needs[right] == {fork}
    assert planned.needs[join] == {left2, right}
    assert plain.needs[right] == {left2}
    assert planned.memory.activation_bytes > plain.memory.activation_bytes
    assert engine.for_branches.for_branches.plans_branches


def test_a_chain_takes_no_more_memory_in_a_plan_for_branches(build, engine_for):
    engine = engine_for(Traits("cpu", 8, 2, 16))
    names = ["x", *"abcdefgh", "y"]
    nodes = [helper.make_node("Softmax", [a], [b], axis=3) for a, b in itertools.pairwise(names)]
    graph = build(nodes, {"x": (1, 16, 8, 8)})
    sizes = {each.load(graph).memory.activation_bytes for each in (engine, engine.for_branches)}
    assert len(sizes) == 1


def test_who_reads_a_halo_waits_for_whoever_clears_it(build, engine_for):
    """The first to write into a picture of several tensors clears the halo of all of them."""
    engine = engine_for(Traits("cpu", 8, 2, 16)).for_branches
    random = np.random.default_rng(0)
    shapes = {"t": 16, "u": 16, "v": 16, "w": 32}
    weights = {
        name: random.standard_normal((16, depth, 3, 3)).astype(np.float32)
        for name, depth in shapes.items()
    }
    same: dict[str, Any] = {"pads": [1, 1, 1, 1]}
    halved: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = [
        helper.make_node("Softmax", ["x"], ["a"], "before", axis=1),
        helper.make_node("MaxPool", ["a"], ["p"], "fork", **halved),
        helper.make_node("Conv", ["p", "t"], ["b"], "first", **same),
        helper.make_node("Conv", ["p", "u"], ["c"], "second", **same),
        helper.make_node("Concat", ["b", "c"], ["d"], "shared", axis=1),
        helper.make_node("Conv", ["c", "v"], ["e"], "reads second", **same),
        helper.make_node("Conv", ["d", "w"], ["f"], "reads both", **same),
        helper.make_node("Mul", ["e", "f"], ["y"], "join"),
    ]
    network = engine.load(build(nodes, {"x": (1, 16, 16, 16)}, weights))
    ops = {op.nodes[-1]: index for index, op in enumerate(network.ops)}
    before = ancestors(network.needs)
    assert not before[ops["second"]] >> ops["first"] & 1
    assert before[ops["reads second"]] >> ops["first"] & 1
