from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heimdall.schedulers.expected import StageCosts
from heimdall.schedulers.variants import why_wrong
from heimdall.vocabulary.plans import Exit, StagePlan
from tests.exits import make_exits

LENGTHS = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 2)), min_size=0, max_size=4)


def network(lengths, rest, values, *, on=True, cuts=()):
    """Every third op takes no time on the "npu"; ``cuts``: where chunks end beside."""
    exits = make_exits(lengths, rest)
    ops = exits[-1].ranges[-1][1]
    op_ns = tuple(values[op % len(values)] for op in range(ops))
    ends = sorted({*(cut for cut in cuts if 0 < cut < ops), ops})
    return StagePlan(
        op_ns=op_ns,
        fallback=(False,) * ops,
        cpu_ns=0,
        chunk_cost_ns=5,
        chunks=tuple(zip([0, *ends], ends, strict=False)),
        on=(("npu", op_ns),) if on else (),
        cut_ns=tuple(range(ops)),
        exits=exits,
    )


def chunks_of(costs, variant, op):
    """The chunks that a job of this variant runs from an op on."""
    way, found = costs.variants[variant], []
    while (start := way.next_op[op]) < costs.ops:
        op = costs.block_end(start)
        found.append((start, op))
    return found


@given(LENGTHS, st.integers(1, 4), st.lists(st.integers(0, 99), min_size=1), st.sets(st.integers()))
def test_what_is_left_of_a_variant_is_the_sum_of_its_chunks(lengths, rest, values, cuts):
    costs = StageCosts(network(lengths, rest, values, cuts=cuts))
    for each in costs.plan.exits:
        ops = {op for start, end in each.ranges for op in range(start, end)}
        for op in range(costs.ops + 1):
            chunks = chunks_of(costs, each.name, op)
            ran = [i for start, end in chunks for i in range(start, end)]
            assert ran == [i for i in range(op, costs.ops) if i in ops]
            ns = sum(costs.on_ns("npu", start, end) for start, end in chunks)
            assert costs.left_on("npu", op, each.name) == ns
            assert costs.left(op, each.name)[2] == len(chunks)


def test_the_whole_network_skips_every_head():
    costs = StageCosts(network([(2, 1), (3, 2)], 2, [10], on=False))
    assert costs.whole == "full"
    assert costs.variants["full"].next_op[:11] == [0, 1, 3, 3, 4, 5, 8, 8, 8, 9, 10]
    assert costs.left(0)[0] == costs.left(0, "full")[0] == 7 * 10 + 3 * 5
    assert costs.left(3, "exit2")[0] == 5 * 10 + 2 * 5
    assert costs.run_end[:4] == [2, 2, 3, 6]  # before the heads
    assert costs.lone_ns == 7 * 10 + 3 * 5 + 3 + 8


def test_what_was_learnt_counts_for_every_variant():
    costs = StageCosts(network([(2, 1)], 2, [1000]))
    before = costs.left_on("npu", 0, "exit1")
    costs.learn_on("npu", 0, 2, 20_000)
    assert costs.left_on("npu", 0, "exit1") > before


def test_another_partition_costs_more_where_it_cuts_more():
    costs = StageCosts(network([(2, 1)], 4, [10]))
    before = costs.left_on("npu", 0)
    costs.recut([(0, 1), (1, 5), (5, 7)])
    assert costs.left_on("npu", 0) == before + 2 * 5 + 1 + 5
    assert costs.chunk_end == [1, 2, 3, 5, 5, 7, 7]


def test_an_unsupported_op_is_no_matter_to_a_variant_without_it():
    plan = StagePlan(
        (1,) * 6, (False,) * 6, 0, 0, (), on=(("npu", (1, 1, 1, None, 1, 1)),),
        exits=make_exits([(2, 1)], 3),
    )  # fmt: skip
    costs = StageCosts(plan)
    assert costs.left_on("npu", 0, "exit1") == 3
    assert costs.left_on("npu", 0, "full") is None


@pytest.mark.parametrize(
    ("exits", "names"),
    [
        ((Exit("a", ((0, 2),), 0.5), Exit("a", ((0, 4),), 0.9)), "all different"),
        ((Exit("a", ((1, 4),), 0.5),), "begin with op 0"),
        ((Exit("a", ((0, 3), (2, 4)), 0.5),), "to rise"),
        ((Exit("a", (), 0.5),), "begin with op 0"),
        ((Exit("a", ((0, 9),), 0.5),), "end at op 4"),
        ((Exit("a", ((0, 4),), 1.5),), "accuracy of 1.5"),
        ((Exit("a", ((0, 3),), 0.5),), "all of it"),
    ],
)
def test_exits_that_cannot_be_are_named(exits, names):
    assert names in why_wrong(exits, 4)
    assert not why_wrong(make_exits([(1, 1)], 2), 4)
