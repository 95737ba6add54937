from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from heimdall.analyzer.partition import partition
from heimdall.analyzer.units import units
from heimdall.vocabulary.plans import StagePlan


def on(**support):
    """Latencies by processor: ``x`` where an op is supported."""
    return tuple(
        (name, tuple(1 if each == "x" else None for each in row)) for name, row in support.items()
    )


def test_figure_9_and_10():
    """The GPU runs ops 1 and 2, the NPU 1 to 3, the CPU all: units A = {1, 2}, B = {3}, C = {4}."""
    model = on(cpu="xxxx", gpu="xx..", npu="xxx.")
    assert units(model, least_ops=1) == [(0, 2), (2, 3), (3, 4)]


def test_a_network_that_all_support_is_one_unit():
    assert units(on(cpu="xxxxx", npu="xxxxx")) == [(0, 5)]


def test_short_runs_of_an_accelerator_are_not_worth_it():
    model = on(cpu="x" * 20, npu="x" * 8 + ".." + "x" * 6 + "....")
    assert units(model, least_ops=1) == [(0, 8), (8, 10), (10, 16), (16, 20)]
    assert units(model) == [(0, 8), (8, 20)]


def test_a_run_that_nothing_else_supports_stays():
    assert units(on(cpu="xxxx..xxxx", npu="....xx....")) == [(0, 4), (4, 6), (6, 10)]


def test_short_runs_that_overlap_are_not_both_given_up():
    assert units(on(gpu="xxx.", npu=".xxx")) == [(0, 1), (1, 3), (3, 4)]


def test_it_is_a_strategy():
    costs = StagePlan((1,) * 10, (False,) * 10, 0, 0, on=on(cpu="x" * 10, npu="x" * 7 + "..."))
    assert [(each.start, each.end) for each in partition(costs, 1, "units")] == [(0, 7), (7, 10)]


def test_without_a_table_of_processors_units_are_runs_of_fallback_ops():
    costs = StagePlan((1,) * 4, (False, False, True, False), 0, 0)
    chunks = partition(costs, 1, "units")
    assert [(each.start, each.end) for each in chunks] == [(0, 2), (2, 3), (3, 4)]


rows = st.integers(1, 24).flatmap(
    lambda ops: st.lists(
        st.lists(st.sampled_from("x."), min_size=ops, max_size=ops), min_size=1, max_size=4
    )
)


@given(rows, st.integers(1, 8))
def test_units_cover_all_ops_once_and_keep_each_of_them_possible(rows, least_ops):
    model = on(cpu="x" * len(rows[0]), **{f"p{i}": row for i, row in enumerate(rows)})
    found = units(model, least_ops)
    assert [start for start, _ in found[1:]] == [end for _, end in found[:-1]]
    assert (found[0][0], found[-1][1]) == (0, len(rows[0]))
    for start, end in found:
        assert any(None not in op_ns[start:end] for _, op_ns in model)


@given(rows)
def test_with_no_least_size_neighbours_differ_in_support(rows):
    model = on(cpu="x" * len(rows[0]), **{f"p{i}": row for i, row in enumerate(rows)})
    found = units(model, least_ops=1)
    sets = [tuple(op_ns[start] is None for _, op_ns in model) for start, _ in found]
    assert all(one != other for one, other in pairwise(sets))
