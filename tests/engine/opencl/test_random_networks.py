"""Random whole networks: ops in drawn order on drawn tensors.

Views, halos, shared storages and the arena only go wrong in combinations. ``HEIMDALL_EXAMPLES``
searches longer.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from onnx import helper

from heimdall.engine import GroupMember
from heimdall.engine.opencl.launch import Traits
from heimdall.errors import ModelError
from tests.engine.groupings import legal_stages
from tests.engine.opencl.drawn import search

drawn = search(15)
TRAITS = {"narrow CPU": Traits("cpu", 8, 2, 16), "GPU": Traits("gpu", 4)}


class Builder:
    """Nodes added one at a time, each to pictures drawn from those made before."""

    def __init__(self, data, channels, size):
        self.data = data
        self.nodes, self.constants = [], {}
        self.made = {"x": (channels, *size)}  # name -> channels, height, width
        self.shape = {"x": (1, channels, *size)}
        self.random = np.random.default_rng(0)

    def pick(self):
        return self.data.draw(st.sampled_from(list(self.made)))

    def draw(self, *choices):
        return self.data.draw(st.sampled_from(choices))

    def constant(self, array):
        name = f"k{len(self.constants)}"
        self.constants[name] = array
        return name

    def weights(self, *shape):
        scale = 1 / np.sqrt(np.prod(shape[1:]))
        return self.constant((self.random.standard_normal(shape) * scale).astype(np.float32))

    def add(self, op, inputs, shape, **attributes):
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name, **attributes))
        self.made[name] = shape
        return name

    # --- one method a kind of node ---

    def conv(self):
        x = self.pick()
        c, h, w = self.made[x]
        depthwise = self.draw(False, True)
        k = self.draw(1, 3, 3, 5)
        stride = self.draw(1, 1, 2)
        outputs = c if depthwise else self.draw(3, 8, 16, 20, 32)
        kernel = self.weights(outputs, 1 if depthwise else c, k, k)
        size = [(side - 1) // stride + 1 for side in (h, w)]
        options = {"pads": [k // 2] * 4, "strides": [stride] * 2, "group": c if depthwise else 1}
        self.add("Conv", [x, kernel], (outputs, *size), **options)

    def unary(self):
        x = self.pick()
        self.add(self.draw("Relu", "Sigmoid", "Tanh", "Neg", "HardSwish", "Abs"), [x], self.made[x])

    def tangent(self):  # no kernel: falls back
        x = self.pick()
        self.add("Atan", [x], self.made[x])

    def binary(self):
        x = self.pick()
        same = [name for name, shape in self.made.items() if shape == self.made[x]]
        other = self.draw(*same, self.weights(1, self.made[x][0], 1, 1))
        self.add(self.draw("Add", "Mul", "Sub"), [x, other], self.made[x])

    def concat(self):
        x = self.pick()
        same = [name for name, shape in self.made.items() if shape[1:] == self.made[x][1:]]
        parts = [x, *(self.draw(*same) for _ in range(self.draw(1, 2)))]
        total = sum(self.made[part][0] for part in parts)
        assume(total <= 96)
        self.add("Concat", parts, (total, *self.made[x][1:]), axis=1)

    def slice(self):
        x = self.pick()
        c, h, w = self.made[x]
        axis = self.draw(1, 1, 2, 3)
        size = (c, h, w)[axis - 1]
        start = self.data.draw(st.integers(0, size - 1))
        start -= start % self.draw(1, 4, 8, 16)
        end = self.data.draw(st.integers(start + 1, size))
        shape = [c, h, w]
        shape[axis - 1] = end - start
        bounds = [self.constant(np.array([value])) for value in (start, end, axis)]
        self.add("Slice", [x, *bounds], tuple(shape))

    def pool(self):
        x = self.pick()
        c, h, w = self.made[x]
        size = ((h + 1) // 2, (w + 1) // 2)
        options = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
        self.add(self.draw("MaxPool", "AveragePool"), [x], (c, *size), **options)

    def resize(self):
        x = self.pick()
        c, h, w = self.made[x]
        assume(h * w <= 400)
        sizes = self.constant(np.array([1, c, 2 * h, 2 * w]))
        mode = self.draw("nearest", "linear")
        self.add("Resize", [x, "", "", sizes], (c, 2 * h, 2 * w), mode=mode)

    def pad(self):
        x = self.pick()
        c, h, w = self.made[x]
        mode = self.draw("constant", "reflect", "edge")
        edge = min(1, h - 1, w - 1) if mode == "reflect" else 1
        pads = self.constant(np.array([0, 0, edge, edge, 0, 0, edge, edge]))
        self.add("Pad", [x, pads], (c, h + 2 * edge, w + 2 * edge), mode=mode)

    def gate(self):
        """Squeeze and excite."""
        x = self.pick()
        c = self.made[x][0]
        mean = self.add("GlobalAveragePool", [x], (c, 1, 1))
        inner = self.add("Conv", [mean, self.weights(c, c, 1, 1)], (c, 1, 1))
        gate = self.add("HardSigmoid", [inner], (c, 1, 1))
        self.add("Mul", [x, gate], self.made[x])

    def shuffle(self):
        x = self.pick()
        c, h, w = self.made[x]
        assume(c % 4 == 0)
        apart = self.constant(np.array([1, 4, c // 4, h, w]))
        together = self.constant(np.array([1, c, h, w]))
        count = len(self.nodes)
        a, b = f"a{count}", f"b{count}"
        self.nodes.append(helper.make_node("Reshape", [x, apart], [a]))
        self.nodes.append(helper.make_node("Transpose", [a], [b], perm=[0, 2, 1, 3, 4]))
        self.add("Reshape", [b, together], (c, h, w))

    def normalise(self):
        x = self.pick()
        c, h, w = self.made[x]
        assume(h * w > 4)
        scale, shift = (self.constant(np.full(c, v, np.float32)) for v in (0.9, 0.1))
        self.add("InstanceNormalization", [x, scale, shift], (c, h, w))

    def soft(self):
        x = self.pick()
        self.add("Softmax", [x], self.made[x], axis=self.draw(1, 2, 3))


KINDS = ["conv", "conv", "conv", "unary", "binary", "concat", "concat", "slice", "slice", "pool",
         "resize", "pad", "pad", "gate", "shuffle", "normalise", "soft", "tangent"]  # fmt: skip


@pytest.fixture(scope="module", params=["this device", *TRAITS])
def processor(request, engine_for):
    return engine_for(TRAITS.get(request.param))


a_network = (
    st.sampled_from([3, 4, 8, 16, 20, 32]),
    st.tuples(st.integers(3, 11), st.integers(3, 11)),
    st.lists(st.sampled_from(KINDS), min_size=2, max_size=12),
    st.data(),
)


def drawn_graph(build, channels, size, kinds, data):
    """The graph, and the shape of its input."""
    builder = Builder(data, channels, size)
    for kind in kinds:
        getattr(builder, kind)()
    read = {name for node in builder.nodes for name in node.input}
    outputs = [name for name in builder.made if name not in read and name != "x"]
    if data.draw(st.booleans()):  # a tensor inside the network is asked for too
        outputs.append(data.draw(st.sampled_from([n for n in builder.made if n != "x"])))
    try:
        graph = build(
            builder.nodes, builder.shape, builder.constants, tuple(dict.fromkeys(outputs)), 18
        )
    except ModelError as error:
        assume("unused" not in str(error))
        raise
    return graph, builder.shape["x"]


@drawn
@given(*a_network)
def test_any_network_in_any_chunks(processor, build, shared, channels, size, kinds, data):
    graph, shape = drawn_graph(build, channels, size, kinds, data)
    network = processor.load(graph)
    state = network.new_state()
    random = np.random.default_rng(len(kinds))
    for _ in range(2):
        inputs = {"x": random.uniform(-1, 1, shape).astype(np.float32)}
        wanted = shared.reference(graph, inputs)
        whole = shared.run(network, state, inputs)
        assert shared.relative_error(whole, wanted) <= 1e-3
    for cuts in (range(len(network.ops)), range(0, len(network.ops), 3)):
        cut = shared.run(network, state, inputs, cuts)
        for name, value in whole.items():
            np.testing.assert_array_equal(cut[name], value)
    network.close()


@pytest.fixture(scope="module")
def eager(processor):
    """Lanes take what they can, however little is gained."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(processor._lanes, "least_ns", -1)
        yield


@drawn
@given(*a_network)
@pytest.mark.usefixtures("eager")
def test_any_network_in_any_stages(processor, build, shared, channels, size, kinds, data):
    """Branches at the same time, planned for it or not: the same numbers as one after the other."""
    graph, shape = drawn_graph(build, channels, size, kinds, data)
    processor.lanes = data.draw(st.integers(1, 3))
    random = np.random.default_rng(len(kinds))
    inputs = {"x": random.uniform(-1, 1, shape).astype(np.float32)}
    networks = [processor.load(graph), processor.for_branches.load(graph)]
    wanted = shared.run(networks[0], networks[0].new_state(), inputs)
    for network in networks:
        state = network.new_state()
        for _ in range(2):
            network.write(state, inputs)
            run_in_stages(processor, network, state, data)
            assert shared.same(network.read(state), wanted)
        network.close()


def run_in_stages(processor, network, state, data):
    start = 0
    for fallback, ops in itertools.groupby(network.ops, lambda op: op.fallback):
        end = start + len(list(ops))
        if fallback:
            network.run_fallback(state, start, end)
        else:
            stages = data.draw(legal_stages(network.needs, start, end))
            groups = [[GroupMember(network, state, ranges) for ranges in stage] for stage in stages]
            assert processor.run_together(groups) >= 0
        start = end
