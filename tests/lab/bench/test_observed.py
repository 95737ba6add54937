from __future__ import annotations

import pytest

from heimdall.coordinator import Coordinator
from heimdall.coordinator.replay import record
from heimdall.lab.bench.observed import Observed
from heimdall.runtime.telemetry.trace import Recording
from heimdall.vocabulary.events import ChunkFinished, RunChunk
from heimdall.vocabulary.processors import GPU
from tests.coordinator.test_together import MS, started
from tests.stages import make_plan, make_stage


def test_what_ran_together_says_nothing_of_how_long_a_chunk_takes():
    steps = started("a", "b")
    steps.wake(10)
    for job in (0, 1):
        steps(13, ChunkFinished(job, GPU, 0, 1, 3 * MS))
    seen = Observed(Recording(steps.config, steps.records))
    assert {name: len(times) for name, times in seen.requests_ns.items()} == {"a": 1, "b": 1}
    assert seen.samples("took", GPU, "a") == ()


def observed(stage, chunk, finished, told_ns):
    """A recording of one chunk, asked for at 0."""
    config = Coordinator(
        [make_plan("a", stage)], scheduler="max-total", frame_interval_ns=33 * MS
    ).config()
    records = [record(0, None, [chunk]), record(told_ns, finished, [])]
    return Observed(Recording(config, records))


def chunk_of(end_op):
    return RunChunk(0, "a", 0, 0, GPU, 0, end_op, 20 * MS, "test", 30 * MS)


@pytest.mark.parametrize(("ended", "ms"), [(8, 8), (4, 4), (1, 1)])
def test_a_chunk_that_ended_early_is_compared_with_the_ops_that_ran(ended, ms):
    """A device twice as slow, on which chunks end with their gap."""
    stage = make_stage([1] * 8, chunk_cost_ms=0)
    finished = ChunkFinished(0, GPU, 0, ended, 2 * ms * MS)
    seen = observed(stage, chunk_of(8), finished, told_ns=2 * ms * MS + MS)
    assert seen.samples("took", GPU, "a") == (2 * ms * MS,)
    assert seen.samples("profiled", GPU, "a") == (ms * MS,)
    assert seen.samples("handoff") == (MS // 2,)


def test_fallback_ops_that_a_chunk_held_are_neither_its_time_nor_a_hand_over():
    stage = make_stage([1, 1, 5, 1, 1], fallback={2}, chunk_cost_ms=0.5)
    finished = ChunkFinished(0, GPU, 0, 5, 10 * MS, 5 * MS)
    seen = observed(stage, chunk_of(5), finished, told_ns=15 * MS + MS)
    assert seen.samples("profiled", GPU, "a") == (5 * MS,)  # two runs of its own, a wait each
    assert seen.samples("handoff") == (MS // 2,)
