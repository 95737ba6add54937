"""The baselines' coordinator: it passes on what is wanted, whoever comes and goes."""

from __future__ import annotations

import pytest

from heimdall.coordinator.bystander import Bystander, InferenceEnded
from heimdall.vocabulary.events import (
    DnnAdded,
    DnnRemoved,
    Finish,
    InferenceRequested,
    JobFailed,
    Prepare,
    RenderStarted,
)
from heimdall.vocabulary.processors import GPU


@pytest.fixture
def people(sim):
    return sim.plan("people", sim.stage([5]))


@pytest.fixture
def face(sim):
    return sim.plan("face", sim.stage([5]), continuous=False)


def test_jobs_have_numbers_of_their_own(people, face):
    bystander = Bystander([people, face])
    assert bystander.receive(RenderStarted(0), 0) == [Prepare(0, "people", 0)]
    assert bystander.receive(RenderStarted(1), 0) == []
    assert bystander.receive(InferenceRequested("face"), 0) == [Prepare(1, "face", 0)]
    assert bystander.receive(JobFailed(1, "no camera"), 0) == []
    assert bystander.receive(InferenceRequested("face"), 0) == [Prepare(2, "face", 0)]


def test_a_dnn_that_is_added_runs_and_is_counted(people, face):
    bystander = Bystander()
    assert bystander.receive(DnnAdded(people), 0) == []  # it starts with the first frame
    assert bystander.receive(RenderStarted(0), 0) == [Prepare(0, "people", 0)]
    assert bystander.receive(DnnAdded(face), 0) == []  # it waits for a request
    late = people.named("people:2")
    assert bystander.receive(DnnAdded(late), 0) == [Prepare(1, "people:2", 0)]
    bystander.receive(InferenceEnded(Finish(1, "people:2", GPU, 7, True, 1)), 0)
    status = bystander.snapshot(0).dnns["people:2"]
    assert (status.gpu, status.misses, status.latency_ns) == (1, 1, 7)


def test_a_dnn_that_has_been_removed_is_forgotten(people):
    bystander = Bystander([people])
    ended = InferenceEnded(Finish(0, "people", GPU, 7, False, 1))
    bystander.receive(ended, 0)
    bystander.receive(DnnRemoved("people"), 0)
    bystander.receive(DnnRemoved("people"), 0)
    bystander.receive(ended, 0)  # its last inference
    assert bystander.snapshot(0).dnns == {}
    bystander.receive(DnnAdded(people), 0)
    assert bystander.snapshot(0).dnns["people"].gpu == 0
