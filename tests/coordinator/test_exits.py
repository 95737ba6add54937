"""Jobs of networks with early exits: whatever a policy chooses, ops run once, in order."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heimdall.coordinator import codec
from heimdall.coordinator.replay import record, replay
from heimdall.errors import ConfigError
from heimdall.schedulers import Assignment, Choice, Scheduler
from heimdall.schedulers.base import FreeRanges
from heimdall.vocabulary.events import Finish, RunChunk, RunFallback
from heimdall.vocabulary.plans import Exit
from heimdall.vocabulary.processors import GPU
from tests.exits import make_exits


def any_variant(rng, job):
    """A variant that the job may still become, and a chunk of it."""
    variant = rng.choice(job.variants) if job.variants else ""
    costs = job.costs[job.stage]
    start = costs.variants[variant].next_op[job.passed_op] if variant else job.next_op
    return variant, rng.randint(start + 1, costs.run_end[start])


class Fickle(Scheduler):
    """Chooses jobs, their variants and chunks at random."""

    name = "fickle"

    def __init__(self, seed):
        self._rng = random.Random(seed)

    def select(self, view, now_ns):
        job = self._rng.choice(view.ready)
        variant, end_op = any_variant(self._rng, job)
        return Choice((Assignment(job.id, end_op, job.processor, variant),), "a whim")


class FickleQueue(FreeRanges):
    """The same, with one queue; a chunk may be asked for that would cross a head."""

    name = "fickle-queue"

    def __init__(self, seed):
        self._rng = random.Random(seed)

    def select(self, view, now_ns):
        if GPU not in view.idle:
            return None
        job = self._rng.choice(view.ready)
        variant, end_op = any_variant(self._rng, job)
        if self._rng.random() < 0.3:
            end_op = job.costs[job.stage].ops
        return Choice((Assignment(job.id, end_op, GPU, variant),), "a whim")


def with_exits(sim, lengths, rest, fallback=()):
    exits = make_exits(lengths, rest)
    ops = exits[-1].ranges[-1][1]
    off = [op for op in fallback if op < ops]
    stage = sim.stage([0.2 + op % 3 for op in range(ops)], fallback=off, chunk_cost_ms=0.1)
    return replace(stage, exits=exits)


def ran(world):
    """By finished job: (its plan, the ops of the last network that it ran, in order; its exit)."""
    ops: dict[int, list[int]] = {}
    done: dict[int, int] = {}
    found = []
    plans = {plan.name: plan for plan in world.plans}
    for _, event, actions in world.log:
        if hasattr(event, "end_op") and event.job in done:
            start = done.pop(event.job)
            ops[event.job] = [*ops.get(event.job, []), *range(start, event.end_op)]
        for action in actions:
            if isinstance(action, (RunChunk, RunFallback)):
                if action.start_op == 0:  # the next task or stage
                    ops[action.job] = []
                done[action.job] = action.start_op
            elif isinstance(action, Finish):
                found.append((plans[action.dnn], ops[action.job], action.exit))
    return found


@settings(max_examples=40, deadline=None)
@given(
    lengths=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 2)), min_size=1, max_size=4),
    rest=st.integers(1, 4),
    fallback=st.sets(st.integers(0, 20), max_size=2),
    seed=st.integers(0, 999),
    tasks=st.integers(1, 2),
    queued=st.booleans(),
    early=st.booleans(),
)
def test_the_ops_that_run_are_those_of_the_variant_that_finishes_each_once_in_order(
    sim, lengths, rest, fallback, seed, tasks, queued, early
):
    stage = with_exits(sim, lengths, rest, () if queued else fallback)
    plans = [sim.plan("a", stage), sim.plan("b", sim.stage([1]), stage)]
    settings = {
        "tasks": lambda dnn, stage: tasks if stage else 1,
        "stop": lambda chunk: chunk.start_op + 1 if early else chunk.end_op,
    }
    policy = FickleQueue(seed) if queued else Fickle(seed)
    world = sim.world(plans, scheduler=policy, offload=False, world=settings).run(1.5)
    finished = ran(world)
    assert finished
    for _plan, ops, name in finished:
        (variant,) = [each for each in stage.exits if each.name == name]
        assert ops == [op for start, end in variant.ranges for op in range(start, end)]
    if len(finished) > 30 and len(lengths) > 1:
        assert len({name for _, _, name in finished}) > 1


@pytest.mark.parametrize("scheduler", ["max-min", "fcfs", "lst", "heft", "round-robin"])
@pytest.mark.parametrize("mode", ["elastic", "static", "static-runs"])
def test_a_policy_that_knows_nothing_of_exits_runs_the_whole_network(sim, scheduler, mode):
    stage = replace(with_exits(sim, [(3, 1), (2, 2)], 3), chunks=((0, 5), (5, 11)))
    world = sim.world([sim.plan("a", stage)], scheduler=scheduler, mode=mode, offload=False)
    finished = ran(world.run(1.0))
    assert len(finished) > 5
    on_cpu = list(range(11))  # which never cuts, and computes every exit
    for _, ops, name in finished:
        assert ops in ([0, 1, 2, 4, 5, 8, 9, 10], on_cpu)
        assert name == "full"


class Wants(FickleQueue):
    """Always the same variant, until the end of everything."""

    def __init__(self, variant):
        super().__init__(0)
        self.variant = variant

    def select(self, view, now_ns):
        if GPU not in view.idle:
            return None
        job = view.ready[0]
        return Choice((Assignment(job.id, job.costs[0].ops, GPU, self.variant),), "wanted")


def test_an_exit_that_is_passed_cannot_be_taken(sim):
    class Late(Wants):
        def select(self, view, now_ns):
            self.variant = "exit1" if view.ready[0].passed_op > 3 else "full"
            return super().select(view, now_ns)

    world = sim.world([sim.plan("a", with_exits(sim, [(3, 1), (1, 1)], 3))], scheduler=Late(""))
    world.run(1.0)
    assert "'exit1', which it cannot become" in world.coordinator.faults.messages[0]


def test_an_exit_can_be_taken_where_its_head_begins(sim):
    """The job jumps over a head when it goes on, not before."""

    class AtTheHead(Wants):
        def select(self, view, now_ns):
            self.variant = "exit1" if view.ready[0].passed_op == 3 else ""
            return super().select(view, now_ns)

    plan = sim.plan("a", with_exits(sim, [(3, 1)], 3))
    world = sim.world([plan], scheduler=AtTheHead("")).run(0.5)
    assert {(tuple(ops), name) for _, ops, name in ran(world)} == {((0, 1, 2, 3), "exit1")}


def test_a_variant_that_is_not_there_is_an_error_that_names_it(sim):
    plan = sim.plan("a", with_exits(sim, [(3, 1)], 3))
    world = sim.world([plan], scheduler=Wants("exit7"))
    world.run(1.0)
    assert "'exit7', which it cannot become" in world.coordinator.faults.messages[0]


def test_exits_that_cannot_be_are_a_clear_error(sim):
    stage = replace(sim.stage([1, 1]), exits=(Exit("a", ((0, 1),), 0.5),))
    with pytest.raises(ConfigError, match=r"stage 0 of DNN 'a' .* all of it"):
        sim.world([sim.plan("a", stage)])


def test_what_is_left_is_said_of_the_variant_that_a_job_is(sim):
    seen = []

    class Looks(Fickle):
        def select(self, view, now_ns):
            (job,) = view.ready
            seen.append((job.passed_op, job.variant, job.remaining_ns // sim.ms))
            end = job.costs[0].run_end[job.next_op]
            return Choice((Assignment(job.id, end, GPU, ""),), "as it is")

    stage = replace(sim.stage([1, 2, 4, 8, 16]), exits=make_exits([(1, 1), (1, 1)], 1))
    sim.world([sim.plan("a", stage)], scheduler=Looks(0), offload=False).run(0.2)
    assert seen[:3] == [(0, "full", 21), (1, "full", 20), (3, "full", 16)]


def test_exits_are_written_to_a_trace_and_read_again(sim):
    stage = replace(with_exits(sim, [(3, 1)], 3), state_bytes=(1, 2, 3, 4, 5, 6, 7))
    plan = sim.plan("a", stage)
    assert codec.from_dict(codec.to_dict(plan)) == plan
    finish = Finish(0, "a", GPU, 5, False, 1, exit="exit1")
    assert codec.from_dict(codec.to_dict(finish)) == finish
    plain = codec.to_dict(Finish(0, "a", GPU, 5, False, 1))
    assert "exit" not in plain
    assert not {"exits", "state_bytes"} & set(codec.to_dict(sim.stage([1])))


def test_a_run_with_exits_replays_identically(sim):
    plans = [sim.plan("a", with_exits(sim, [(3, 1), (2, 1)], 3, fallback=[1]))]
    world = sim.world(plans, scheduler="max-min").run(1.0)
    records = json.loads(json.dumps([record(*call) for call in world.log]))
    config = json.loads(json.dumps(world.coordinator.config()))
    assert "full" in json.dumps(records)
    assert list(replay(config, records)) == []
