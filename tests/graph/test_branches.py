from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heimdall.graph.branches import ancestors, direct, independent_branches, node_needs
from heimdall.graph.graph import load_graph


def needs(*edges, count):
    return [frozenset(a for a, b in edges if b == op) for op in range(count)]


def test_a_chain_is_one_group():
    assert independent_branches(needs((0, 1), (1, 2), count=3)) == ((((0, 3),),),)


def test_no_ops_are_no_stages():
    assert independent_branches([]) == ()


def test_branches_between_a_fork_and_its_join_are_groups():
    diamond = needs((0, 1), (1, 2), (0, 3), (2, 4), (3, 4), (4, 5), count=6)
    assert independent_branches(diamond) == (
        (((0, 1),),),
        (((1, 3),), ((3, 4),)),
        (((4, 6),),),
    )


def test_branches_whose_ops_take_turns_are_several_ranges():
    turns = needs((0, 1), (0, 2), (1, 3), (2, 4), (3, 5), (4, 5), count=6)
    assert independent_branches(turns)[1] == (((1, 2), (3, 4)), ((2, 3), (4, 5)))


def test_a_block_may_follow_a_block_though_no_op_joins_them():
    """As where a Concat costs nothing: each branch reads what all branches before have made."""
    blocks = needs(*((a, b) for a in (0, 1) for b in (2, 3)), *((b, 4) for b in (2, 3)), count=5)
    assert independent_branches(blocks) == (
        (((0, 1),), ((1, 2),)),
        (((2, 3),), ((3, 4),)),
        (((4, 5),),),
    )


def test_branches_that_feed_each_other_are_one_group():
    crossed = needs((0, 1), (0, 2), (1, 3), (2, 4), (1, 4), (3, 5), (4, 5), count=6)
    assert independent_branches(crossed) == ((((0, 6),),),)


def test_nodes_need_those_whose_outputs_they_read(assets):
    graph = load_graph(assets / "models" / "seg_selfie_256.onnx")
    found = node_needs(graph)
    assert found[0] == frozenset()
    for index, node in enumerate(graph.nodes):
        read = {name for other in found[index] for name in graph.nodes[other].outputs}
        assert read & set(node.inputs) or not found[index]


def test_direct_needs_are_those_that_no_other_need_implies():
    assert direct(needs((0, 1), (0, 2), (1, 2), (0, 3), count=4)) == [set(), {0}, {1}, {0}]


graphs = st.lists(st.sets(st.integers(1, 5), max_size=3), max_size=16).map(
    lambda drawn: [
        frozenset(op - back for back in backs if back <= op) for op, backs in enumerate(drawn)
    ]
)


@given(graphs)
def test_direct_needs_order_the_ops_in_the_same_way(drawn):
    assert ancestors(direct(drawn)) == ancestors(drawn)


@given(graphs)
def test_any_graph_is_split_into_stages_that_may_run_so(drawn):
    stages = independent_branches(drawn)
    ordered = [op for stage in stages for group in stage for each in group for op in range(*each)]
    assert sorted(ordered) == list(range(len(drawn)))
    places = {
        op: (number, index)
        for number, stage in enumerate(stages)
        for index, group in enumerate(stage)
        for each in group
        for op in range(*each)
    }
    for op, before in enumerate(ancestors(drawn)):
        for other in range(op):
            if before >> other & 1:
                assert places[other] <= places[op]
                assert places[other][0] < places[op][0] or places[other] == places[op]
