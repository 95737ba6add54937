"""The coordinator, step by step with literal times (ms after the first frame)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heimdall.coordinator import Coordinator
from heimdall.coordinator.gap import Gap
from heimdall.errors import ConfigError
from heimdall.schedulers import Assignment, Choice, Scheduler
from heimdall.schedulers.max_min import MaxMin
from heimdall.vocabulary.events import (
    ChunkFinished,
    DnnMoved,
    Drop,
    FallbackFinished,
    Finish,
    FrameRendered,
    InferenceRequested,
    InputReady,
    JobFailed,
    Move,
    Prepare,
    ProcessorBack,
    RenderStarted,
    RunChunk,
    RunFallback,
    Yield,
)
from heimdall.vocabulary.processors import CPU, GPU, Processor


class Steps:
    """A coordinator told one event at a time, in ms; answers without their expected times."""

    def __init__(self, sim, *plans, **options):
        options.setdefault("scheduler", "max-min")
        self.ms, self.start = sim.ms, sim.start
        self.coordinator = Coordinator(
            plans, frame_interval_ns=33 * sim.ms, offload=False, **options
        )

    def __call__(self, at_ms, event):
        return self.coordinator.receive(event, self.start + int(at_ms * self.ms))

    def frame(self, at_ms, until_ms, number=0):
        return self(at_ms, FrameRendered(number, self.start + int(until_ms * self.ms)))

    def wake(self, at_ms):
        return self.coordinator.wake(self.start + int(at_ms * self.ms))

    def done(self, at_ms, chunk, elapsed_ms, processor="gpu"):
        elapsed_ns = int(elapsed_ms * self.ms)
        event = ChunkFinished(chunk.job, processor, chunk.start_op, chunk.end_op, elapsed_ns)
        return self(at_ms, event)

    def gap(self):
        return self.coordinator.snapshot(self.start).gap


def chunk_of(actions):
    (chunk,) = [action for action in actions if isinstance(action, RunChunk)]
    return chunk


def kinds(actions):
    return [type(action).__name__ for action in actions]


def ranges(actions):
    return [
        (action.dnn, action.start_op, action.end_op)
        for action in actions
        if isinstance(action, RunChunk)
    ]


# -- the life of a job --------------------------------------------------------------------------


def test_a_job_is_prepared_run_finished_and_followed_by_the_next(sim):
    steps = Steps(sim, sim.plan("a", sim.stage([4, 4])))
    assert steps.frame(0, 27) == [Prepare(0, "a", 0)]
    ready = steps(3, InputReady(0))
    assert ready == [
        RunChunk(
            0,
            "a",
            0,
            0,
            "gpu",
            0,
            2,
            8 * sim.ms,
            "no other job fits the gap",
            steps.start + 27 * sim.ms,
        )
    ]
    done = steps.done(11, ready[0], 8)
    assert done == [Finish(0, "a", "gpu", 8 * sim.ms, False, 1), Prepare(1, "a", 0)]


def test_latency_counts_from_the_input_not_from_the_request(sim):
    steps = Steps(sim, sim.plan("a", sim.stage([4]), constraint_ms=5))
    steps.frame(0, 27)
    chunk = chunk_of(steps(10, InputReady(0)))
    finish = steps.done(16, chunk, 4)[0]
    assert (finish.latency_ns, finish.missed) == (6 * sim.ms, True)
    assert steps.coordinator.snapshot(0).dnns["a"].misses == 1


def test_an_event_driven_dnn_waits_for_its_request(sim):
    steps = Steps(sim, sim.plan("a", sim.stage([4]), continuous=False))
    assert steps.frame(0, 27) == []
    assert steps(1, InferenceRequested("a")) == [Prepare(0, "a", 0)]


def test_requests_during_a_job_are_remembered_once(sim):
    steps = Steps(sim, sim.plan("a", sim.stage([4]), continuous=False))
    steps.frame(0, 27)
    steps(1, InferenceRequested("a"))
    assert steps(2, InferenceRequested("a")) == []
    assert steps(3, InferenceRequested("a")) == []
    chunk = chunk_of(steps(4, InputReady(0)))
    assert kinds(steps.done(8, chunk, 4)) == ["Finish", "Prepare"]
    chunk = chunk_of(steps(9, InputReady(1)))
    assert kinds(steps.done(13, chunk, 4)) == ["Finish"]


def test_a_queue_remembers_as_many_requests_as_it_holds(sim):
    plan = sim.plan("a", sim.stage([1]), continuous=False)
    steps = Steps(sim, plan, admission="queue(2)")
    steps.frame(0, 27)
    for _ in range(5):
        steps(0, InferenceRequested("a"))
    for job in range(3):  # one in flight and two waiting; the others were turned away
        chunk = chunk_of(steps(2 * job, InputReady(job)))
        actions = steps.done(2 * job + 1, chunk, 1)
    assert kinds(actions) == ["Finish"]


def test_a_capped_dnn_waits_until_its_interval_has_passed(sim):
    steps = Steps(sim, sim.plan("a", sim.stage([4]), min_interval_ms=100))
    steps.frame(0, 27)
    chunk = chunk_of(steps(2, InputReady(0)))
    assert kinds(steps.done(6, chunk, 4)) == ["Finish"]
    assert steps.coordinator.next_wakeup_ns() == sim.start + 100 * sim.ms
    assert steps.coordinator.wake(sim.start + 99 * sim.ms) == []
    assert steps.coordinator.wake(sim.start + 100 * sim.ms) == [Prepare(1, "a", 0)]
    assert steps.coordinator.next_wakeup_ns() is None


def test_a_failed_job_is_dropped_and_tried_again_later_and_later(sim):
    steps = Steps(sim, sim.plan("a", sim.stage([4])))
    steps.frame(0, 27)
    assert steps(1, JobFailed(0, "no camera")) == [Drop(0, "a", "no camera")]
    assert steps.coordinator.next_wakeup_ns() == sim.start + 34 * sim.ms
    assert steps.coordinator.wake(sim.start + 34 * sim.ms) == [Prepare(1, "a", 0)]
    steps(35, JobFailed(1, "no camera"))
    assert steps.coordinator.next_wakeup_ns() == sim.start + (35 + 66) * sim.ms


def test_a_failed_chunk_frees_its_processor(sim):
    steps = Steps(sim, sim.plan("a", sim.stage([4])), sim.plan("b", sim.stage([4])))
    steps.frame(0, 27)
    steps(1, InputReady(0))
    steps(1, InputReady(1))
    actions = steps(3, JobFailed(0, "kernel"))
    assert [kinds(actions), ranges(actions)] == [["Drop", "RunChunk"], [("b", 0, 1)]]


def fail_again_and_again(steps, job, start_ms):
    """Three failures of the DNN of ``job``, each on its retry; returns what the last one does."""
    for _ in range(3):
        steps.frame(start_ms, start_ms + 27)
        steps(start_ms + 1, InputReady(job))
        actions = steps(start_ms + 2, JobFailed(job, "kernel"))
        start_ms += 1000
        job += 1
        if not any(isinstance(action, Move) for action in actions):
            steps.wake(start_ms)
    return actions


def test_a_dnn_that_only_fails_on_the_gpu_moves_to_the_cpu_and_stays_there(sim):
    steps = Steps(sim, sim.plan("a", sim.stage([4])))
    actions = fail_again_and_again(steps, 0, 0)
    assert [a for a in actions if isinstance(a, Move)] == [
        Move("a", CPU, "keeps failing on the GPU")
    ]
    steps(2003, DnnMoved("a", CPU))
    steps(2004, ProcessorBack(GPU))
    assert "Move" not in kinds(steps.wake(60_000))


def test_a_dnn_that_fails_on_both_processors_is_tried_again_a_second_apart(sim):
    """What is wrong may end: a driver that is reset, memory that another program has."""
    steps = Steps(sim, sim.plan("a", sim.stage([4])))
    fail_again_and_again(steps, 0, 0)
    steps(2003, DnnMoved("a", CPU))
    steps.wake(3000)
    last = fail_again_and_again(steps, 3, 3000)
    assert [a for a in last if isinstance(a, Move)] == [Move("a", GPU, "keeps failing on the CPU")]
    steps(5003, DnnMoved("a", GPU))
    assert steps.coordinator.next_wakeup_ns() <= steps.start + 6002 * sim.ms
    assert kinds(steps.wake(6002)) == ["Prepare"]
    steps.frame(6003, 6030)
    chunk = chunk_of(steps(6004, InputReady(6)))
    assert "Finish" in kinds(steps.done(6009, chunk, 4))
    assert steps.coordinator.snapshot(steps.start).dnns["a"].failures == 6


def test_requests_of_a_dnn_that_fails_on_both_processors_are_answered_once_it_works(sim):
    steps = Steps(sim, sim.plan("a", sim.stage([4]), continuous=False), admission="queue(9)")
    for _ in range(7):
        steps(0, InferenceRequested("a"))
    fail_again_and_again(steps, 0, 0)
    steps(2003, DnnMoved("a", CPU))
    steps.wake(3000)
    fail_again_and_again(steps, 3, 3000)
    steps(5003, DnnMoved("a", GPU))
    assert kinds(steps.wake(6002)) == ["Prepare"]
    steps.frame(6003, 6030)
    chunk = chunk_of(steps(6004, InputReady(6)))
    assert "Finish" in kinds(steps.done(6009, chunk, 4))


def test_failures_of_the_apps_own_functions_move_nothing(sim):
    steps = Steps(sim, sim.plan("a", sim.stage([4])))
    steps.frame(0, 27)
    for job in range(8):
        at_ms = job * 1100
        assert "Move" not in kinds(steps(at_ms + 1, JobFailed(job, "no camera")))
        steps.wake(at_ms + 1100)


# -- stages and tasks ---------------------------------------------------------------------------


def test_later_stages_are_sub_jobs_with_a_task_for_each_crop(sim):
    steps = Steps(sim, sim.plan("hand", sim.stage([4]), sim.stage([2]), constraint_ms=500))
    steps.frame(0, 27)
    chunk = chunk_of(steps(1, InputReady(0)))
    assert steps.done(5, chunk, 4) == [Prepare(0, "hand", 1)]
    first = chunk_of(steps(8, InputReady(0, tasks=2)))
    assert (first.stage, first.task) == (1, 0)
    second = chunk_of(steps.done(10, first, 2))
    assert (second.stage, second.task, second.start_op) == (1, 1, 0)
    finish, following = steps.done(12, second, 2)
    assert finish == Finish(0, "hand", "gpu", 11 * sim.ms, False, 3, 2)
    assert following == Prepare(1, "hand", 0)


def test_a_stage_with_nothing_to_do_ends_the_job_at_its_last_op(sim):
    steps = Steps(sim, sim.plan("hand", sim.stage([4]), sim.stage([2])))
    steps.frame(0, 27)
    chunk = chunk_of(steps(1, InputReady(0)))
    steps.done(5, chunk, 4)
    finish = steps(9, InputReady(0, tasks=0))[0]
    assert (type(finish), finish.latency_ns) == (Finish, 4 * sim.ms)


# -- fallback ops -------------------------------------------------------------------------------


def test_a_fallback_op_ends_a_chunk_and_lends_the_gpu_to_another_dnn(sim):
    a = sim.plan("a", sim.stage([4, 6, 4], fallback=[1]), constraint_ms=300)
    steps = Steps(sim, a, sim.plan("b", sim.stage([3])))
    steps.frame(0, 27)
    chunk = chunk_of(steps(1, InputReady(0)))
    assert (chunk.dnn, chunk.end_op) == ("a", 1)
    steps(2, InputReady(1))
    actions = steps.done(5, chunk, 4)
    assert actions[0] == RunFallback(0, "a", 0, 0, 1, 2)
    assert ranges(actions) == [("b", 0, 1)]
    steps.done(8, actions[1], 3)
    # its end is a scheduling event within the same gap
    assert ranges(steps(11, FallbackFinished(0, 2, 6 * sim.ms))) == [("a", 2, 3)]


def test_a_network_may_begin_and_end_with_fallback_ops(sim):
    steps = Steps(sim, sim.plan("a", sim.stage([1, 2, 3], fallback=[0, 2])))
    steps.frame(0, 27)
    assert kinds(steps(1, InputReady(0))) == ["RunFallback"]
    chunk = chunk_of(steps(2, FallbackFinished(0, 1, sim.ms)))
    assert kinds(steps.done(4, chunk, 2)) == ["RunFallback"]
    assert kinds(steps(7, FallbackFinished(0, 3, 3 * sim.ms))) == ["Finish", "Prepare"]


# -- gaps ---------------------------------------------------------------------------------------


def test_nothing_starts_while_rendering_holds_the_gpu(sim):
    steps = Steps(sim, sim.plan("a", sim.stage([4])))
    steps.frame(0, 27)
    steps(27, RenderStarted(1))
    assert steps(28, InputReady(0)) == []
    assert ranges(steps.frame(33, 60, 1)) == [("a", 0, 1)]


def test_an_elastic_gap_holds_several_chunks_that_fit(sim):
    plans = [sim.plan(name, sim.stage([4] * 5)) for name in "ab"]
    steps = Steps(sim, *plans)
    steps.frame(0, 27)
    first = chunk_of(steps(1, InputReady(0)))
    assert (first.dnn, first.end_op) == ("a", 5)
    steps(2, InputReady(1))
    actions = steps.done(21, first, 20)
    assert ranges(actions) == [("b", 0, 1)]  # 6 ms left
    assert ranges(steps.done(25, chunk_of(actions), 4)) == []
    assert steps.gap().overruns == 0
    assert ranges(steps.frame(33, 60)) == [("b", 1, 5)]


def test_overruns_teach(sim):
    steps = Steps(sim, sim.plan("a", sim.stage([4] * 7)))
    steps.frame(0, 27)
    chunk = chunk_of(steps(0, InputReady(0)))
    assert (chunk.end_op, chunk.expected_ns) == (6, 24 * sim.ms)
    steps(27, RenderStarted(1))
    steps.done(36, chunk, 36)
    assert steps.gap().overruns == 1
    steps.done(47, chunk_of(steps.frame(42, 69)), 5)
    steps(70, InputReady(1))
    chunk = chunk_of(steps.frame(75, 102))
    assert chunk.end_op == 5  # six such ops are expected to take longer than the gap now


def test_an_op_longer_than_the_gap_runs_at_its_start(sim):
    steps = Steps(sim, sim.plan("big", sim.stage([40])), sim.plan("b", sim.stage([4])))
    steps.frame(0, 27)
    assert ranges(steps(10, InputReady(0))) == []
    assert ranges(steps.frame(33, 60)) == [("big", 0, 1)]


def test_static_mode_runs_one_chunk_of_the_partition_a_gap(sim):
    stage = sim.stage([4] * 10, chunks=[(0, 7), (7, 10)])
    steps = Steps(sim, sim.plan("a", stage), sim.plan("b", sim.stage([3])), mode="static")
    steps.frame(0, 27)
    assert steps(1, InputReady(0)) == []  # the paper decides after a rendering event only
    assert steps(1, InputReady(1)) == []
    chunk = chunk_of(steps.frame(33, 60))
    assert (chunk.dnn, chunk.end_op, chunk.expected_ns) == ("a", 7, 28 * sim.ms)
    assert ranges(steps.done(61, chunk, 28)) == []
    assert steps.gap().overruns == 1  # the relaxation margin makes a frame late, by design


def test_static_mode_decides_at_a_late_chunks_end_when_the_gap_opened_busy(sim):
    plans = [sim.plan(name, sim.stage([10])) for name in "ab"]
    steps = Steps(sim, *plans, mode="static")
    steps.frame(0, 27)
    steps(1, InputReady(0))
    steps(1, InputReady(1))
    chunk = chunk_of(steps.frame(33, 60))
    assert steps.frame(66, 93) == []
    assert ranges(steps.done(70, chunk, 37)) == [("b", 0, 1)]


def style_and(sim, *others, **options):
    """``style``: fallback ops 1 and 3 of five of 4 ms, one chunk; then the others, in the static
    mode, each with its one input ready in a gap of 27 ms from 33 ms on."""
    style = sim.plan("style", sim.stage([4] * 5, fallback=[1, 3], chunks=[(0, 5)]), **options)
    steps = Steps(sim, style, *others, mode="static", scheduler="max-total")
    steps.frame(0, 27)
    for job in range(1 + len(others)):
        steps(1, InputReady(job))
    return steps


def test_fallback_ops_lie_inside_a_static_chunk(sim):
    steps = style_and(sim)
    first = chunk_of(steps.frame(33, 60))
    assert (first.start_op, first.end_op) == (0, 1)
    assert steps.done(37, first, 4) == [RunFallback(0, "style", 0, 0, 1, 2)]
    second = chunk_of(steps(41, FallbackFinished(0, 2, 4 * sim.ms)))
    assert (second.start_op, second.reason) == (2, "its chunk goes on")
    steps.done(45, second, 4)
    third = chunk_of(steps(49, FallbackFinished(0, 4, 4 * sim.ms)))
    (finish,) = [each for each in steps.done(53, third, 4) if isinstance(each, Finish)]
    assert finish.chunks == 1


def test_a_static_chunk_under_way_waits_for_rendering_and_goes_on_before_the_next(sim):
    steps = style_and(sim, sim.plan("b", sim.stage([20])), priority="high")
    first = chunk_of(steps.frame(33, 60))
    steps.done(56, first, 4)  # the GPU took far longer than expected
    steps(60, RenderStarted(1))
    assert steps(61, FallbackFinished(0, 2, 4 * sim.ms)) == []
    second = chunk_of(steps.frame(66, 93))
    assert (second.dnn, second.start_op) == ("style", 2)
    steps.done(70, second, 4)
    third = chunk_of(steps(74, FallbackFinished(0, 4, 4 * sim.ms)))
    # This gap's chunk is still to come, and chosen now: it may exceed the gap by the margin.
    assert ranges(steps.done(78, third, 4)) == [("b", 0, 1)]


def test_a_static_chunk_that_goes_on_is_not_chosen_once_more_for_another_lane(sim):
    style = sim.plan("style", sim.stage([4, 4, 4], fallback=[1], chunks=[(0, 3)]))
    lanes = (Processor(GPU, renders=True, lanes=2), Processor(CPU))
    steps = Steps(sim, style, mode="static", processors=lanes)
    steps.frame(0, 27)
    steps(1, InputReady(0))
    steps.done(37, chunk_of(steps.frame(33, 60)), 4)
    assert ranges(steps(41, FallbackFinished(0, 2, 4 * sim.ms))) == [("style", 2, 3)]
    assert not steps.coordinator.faults.messages


@pytest.mark.parametrize(("op_ms", "runs"), [(3, True), (5, False)])
def test_the_gpu_is_anothers_while_a_static_chunk_is_away_if_that_ends_in_time(sim, op_ms, runs):
    steps = style_and(sim, sim.plan("b", sim.stage([op_ms])), priority="high")
    first = chunk_of(steps.frame(33, 60))
    meanwhile = ranges(steps.done(37, first, 4))
    assert meanwhile == ([("b", 0, 1)] if runs else [])


def test_a_gap_that_opens_late_by_the_margin_takes_a_static_chunk(sim):
    for opened_ms, takes in ((38, True), (41, False)):
        steps = Steps(sim, sim.plan("a", sim.stage([31])), mode="static")
        steps.frame(0, 27)
        steps(1, InputReady(0))
        assert (ranges(steps.frame(opened_ms, 60)) == [("a", 0, 1)]) is takes


def test_equal_priority_starts_chunks_without_regard_to_rendering(sim):
    steps = Steps(sim, sim.plan("a", sim.stage([4] * 20)), render_priority="equal")
    steps.frame(0, 27)
    steps(27, RenderStarted(1))
    assert ranges(steps(28, InputReady(0))) == [("a", 0, 6)]


# -- policies -----------------------------------------------------------------------------------


def test_a_dnn_that_would_miss_its_constraint_runs_now(sim):
    urgent = sim.plan("urgent", sim.stage([8]), constraint_ms=70)
    steps = Steps(sim, sim.plan("a", sim.stage([8])), urgent, scheduler="max-total")
    steps.frame(0, 27)
    steps(27, RenderStarted(1))
    steps(28, InputReady(0))
    steps(28, InputReady(1))
    chunk = chunk_of(steps.frame(33, 60))  # waiting: 60 + 33 ms is after 28 + 70 ms? no: 93 < 98
    assert (chunk.dnn, chunk.reason) == ("a", "largest total utility")
    steps.done(41, chunk, 8)
    steps = Steps(sim, sim.plan("a", sim.stage([8])), urgent, scheduler="max-total")
    steps.frame(0, 27)
    steps(20, RenderStarted(1))
    steps(22, InputReady(0))
    steps(22, InputReady(1))
    chunk = chunk_of(steps.frame(33, 60))  # 93 > 22 + 70
    assert (chunk.dnn, chunk.reason) == ("urgent", "its deadline is at risk")


class Wrong(Scheduler):
    name = "wrong"

    def __init__(self, assignment):
        self.assignment = assignment

    def select(self, view, now_ns):
        return Choice((self.assignment,), "a bug")


@pytest.mark.parametrize(
    ("assignment", "says"),
    [
        (Assignment(7, 1), "chose job 7, which could not run"),
        (Assignment(0, 3), "up to op 3: it is at op 0 of 2"),
        (Assignment(0, 0), "up to op 0"),
        (Assignment(0, 2, "cpu"), "cannot run on 'cpu' now"),
    ],
)
def test_a_policy_that_chooses_wrongly_is_named(sim, assignment, says):
    steps = Steps(sim, sim.plan("a", sim.stage([1, 1])), scheduler=Wrong(assignment))
    steps.frame(0, 27)
    assert ranges(steps(1, InputReady(0))) == [("a", 0, 2)]  # another policy's choice
    (fault,) = steps.coordinator.faults.messages
    assert "scheduler 'wrong'" in fault
    assert says in fault


def test_a_policy_is_asked_only_at_its_triggers_and_only_when_it_has_a_choice(sim):
    class AfterFrames(Wrong):
        triggers = frozenset({"gap opened"})

    steps = Steps(sim, sim.plan("a", sim.stage([1])), scheduler=AfterFrames(Assignment(0, 1)))
    steps.frame(0, 27)
    assert steps(1, InputReady(0)) == []
    assert steps.coordinator.decisions == 0
    assert ranges(steps.frame(33, 60)) == [("a", 0, 1)]
    assert steps.coordinator.decisions == 1


def test_a_policy_is_told_which_jobs_still_wait_for_their_first_input(sim):
    class Looking(MaxMin):
        def select(self, view, now_ns):
            self.seen = [job.dnn for job in view.ready], list(view.preparing)
            return super().select(view, now_ns)

    policy = Looking()
    plans = [sim.plan(name, sim.stage([1])) for name in ("here", "preparing")]
    steps = Steps(sim, *plans, scheduler=policy)
    steps.frame(0, 27)
    steps(2, InputReady(0))
    assert policy.seen == (["here"], ["preparing"])


def test_a_policy_hears_every_event(sim):
    class Curious(MaxMin):
        def __init__(self):
            self.heard = []

        def observe(self, event):
            self.heard.append(type(event))

    policy = Curious()
    steps = Steps(sim, sim.plan("asked", sim.stage([1]), continuous=False), scheduler=policy)
    steps.frame(0, 27)
    for _ in range(3):
        steps(1, InferenceRequested("asked"))
    steps(2, InputReady(0))
    assert policy.heard == [FrameRendered, *3 * [InferenceRequested], InputReady]


# -- introspection and bad input ----------------------------------------------------------------


def test_the_snapshot_shows_each_dnn_and_the_gaps(sim):
    steps = Steps(sim, sim.plan("a", sim.stage([10]), constraint_ms=100))
    steps.frame(0, 27)
    chunk = chunk_of(steps(2, InputReady(0)))
    running = steps.coordinator.snapshot(steps.start + 12 * sim.ms).dnns["a"]
    assert (running.state, running.utility) == ("running", 100**2 - 10**2)
    assert (running.processor, running.reason) == ("gpu", "no other job fits the gap")
    steps.done(12, chunk, 9)
    steps(27, RenderStarted(1))
    after = steps.coordinator.snapshot(steps.start + 27 * sim.ms)
    assert (after.dnns["a"].gpu, after.dnns["a"].cpu, after.decisions) == (1, 0, 1)
    assert after.dnns["a"].latency_ns == 10 * sim.ms
    assert after.gap.runnable_ns == 10 * sim.ms
    assert after.gap.utilization_since(Gap(0)) == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"mode": "rubber"}, "unknown chunk mode 'rubber'; choose one of: elastic, static"),
        ({"scheduler": "fifo"}, "unknown scheduler 'fifo'"),
        ({"content": "none"}, "unknown content variation 'none'"),
        ({"render_priority": "low"}, "unknown render priority 'low'"),
        ({"admission": "queue(0)"}, r"unknown admission policy 'queue\(0\)'"),
    ],
)
def test_unknown_options_list_the_valid_ones(sim, options, says):
    with pytest.raises(ConfigError, match=says):
        Steps(sim, sim.plan("a", sim.stage([1])), **options)


def test_plans_that_cannot_be_scheduled_are_refused(sim):
    for plan, says in (
        (sim.plan("a"), "no network"),
        (sim.plan("a", sim.stage([1]), constraint_ms=0), "must be above zero"),
        (sim.plan("a", sim.stage([])), "no ops"),
        (sim.plan("a", sim.stage([-1])), "negative latency"),
        (sim.plan("a", sim.stage([1, 1], chunks=[(0, 1)])), "do not cover ops 0..2"),
    ):
        with pytest.raises(ConfigError, match=says):
            Steps(sim, plan)
    with pytest.raises(ConfigError, match="two DNNs have the same name"):
        Steps(sim, sim.plan("a", sim.stage([1])), sim.plan("a", sim.stage([1])))


# -- a more urgent job ---------------------------------------------------------------------------


class Urgent(Steps):
    """A chunk of "slow" runs from 2 ms on, until 22 ms; "urgent" is being prepared."""

    def __init__(self, sim, priority="high", op_ms=1, **options):
        slow = sim.plan("slow", sim.stage([2] * 10), constraint_ms=9000)
        urgent = sim.plan("urgent", sim.stage([op_ms]), priority=priority, constraint_ms=9000)
        super().__init__(sim, slow, urgent, scheduler="max-total", **options)
        jobs = {action.dnn: action.job for action in self.frame(0, 27)}
        began = self(2, InputReady(jobs["slow"]))
        self.slow = chunk_of(began or self.frame(2, 29))  # static: chosen when a gap opens
        self.urgent = jobs["urgent"]
        assert (self.slow.dnn, self.slow.start_op, self.slow.end_op) == ("slow", 0, 10)


def test_a_chunk_yields_to_a_job_of_a_higher_priority(sim):
    steps = Urgent(sim)
    (asked,) = steps(5, InputReady(steps.urgent))
    assert asked == Yield(steps.slow.job, "slow", "urgent is more urgent")
    early = ChunkFinished(steps.slow.job, "gpu", 0, 4, 8 * sim.ms)
    assert ranges(steps(10, early)) == [("urgent", 0, 1)]


@pytest.mark.parametrize(
    ("at_ms", "options"),
    [
        (5, {"priority": "normal"}),  # no more urgent than what runs
        (18, {}),  # the chunk ends soon enough
        (5, {"op_ms": 22}),  # would not fit what is left of the gap
        (5, {"mode": "static"}),
        (5, {"render_priority": "equal"}),
    ],
)
def test_a_chunk_is_not_asked_to_yield_where_that_gains_nothing(sim, at_ms, options):
    steps = Urgent(sim, **options)
    assert kinds(steps(at_ms, InputReady(steps.urgent))) == []


# -- networks that are slow ---------------------------------------------------------------------


@pytest.mark.parametrize("offload", [False, True])
@pytest.mark.parametrize("scheduler", ["max-min", "max-total"])
def test_a_network_that_is_slow_for_ever_is_named_and_the_others_have_their_turns(
    sim, scheduler, offload
):
    plans = [
        sim.plan("slow", sim.stage([0.3] * 40, chunk_cost_ms=0.1), priority="high"),
        sim.plan("b", sim.stage([0.3] * 30, chunk_cost_ms=0.1)),
        sim.plan("c", sim.stage([0.2] * 30), priority="low", constraint_ms=500),
    ]
    world = sim.world(
        plans,
        scheduler=scheduler,
        offload=offload,
        world={"speed": lambda dnn, processor: 20.0 if dnn == "slow" else 1.0},
    ).run(10)
    for plan in plans:
        assert len(world.finishes(plan.name)) >= 8, plan.name
    (fault,) = world.coordinator.faults.messages
    assert fault == "DNN 'slow': its chunks take more than 8 times as long as profiled"


def test_where_all_networks_are_slow_none_is_named(sim):
    plans = [sim.plan(name, sim.stage([0.3] * 10)) for name in "abc"]
    world = sim.world(plans, world={"speed": lambda dnn, processor: 20.0}).run(10)
    assert min(len(world.finishes(name)) for name in "abc") > 5
    assert not world.coordinator.faults.messages


def test_a_network_whose_times_are_guesses_is_not_named(sim):
    plan = replace(sim.plan("guessed", sim.stage([1, 1])), built=False)
    world = sim.world(
        [plan], scheduler="max-min", world={"speed": lambda dnn, processor: 20.0}
    ).run(5)
    assert len(world.finishes("guessed")) > 10
    assert not world.coordinator.faults.messages
