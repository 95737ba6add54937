"""What policies with one queue are told of their processors."""

from __future__ import annotations

import pytest

from heimdall.coordinator import Coordinator
from heimdall.schedulers.base import Assignment, Choice, FreeRanges
from heimdall.vocabulary.events import (
    ChunkFinished,
    InferenceRequested,
    InputReady,
    RenderingStopped,
)
from heimdall.vocabulary.plans import DnnPlan, StagePlan
from heimdall.vocabulary.processors import CPU, GPU, usual

MS = 1_000_000


class Watching(FreeRanges):
    """Op by op, on the GPU; keeps what it was told each time."""

    name = "watching"

    def __init__(self):
        self.told = []

    def select(self, view, now_ns):
        self.told.append(dict(view.handoff_ns))
        if GPU not in view.idle:
            return None
        job = view.ready[0]
        return Choice((Assignment(job.id, job.next_op + 1, GPU),), "op by op")


def test_a_chunk_takes_what_lies_between_handing_it_out_and_hearing_of_it():
    policy, ops, took_ns, way_ns = Watching(), 60, 2 * MS, 400_000
    stage = StagePlan((took_ns,) * ops, (False,) * ops, 0, 0, ())
    coordinator = Coordinator(
        [DnnPlan("net", (stage,), 100 * MS, continuous=False, queued=True)],
        scheduler=policy,
        frame_interval_ns=33 * MS,
        admission="all",
        processors=usual(1),
    )
    coordinator.receive(RenderingStopped(), 0)
    coordinator.receive(InferenceRequested("net", 0), 0)
    coordinator.receive(InputReady(0), 0)
    now_ns = 0
    for op in range(ops - 1):
        now_ns += took_ns + way_ns
        coordinator.receive(ChunkFinished(0, GPU, op, op + 1, took_ns), now_ns)
    assert policy.told[0] == {GPU: 0, CPU: 0}
    assert policy.told[-1][GPU] == pytest.approx(way_ns, rel=0.01)
    assert policy.told[-1][CPU] == 0
