from __future__ import annotations

from heimdall.lab.bench.observed import Observed
from heimdall.runtime.telemetry.trace import Recording
from heimdall.vocabulary.events import ChunkFinished
from heimdall.vocabulary.processors import GPU
from tests.coordinator.test_together import MS, started


def test_what_ran_together_says_nothing_of_how_long_a_chunk_takes():
    steps = started("a", "b")
    steps.wake(10)
    for job in (0, 1):
        steps(13, ChunkFinished(job, GPU, 0, 1, 3 * MS))
    seen = Observed(Recording(steps.config, steps.records))
    assert {name: len(times) for name, times in seen.requests_ns.items()} == {"a": 1, "b": 1}
    assert seen.samples("took", GPU, "a") == ()
