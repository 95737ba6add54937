"""Many launches in one enqueue: the same numbers, however many take part and wherever it is cut."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from onnx import helper

from heimdall.engine.opencl.engine import OpenCLEngine
from heimdall.engine.opencl.launched import Launched
from heimdall.engine.opencl.walked import Walked
from heimdall.graph.graph import load_graph
from heimdall.graph.samples import sample_inputs

WORK_ITEMS = [1, 2, 5]  # more than there are cores: one does the work of others


@pytest.fixture(scope="module")
def selfie(assets):
    return load_graph(assets / "models" / "seg_selfie_256.onnx")


@pytest.fixture(scope="module")
def wanted(engine_for, selfie, shared):
    """Outputs for the sample inputs, launch by launch."""
    known = engine_for()
    lesser = replace(known.abilities, walk=False)
    network = OpenCLEngine(keep_kernels=False, abilities=lesser).load(selfie)
    state = network.new_state()
    assert isinstance(state.work, Launched)
    return shared.run(network, state, sample_inputs(selfie))


@pytest.fixture(scope="module", params=WORK_ITEMS)
def network(request, engine_for, selfie):
    engine = engine_for()
    if not engine.abilities.walk:
        pytest.skip("this device does not walk")
    traits = replace(engine.traits, compute_units=request.param)
    return OpenCLEngine(traits=traits, keep_kernels=False, abilities=engine.abilities).load(selfie)


def test_results_are_those_of_single_launches(network, selfie, wanted, shared):
    state = network.new_state()
    assert isinstance(state.work, Walked)
    inputs = sample_inputs(selfie)
    # tiles depend on the number of cores, and with them the order of sums
    first = shared.run(network, state, inputs)
    assert shared.relative_error(first, wanted) <= 1e-4
    for _ in range(30):
        assert shared.same(shared.run(network, state, inputs), first)


def test_any_cuts_give_the_same(network, selfie, shared):
    inputs, count = sample_inputs(selfie), len(network.ops)
    states = [network.new_state(), network.new_state()]
    whole = shared.run(network, states[0], inputs)
    random = np.random.default_rng(3)
    for turn in range(6):
        cuts = sorted(random.choice(count, size=turn * turn, replace=False).tolist())
        assert shared.same(shared.run(network, states[turn % 2], inputs, cuts), whole)


def test_jobs_in_turn_do_not_count_each_others_tiles(network, selfie, shared):
    inputs, count = sample_inputs(selfie), len(network.ops)
    states = [network.new_state(), network.new_state()]
    whole = shared.run(network, states[0], inputs)
    for state in states:
        network.write(state, inputs)
    for start in range(0, count, 7):
        for state in states:
            network.run(state, start, min(start + 7, count))
    for state in states:
        assert shared.same(network.read(state), whole)


def test_few_enqueues_are_made_of_many_ops_and_none_is_long(network, selfie):
    state = network.new_state()
    network.write(state, sample_inputs(selfie))
    network.run(state, 0, len(network.ops))
    ((ops, events),) = state.events.items()
    assert ops == (0, len(network.ops))
    assert len(events) < len(network.ops) / 4
    assert network.op_times(state) is None  # of single ops nothing is known then


def test_a_network_of_few_launches_is_launched(engine, build):
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Neg", ["r"], ["y"])]
    state = engine.load(build(nodes, {"x": (1, 4, 3, 3)})).new_state()
    assert isinstance(state.work, Launched)


def test_a_network_with_more_buffers_than_a_kernel_takes_is_launched(engine, build, shared):
    names = [f"x{index}" for index in range(100)]
    nodes = [helper.make_node("Neg", [name], [f"n{name}"]) for name in names]
    nodes.append(helper.make_node("Sum", [f"n{name}" for name in names], ["y"]))
    graph = build(nodes, dict.fromkeys(names, (3, 5)))
    network = engine.load(graph)
    state = network.new_state()
    assert isinstance(state.work, Launched)
    inputs = sample_inputs(graph)
    found = shared.run(network, state, inputs)
    assert shared.relative_error(found, shared.reference(graph, inputs)) <= 1e-5
