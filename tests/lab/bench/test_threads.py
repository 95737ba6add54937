"""Baselines' threads: a DNN each, which report what they did, and what they could not do."""

from __future__ import annotations

import dataclasses
import queue
import threading
import time
from collections import Counter

import numpy as np
import pytest

from heimdall.app import DNN
from heimdall.capture import Frame
from heimdall.coordinator.bystander import InferenceEnded
from heimdall.lab.bench.inference import Session
from heimdall.lab.bench.systems import Admission
from heimdall.lab.bench.threads import LOOK_S, Threads
from heimdall.models.base import Network, Pipeline, Prepared
from heimdall.runtime.execution.deployment import Deployment
from heimdall.runtime.execution.runs import Result
from heimdall.vocabulary.events import JobFailed, Prepare
from heimdall.vocabulary.plans import StagePlan
from heimdall.vocabulary.processors import CPU

FRAME = Frame(np.zeros((4, 4, 3), np.uint8), 1, 0)


class Mean(Pipeline):
    """A stage whose result is what its network gives."""

    networks = (Network("none.onnx"),)
    broken = False

    def prepare(self, stage, image, previous, options):
        if self.broken:
            raise ValueError("no such picture")
        return [Prepared({"x": image}, None)]

    def decode(self, stage, outputs, context):
        return outputs["y"]


class Stand(Session):
    """In the place of a network: gives 1, when it may."""

    processor, chunks = CPU, 1

    def __init__(self):
        self.may, self.begun, self.closed = threading.Event(), threading.Event(), False
        self.may.set()
        self.does = lambda step: None

    def write(self, inputs):
        self.does("write")

    def run(self):
        self.does("run")
        self.begun.set()
        self.may.wait(20)

    def read(self):
        self.does("read")
        return {"y": 1}

    def close(self):
        self.closed = True


class Bench:
    """Threads with one DNN, called "face:2" here and "face" by its app."""

    def __init__(self, *, continuous=False, pipeline=None, network=None, **options):
        self.inbox: queue.SimpleQueue = queue.SimpleQueue()
        self.pipeline, self.network = pipeline or Mean(), network or Stand()
        dnn = DNN("face", model=self.pipeline, on_event=True)
        deployment = Deployment(dnn, self.pipeline, [], None)
        deployment.complete([StagePlan((1,), (False,), 1, 0, ())])
        # A scenario may say otherwise than the declaration; the plan is what counts.
        deployment.plan = dataclasses.replace(deployment.plan, continuous=continuous)
        self.threads = Threads(self.inbox, lambda deployment: [self.network], None, **options)
        self.frame = FRAME
        self.threads.add("face:2", deployment, lambda: self.frame, lambda value, frame: None)

    def ask(self, job):
        self.threads.execute([Prepare(job, "face:2", 0)])

    def next(self):
        return self.inbox.get(timeout=20)


@pytest.fixture
def bench():
    made = []

    def make(**options):
        made.append(Bench(**options))
        return made[-1]

    yield make
    for one in made:
        one.network.may.set()
        one.threads.close()


def test_an_inference_reports_the_job_that_was_asked_for(bench):
    b = bench()
    for job in (4, 9):
        b.ask(job)
        ended, result = b.next(), b.next()
        assert isinstance(ended, InferenceEnded)
        assert isinstance(result, Result)
        assert (ended.finish.job, result.finish.job, result.value) == (job, job, 1)
    assert b.inbox.empty()


def test_whether_it_goes_on_by_itself_is_what_its_plan_says(bench):
    b = bench(continuous=True)
    b.ask(0)
    assert [type(b.next()) for _ in range(2)] == [InferenceEnded, Result]
    b.frame = dataclasses.replace(FRAME, sequence=FRAME.sequence + 1)
    assert [type(b.next()) for _ in range(2)] == [InferenceEnded, Result]


def test_no_picture_is_inferred_twice(bench):
    b = bench(continuous=True)
    b.ask(0)
    assert [type(b.next()) for _ in range(2)] == [InferenceEnded, Result]
    with pytest.raises(queue.Empty):
        b.inbox.get(timeout=20 * LOOK_S)


def test_an_inference_that_fails_is_reported_to_whoever_waits(bench):
    b = bench()
    b.pipeline.broken = True
    b.ask(4)
    reason = "inference failed: ValueError: no such picture"
    assert b.next() == JobFailed(4, reason)
    assert b.threads.errors_of(["face:2"]) == [f"face: {reason}"]
    assert b.threads.message_of(["face:2"]) == f"face: {reason}"
    assert b.threads.errors_of(["face"]) == []


def test_dnns_are_removed_when_their_last_inference_has_ended(bench, monkeypatch):
    b = bench()
    assert b.threads.remove(["face:2"])
    assert b.network.closed
    monkeypatch.setattr("heimdall.lab.bench.threads.LAST_S", 0.05)
    b = bench()
    b.network.may.clear()
    b.ask(1)
    assert b.network.begun.wait(20)
    assert not b.threads.remove(["face:2"])
    assert not b.network.closed  # it is still being used


class Clock:
    """Goes on as far as it is told."""

    monotonic = staticmethod(time.monotonic)

    def __init__(self):
        self.now_ns = 1_000_000

    def perf_counter_ns(self):
        return self.now_ns

    def go_on(self, by_ns):
        self.now_ns += by_ns


class Crops(Mean):
    """Two crops of the picture."""

    def prepare(self, stage, image, previous, options):
        return [Prepared({"x": image}, None)] * 2


def test_latency_leaves_out_the_first_input_and_the_last_output(bench, monkeypatch):
    """As in coordinated runs, where the pool copies these two."""
    clock = Clock()
    monkeypatch.setattr("heimdall.lab.bench.threads.time", clock)
    b = bench(pipeline=Crops())
    takes_ns = {"write": 1, "run": 100, "read": 10_000}
    b.network.does = lambda step: clock.go_on(takes_ns[step])
    b.ask(0)
    finish = b.next().finish
    assert finish.latency_ns == 100 + 10_000 + 1 + 100
    result = b.next()
    assert result.decoded_ns - result.requested_ns == 2 * (1 + 100 + 10_000)


def test_threads_that_end_do_not_wait_for_one_that_will_not_go_on():
    network = Stand()
    network.may.clear()
    b = Bench(network=network, let_through=network.may.set)
    b.ask(1)
    assert network.begun.wait(20)
    assert b.threads.remove(["face:2"])
    assert network.closed


# --- threads that wait for one another ----------------------------------------------------------


class Several:
    """Threads with DNNs "a" and "b", asked once each time, that run when they may."""

    def __init__(self, admission, constraints_ns=(1, 1), stands=(Stand, Stand)):
        self.inbox: queue.SimpleQueue = queue.SimpleQueue()
        self.networks = {name: make() for name, make in zip("ab", stands, strict=True)}
        self.threads = Threads(
            self.inbox, lambda deployment: [self.networks[deployment.dnn.name]], None, admission
        )
        for name, constraint_ns in zip("ab", constraints_ns, strict=True):
            pipeline = Mean()
            deployment = Deployment(DNN(name, model=pipeline, on_event=True), pipeline, [], None)
            deployment.complete([StagePlan((1,), (False,), 1, 0, ())])
            deployment.plan = dataclasses.replace(deployment.plan, constraint_ns=constraint_ns)
            self.threads.add(name, deployment, lambda: FRAME, lambda value, frame: None)

    def ask(self, *names):
        self.threads.execute([Prepare(0, name, 0) for name in names])

    def close(self):
        for network in self.networks.values():
            network.may.set()
        self.threads.close()


@pytest.mark.parametrize("admission", [Admission.DEADLINE, Admission.ROUNDS])
def test_one_waits_until_the_other_has_ended(admission):
    several = Several(admission)
    a, b = several.networks["a"], several.networks["b"]
    a.may.clear()
    several.ask("a")
    assert a.begun.wait(20)
    several.ask("b")
    assert not b.begun.wait(0.2)
    a.may.set()
    assert b.begun.wait(20)
    several.close()


def test_without_admission_none_waits():
    several = Several(Admission.FREE)
    a, b = several.networks["a"], several.networks["b"]
    a.may.clear()
    several.ask("a", "b")
    assert a.begun.wait(20)
    assert b.begun.wait(20)
    several.close()


class Noting(Clock):
    """Knows how often each thread has looked at it."""

    def __init__(self):
        super().__init__()
        self.looks: Counter[str] = Counter()

    def perf_counter_ns(self):
        self.looks[threading.current_thread().name] += 1
        return self.now_ns


def test_the_wait_for_a_frame_that_is_under_way_counts_as_latency(monkeypatch):
    clock = Noting()
    monkeypatch.setattr("heimdall.lab.bench.threads.time", clock)
    several = Several(Admission.ROUNDS)
    a = several.networks["a"]
    a.may.clear()
    several.ask("a")
    assert a.begun.wait(20)
    several.ask("b")
    while clock.looks["b"] < 2:  # the second time is when it asks
        time.sleep(0.001)
    clock.go_on(1000)
    a.may.set()
    posted = [several.inbox.get(timeout=20) for _ in range(4)]
    ended = [each.finish for each in posted if isinstance(each, InferenceEnded)]
    assert [(finish.dnn, finish.latency_ns) for finish in ended] == [("a", 1000), ("b", 1000)]
    several.close()


def test_who_fails_does_not_keep_the_others_out():
    several = Several(Admission.ROUNDS)
    several.networks["a"].does = lambda step: 1 / 0
    several.ask("a")
    assert isinstance(several.inbox.get(timeout=20), JobFailed)
    several.ask("b")
    assert several.networks["b"].begun.wait(20)
    several.close()


def test_threads_that_wait_for_one_another_end_when_they_are_stopped():
    several = Several(Admission.ROUNDS)
    several.ask("a", "b")
    assert several.threads.remove(["a", "b"])
