"""Ops that fall back silently to the host's processor."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heimdall.lab.simulator.silent import falling_back
from heimdall.vocabulary.enums import Silent

ON = (("npu", (1, None, 3, None, 5)), ("cpu", (10, 20, 30, 40, 50)))
CUT = (100, 200, 300, 400, 500)


def test_back_and_forth_each_way_costs_a_cut():
    found = dict(falling_back(ON, "cpu", CUT, Silent.BACK))
    assert found["npu"] == (1, 20 + 200, 3 + 300, 40 + 400, 5 + 500)
    assert found["cpu"] == (10, 20, 30, 40, 50)


def test_who_stays_goes_over_once():
    found = dict(falling_back(ON, "cpu", CUT, Silent.STAY))
    assert found["npu"] == (1, 20 + 200, 30, 40, 50)


def test_without_costs_nothing_is_added():
    assert dict(falling_back(ON, "cpu"))["npu"] == (1, 20, 3, 40, 5)


def test_to_begin_on_the_host_costs_nothing():
    on = (("npu", (None, 2)), ("cpu", (10, 20)))
    assert dict(falling_back(on, "cpu", (100, 200)))["npu"] == (10, 2 + 200)


def test_where_the_host_lacks_the_op_too_there_is_no_way():
    on = (("npu", (1, None)), ("cpu", (10, None)), ("gpu", (4, 4)))
    found = dict(falling_back(on, "cpu", (100, 200)))
    assert found["npu"] == (1, None)
    assert found["gpu"] == (4, 4)


def test_a_processor_without_any_op_is_left_out():
    on = (("npu", (None, None)), ("cpu", (10, 20)))
    assert falling_back(on, "cpu") == (("cpu", (10, 20)),)


def test_never_and_without_such_a_host_it_is_as_it_was():
    assert falling_back(ON, "cpu", CUT, Silent.NEVER) is ON
    assert falling_back(ON, "dsp", CUT) is ON


TIMES = st.one_of(st.none(), st.integers(1, 99))


@given(
    rows=st.lists(st.tuples(TIMES, st.integers(1, 99), st.integers(0, 9)), min_size=1, max_size=12),
    silent=st.sampled_from([Silent.BACK, Silent.STAY]),
)
def test_all_ops_have_a_time_of_one_of_the_two_and_a_cut_wherever_it_changes(rows, silent):
    npu, cpu, cut = zip(*rows, strict=True)
    found = dict(falling_back((("npu", npu), ("cpu", cpu)), "cpu", cut, silent))
    if all(ns is None for ns in npu):
        assert "npu" not in found
        return
    lacking = [op for op, ns in enumerate(npu) if ns is None]
    at_host = [
        ns is None or (silent == Silent.STAY and bool(lacking) and op > lacking[0])
        for op, ns in enumerate(npu)
    ]
    for op, ns in enumerate(found["npu"]):
        crossed = op > 0 and at_host[op] != at_host[op - 1]
        assert ns == (cpu[op] if at_host[op] else npu[op]) + (cut[op] if crossed else 0)
