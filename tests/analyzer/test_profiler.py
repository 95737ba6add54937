"""Measuring networks on an engine whose costs are known."""

import time
from itertools import accumulate, pairwise

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heimdall.analyzer import profiler
from heimdall.analyzer.profiler import (
    Conditions,
    fit,
    gpu_passes,
    measure_ops,
    measure_render,
    measure_whole,
)
from heimdall.engine.null import NullEngine, NullNetwork
from heimdall.engine.onnxruntime import OnnxRuntimeEngine
from heimdall.graph.graph import graph_from_model

MS = 1_000_000
COST = 3 * MS


def cost(op):
    """Far above what calling the engine takes, so that the given costs are what counts."""
    return {"Relu": 10, "Tanh": 30, "Neg": 20, "Abs": 40}[op.kind] * MS


def test_costs_of_ops_and_of_a_chunk_are_told_apart(graph):
    measured = measure_ops(NullEngine(op_ns=cost, chunk_cost_ns=COST).load(graph))
    assert measured.chunk_cost_ns == COST
    assert measured.op_ns == tuple(ms * MS for ms in (10, 30, 20, 40, 10, 20))
    assert measured.whole_ns == sum(measured.op_ns) + COST


def test_engine_without_event_times_is_timed_op_by_op(graph, monkeypatch):
    monkeypatch.setattr(NullNetwork, "op_times", lambda self, state: None)
    measured = measure_ops(NullEngine(op_ns=cost, chunk_cost_ns=COST).load(graph))
    assert measured.chunk_cost_ns == COST
    assert measured.op_ns == tuple(ms * MS for ms in (10, 30, 20, 40, 10, 20))


def test_op_times_are_corrected_to_the_time_of_consecutive_ops(graph, monkeypatch):
    """Events that are all too long, as those of lone ops are, keep their proportions."""
    monkeypatch.setattr(
        NullNetwork, "op_times", lambda self, state: [2 * cost(op) for op in self.ops]
    )
    measured = measure_ops(NullEngine(op_ns=cost, chunk_cost_ns=COST).load(graph))
    assert sum(measured.op_ns) + measured.chunk_cost_ns == measured.whole_ns
    assert measured.op_ns == tuple(ms * MS for ms in (10, 30, 20, 40, 10, 20))


def test_fallback_ops_are_measured_at_their_place_without_cost_of_a_chunk(graph):
    network = NullEngine(op_ns=cost, chunk_cost_ns=0).load(graph, force_fallback=["Abs"])
    measured = measure_ops(network)
    assert measured.op_ns == tuple(ms * MS for ms in (10, 30, 20, 40, 10, 20))
    assert measured.whole_ns == 130 * MS


def test_the_gpu_time_of_a_network_is_without_its_fallback_ops(graph):
    engine = NullEngine(op_ns=cost, chunk_cost_ns=COST)
    assert gpu_passes(engine.load(graph))() == 130 * MS + COST
    assert gpu_passes(engine.load(graph, force_fallback=["Abs"]))() == 90 * MS + 2 * COST


def test_of_a_real_network_the_op_that_computes_most_takes_longest():
    inputs = "float[1,320] x, float[320,320] a, float[320,320] b, float[320,1] c"
    lines = "p = MatMul(x, a) q = Cos(p) big = MatMul(b, a) r = MatMul(q, big) y = MatMul(r, c)"
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 13]> net ({inputs}) => (float[1,1] y) {{{lines}}}'
    )
    network = OnnxRuntimeEngine(processor="cpu").load(graph_from_model(model, "uneven"))

    def dearest():
        measured = measure_ops(network)
        assert len(measured.op_ns) == len(network.ops) == 5
        assert min(measured.whole_ns, measured.write_ns, measured.read_ns) > 0
        return measured.op_ns.index(max(measured.op_ns))

    assert any(dearest() == 2 for _ in range(5))  # 300 times the others; a busy machine may hide it


def test_progress_ends_with_all_steps_done(graph):
    seen = []
    measure_ops(NullEngine(op_ns=cost).load(graph), lambda *step: seen.append(step))
    assert seen[0][1:] == (0, profiler.BATCHES)
    assert seen[-1] == ("profiling six", profiler.BATCHES, profiler.BATCHES)


def test_whole_network_is_one_call(graph):
    assert measure_whole(NullEngine(op_ns=cost, chunk_cost_ns=COST).load(graph)) == 133 * MS


def test_rendering_is_drawn_a_few_times_and_takes_some_time():
    calls = []
    assert measure_render(lambda: calls.append("draw"), runs=9) > 0
    frames = len(calls)
    assert frames - profiler.WARM_UPS in (6, 9)  # two of three batches that agree will do


@given(
    parts=st.lists(
        st.tuples(st.lists(st.integers(0, 10**7), min_size=1, max_size=12), st.integers(0, 10**9)),
        min_size=1,
        max_size=4,
    )
)
def test_fitted_op_times_sum_to_each_ranges_target_and_are_never_negative(parts):
    op_ns = [ns for times, _ in parts for ns in times]
    ends = list(accumulate(len(times) for times, _ in parts))
    ranges = list(pairwise([0, *ends]))
    fitted = fit(op_ns, ranges, [target for _, target in parts])
    assert min(fitted) >= 0
    for (start, end), (times, target) in zip(ranges, parts, strict=True):
        assert sum(fitted[start:end]) == pytest.approx(target, abs=1)
        short = target - sum(times)
        if short < 0:  # in proportion, to the nanosecond
            wanted = [ns * target / sum(times) for ns in times]
        else:  # alike
            wanted = [ns + short / len(times) for ns in times]
        assert fitted[start:end] == pytest.approx(wanted, abs=1)


def test_under_a_load_a_network_is_measured_by_the_time_that_the_process_had(graph, monkeypatch):
    """Other processes take the cores away: here, all pauses that are no computing."""
    engine = NullEngine(op_ns=lambda op: 0, chunk_cost_ns=0)
    network, spent = engine.load(graph), 0

    def clock():
        return spent

    really = network.run

    def run(state, start, end):
        nonlocal spent
        really(state, start, end)
        time.sleep(0.001)
        spent += (end - start) * MS
        return 10 * (end - start) * MS  # by a clock that goes on meanwhile

    monkeypatch.setattr(network, "run", run)
    measured = measure_ops(network, conditions=Conditions(min, 0.1, clock, clock))
    assert measured.op_ns == (MS,) * 6
    assert measured.chunk_cost_ns == 0
    assert measure_whole(network, conditions=Conditions(min, 0.1, clock, clock)) == 6 * MS
