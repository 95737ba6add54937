"""Networks with early exits: the same tests run over all engines."""

import itertools
import json

import numpy as np
import onnx.reference
import pytest

from heimdall.engine import GroupMember
from heimdall.engine.exits import may_skip
from heimdall.errors import ModelError
from heimdall.graph.branches import independent_branches
from heimdall.graph.exits import DeclaredExit, arrange, as_whole
from heimdall.vocabulary.plans import Exit
from tests.engine.networks_with_exits import (
    EXITS,
    HEADS,
    declared,
    with_exits,
    without_exits,
)

NAMES = [name for name, _, _ in EXITS]


@pytest.fixture(scope="module")
def engine(every_engine):
    return every_engine


@pytest.fixture(scope="module")
def network(engine):
    return engine.load(with_exits())


def picture(seed=0):
    return {"x": np.random.default_rng(seed).standard_normal((1, 3, 12, 16)).astype(np.float32)}


def run(network, state, exit, *, op_by_op=False):
    for start, end in exit.ranges:
        step = 1 if op_by_op else end - start
        for op in range(start, end, step):
            network.run(state, op, op + step)


def outcome(network, exit, seed=0, **more):
    state = network.new_state()
    network.write(state, picture(seed))
    run(network, state, exit, **more)
    return network.read(state)


def expected(seed=0):
    graph = with_exits()
    values = onnx.reference.ReferenceEvaluator(graph.model).run(None, picture(seed))
    return dict(zip([tensor.name for tensor in graph.outputs], values, strict=True))


def test_a_network_has_the_variants_of_its_file(network):
    assert [each.name for each in network.exits] == NAMES
    assert [each.accuracy for each in network.exits] == [0.5, 0.75, 0.9]
    first, second, whole = network.exits
    assert len(first.ranges) == 1
    assert first.ranges[0][0] == 0
    assert len(second.ranges) == 2
    assert len(whole.ranges) == 3
    assert whole.ranges[-1][1] == len(network.ops)
    assert second.ranges[0] == whole.ranges[0]
    assert whole.ranges[1] == (second.ranges[1][0], whole.ranges[1][1])


def test_ops_of_a_head_are_ops_that_only_its_exit_needs(network):
    nodes = [{node.name for node in head} for head in HEADS]
    for number, exit in enumerate(network.exits[:-1]):
        start = next(a for a, b in reversed(exit.ranges))
        whole = {op for a, b in network.exits[-1].ranges for op in range(a, b)}
        own = [op for op in range(start, exit.ranges[-1][1]) if op not in whole]
        named = {name for op in own for name in network.ops[op].nodes}
        assert named
        assert named <= nodes[number]


def test_an_exit_gives_what_the_whole_file_gives_there(engine, network):
    wanted = expected()
    for exit, (_, output, _) in zip(network.exits, EXITS, strict=True):
        found = outcome(network, exit)
        assert list(found) == [output]
        close = np.abs(found[output] - wanted[output]).max() <= 1e-3 * np.abs(wanted[output]).max()
        assert close == engine.computes


def test_an_exit_is_the_same_op_by_op_and_after_other_exits(network):
    once = [outcome(network, exit) for exit in network.exits]
    state = network.new_state()
    for seed in (5, 0):
        for exit, wanted in zip(reversed(network.exits), reversed(once), strict=True):
            network.write(state, picture(seed))
            run(network, state, exit, op_by_op=True)
            found = network.read(state)
            assert found.keys() == wanted.keys()
            for name, value in found.items():
                assert np.array_equal(value, wanted[name]) or seed


def test_the_whole_network_without_heads_is_bit_equal_to_the_backbone_without_exits(
    engine, network
):
    alone, whole = engine.load(without_exits()), network.exits[-1]
    edges = list(itertools.accumulate((end - start for start, end in whole.ranges), initial=0))
    assert edges[-1] == len(alone.ops)
    for seed in range(3):
        state = alone.new_state()
        alone.write(state, picture(seed))
        for start, end in itertools.pairwise(edges):  # some providers compile each range
            alone.run(state, start, end)
        wanted = alone.read(state)["y3"]
        np.testing.assert_array_equal(outcome(network, network.exits[-1], seed)["y3"], wanted)


def test_all_ops_give_all_outputs(engine, network):
    found = network.infer(network.new_state(), picture(2))
    wanted = expected(2)
    assert set(found) == set(wanted)
    for name, value in wanted.items():
        close = np.abs(found[name] - value).max() <= 1e-3 * np.abs(value).max()
        assert close == engine.computes


def test_a_job_may_turn_to_a_later_exit_inside_a_head(network):
    first, second, _ = network.exits
    end = first.ranges[-1][1]
    state = network.new_state()
    network.write(state, picture())
    network.run(state, 0, second.ranges[0][1] + 1)  # one op of the first head
    for start, stop in second.ranges[1:]:
        network.run(state, start, stop)
    assert end > second.ranges[0][1] + 1
    assert list(network.read(state)) == ["y2"]


def test_ops_of_the_backbone_are_never_left_out(network):
    first, *_, whole = network.exits
    state = network.new_state()
    network.write(state, picture())
    with pytest.raises(ValueError, match="out of order"):
        network.run(state, 1, first.ranges[-1][1])
    network.run(state, *whole.ranges[0])
    with pytest.raises(ValueError, match="out of order"):
        network.run(state, whole.ranges[1][0] + 1, len(network.ops))
    with pytest.raises(ValueError, match="before reading"):
        network.read(state)


def test_a_job_with_exits_is_handed_over_nowhere(network):
    assert not network.handovers


def test_a_head_may_fall_back(engine):
    network = engine.load(with_exits(), force_fallback=["hc2", "hr2", "c3", "r3", "g1"])
    alone = engine.load(without_exits(), force_fallback=["c3", "r3"])
    state = alone.new_state()
    wanted = alone.infer(state, picture())["y3"]
    state = network.new_state()
    for exit in network.exits:
        network.write(state, picture())
        for start, end in exit.ranges:
            network.run_any(state, start, end)
    np.testing.assert_array_equal(network.read(state)["y3"], wanted)


# --- files that contradict themselves ---


@pytest.mark.parametrize(
    ("exits", "says"),
    [
        ("{", "JSON list"),
        ("7", "JSON list"),
        ('["y1"]', "JSON list"),
        (declared(*EXITS[:1]), "names 1 exits"),
        (declared(("a", "y1", 2.0), *EXITS[1:]), "not 0..1"),
        (declared(("a", "y1", "high"), *EXITS[1:]), "accuracy of 'a'"),
        (declared(("", "y1", 0.5), *EXITS[1:]), "no name"),
        (declared(("second", "y1", 0.5), *EXITS[1:]), "the same name"),
        (declared(("first", "y2", 0.5), *EXITS[1:]), "the same output"),
        (declared(("first", "gone", 0.5), *EXITS[1:]), "differ by"),
        (declared(*EXITS[1:]), "differ by"),
        (declared(("first", ["y1", "y1"], 0.5), *EXITS[1:]), "the same output"),
        (declared(("first", [], 0.5), *EXITS[1:]), "has no output"),
        (declared(("first", ["y1", 2], 0.5), *EXITS[1:]), "no name or output"),
        (declared(("both", ["y1", "y2"], 0.5), EXITS[2]), "different numbers of outputs"),
        (declared(EXITS[1], EXITS[0], EXITS[2]), "more of the network than the next"),
    ],
)
def test_a_corrupt_or_contradictory_declaration_is_refused(exits, says):
    text = exits if isinstance(exits, str) else json.dumps(exits)
    with pytest.raises(ModelError, match=says):
        with_exits(exits=text)


def test_exits_of_several_outputs_are_read_as_the_whole_network():
    x, a, b = (np.full((1, 2), value, np.float32) for value in (1, 2, 3))
    exits = [DeclaredExit("soon", ("a", "b"), 0.5), DeclaredExit("whole", ("points", "score"), 1)]
    found = as_whole(exits, {"b": b, "a": a})
    assert (found.exit, found["points"][0, 0], found["score"][0, 0]) == ("soon", 2, 3)
    both = as_whole(exits, {"a": a, "b": b, "points": x, "score": x})
    assert (both.exit, both["points"] is x) == ("whole", True)
    assert as_whole((), {"a": a}) == {"a": a}


def ends(*outputs):
    return [DeclaredExit(name, (name,), 1.0) for name in outputs]


def test_exits_may_not_share_ops_or_have_none():
    first, second, whole = (["x"], ["a"]), (["a"], ["b"]), (["a"], ["c"])
    with pytest.raises(ValueError, match="on the way"):
        arrange([first, whole], ends("a", "c"))
    both = [first, second, (["b"], ["d"]), (["b"], ["e"]), whole]
    with pytest.raises(ValueError, match="what only 'd' makes"):
        arrange(both, ends("d", "e", "c"))


def test_order_puts_heads_behind_the_backbone_that_they_need():
    graph = with_exits()
    names = [node.name for node in graph.nodes]
    assert names.index("y1") < names.index("c2")
    assert names.index("y2") < names.index("c4")
    assert names.index("y2") > names.index("c3")
    assert [each.name for each in graph.exits] == NAMES


def test_variants_run_together_and_jump_over_heads(engine, network, monkeypatch):
    """One launch for each range of the longest variant, as a scheduler asks for them."""
    monkeypatch.setattr(engine, "lanes", 2)
    planned = engine.for_branches.load(with_exits())
    for each in (network, planned):
        jobs = [(exit, each.new_state()) for exit in each.exits]
        for seed, (_, state) in enumerate(jobs):
            each.write(state, picture(seed))
        longest = max(len(exit.ranges) for exit, _ in jobs)
        for number in range(longest):
            parts = [
                GroupMember(each, state, exit.ranges[number : number + 1])
                for exit, state in jobs
                if number < len(exit.ranges)
            ]
            engine.run_together([parts])
        for seed, (exit, state) in enumerate(jobs):
            found, wanted = each.read(state), outcome(network, exit, seed)
            assert found.keys() == wanted.keys()
            assert all(np.array_equal(found[name], wanted[name]) for name in wanted)


def test_heads_run_beside_the_backbone(engine, monkeypatch):
    """They are branches like any other: all exits of one job, in one launch."""
    monkeypatch.setattr(engine, "lanes", 2)
    planned = engine.for_branches.load(with_exits())
    stages = independent_branches(planned.needs)
    state = planned.new_state()
    for seed in range(3):
        planned.write(state, picture(seed))
        engine.run_together([[GroupMember(planned, state, group) for group in s] for s in stages])
        found = planned.read(state)
        for exit in planned.exits:
            for name, value in outcome(planned, exit, seed).items():
                close = 0 if engine.name in ("opencl", "null") else 1e-5 * np.abs(value).max()
                np.testing.assert_allclose(found[name], value, rtol=0, atol=close)
    if engine.name in ("opencl", "null"):
        assert max(map(len, stages)) > 1


@pytest.mark.parametrize(
    ("start", "end", "skips"),
    [(2, 3, True), (2, 2, True), (3, 3, True), (2, 4, False), (1, 3, False), (3, 2, False)],
)
def test_only_heads_are_jumped_over_and_going_on_where_one_is_jumps_over_nothing(start, end, skips):
    exits = (Exit("early", ((0, 2), (2, 3)), 0.5), Exit("full", ((0, 2), (3, 5)), 0.9))
    assert may_skip(exits, start, end) is skips
    assert may_skip((), start, end) is (start == end)  # of a network without exits, never more
