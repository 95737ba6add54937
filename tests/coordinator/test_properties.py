"""What must hold for any app: random DNNs on a virtual clock (the world itself checks that no two
chunks run at once on a processor), and events in any order (``machine``; `make properties` tries
more)."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

from heimdall.coordinator.gap import Gap
from heimdall.schedulers import SCHEDULERS
from heimdall.vocabulary.events import FrameRendered, RunChunk
from heimdall.vocabulary.processors import GPU
from tests.coordinator.erratic import ERRATIC
from tests.coordinator.machine import Machine

QUICK = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)  # fmt: skip
# Those that promise everybody a share. Policies with one queue of requests do not: SPLIT's serves
# short networks first, and long ones when there is time.
FAIR = [name for name in sorted(SCHEDULERS) if SCHEDULERS[name].binds]


@st.composite
def apps(draw, sim, load=1.0):
    """1 to 4 DNNs whose ops fit a gap; the arguments of their plans."""
    plans = []
    for index in range(draw(st.integers(1, 4))):
        stages = []
        for _ in range(draw(st.integers(1, 2))):
            ops = draw(st.lists(st.sampled_from([0.2, 1, 3, 7]), min_size=1, max_size=12))
            off = draw(st.sets(st.integers(0, len(ops) - 1), max_size=2))
            cost = draw(st.sampled_from([0, 0.1, 0.5]))
            stages.append(sim.stage([load * op for op in ops], fallback=off, chunk_cost_ms=cost))
        plans.append(
            sim.plan(
                f"dnn{index}",
                *stages,
                constraint_ms=draw(st.sampled_from([50, 200, 1000])),
                priority=draw(st.sampled_from(["low", "normal", "high"])),
                continuous=index == 0 or draw(st.booleans()),
                min_interval_ms=draw(st.sampled_from([0, 0, 80])),
            )
        )
    return plans


def play(sim, data, seconds=1.5, **options):
    plans = data.draw(apps(sim))
    options.setdefault("scheduler", data.draw(st.sampled_from(sorted(SCHEDULERS))))
    tasks = data.draw(st.integers(0, 3))
    world = {"tasks": lambda dnn, stage: tasks if stage else 1, "prepare_ms": 3.0}
    if data.draw(st.booleans()):
        world["stop"] = lambda chunk: (chunk.start_op + 1 + chunk.end_op) // 2
    played = sim.world(plans, world=world, **options)
    for plan in plans:
        if not plan.continuous:
            played.request(plan.name, data.draw(st.sampled_from([20, 150])), 0, seconds * 1000)
    return played.run(seconds)


class Bundled(Machine):
    policies = tuple(SCHEDULERS)


class AtRandom(Machine):
    policies = tuple(ERRATIC)


@pytest.mark.slow
@pytest.mark.parametrize("machine", [Bundled, AtRandom])
def test_whatever_happens_jobs_run_their_ops_once_and_end_once(machine):
    run_state_machine_as_test(
        machine, settings=settings(QUICK, max_examples=60, stateful_step_count=30)
    )


@QUICK
@given(data=st.data())
def test_elastic_chunks_fit_the_gap_and_no_frame_is_late(sim, data):
    world = play(sim, data, mode="elastic")
    gap_end_ns = 0
    for now_ns, event, actions in world.log:
        if isinstance(event, FrameRendered):
            gap_end_ns = event.gap_end_ns
        for action in actions:
            if isinstance(action, RunChunk) and action.processor == GPU:
                assert now_ns + action.expected_ns <= gap_end_ns
    assert world.late_frames == 0
    assert world.coordinator.snapshot(world.now_ns).gap.overruns == 0


@QUICK
@given(data=st.data())
def test_no_dnn_starves(sim, data):
    """Every DNN finishes again and again, whatever the others want."""
    seconds = 6.0
    world = play(sim, data, seconds=seconds, scheduler=data.draw(st.sampled_from(FAIR)))
    work_ms = sum(sum(stage.op_ns) for plan in world.plans for stage in plan.stages) / sim.ms
    for plan in world.plans:
        waits = world.latencies_ms(plan.name)
        assert waits, plan.name
        assert max(waits) < 3 * plan.constraint_ns / sim.ms + 20 * work_ms


@pytest.mark.parametrize("scheduler", FAIR)
@pytest.mark.parametrize("mode", ["elastic", "static"])
def test_under_permanent_overload_everybody_progresses(sim, scheduler, mode):
    """Three tight DNNs want four times the GPU; a low one with a loose constraint, too."""
    plans = [
        sim.plan(f"tight{i}", sim.stage([2] * 20), constraint_ms=60, priority="high")
        for i in range(3)
    ]
    plans.append(sim.plan("low", sim.stage([2] * 10), constraint_ms=1000, priority="low"))
    world = sim.world(plans, scheduler=scheduler, mode=mode, offload=False).run(20)
    assert min(len(world.finishes(plan.name)) for plan in plans) >= 8


@pytest.mark.parametrize("scheduler", FAIR)
def test_loose_constraints_are_met_beside_a_greedy_high_priority(sim, scheduler):
    """Style takes all it can get; the others need 28 ms a second each to meet theirs."""
    plans = [
        sim.plan("detect", sim.stage([0.17] * 100)),
        sim.plan("segment", sim.stage([0.05] * 40)),
        sim.plan("hand", sim.stage([0.09] * 100), sim.stage([0.07] * 50), constraint_ms=500),
        sim.plan("style", sim.stage([0.22] * 100), constraint_ms=100, priority="high"),
    ]
    world = sim.world(plans, scheduler=scheduler, offload=False).run(20)
    for plan in plans:
        status = world.coordinator.snapshot(world.now_ns).dnns[plan.name]
        assert status.gpu >= 15
        assert status.misses <= 0.05 * status.gpu


def test_the_gap_is_used_while_there_is_work(sim):
    plans = [sim.plan(name, sim.stage([0.2] * 80, chunk_cost_ms=0.1)) for name in "abc"]
    world = sim.world(plans, offload=False).run(5)
    assert world.coordinator.snapshot(world.now_ns).gap.utilization_since(Gap(0)) > 0.97
