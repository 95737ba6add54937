"""A job takes the reports that its state allows, and refuses all others by name."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import heimdall.coordinator
from heimdall.coordinator.states import CoordinationError
from heimdall.vocabulary.events import (
    ChunkFinished,
    Event,
    FallbackFinished,
    FrameRendered,
    InferenceRequested,
    InputReady,
    JobFailed,
    ProcessorLost,
    RunChunk,
)


@pytest.fixture
def one(sim):
    """One DNN whose first job waits for its input."""
    world = sim.world([sim.plan("a", sim.stage([5, 5]))], offload=False)
    world.tell(FrameRendered(0, world.now_ns + 27 * sim.ms))
    return world


def job_that_is(state, sim):
    """A world in which job 0, of two ops and the second a fallback op, is in this state."""
    a, b = sim.plan("a", sim.stage([5, 5], fallback=[1])), sim.plan("b", sim.stage([5]))
    world = sim.world([a, b], offload=False)
    world.tell(FrameRendered(0, world.now_ns + 27 * sim.ms))
    reports: dict[str, list[Event]] = {
        "preparing": [],
        "ready": [InputReady(1), InputReady(0)],  # the other has the GPU
        "running": [InputReady(0)],
        "fallback": [InputReady(0), CHUNK],
        "finished": [InputReady(0), CHUNK, FallbackFinished(0, 2, 1)],
        "dropped": [JobFailed(0, "no camera")],
    }
    for report in reports[state]:
        world.tell(report)
    return world


CHUNK = ChunkFinished(0, "gpu", 0, 1, 1)
REPORTS = (InputReady(0), CHUNK, FallbackFinished(0, 2, 1), JobFailed(0, "no memory"))


@pytest.mark.parametrize(
    ("state", "only"),
    [
        ("preparing", {InputReady}),
        ("ready", set()),
        ("running", {ChunkFinished}),
        ("fallback", {FallbackFinished}),
        ("finished", set()),  # decoding of the result may still fail
        ("dropped", {InputReady, ChunkFinished, FallbackFinished}),  # what was under way reports
    ],
)
@pytest.mark.parametrize("report", REPORTS, ids=lambda report: type(report).__name__)
def test_a_job_is_told_only_what_can_happen_to_it_now(sim, state, only, report):
    world, kind = job_that_is(state, sim), type(report)
    if kind in {*only, JobFailed}:
        answer = world.coordinator.receive(report, world.now_ns)
        assert (answer == []) == (state in ("finished", "dropped"))
    else:
        says = rf"job 0 of 'a' is {state}: {kind.__name__} cannot happen now \(only .*JobFailed"
        with pytest.raises(CoordinationError, match=says):
            world.coordinator.receive(report, world.now_ns)


def test_the_state_of_a_job_is_set_in_one_place():
    """Else its table would not be the whole truth."""
    folder = Path(heimdall.coordinator.__file__).parent
    setting = [
        path.name
        for path in folder.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        and node.attr == "state"
        and isinstance(node.ctx, ast.Store)
    ]
    assert setting == ["job.py"]


@pytest.mark.parametrize(
    ("event", "says"),
    [
        (InputReady(99), "job 99 is not known: InputReady cannot happen to it"),
        (InputReady(0, -1), "-1 inputs are ready"),
        (InferenceRequested("b"), "unknown DNN 'b'; choose one of: a"),
        (ProcessorLost("npu"), "unknown processor 'npu'; choose one of: cpu, gpu"),
    ],
)
def test_an_event_that_cannot_happen_is_refused(one, event, says):
    with pytest.raises(CoordinationError, match=says):
        one.coordinator.receive(event, one.now_ns)


def test_a_chunk_that_was_not_asked_for_is_refused(one):
    one.tell(InputReady(0))
    for start, end in ((0, 0), (0, 3), (1, 2)):
        with pytest.raises(
            CoordinationError, match=r"runs \('gpu', 0, 2\), but ChunkFinished says"
        ):
            one.coordinator.receive(ChunkFinished(0, "gpu", start, end, 1), one.now_ns)


def test_a_chunk_may_end_early_and_the_next_goes_on_there(one):
    (chunk,) = one.tell(InputReady(0))
    assert chunk.until_ns > one.now_ns
    (rest,) = one.tell(ChunkFinished(0, "gpu", 0, 1, 1))
    assert (rest.start_op, rest.end_op) == (1, 2)


@pytest.mark.parametrize("options", [{"mode": "static"}, {"render_priority": "equal"}])
def test_a_chunk_that_was_decided_beforehand_may_not_end_early(sim, options):
    world = sim.world([sim.plan("a", sim.stage([5, 5]))], offload=False, **options)
    world.tell(FrameRendered(0, world.now_ns + 27 * sim.ms))
    world.tell(InputReady(0))
    world.tell(FrameRendered(1, world.now_ns + 27 * sim.ms))
    (chunk,) = world.actions(RunChunk)
    assert chunk.until_ns == 0
    with pytest.raises(CoordinationError, match="but ChunkFinished says"):
        world.coordinator.receive(ChunkFinished(0, "gpu", 0, 1, 1), world.now_ns)


def test_a_finished_job_takes_no_second_chunk_but_may_fail_to_decode(one):
    one.tell(InputReady(0))
    one.tell(ChunkFinished(0, "gpu", 0, 2, 10))
    with pytest.raises(CoordinationError, match="job 0 of 'a' is finished"):
        one.coordinator.receive(ChunkFinished(0, "gpu", 0, 2, 10), one.now_ns)
    assert one.coordinator.receive(JobFailed(0, "decode"), one.now_ns) == []
    assert one.coordinator.snapshot(one.now_ns).dnns["a"].failures == 1
