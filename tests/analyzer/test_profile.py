"""Profiles as values, and what the coordinator gets from them."""

from dataclasses import replace

import pytest

from heimdall.analyzer.partition import Cut
from heimdall.analyzer.profile import NetworkProfile, OpProfile, ProfileKey, to_stage_plan
from heimdall.engine.null import NullEngine

MS = 1_000_000


def profile(graph, *op_ms, fallback=(), **fields):
    engine = NullEngine()
    ops = tuple(
        OpProfile(name=f"op{i}", kind="Conv", ns=ms * MS, fallback=i in fallback)
        for i, ms in enumerate(op_ms)
    )
    known = {"chunk_cost_ns": MS, "whole_ns": sum(op_ms) * MS + MS, "cpu_ns": 70 * MS}
    key = ProfileKey.of(graph, engine, engine)
    return NetworkProfile(model="m", key=key, ops=ops, **(known | fields))


def test_stage_plan_carries_times_fallbacks_and_chunks(graph):
    plan = to_stage_plan(profile(graph, 10, 10, 5, 10, fallback={2}), Cut(15 * MS, "runs", 0))
    assert plan.op_ns == (10 * MS, 10 * MS, 5 * MS, 10 * MS)
    assert plan.fallback == (False, False, True, False)
    assert plan.chunks == ((0, 1), (1, 2), (2, 3), (3, 4))
    assert (plan.cpu_ns, plan.chunk_cost_ns) == (70 * MS, MS)


def test_copies_in_and_out_are_not_the_processors_time(graph):
    plan = to_stage_plan(profile(graph, 10, 10, 10, write_ns=2, read_ns=3), Cut(30 * MS))
    assert plan.op_ns == (10 * MS, 10 * MS, 10 * MS)


def test_no_gap_at_all_gives_one_op_a_chunk(graph):
    plan = to_stage_plan(profile(graph, 10, 10), Cut(-MS))
    assert plan.chunks == ((0, 1), (1, 2))


def test_strategies_reach_the_partitioner(graph):
    assert len(to_stage_plan(profile(graph, *[9] * 11), Cut(20 * MS, "whole")).chunks) == 1
    assert len(to_stage_plan(profile(graph, *[9] * 11), Cut(20 * MS, "fixed")).chunks) == 3
    assert [c.end for c in profile(graph, *[9] * 4).partition(20 * MS, margin_ns=0)] == [2, 4]


def test_key_names_what_differs(graph):
    one = ProfileKey.of(graph, NullEngine(), NullEngine(), mode="real time")
    other = replace(one, driver="2.0")
    assert one.differences(other) == "driver: was none, is 2.0"
    newer = replace(one, version="bf00c1", sha256="09ae", forced_fallback=("Abs", "Relu"))
    assert one.differences(newer) == (
        "the network is another one, the code, kernels or tuning that run it have changed, "
        "forced_fallback: was none, is Abs and Relu"
    )
    assert one.differences(one) == ""


@pytest.mark.parametrize("fields", [{"whole_ns": 0}, {"chunk_cost_ns": -1}])
def test_impossible_figures_are_refused(graph, fields):
    with pytest.raises(ValueError, match=r"negative|no time"):
        profile(graph, 1, **fields)
