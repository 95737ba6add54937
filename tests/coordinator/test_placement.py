"""Moving between GPU and CPU, played on a virtual clock."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heimdall.coordinator import Coordinator
from heimdall.coordinator.states import CoordinationError
from heimdall.errors import ConfigError
from heimdall.vocabulary.events import (
    ChunkFinished,
    DnnAdded,
    DnnBuilt,
    DnnMoved,
    DnnRemoved,
    Drop,
    FrameRendered,
    InferenceRequested,
    JobFailed,
    Move,
    Prepare,
    ProcessorBack,
    ProcessorLost,
    RunChunk,
)
from heimdall.vocabulary.processors import CPU, GPU


def shopping(sim, *, cpu=2.0):
    """Four DNNs as measured on a phone: the CPU takes ``cpu`` times as long as the GPU."""

    def stage(ops, op_ms):
        return sim.stage([op_ms] * ops, cpu_ms=cpu * ops * op_ms, chunk_cost_ms=0.1)

    return [
        sim.plan("detect", stage(100, 0.17)),
        sim.plan("segment", stage(40, 0.05)),
        sim.plan("hand", stage(100, 0.09), constraint_ms=500),
        sim.plan("style", stage(100, 0.22), constraint_ms=100, priority="high", continuous=False),
    ]


def moves(world):
    return [(round(ms / 1000), move.dnn, move.processor) for ms, move in world.timed(Move)]


@pytest.mark.parametrize("scheduler", ["max-min", "max-total"])
@pytest.mark.parametrize("cpu", [1.5, 2.0, 3.0])
def test_overload_moves_a_dnn_to_the_cpu_and_its_end_brings_one_back(sim, scheduler, cpu):
    world = sim.world(
        shopping(sim, cpu=cpu),
        scheduler=scheduler,
        world={"interval_ms": 16.667, "render_ms": 5.0},
    )
    world.request("style", 16.667, 4000, 14_000)
    world.request("style", 2000, 14_000, 30_000)
    world.run(30)
    sim.check(world)
    there = [move for move in moves(world) if move[2] == CPU]
    back = [move for move in moves(world) if move[2] == GPU and move[0] >= 14]
    assert there
    assert back
    assert {dnn for _, dnn, _ in back} <= {dnn for _, dnn, _ in there}
    assert world.late_frames == 0
    assert len(moves(world)) <= 10
    for plan in world.plans:
        status = world.coordinator.snapshot(world.now_ns).dnns[plan.name]
        assert status.misses <= 0.05 * (status.gpu + status.cpu)


@pytest.mark.parametrize("scheduler", ["max-min", "max-total"])
def test_a_steady_load_does_not_swing_between_processors(sim, scheduler):
    world = sim.world(shopping(sim), scheduler=scheduler)
    world.request("style", 2000, 500, 60_000)
    world.run(60)
    assert len(moves(world)) <= 6
    assert all(second < 40 for second, _, _ in moves(world))


def test_a_lone_dnn_stays_on_the_gpu_even_when_the_cpu_is_as_fast(sim):
    world = sim.world([sim.plan("a", sim.stage([1] * 20, cpu_ms=20))])
    world.run(5)
    assert moves(world) == []


def test_a_dnn_without_a_cpu_latency_stays_on_the_gpu(sim):
    world = sim.world(shopping(sim, cpu=0))
    world.run(5)
    assert moves(world) == []


def test_nothing_moves_when_offload_is_off(sim):
    world = sim.world(shopping(sim, cpu=0.5), offload=False)
    world.run(5)
    assert moves(world) == []


def test_steps_are_a_second_apart_and_move_one_dnn(sim):
    world = sim.world(shopping(sim, cpu=0.3))
    world.run(6)
    seconds = [second for second, _, _ in moves(world)]
    assert seconds
    assert len(seconds) == len(set(seconds))
    assert all(step == pytest.approx(1000 * round(step / 1000), abs=10)
               for step, _ in world.timed(Move))  # fmt: skip


def test_a_dnn_runs_where_it_was_until_it_has_moved(sim):
    world = sim.world([sim.plan("a", sim.stage([5]), continuous=False)])
    world.request("a", 50, 0, 100)  # prepared at 2, run at 6, then again 50 ms later
    world.at(8, DnnMoved("a", CPU))  # in the middle of the first job
    world.run(0.01)
    assert world.coordinator.snapshot(world.now_ns).dnns["a"].processor == CPU
    world.run(0.1)
    assert [finish.processor for finish in world.finishes("a")] == [GPU, CPU]


def test_a_cpu_job_is_one_chunk_over_all_ops(sim):
    world = sim.world([sim.plan("a", sim.stage([5, 5, 5], fallback=[1], cpu_ms=60))])
    world.at(0, DnnMoved("a", CPU))
    world.run(0.5)
    chunks = world.actions(RunChunk)
    assert {(c.processor, c.start_op, c.end_op) for c in chunks} == {(CPU, 0, 3)}
    assert world.latencies_ms("a")[0] == 60


@pytest.mark.parametrize(("workers", "at_once"), [(1, 1), (2, 2), (3, 3), (4, 3)])
def test_the_cpu_runs_as_many_jobs_at_once_as_it_has_workers(sim, workers, at_once):
    plans = [sim.plan(name, sim.stage([1], cpu_ms=20), min_interval_ms=30) for name in "abc"]
    world = sim.world(plans, cpu_workers=workers, offload=False)
    for plan in plans:
        world.at(0, DnnMoved(plan.name, CPU))
    world.run(3)
    sim.check(world)
    running, most = set(), 0
    for _, event, actions in world.log:
        if isinstance(event, ChunkFinished):
            running.discard(event.job)
        running |= {action.job for action in actions if isinstance(action, RunChunk)}
        most = max(most, len(running))
    assert most == at_once
    slowest = max(max(world.latencies_ms(plan.name)) for plan in plans)
    assert slowest == {1: 60, 2: 40, 3: 20}[at_once]
    config = world.coordinator.config()
    assert config["cpu_workers"] == workers
    assert Coordinator.from_config(config).config() == config


def test_a_recording_that_does_not_tell_had_one_worker_of_the_cpu(sim):
    config = sim.world([sim.plan("a", sim.stage([1]))]).coordinator.config()
    del config["cpu_workers"]
    assert Coordinator.from_config(config).config()["cpu_workers"] == 1


def test_a_cpu_without_a_worker_is_refused(sim):
    with pytest.raises(ConfigError, match="at least one worker, not 0"):
        sim.world([sim.plan("a", sim.stage([1]))], cpu_workers=0)


def test_a_lost_gpu_drops_its_jobs_and_moves_its_dnns(sim):
    plans = [sim.plan("a", sim.stage([1] * 30)), sim.plan("b", sim.stage([1] * 30))]
    world = sim.world(plans, offload=False)
    world.run(0.5)
    world.forget(GPU)
    actions = world.tell(ProcessorLost(GPU))
    assert {(a.dnn, a.processor) for a in actions if isinstance(a, Move)} == {
        ("a", CPU), ("b", CPU),
    }  # fmt: skip
    assert {a.reason for a in actions if isinstance(a, Drop)} <= {"gpu lost"}
    before = len(world.log)
    world.run(3)
    sim.check(world)
    later = [a for _, _, told in world.log[before:] for a in told if isinstance(a, RunChunk)]
    assert {chunk.processor for chunk in later} == {CPU}
    assert {chunk.dnn for chunk in later} == {"a", "b"}
    world.tell(ProcessorBack(GPU))
    world.run(1)
    assert {s.processor for s in world.coordinator.snapshot(0).dnns.values()} == {GPU}


def test_with_offload_dnns_return_to_a_gpu_that_is_back_one_by_one(sim):
    plans = [sim.plan(name, sim.stage([1] * 10)) for name in "abc"]
    world = sim.world(plans)
    world.run(0.5)
    world.forget(GPU)
    world.tell(ProcessorLost(GPU))
    world.run(2)
    world.tell(ProcessorBack(GPU))
    world.run(5)
    assert GPU in {s.processor for s in world.coordinator.snapshot(0).dnns.values()}
    sim.check(world)


def test_a_request_lost_with_the_gpu_is_tried_again(sim):
    world = sim.world([sim.plan("a", sim.stage([5]), continuous=False)], offload=False)
    world.tell(FrameRendered(0, world.now_ns + 27 * sim.ms))
    world.tell(InferenceRequested("a"))
    world.tell(ProcessorLost(GPU))
    world.run(0.5)
    assert [finish.processor for finish in world.finishes("a")] == [CPU]


def test_a_late_report_of_a_lost_processor_is_ignored(sim):
    world = sim.world([sim.plan("a", sim.stage([5]))], offload=False)
    world.run(0.0085)  # rendered at 6, prepared at 8 ms: its chunk runs
    assert len(world.actions(RunChunk)) == 1
    world.tell(ProcessorLost(GPU))
    world.run(0.5)  # the chunk's end arrives after all
    assert world.finishes("a")
    assert world.coordinator.receive(JobFailed(0, "late"), world.now_ns) == []


def test_a_dnn_that_comes_after_the_gpu_was_lost_runs_on_the_cpu(sim):
    world = sim.world([sim.plan("a", sim.stage([5]))], offload=False)
    world.run(0.1)
    world.tell(ProcessorLost(GPU))
    late = sim.plan("late", sim.stage([5]))
    world.add(late)
    assert world.tell(DnnAdded(late)) == [Move("late", CPU, "GPU lost")]
    world.run(0.5)
    sim.check(world)
    assert {finish.processor for finish in world.finishes("late")} == {CPU}


def test_a_request_that_no_processor_can_serve_is_dropped(sim):
    world = sim.world([sim.plan("a", sim.stage([5]), continuous=False)], offload=False)
    world.tell(FrameRendered(0, world.now_ns + 27 * sim.ms))
    world.tell(ProcessorLost(GPU))  # it is on its way to the CPU
    assert world.tell(InferenceRequested("a")) == []
    refused = [Prepare(0, "a", 0), Drop(0, "a", "runs on no processor")]
    assert world.tell(ProcessorLost(CPU)) == refused
    assert [type(action) for action in world.tell(InferenceRequested("a"))] == [Prepare, Drop]
    world.tell(ProcessorBack(GPU))
    world.tell(InferenceRequested("a"))
    world.run(0.5)
    sim.check(world)
    assert len(world.finishes("a")) == 1


def test_with_no_processor_left_everything_waits_for_the_first_that_is_back(sim):
    world = sim.world([sim.plan("a", sim.stage([5]))], offload=False)
    world.tell(FrameRendered(0, world.now_ns + 27 * sim.ms))
    world.tell(ProcessorLost(CPU))
    assert world.tell(ProcessorLost(GPU)) == []
    world.run(1)
    assert len(world.actions(Prepare)) == 1
    assert world.tell(ProcessorBack(CPU)) == [Move("a", CPU, "GPU lost")]
    world.run(1)
    assert {finish.processor for finish in world.finishes("a")} == {CPU}


def unbuilt(plan, sim):
    """The same DNN before it is built: its ops are not known."""
    return replace(plan, stages=(sim.stage([20], cpu_ms=20),) * len(plan.stages), built=False)


@pytest.mark.parametrize("offload", [True, False])
def test_a_dnn_that_is_not_built_runs_on_the_cpu_until_it_is_and_goes_on_by_its_plan(sim, offload):
    plans = [sim.plan(name, sim.stage([1] * 12, cpu_ms=20)) for name in "ab"]
    world = sim.world([unbuilt(plan, sim) for plan in plans], offload=offload)
    world.run(3)
    assert {finish.processor for finish in world.finishes("a")} == {CPU}
    assert not world.actions(Move)
    sim.check(world)
    world.add(plans[0])
    move, dropped, *_ = world.tell(DnnBuilt(plans[0]))
    assert move == Move("a", GPU, "built for the GPU")
    world.run(1)
    assert world.actions(Drop) == [dropped]
    assert dropped == Drop(dropped.job, "a", "built for the GPU", again=True)
    finished = len(world.finishes("a")) + len(world.finishes("b"))
    assert len(world.actions(Prepare)) - finished - 1 <= 2  # of each, the job in flight
    assert world.finishes("a")[-1].processor == GPU
    assert {finish.processor for finish in world.finishes("b")} == {CPU}
    ends = {chunk.end_op for chunk in world.actions(RunChunk) if chunk.processor == GPU}
    assert max(ends) == 12


@pytest.mark.parametrize("waits", ["preparing", "for the CPU", "on the CPU"])
def test_a_request_for_a_dnn_that_is_built_meanwhile_is_answered_by_the_gpu(sim, waits):
    """A CPU that is busy for seconds does not delay a DNN that the GPU can run now."""
    asked = sim.plan("asked", sim.stage([1] * 4), continuous=False)
    busy = sim.plan("busy", sim.stage([1], cpu_ms=5000))
    begun = [replace(unbuilt(plan, sim), stages=plan.stages) for plan in (asked, busy)]
    world = sim.world(begun, world={"move_ms": 0})  # nothing is to be loaded any more
    world.speed = lambda dnn, processor: 100.0 if (dnn, processor) == ("asked", CPU) else 1.0
    if waits != "preparing":
        world.at(5 if waits == "on the CPU" else 100, InferenceRequested("asked"))
    world.run(0.3)
    if waits == "preparing":
        world.tell(InferenceRequested("asked"))
    assert world.finishes("asked") == []
    at_ns = world.now_ns
    world.tell(DnnBuilt(asked))
    world.run(0.5)
    (finish,) = world.finishes("asked")
    assert (finish.processor, finish.missed) == (GPU, False)
    assert finish.latency_ns < world.now_ns - at_ns  # of the frame on which it began anew
    assert world.coordinator.snapshot(world.now_ns).dnns["asked"].state == "idle"
    sim.check(world)


def test_the_plan_of_a_dnn_that_was_built_is_what_counts(sim):
    plan = sim.plan("a", sim.stage([2] * 5, cpu_ms=20))
    world = sim.world([unbuilt(plan, sim)])
    assert world.coordinator.snapshot(0).dnns["a"].expected_gpu_ns == 20 * sim.ms
    world.tell(DnnBuilt(plan))
    assert world.coordinator.snapshot(0).dnns["a"].expected_gpu_ns == 10 * sim.ms


def test_a_dnn_is_built_once_and_with_as_many_stages(sim):
    plan = sim.plan("a", sim.stage([2]))
    world = sim.world([unbuilt(plan, sim)])
    with pytest.raises(ConfigError, match="1 stages, but was built with 2"):
        world.tell(DnnBuilt(sim.plan("a", sim.stage([2]), sim.stage([2]))))
    world.tell(DnnBuilt(plan))
    with pytest.raises(CoordinationError, match="built before"):
        world.tell(DnnBuilt(plan))


def test_a_dnn_that_is_built_while_the_gpu_is_lost_moves_when_that_is_back(sim):
    plan = sim.plan("a", sim.stage([2] * 5))
    world = sim.world([unbuilt(plan, sim)], offload=False)
    world.run(0.5)
    world.forget(GPU)
    world.tell(ProcessorLost(GPU))
    assert not any(isinstance(action, Move) for action in world.tell(DnnBuilt(plan)))
    assert world.tell(ProcessorBack(GPU)) == [Move("a", GPU, "GPU is back")]


def test_a_dnn_that_was_removed_while_it_was_built_is_forgotten(sim):
    plans = [sim.plan(name, sim.stage([2])) for name in "ab"]
    world = sim.world([unbuilt(plan, sim) for plan in plans])
    world.tell(DnnRemoved("a"))
    assert world.tell(DnnBuilt(plans[0])) == []
