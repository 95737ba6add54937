"""Endings of combined blocks, and the stages that are made of them."""

from __future__ import annotations

from itertools import combinations

import pytest

from heimdall.lab.simulator.together.concurrent_stages import (
    ENDINGS,
    GROUP_OPS,
    GROUPS,
    Block,
    Combined,
    best_cut,
    cut,
    most_saving,
)
from heimdall.lab.simulator.together.device import load_together
from heimdall.lab.simulator.together.networks import network

A100 = load_together("top-a100")
INCEPTION, RESNET, SQUEEZE = "Inception-V3", "ResNet-50", "SqueezeNet"


def combined(*members, device=A100):
    blocks = []
    for name, index in members:
        start, end = network(name).blocks[index]
        blocks.append(Block(network(name), start, end, device.times(name)))
    return Combined(blocks)


def connected(ops, needs):
    """The parts of a set of ops between which there are no edges."""
    parts: list[set[int]] = []
    for op in ops:
        joined = [p for p in parts if any(op in needs[o] or o in needs[op] for o in p)]
        parts = [p for p in parts if p not in joined] + [{op}.union(*joined)]
    return parts


def test_endings_of_an_inception_module_are_all_there_are():
    made = combined((INCEPTION, 4))  # 6 ops
    (block,) = made.blocks
    ops, needs = range(len(block.ops)), block.needs
    expected = set()
    for size in range(1, len(block.ops) + 1):
        for chosen in combinations(ops, size):
            closed = all(o in chosen for o in ops if set(needs[o]) & set(chosen))
            parts = connected(chosen, needs)
            if closed and len(parts) <= GROUPS and max(map(len, parts)) <= GROUP_OPS:
                expected.add(sum(1 << op for op in chosen))
    assert {each.parts[0].mask for each in made.endings(made.whole)} == expected


@pytest.mark.parametrize(
    "members",
    [
        [(SQUEEZE, 1)],
        [(SQUEEZE, 2), (RESNET, 2)],
        [(INCEPTION, 1), (INCEPTION, 5), (INCEPTION, 10), (RESNET, 3)],
    ],
)
def test_stages_run_every_op_once_and_after_what_it_needs(members):
    made = combined(*members)
    stages, ns = cut(made, most_saving)
    done: list[set[int]] = [set() for _ in members]
    for stage in stages:
        assert 1 <= len(stage) <= GROUPS
        before = [set(each) for each in done]
        for member, group in stage:
            assert len(group) <= GROUP_OPS
            ran = set(before[member])
            for op in group:
                needs = set(network(members[member][0]).ops[op].needs)
                inside = {n for n in needs if n >= made.blocks[member].start}
                assert inside <= ran
                assert op not in done[member]
                ran.add(op)
                done[member].add(op)
    for block, ops in zip(made.blocks, done, strict=True):
        assert ops == set(range(block.start, block.end))
    assert 0 < ns < made.alone_ns * 1.001


def test_there_are_never_more_endings_than_can_be_looked_at():
    made = combined(*[(INCEPTION, 10)] * 4)
    assert 0 < len(made.endings(made.whole)) <= 10 * ENDINGS


def test_dynamic_programming_finds_the_least_of_all_ways():
    made = combined((SQUEEZE, 1), (SQUEEZE, 2))

    def least(left):
        if not any(left):
            return 0.0
        return min(each.ns + least(made.after(left, each)) for each in made.endings(left))

    found = best_cut(made)
    assert found is not None
    assert found[1] == pytest.approx(least(made.whole))
    assert found[1] <= cut(made, most_saving)[1]


def test_dynamic_programming_gives_up_where_it_would_take_for_ever():
    assert best_cut(combined((INCEPTION, 1), (INCEPTION, 5)), most_states=20) is None


def test_where_ops_fill_the_gpu_running_together_does_not_pay():
    nano = load_together("top-nano")
    stages, ns = cut(combined((RESNET, 1), (INCEPTION, 1), device=nano), most_saving)
    assert [len(stage) for stage in stages] == [1] * len(stages)
    assert ns == pytest.approx(combined((RESNET, 1), (INCEPTION, 1), device=nano).alone_ns)
