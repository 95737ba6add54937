"""What every engine must do: the same tests run over all of them."""

import itertools

import numpy as np
import onnx.reference
import pytest
from onnx import TensorProto, helper, numpy_helper

from heimdall.engine import ENGINES, Engine, GroupMember, open_engine
from heimdall.engine.providers import PROVIDERS, ProviderEngine
from heimdall.errors import ConfigError, DeviceError, ModelError
from heimdall.graph.branches import independent_branches
from heimdall.graph.graph import graph_from_model
from heimdall.vocabulary.processors import PROCESSORS

COMPILERS = {PROVIDERS[name].title for name in ("tensorrt", "directml", "openvino", "coreml")}
CAPABILITIES = ("computes", "cuts_at_any_op", "cuts_where_asked", "ends_early", "times_ops")
DECLARED = {
    "opencl": {*CAPABILITIES} - {"cuts_where_asked"},
    "onnxruntime": {"computes", "cuts_where_asked"},
    "null": {"cuts_at_any_op", "times_ops"},
}
TOLERANCE = 1e-3  # of the largest value; engines may fuse and reorder sums


@pytest.fixture(scope="module")
def engine(every_engine):
    return every_engine


@pytest.fixture(scope="module")
def graph():
    """Two branches, a skip connection, ops of several kinds and two outputs."""
    random = np.random.default_rng(1)

    def weights(*shape):
        return random.standard_normal(shape).astype(np.float32) * 0.3

    constants = {
        "w1": weights(8, 3, 3, 3),
        "b1": weights(8),
        "w2": weights(8, 8, 1, 1),
        "w3": weights(4, 16, 3, 3),
        "w4": weights(5, 4),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], "conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"], "relu1"),
        helper.make_node("MaxPool", ["r1"], ["p1"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["p1", "w2"], ["c2"], "conv2"),
        helper.make_node("Sigmoid", ["c2"], ["s2"], "sigmoid"),
        helper.make_node("Add", ["s2", "p1"], ["a2"], "skip"),
        helper.make_node("Concat", ["a2", "p1"], ["cat"], "concat", axis=1),
        helper.make_node("Conv", ["cat", "w3"], ["mask"], "conv3", pads=[1, 1, 1, 1]),
        helper.make_node("GlobalAveragePool", ["mask"], ["g"], "mean"),
        helper.make_node("Flatten", ["g"], ["f"], "flat"),
        helper.make_node("Gemm", ["f", "w4"], ["score"], "full", transB=1),
    ]
    proto = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 12, 16])],
        [
            helper.make_tensor_value_info("mask", TensorProto.FLOAT, [1, 4, 6, 8]),
            helper.make_tensor_value_info("score", TensorProto.FLOAT, [1, 5]),
        ],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    imports = [helper.make_opsetid("", 13)]
    return graph_from_model(helper.make_model(proto, opset_imports=imports, ir_version=8), "small")


def picture(seed):
    return {"x": np.random.default_rng(seed).standard_normal((1, 3, 12, 16)).astype(np.float32)}


def expected(graph, inputs):
    values = onnx.reference.ReferenceEvaluator(graph.model).run(None, inputs)
    return dict(zip([tensor.name for tensor in graph.outputs], values, strict=True))


def assert_equal(engine, graph, found, inputs):
    wanted = expected(graph, inputs)
    assert set(found) == set(wanted)
    for name, value in wanted.items():
        assert found[name].shape == value.shape
        assert found[name].dtype == value.dtype
        close = np.abs(found[name] - value).max() <= TOLERANCE * np.abs(value).max()
        assert close == engine.computes


def assert_same(engine, found, wanted):
    """Exactly; but a provider that compiles each sub-model may order its sums differently."""
    close = 1e-5 if engine.describe()["mode"] in COMPILERS else 0
    for name, value in found.items():
        np.testing.assert_allclose(value, wanted[name], rtol=0, atol=close * abs(value).max())


def run(network, state, start, end):
    """The range, with fallback ops where there are some."""
    while start < end:
        stop = start + 1
        while stop < end and network.ops[stop].fallback == network.ops[start].fallback:
            stop += 1
        call = network.run_fallback if network.ops[start].fallback else network.run
        assert call(state, start, stop) >= 0
        start = stop


def infer(network, inputs, *cuts):
    state = network.new_state()
    network.write(state, inputs)
    edges = [0, *cuts, len(network.ops)]
    for start, end in itertools.pairwise(edges):
        run(network, state, start, end)
    return network.read(state)


def test_engine_says_what_it_is(engine):
    assert engine.name in ENGINES
    assert engine.processor in PROCESSORS
    assert {"device", "driver", "version", "mode"} <= set(engine.describe())


def test_engine_declares_what_it_can(engine):
    """The other tests hold it to that."""
    wanted = set(DECLARED[engine.name])
    if isinstance(engine, ProviderEngine):
        wanted.discard("cuts_where_asked")
    if engine.name == "opencl" and not engine.abilities.clock:  # as in Mesa's rusticl
        wanted.remove("times_ops")
    assert {name for name in CAPABILITIES if getattr(engine, name)} == wanted
    assert isinstance(engine.hardware, bool)  # that depends on the machine


def test_an_engine_that_declares_nothing_can_nothing():
    """So that one from elsewhere is safe to use before it is fast."""
    assert not any(getattr(Engine, name) for name in (*CAPABILITIES, "hardware"))


def test_ops_lead_back_to_nodes_of_the_graph(engine, graph):
    network = engine.load(graph)
    assert network.ops
    assert [t.name for t in network.inputs] == ["x"]
    assert [t.name for t in network.outputs] == ["mask", "score"]
    named = [name for op in network.ops for name in op.nodes]
    assert len(set(named)) == len(named), "a node belongs to two ops"
    assert set(named) <= {node.name for node in graph.nodes}
    assert {"conv1", "conv2", "conv3", "full"} <= set(named)
    assert not any(op.fallback for op in network.ops)
    assert sum(op.flops for op in network.ops) > 0


def test_whole_network_gives_the_right_outputs(engine, graph):
    assert_equal(engine, graph, infer(engine.load(graph), picture(0)), picture(0))


def test_any_cut_gives_exactly_what_the_whole_network_gives(engine, graph):
    network = engine.load(graph)
    whole = infer(network, picture(0))
    for cut in range(1, len(network.ops)):
        assert_same(engine, infer(network, picture(0), cut), whole)
    assert_same(engine, infer(network, picture(0), *range(1, len(network.ops))), whole)


def test_a_chunk_in_parts_stops_when_told_if_the_engine_ends_early_and_loses_nothing(engine, graph):
    network = engine.load(graph)
    ends = range(1, len(network.ops) + 1)
    whole = infer(network, picture(0))
    state = network.new_state()
    network.write(state, picture(0))
    asked = []

    def go_on(part):
        asked.append(part)
        return part < 3

    reached, elapsed_ns = network.run_parts(state, 0, ends, go_on)
    assert elapsed_ns >= 0
    if engine.ends_early:
        assert (asked, reached) == ([2, 3], ends[2])
        assert network.run_parts(state, reached, ends[3:], lambda part: True)[0] == ends[-1]
    else:
        assert (asked, reached) == ([], ends[-1])
    assert_same(engine, network.read(state), whole)


def test_two_jobs_that_take_turns_do_not_mix(engine, graph):
    network = engine.load(graph)
    states = [network.new_state(), network.new_state()]
    for seed, state in enumerate(states):
        network.write(state, picture(seed))
    for op in range(len(network.ops)):
        for state in states:
            run(network, state, op, op + 1)
    for seed, state in enumerate(states):
        assert_equal(engine, graph, network.read(state), picture(seed))


def test_write_rewinds_a_job_that_was_half_way(engine, graph):
    network = engine.load(graph)
    state = network.new_state()
    network.write(state, picture(0))
    run(network, state, 0, len(network.ops) // 2)
    network.write(state, picture(1))
    run(network, state, 0, len(network.ops))
    assert_equal(engine, graph, network.read(state), picture(1))


def test_state_is_used_again_for_the_next_frame(engine, graph):
    network = engine.load(graph)
    state = network.new_state()
    for seed in range(3):
        network.write(state, picture(seed))
        run(network, state, 0, len(network.ops))
        assert_equal(engine, graph, network.read(state), picture(seed))


def test_input_may_change_after_write_and_outputs_survive_the_next_job(engine, graph):
    network = engine.load(graph)
    state = network.new_state()
    inputs = picture(0)
    network.write(state, inputs)
    inputs["x"][:] = 0
    run(network, state, 0, len(network.ops))
    first = network.read(state)
    network.write(state, picture(1))
    run(network, state, 0, len(network.ops))
    assert_equal(engine, graph, first, picture(0))


@pytest.mark.parametrize(
    "inputs",
    [
        {},
        {"y": np.zeros((1, 3, 12, 16), np.float32)},
        {"x": np.zeros((1, 3, 12, 16), np.float32), "y": np.zeros(1, np.float32)},
        {"x": np.zeros((1, 3, 16, 12), np.float32)},
        {"x": np.zeros((3, 12, 16), np.float32)},
        {"x": np.zeros((1, 3, 12, 16), np.float64)},
        {"x": np.zeros((1, 3, 12, 16), np.uint8)},
    ],
    ids=["none", "other name", "one too many", "shape", "rank", "float64", "uint8"],
)
def test_inputs_that_do_not_fit_are_refused(engine, graph, inputs):
    network = engine.load(graph)
    with pytest.raises(ModelError, match="small"):
        network.write(network.new_state(), inputs)


def test_forced_fallback_ops_give_the_same_outputs(engine, graph):
    network = engine.load(graph, force_fallback=["MaxPool", "skip"])
    marked = {name for op in network.ops if op.fallback for name in op.nodes}
    assert {"pool", "skip"} <= marked
    assert not {"conv1", "conv3"} & marked
    assert_equal(engine, graph, infer(network, picture(0)), picture(0))
    assert_equal(engine, graph, infer(network, picture(0), *range(1, len(network.ops))), picture(0))


def test_whole_network_may_be_forced_to_fall_back(engine, graph):
    network = engine.load(graph, force_fallback=[node.op_type for node in graph.nodes])
    assert all(op.fallback for op in network.ops)
    assert_equal(engine, graph, infer(network, picture(0)), picture(0))


def test_fallback_ops_are_refused_by_run(engine, graph):
    network = engine.load(graph, force_fallback=["MaxPool"])
    place = next(index for index, op in enumerate(network.ops) if op.fallback)
    state = network.new_state()
    network.write(state, picture(0))
    with pytest.raises(ValueError, match="fallback"):
        network.run(state, 0, place + 1)


def test_range_outside_the_ops_is_refused(engine, graph):
    network = engine.load(graph)
    state = network.new_state()
    network.write(state, picture(0))
    with pytest.raises(ValueError, match="range"):
        network.run(state, 0, len(network.ops) + 1)


def test_op_times_are_of_every_op_if_the_engine_times_ops(engine, graph):
    network = engine.load(graph)
    state = network.new_state()
    network.write(state, picture(0))
    for op in range(len(network.ops)):
        run(network, state, op, op + 1)
    times = network.op_times(state)
    if not engine.times_ops:
        assert times is None
        return
    assert times is not None
    assert len(times) == len(network.ops)
    assert all(ns >= 0 for ns in times)
    assert sum(times) > 0


def test_network_may_be_closed_twice_and_loaded_again(engine, graph):
    network = engine.load(graph)
    network.close()
    network.close()
    assert_equal(engine, graph, infer(engine.load(graph), picture(0)), picture(0))


def test_unknown_engine_lists_the_valid_ones():
    with pytest.raises(ConfigError, match="null, onnxruntime, opencl"):
        open_engine("metal")


def test_a_job_goes_on_elsewhere_with_the_tensors_that_are_handed_over(engine, graph):
    """From each engine to onnxruntime's segments and back again, wherever that may be."""
    network = engine.load(graph)
    places = sorted(network.handovers)
    cuts = [network.handovers[op] for op in places]
    segments = open_engine("onnxruntime").load_segments(graph, cuts)
    edges = [0, *places, len(network.ops)]
    dirty = network.new_state()
    network.infer(dirty, picture(5))  # what is left of another job must not matter
    for index in range(1, len(edges) - 1):
        here, there = network.new_state(), segments.new_state()
        network.write(here, picture(1))
        run(network, here, 0, edges[index])
        segments.take_over(there, index, picture(1), network.hand_over(here))
        segments.run(there, index, len(cuts) + 1)
        assert_equal(engine, graph, segments.read(there), picture(1))
        segments.write(there, picture(1))
        segments.run(there, 0, index)
        network.take_over(dirty, edges[index], picture(1), segments.hand_over(there))
        run(network, dirty, edges[index], len(network.ops))
        assert_equal(engine, graph, network.read(dirty), picture(1))


@pytest.mark.parametrize("name", ["opencl", "null"])
def test_engines_that_cut_at_any_op_hand_over_somewhere(name, graph):
    try:
        engine = open_engine(name)
    except DeviceError as error:
        pytest.skip(str(error))
    assert len(engine.load(graph).handovers) > 2
    engine.close()


def test_where_no_handover_is_possible_none_is_made(engine, graph):
    network = engine.load(graph)
    state = network.new_state()
    network.write(state, picture(1))
    with pytest.raises((ValueError, KeyError)):
        network.hand_over(state)  # before the first op there is nothing yet


def test_only_engines_that_declare_it_cut_where_they_are_asked(engine, graph):
    if engine.cuts_where_asked:
        assert len(engine.load_segments(graph, [["r1"], ["mask"]]).ops) == 3
    else:
        with pytest.raises(DeviceError, match="cannot cut"):
            engine.load_segments(graph, [])


def branches(network, state):
    """All ops, in stages of whatever may run together."""
    stages = independent_branches(network.needs)
    return [[GroupMember(network, state, group) for group in stage] for stage in stages]


def test_ops_need_ops_before_them(engine, graph):
    network = engine.load(graph)
    assert len(network.needs) == len(network.ops)
    for op, needed in enumerate(network.needs):
        assert all(0 <= other < op for other in needed)


@pytest.mark.parametrize("lanes", [1, 2, 3])
def test_together_gives_exactly_what_each_job_gives_alone(engine, graph, monkeypatch, lanes):
    monkeypatch.setattr(engine, "lanes", lanes)
    network, other = engine.load(graph), engine.for_branches.load(graph)
    jobs = [(network, network.new_state()), (other, other.new_state()), (other, other.new_state())]
    wanted = [infer(network, picture(seed)) for seed in range(3)]
    half = len(network.ops) // 2
    for seed, (each, state) in enumerate(jobs):
        each.write(state, picture(seed))
    run(network, jobs[0][1], 0, half)  # one has begun before, and one is left half way
    parts = [
        GroupMember(*jobs[0], ((half, len(network.ops)),)),
        *branches(*jobs[1])[0],
        GroupMember(*jobs[2], ((0, half),)),
    ]
    assert engine.run_together([parts, *branches(*jobs[1])[1:]]) >= 0
    run(other, jobs[2][1], half, len(other.ops))
    for (each, state), outputs in zip(jobs, wanted, strict=True):
        assert_same(engine, each.read(state), outputs)


@pytest.fixture(scope="module")
def forked():
    """A fire module: a squeezing convolution, and two that expand what it has made."""
    random = np.random.default_rng(3)
    weights = {"w1": (16, 3, 1, 1), "w2": (16, 16, 1, 1), "w3": (16, 16, 3, 3)}
    constants = [
        numpy_helper.from_array(random.standard_normal(shape).astype(np.float32), name)
        for name, shape in weights.items()
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["s"], "squeeze"),
        helper.make_node("Conv", ["s", "w2"], ["a"], "expand1"),
        helper.make_node("Conv", ["s", "w3"], ["b"], "expand3", pads=[1, 1, 1, 1]),
        helper.make_node("Concat", ["a", "b"], ["y"], "join", axis=1),
    ]
    values = {"x": [1, 3, 12, 16], "y": [1, 32, 12, 16]}
    inputs, outputs = (
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)]
        for name, shape in values.items()
    )
    proto = helper.make_graph(nodes, "fire", inputs, outputs, constants)
    imports = [helper.make_opsetid("", 13)]
    return graph_from_model(helper.make_model(proto, opset_imports=imports, ir_version=8), "fire")


def test_branches_run_at_the_same_time_where_the_engine_knows_them(engine, forked, monkeypatch):
    monkeypatch.setattr(engine, "lanes", 2)
    network = engine.for_branches.load(forked)
    state = network.new_state()
    wanted = infer(engine.load(forked), picture(0))
    for _ in range(3):
        network.write(state, picture(0))
        stages = branches(network, state)
        if engine.name in ("opencl", "null"):
            assert [len(stage) for stage in stages][:2] == [1, 2]
        engine.run_together(stages)
        assert_same(engine, network.read(state), wanted)


def test_parts_that_need_each_other_are_refused_in_one_stage_and_nothing_runs(engine, graph):
    network = engine.load(graph)
    if len(network.ops) < 2:
        pytest.skip("one op")
    state = network.new_state()
    network.write(state, picture(0))
    parts = [
        GroupMember(network, state, ((0, 1),)),
        GroupMember(network, state, ((1, len(network.ops)),)),
    ]
    with pytest.raises(ValueError, match="needs op 0"):
        engine.run_together([parts])
    with pytest.raises(ValueError, match="out of order"):
        engine.run_together([parts[1:]])
    engine.run_together([parts[:1], parts[1:]])
    assert_equal(engine, graph, network.read(state), picture(0))


def test_fallback_ops_and_networks_from_elsewhere_do_not_run_together(engine, graph):
    network = engine.load(graph, force_fallback=["MaxPool"])
    state = network.new_state()
    network.write(state, picture(0))
    with pytest.raises(ValueError, match="fallback"):
        engine.run_together([[GroupMember(network, state, ((0, len(network.ops)),))]])
    other = "null" if engine.name != "null" else "onnxruntime"
    foreign = open_engine(other).load(graph)
    with pytest.raises(ValueError, match="another engine"):
        engine.run_together([[GroupMember(foreign, foreign.new_state(), ((0, 1),))]])


# --- state from one inference to the next ---------------------------------------------------------


@pytest.fixture(scope="module")
def recurrent():
    """A picture and a vector that go round: h' = tanh(conv(x) + conv(h)), n' = n + mean(h')."""
    random = np.random.default_rng(2)
    constants = {
        "w": random.standard_normal((24, 3, 3, 3)).astype(np.float32) * 0.2,
        "u": random.standard_normal((24, 24, 3, 3)).astype(np.float32) * 0.1,
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], "in", pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["h", "u"], ["b"], "back", pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["a", "b"], ["s"], "both"),
        helper.make_node("Tanh", ["s"], ["h_next"], "tanh"),
        helper.make_node("GlobalAveragePool", ["h_next"], ["g"], "pool"),
        helper.make_node("Flatten", ["g"], ["f"], "flat"),
        helper.make_node("Add", ["n", "f"], ["n_next"], "count"),
        helper.make_node("ReduceMax", ["h_next"], ["y"], "largest", keepdims=0),
    ]
    shapes = {"x": [1, 3, 10, 14], "h": [1, 24, 10, 14], "n": [1, 24]}
    proto = helper.make_graph(
        nodes,
        "recurrent",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()],
        [
            helper.make_tensor_value_info("y", TensorProto.FLOAT, []),
            helper.make_tensor_value_info("h_next", TensorProto.FLOAT, shapes["h"]),
            helper.make_tensor_value_info("n_next", TensorProto.FLOAT, shapes["n"]),
        ],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    imports = [helper.make_opsetid("", 13)]
    return graph_from_model(helper.make_model(proto, opset_imports=imports, ir_version=8), "rnn")


CARRIED = {"h_next": "h", "n_next": "n"}


def steps(graph, count, infer):
    """What comes of some pictures, each inference with the state of the one before."""
    tensors = {each.name: each for each in graph.inputs}
    state = {name: np.zeros(tensors[name].shape, np.float32) for name in CARRIED.values()}
    found = []
    for seed in range(count):
        x = np.random.default_rng(seed).standard_normal(tensors["x"].shape).astype(np.float32)
        outputs = infer({"x": x, **state})
        state = {given: outputs[name] for name, given in CARRIED.items()}
        found.append(outputs["y"])
    return found, {name: np.asarray(each) for name, each in state.items()}


def carrying(network):
    state = network.new_state()

    def infer(inputs):
        network.write(state, inputs)
        network.run_any(state, 0, len(network.ops))
        outputs = network.read(state, leave=CARRIED)
        assert set(outputs) == {"y"}
        return {**outputs, **network.keep(state, list(CARRIED))}

    return infer


def test_state_goes_on_from_one_inference_to_the_next(engine, recurrent):
    network = engine.load(recurrent)
    found, state = steps(recurrent, 5, carrying(network))
    if not engine.computes:
        return
    wanted, last = steps(recurrent, 5, lambda inputs: expected(recurrent, inputs))
    for here, there in zip(found, wanted, strict=True):
        np.testing.assert_allclose(here, there, rtol=TOLERANCE, atol=TOLERANCE)
    for name, array in last.items():
        np.testing.assert_allclose(state[name], array, rtol=TOLERANCE, atol=TOLERANCE)


def test_what_it_keeps_is_not_changed_by_the_next_inference(engine, recurrent):
    network = engine.load(recurrent)
    infer = carrying(network)
    zeros = {each.name: np.zeros(each.shape, np.float32) for each in recurrent.inputs}
    kept = infer({**zeros, "x": np.ones_like(zeros["x"])})
    before = np.array(kept["h_next"])
    infer({**zeros, "h": kept["h_next"]})
    np.testing.assert_array_equal(np.asarray(kept["h_next"]), before)


def test_state_moves_to_another_engine(engine, recurrent):
    if not engine.computes:
        pytest.skip("it makes zeros")
    engines = (engine, open_engine("onnxruntime"))
    turn = itertools.cycle([carrying(each.load(recurrent)) for each in engines])
    found, _ = steps(recurrent, 4, lambda inputs: next(turn)(inputs))
    wanted, _ = steps(recurrent, 4, lambda inputs: expected(recurrent, inputs))
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=TOLERANCE, atol=TOLERANCE)
