from __future__ import annotations

import pytest

from heimdall.coordinator.states import CoordinationError
from heimdall.vocabulary.events import (
    ChunkFinished,
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


@pytest.mark.parametrize(
    ("event", "says"),
    [
        (ChunkFinished(0, "gpu", 0, 2, 1), "job 0 of 'a' is preparing: ChunkFinished cannot"),
        (FallbackFinished(0, 2, 1), "FallbackFinished cannot happen now"),
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
