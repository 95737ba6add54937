"""DNNs that may run on a remote server too, played on a virtual clock."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heimdall.coordinator import Coordinator
from heimdall.vocabulary.enums import ProcessorKind
from heimdall.vocabulary.events import Drop, Finish, Move, ProcessorBack, ProcessorLost, RunChunk
from heimdall.vocabulary.processors import CPU, GPU, REMOTE, Processor, usual

WITH_SERVER = (*usual(), Processor(REMOTE, ProcessorKind.REMOTE))


def crowd(sim, *, remote_ms, cpu_ms=400.0):
    """Three DNNs that the GPU has no time for; only the first one is on the server."""
    stage = sim.stage([0.3] * 100, cpu_ms=cpu_ms, chunk_cost_ms=0.1)
    there = replace(stage, remote_ns=round(remote_ms * sim.ms))
    return [sim.plan("a", there), sim.plan("b", stage), sim.plan("c", stage)]


def play(sim, plans, **world):
    return sim.world(
        plans, processors=WITH_SERVER, scheduler="max-total", world={"render_ms": 15.0, **world}
    )


def moves(world):
    return [(move.dnn, move.processor) for _, move in world.timed(Move)]


def ran(world, processor, since_ms=0.0):
    chunks = [each for ms, each in world.timed(RunChunk) if ms > since_ms]
    return [each for each in chunks if each.processor == processor]


def test_a_dnn_leaves_for_the_server_that_answers_sooner_than_the_cpu(sim):
    world = play(sim, crowd(sim, remote_ms=60)).run(10)
    sim.check(world)
    assert ("a", REMOTE) in moves(world)
    assert {each.dnn for each in ran(world, REMOTE)} == {"a"}
    assert all(each.start_op == 0 and each.end_op == 100 for each in ran(world, REMOTE))


def test_a_server_that_is_slower_than_the_cpu_is_left_alone(sim):
    world = play(sim, crowd(sim, remote_ms=5000, cpu_ms=60)).run(10)
    sim.check(world)
    assert ran(world, REMOTE) == []
    assert ran(world, CPU)


def test_without_a_network_there_nothing_leaves_for_it(sim):
    first, *others = crowd(sim, remote_ms=60)
    first = replace(first, stages=(replace(first.stages[0], remote_ns=None),))
    world = play(sim, [first, *others]).run(10)
    assert ran(world, REMOTE) == []


def test_latency_is_learnt_and_a_network_that_stalls_is_left(sim):
    slow = [1.0]

    def speed(dnn: str, processor: str) -> float:
        return slow[0] if processor == REMOTE else 1.0

    world = play(sim, crowd(sim, remote_ms=60), speed=speed)
    world.run(10)
    assert world.coordinator.snapshot(world.now_ns).dnns["a"].processor == REMOTE
    slow[0] = 40.0  # 2.4 s an answer
    world.run(12)
    assert world.coordinator.snapshot(world.now_ns).dnns["a"].processor != REMOTE
    left = len(ran(world, REMOTE))
    slow[0] = 1.0
    world.run(90)  # what was learnt is forgotten little by little
    assert len(ran(world, REMOTE)) > left + 10
    sim.check(world)


def test_a_server_that_is_lost_costs_one_inference_and_is_used_again(sim):
    world = play(sim, crowd(sim, remote_ms=60)).run(10)
    assert world.coordinator.snapshot(world.now_ns).dnns["a"].processor == REMOTE
    before = len(world.actions(Drop))
    world.forget(REMOTE)
    world.tell(ProcessorLost(REMOTE))
    dropped = world.actions(Drop)[before:]
    assert [(each.dnn, each.again) for each in dropped] == [("a", True)]
    lost_ms = (world.now_ns - sim.start) / sim.ms
    world.run(5)
    assert ran(world, REMOTE, lost_ms) == []
    assert [each for ms, each in world.timed(Finish) if ms > lost_ms and each.dnn == "a"]
    assert moves(world)[-1] == ("a", GPU)
    world.tell(ProcessorBack(REMOTE))
    back_ms = (world.now_ns - sim.start) / sim.ms
    world.run(10)
    assert ran(world, REMOTE, back_ms)
    sim.check(world)


def test_offloading_to_the_cpu_goes_on_while_the_server_is_lost(sim):
    world = play(sim, crowd(sim, remote_ms=60, cpu_ms=70))
    world.at(0, ProcessorLost(REMOTE))
    world.run(10)
    assert ran(world, REMOTE) == []
    assert ran(world, CPU)


def test_with_gpu_and_cpu_lost_the_server_carries_on(sim):
    world = play(sim, crowd(sim, remote_ms=60)).run(1)
    for processor in (GPU, CPU):
        world.forget(processor)
        world.tell(ProcessorLost(processor))
    since = (world.now_ns - sim.start) / sim.ms
    world.run(3)
    assert {each.dnn for each in ran(world, REMOTE, since)} == {"a"}
    assert {each.dnn for ms, each in world.timed(Finish) if ms > since + 100} == {"a"}


@pytest.mark.parametrize("lost", [False, True])
def test_a_run_with_a_server_replays(sim, lost):
    plans = crowd(sim, remote_ms=60)
    world = play(sim, plans)
    config = world.coordinator.config()
    if lost:
        world.at(6000, ProcessorLost(REMOTE))
    world.run(8)
    assert world.actions(Finish)
    again = Coordinator.from_config(config)
    for now_ns, event, actions in world.log:
        made = again.wake(now_ns) if event is None else again.receive(event, now_ns)
        assert list(made) == actions
