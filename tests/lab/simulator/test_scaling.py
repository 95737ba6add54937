"""RT-mDL's search for one variant and one priority a model."""

from __future__ import annotations

from heimdall.lab.simulator.scaling import by_misses, search
from heimdall.lab.simulator.schedulability import late_share
from heimdall.vocabulary.plans import DnnPlan, Exit, StagePlan

RATE_HZ = 10.0
PERIOD_NS = 10**8


def plan(name, takes, deadline, *, priority="normal", smaller=()):
    """A model that takes so many hundredths of a period; ``smaller``: (takes, accuracy) of its
    variants, which share op 0."""
    op_ns = (1, *(round(each * PERIOD_NS / 100) for each, _ in smaller), takes * PERIOD_NS // 100)
    heads = range(1, len(op_ns) - 1)
    exits = [
        Exit(f"exit{head}", ((0, 1), (head, head + 1)), accuracy)
        for head, (_, accuracy) in zip(heads, smaller, strict=True)
    ]
    if exits:
        exits.append(Exit("whole", ((0, 1), (len(op_ns) - 1, len(op_ns))), 0.8))
    on, none = (("gpu", op_ns),), (False,) * len(op_ns)
    stage = StagePlan(op_ns, none, 0, 0, (), on=on, exits=tuple(exits))
    constraint_ns = deadline * PERIOD_NS // 100
    return DnnPlan(name, (stage,), constraint_ns, continuous=False, priority=priority, queued=True)


def found(*plans):
    named = {each.name: each for each in plans}
    rates = {each.name: RATE_HZ for each in plans}
    return search(named, by_misses(named, rates, late_share)).policy().config()


SMALLER = ((10, 0.76), (25, 0.78))


def test_networks_stay_whole_where_there_is_time():
    chosen = found(plan("a", 30, 90, smaller=SMALLER), plan("b", 30, 95, smaller=SMALLER))
    assert chosen["variants"] == {"a": "whole", "b": "whole"}


def test_as_little_accuracy_as_possible_is_given_up_where_there_is_not():
    chosen = found(plan("a", 40, 66, smaller=SMALLER), plan("b", 40, 70, smaller=SMALLER))
    assert sorted(chosen["variants"].values()) == ["exit2", "whole"]


def test_priorities_are_found_too_and_best_effort_has_none():
    plans = [plan("a", 5, 40), plan("b", 5, 50), plan("c", 5, 60)]
    plans.append(plan("idle", 50, 10, priority="low"))
    chosen = search({each.name: each for each in plans}, lambda found: -found.order.index("c"))
    assert chosen.policy().config() == {"ranks": {"c": 0, "a": 1, "b": 2}, "variants": {}}
