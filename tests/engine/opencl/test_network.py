"""The bundled networks against onnxruntime: whole, cut anywhere, with ops forced to the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from heimdall.engine.opencl.compiled import Compiled
from heimdall.engine.opencl.engine import OpenCLEngine
from heimdall.engine.opencl.launch import Traits
from heimdall.errors import ModelError
from heimdall.graph.graph import load_graph
from heimdall.graph.samples import sample_inputs

NETWORKS: dict[str, Any] = {
    "detect_nanodet_416": None,
    "centerface_dynamic": [1, 3, 256, 320],
    "seg_selfie_256": None,
    "hand_palm_lite_192": None,
    "hand_landmark_lite_224": None,
    "pose_movenet_lightning_192": None,
    "multistyle26_dynamic": {"image": [1, 3, 120, 160]},
    "ppocrv4_det_dynamic": [1, 3, 256, 320],
}
TOLERANCE = 1e-3


def load(assets, name):
    return load_graph(assets / "models" / f"{name}.onnx", NETWORKS[name])


@pytest.mark.parametrize("name", NETWORKS)
def test_bundled_networks_agree_with_onnxruntime(shared, engine, assets, name):
    graph = load(assets, name)
    inputs = sample_inputs(graph)
    network = engine.load(graph)
    state = network.new_state()
    whole = shared.run(network, state, inputs)
    assert shared.relative_error(whole, shared.reference(graph, inputs)) <= TOLERANCE
    assert not any(op.fallback for op in network.ops)
    cuts = np.random.default_rng(0).integers(0, len(network.ops), 12)
    cut = shared.run(network, state, inputs, cuts.tolist())
    assert shared.same(cut, whole)
    network.close()


@pytest.mark.parametrize("traits", [Traits("gpu", 4), Traits("cpu", 8, 2, 16)], ids=str)
@pytest.mark.parametrize("name", ["seg_selfie_256", "multistyle26_dynamic"])
def test_kernels_for_other_devices_agree_too(shared, engine_for, assets, name, traits):
    graph = load(assets, name)
    inputs = sample_inputs(graph)
    network = engine_for(traits).load(graph)
    found = shared.run(network, network.new_state(), inputs)
    assert shared.relative_error(found, shared.reference(graph, inputs)) <= TOLERANCE


@pytest.mark.parametrize(
    ("name", "forced"),
    [
        ("seg_selfie_256", {"Resize", "AveragePool"}),
        ("hand_palm_lite_192", {"PRelu"}),
        ("detect_nanodet_416", {"Concat", "Split", "Transpose"}),
        ("multistyle26_dynamic", {"ReduceMean", "Pad"}),
        ("pose_movenet_lightning_192", {"Cast", "Sigmoid"}),
    ],
)
def test_forced_fallbacks_change_nothing(shared, engine, assets, name, forced):
    graph = load(assets, name)
    inputs = sample_inputs(graph)
    network = engine.load(graph, force_fallback=forced)
    named = {node.name: node.op_type for node in graph.nodes}
    on_cpu = {named[node] for op in network.ops if op.fallback for node in op.nodes}
    assert on_cpu & forced
    found = shared.run(network, network.new_state(), inputs)
    assert shared.relative_error(found, shared.reference(graph, inputs)) <= TOLERANCE
    network.close()


def test_states_are_independent(shared, engine, assets):
    graph = load(assets, "seg_selfie_256")
    network = engine.load(graph)
    states, results = [network.new_state() for _ in range(2)], []
    inputs = [sample_inputs(graph, seed) for seed in (1, 2)]
    for state, given in zip(states, inputs, strict=True):
        network.write(state, given)
    half = len(network.ops) // 2
    for start, end in ((0, half), (half, len(network.ops))):
        for state in states:
            network.run(state, start, end)
    results = [network.read(state) for state in states]
    for given, found in zip(inputs, results, strict=True):
        assert shared.relative_error(found, shared.reference(graph, given)) <= TOLERANCE


def test_every_node_belongs_to_at_most_one_op(engine, assets):
    graph = load(assets, "hand_landmark_lite_224")
    network = engine.load(graph)
    nodes = [node for op in network.ops for node in op.nodes]
    assert set(nodes) <= {node.name for node in graph.nodes}
    assert all(op.flops > 0 and op.bytes > 0 for op in network.ops)


def test_op_times_cover_the_run(shared, engine, assets):
    graph = load(assets, "seg_selfie_256")
    network = engine.load(graph)
    state = network.new_state()
    shared.run(network, state, sample_inputs(graph), cuts=range(len(network.ops)))
    times = network.op_times(state)
    if not engine.times_ops:  # this device has no clock
        assert times is None
        return
    assert len(times) == len(network.ops)
    assert all(time > 0 for time in times)


@pytest.mark.parametrize(
    ("name", "traits"),
    [
        ("seg_selfie_256", None),
        ("multistyle26_dynamic", None),
        ("seg_selfie_256", Traits("gpu", 4)),
    ],
    ids=str,
)
def test_long_kernels_in_pieces_compute_the_same(
    shared, engine_for, assets, monkeypatch, name, traits
):
    graph = load(assets, name)
    inputs = sample_inputs(graph)
    monkeypatch.setattr("heimdall.engine.opencl.slices.pieces_for", lambda elapsed_ns: 1)
    whole = engine_for(traits).load(graph)
    states = [whole.new_state()]
    monkeypatch.setattr("heimdall.engine.opencl.slices.pieces_for", lambda elapsed_ns: 3)
    cut = engine_for(traits).load(graph)
    states.append(cut.new_state())
    assert sum(states[1].work.counts) > 1.5 * sum(states[0].work.counts)
    found = [
        shared.run(network, state, inputs, cuts=range(len(network.ops)))
        for network, state in zip((whole, cut), states, strict=True)
    ]
    assert shared.same(found[1], found[0])
    if engine_for(traits).times_ops:
        assert 0 < cut.longest_enqueue_ns(states[1]) < sum(cut.op_times(states[1]))
    else:
        assert cut.longest_enqueue_ns(states[1]) is None


@pytest.mark.parametrize("name", ["seg_selfie_256", "multistyle26_dynamic"])
def test_a_chunk_may_end_within_a_long_layer(shared, engine, assets, monkeypatch, name):
    if engine.traits.kind == "gpu":
        pytest.skip("one op a layer on GPUs: nothing there is long")
    graph = load(assets, name)
    inputs = sample_inputs(graph)
    whole = OpenCLEngine(keep_kernels=False).load(graph, force_fallback={"Resize"})
    flops = 1e6 / engine.traits.compute_units  # of an op on one core
    monkeypatch.setattr("heimdall.engine.opencl.slices.OP_FLOPS", flops)
    network = OpenCLEngine(keep_kernels=False).load(graph, force_fallback={"Resize"})
    names = [op.name for op in network.ops]
    assert len(set(names)) == len(names) > 1.3 * len(whole.ops)
    long = [op for op in network.ops if op.name.endswith("]")]
    assert all(set(op.nodes) <= {node.name for node in graph.nodes} for op in long)
    state = network.new_state()
    network.write(state, inputs)
    for index, op in enumerate(network.ops):
        (network.run_fallback if op.fallback else network.run)(state, index, index + 1)
    found = shared.run(whole, whole.new_state(), inputs)
    assert shared.same(network.read(state), found)
    if engine.times_ops:
        took = [time > 0 for time in network.op_times(state)]
        assert took == [op.fallback or state.work.counts[i] > 0 for i, op in enumerate(network.ops)]


def test_networks_of_one_graph_share_their_weights(shared, assets, monkeypatch):
    made = []

    def compile_(*args):
        made.append(Compiled(*args))  # uploads the weights
        return made[-1]

    monkeypatch.setattr("heimdall.engine.opencl.engine.Compiled", compile_)
    engine = OpenCLEngine(keep_kernels=False)
    graphs = [load(assets, "seg_selfie_256") for _ in range(2)]
    one, other = (engine.load(graph) for graph in graphs)
    assert len(made) == 1
    engine.load(graphs[0], force_fallback={"Resize"})
    assert len(made) == 2
    inputs = sample_inputs(graphs[0])
    wanted = shared.run(one, one.new_state(), inputs)
    one.close()
    found = shared.run(other, other.new_state(), inputs)
    assert shared.same(found, wanted)


def test_memory_counts_weights_and_activations(engine, assets):
    memory = engine.load(load(assets, "seg_selfie_256")).memory
    assert 400_000 < memory.weights_bytes < 600_000
    assert 2_000_000 < memory.activation_bytes < 5_000_000


def test_loading_reports_progress_to_the_end(engine, assets):
    seen = []
    graph = load(assets, "seg_selfie_256")
    network = engine.load(graph, on_progress=lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1] >= len(network.ops)


def test_ops_run_in_order_and_reading_waits_for_the_last(engine, assets):
    graph = load(assets, "seg_selfie_256")
    network = engine.load(graph)
    state = network.new_state()
    network.write(state, sample_inputs(graph))
    with pytest.raises(ValueError, match="out of order"):
        network.run(state, 1, 2)
    network.run(state, 0, 1)
    with pytest.raises(ValueError, match="before reading"):
        network.read(state)
    with pytest.raises(ModelError, match="input"):
        network.write(state, {})


def test_a_network_dropped_before_it_ran_takes_no_memory_from_under_the_device(
    shared, engine, assets
):
    graph = load(assets, "seg_selfie_256")
    for _ in range(5):
        engine.load(graph)  # and dropped, while the device still tries its ops
    inputs = sample_inputs(graph)
    network = engine.load(graph)
    found = shared.run(network, network.new_state(), inputs)
    assert shared.relative_error(found, shared.reference(graph, inputs)) <= TOLERANCE


def test_an_error_between_parts_leaves_no_work_in_flight(engine, build):
    """The parts that were begun would write into the next inference of the state."""
    nodes = [
        helper.make_node("MaxPool", [a], [b], kernel_shape=[3, 3], pads=[1] * 4)
        for a, b in (("x", "a"), ("a", "b"), ("b", "c"), ("c", "y"))
    ]
    network = engine.load(build(nodes, {"x": (1, 16, 64, 64)}))
    state = network.new_state()
    network.write(state, {"x": np.zeros((1, 16, 64, 64), np.float32)})

    def fail(part):
        raise RuntimeError("the policy is broken")

    with pytest.raises(RuntimeError, match="policy"):
        network.run_parts(state, 0, (1, 2, 3, 4), fail)
    assert not state.in_flight
    network.close()
