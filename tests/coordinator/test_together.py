"""Work that runs together on a processor with several lanes, as a policy chooses it."""

from __future__ import annotations

import json
import re

import pytest

from heimdall.coordinator import Coordinator
from heimdall.coordinator.codec import from_dict, to_dict
from heimdall.coordinator.replay import record, replay
from heimdall.errors import ConfigError
from heimdall.schedulers.base import Assignment, Choice, FreeRanges, wait
from heimdall.vocabulary.events import (
    ChunkFinished,
    Finish,
    FrameRendered,
    Group,
    InferenceRequested,
    InputReady,
    JobFailed,
    Prepare,
    ProcessorBack,
    ProcessorLost,
    RenderingStopped,
    RenderStarted,
    RunChunk,
    RunTogether,
)
from heimdall.vocabulary.plans import DnnPlan, StagePlan
from heimdall.vocabulary.processors import GPU, Processor

MS = 1_000_000


def plan(name, ops=4):
    stage = StagePlan((2 * MS,) * ops, (False,) * ops, 0, 0, ())
    return DnnPlan(name, (stage,), 100 * MS, continuous=False, queued=True)


class Pairs(FreeRanges):
    """The next two ops of every job that waits, at the same time; ``due_ns``: not before then."""

    name = "pairs"

    def __init__(self, due_ns=0, stages=1):
        self.due_ns, self.stages = due_ns, stages

    def config(self):
        return {"due_ns": self.due_ns}

    def select(self, view, now_ns):
        if now_ns < self.due_ns:
            return wait(self.due_ns)
        if GPU not in view.idle:
            return None
        return Choice(
            tuple(
                Assignment(job.id, job.next_op + 1 + stage, GPU, group=index + 1, stage=stage)
                for index, job in enumerate(view.ready)
                for stage in range(self.stages)
            ),
            "in pairs",
        )


class Steps:
    """Tells a coordinator, and keeps what it was told and has answered."""

    def __init__(self, policy, *names, lanes=4, ops=4, renders=False):
        self.coordinator = Coordinator(
            [plan(name, ops) for name in names],
            scheduler=policy,
            frame_interval_ns=30 * MS,
            admission="all",
            processors=[Processor(GPU, "gpu", renders, lanes)],
        )
        self.config, self.records = self.coordinator.config(), []
        if not renders:
            self(0, RenderingStopped())

    def __call__(self, at_ms, event):
        actions = self.coordinator.receive(event, int(at_ms * MS))
        self.records.append(record(int(at_ms * MS), event, actions))
        return actions

    def wake(self, at_ms):
        actions = self.coordinator.wake(int(at_ms * MS))
        self.records.append(record(int(at_ms * MS), None, actions))
        return actions

    def wait(self, at_ms, *names):
        """Requests that are ready; what the last of them led to."""
        for request, name in enumerate(names):
            (prepare,) = self(at_ms, InferenceRequested(name, request))
            assert isinstance(prepare, Prepare)
        return prepare.job


def started(*names, **options):
    """Two jobs of which the first runs alone, and the rest waits."""
    steps = Steps(options.pop("policy", Pairs(10 * MS)), *names, **options)
    steps.wait(0, *names)
    for job in range(len(names)):
        assert steps(1, InputReady(job)) == []
    return steps


def test_all_that_a_policy_groups_is_one_action():
    steps = started("a", "b")
    assert steps.coordinator.next_wakeup_ns() == 10 * MS
    (action,) = steps.wake(10)
    assert action == RunTogether(
        GPU,
        ((Group(0, "a", 0, 0, ((0, 1),)), Group(1, "b", 0, 0, ((0, 1),))),),
        2 * MS,
        "in pairs",
    )
    assert action.parts == ((0, 0, 1), (1, 0, 1))


def test_each_job_of_it_is_told_and_the_processor_is_free_after_the_last():
    steps = started("a", "b")
    steps.wake(10)
    assert steps(13, ChunkFinished(0, GPU, 0, 1, 3 * MS)) == []
    (action,) = steps(13, ChunkFinished(1, GPU, 0, 1, 3 * MS))
    assert action.parts == ((0, 1, 2), (1, 1, 2))


def test_stages_go_on_where_the_last_one_ended():
    steps = started("a", policy=Pairs(10 * MS, stages=2))
    (action,) = steps.wake(10)
    assert [[group.ops for group in groups] for groups in action.stages] == [
        [((0, 1),)],
        [((1, 2),)],
    ]
    assert action.expected_ns == 4 * MS
    assert action.parts == ((0, 0, 2),)


def test_a_job_that_ends_is_finished_once():
    steps = started("a", "b", ops=1)
    steps.wake(10)
    (finish,) = steps(12, ChunkFinished(0, GPU, 0, 1, 2 * MS))
    assert isinstance(finish, Finish)
    (finish,) = steps(12, ChunkFinished(1, GPU, 0, 1, 2 * MS))
    assert isinstance(finish, Finish)


def test_what_was_learnt_of_ops_alone_stays():
    steps = started("a", "b")
    steps.wake(10)
    for job in range(2):
        actions = steps(90, ChunkFinished(job, GPU, 0, 1, 80 * MS))
    assert actions[0].expected_ns == 2 * MS


def test_a_failed_job_leaves_the_others():
    steps = started("a", "b")
    steps.wake(10)
    (drop,) = steps(12, JobFailed(0, "no"))
    assert drop.job == 0
    (action,) = steps(13, ChunkFinished(1, GPU, 0, 1, 3 * MS))
    assert action.parts == ((1, 1, 2),)


def test_a_lost_processor_gives_back_all_of_it():
    steps = Steps(Pairs(10 * MS), "a", "b")
    steps.coordinator = Coordinator(
        [plan("a"), plan("b")],
        scheduler=Pairs(10 * MS),
        frame_interval_ns=30 * MS,
        admission="all",
        processors=[Processor(GPU, "gpu", lanes=4), Processor("npu", "npu")],
    )
    steps.wait(0, "a", "b")
    for job in range(2):
        steps(1, InputReady(job))
    steps.wake(10)
    assert steps(11, ProcessorLost(GPU)) == []
    (action,) = steps(20, ProcessorBack(GPU))
    assert action.parts == ((0, 0, 1), (1, 0, 1))


def test_it_waits_for_a_gap_with_room_where_frames_are_drawn():
    steps = Steps(Pairs(0, stages=4), "a", "b", renders=True)  # 8 ms
    steps(0, FrameRendered(0, 20 * MS))
    steps.wait(1, "a")
    assert steps(15, InputReady(0)) == []
    steps(20, RenderStarted(1))
    (action,) = steps(30, FrameRendered(1, 50 * MS))
    assert action.expected_ns == 8 * MS


def test_it_is_replayed_as_it_was():
    steps = started("a", "b", policy=Pairs(10 * MS, stages=2))
    steps.wake(10)
    steps(13, ChunkFinished(0, GPU, 0, 2, 3 * MS))
    steps(13, ChunkFinished(1, GPU, 0, 2, 3 * MS))
    config, records = json.loads(json.dumps([steps.config, steps.records]))
    assert not list(replay(config, records, Pairs(10 * MS, stages=2)))
    with pytest.raises(ConfigError, match="'pairs' cannot be made of its name"):
        list(replay(config, records))
    with pytest.raises(ConfigError, match="recorded was scheduler 'pairs'"):
        list(replay(config, records, Pairs(11 * MS)))


def test_it_can_be_written_and_read():
    action = RunTogether(GPU, ((Group(0, "a", 0, 0, ((0, 1), (2, 3))),),), 5, "why")
    assert from_dict(json.loads(json.dumps(to_dict(action)))) == action


class Chosen(Pairs):
    def __init__(self, *assignments):
        super().__init__(10 * MS)
        self.assignments = assignments

    def select(self, view, now_ns):
        usual = super().select(view, now_ns)
        return Choice(self.assignments, "a bug") if usual and usual.assignments else usual


@pytest.mark.parametrize(
    ("assignments", "says"),
    [
        ([Assignment(0, 2, group=1), Assignment(7, 2, group=2)], "chose job 7, which could not"),
        ([Assignment(0, 9, group=1)], r"of 4: ops \[\(0, 9\)\] are not one range"),
        ([Assignment(0, 0, group=1)], "are not one range"),
        ([Assignment(0, 2, group=1, ops=((1, 2),))], "are not one range"),
        ([Assignment(0, 2, ops=((0, 1),)), Assignment(0, 2, ops=((0, 2),))], "are not one range"),
        ([Assignment(0, 2, group=1), Assignment(1, 2, "npu")], "all need 'gpu', idle"),
        ([Assignment(0, 2, "npu", group=1)], "on processor 'npu', which has 0 lanes"),
        ([Assignment(0, 4, group=each, ops=((each, each + 1),)) for each in range(4)], "3 lanes"),
    ],
)
def test_a_policy_that_groups_wrongly_is_named(assignments, says):
    steps = started("a", "b", policy=Chosen(*assignments), lanes=3)
    assert {type(each) for each in steps.wake(10)} == {RunChunk}  # another policy's choice
    assert re.search(says, steps.coordinator.faults.messages[0])


def test_a_processor_with_one_lane_refuses_it():
    steps = started("a", "b", lanes=1)
    steps.wake(10)
    (fault,) = steps.coordinator.faults.messages
    assert "'gpu' has one lane: nothing runs together" in fault
