"""Early exits in a device's profile."""

from __future__ import annotations

import pytest

from heimdall.errors import ConfigError
from heimdall.lab.simulator.several import load_several
from heimdall.schedulers.expected import StageCosts

VALID = """
title = "Exits"
[processors.gpu]
name = "Chip"
kind = "gpu"
[networks.eye]
ops = 12
ms = { gpu = 12 }
accuracy = 0.9
slices = 4
exits = [{ at = 0.2, head = 0.1, accuracy = 0.8 }, { at = 0.5, head = 0.1, accuracy = 0.85 }]
scaled = [{ time = 0.6, accuracy = 0.81 }, { time = 0.8, accuracy = 0.84 }]
[networks.plain]
ops = 3
ms = { gpu = 3 }
"""


@pytest.fixture
def load(tmp_path):
    def write_and_load(text=VALID):
        path = tmp_path / "exits.toml"
        path.write_text(text, encoding="utf-8")
        return load_several(str(path))

    return write_and_load


def test_heads_are_among_the_ops_between_slices(load):
    plan = load().stage("eye", "critical", variants="exits")
    names = [each.name for each in plan.exits]
    assert (names, len(plan.op_ns)) == (["exit1", "exit2", "whole"], 14)
    first, second, full = (each.ranges for each in plan.exits)
    head = first[-1][0]
    assert first == ((0, head), (head, head + 1))
    assert full[0] == (0, head)
    assert full[-1][1] == 14
    assert {head + 1, second[-1][1]} < set(plan.critical)
    assert plan.op_ns[head] == pytest.approx(1.2e6, rel=1e-3)
    assert [each.accuracy for each in plan.exits] == [0.8, 0.85, 0.9]
    assert sum(plan.op_ns) == pytest.approx(14.4e6, rel=1e-3)


def test_scaled_networks_share_their_first_op_and_are_the_rest_of_their_time(load):
    plan = load().stage("eye", "whole", variants="scaled")
    ranges = [each.ranges for each in plan.exits]
    assert ranges == [((0, 1), (1, 2)), ((0, 1), (2, 3)), ((0, 1), (3, 14))]
    assert [each.accuracy for each in plan.exits] == [0.81, 0.84, 0.9]
    costs = StageCosts(plan)
    took = [sum(costs.on_ns("gpu", *each) for each in spans) for spans in ranges]
    assert took == pytest.approx([7.2e6, 9.6e6, 12e6], rel=1e-3)


def test_without_exits_the_whole_network_is_the_one_variant(load):
    plan = load().stage("eye", "whole")
    assert [(each.name, each.ranges) for each in plan.exits] == [("whole", ((0, 12),))]
    assert load().stage("plain", "whole", variants="exits").exits == ()


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("accuracy = 0.9\n", "", "accuracy of the whole network"),
        ("at = 0.5", "at = 0.1", "each must be behind the one before"),
        ("slices = 4", "slices = 2", "2 slices have 1 places"),
        ("accuracy = 0.85", "accuracy = 85", "must be at most 1, not 85"),
        ("time = 0.6", "time = 0.9", "each must take longer than the one before"),
        ("ops = 3\n", "ops = 3\nscaled = [{ time = 0.5, accuracy = 0.5 }]\n", "scaled: give"),
    ],
)
def test_exits_that_cannot_be_are_one_clear_error(load, old, new, names):
    with pytest.raises(ConfigError, match=names):
        load(VALID.replace(old, new))
