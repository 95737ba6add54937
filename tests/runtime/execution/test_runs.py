"""A job's tensors: held by one thread at a time, left to another job when it is over."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from heimdall.engine.null import NullEngine
from heimdall.runtime.execution.deployment import Networks
from heimdall.runtime.execution.runs import RegisteredDnn, RunningJob
from heimdall.runtime.execution.unit_network import UnitNetwork
from heimdall.vocabulary.events import RunChunk
from heimdall.vocabulary.plans import StagePlan
from heimdall.vocabulary.processors import CPU, GPU
from tests.runtime.execution.test_executor import doubling_graph

OPS = 3


class Job(RunningJob):
    """Two tasks on zeros."""

    def prepare(self, stage):
        return 2, 0.0

    def result(self):
        return self.outputs


class Desk:
    """One state on each of two processors, and what was reported."""

    def __init__(self):
        graph = doubling_graph(OPS)
        self.unit_networks = {
            each: [UnitNetwork(NullEngine(each).load(graph), range(OPS + 1), alone=True)]
            for each in (GPU, CPU)
        }
        stage = StagePlan((1,) * OPS, (False,) * OPS, 1, 0, ())
        networks = Networks("net", [graph], [stage], self.unit_networks)
        self.reports: list[str] = []
        self.registered = RegisteredDnn(
            "net", networks, None, lambda what, why: self.reports.append(f"{what}: {why}")
        )

    def job(self):
        made = Job(self.registered, 0)
        made.inputs = [{"x": np.zeros((1, 3), np.float32)}] * 2
        return made

    def is_free(self, processor=GPU):
        return not self.unit_networks[processor][0]._spare.empty()


@pytest.fixture
def registered_models():
    return Desk()


def chunk(start, end, task=0, processor=GPU):
    return RunChunk(1, "net", 0, task, processor, start, end, 0, "test")


def run(job, *where):
    action = chunk(*where)
    with job.at(action, action.processor) as at:
        return None if at is None else at.run(action.end_op)


def test_a_job_keeps_its_state_from_range_to_range_and_task_to_task(registered_models):
    job = registered_models.job()
    for task in (0, 1):
        for start in range(OPS):
            run(job, start, start + 1, task)
            assert not registered_models.is_free()
    assert list(job.outputs) == [0]  # the last one is read elsewhere
    job.read_last()
    assert list(job.result()) == [0, 1]
    assert registered_models.is_free()


def test_a_job_goes_on_elsewhere_with_its_tensors(registered_models, monkeypatch):
    job = registered_models.job()
    run(job, 0, 2)
    run(job, 2, 3, 0, CPU)
    assert registered_models.is_free(GPU)
    assert not registered_models.is_free(CPU)
    assert registered_models.reports == []


def test_tensors_that_cannot_be_read_are_computed_anew_and_told_of(registered_models, monkeypatch):
    job = registered_models.job()
    run(job, 0, 2)

    def fail(state):
        raise OSError("the device is gone")

    monkeypatch.setattr(registered_models.unit_networks[GPU][0].network, "hand_over", fail)
    assert run(job, 2, 3, 0, CPU) is not None
    assert registered_models.reports == ["reading tensors where it ran: the device is gone"]


def test_a_range_that_fails_leaves_the_state_to_others(registered_models):
    job = registered_models.job()
    with pytest.raises(OSError, match="gone"), job.at(chunk(0, 2), GPU):
        raise OSError("gone")
    assert registered_models.is_free()
    assert run(job, 0, 3) is not None  # it may be tried again


def test_what_was_dropped_is_not_run(registered_models):
    job = registered_models.job()
    run(job, 0, 1)
    job.end()
    assert registered_models.is_free()
    assert run(job, 1, 2) is None
    assert registered_models.is_free()


def test_a_job_that_is_dropped_while_it_runs_keeps_its_state_until_then(registered_models):
    """And only the next job waits for it."""
    job, other = registered_models.job(), registered_models.job()
    begun, go_on, ran = threading.Event(), threading.Event(), threading.Event()

    def work():
        with job.at(chunk(0, 2), GPU) as at:
            begun.set()
            go_on.wait(20)
            at.run(2)

    def follow():
        run(other, 0, 3)
        ran.set()

    threading.Thread(target=work, daemon=True).start()
    assert begun.wait(20)
    job.end()  # does not wait
    assert not registered_models.is_free()
    threading.Thread(target=follow, daemon=True).start()
    assert not ran.wait(0.05)
    go_on.set()
    assert ran.wait(20)


def test_an_input_is_written_ahead_once(registered_models, monkeypatch):
    written = []
    network = registered_models.unit_networks[GPU][0].network
    write = network.write

    def noting(state, inputs):
        written.append(state)
        write(state, inputs)

    monkeypatch.setattr(network, "write", noting)
    job = registered_models.job()
    job.write_ahead(0)
    run(job, 0, OPS)
    assert len(written) == 1
    run(job, 0, OPS, 1)
    assert len(written) == 2
