"""What surrounds inference, measured alone: pre- and postprocessing, crops, and hand-overs."""

from __future__ import annotations

import queue
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from heimdall.models.walk import Walk
from heimdall.runtime.execution.deployment import Deployment
from heimdall.runtime.execution.processors import Processors
from heimdall.system.workers import Workers
from heimdall.vocabulary.processors import GPU

# A software GPU's rendering waits for the end of a slice of SCHED_RR (between queues it alternates
# kernel by kernel: docs/laboratory/drivers.md); what a real driver does is not known.
_REAL_TIME_SLICE_NS = 100_000_000
_ROUNDS = 3
_HAND_OVERS = 200


@dataclass(frozen=True)
class Around:
    """Of each stage: how long preprocessing took each time, and the number of inputs; then
    postprocessing."""

    prepare_ns: tuple[tuple[int, ...], ...]
    tasks: tuple[int, ...]
    decode_ns: int


def measure_around(deployment: Deployment, image: np.ndarray, options: Mapping[str, Any]) -> Around:
    """A DNN's pre- and postprocessing and its number of crops, on one frame."""
    rounds = [_infer(deployment, image, options) for _ in range(_ROUNDS)]
    stages = range(len(deployment.plan.stages))
    return Around(
        prepare_ns=tuple(tuple(prepare[stage] for prepare, _, _ in rounds) for stage in stages),
        tasks=tuple(rounds[-1][2]),
        decode_ns=min(decode for _, decode, _ in rounds),
    )


def _infer(
    deployment: Deployment, image: np.ndarray, options: Mapping[str, Any]
) -> tuple[list[int], int, list[int]]:
    """One inference: (preprocessing of each stage in ns, postprocessing in ns, tasks)."""
    walk = Walk(deployment.pipeline, image, options, deployment.memory)
    stages = len(deployment.plan.stages)
    prepare_ns, tasks = [0] * stages, [0] * stages  # a stage that is not reached takes nothing
    while not walk.ended:
        stage = walk.stage
        began_ns = time.perf_counter_ns()
        prepared = walk.prepare()
        prepare_ns[stage] = time.perf_counter_ns() - began_ns
        tasks[stage] = len(prepared)
        outputs = [_run(deployment, stage, task.inputs) for task in prepared]
        began_ns = time.perf_counter_ns()
        walk.decode(outputs)
    walk.result()
    return prepare_ns, time.perf_counter_ns() - began_ns, tasks


def _run(
    deployment: Deployment, stage: int, inputs: Mapping[str, np.ndarray]
) -> Mapping[str, np.ndarray]:
    with deployment.unit_network(stage, GPU).taken() as where:
        return where.network.infer(where.state, inputs)


def measure_hand_overs() -> tuple[int, ...]:
    """How long it takes to wake another thread: half of there and back, in ns; all but the
    longest tenth."""
    inbox: queue.SimpleQueue[None] = queue.SimpleQueue()
    workers = Workers("probe")
    seen = []
    for _ in range(_HAND_OVERS):
        began_ns = time.perf_counter_ns()
        workers.submit(inbox.put, None)
        inbox.get()
        seen.append((time.perf_counter_ns() - began_ns) // 2)
        time.sleep(0.0005)
    workers.close()
    return tuple(sorted(seen)[: _HAND_OVERS * 9 // 10])


def driver_turn_ns(processors: Processors) -> int:
    """How long rendering waits for networks that are never idle; 0 where that is not known."""
    software = processors.software
    return _REAL_TIME_SLICE_NS if software and software.realtime else 0
