"""Models that a thread each answers for, without a coordinator."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from onnx import helper

from heimdall.errors import ConfigError, RequestError
from heimdall.lab.bench.admission import Free, OneAtATime, Passage
from heimdall.lab.bench.model_threads import ThreadedModel, refuse_batches
from heimdall.lab.bench.systems import parse_system
from tests.networks import small_graph

GRAPH = small_graph([helper.make_node("Relu", ["x"], ["y"])], {"x": [1, 2]}, {"y": [1, 2]})
X = {"x": np.ones((1, 2), np.float32)}
LONG_MS = 1e6


class Steps:
    """An inference that waits to be let go on."""

    processor, chunks = "gpu", 0

    def __init__(self, fails: bool = False) -> None:
        self.began, self.may_end, self.fails = threading.Event(), threading.Event(), fails
        self.closed = False

    def write(self, inputs) -> None:
        self.inputs = inputs

    def run(self) -> None:
        self.began.set()
        assert self.may_end.wait(30)
        if self.fails:
            raise ValueError("no")

    def read(self):
        return {"y": self.inputs["x"]}

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def model():
    made = []

    def make(inference, gate=None, name="net", **more):
        passage = Passage(gate or Free(), name)
        made.append(ThreadedModel(name, GRAPH, inference, LONG_MS, passage, **more))
        return made[-1]

    yield make
    for each in made:
        each.stop()
        each.join()


def test_requests_are_answered_in_their_order(model):
    steps = Steps()
    net = model(steps, expires=False)
    first, second = net.submit(X), net.submit(X)
    assert steps.began.wait(30)
    assert not first.done()
    steps.may_end.set()
    assert list(second.result(30)) == ["y"]
    assert first.done()


def test_one_that_has_waited_too_long_is_dropped_and_one_that_runs_ends(model):
    steps = Steps()
    net = model(steps, expires=True)
    running = net.submit(X, LONG_MS)
    assert steps.began.wait(30)
    late = net.submit(X, 1e-6)
    steps.may_end.set()
    assert running.result(30)
    with pytest.raises(RequestError, match="had not begun at its deadline"):
        late.result(30)


def test_without_that_rule_it_is_answered_late(model):
    steps = Steps()
    steps.may_end.set()
    assert model(steps, expires=False).run(X, 1e-6)


def test_an_inference_that_fails_is_told_to_its_client_alone(model):
    steps = Steps(fails=True)
    steps.may_end.set()
    net = model(steps, expires=False)
    with pytest.raises(RequestError, match="no"):
        net.run(X)
    steps.fails = False
    assert net.run(X)


def test_the_earliest_deadline_is_next_where_one_runs_at_a_time(model):
    gate, steps = OneAtATime(), [Steps() for _ in range(3)]
    nets = [model(each, gate, str(i), expires=False) for i, each in enumerate(steps)]
    futures = [nets[0].submit(X)]
    assert steps[0].began.wait(30)
    futures += [nets[1].submit(X, 2 * LONG_MS), nets[2].submit(X, LONG_MS)]
    while len(gate._waiting) < 2:
        pass
    steps[0].may_end.set()
    assert steps[2].began.wait(30)
    assert not steps[1].began.is_set()
    for each in steps:
        each.may_end.set()
    assert all(each.result(30) for each in futures)


def test_baselines_that_hand_over_parts_are_refused():
    refuse_batches(parse_system("multithread"))
    with pytest.raises(ConfigError, match=r"render-first .*multithread, fixed-N"):
        refuse_batches(parse_system("render-first"))
