"""A policy's fault costs neither a frame nor a job, and is told of."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise

import pytest

from heimdall.coordinator.codec import to_dict
from heimdall.coordinator.replay import record, replay
from heimdall.coordinator.supervised import MOST_IN_A_ROW
from heimdall.schedulers.base import Assignment, Choice, FreeRanges, Scheduler, wait
from heimdall.schedulers.max_min import MaxMin
from heimdall.vocabulary.events import (
    DnnMoved,
    Drop,
    Finish,
    InferenceRequested,
    InputReady,
    Prepare,
    RenderingStopped,
    RunChunk,
    SlowDecision,
)
from tests.coordinator.erratic import ERRATIC, UnspeakableError


class Faulty(MaxMin):
    """At fault in one way, as often as it is told to be."""

    name = "faulty"

    def __init__(self, way, times=10**9):
        self.way, self.times = way, times

    def config(self):
        return {"way": self.way}

    def _due(self, way):
        due = self.way == way and self.times > 0
        self.times -= due
        return due

    def select(self, view, now_ns):
        choice = super().select(view, now_ns)
        if self._due("raises"):
            raise ValueError("no idea")
        if self._due("says what is no choice"):
            return "that one"
        if self._due("wakes in the past"):
            return wait(now_ns)
        if choice and self._due("chooses a second job that is not there"):
            return Choice((*choice.assignments, Assignment(10**6, 1)), "both")
        if choice and self._due("chooses one twice"):
            return Choice(choice.assignments * 2, "twice")
        if choice and self._due("goes too far"):
            return Choice((Assignment(choice.assignments[0].job, 10**6),), "far")
        return choice

    def place(self, job, queue, now_ns):
        if self._due("places outside of the queue"):
            return len(queue) + 1
        return super().place(job, queue, now_ns)

    def hopeless(self, job, now_ns):
        if self._due("raises about hope"):
            raise KeyError(job.id)
        return ""

    def preempts(self, job, running):
        if self._due("raises about preemption"):
            raise OSError("nothing there")
        return super().preempts(job, running)

    def observe(self, event):
        if self._due("raises when it hears of an event"):
            raise RuntimeError("deaf")


def test_what_no_policy_may_say_is_told_and_goes_no_further(sim):
    """Neither to a trace, nor to a queue, nor to when the next decision is due."""
    world = play(sim, ERRATIC["erratic"](seed=7, wrong=40), seconds=3.0)
    sim.check(world)
    for _, _, actions in world.log:
        json.dumps([to_dict(action) for action in actions])
    for dnn in "abc":
        assert len(world.finishes(dnn)) > 5, dnn


def test_an_exception_that_python_cannot_print_is_told_all_the_same(sim):
    class Unspeaking(MaxMin):
        name = "unspeaking"

        def select(self, view, now_ns):
            raise UnspeakableError()

    world = play(sim, Unspeaking())
    assert "select: UnspeakableError" in world.coordinator.faults.messages[0]
    assert len(world.finishes("b")) > 5


WAYS = (
    "raises",
    "says what is no choice",
    "wakes in the past",
    "chooses a second job that is not there",
    "chooses one twice",
    "goes too far",
    "places outside of the queue",
    "raises about preemption",
    "raises when it hears of an event",
)


def play(sim, policy, seconds=1.0):
    plans = [sim.plan("a", sim.stage([4] * 9), priority="low"), sim.plan("b", sim.stage([3]))]
    return sim.world([*plans, sim.plan("c", sim.stage([2]), sim.stage([2]))], scheduler=policy).run(
        seconds
    )


@pytest.mark.parametrize("way", WAYS)
def test_whatever_a_policy_does_wrong_all_networks_go_on_and_it_is_named(sim, way):
    world = play(sim, Faulty(way), seconds=2.0)
    sim.check(world)
    for dnn in "abc":
        assert len(world.finishes(dnn)) > 5, dnn
    first, *_, last = world.coordinator.faults.messages
    assert "scheduler 'faulty'" in first
    assert "max-total decides from now on" in last


@pytest.mark.parametrize("way", WAYS)
def test_a_fault_now_and_then_leaves_the_policy_in_place(sim, way):
    world = play(sim, Faulty(way, times=MOST_IN_A_ROW - 1))
    assert "from now on" not in " ".join(world.coordinator.faults.messages)
    assert world.actions(RunChunk)[-1].reason in (
        "lowest utility",
        "no other job fits the gap",
        "its deadline is at risk",
    )


@pytest.mark.parametrize("way", WAYS[:6])
def test_a_choice_that_cannot_be_changes_nothing(sim, way):
    """Not even the answer to what has happened: the Finish and the Prepare are there."""
    world = play(sim, Faulty(way))
    ended = {action.job for action in world.actions(Finish)}
    begun = {action.job for action in world.actions(Prepare)}
    assert ended < begun
    assert len(begun - ended) <= 3


def requested(sim, policy, slo_ms):
    """A model that is asked for every 20 ms, and takes 36."""
    plan = replace(sim.plan("r", sim.stage([4] * 9)), continuous=False, queued=True)
    world = sim.world([plan], scheduler=policy, admission="all")
    for number in range(40):
        asked = InferenceRequested("r", number, int(slo_ms * sim.ms))
        world.at(1 + 20 * number, asked)
    return world.run(3.0)


def test_a_policy_that_raises_about_hope_loses_no_request(sim):
    world = requested(sim, Faulty("raises about hope"), slo_ms=100)
    finished = len(world.finishes("r"))
    assert finished + len(world.actions(Drop)) == 40  # those of the one that took its place
    assert "hopeless: KeyError" in world.coordinator.faults.messages[0]


@pytest.mark.parametrize("scheduler", ["max-total", "max-min"])
def test_in_overload_requests_that_would_be_late_even_alone_are_dropped(sim, scheduler):
    world = requested(sim, scheduler, slo_ms=150)
    dropped = world.actions(Drop)
    assert {each.reason for each in dropped} == {"cannot be in time any more"}
    assert len(dropped) + len(world.finishes("r")) == 40
    in_time = [each for each in world.finishes("r") if not each.missed]
    assert len(in_time) > 10
    assert not world.coordinator.faults.messages


def test_a_policy_with_free_ranges_has_a_stand_in_of_its_kind(sim):
    class Mute(FreeRanges):
        name = "mute"

        def select(self, view, now_ns):
            raise ValueError("nothing to say")

    world = play(sim, Mute())
    assert len(world.finishes("b")) > 5
    assert "fcfs decides from now on" in world.coordinator.faults.messages[-1]


def test_a_policy_that_is_slow_again_and_again_is_named_and_replaced(sim):
    world, said = play(sim, MaxMin()), []
    for _ in range(MOST_IN_A_ROW):
        world.tell(SlowDecision(20_000_000))
        said.append(list(world.coordinator.faults.messages))
    assert said[0] == []
    named = "scheduler 'max-min': took 20 ms to decide; frames wait for it"
    assert said[1:4] == [[named]] * 3
    assert said[4][1:] == [
        "scheduler 'max-min': took 20 ms to decide, 5 times of the last 30; max-total decides "
        "from now on"
    ]
    assert world.coordinator.replaced == "max-min"


def test_a_policy_that_is_slow_every_other_time_is_replaced(sim):
    world = sim.world([sim.plan("a", sim.stage([4]))], scheduler="max-min")
    for _ in range(MOST_IN_A_ROW):
        assert not world.coordinator.replaced
        before = world.coordinator.decisions
        while world.coordinator.decisions < before + 2:
            world.run(0.001)
        world.tell(SlowDecision(20_000_000))
    assert world.coordinator.replaced == "max-min"


def test_a_policy_that_is_slow_once_in_a_while_stays(sim):
    world = sim.world([sim.plan("a", sim.stage([4]))], scheduler="max-min")
    for _ in range(20):
        world.run(0.5)  # many decisions in time
        world.tell(SlowDecision(20_000_000))
    assert not world.coordinator.faults.messages


class Silent(MaxMin):
    """Chooses nothing from its fifth decision on; ``until_ms``: and wants to be woken then."""

    name = "silent"
    asked = 0

    def __init__(self, until_ms=None):
        self.until_ms = until_ms

    def select(self, view, now_ns):
        self.asked += 1
        if self.asked < 5:
            return super().select(view, now_ns)
        return self.until_ms and wait(now_ns + self.until_ms * 1_000_000)


@pytest.mark.parametrize("until_ms", [None, 10])
def test_a_policy_that_chooses_nothing_for_a_second_is_named_and_replaced(sim, until_ms):
    world = play(sim, Silent(until_ms), seconds=4.0)
    starts = [ms for ms, _ in world.timed(RunChunk)]
    waits = [later - ms for ms, later in pairwise(starts)]
    assert sum(wait > 900 for wait in waits) == 1
    first, *_, last = world.coordinator.faults.messages
    assert re.match("scheduler 'silent': chose nothing for 1 s although . jobs? could run;", first)
    assert last.endswith("5 times in a row; max-total decides from now on")


def test_a_silent_policy_is_named_where_nothing_happens_any_more(sim):
    """Nothing is drawn, and the only network waits."""
    world = sim.world([sim.plan("a", sim.stage([4]))], scheduler=Silent())
    world.coordinator.receive(RenderingStopped(), world.now_ns)
    coordinator, now_ns = world.coordinator, world.now_ns
    policy = coordinator.scheduler
    policy.asked = 10
    assert coordinator.receive(InputReady(0), now_ns) == []
    due_ns = coordinator.next_wakeup_ns()
    assert due_ns == now_ns + 1000 * sim.ms
    (chunk,) = coordinator.wake(due_ns)
    assert isinstance(chunk, RunChunk)
    assert "chose nothing for 1 s although a job could run" in coordinator.faults.messages[0]


class Everywhere(MaxMin):
    """Decides for all processors, and for the CPU as it may: one network at a time. Then not."""

    name = "everywhere"
    processors = None

    def __init__(self, way, after=20):
        self.way, self.left = way, after

    def select(self, view, now_ns):
        self.left -= 1
        if self.left < 0 and self.way == "raises":
            raise ValueError("no idea")
        if self.left < 0 and self.way == "says nothing":
            return None
        if self.left < 0 and self.way == "takes any job to the GPU":
            job = view.ready[0]
            return Choice((Assignment(job.id, job.next_op + 1),), "the first")
        if "cpu" in view.idle:
            for job in view.ready:
                if job.processor == "cpu":
                    return Choice((Assignment(job.id, view.longest(job, "cpu"), "cpu"),), "cpu")
        return super().select(view, now_ns) if "gpu" in view.idle else None


OF_ALL = ("works", "raises", "says nothing", "takes any job to the GPU")


@pytest.mark.parametrize("way", OF_ALL)
def test_what_stands_in_for_a_policy_of_all_processors_runs_each_network_where_it_is(sim, way):
    plans = [sim.plan(name, sim.stage([4] * 3, cpu_ms=30)) for name in "abc"]
    world = sim.world(plans, scheduler=Everywhere(way), offload=False)
    for name in "bc":
        world.at(0.5, DnnMoved(name, "cpu"))
    world.run(20.0)
    sim.check(world)
    for dnn in "abc":
        assert len(world.finishes(dnn)) > 100, dnn
    assert {each.processor for each in world.actions(RunChunk) if each.dnn == "b"} >= {"cpu"}
    said = " ".join(world.coordinator.faults.messages)
    assert ("max-total decides from now on" in said) is (way != "works")


@pytest.mark.parametrize("way", OF_ALL)
def test_what_stands_in_where_only_a_job_of_the_cpu_is_ready_starts_it_there(sim, way):
    """Where it chose that for the GPU, the run ended."""
    world = sim.world(
        [sim.plan("a", sim.stage([4] * 3, cpu_ms=30))], scheduler=Everywhere(way), offload=False
    )
    world.at(0.5, DnnMoved("a", "cpu"))
    world.run(20.0)
    sim.check(world)
    assert len(world.finishes("a")) > 100


@pytest.mark.parametrize("kind", [MaxMin, FreeRanges])
@pytest.mark.parametrize("own", ["cpu", "gpu"])
@pytest.mark.parametrize("way", ["raises", "says nothing"])
def test_what_stands_in_keeps_to_the_processors_of_its_policy(sim, kind, own, way):
    def select(self, view, now_ns):
        if way == "raises":
            raise ValueError("no idea")

    given = {"name": "broken", "processors": frozenset({own}), "select": select}
    broken = type("Broken", (kind,), given)
    plans = [sim.plan(name, sim.stage([4] * 3, cpu_ms=30)) for name in "ab"]
    world = sim.world(plans, scheduler=broken(), offload=False)
    if kind is MaxMin:
        world.at(0.5, DnnMoved("b", "cpu"))
    world.run(20.0)
    sim.check(world)
    for dnn in "ab":
        assert len(world.finishes(dnn)) > 100, dnn
    if kind is FreeRanges:
        assert {each.processor for each in world.actions(RunChunk)} == {own}


def test_a_greedy_policy_of_all_processors_offers_the_gpu_only_what_may_run_there(sim):
    class Wide(MaxMin):
        name = "wide"
        processors = None

    plans = [sim.plan(name, sim.stage([4] * 3, cpu_ms=30)) for name in "ab"]
    world = sim.world(plans, scheduler=Wide(), offload=False)
    world.at(0.5, DnnMoved("b", "cpu"))
    world.run(5.0)
    assert len(world.finishes("a")) > 50
    assert "cannot run on 'gpu'" not in " ".join(world.coordinator.faults.messages)


def test_a_policy_that_waits_for_what_it_has_started_is_not_silent(sim):
    class OneByOne(FreeRanges):
        name = "one-by-one"

        def select(self, view, now_ns):
            if view.running:
                return None
            job = view.ready[0]
            return Choice((Assignment(job.id, job.costs[job.stage].ops, "cpu"),), "its turn")

    plans = [sim.plan(name, sim.stage([4], cpu_ms=2500)) for name in "ab"]
    world = sim.world(plans, scheduler=OneByOne()).run(11)
    assert len(world.finishes("b")) >= 1
    assert not world.coordinator.faults.messages


def test_a_run_with_faults_replays_identically(sim):
    world = play(sim, Faulty("raises", times=7))
    records = [record(*call) for call in world.log]
    config = world.coordinator.config()
    assert list(replay(config, records, Faulty("raises", times=7))) == []


def test_a_stand_in_takes_no_part_in_a_policy_that_works(sim):
    class Counting(Scheduler):
        name = "counting"
        asked = 0

        def select(self, view, now_ns):
            Counting.asked += 1
            return MaxMin().select(view, now_ns)

    world = play(sim, Counting())
    assert world.coordinator.decisions == Counting.asked
    assert not world.coordinator.faults.messages
