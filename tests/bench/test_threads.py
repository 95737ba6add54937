"""Baselines' threads: a DNN each, which report what they did, and what they could not do."""

from __future__ import annotations

import dataclasses
import queue
import threading
import time

import numpy as np
import pytest

from heimdall.app import DNN
from heimdall.bench.inference import Session
from heimdall.bench.threads import Threads
from heimdall.capture import Frame
from heimdall.coordinator.bystander import InferenceEnded
from heimdall.models.base import Network, Pipeline, Prepared
from heimdall.runtime.deployment import Deployment
from heimdall.runtime.executor import Result
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

    def __init__(self, *, continuous=False, pipeline=None):
        self.inbox: queue.SimpleQueue = queue.SimpleQueue()
        self.pipeline, self.network = pipeline or Mean(), Stand()
        dnn = DNN("face", model=self.pipeline, on_event=True)
        deployment = Deployment(dnn, self.pipeline, [], None)
        deployment.complete([StagePlan((1,), (False,), 1, 0, ())])
        # A scenario may say otherwise than the declaration; the plan is what counts.
        deployment.plan = dataclasses.replace(deployment.plan, continuous=continuous)
        self.threads = Threads(self.inbox, lambda deployment: [self.network], None)
        self.threads.add("face:2", deployment, lambda: FRAME, lambda value, frame: None)

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
    assert [type(b.next()) for _ in range(4)] == [InferenceEnded, Result] * 2


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
    monkeypatch.setattr("heimdall.bench.threads.LAST_S", 0.05)
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
    monkeypatch.setattr("heimdall.bench.threads.time", clock)
    b = bench(pipeline=Crops())
    takes_ns = {"write": 1, "run": 100, "read": 10_000}
    b.network.does = lambda step: clock.go_on(takes_ns[step])
    b.ask(0)
    finish = b.next().finish
    assert finish.latency_ns == 100 + 10_000 + 1 + 100
    result = b.next()
    assert result.decoded_ns - result.requested_ns == 2 * (1 + 100 + 10_000)
