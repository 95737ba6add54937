"""Names of systems, and what they mean."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heimdall.errors import ConfigError
from heimdall.lab.bench.systems import (
    BASELINES,
    FIRST,
    Admission,
    Precedence,
    parse_system,
    parse_systems,
    system_names,
)
from heimdall.vocabulary.plans import DnnPlan, Utility


@pytest.mark.parametrize("name", system_names())
def test_every_listed_system_can_be_parsed(name):
    assert parse_system(name).name == name


def test_a_bare_scheduler_is_elastic_with_offload():
    system = parse_system("max-total")
    assert system.coordinated
    assert (system.scheduler, system.mode, system.offload) == ("max-total", "elastic", True)


def test_suffixes_choose_static_chunks_and_decline_offload():
    system = parse_system("max-min-static-nooffload")
    assert (system.scheduler, system.mode, system.offload) == ("max-min", "static", False)


def test_a_fixed_system_says_after_how_many_kernels_it_waits():
    assert parse_system("fixed-12").sharing.wait_ops == 12


def test_a_bounded_system_says_how_many_kernels_may_be_outstanding():
    assert parse_system("bounded-12").sharing.most_ops == 12


def test_each_baseline_is_another_row_of_choices():
    rows = {name: parse_system(name).sharing for name in BASELINES}
    assert len(set(rows.values())) == len(BASELINES)
    assert {name for name, row in rows.items() if not row.on_gpu} == {
        "multithread-onnxruntime",
        "multithread-onnxruntime-all",
    }
    assert {name for name, row in rows.items() if row.low} == {"driver-priority"}
    assert replace(rows["driver-priority"], low=False) == rows["multithread"]
    assert rows["edf"].admission is Admission.DEADLINE
    assert rows["drop-while-busy"].admission is Admission.ROUNDS


@pytest.mark.parametrize(
    ("precedence", "ranks"),
    [
        (Precedence.NONE, [0, 0]),
        (Precedence.RENDERING, [0, 0]),
        (Precedence.PRIORITIES, [-8, -0.5]),
    ],
)
def test_a_dnn_ranks_by_its_priority_and_below_rendering(precedence, ranks):
    plans = [DnnPlan(str(beta), (), 1, utility=Utility(beta)) for beta in (8, 0.5)]
    assert [precedence.rank(plan) for plan in plans] == ranks
    assert all(rank > FIRST for rank in ranks)


@pytest.mark.parametrize(
    "name",
    ["", "max-totl", "fixed-0", "fixed-", "bounded-1", "edf-static", "max-total-nooffload-static"],
)
def test_an_unknown_system_lists_the_valid_ones(name):
    with pytest.raises(ConfigError, match=r"unknown system .*edf.*fixed-5.*max-total-static"):
        parse_system(name)


def test_a_list_keeps_its_order():
    assert [s.name for s in parse_systems("max-min, multithread")] == ["max-min", "multithread"]


@pytest.mark.parametrize(
    ("names", "message"), [(" , ", "no system given"), ("fixed-5,fixed-5", "listed twice")]
)
def test_an_impossible_list_is_refused(names, message):
    with pytest.raises(ConfigError, match=message):
        parse_systems(names)


@pytest.mark.parametrize("name", ["max-total", "max-min-static-nooffload", "max-total-nooffload"])
def test_replace_lets_inferences_begin_anew_and_changes_nothing_else(name):
    plain, replacing = parse_system(name), parse_system(f"{name}-replace")
    assert (plain.admission, replacing.admission) == ("one-in-flight", "replace")
    assert replace(replacing, name=name, admission=plain.admission) == plain
