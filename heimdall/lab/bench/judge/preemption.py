"""How soon the GPU is free, and a frame drawn, when a network that runs is told to yield."""

from __future__ import annotations

import queue
import random
import time
from typing import Any

import numpy as np

from heimdall.analyzer.profiler import Progress, no_progress
from heimdall.app import create
from heimdall.app.options import RunOptions
from heimdall.errors import DeviceError
from heimdall.lab.bench.loads import fit
from heimdall.lab.bench.scenario import load_scenario
from heimdall.lab.bench.workload import as_app
from heimdall.runtime.execution.executor import Executor
from heimdall.runtime.execution.ledger import Message
from heimdall.runtime.opening.setup import Setup, start
from heimdall.runtime.telemetry.spreads import percentiles
from heimdall.vocabulary.events import (
    ChunkFinished,
    Drop,
    InputReady,
    Prepare,
    RunChunk,
    Yield,
)
from heimdall.vocabulary.processors import GPU

SCENARIO, DNN = "shopping-phone", "segment"  # the longest network that the programme has
PATIENCE_S = 20.0
_LEAST = 10
_SOONER = 0.8
_FOR_EVER_NS = 10**15

Inbox = queue.SimpleQueue[Message]


def measure_preemption(
    device: str | None,
    seconds: float,
    progress: Progress = no_progress,
    *,
    scenario: str = SCENARIO,
    dnn: str = DNN,
) -> dict[str, Any]:
    """A chunk of all of a network's ops is told to yield at a random moment, again and again:
    how long until it has ended (``gpu_free_ms``), and until a frame has been drawn behind it
    (``frame_drawn_ms``; of a frame that has the GPU for itself ``frame_alone_ms``)."""
    options = RunOptions(headless=True, device=device)
    workload, _ = fit(load_scenario(scenario), options, progress)
    app = create(as_app(workload))
    with start(app, options, progress) as setup:
        inbox: Inbox = queue.SimpleQueue()
        executor = Executor(inbox)
        try:
            executor.add(dnn, setup.deployments[dnn], lambda: setup.first_frame)
            return _measure(setup, dnn, executor, inbox, seconds, progress)
        finally:
            executor.close()


def _measure(
    setup: Setup, dnn: str, executor: Executor, inbox: Inbox, seconds: float, progress: Progress
) -> dict[str, Any]:
    plan, draw = setup.deployments[dnn].plan, random.Random(0)
    ops = len(plan.stages[0].op_ns)
    free_ms: list[float] = []
    drawn_ms: list[float] = []
    began_s, job, passed_s, sooner = time.perf_counter(), 0, 0.0, 1.0
    while passed_s < seconds or len(free_ms) < _LEAST:
        job += 1
        executor.execute([Prepare(job, dnn, 0)])
        _wait(inbox, InputReady)
        chunk = RunChunk(job, dnn, 0, 0, GPU, 0, ops, plan.gpu_ns, "measured", _never_ns())
        executor.execute([chunk])
        time.sleep(plan.gpu_ns / 1e9 * sooner * draw.uniform(0.1, 0.6))
        asked_ns = time.perf_counter_ns()
        executor.execute([Yield(job, dnn, "measured")])
        ended = _wait(inbox, ChunkFinished)
        free_ns = time.perf_counter_ns()
        _draw(setup)
        if ended.end_op < ops:
            free_ms.append((free_ns - asked_ns) / 1e6)
            drawn_ms.append((time.perf_counter_ns() - asked_ns) / 1e6)
        else:  # it had ended by itself: a busy machine wakes this thread late
            sooner *= _SOONER
        executor.execute([Drop(job, dnn, "measured")])
        passed_s = time.perf_counter() - began_s
        progress("preemption", round(100 * min(passed_s / seconds, 1.0)), 100)
        if job > 4 * _LEAST and not free_ms:
            raise DeviceError(f"{dnn} always ran to its end: this engine does not stop within it")
    return {
        "network_ms": round(plan.gpu_ns / 1e6, 2),
        "times": len(free_ms),
        "gpu_free_ms": percentiles(np.array(free_ms)),
        "frame_drawn_ms": percentiles(np.array(drawn_ms)),
        "frame_alone_ms": round(setup.lone_render_ns / 1e6, 2),
    }


def _never_ns() -> int:
    """When rendering takes the GPU back: not while this is measured."""
    return time.perf_counter_ns() + _FOR_EVER_NS


def _wait(inbox: Inbox, kind: type[Any]) -> Any:
    try:
        message = inbox.get(timeout=PATIENCE_S)
    except queue.Empty:
        raise DeviceError(f"no answer from the GPU within {PATIENCE_S:g} s") from None
    if not isinstance(message, kind):
        raise DeviceError(f"instead of {kind.__name__} came {message}")
    return message


def _draw(setup: Setup) -> None:
    """A frame of the camera's picture alone, and wait for it."""
    assert setup.canvas is not None
    scene, frame = setup.canvas.scene, setup.first_frame
    scene.begin(frame.image, frame.sequence)
    scene.render()
    setup.canvas.surface.finish()
